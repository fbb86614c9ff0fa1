package models

import "github.com/gsrc-dev/gsrc/ir"

// gen builds GEN (Wang et al. 2021), which estimates the graph that several observations of it
// come from: the data's graph, and those of each node's nearest by the features, by the hidden
// layer of a graph convolutional network and by its predictions. Classes explain the graph by
// a block model: two nodes of the classes r and s are an edge with probability Ω_rs, an
// observation has an edge with probability α and what is no edge with probability β. Expectation
// maximisation finds Ω, α and β, and Q, the probability of each edge; those above the threshold
// are the graph on which the network goes on learning.
//
// Q of two nodes depends on their classes and on how many observations have them, so that
// those of pairs no observation has are the same for two classes, and are counted instead
// of computed: time and memory are linear in the candidates.
func gen(o Options) *ir.Module {
	m := ir.NewModule("gen")
	arch := architecture("gcn")
	e := &genModel{Options: o, network: classifier(m, arch, o).(*stack)}

	similarFeatures(m, o)
	b := m.NewFunc("encode") // on the graph that was learned last
	x, c := b.Arg("x", features(o)), b.Arg("c", candidates)
	w := e.refined(b, b.DynamicArg("p", ir.T(ir.F32, "M")))
	x = o.prepare(b, e.network, x)
	hidden := *e.network
	last := len(hidden.weights) - 1
	hidden.weights, hidden.biases = hidden.weights[:last], hidden.biases[:last]
	b.Return("embedding", b.One("relu", nil, hidden.run(b, c, w, x, nil)))
	b.Return(AlsoEmbedding, b.One("log_softmax", nil, e.network.run(b, c, w, x, nil)))

	e.probability(m)
	o.refine(m)
	o.fit(m, arch, e.network, (*ir.Builder).Arg, o.refined)
	classify(m, o, e.network, &candidates)
	return m
}

// AlsoEmbedding is a result of @encode by whose rows candidates are searched beside those of
// the embedding, and an argument of @probability.
const AlsoEmbedding = "embedding_also"

// TrainLabels is an argument [N,C] as [KnownLabels] is, of functions that learn from the labels
// of training nodes.
const TrainLabels = "train_labels"

// WithoutEstimate returns the module without an @encode that reads the graph which was learned
// before, p, as an export cannot: the module itself where it has none.
func WithoutEstimate(m *ir.Module) *ir.Module {
	if f := m.Func("encode"); f == nil || f.Arg("p") == nil {
		return m
	}
	m = m.Clone()
	m.RemoveFunc("encode")
	return m
}

type genModel struct {
	Options
	network *stack
}

func (e *genModel) probability(m *ir.Module) {
	b := m.NewFunc("probability")
	hidden := b.DynamicArg("embedding", ir.T(ir.F32, "N", ir.D(e.Hidden)))
	logits := b.DynamicArg(AlsoEmbedding, e.labels())
	c, old := b.Arg("c", candidates), b.Arg("old", ir.T(ir.F32, "M"))
	known := b.Arg(TrainLabels, e.labels())
	rows := ir.Attrs{"axis": "1", "keep": true}

	// How many of the observations have each candidate.
	count, observations := b.Scale(old, 0), 3.0
	if e.GEN.Keep {
		count, observations = old, 4
	}
	for _, z := range []*ir.Value{unitFeatures(b, e.Options), b.One("l2_normalize", nil, hidden), b.One("l2_normalize", nil, logits)} {
		cos := b.One("sddmm", nil, c, z, z)
		least := b.One("edge_kth", ir.Attrs{"k": e.GEN.K}, c, cos)
		near := func(side string) *ir.Value {
			return b.One("greater_equal", nil, cos, b.One("edge_gather", ir.Attrs{"side": side}, c, least))
		}
		count = b.Add(count, b.One("maximum", nil, near("dst"), near("src")))
	}

	// The classes of nodes [N,C], those of training nodes as they are known.
	guess := b.One("greater_equal", nil, logits, b.One("reduce_max", rows, logits))
	unknown := b.Sub(b.Const(1), b.One("reduce_sum", rows, known))
	y := b.Add(known, b.Mul(unknown, b.One("l1_normalize", nil, guess)))

	// Sums over pairs of classes [C,C], both directions of a pair counted.
	between := func(w *ir.Value) *ir.Value {
		return b.One("matmul", ir.Attrs{"ta": true}, y, b.One("spmm", nil, c, w, nil, y))
	}
	of := b.One("reduce_sum", ir.Attrs{"axis": "0"}, y)
	eye := ir.T(ir.F32, ir.D(e.Classes), ir.D(e.Classes))
	pairs := b.Mul(b.OneTyped("broadcast_to", nil, eye, b.One("unsqueeze", nil, of)), of)
	itself := b.One("matmul", ir.Attrs{"ta": true}, y, y) // n_r on the diagonal, as classes exclude each other
	pairs = b.Sub(pairs, itself)
	rest := b.One("maximum", nil, b.Sub(pairs, between(b.One("edge_ones", nil, c))), b.Const(0))
	all := b.Sum(pairs)
	pairs = b.One("maximum", nil, pairs, b.Const(1))

	clamp := func(v *ir.Value) *ir.Value {
		return b.One("minimum", nil, b.One("maximum", nil, v, b.Const(genLeast)), b.Const(1-genLeast))
	}
	logit := func(v *ir.Value) *ir.Value {
		v = clamp(v)
		return b.Sub(b.One("log", nil, v), b.One("log", nil, b.Sub(b.Const(1), v)))
	}
	ratio := func(a, b2 *ir.Value) *ir.Value { return b.Sub(b.One("log", nil, a), b.One("log", nil, b2)) }
	// estimate returns Q of the candidates, and of other pairs by classes.
	estimate := func(alpha, beta, omega *ir.Value) (q, others *ir.Value) {
		has := ratio(alpha, beta)
		lacks := ratio(b.Sub(b.Const(1), alpha), b.Sub(b.Const(1), beta))
		weight := b.Add(b.Mul(count, b.Sub(has, lacks)), b.Scale(lacks, observations))
		q = b.One("sigmoid", nil, b.Add(logit(b.One("sddmm", nil, c, b.MatMul(y, omega), y)), weight))
		return q, b.One("sigmoid", nil, b.Add(logit(omega), b.Scale(lacks, observations)))
	}
	alpha, beta, omega := b.Const(genAlpha), b.Const(genBeta), b.Fill(0.5, eye)
	q, others := estimate(alpha, beta, omega)
	active := b.Const(1)
	for range e.GEN.Steps {
		sums := b.Add(between(q), b.Mul(rest, others))
		edges := b.Sum(sums)
		quotient := func(a, b2 *ir.Value) *ir.Value {
			return clamp(b.Div(a, b.One("maximum", nil, b.Scale(b2, observations), b.Const(1e-9))))
		}
		seen := b.Sum(b.Mul(q, count))
		nextAlpha := quotient(seen, edges)
		nextBeta := quotient(b.Sub(b.Sum(count), seen), b.Sub(all, edges))
		moved := func(v, next *ir.Value) *ir.Value {
			d := b.Sub(next, v)
			return b.One("greater", nil, b.One("maximum", nil, d, b.One("neg", nil, d)), b.Const(e.GEN.Tolerance))
		}
		goesOn := b.Mul(active, b.One("maximum", nil, moved(alpha, nextAlpha), moved(beta, nextBeta)))
		take := func(v, next *ir.Value) *ir.Value { return b.Add(v, b.Mul(active, b.Sub(next, v))) }
		alpha, beta, omega = take(alpha, nextAlpha), take(beta, nextBeta), take(omega, b.Div(sums, pairs))
		active = goesOn
		q, others = estimate(alpha, beta, omega)
	}
	if e.GEN.Keep {
		q = b.One("maximum", nil, q, old)
	}
	returnProbability(b, q)
}

// Where expectation maximisation begins, with Ω = ½, and how near to 0 and 1 it may come.
const genAlpha, genBeta, genLeast = 0.8, 0.2, 1e-6
