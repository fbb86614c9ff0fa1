package models

import (
	"fmt"
	"slices"

	"github.com/gsrc-dev/gsrc/ir"
)

// Evidence for an edge comes from several sources, each of which judges it without itself,
// since messages over an edge make its ends alike whether it is right or wrong:
//
//	z    features of a node, projected and of length 1
//	s1   Σ a·z over its neighbours, s2 Σ a·s1, d Σ a, d1 Σ a·d; a are weights of edges
//
// Of an edge {u, v} of weight w, what came over the edge itself is taken off exactly:
// m1(u) = s1(u) − w·z(v), m2(u) = s2(u) − w·s1(v), and from the degrees likewise. So a
// source is a function of a few dot products of the rows of u and v, and judging all edges
// takes as many steps as there are edges. A pair that is no edge has w = 0.
//
// The sources are joined by a logistic regression that was fitted on edges against pairs
// drawn at random (package train), which gives how much likelier they are of an edge than
// of a random pair.

const (
	EvidenceRounds = 4          // how often a graph is weighed by the robust evidence for its edges, see [evidence.edges]
	EvidencePower  = 5          // sharpens the weights of a round
	EvidenceRange  = 3.0        // bounds standardised sources, which products would take far otherwise
	MinEvidence    = 1e-3       // keeps weights of edges above zero
	EvidenceGroup  = "evidence" // of the parameters of the evidence
)

// Names of the parameters of the evidence; no gradient reaches them. Those
// of a regression begin with its name.
const (
	EvidenceProjection = "evidence.projection" // [F, width]
	EvidenceSpectrum   = "evidence.spectrum"   // [width, 32]: what of z the source spectrum begins with, where there is one
	EvidenceClasses    = "evidence.classes"    // [width, classes]: logits of classes by z, where labels are a source
	EvidenceClassBias  = "evidence.class_bias" // [classes]
	EvidenceGate       = "evidence.gate"       // [], from 0 (the graph is judged as it is) to 1 (as the robust evidence weighs it)
)

// The regressions on sources. The robust one of round 1 ≤ r ≤ [EvidenceRounds] is robust.r.
const (
	EvidenceJoint  = "evidence.joint"  // has products of sources too
	EvidenceNew    = "evidence.new"    // ranks pairs that are no edges; has products, too
	EvidenceLinear = "evidence.linear" // on [LinearSources]
	EvidenceRobust = "evidence.robust" // of the weighed graph, on [RobustSources]
)

// EvidenceDisguised are regressions as [EvidenceJoint] against pairs of further kinds, where
// [Edges.Disguised] has wrong edges look like these, too: ends that are drawn by degree, and alike
// ones.
var EvidenceDisguised = []string{"evidence.degrees", "evidence.similar"}

// regression has the parameters of a logistic regression on S sources.
type regression struct {
	names       []string
	mean, scale *ir.Value // [S]: sources become (source − mean)·scale, within ±[EvidenceRange]
	linear      *ir.Value // [S, 1]
	quadratic   *ir.Value // [S, S] of their products; nil: none
	bias        *ir.Value // []
}

func declareRegression(m *ir.Module, name string, names []string) *regression {
	add := func(part string, dims ...ir.Dim) *ir.Value { return declareEvidenceParam(m, name+"."+part, dims...) }
	s := ir.D(len(names))
	r := &regression{names: names, mean: add("mean", s), scale: add("scale", s), linear: add("linear", s, "1"), bias: add("bias")}
	if name == EvidenceJoint || name == EvidenceNew || slices.Contains(EvidenceDisguised, name) {
		r.quadratic = add("quadratic", s, s)
	}
	return r
}

func declareEvidenceParam(m *ir.Module, name string, dims ...ir.Dim) *ir.Value {
	return m.AddParam(name, ir.T(ir.F32, dims...), "zeros", 0, EvidenceGroup)
}

// logit returns how much likelier the sources are of an edge than of a random pair.
func (r *regression) logit(b *ir.Builder, sources map[string]*ir.Value) *ir.Value {
	var x *ir.Value
	for _, name := range r.names {
		if c := b.One("unsqueeze", nil, sources[name]); x == nil {
			x = c
		} else {
			x = b.Concat(x, c)
		}
	}
	x = b.Mul(b.Sub(x, r.mean), r.scale)
	x = b.One("minimum", nil, b.One("maximum", nil, x, b.Const(-EvidenceRange)), b.Const(EvidenceRange))
	logit := b.One("squeeze", nil, b.MatMul(x, r.linear))
	if r.quadratic != nil {
		logit = b.Add(logit, b.One("reduce_sum", ir.Attrs{"axis": "1"}, b.Mul(x, b.MatMul(x, r.quadratic))))
	}
	return b.Add(logit, r.bias)
}

// EvidenceShare names the share of edges that are none, by the logits of a regression.
func EvidenceShare(regression string) string { return regression + ".share" }

// surelyNone bounds from below what makes edges likely, so that the least likely have an
// order.
const surelyNone = 0.05

// probability returns how likely pairs are edges, if a share of a graph's edges are none: 1 − x,
// where x = share·exp(−logit) is the local false discovery rate (Efron et al. 2001), of an edge
// that looks like a random pair. more is the rate of edges that look like pairs of further kinds,
// which are others, so that rates add up.
//
// Where none are looked at, more is nil, and the probability (1 − x/2) / (1 + x/2), as runs had it
// before: halfway between 1 − x and 1/(1 + x), if as many that look like random pairs are edges.
func probability(b *ir.Builder, logit, share, more *ir.Value) *ir.Value {
	x, right := falseRate(b, logit, share), 0.5
	if more != nil {
		x, right = b.Add(x, more), 0
	}
	rest := b.One("maximum", nil, b.Shift(b.Scale(x, right-1), 1), b.Const(surelyNone))
	return b.Div(rest, b.Add(rest, x))
}

// falseRate returns the share of edges with a logit that are none.
func falseRate(b *ir.Builder, logit, share *ir.Value) *ir.Value {
	return b.Mul(share, b.One("exp", nil, b.One("minimum", nil, b.One("neg", nil, logit), b.Const(20))))
}

// trust returns one minus the false discovery rate, which is 0 of edges that are no likelier
// than random pairs.
func trust(b *ir.Builder, logit, share *ir.Value) *ir.Value {
	return b.One("maximum", nil, b.Shift(b.One("neg", nil, falseRate(b, logit, share)), 1), b.Const(0))
}

type evidence struct {
	m                       *ir.Module
	projection, gate, share *ir.Value
	joint, linear, robust   *regression
	fresh                   *regression // of new edges
	rounds, disguised       []*regression
	shares, disguisedShares []*ir.Value // of the rounds, and of further kinds of wrong edges
	counted                 bool        // edges count by their weights in the data
	names, lin, rob         []string    // of all sources, and of those of the linear and robust regressions
	start                   *ir.Value   // of the source spectrum; nil without
	classes, bias           *ir.Value   // of the source labels; nil without
}

func declareEvidence(m *ir.Module, o Options) *evidence {
	width := ir.D(EvidenceWidth(o.Features, o.Marks))
	e := &evidence{m: m, projection: declareEvidenceParam(m, EvidenceProjection, ir.D(o.Features), width)}
	if o.Dense {
		e.start = declareEvidenceParam(m, EvidenceSpectrum, width, ir.D(spectrumRank))
	}
	if o.Edges.Labels && o.Classes > 0 {
		e.classes, e.bias = declareEvidenceParam(m, EvidenceClasses, width, ir.D(o.Classes)), declareEvidenceParam(m, EvidenceClassBias, ir.D(o.Classes))
	}
	e.names, e.lin, e.rob = EvidenceOf(func(param string) bool { return m.Param(param) != nil })
	e.gate, e.share = declareEvidenceParam(m, EvidenceGate), declareEvidenceParam(m, EvidenceShare("evidence"))
	e.joint, e.fresh = declareRegression(m, EvidenceJoint, e.names), declareRegression(m, EvidenceNew, e.names)
	e.linear, e.robust = declareRegression(m, EvidenceLinear, e.lin), declareRegression(m, EvidenceRobust, e.rob)
	if o.Edges.Disguised {
		for _, name := range EvidenceDisguised {
			e.disguised, e.disguisedShares = append(e.disguised, declareRegression(m, name, e.names)), append(e.disguisedShares, declareEvidenceParam(m, EvidenceShare(name)))
		}
	}
	for r := 1; r <= EvidenceRounds; r++ {
		name := EvidenceRound(r)
		e.rounds, e.shares = append(e.rounds, declareRegression(m, name, e.rob)), append(e.shares, declareEvidenceParam(m, EvidenceShare(name)))
	}
	return e
}

// EvidenceRound names the robust regression of a round, from 1.
func EvidenceRound(r int) string { return fmt.Sprintf("%s.%d", EvidenceRobust, r) }

func (e *evidence) projected(b *ir.Builder, x *ir.Value) *ir.Value {
	return b.One("l2_normalize", nil, b.MatMul(x, e.projection))
}

type seen struct {
	asItIs, weighed *tables
	probability     *ir.Value            // f32[E] that an entry is an edge
	sources         map[string]*ir.Value // the evidence for it, in the graph as it is
}

func (e *evidence) edges(b *ir.Builder, x, g *ir.Value) *seen {
	z := e.projected(b, x)
	edges := b.One("edge_pairs", nil, g)
	in := func(a *ir.Value, names []string) (*tables, map[string]*ir.Value) {
		t := e.tables(b, g, a, z)
		return t, t.of(b, edges, a).sources(names...)
	}
	ones := b.One("edge_ones", nil, g)
	s := &seen{}
	s.asItIs, s.sources = in(ones, e.names)
	a := ones
	for i := range e.rounds {
		_, sources := in(a, e.rob)
		a = e.weight(b, i, sources)
	}
	var sources map[string]*ir.Value
	s.weighed, sources = in(a, e.lin)
	p := e.existing(b, e.joint.logit(b, s.sources), e.more(b, s.sources), sources)
	if e.counted {
		p = b.Mul(p, b.Arg("w", ir.T(ir.F32, "E")))
	}
	s.probability = b.One("maximum", nil, p, b.Const(MinEvidence))
	return s
}

// weight returns what edges count after a round, by the sources in the graph that it weighs.
func (e *evidence) weight(b *ir.Builder, round int, sources map[string]*ir.Value) *ir.Value {
	p := trust(b, e.rounds[round].logit(b, sources), e.shares[round])
	return b.One("maximum", nil, b.One("pow", ir.Attrs{"exponent": EvidencePower}, p), b.Const(MinEvidence))
}

// more returns the rate of wrong edges of further kinds, by the sources in the graph as it is; nil:
// there are none.
func (e *evidence) more(b *ir.Builder, asItIs map[string]*ir.Value) (sum *ir.Value) {
	for i, r := range e.disguised {
		sum = b.Plus(sum, falseRate(b, r.logit(b, asItIs), e.disguisedShares[i]))
	}
	return sum
}

// existing returns how likely edges are some, by the logit and the rate of wrong edges of further
// kinds in the graph as it is, and the sources as the rounds weigh it; nil: the gate is closed.
func (e *evidence) existing(b *ir.Builder, logit, more *ir.Value, weighed map[string]*ir.Value) *ir.Value {
	if weighed != nil {
		// Half the sum of two logits that mostly say the same.
		logit = e.either(b, logit, b.Scale(b.Add(e.linear.logit(b, weighed), e.robust.logit(b, weighed)), 0.5))
	}
	return probability(b, logit, e.share, more)
}

// missing returns how likely pairs that are no edges would be some, likewise.
func (e *evidence) missing(b *ir.Builder, o Options, logit *ir.Value, weighed map[string]*ir.Value) *ir.Value {
	if weighed != nil {
		logit = e.either(b, logit, e.fresh.logit(b, weighed))
	}
	return b.Shift(b.Scale(b.One("sigmoid", nil, logit), o.Edges.NewHi-o.Edges.NewLo), o.Edges.NewLo)
}

// either returns x where the gate is closed, y where it is open.
func (e *evidence) either(b *ir.Builder, x, y *ir.Value) *ir.Value {
	return b.Add(x, b.Mul(e.gate, b.Sub(y, x)))
}

// CloseGate returns the module without the robust evidence, which is not read where the gate
// ([EvidenceGate]) is 0: no edge is then judged by how others are.
func CloseGate(m *ir.Module) *ir.Module {
	m = m.Clone()
	for _, f := range m.Funcs {
		with := map[*ir.Value]*ir.Value{}
		for _, op := range f.Body {
			if op.Name() != "add" || op.Operands[1].Def == nil || op.Operands[1].Def.Name() != "mul" {
				continue
			}
			if gate := op.Operands[1].Def.Operands[0]; gate.Param && gate.Name == EvidenceGate {
				with[op.Result()] = op.Operands[0]
			}
		}
		f.Replace(with)
	}
	return m
}

// The functions by which training judges pairs of nodes, some at a time, beside [WeightFunc]: the
// evidence by all sources, and by those of the linear and the robust regressions; how likely edges
// are some, and pairs that are none would be, where the gate is closed. Where it is not, those that
// end in [Weighed] say so by the logits that the others give: rows of a node in the graph as it is
// and as the rounds weigh it are then not held together.
const (
	SourcesFunc       = "sources"
	LinearSourcesFunc = "linear_sources"
	RobustSourcesFunc = "robust_sources"

	ExistingFunc = "existing"
	MissingFunc  = "missing"
	Weighed      = "_weighed"
)

// WeightFunc names the function that weighs edges in a round, from 1.
func WeightFunc(round int) string { return fmt.Sprintf("weight.%d", round) }

// host declares the functions by which the evidence is fitted, and pairs are judged in
// training. Pairs that are edges weigh w, others 0, in a graph whose entries weigh a. What
// does not depend on pairs is computed once for all of them.
func (e *evidence) host(o Options) {
	type pairs struct {
		*ir.Builder
		z, g, a, pairs, w *ir.Value
	}
	declare := func(name string) *pairs {
		b := e.m.NewFunc(name)
		b.Func.Attrs[ir.Fixed] = true
		p := &pairs{Builder: b, g: b.Arg("g", rawGraph)}
		p.z, p.pairs = e.projected(b, b.Arg("x", features(o))), b.DynamicArg("pairs", ir.T(ir.I64, "2", "P"))
		return p
	}
	weights := func(p *pairs) {
		p.a, p.w = p.Arg("a", ir.T(ir.F32, "E")), p.DynamicArg("w", ir.T(ir.F32, "P"))
	}
	of := func(p *pairs, a, w *ir.Value, names []string) map[string]*ir.Value {
		return e.tables(p.Builder, p.g, a, p.z).of(p.Builder, p.pairs, w).sources(names...)
	}
	for i, names := range [][]string{e.names, e.lin, e.rob} {
		p := declare([]string{SourcesFunc, LinearSourcesFunc, RobustSourcesFunc}[i])
		weights(p)
		sources := of(p, p.a, p.w, names)
		for _, name := range names {
			p.Return(name, sources[name])
		}
	}
	for r := range e.rounds {
		p := declare(WeightFunc(r + 1))
		weights(p)
		p.Return("weight", e.weight(p.Builder, r, of(p, p.a, p.w, e.rob)))
	}
	ones := func(p *pairs) *ir.Value { return p.One("edge_ones", nil, p.g) }
	p := declare(ExistingFunc)
	asItIs := of(p, ones(p), p.Fill(1, ir.T(ir.F32, "P")), e.names)
	logit, more := e.joint.logit(p.Builder, asItIs), e.more(p.Builder, asItIs)
	p.Return("logit", logit)
	if more != nil {
		p.Return("more", more)
	}
	p.Return("probability", e.existing(p.Builder, logit, more, nil))

	p = declare(ExistingFunc + Weighed)
	logit = p.DynamicArg("logit", ir.T(ir.F32, "P"))
	if more != nil {
		more = p.DynamicArg("more", ir.T(ir.F32, "P"))
	}
	weights(p)
	p.Return("probability", e.existing(p.Builder, logit, more, of(p, p.a, p.w, e.lin)))

	p = declare(MissingFunc)
	logit = e.fresh.logit(p.Builder, of(p, ones(p), nil, e.names))
	p.Return("logit", logit)
	p.Return("probability", e.missing(p.Builder, o, logit, nil))

	p = declare(MissingFunc + Weighed)
	logit = p.DynamicArg("logit", ir.T(ir.F32, "P"))
	p.a = p.Arg("a", ir.T(ir.F32, "E"))
	p.Return("probability", e.missing(p.Builder, o, logit, of(p, p.a, nil, e.names)))
}

// similar returns the rows by which nodes are compared where candidates are searched: z,
// and z with the mean of its neighbours'.
func (t *tables) similar(b *ir.Builder) (features, evidence *ir.Value) {
	degree := b.One("unsqueeze", nil, b.One("maximum", nil, t.d, b.Const(1)))
	return t.rows[0], b.Add(t.rows[0], b.Div(t.rows[1], degree))
}

// compared declares @rows, which gives these of a graph.
func (e *evidence) compared(o Options) {
	b := e.m.NewFunc("rows")
	x, g := b.Arg("x", features(o)), b.Arg("g", rawGraph)
	t := e.tables(b, g, b.One("edge_ones", nil, g), e.projected(b, x))
	features, evidence := t.similar(b)
	b.Return("features", features)
	b.Return("evidence", evidence)
}

// score declares @score: how likely the entries of the graph are edges, and pairs that are
// none would be, the latter within the interval of new edges, with the evidence by source.
func (e *evidence) score(o Options) {
	b := e.m.NewFunc("score")
	x, g := b.Arg("x", features(o)), b.Arg("g", rawGraph)
	pairs := b.DynamicArg("pairs", ir.T(ir.I64, "2", "P"))
	s := e.edges(b, x, g)
	of := func(t *tables) map[string]*ir.Value { return t.of(b, pairs, nil).sources(e.names...) }
	asItIs := of(s.asItIs)
	b.Return("probability", e.missing(b, o, e.fresh.logit(b, asItIs), of(s.weighed)))
	b.Return("edge_probability", s.probability)
	for _, name := range e.names {
		b.Return("evidence_"+name, asItIs[name])
		b.Return("edge_evidence_"+name, s.sources[name])
	}
}
