package models

import (
	"slices"

	"github.com/gsrc-dev/gsrc/ir"
)

// The kernel of the source nearest: its temperature, how many neighbours of a node count at
// most, and what is added so that none is like a far one.
const (
	nearestTau, nearestMost = 0.02, 8
	nearestFar              = 1e-3
)

// leastLength is that of a row, as a share of what it is a sum of.
const leastLength = 0.1

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

// EvidenceWidth is the width of the projection of so many columns, of which marks tell nodes apart.
func EvidenceWidth(features, marks int) int { return max(min(features, 128), marks) }

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

func (j *judged) dot(k, p, l, q int) *ir.Value {
	sum := j.dots[[4]int{k, p, l, q}]
	if sum != nil {
		return sum
	}
	for _, x := range j.without(k, p) {
		for _, y := range j.without(l, q) {
			sum = j.Plus(sum, j.times(x.c, j.times(y.c, j.product(x, y))))
		}
	}
	j.dots[[4]int{k, p, l, q}] = sum
	return sum
}

// times takes nil for 1.
func (j *judged) times(c, x *ir.Value) *ir.Value {
	if c == nil {
		return x
	}
	return j.Mul(c, x)
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
					sum = j.Plus(sum, j.times(x[k][p], j.times(y[l][q], j.dot(k, p, l, q))))
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
					uncancelled = j.Plus(uncancelled, j.times(c[node], j.times(c[node], j.end(j.own[k][k], node))))
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
