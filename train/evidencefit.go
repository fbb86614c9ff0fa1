package train

import (
	"errors"
	"math"
	"slices"
	"strconv"

	"github.com/gsrc-dev/gsrc/graph"
	"github.com/gsrc-dev/gsrc/internal/fmath"
	"github.com/gsrc-dev/gsrc/ir"
	"github.com/gsrc-dev/gsrc/models"
	"github.com/gsrc-dev/gsrc/passes"
	"github.com/gsrc-dev/gsrc/rng"
	"github.com/gsrc-dev/gsrc/runtime"
)

// How evidence is fitted: the graph judged as a whole, regressions on the sources, and shares of
// wrong edges.

const (
	// evidenceSample is how many edges, and as many random pairs, a regression is fitted to.
	evidenceSample = 40_000
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

// mostKept is how many numbers the evidence that is kept has at most where all edges are looked at,
// mostLooked how many edges are where it would have more: a share of 0.02 of the edges is that of
// 5,000 of these. Tests change them.
var mostKept, mostLooked = 1 << 24, 1 << 18

// lookedAt are the edges that shares, the gate and regressions are estimated from.
type lookedAt struct {
	edges  []int // nil: all
	fitted []int // those that regressions are fitted to, by their place among them
}

// newLookedAt draws from n edges, for evidence by so many sources: of as many ranges of them one each.
func newLookedAt(n, sources int, s rng.Stream) (l lookedAt) {
	looked := n
	if looksAtSome(n, sources) {
		looked = mostLooked
		draw := s.Sub("looked at")
		for i := range looked {
			from, to := i*n/looked, (i+1)*n/looked
			l.edges = append(l.edges, from+draw.Intn(uint64(i), to-from))
		}
	}
	l.fitted = few(indices[int](looked), evidenceSample, s.Sub("edges"))
	return l
}

func looksAtSome(edges, sources int) bool { return edges*sources > mostKept && edges > mostLooked }

// lookedOf returns what all has of the edges that are looked at.
func lookedOf[T any](l lookedAt, all []T) []T {
	if l.edges == nil {
		return all
	}
	return chosen([][]T{all}, l.edges)[0]
}

// judgedEdges is the evidence for the edges that are looked at, by source.
type judgedEdges struct {
	columns [][]float32
	sample  [][]float32 // of those that regressions are fitted to
}

// judgeLooked judges the edges that are looked at, in the graph in which edges weigh w.
func (e *evidence) judgeLooked(l lookedAt, w []float32, names []string) (*judgedEdges, error) {
	if err := e.weigh(w); err != nil {
		return nil, err
	}
	columns, err := e.judge(lookedOf(l, e.g.Edges), lookedOf(l, w), names)
	if err != nil {
		return nil, err
	}
	return &judgedEdges{columns, chosen(columns, l.fitted)}, nil
}

// fit gives the parameters of the evidence their values. x are the features of the nodes, or their places in
// the graph ([graph.Encodings]), labels those of the nodes that are for training.
func (e *evidence) fit(x graph.NodeFeatures, places bool, labels []int32, training []int32, seed uint64) error {
	s := rng.New(seed, "evidence")
	if start := e.prog.params.Lookup(models.EvidenceSpectrum); start != nil {
		v := make([]float32, len(start.Value.F32))
		e.pool.Normal(v, s.Sub("spectrum"))
		e.setFloats(models.EvidenceSpectrum, v)
	}
	width, _ := e.prog.Param(models.EvidenceProjection).Type.Dims[1].Size()
	if places && x.Cols > graph.PlacesWidth { // not of roles
		e.setFloats(models.EvidenceProjection, graph.Marks(x.Cols, width))
	} else {
		e.setFloats(models.EvidenceProjection, x.LSA(e.pool, e.g.N, width, s.Sub("projection")))
	}
	if e.prog.params.Lookup(models.EvidenceClasses) != nil {
		if err := e.fitClasses(labels, training); err != nil {
			return err
		}
	}
	m := min(len(e.g.Edges), evidenceSample, mostLooked)
	uniform := graph.RandomPairs(e.g, m, false, s.Sub("pairs"))
	if len(uniform) < max(2, m/2) {
		return nil // nothing to tell edges from: no edge is doubted
	}
	mixed := append(slices.Clone(uniform[:len(uniform)/2]), graph.RandomPairs(e.g, m/2, true, s.Sub("pairs by degree"))...)
	looked := newLookedAt(len(e.g.Edges), len(e.names), s)
	w := slices.Repeat([]float32{1}, len(e.g.Edges))
	asItIs, err := e.judgeLooked(looked, w, e.names)
	if err != nil {
		return err
	}
	random, err := e.judge(uniform, nil, e.names)
	if err != nil {
		return err
	}
	joint := fitRegression(e.pool, asItIs.sample, random, nil, 0, ridgeWithProducts)
	linear := fitRegression(e.pool, pick(asItIs.sample, e.names, e.lin), pick(random, e.names, e.lin), nil, 0, ridge)
	e.setRegression(models.EvidenceJoint, joint)
	e.setRegression(models.EvidenceLinear, linear)
	if err := e.fitNew(looked, asItIs, random, s.Sub("new")); err != nil {
		return err
	}

	// Round by round, what robust evidence doubts counts less.
	var trusted []float64 // of the edges that are fitted to
	fitRobust := func(name string) (l *regression, edges *judgedEdges, none []float64, err error) {
		if edges, err = e.judgeLooked(looked, w, e.rob); err != nil {
			return nil, nil, nil, err
		}
		pairs, err := e.judge(mixed, nil, e.rob)
		if err != nil {
			return nil, nil, nil, err
		}
		l = fitRegression(e.pool, edges.sample, pairs, trusted, 0, ridge)
		e.setRegression(name, l)
		return l, edges, l.logits(pairs), nil
	}
	for r := 1; r <= models.EvidenceRounds; r++ {
		l, edges, none, err := fitRobust(models.EvidenceRound(r))
		if err != nil {
			return err
		}
		own := l.logits(edges.columns)
		// Of as many as fall below the median of random pairs, that share are none (Storey 2002).
		found, _, _ := fallBelow(own, slices.Sorted(slices.Values(none)), 0.5)
		share := min(0.3, max(0.02, found))
		e.setParam(models.EvidenceShare(models.EvidenceRound(r)), share)
		trusted = trusted[:0]
		for _, i := range looked.fitted {
			trusted = append(trusted, max(trust(own[i], share), 0.02))
		}
		if err := e.reweigh(r, w, looked, own, l, share); err != nil {
			return err
		}
	}
	robust, _, _, err := fitRobust(models.EvidenceRobust)
	if err != nil {
		return err
	}

	weighed, err := e.judgeLooked(looked, w, e.lin)
	if err != nil {
		return err
	}
	none, err := e.judge(uniform, nil, e.lin)
	if err != nil {
		return err
	}
	gate, err := e.open(looked, linear, asItIs, weighed, w)
	if err != nil {
		return err
	}
	e.setParam(models.EvidenceGate, gate)
	// mix makes logits in the graph as it is those of the evidence, by the sources in the
	// weighed one, which it reads where the gate is not closed.
	mix := func(logits []float64, weighed [][]float32) []float64 {
		if gate == 0 {
			return logits
		}
		a, b := linear.logits(weighed), robust.logits(pick(weighed, e.lin, e.rob))
		for i := range logits {
			other := float64((a[i] + b[i]) / 2)
			logits[i] += float64(gate * (other - logits[i]))
		}
		return logits
	}
	e.rescale(mix(joint.logits(asItIs.sample), weighed.sample), mix(joint.logits(random), none),
		map[string]*regression{models.EvidenceJoint: joint, models.EvidenceLinear: linear, models.EvidenceRobust: robust})
	own, other := mix(joint.logits(asItIs.columns), weighed.columns), mix(joint.logits(random), none)
	levels := quantiles[:4]
	if e.prog.params.Lookup(models.EvidenceShare(models.EvidenceDisguised[0])) != nil {
		// Regressions were fitted to these edges: of many wrong ones few lie as low as 5 % of random pairs.
		levels = quantiles[:3]
	}
	share := max(leastShare, shareOfNone(own, other, levels))
	e.setParam(models.EvidenceShare("evidence"), share)
	return e.fitDisguised(asItIs, wrongPairs{share, random}, s.Sub("disguised"))
}

// rescale stretches regressions by what one on logits of edges and pairs alone says, and enters them:
// penalties, and the joining, leave logits too small or too large (Platt 1999).
func (e *evidence) rescale(own, other []float64, of map[string]*regression) {
	l := fitRegression(e.pool, [][]float32{float32s(own)}, [][]float32{float32s(other)}, nil, 0, ridge)
	if slope := l.linear[0] * l.scale[0]; slope > 0 {
		for name, r := range of {
			r.stretch(slope, l.bias-float64(slope*l.mean[0]))
			e.setRegression(name, r)
		}
	}
}

// wrongPairs are pairs of a kind that a share of the edges looks like, with their evidence.
type wrongPairs struct {
	share    float64
	evidence [][]float32 // by source
}

// fitDisguised fits the regressions against pairs of the kinds that [models.EvidenceDisguised] names,
// to edges in the graph as it is, and how many edges look like them beyond those that already
// pass for random pairs, or a kind before.
func (e *evidence) fitDisguised(edges *judgedEdges, random wrongPairs, s rng.Stream) error {
	before := []wrongPairs{random}
	for _, name := range models.EvidenceDisguised {
		if e.prog.params.Lookup(models.EvidenceShare(name)) == nil {
			continue
		}
		pairs, err := e.disguised(name, len(edges.sample[0]), s.Sub(name))
		if err != nil {
			return err
		}
		if len(pairs) < 2 {
			continue
		}
		if err := e.weigh(nil); err != nil {
			return err
		}
		none, err := e.judge(pairs, nil, e.names)
		if err != nil {
			return err
		}
		r := fitRegression(e.pool, edges.sample, none, nil, 0, ridgeWithProducts)
		e.setRegression(name, r)
		e.rescale(r.logits(edges.sample), r.logits(none), map[string]*regression{name: r})
		counted := make([]wrongLogits, len(before))
		for i, b := range before {
			counted[i] = wrongLogits{b.share, r.logits(b.evidence)}
		}
		share := shareOfNone(r.logits(edges.sample), r.logits(none), quantiles, counted...)
		e.setParam(models.EvidenceShare(name), share)
		before = append(before, wrongPairs{share, none})
	}
	return nil
}

// disguisedOf is of how many random pairs the most alike one is taken.
const disguisedOf = 20

// disguised draws n pairs without an edge of a kind that [models.EvidenceDisguised] names.
func (e *evidence) disguised(kind string, n int, s rng.Stream) (pairs [][2]int32, err error) {
	if kind == models.EvidenceDisguised[0] {
		return graph.RandomPairs(e.g, n, true, s), nil
	}
	err = e.Rows("features", func(z *runtime.Buffer) error {
		width := z.Dims[1]
		var most []float64 // of the cosines of each
		for of := range disguisedOf {
			for i, p := range graph.RandomPairs(e.g, n, false, s.Sub(strconv.Itoa(of))) {
				u, v, sum := z.F32[int(p[0])*width:][:width], z.F32[int(p[1])*width:][:width], 0.0
				for k := range u {
					sum += float64(float64(u[k]) * float64(v[k]))
				}
				switch {
				case i == len(pairs):
					pairs, most = append(pairs, p), append(most, sum)
				case sum > most[i]:
					pairs[i], most[i] = p, sum
				}
			}
		}
		return nil
	})
	return pairs, err
}

// Rows calls use with the rows by which nodes are compared where candidates are searched, "features"
// or "evidence", which last until it returns. What judged pairs is given up before where it is large.
func (e *evidence) Rows(by string, use func(rows *runtime.Buffer) error) error {
	if e.f != nil && held(e.f) >= large {
		e.release()
	}
	if e.chunks != nil {
		return e.rowsChunked(by, use)
	}
	f, err := e.onHost("rows", map[string]*runtime.Buffer{})
	if err != nil {
		return err
	}
	defer giveBack(f)
	if err := f.Run(0); err != nil {
		return err
	}
	return use(f.Result(by))
}

// rowsChunked is [evidence.Rows] with rows in a file.
func (e *evidence) rowsChunked(by string, use func(rows *runtime.Buffer) error) (err error) {
	m := e.prog.Clone()
	f := m.Func("rows")
	f.Results = slices.DeleteFunc(f.Results, func(r ir.Result) bool { return r.Name != by })
	parts, err := passes.Cut(m, "rows")
	if err != nil {
		return err
	}
	room, err := e.chunks()
	if err != nil {
		return err
	}
	c := runtime.NewChunked(parts, room.Dir, room.Room, runtime.Options{Pool: e.pool})
	c.Bind("g", runtime.Graph(e.st))
	for _, v := range append(f.Args, m.Params...) {
		if b := e.value(v.Name); b != nil {
			c.Bind(v.Name, b)
		}
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	if err := c.Run(); err != nil {
		return err
	}
	return use(c.Result(by))
}

// fitClasses fits the regressions that tell each class from the others by the projected features,
// on the training nodes.
func (e *evidence) fitClasses(labels, training []int32) error {
	shape := e.prog.params.Lookup(models.EvidenceClasses).Value.Dims
	width, classes := shape[0], shape[1]
	weights, bias := make([]float64, width*classes), make([]float64, classes)
	err := e.Rows("features", func(z *runtime.Buffer) error {
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
		return nil
	})
	if err != nil {
		return err
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
	// newNodes is how many nodes' candidates are looked at, drawn where there are more.
	newNodes = 100_000
)

// fitNew fits the regression by which new edges are ranked: edges that would be candidates
// if they were missing, by the sources that judge each without itself, against candidates
// that are none and random pairs. Ranking is harder than telling edges from random pairs
// alone, which nearly all candidates would pass for.
func (e *evidence) fitNew(looked lookedAt, edges *judgedEdges, random [][]float32, s rng.Stream) error {
	var near []int32
	var similar []float32
	err := e.Rows("evidence", func(z *runtime.Buffer) error {
		near, similar, _ = (&graph.Neighbors{Near: func() *graph.Structure { return e.st }}).Search(e.pool, z.F32, z.Dims[0], z.Dims[1], newNearest, graph.IndexAuto)
		return nil
	})
	if err != nil {
		return err
	}
	two, common := graph.TwoStep(e.pool, e.g, newTwoStep)
	none, err := e.newCandidates(s, near, two)
	if err != nil {
		return err
	}
	e.near, e.two = firstOf(near, newNearest, e.k[0]), firstOf(two, newTwoStep, e.k[1])
	mean, adamicAdar := edges.sample[slices.Index(e.names, "mean")], edges.sample[slices.Index(e.names, "adamic_adar")]
	var rank []int // edges, of those that are fitted to, that would be candidates
	ends := lookedOf(looked, e.g.Edges)
	for k, i := range looked.fitted {
		for _, v := range ends[i] {
			last, least := int(v)*newNearest+newNearest-1, common[int(v)*newTwoStep+newTwoStep-1]
			const rounding = 1e-5
			if near[last] < 0 || mean[k] >= similar[last]-rounding || adamicAdar[k] > 0 && float64(adamicAdar[k]) >= fmath.Log(1+float64(0.99*float64(least))) { // which counts in steps
				rank = append(rank, k)
				break
			}
		}
	}
	if len(rank) == 0 || len(none) == 0 {
		return nil // as likely as each other
	}
	rank = few(rank, newEdges, s.Sub("edges"))
	var pairs [][2]int32
	for _, i := range few(indices[int](len(none)), newPairs, s.Sub("pairs")) {
		pairs = append(pairs, none[i])
	}
	columns, err := e.judge(pairs, nil, e.names)
	if err != nil {
		return err
	}
	random = chosen(random, few(indices[int](len(random[0])), newRandom, s.Sub("random")))
	for c := range columns {
		columns[c] = append(columns[c], random[c]...)
	}
	e.setRegression(models.EvidenceNew, fitRegression(e.pool, chosen(edges.sample, rank), columns, nil, 1, ridgeWithProducts))
	return nil
}

// newCandidates returns pairs of nodes and their neighbours in lists that are no edges, sorted. Of
// many nodes it looks at some that are drawn.
func (e *evidence) newCandidates(s rng.Stream, lists ...[]int32) (none [][2]int32, err error) {
	nodes := few(indices[int](e.g.N), newNodes, s.Sub("nodes"))
	var from, to []int32
	for _, list := range lists {
		k := len(list) / e.g.N
		for _, v := range nodes {
			for _, u := range list[v*k : (v+1)*k] {
				if u >= 0 {
					from, to = append(from, int32(v)), append(to, u)
				}
			}
		}
	}
	listed, _, err := graph.Build(e.g.N, from, to, nil, false)
	if err != nil {
		return nil, err
	}
	return graph.Difference(listed, e.g), nil
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

// open tells from 0 to 1 whether edges that robust evidence doubts hold each other up, as
// those do that were planted on purpose: by how much the linear logit of the doubted edges
// that it believes in falls where they all count less, beyond what it falls where all edges
// count less alike, and beyond what edges that nobody doubts lose by the latter: where that is
// much, there is little else to judge by. Where it is closed, what a real edge would lose by
// false doubts is more than what others would gain.
func (e *evidence) open(looked lookedAt, linear *regression, asItIs, weighed *judgedEdges, w []float32) (float64, error) {
	sum := 0.0
	for _, v := range w {
		sum += float64(v)
	}
	alike, err := e.judgeLooked(looked, slices.Repeat([]float32{float32(sum / float64(len(w)))}, len(w)), e.lin)
	if err != nil {
		return 0, err
	}
	before, after, control := linear.logits(pick(asItIs.columns, e.names, e.lin)), linear.logits(weighed.columns), linear.logits(alike.columns)
	w = lookedOf(looked, w)
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

// reweigh makes w what edges weigh behind round r, where own are the logits of the edges that are looked at.
func (e *evidence) reweigh(r int, w []float32, looked lookedAt, own []float64, l *regression, share float64) error {
	enter := func(lo int, logits []float64) {
		for i, logit := range logits {
			w[lo+i] = float32(max(fmath.Pow(trust(logit, share), models.EvidencePower), models.MinEvidence))
		}
	}
	if looked.edges == nil {
		enter(0, own)
		return nil
	}
	columns := make([][]float32, len(e.rob))
	return e.over(e.function(e.rob), len(w), func(i int) ([2]int32, float32) { return e.g.Edges[i], w[i] }, func(f *runtime.Function, lo int) {
		for k, name := range e.rob {
			columns[k] = f.Result(name).F32
		}
		enter(lo, l.logits(columns))
		e.tell(r-1, lo+len(columns[0]))
	})
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

func (e *evidence) setParam(name string, v ...float64) { e.setFloats(name, float32s(v)) }

func float32s(v []float64) []float32 {
	x := make([]float32, len(v))
	for i := range v {
		x[i] = float32(v[i])
	}
	return x
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

// quantiles of pairs below which edges are counted; for further kinds of pairs the last, too.
var quantiles = []float64{0.5, 0.2, 0.1, 0.05, 0.02}

// countedAgain is how much of a share may be found again as that of another kind: it is an upper bound,
// about a quarter above the truth where that is known, so that this much shows nothing.
const countedAgain = 0.25

// wrongLogits are what a regression says of pairs that a share of the edges was found to look like.
type wrongLogits struct {
	share  float64
	logits []float64
}

// shareOfNone is the least of such estimates, each with its standard error, since all are
// upper bounds: real edges, too, fall below a high quantile, and few edges below a low one. Of
// the edges below each quantile as many are not counted again as are expected of pairs of other kinds.
func shareOfNone(edges, none []float64, quantiles []float64, counted ...wrongLogits) float64 {
	sorted, least := slices.Sorted(slices.Values(none)), 1.0
	for _, quantile := range quantiles {
		share, err, bound := fallBelow(edges, sorted, quantile)
		share += err
		for _, c := range counted {
			share -= float64(c.share * (countedAgain + float64(countBelow(c.logits, bound))/(quantile*float64(len(c.logits)))))
		}
		least = min(least, share)
	}
	return max(0, least)
}

// fallBelow returns how many times as many edges fall below a quantile as random pairs,
// which are sorted, the standard error of that, and the quantile's logit.
func fallBelow(edges, sorted []float64, quantile float64) (share, err, bound float64) {
	bound = sorted[int(quantile*float64(len(sorted)))]
	count := float64(countBelow(edges, bound))
	of := quantile * float64(len(edges))
	return count / of, float64((count + 1) / of * math.Sqrt(1/(count+1)+1/float64(quantile*float64(len(sorted))))), bound
}

func countBelow(logits []float64, bound float64) (n int) {
	for _, v := range logits {
		if v < bound {
			n++
		}
	}
	return n
}

// pick returns the columns of some names, of those of all.
func pick(columns [][]float32, all, names []string) (out [][]float32) {
	for _, name := range names {
		out = append(out, columns[slices.Index(all, name)])
	}
	return out
}

// chosen returns the rows of columns that are listed.
func chosen[T any](columns [][]T, rows []int) [][]T {
	if len(rows) == len(columns[0]) {
		return columns
	}
	out := make([][]T, len(columns))
	for c, x := range columns {
		out[c] = make([]T, 0, len(rows))
		for _, i := range rows {
			out[c] = append(out[c], x[i])
		}
	}
	return out
}
