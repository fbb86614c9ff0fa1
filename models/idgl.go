package models

import (
	"fmt"

	"github.com/gsrc-dev/gsrc/ir"
)

// idgl builds IDGL (Chen et al. 2020), which learns graph and embedding in turn. S⁽¹⁾ has the
// weighted cosines of the features above ε, S⁽ᵗ⁾ for t > 1 those of the hidden layer that a graph
// convolutional network had on the graph before. It reads
//
//	Ã⁽ᵗ⁾ = λ·L⁽⁰⁾ + (1 − λ)·(η·f(S⁽ᵗ⁾) + (1 − η)·f(S⁽¹⁾)),
//
// L⁽⁰⁾ the data's graph as Kipf and Welling normalise it, f rows that add up to 1. The turns end when
// ‖S⁽ᵗ⁾ − S⁽ᵗ⁻¹⁾‖² ≤ δ·‖S⁽¹⁾‖², or after a number of them. The loss is that of the first turn and
// the mean of the others': the classifier's, and how unlike joined features are, how few
// edges nodes have, and how large S is.
//
// S is kept of the candidates, the data's edges and those to the candidates.k nearest by the
// features, in place of N² pairs. It is symmetric; rows are normalised where Ã is formed. A
// candidate's probability is (A + S)/2, from which @classify tells both.
func idgl(o Options) *ir.Module {
	m := ir.NewModule("idgl")
	arch := architecture("gcn")
	e := &idglModel{Options: o, network: classifier(m, arch, o).(*stack)}
	for i, width := range []int{o.Features, o.Hidden} {
		e.metrics[i] = m.AddParam(fmt.Sprintf("metric.%d.weight", i), ir.T(ir.F32, ir.D(width), ir.D(o.IDGL.Heads)), "glorot", o.Encoder.WeightDecay, "encoder")
	}

	similarFeatures(m, o)

	b := m.NewFunc("probability")
	x, c, old := b.Arg("x", features(o)), b.Arg("c", candidates), b.Arg("old", ir.T(ir.F32, "M"))
	t := e.begin(b, c, old, e.prepare(b, e.network, x), nil)
	last := t.s
	for range o.IDGL.Steps {
		t.turn(nil)
		last = b.Add(last, b.Mul(t.active, b.Sub(t.s, last)))
	}
	returnProbability(b, b.Scale(b.Add(old, b.One("minimum", nil, last, b.Const(idglMost))), 0.5))

	e.joint(m)

	b = m.NewFunc("fit")
	x, c = b.Arg("x", features(o)), b.Arg("c", candidates)
	p := b.Arg("p", ir.T(ir.F32, "M"))
	idx, answers := supervision(b, o)
	b.Func.Attrs["differentiate"] = "loss"
	b.Return("loss", crossEntropy(b, labelled(b, e.learned(b, c, p, x, o.dropouts("classifier")), idx), answers))

	b = m.NewFunc("refine")
	p = b.DynamicArg("p", ir.T(ir.F32, "M"))
	b.Return("w", b.One("gsr.refine", ir.Attrs{"mode": "expected", "threshold": o.Edges.Threshold}, p))

	b = m.NewFunc("classify")
	x, c = b.Arg("x", features(o)), b.Arg("g", candidates)
	w := b.Arg("w", ir.T(ir.F32, "M"))
	o.returnSmoothed(b, c, w, nil, e.learned(b, c, w, x, nil))
	return m
}

// idglMost is the largest S of a candidate that is no edge, whose probability is below ½.
const idglMost = 0.9999

type idglModel struct {
	Options
	network *stack
	metrics [2]*ir.Value // of features and of the hidden layer
}

// adjacency holds the values of entries of Ã and of nodes with themselves.
type adjacency struct{ entries, self *ir.Value }

func (a adjacency) mix(b *ir.Builder, share float64, with adjacency) adjacency {
	mix := func(x, y *ir.Value) *ir.Value { return b.Add(b.Scale(x, share), b.Scale(y, 1-share)) }
	return adjacency{mix(a.entries, with.entries), mix(a.self, with.self)}
}

// turns are the graph and the embedding of one turn after the other.
type turns struct {
	*idglModel
	b              *ir.Builder
	c, product     *ir.Value // of the features and the first layer's weights
	data, first, a adjacency // L⁽⁰⁾, Ã⁽¹⁾ and Ã⁽ᵗ⁾
	norm           *ir.Value // ‖S⁽¹⁾‖²
	s, hidden      *ir.Value // S⁽ᵗ⁾ of candidates, and the hidden layer
	active, goesOn *ir.Value // 1 in turns that are taken, or are to be next, and 0
}

func (e *idglModel) begin(b *ir.Builder, c, old, x *ir.Value, drop *dropouts) *turns {
	t := &turns{idglModel: e, b: b, c: c, goesOn: b.Const(1)}
	norm := b.Op("gnn.sym_norm", nil, c, old)
	t.data = adjacency{norm[0], norm[1]}
	t.product = b.MatMul(x, e.network.weights[0])
	t.s = e.similar(b, c, b.One("to_dense", nil, x), 0)
	t.norm = b.Sum(b.Shift(squares(b, c, t.s), 1))
	t.first = t.data.mix(b, e.IDGL.Keep, e.rows(b, c, t.s))
	if drop != nil && e.IDGL.DropEdges > 0 {
		t.s = e.dropped(b, t.s, drop.prefix+".similar")
		t.first = adjacency{e.dropped(b, t.first.entries, drop.prefix+".edges"), e.dropped(b, t.first.self, drop.prefix+".self")}
	}
	t.a = t.first
	t.hidden = e.layer(b, c, t.a, t.product, drop)
	return t
}

// dropped returns values without a share of them, the others scaled up.
func (e *idglModel) dropped(b *ir.Builder, v *ir.Value, stream string) *ir.Value {
	return b.One("dropout", ir.Attrs{"rate": e.IDGL.DropEdges, "stream": stream}, v)
}

func (t *turns) turn(drop *dropouts) {
	b, o, before := t.b, t.IDGL, t.s
	t.active = t.goesOn
	t.s = t.similar(b, t.c, t.hidden, 1)
	t.a = t.data.mix(b, o.Keep, t.rows(b, t.c, t.s)).mix(b, o.Update, t.first)
	t.hidden = t.layer(b, t.c, t.a, t.product, drop)
	d := b.Stop(b.Sub(t.s, before))
	t.goesOn = b.Mul(t.active, b.One("greater", nil, b.Sum(squares(b, t.c, d)), b.Scale(b.Stop(t.norm), o.Tolerance)))
}

// squares returns for each node the sum of the squares of its entries' values.
func squares(b *ir.Builder, c, v *ir.Value) *ir.Value {
	return b.One("edge_sum", ir.Attrs{"side": "dst"}, c, b.Mul(v, v))
}

// similar returns S: the means over the heads of the cosines of rows with weighted columns,
// those above ε. That of a node with itself is 1, also of a row of zeros.
func (e *idglModel) similar(b *ir.Builder, c, x *ir.Value, metric int) *ir.Value {
	var s *ir.Value
	for h := range e.IDGL.Heads {
		weights := b.One("squeeze", nil, b.One("columns", ir.Attrs{"from": h, "width": 1}, e.metrics[metric]))
		z := b.One("l2_normalize", nil, b.Mul(x, weights))
		s = b.Plus(s, b.One("sddmm", nil, c, z, z))
	}
	s = b.Scale(s, 1/float64(e.IDGL.Heads))
	return b.Mul(s, b.One("greater", nil, b.Stop(s), b.Const(e.IDGL.Epsilon)))
}

// rows returns f(S), whose rows add up to 1.
func (e *idglModel) rows(b *ir.Builder, c, s *ir.Value) adjacency {
	self := b.Div(b.Const(1), b.Shift(b.One("edge_sum", ir.Attrs{"side": "dst"}, c, s), 1))
	return adjacency{b.Mul(s, b.One("edge_gather", ir.Attrs{"side": "dst"}, c, self)), self}
}

// layer returns the hidden layer, dropped.
func (e *idglModel) layer(b *ir.Builder, c *ir.Value, a adjacency, product *ir.Value, drop *dropouts) *ir.Value {
	h := b.One("relu", nil, b.Add(b.One("spmm", nil, c, a.entries, a.self, product), e.network.biases[0]))
	return drop.apply(b, 1, h)
}

// logits are those of the layers behind the hidden one.
func (e *idglModel) logits(b *ir.Builder, c *ir.Value, a adjacency, h *ir.Value, drop *dropouts) *ir.Value {
	for i, weight := range e.network.weights[1:] {
		if i > 0 {
			h = drop.apply(b, i+1, b.One("relu", nil, h))
		}
		h = b.Add(b.One("spmm", nil, c, a.entries, a.self, b.MatMul(h, weight)), e.network.biases[i+1])
	}
	return h
}

// joint declares a step of all parameters, through all turns.
func (e *idglModel) joint(m *ir.Module) {
	b, o := m.NewFunc("joint"), e.IDGL
	x, c, old := b.Arg("x", features(e.Options)), b.Arg("c", candidates), b.Arg("old", ir.T(ir.F32, "M"))
	idx, answers := supervision(b, e.Options)
	drop := func(turn int) *dropouts { return e.dropouts(fmt.Sprintf("turn%d", turn)) }
	x = drop(0).apply(b, 0, e.prepare(b, e.network, x))
	n := b.Sum(b.Fill(1, ir.T(ir.F32, "N"))) // N

	// Σ_ij S_ij·‖x_i − x_j‖²/2 = Σ_i d_i·‖x_i‖² − Σ_ij S_ij·⟨x_i, x_j⟩
	rows := b.One("to_dense", nil, x)
	own, joined := b.One("reduce_sum", ir.Attrs{"axis": "1"}, b.Mul(rows, rows)), b.One("sddmm", nil, c, rows, rows)
	loss := func(t *turns, drop *dropouts) *ir.Value {
		degree := b.One("edge_sum", ir.Attrs{"side": "dst"}, c, t.s)
		unlike := b.Sub(b.Sum(b.Mul(degree, own)), b.Sum(b.Mul(t.s, joined)))
		size := b.Add(b.Sum(b.Mul(t.s, t.s)), n)
		terms := b.Add(b.Scale(unlike, o.Smooth), b.Scale(size, o.Sparse))
		few := b.Scale(b.Sum(b.One("log", nil, b.Shift(degree, 1))), -o.Degree)
		l := crossEntropy(b, labelled(b, e.logits(b, c, t.a, t.hidden, drop), idx), answers)
		return b.Add(l, b.Div(b.Add(b.Div(terms, n), few), n))
	}
	t := e.begin(b, c, old, x, drop(0))
	first, others, taken := loss(t, drop(0)), b.Const(0), b.Const(0)
	for i := range o.Steps {
		t.turn(drop(i + 1))
		others = b.Add(others, b.Mul(t.active, loss(t, drop(i+1))))
		taken = b.Add(taken, t.active)
	}
	b.Func.Attrs["differentiate"] = "loss"
	b.Return("loss", b.Add(first, b.Div(others, taken)))
	b.Return("turns", taken)
}

// learned returns the logits on the graph of the probabilities w.
func (e *idglModel) learned(b *ir.Builder, c, w, x *ir.Value, drop *dropouts) *ir.Value {
	old := b.One("greater_equal", nil, w, b.Const(0.5))
	x = drop.apply(b, 0, e.prepare(b, e.network, x))
	t := e.begin(b, c, old, x, drop)
	last := t.data.mix(b, e.IDGL.Keep, e.rows(b, c, b.Sub(b.Scale(w, 2), old))).mix(b, e.IDGL.Update, t.first)
	return e.logits(b, c, last, e.layer(b, c, last, t.product, drop), drop)
}
