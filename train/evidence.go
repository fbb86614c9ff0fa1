package train

import (
	"fmt"
	"math"
	"slices"

	"github.com/gsrc-dev/gsrc/graph"
	"github.com/gsrc-dev/gsrc/internal/fmath"
	"github.com/gsrc-dev/gsrc/models"
	"github.com/gsrc-dev/gsrc/rng"
	"github.com/gsrc-dev/gsrc/runtime"
	"github.com/gsrc-dev/gsrc/runtime/kernels"
)

// Evidence for edges (models.EvidenceSources) is fitted once, before anything is trained,
// from the graph and its features: edges are told from pairs drawn at random by a logistic
// regression on sources that judge each edge without itself. No label is read.

const (
	// evidenceSample is how many edges, and as many random pairs, a regression is fitted to.
	evidenceSample = 40_000
	// evidenceChunk is how many pairs are judged at a time, at least.
	evidenceChunk = 1 << 16
	// gateOpens is how much of the evidence for edges that robust sources doubt must come
	// from other doubted edges, in units of the logit, for those to count less; all the
	// less from there to gateOpens + gateWidth. Graphs attacked by Metattack have 1.26 to
	// 1.84, others, clean or with edges planted at random, by degree or between similar
	// nodes, up to 0.76.
	gateOpens, gateWidth = 0.85, 0.3
	// leastShare of edges are taken to be none: where none is found, probabilities would
	// round to 1 and rank nothing.
	leastShare = 0.01
	// unlikelyClass is the logit of a class of which there are no training nodes, or no others.
	unlikelyClass = -10
	// gatePrior is how many doubted edges, as a share of all, are taken to show nothing.
	gatePrior = 0.01
)

// evidence judges edges of the task's graph, on the host, whatever device the model trains on.
type evidence struct {
	prog *program
	pool *kernels.Pool
	g    *graph.Graph // undirected
	st   *graph.Structure

	sources map[string]*runtime.Function // @sources and @robust_sources
	a       *runtime.Buffer              // [entries] weights of the graph's edges
	w       *runtime.Buffer              // [P] of the pairs
	score   *runtime.Function            // @score, once the evidence is fitted
	pairs   *runtime.Buffer              // [2,P]
	edges   []float32                    // [E] how likely each edge is one
	names   []string                     // of the sources
	lin     []string                     // of those of the linear regression
	rob     []string                     // of those of the robust regressions
	fresh   [][2]int32                   // of the candidates that were judged last, those that are no edges
}

func newEvidence(prog *program, pool *kernels.Pool, g *graph.Graph) *evidence {
	e := &evidence{prog: prog, pool: pool, g: g.Undirected(), a: runtime.Zeros(0), w: runtime.Zeros(0), pairs: runtime.I64([]int64{0, 0}, 2, 1)}
	e.st = e.g.Structure()
	e.names, e.lin, e.rob = models.EvidenceOf(func(param string) bool { return prog.params.Lookup(param) != nil })
	return e
}

// release ends what the evidence is computed by.
func (e *evidence) release() {
	for _, f := range e.sources {
		f.Close()
	}
	if e.score != nil {
		e.score.Close()
	}
	e.sources, e.score = nil, nil
}

// onHost readies a function of the program for the CPU.
func (e *evidence) onHost(name string, inputs map[string]*runtime.Buffer) (*runtime.Function, error) {
	f, err := runtime.NewFunction(e.prog.Module, name, runtime.Options{Pool: e.pool})
	if err != nil {
		return nil, err
	}
	inputs["g"], inputs["pairs"] = runtime.Graph(e.st), e.pairs
	for _, input := range f.Inputs() {
		b := inputs[input]
		if p := e.prog.params.Lookup(input); b == nil && p != nil {
			b = runtime.F32(p.Value.F32, p.Value.Dims...)
		}
		if b == nil {
			b = e.prog.inputs[input]
		}
		if b == nil {
			f.Close()
			return nil, fmt.Errorf("train: @%s reads %s, which nothing gives", name, input)
		}
		if err := f.Bind(input, b); err != nil {
			f.Close()
			return nil, err
		}
	}
	return f, nil
}

// weigh gives the edges of the graph weights, [E].
func (e *evidence) weigh(w []float32) error {
	e.a.F32 = e.st.Spread(e.a.F32, w)
	e.a.Dims[0] = len(e.a.F32)
	for _, f := range e.sources {
		if err := f.Bind("a", e.a); err != nil {
			return err
		}
	}
	return nil
}

// evidenceChunkOf returns how many pairs are judged at a time: as many as entries of the
// graph, which are read anew each time.
func evidenceChunkOf(entries int) int { return max(evidenceChunk, entries) }

// judge returns the evidence for pairs by source, in the order of names. w are the weights
// of those that are edges; nil: none is.
func (e *evidence) judge(pairs [][2]int32, w []float32, names []string) ([][]float32, error) {
	out, f := make([][]float32, len(names)), e.sources[models.SourcesFunc]
	if slices.Equal(names, e.rob) {
		f = e.sources[models.RobustSourcesFunc]
	}
	chunk := evidenceChunkOf(e.st.E)
	for lo := 0; lo < len(pairs); lo += chunk {
		part := pairs[lo:min(lo+chunk, len(pairs))]
		n := len(part)
		e.pairs.I64, e.w.F32 = slices.Grow(e.pairs.I64[:0], 2*n)[:2*n], slices.Grow(e.w.F32[:0], n)[:n]
		for i, p := range part {
			e.pairs.I64[i], e.pairs.I64[n+i], e.w.F32[i] = int64(p[0]), int64(p[1]), 0
			if w != nil {
				e.w.F32[i] = w[lo+i]
			}
		}
		e.pairs.Dims[1], e.w.Dims[0] = n, n
		if err := f.Bind("pairs", e.pairs); err != nil {
			return nil, err
		}
		if err := f.Bind("w", e.w); err != nil {
			return nil, err
		}
		if err := f.Run(0); err != nil {
			return nil, err
		}
		for k, name := range names {
			out[k] = append(out[k], f.Result(name).F32...)
		}
	}
	return out, nil
}

// fit gives the parameters of the evidence their values. x are the features of the nodes, labels
// those of the nodes that are for training.
func (e *evidence) fit(x graph.NodeFeatures, labels []int32, training []int32, seed uint64) error {
	p := e.prog.params.Lookup(models.EvidenceProjection)
	if slices.ContainsFunc(p.Value.F32, func(v float32) bool { return v != 0 }) {
		return nil // by an earlier part of the run
	}
	s := rng.New(seed, "evidence")
	if start := e.prog.params.Lookup(models.EvidenceSpectrum); start != nil {
		v := make([]float32, len(start.Value.F32))
		e.pool.Normal(v, s.Sub("spectrum"))
		e.setFloats(models.EvidenceSpectrum, v)
	}
	e.setFloats(models.EvidenceProjection, x.LSA(e.pool, e.g.N, models.EvidenceWidth(x.Cols), s.Sub("projection")))
	if e.prog.params.Lookup(models.EvidenceClasses) != nil {
		if err := e.fitClasses(labels, training); err != nil {
			return err
		}
	}
	m := min(len(e.g.Edges), evidenceSample)
	uniform := graph.RandomPairs(e.g, m, false, s.Sub("pairs"))
	if len(uniform) < max(2, m/2) {
		return nil // nothing to tell edges from: no edge is doubted
	}
	mixed := append(slices.Clone(uniform[:len(uniform)/2]), graph.RandomPairs(e.g, m/2, true, s.Sub("pairs by degree"))...)
	var err error
	e.sources = map[string]*runtime.Function{}
	for _, name := range []string{models.SourcesFunc, models.RobustSourcesFunc} {
		if e.sources[name], err = e.onHost(name, map[string]*runtime.Buffer{"a": e.a, "w": e.w}); err != nil {
			delete(e.sources, name)
			return err
		}
	}
	fitted := few(indices(len(e.g.Edges)), m, s.Sub("edges")) // edges that regressions are fitted to

	// both returns the evidence for all edges, which weigh w, and for pairs that are none.
	both := func(w []float32, none [][2]int32, names []string) (edges, pairs [][]float32, err error) {
		if err := e.weigh(w); err != nil {
			return nil, nil, err
		}
		if edges, err = e.judge(e.g.Edges, w, names); err == nil {
			pairs, err = e.judge(none, nil, names)
		}
		return edges, pairs, err
	}
	w := filled(len(e.g.Edges), 1)
	asItIs, random, err := both(w, uniform, e.names)
	if err != nil {
		return err
	}
	joint := fitRegression(e.pool, chosen(asItIs, fitted), random, nil, 0, ridgeWithProducts)
	linear := fitRegression(e.pool, chosen(e.pick(asItIs, e.lin), fitted), e.pick(random, e.lin), nil, 0, ridge)
	e.setRegression(models.EvidenceJoint, joint)
	e.setRegression(models.EvidenceLinear, linear)
	if err := e.fitNew(asItIs, random, fitted, s.Sub("new")); err != nil {
		return err
	}

	// Round by round, what robust evidence doubts counts less.
	var trusted []float64 // of the edges that are fitted to
	fitRobust := func(name string) (l *regression, own, none []float64, err error) {
		edges, pairs, err := both(w, mixed, e.rob)
		if err != nil {
			return nil, nil, nil, err
		}
		l = fitRegression(e.pool, chosen(edges, fitted), pairs, trusted, 0, ridge)
		e.setRegression(name, l)
		return l, l.logits(edges), l.logits(pairs), nil
	}
	for r := 1; r <= models.EvidenceRounds; r++ {
		_, own, none, err := fitRobust(models.EvidenceRound(r))
		if err != nil {
			return err
		}
		share := min(0.3, max(0.02, below(own, none, 0.5)))
		e.setParam(models.EvidenceShare(models.EvidenceRound(r)), share)
		trusted = trusted[:0]
		for _, i := range fitted {
			trusted = append(trusted, max(trust(own[i], share), 0.02))
		}
		for i, logit := range own {
			w[i] = float32(max(fmath.Pow(trust(logit, share), models.EvidencePower), models.MinEvidence))
		}
	}
	robust, _, _, err := fitRobust(models.EvidenceRobust)
	if err != nil {
		return err
	}

	weighed, none, err := both(w, uniform, e.names)
	if err != nil {
		return err
	}
	gate, err := e.open(both, linear, e.pick(asItIs, e.lin), e.pick(weighed, e.lin), w)
	if err != nil {
		return err
	}
	e.setParam(models.EvidenceGate, gate)
	logits := func(asItIs, weighed [][]float32) []float64 {
		out, a, b := joint.logits(asItIs), linear.logits(e.pick(weighed, e.lin)), robust.logits(e.pick(weighed, e.rob))
		for i := range out {
			out[i] += float64(gate * (float64((a[i]+b[i])/2) - out[i]))
		}
		return out
	}
	// Penalties, and the joining, leave logits too small or too large: what a regression on
	// them alone says is what all parts are scaled to (Platt 1999).
	column := func(logits []float64) [][]float32 {
		x := make([]float32, len(logits))
		for i, v := range logits {
			x[i] = float32(v)
		}
		return [][]float32{x}
	}
	l := fitRegression(e.pool, chosen(column(logits(asItIs, weighed)), fitted), column(logits(random, none)), nil, 0, ridge)
	if slope := l.linear[0] * l.scale[0]; slope > 0 {
		for name, r := range map[string]*regression{models.EvidenceJoint: joint, models.EvidenceLinear: linear, models.EvidenceRobust: robust} {
			r.stretch(slope, l.bias-float64(slope*l.mean[0]))
			e.setRegression(name, r)
		}
	}
	e.setParam(models.EvidenceShare("evidence"), shareOfNone(logits(asItIs, weighed), logits(random, none)))
	return nil
}

// fitClasses fits the regressions that tell each class from the others by the projected features,
// on the training nodes.
func (e *evidence) fitClasses(labels, training []int32) error {
	rows, err := e.onHost("rows", map[string]*runtime.Buffer{})
	if err != nil {
		return err
	}
	defer rows.Close()
	if err := rows.Run(0); err != nil {
		return err
	}
	z := rows.Result("features")
	width := z.Dims[1]
	p := e.prog.params.Lookup(models.EvidenceClasses)
	classes := p.Value.Dims[1]
	weights, bias := make([]float64, width*classes), make([]float64, classes)
	for class := range classes {
		of := [2][][]float32{make([][]float32, width), make([][]float32, width)} // those of other classes, those of the class
		for _, v := range training {
			is := of[0]
			if int(labels[v]) == class {
				is = of[1]
			}
			for k := range width {
				is[k] = append(is[k], z.F32[int(v)*width+k])
			}
		}
		if len(of[0][0]) == 0 || len(of[1][0]) == 0 {
			bias[class] = unlikelyClass
			continue
		}
		r := fitRegression(e.pool, of[1], of[0], nil, 1, ridgeOfClasses)
		bias[class] = r.bias
		for k, w := range r.linear {
			weights[k*classes+class] = float64(w * r.scale[k])
			bias[class] -= float64(float64(w*r.scale[k]) * r.mean[k])
		}
	}
	e.setParam(models.EvidenceClasses, weights...)
	e.setParam(models.EvidenceClassBias, bias...)
	return nil
}

// What new edges are ranked by is fitted to how many edges and pairs, which are near in the
// graph: among how many nearest neighbours, and nodes two steps away, of their ends.
const (
	newEdges, newPairs, newRandom = 10_000, 15_000, 5_000
	newNearest, newTwoStep        = 20, 50
)

// fitNew fits the regression by which new edges are ranked: edges that would be candidates
// if they were missing, by the sources that judge each without itself, against candidates
// that are none and random pairs. Ranking is harder than telling edges from random pairs
// alone, which nearly all candidates would pass for.
func (e *evidence) fitNew(edges, random [][]float32, fitted []int, s rng.Stream) error {
	rows, err := e.onHost("rows", map[string]*runtime.Buffer{})
	if err != nil {
		return err
	}
	defer rows.Close()
	if err := rows.Run(0); err != nil {
		return err
	}
	z := rows.Result("evidence")
	near, similar, _ := new(graph.Neighbors).Search(e.pool, z.F32, z.Dims[0], z.Dims[1], newNearest, graph.IndexAuto)
	two, common := graph.TwoStep(e.pool, e.g, newTwoStep)
	joined, k, err := graph.JoinNeighbors(e.g.N, near, two)
	if err != nil {
		return err
	}
	cand, err := graph.NewCandidates(e.g, joined, k, false)
	if err != nil {
		return err
	}
	var none [][2]int32
	for i, pair := range cand.Edges {
		if !cand.Existing[i] {
			none = append(none, pair)
		}
	}
	mean, adamicAdar := edges[slices.Index(e.names, "mean")], edges[slices.Index(e.names, "adamic_adar")]
	var rank []int // edges that would be candidates
	for _, i := range fitted {
		for _, v := range e.g.Edges[i] {
			last, least := int(v)*newNearest+newNearest-1, common[int(v)*newTwoStep+newTwoStep-1]
			const rounding = 1e-5
			if near[last] < 0 || mean[i] >= similar[last]-rounding || adamicAdar[i] > 0 && float64(adamicAdar[i]) >= fmath.Log(1+float64(0.99*float64(least))) { // which counts in steps
				rank = append(rank, i)
				break
			}
		}
	}
	if len(rank) == 0 || len(none) == 0 {
		return nil // as likely as each other
	}
	rank = few(rank, newEdges, s.Sub("edges"))
	var pairs [][2]int32
	for _, i := range few(indices(len(none)), newPairs, s.Sub("pairs")) {
		pairs = append(pairs, none[i])
	}
	columns, err := e.judge(pairs, nil, e.names)
	if err != nil {
		return err
	}
	random = chosen(random, few(indices(len(random[0])), newRandom, s.Sub("random")))
	for c := range columns {
		columns[c] = append(columns[c], random[c]...)
	}
	e.setRegression(models.EvidenceNew, fitRegression(e.pool, chosen(edges, rank), columns, nil, 1, ridgeWithProducts))
	return nil
}

// few returns at most n of x, drawn, in their order.
func few(x []int, n int, s rng.Stream) []int {
	if len(x) <= n {
		return x
	}
	out := make([]int, n)
	at := s.Perm(len(x))[:n]
	slices.Sort(at)
	for i, k := range at {
		out[i] = x[k]
	}
	return out
}

func indices(n int) []int {
	x := make([]int, n)
	for i := range x {
		x[i] = i
	}
	return x
}

// open tells from 0 to 1 whether edges that robust evidence doubts hold each other up, as
// those do that were planted on purpose: by how much the linear logit of the doubted edges
// that it believes in falls where they all count less, beyond what it falls where all edges
// count less alike, and beyond what edges that nobody doubts lose by the latter: where that is
// much, there is little else to judge by. Where it is closed, what a real edge would lose by
// false doubts is more than what others would gain.
func (e *evidence) open(both func(w []float32, none [][2]int32, names []string) (edges, pairs [][]float32, err error), linear *regression, asItIs, weighed [][]float32, w []float32) (float64, error) {
	sum := 0.0
	for _, v := range w {
		sum += float64(v)
	}
	alike, _, err := both(filled(len(w), float32(sum/float64(len(w)))), nil, e.lin)
	if err != nil {
		return 0, err
	}
	before, control, after := linear.logits(asItIs), linear.logits(alike), linear.logits(weighed)
	fall, doubted := 0.0, gatePrior*float64(len(w))
	lost, others := 0.0, doubted
	for i, v := range w {
		switch {
		case before[i] <= 0:
		case v < 0.3:
			fall += control[i] - after[i]
			doubted++
		default:
			lost += before[i] - control[i]
			others++
		}
	}
	g := fall/doubted - max(0, lost/others)
	return min(1, max(0, (g-gateOpens)/gateWidth)), nil
}

// setRegression gives a regression of the program its parameters.
func (e *evidence) setRegression(name string, l *regression) {
	e.setParam(name+".mean", l.mean...)
	e.setParam(name+".scale", l.scale...)
	e.setParam(name+".linear", l.linear...)
	e.setParam(name+".bias", l.bias)
	if l.quadratic != nil {
		e.setParam(name+".quadratic", l.quadratic...)
	}
}

func (e *evidence) setParam(name string, v ...float64) {
	x := make([]float32, len(v))
	for i := range v {
		x[i] = float32(v[i])
	}
	e.setFloats(name, x)
}

func (e *evidence) setFloats(name string, v []float32) {
	p := e.prog.params.Lookup(name)
	copy(p.Value.F32, v)
	copy(p.Best.F32, v)
}

// trust is 1 − the local false discovery rate, see models.
func trust(logit, share float64) float64 {
	return max(0, 1-float64(share*fmath.Exp(min(-logit, 20))))
}

// below estimates the share of edges that are none: of as many as fall below a quantile of
// random pairs, that share does (Storey 2002).
func below(edges, none []float64, quantile float64) float64 {
	share, _ := fallBelow(edges, slices.Sorted(slices.Values(none)), quantile)
	return min(1, share)
}

// shareOfNone is the least of such estimates, each with its standard error, since all are
// upper bounds: real edges, too, fall below a high quantile, and few edges below a low one.
func shareOfNone(edges, none []float64) float64 {
	sorted, least := slices.Sorted(slices.Values(none)), 1.0
	for _, quantile := range []float64{0.5, 0.2, 0.1, 0.05} {
		share, err := fallBelow(edges, sorted, quantile)
		least = min(least, share+err)
	}
	return max(leastShare, least)
}

// fallBelow returns how many times as many edges fall below a quantile as random pairs,
// which are sorted, and the standard error of that.
func fallBelow(edges, sorted []float64, quantile float64) (share, err float64) {
	bound := sorted[int(quantile*float64(len(sorted)))]
	count := 0.0
	for _, v := range edges {
		if v < bound {
			count++
		}
	}
	of := quantile * float64(len(edges))
	return count / of, float64((count + 1) / of * math.Sqrt(1/(count+1)+1/float64(quantile*float64(len(sorted)))))
}

// pick returns the columns of some sources of all.
func (e *evidence) pick(columns [][]float32, names []string) (out [][]float32) {
	for _, name := range names {
		out = append(out, columns[slices.Index(e.names, name)])
	}
	return out
}

func filled(n int, v float32) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = v
	}
	return x
}

// chosen returns the rows of columns that are listed.
func chosen(columns [][]float32, rows []int) [][]float32 {
	if len(rows) == len(columns[0]) {
		return columns
	}
	out := make([][]float32, len(columns))
	for c, x := range columns {
		for _, i := range rows {
			out[c] = append(out[c], x[i])
		}
	}
	return out
}

// judgeEdges computes how likely each edge of the graph is one.
func (e *evidence) judgeEdges() (err error) {
	if e.score, err = e.onHost("score", map[string]*runtime.Buffer{}); err != nil {
		return err
	}
	if err := e.score.Run(0); err != nil {
		return err
	}
	e.edges = make([]float32, len(e.g.Edges))
	for i, v := range e.score.Result("edge_probability").F32 {
		// Of the two entries of an edge, which differ by rounding, that which comes first.
		if k := e.st.EdgeOf[i]; e.edges[k] == 0 {
			e.edges[k] = v
		}
	}
	return nil
}

// ofCandidates returns how likely candidates are edges, in the memory of dst where that is
// large enough.
func (e *evidence) ofCandidates(dst []float32, c *graph.Candidates) ([]float32, error) {
	dst = slices.Grow(dst[:0], len(c.Edges))
	fresh := e.fresh[:0]
	at := 0
	for i, pair := range c.Edges {
		if c.Existing[i] {
			dst = append(dst, e.edges[at]) // both are sorted alike
			at++
			continue
		}
		dst = append(dst, 0)
		fresh = append(fresh, pair)
	}
	e.fresh = fresh
	to, chunk := 0, evidenceChunkOf(e.st.E)
	for lo := 0; lo < len(fresh); lo += chunk {
		part := fresh[lo:min(lo+chunk, len(fresh))]
		n := len(part)
		e.pairs.I64 = slices.Grow(e.pairs.I64[:0], 2*n)[:2*n]
		for i, p := range part {
			e.pairs.I64[i], e.pairs.I64[n+i] = int64(p[0]), int64(p[1])
		}
		e.pairs.Dims[1] = n
		if err := e.score.Bind("pairs", e.pairs); err != nil {
			return nil, err
		}
		if err := e.score.Run(0); err != nil {
			return nil, err
		}
		for _, v := range e.score.Result("probability").F32 {
			for c.Existing[to] {
				to++
			}
			dst[to] = v
			to++
		}
	}
	return dst, nil
}
