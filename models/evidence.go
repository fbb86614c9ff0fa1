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

// EvidenceRounds is how often a graph is weighed by the robust evidence for its edges, see
// [evidence.edges].
const EvidenceRounds = 4

// EvidencePower sharpens the weights of a round.
const EvidencePower = 5

// EvidenceRange bounds standardised sources, which products would take far otherwise.
const EvidenceRange = 3.0

// The kernel of the source nearest: its temperature, how many neighbours of a node count at
// most, and what is added so that none is like a far one.
const (
	nearestTau, nearestMost = 0.02, 8
	nearestFar              = 1e-3
)

// leastLength is that of a row, as a share of what it is a sum of.
const leastLength = 0.1

// MinEvidence keeps weights of edges above zero.
const MinEvidence = 1e-3

// EvidenceSources names what the evidence for an edge consists of, in the order of the
// joint regression's weights. Of z, m1 and m2 of the two ends they compare (cosines):
//
//	features                  z
//	sum, mean                 z + m1, with m1 as it is and divided by the degree
//	neighbours                m1
//	across_max, across_min    m1 of one end with z of the other, both ways
//	sum2, mean2               z + m1 + m2, with m1 and m2 likewise
//
// and adamic_adar (Adamic and Adar 2003) and jaccard are of common neighbours, degree_min,
// degree_max and walks of how many neighbours, and walks of two steps, the ends have,
// overlap is the product of m1, not divided by anything, and nearest says how near z of one
// end is to the nearest of the other's neighbours, where mean and across lose one among many.
var EvidenceSources = []string{
	"features", "sum", "mean", "neighbours", "across_max", "across_min", "adamic_adar", "jaccard",
	"degree_min", "degree_max", "mean2", "sum2", "overlap", "walks", "nearest",
}

// DenseSources are those of graphs with at least [SpectrumDegree] entries a node. spectrum is
// what the leading eigenvectors of the normalised adjacency, of which many short paths make up
// most, expect of a pair:
//
//	ln(0.1 + max(0, √(d(u)·d(v))·(QBQᵀ)(u,v) − w·c)), B = QᵀSQ, S = D^-½AD^-½
//
// where Q [N,32] is an orthonormal basis that products with S turn to these eigenvectors, from
// z, and c = P(u,u) + P(v,v) − P(u,u)·P(v,v) − P(u,v)², P = QQᵀ, is what the edge {u, v} itself
// adds: the derivative of a truncated eigendecomposition lies in the tangent space of matrices of
// its rank. Only an edge's own share of d is left.
var DenseSources = append(slices.Clone(EvidenceSources), "spectrum")

// SpectrumDegree is how many entries a node needs for the source spectrum, on average: fewer
// would not tell the coordinates that it has there.
const SpectrumDegree = spectrumRank

// The source spectrum: rank of the basis, how often two products with the adjacency turn it,
// how weak a direction, beside the others, is left out of it then, and what is added before the
// logarithm.
const (
	spectrumRank, spectrumTurns = 32, 4
	spectrumRidge               = 1e-2
	spectrumFar                 = 0.1
)

// LabelSource is one source more where [Edges.Labels] has training labels judge edges: ln(0.01 +
// P(u)·P(v)), with P = softmax(z·W + b) the classes that a logistic regression on the training
// nodes expects of a node by its features alone.
const LabelSource = "labels"

const labelsFar = 0.01

// EvidenceOf names the sources of a program with these parameters: all of them, and those of the
// linear and of the robust regressions.
func EvidenceOf(has func(param string) bool) (all, linear, robust []string) {
	all, linear, robust = EvidenceSources, LinearSources, RobustSources
	if has(EvidenceSpectrum) {
		all = DenseSources
	}
	if has(EvidenceClasses) {
		and := func(names []string) []string { return append(slices.Clone(names), LabelSource) }
		all, linear, robust = and(all), and(linear), and(robust)
	}
	return all, linear, robust
}

// LinearSources are those of the linear regression, which judges edges where many are planted
// on purpose: products, and what has no bounds, are further from what a regression has
// learned there.
var LinearSources = EvidenceSources[:12]

// RobustSources are those whose weights a graph with planted edges cannot turn far: a
// node's own features count in each as much as all its neighbours' together.
var RobustSources = []string{"features", "mean", "adamic_adar"}

// Names of the parameters of the evidence, group evidence; no gradient reaches them. Those
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
	return m.AddParam(name, ir.T(ir.F32, dims...), "zeros", 0, "evidence")
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

// probability returns how likely pairs are edges, if a share of a graph's edges are none at
// most: (1 − x/2) / (1 + x/2), where x = share·exp(−logit) is the local false discovery rate
// (Efron et al. 2001). That lies halfway between 1 − x, if all edges that look like random
// pairs are none, and 1/(1 + x), if as many of them are edges, which the graph does not tell.
//
// more is the rate of edges that look like pairs of further kinds, which are others, so that rates
// add up; nil where none are looked at.
func probability(b *ir.Builder, logit, share, more *ir.Value) *ir.Value {
	x := falseRate(b, logit, share)
	if more != nil {
		x = b.Add(x, more)
	}
	rest := b.One("maximum", nil, b.Shift(b.Scale(x, -0.5), 1), b.Const(surelyNone))
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

// evidence is what judges pairs in a module.
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
	width := ir.D(EvidenceWidth(o.Features))
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

// EvidenceWidth is the width of the projection of this many features.
func EvidenceWidth(features int) int { return min(features, 128) }

// tables are what the sources read of the nodes, of a graph whose entries weigh a.
type tables struct {
	g, a   *ir.Value       // a: f32[E]
	rows   [3]*ir.Value    // z, s1, s2: f32[N, width]
	own    [3][3]*ir.Value // f32[N]: products of the rows of a node, upper triangle
	d, d1  *ir.Value       // f32[N]
	rarity *ir.Value       // f32[N]: 1/log d, what a common neighbour counts (Adamic and Adar 2003)
	start  *ir.Value       // of the basis, f32[width,32]; nil: the source spectrum is not read
	likely *ir.Value       // f32[N,classes]: how likely a node is of each class; nil: labels are no source
}

func (e *evidence) tables(b *ir.Builder, g, a, z *ir.Value) *tables {
	t := &tables{g: g, a: a, start: e.start}
	if e.classes != nil {
		t.likely = b.One("softmax", nil, b.Add(b.MatMul(z, e.classes), e.bias))
	}
	s1 := b.One("spmm", nil, g, a, nil, z)
	t.rows = [3]*ir.Value{z, s1, b.One("spmm", nil, g, a, nil, s1)}
	into := ir.Attrs{"side": "dst"}
	t.d = b.One("edge_sum", into, g, a)
	t.d1 = b.One("edge_sum", into, g, b.Mul(a, b.One("edge_gather", ir.Attrs{"side": "src"}, g, t.d)))
	for i, x := range t.rows {
		for j := i; j < 3; j++ {
			t.own[i][j] = b.One("reduce_sum", ir.Attrs{"axis": "1"}, b.Mul(x, t.rows[j]))
		}
	}
	t.rarity = b.Div(b.Const(1), b.One("maximum", nil, b.One("log", nil, b.One("maximum", nil, t.d, b.Const(1))), b.Const(0.7)))
	return t
}

// spectrum returns an orthonormal basis Q f32[N,32] near the leading eigenvectors of the
// normalised adjacency S, Q·(QᵀSQ), and the squared lengths of Q's rows, f32[N].
func (t *tables) spectrum(b *ir.Builder) (q, mapped, leverage *ir.Value) {
	root := b.One("rsqrt", nil, b.One("maximum", nil, t.d, b.Const(1)))
	end := func(side string) *ir.Value { return b.One("edge_gather", ir.Attrs{"side": side}, t.g, root) }
	a := b.Mul(b.Mul(t.a, end("src")), end("dst"))
	times := func(x *ir.Value) *ir.Value { return b.One("spmm", nil, t.g, a, nil, x) }
	orthonormal := func(x *ir.Value) *ir.Value {
		return orthonormal(b, x, ir.Attrs{"map": "soft_inverse_sqrt", "amount": spectrumRidge})
	}
	q = orthonormal(b.MatMul(t.rows[0], t.start))
	for range spectrumTurns {
		q = orthonormal(times(times(q)))
	}
	q = orthonormal(q) // what rounding has left counts less in columns that are nearly orthonormal
	mapped = b.MatMul(q, b.One("matmul", ir.Attrs{"ta": true}, q, times(q)))
	return q, mapped, b.One("reduce_sum", ir.Attrs{"axis": "1"}, b.Mul(q, q))
}

// judged are pairs {u, v} of nodes; w is the weight of the edge between them, nil where
// there is none.
type judged struct {
	*ir.Builder
	*tables
	pairs, w       *ir.Value
	products, dots map[[4]int]*ir.Value // by row and node of both
}

// of are pairs in the graph of the tables.
func (t *tables) of(b *ir.Builder, pairs, w *ir.Value) *judged {
	return &judged{Builder: b, tables: t, pairs: pairs, w: w}
}

// The two nodes of a pair.
const first, second = 0, 1

func (j *judged) end(v *ir.Value, node int) *ir.Value {
	return j.One("pair_gather", ir.Attrs{"end": []string{"first", "second"}[node]}, v, j.pairs)
}

// row is c times row k of a node of the pair; c nil is 1.
type row struct {
	c       *ir.Value
	k, node int
}

// without returns z, m1 or m2 of a node: what remains of its row without the edge itself.
func (j *judged) without(k, node int) []row {
	x := []row{{nil, k, node}}
	if j.w != nil && k > 0 {
		x = append(x, row{j.One("neg", nil, j.w), k - 1, 1 - node})
	}
	return x
}

// product returns the dot product of two rows, which are read once.
func (j *judged) product(x, y row) *ir.Value {
	if x.node > y.node || x.node == y.node && x.k > y.k {
		x, y = y, x
	}
	key := [4]int{x.k, x.node, y.k, y.node}
	if v := j.products[key]; v != nil {
		return v
	}
	if x.node == y.node {
		j.products[key] = j.end(j.own[x.k][y.k], x.node)
	} else {
		j.products[key] = j.One("pair_dot", nil, j.rows[x.k], j.pairs, j.rows[y.k])
	}
	return j.products[key]
}

// dot returns the dot product of z, m1 or m2 of a node with one of a node.
func (j *judged) dot(k, p, l, q int) *ir.Value {
	sum := j.dots[[4]int{k, p, l, q}]
	if sum != nil {
		return sum
	}
	for _, x := range j.without(k, p) {
		for _, y := range j.without(l, q) {
			sum = j.plus(sum, j.times(x.c, j.times(y.c, j.product(x, y))))
		}
	}
	j.dots[[4]int{k, p, l, q}] = sum
	return sum
}

// times and plus take nil for 1 and for 0.
func (j *judged) times(c, x *ir.Value) *ir.Value {
	if c == nil {
		return x
	}
	return j.Mul(c, x)
}

func (j *judged) plus(x, y *ir.Value) *ir.Value {
	if x == nil {
		return y
	}
	return j.Add(x, y)
}

func (j *judged) atLeast(x *ir.Value, least float64) *ir.Value {
	return j.One("maximum", nil, x, j.Const(least))
}

// mixture is a sum of z, m1 and m2 with a factor of each by node, where nil is 1; a nil pair
// leaves one out.
type mixture [3]*[2]*ir.Value

// sources returns the evidence for the pairs, f32[P] each, by name.
func (j *judged) sources(names ...string) map[string]*ir.Value {
	j.products, j.dots = map[[4]int]*ir.Value{}, map[[4]int]*ir.Value{}
	var degree, walks, some, overDegree, overWalks, shrunk [2]*ir.Value // without the edge: neighbours, walks of two steps, whether there is a neighbour
	for node := range 2 {
		degree[node], walks[node] = j.end(j.d, node), j.end(j.d1, node)
		if j.w != nil {
			degree[node] = j.atLeast(j.Sub(degree[node], j.w), 0)
			walks[node] = j.atLeast(j.Sub(walks[node], j.Mul(j.w, j.end(j.d, 1-node))), 0)
		}
		// Of the sums of a node with one edge remains what rounding leaves.
		some[node] = j.One("minimum", nil, degree[node], j.Const(1))
		overDegree[node] = j.Div(some[node], j.atLeast(degree[node], 1))
		overWalks[node] = j.Div(some[node], j.atLeast(walks[node], 1))
		// So that two steps weigh as much as one.
		shrunk[node] = j.Div(some[node], j.One("sqrt", nil, j.atLeast(j.Div(walks[node], j.atLeast(degree[node], 1)), 1)))
	}
	quadratic := func(x, y mixture, p, q int) (sum *ir.Value) {
		for k := range x {
			for l := range y {
				if x[k] != nil && y[l] != nil {
					sum = j.plus(sum, j.times(x[k][p], j.times(y[l][q], j.dot(k, p, l, q))))
				}
			}
		}
		return sum
	}
	type vector struct {
		mixture
		node int
	}
	lengths := map[vector]*ir.Value{}
	// Of a sum that nearly cancels, or what is taken off nearly all of it, rounding would
	// decide the direction: it counts as longer.
	length := func(x mixture, node int) *ir.Value {
		v := vector{x, node}
		if lengths[v] == nil {
			var uncancelled *ir.Value
			for k, c := range x {
				if c != nil {
					uncancelled = j.plus(uncancelled, j.times(c[node], j.times(c[node], j.end(j.own[k][k], node))))
				}
			}
			least := j.atLeast(j.Scale(uncancelled, leastLength*leastLength), 1e-4)
			lengths[v] = j.One("sqrt", nil, j.One("maximum", nil, quadratic(x, x, node, node), least))
		}
		return lengths[v]
	}
	cosine := func(x, y mixture) *ir.Value {
		return j.Div(quadratic(x, y, first, second), j.Mul(length(x, first), length(y, second)))
	}
	log1p := func(x *ir.Value) *ir.Value { return j.One("log", nil, j.Shift(x, 1)) }
	common := func(weight *ir.Value) *ir.Value { return j.One("common_neighbors", nil, j.g, j.a, weight, j.pairs) }
	one := new([2]*ir.Value)
	z, m1 := mixture{one, nil, nil}, mixture{nil, &some, nil}
	mean, sum := mixture{one, &overDegree, nil}, mixture{one, &some, nil}
	mean2, sum2 := mixture{one, &overDegree, &overWalks}, mixture{one, &some, &shrunk}
	of := map[string]func() *ir.Value{
		"features":    func() *ir.Value { return cosine(z, z) },
		"sum":         func() *ir.Value { return cosine(sum, sum) },
		"mean":        func() *ir.Value { return cosine(mean, mean) },
		"neighbours":  func() *ir.Value { return cosine(m1, m1) },
		"across_max":  func() *ir.Value { return j.One("maximum", nil, cosine(m1, z), cosine(z, m1)) },
		"across_min":  func() *ir.Value { return j.One("minimum", nil, cosine(m1, z), cosine(z, m1)) },
		"adamic_adar": func() *ir.Value { return log1p(common(j.rarity)) },
		"jaccard": func() *ir.Value {
			shared := common(j.Fill(1, j.d.Type))
			return j.Div(shared, j.atLeast(j.Sub(j.Add(degree[first], degree[second]), shared), 1))
		},
		"degree_min": func() *ir.Value { return log1p(j.One("minimum", nil, degree[first], degree[second])) },
		"degree_max": func() *ir.Value { return log1p(j.One("maximum", nil, degree[first], degree[second])) },
		"mean2":      func() *ir.Value { return cosine(mean2, mean2) },
		"sum2":       func() *ir.Value { return cosine(sum2, sum2) },
		"overlap":    func() *ir.Value { return log1p(j.atLeast(j.dot(1, first, 1, second), 0)) },
		"walks":      func() *ir.Value { return j.Add(log1p(walks[first]), log1p(walks[second])) },
		"nearest": func() *ir.Value {
			near := j.One("neighbor_kernel", ir.Attrs{"tau": nearestTau, "most": nearestMost}, j.g, j.a, j.rows[0], j.pairs)
			return j.One("log", nil, j.Shift(near, nearestFar))
		},
		LabelSource: func() *ir.Value {
			return j.One("log", nil, j.Shift(j.One("pair_dot", nil, j.likely, j.pairs, j.likely), labelsFar))
		},
		"spectrum": func() *ir.Value {
			q, mapped, leverage := j.spectrum(j.Builder)
			root := j.One("sqrt", nil, j.atLeast(j.d, 1))
			x := j.Mul(j.Mul(j.end(root, first), j.end(root, second)), j.One("pair_dot", nil, mapped, j.pairs, q))
			if j.w != nil {
				pu, pv, puv := j.end(leverage, first), j.end(leverage, second), j.One("pair_dot", nil, q, j.pairs, q)
				own := j.Sub(j.Add(pu, pv), j.Add(j.Mul(pu, pv), j.Mul(puv, puv)))
				x = j.Sub(x, j.Mul(j.w, own))
			}
			return j.One("log", nil, j.Shift(j.atLeast(x, 0), spectrumFar))
		},
	}
	out := map[string]*ir.Value{}
	for _, name := range names {
		out[name] = of[name]()
	}
	return out
}

func (e *evidence) projected(b *ir.Builder, x *ir.Value) *ir.Value {
	return b.One("l2_normalize", nil, b.MatMul(x, e.projection))
}

// seen is a graph with its edges judged.
type seen struct {
	asItIs, weighed *tables
	probability     *ir.Value            // f32[E] that an entry is an edge
	sources         map[string]*ir.Value // the evidence for it, in the graph as it is
}

// edges judges the entries of a graph.
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
		if x := falseRate(b, r.logit(b, asItIs), e.disguisedShares[i]); sum == nil {
			sum = x
		} else {
			sum = b.Add(sum, x)
		}
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
