package models

import (
	"math"

	"github.com/gsrc-dev/gsrc/ir"
)

// lds builds LDS (Franceschi et al. 2019), a bilevel problem: θ has the probability of each
// edge, so that the graph convolutional network which the inner problem trains on samples of
// the edges is right on further nodes,
//
//	min_θ E F(w_θ, A),  w_θ = argmin_w E L(w, A),  A ~ Ber(θ), 0 ≤ θ ≤ 1
//
// L the loss of training nodes with weight decay, F that of the outer nodes, half of the
// validation nodes. @joint makes steps of Adam on L, each with edges drawn anew, and then one of
// θ along F's gradient, which flows back through these steps and not further (Algorithm 1 and 2;
// the function @inner, unrolled). A draw's gradient is taken for that of its probability. After
// so many of these the network begins anew.
//
// θ begins as the data's graph and is kept of the candidates, the data's edges and those to the
// candidates.k nearest by features. With k = N − 1 it is the whole matrix.
func lds(o Options) *ir.Module {
	m := ir.NewModule("lds")
	arch := architecture("gcn")
	e := &ldsModel{Options: o, network: classifier(m, arch, o).(*stack)}
	similarFeatures(m, o)

	b := m.NewFunc("probability") // as it begins
	returnProbability(b, b.Arg("old", ir.T(ir.F32, "M")))

	b = m.NewFunc("begin")
	for _, s := range newAdam(e.weights()).state() {
		v := b.Fill(0, s.t)
		if s.t.Rank() == 0 {
			v = b.Const(1)
		}
		b.Return(NextPrefix+s.name, v)
	}
	b.Return(NextPrefix+"turn", b.Const(0))
	b.Return(NextPrefix+"updates", b.Const(0))

	e.inner(m)
	e.joint(m)
	o.refine(m)
	o.fit(m, arch, e.network, (*ir.Builder).DynamicArg, asProbabilities)
	classify(m, o, e.network, &candidates)
	return m
}

// OuterIdx and OuterLabels are arguments of functions that learn from validation nodes: those
// of [data.Split]'s Outer.
const OuterIdx, OuterLabels = "outer_idx", "outer_labels"

type ldsModel struct {
	Options
	network *stack
}

func (e *ldsModel) weights() []*ir.Value {
	var ps []*ir.Value
	for i, w := range e.network.weights {
		ps = append(ps, w, e.network.biases[i])
	}
	return ps
}

// logits are those of the network with weights, on a draw of the edges.
func (e *ldsModel) logits(b *ir.Builder, c, p, x *ir.Value, weights []*ir.Value, stream string, drop *dropouts) *ir.Value {
	u := b.One("edge_uniform", ir.Attrs{"stream": stream}, c)
	drawn := b.Add(b.One("less", nil, u, b.Stop(p)), b.Sub(p, b.Stop(p))) // straight through
	n := *e.network
	n.weights, n.biases = nil, nil
	for i := 0; i < len(weights); i += 2 {
		n.weights, n.biases = append(n.weights, weights[i]), append(n.biases, weights[i+1])
	}
	return newSymmetric(b, c, drawn).gcn(&n, e.prepare(b, &n, x), drop)
}

// inner declares a step of the inner problem: Adam on the training nodes' loss.
func (e *ldsModel) inner(m *ir.Module) {
	b := m.NewFunc("inner")
	ps := e.weights()
	var weights []*ir.Value
	for _, p := range ps {
		weights = append(weights, b.Arg("inner."+p.Name, p.Type))
	}
	opt := newAdam(ps)
	opt.args(b.Arg)
	x, c, p := b.Arg("x", features(e.Options)), b.Arg("c", candidates), b.Arg("p", ir.T(ir.F32, "M"))
	idx, answers := supervision(b, e.Options)
	logits := e.logits(b, c, p, x, weights, "edges", e.dropouts("inner"))
	loss := crossEntropy(b, labelled(b, logits, idx), answers)
	weights = opt.step(b, weights, b.Op("grad", nil, append([]*ir.Value{loss}, weights...)...), e.LDS.InnerLR)
	for i, w := range weights {
		b.Return(ps[i].Name, w)
	}
	for i, s := range opt.state() {
		b.Return(s.name, opt.values()[i])
	}
}

// joint declares a step of θ, the argument p, whose entries in both directions are equal, and
// of the network.
func (e *ldsModel) joint(m *ir.Module) {
	b, o := m.NewFunc("joint"), e.LDS
	x, c := b.Arg("x", features(e.Options)), b.Arg("c", candidates)
	p := b.DynamicArg("p", ir.T(ir.F32, "M"))
	weights := e.weights()
	opt := newAdam(weights)
	opt.args(b.DynamicArg)
	turn, updates := b.DynamicArg("turn", ir.Scalar()), b.DynamicArg("updates", ir.Scalar())
	idx, answers := supervision(b, e.Options)
	outer := ir.T(ir.I64, "V")
	outerIdx, outerLabels := b.Arg(OuterIdx, outer), b.Arg(OuterLabels, outer)

	state := append(append([]*ir.Value{}, weights...), opt.values()...)
	if o.Restart > 0 {
		again := b.One("greater_equal", nil, turn, b.Const(float64(o.Restart)))
		goesOn := b.Sub(b.Const(1), again)
		for i, v := range state {
			state[i] = b.Mul(v, goesOn)
			switch {
			case i < len(weights) && v.Type.Rank() == 2: // as parameters begin (Glorot and Bengio 2010)
				rows, _ := v.Type.Dims[0].Size()
				cols, _ := v.Type.Dims[1].Size()
				u := b.OneTyped("uniform", ir.Attrs{"stream": "restart." + v.Name}, v.Type)
				begin := b.Scale(b.Shift(b.Scale(u, 2), -1), math.Sqrt(6/float64(rows+cols)))
				state[i] = b.Add(state[i], b.Mul(begin, again))
			case v.Type.Rank() == 0: // a power of a decay rate
				state[i] = b.Add(state[i], again)
			}
		}
		turn = b.Mul(turn, goesOn)
	}
	names := opt.state()
	trained := b.Op("unroll", ir.Attrs{"step": ir.FuncRef("inner"), "states": len(state), "steps": o.Steps}, append(state, x, c, p, idx, answers)...)
	for i, v := range trained {
		if i < len(weights) {
			b.Return(NextPrefix+weights[i].Name, v)
		} else {
			b.Return(NextPrefix+names[i-len(weights)].name, v)
		}
	}
	loss := crossEntropy(b, labelled(b, e.logits(b, c, p, x, trained[:len(weights)], "outer.edges", nil), outerIdx), outerLabels)
	b.Return("loss", loss)
	b.Return(NextPrefix+"turn", b.Shift(turn, 1))
	b.Return(NextPrefix+"updates", b.Shift(updates, 1))

	// A parameter moves the entries of both directions, which have the same gradient.
	rate := b.Div(b.Const(2*o.LR), b.Shift(b.Scale(updates, ldsDecay), 1))
	next := b.Sub(p, b.Mul(b.One("grad", nil, loss, p), rate))
	b.Return(NextPrefix+"p", b.One("minimum", nil, b.One("maximum", nil, next, b.Const(0)), b.Const(1)))
}

// ldsDecay is how the learning rate of θ falls with the number t of its updates: by 1/(1 + t·ldsDecay).
const ldsDecay = 1e-3
