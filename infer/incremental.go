package infer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"sort"
	"sync/atomic"
	"time"

	"github.com/gsrc-dev/gsrc/export/dist"
	"github.com/gsrc-dev/gsrc/graph"
	"github.com/gsrc-dev/gsrc/runtime/kernels"
	"github.com/gsrc-dev/gsrc/runtime/ort"
)

// incremental makes versions' answers out of those of the version before. It holds what
// they follow from for the version last made: the levels of the encoder, the nearest
// neighbours, the prior of edges, the refined graph; or, where the classifier reads the
// graph as it is, the levels of the classifier. Only what an update reaches is computed
// again.
//
// In a refined graph that is often most of the classifier's answers, a little. These are
// given when they are asked for, see [pending].
type incremental struct {
	r    *Graph
	of   *Snapshot // the version that all this is of
	pool *kernels.Pool

	n         int
	in, out   [][]int32 // neighbours in the data, ascending
	both      [][]int32 // in either direction
	prior     *graph.OnlineEdgePrior
	priors    [][]float32 // what the edges into a node count; nil where it is not known yet
	judge     *judge      // nil where no evidence judges
	weighs    bool        // the encoder weighs edges by what judges them
	weights   [][]float32 // with weighs, what the edges into a node weigh; nil where it is not known
	twoStep   *graph.OnlineTwoStep
	encoder   *layers
	embedding string // the encoder's output
	near      *graph.Near
	scorer    *dist.Staged // nil where it does not say what it reads of pairs
	links     [][]link     // of the refined graph; rows are shared with versions

	classifier *layers // of the graph as it is

	base  *allAnswers // of the first version, or of one that had to be classified whole
	bears float64     // a magnitude of features that gave finite answers

	undo []func() // what reverts the last version, the first first
}

// link is a candidate for an edge, in the rows of both its ends.
type link struct {
	to  int32
	why uint8
	p   float32 // of a candidate; see counted
}

// Why two nodes are linked.
const (
	linkNear     = 1 << iota // the row's node has the other among its nearest
	linkNearBack             // the reverse
	linkEdge                 // the data have the edge
	linkTwo                  // the row's node has the other among those two steps away
	linkTwoBack              // the reverse
)

// candidate tells whether a link may be an edge. Of mutual neighbours each must be the other's.
func (r *Graph) candidate(l *link) bool {
	return l.why&linkEdge != 0 || l.why != 0 && (!r.p.info.Mutual || l.why&(linkNear|linkTwo) != 0 && l.why&(linkNearBack|linkTwoBack) != 0)
}

// kept tells whether a link is an edge of the refined graph.
func (r *Graph) kept(l *link) bool { return r.candidate(l) && l.p >= float32(r.p.info.Threshold) }

// counted is what is kept of a probability: 0 where the link is no edge of the refined graph,
// unless the encoder weighs its messages by it.
func (inc *incremental) counted(p float32, edge bool) float32 {
	if p >= float32(inc.r.p.info.Threshold) || edge && inc.weighs {
		return p
	}
	return 0
}

// refinedEntries gives the entries of a refined graph.
func (r *Graph) refinedEntries(links [][]link) entriesOf {
	var from []int32
	var w []float32
	return func(v int32) ([]int32, []float32) {
		from, w = from[:0], w[:0]
		for i := range links[v] {
			l := &links[v][i]
			if !r.kept(l) {
				continue
			}
			p := l.p
			if r.p.info.Mode == "threshold" {
				p = 1
			}
			from, w = append(from, l.to), append(w, p)
		}
		return from, w
	}
}

// newIncremental prepares for the versions behind s.
func newIncremental(r *Graph, s *Snapshot) (*incremental, error) {
	g := s.graph
	inc := &incremental{r: r, of: s, n: g.N, pool: kernels.NewPool(r.p.o.Threads)}
	rows := func(c *kernels.CSR) [][]int32 {
		list := make([][]int32, g.N)
		for v := range list {
			list[v] = slices.Clone(c.Col[c.RowPtr[v]:c.RowPtr[v+1]])
		}
		return list
	}
	st := g.Structure()
	inc.in = rows(st.In)
	inc.out, inc.both = inc.in, inc.in
	if g.Directed {
		inc.out, inc.both = rows(st.Out), rows(g.Undirected().Structure().In)
	}
	if r.p.info.ReadsWeights() {
		return inc, errWeights
	}
	if r.p.info.Graph == "raw" {
		m, err := r.p.dist.Stage("classifier")
		if err != nil || m == nil {
			return inc, cmp.Or(err, errNoStages)
		}
		inc.classifier, err = newLayers(inc.pool, m, inc.n, &s.x, inc.rawEntries)
		return inc, err
	}
	if r.p.manifest.JudgesByEvidence() {
		var err error
		if inc.judge, err = newJudge(inc, &s.x); err != nil {
			return inc, err
		}
	}
	if e := r.p.info.Evidence; e != nil {
		if e.calibration == nil {
			return inc, errWholePrior
		}
		inc.priors = make([][]float32, inc.n)
		inc.prior = graph.NewOnlineEdgePrior(inc.pool, g.Undirected(), graph.NodeFeatures{Cols: s.x.cols, Dense: s.features()}, e.calibration)
	}
	m, err := r.p.dist.Stage("encoder")
	if err != nil || m == nil {
		return inc, cmp.Or(err, errNoStages)
	}
	inc.embedding = m.Gives(m.Levels() - 1)[0]
	if k := min(r.p.info.TwoStep, inc.n); k > 0 {
		inc.twoStep = graph.NewOnlineTwoStep(inc.pool, inc.n, r.p.info.TwoStep, func(v int32) []int32 { return inc.both[v] })
	}
	if inc.weighs = m.Weights != ""; inc.weighs {
		if err := inc.link(g.Undirected()); err != nil {
			return inc, err
		}
	}
	if inc.encoder, err = newLayers(inc.pool, m, inc.n, &s.x, inc.encoderEntries); err != nil {
		return inc, fmt.Errorf("encoder: %w", err)
	}
	if inc.judge != nil {
		inc.encoder.slack = rounding
	} else if m, err := r.p.dist.Stage("scorer"); err != nil {
		return inc, err
	} else if m != nil && m.Cosine != nil {
		inc.scorer = m
	} else if m != nil {
		m.Close()
	}
	h := inc.encoder.values[inc.embedding]
	for v := range inc.n {
		if s.deleted.has(v) {
			clear(h.v[v*h.width : (v+1)*h.width])
		}
	}
	inc.near = graph.NewNear(inc.pool, h.v, inc.n, h.width, r.p.info.K)
	if err := inc.link(g.Undirected()); err != nil {
		return inc, err
	}
	links := inc.links
	start := time.Now()
	q := &pending{r: r, s: s, entries: func() entriesOf { return r.refinedEntries(links) }}
	inc.base, err = q.all()
	r.whole.Store(int64(time.Since(start)))
	for v := range inc.n {
		if !s.deleted.has(v) {
			inc.bears = max(inc.bears, largestMagnitude(&s.x, []int32{int32(v)}))
		}
	}
	return inc, err
}

// Why the answers of a model cannot be made out of those before.
var (
	errNoStages   = errors.New("its results for a node depend on the whole graph, or it makes the graph undirected (--symmetrize), takes an adjacency matrix, or has weights in a file beside it, or it was exported by an earlier version of gsrc")
	errEvidence   = errors.New("its edges are judged by how others are, since the training graph looked attacked (parameter evidence.gate), or by the spectrum of the whole graph, since that has many edges a node (parameter evidence.spectrum), or it was exported as --symmetrize or --lowering dense have it, with weights in a file beside it, or by an earlier version of gsrc")
	errWeights    = errors.New("edges have weights")
	errWholePrior = errors.New("the prior of its edges depends on the whole graph, as in all exports of earlier versions of gsrc")
)

func (inc *incremental) close() {
	inc.pool.Close()
	for _, l := range inc.layers() {
		l.m.Close()
	}
	if inc.scorer != nil {
		inc.scorer.Close()
	}
}

// layers are those of all models that there are.
func (inc *incremental) layers() (all []*layers) {
	if inc.judge != nil {
		all = append(all, inc.judge.layers)
	}
	for _, l := range []*layers{inc.encoder, inc.classifier} {
		if l != nil {
			all = append(all, l)
		}
	}
	return all
}

// bothEntries are those of a graph without directions.
func (inc *incremental) bothEntries() entriesOf {
	return func(v int32) ([]int32, []float32) { return inc.both[v], nil }
}

// rawEntries are those of the classifier where it reads the graph as it is.
func (inc *incremental) rawEntries() entriesOf {
	if !inc.r.p.manifest.EdgeWeight {
		return func(v int32) ([]int32, []float32) { return inc.in[v], nil }
	}
	var w []float32
	return func(v int32) ([]int32, []float32) {
		for len(w) < len(inc.in[v]) {
			w = append(w, inc.r.p.info.RawWeight)
		}
		return inc.in[v], w[:len(inc.in[v])]
	}
}

// encoderEntries are those of the encoder.
func (inc *incremental) encoderEntries() entriesOf {
	if inc.weighs {
		return func(v int32) ([]int32, []float32) { // rows are read at the same time, each once
			if inc.weights[v] == nil {
				w := make([]float32, 0, len(inc.both[v]))
				for i := range inc.links[v] {
					if l := &inc.links[v][i]; l.why&linkEdge != 0 {
						w = append(w, l.p)
					}
				}
				inc.weights[v] = w
			}
			return inc.both[v], inc.weights[v]
		}
	}
	if inc.judge != nil {
		return inc.bothEntries()
	}
	if inc.prior == nil {
		return func(v int32) ([]int32, []float32) { return inc.in[v], nil }
	}
	return func(v int32) ([]int32, []float32) { // rows are read at the same time, each once
		if inc.priors[v] == nil {
			w := make([]float32, 0, len(inc.in[v]))
			for _, u := range inc.in[v] {
				w = append(w, inc.edgePrior(u, v))
			}
			inc.priors[v] = w
		}
		return inc.in[v], inc.priors[v]
	}
}

// edgePrior is what an edge of the data counts.
func (inc *incremental) edgePrior(u, v int32) float32 {
	e := inc.r.p.info.Evidence
	return e.calibration.Weight(inc.prior.P(u, v), e.Strength)
}

// knownPrior is edgePrior, which is looked up where a node's entries have been read.
func (inc *incremental) knownPrior(u, v int32) float32 {
	for _, e := range [2][2]int32{{u, v}, {v, u}} {
		from, to := e[0], e[1]
		if int(to) < len(inc.priors) && inc.priors[to] != nil {
			if i, ok := slices.BinarySearch(inc.in[to], from); ok {
				return inc.priors[to][i]
			}
		}
	}
	return inc.edgePrior(u, v)
}

// link rebuilds the refined graph; g is undirected.
func (inc *incremental) link(g *graph.Graph) error {
	inc.links, inc.weights = make([][]link, inc.n), make([][]float32, inc.n)
	k := inc.r.p.info.K + inc.r.p.info.TwoStep
	near := make([]int32, 0, inc.n*k)
	for v := range int32(inc.n) {
		for _, list := range inc.proposed(v) {
			near = append(near, list...)
		}
		for len(near) < int(v+1)*k {
			near = append(near, -1)
		}
	}
	c, err := graph.NewCandidates(g, near, k, false)
	if err != nil {
		return err
	}
	degree := make([]int32, inc.n)
	for _, e := range c.Edges {
		degree[e[0]]++
		degree[e[1]]++
	}
	for v, d := range degree {
		inc.links[v] = make([]link, 0, d)
	}
	// Edges are sorted, so rows come out sorted: first the lower neighbours, then the higher.
	for _, e := range c.Edges {
		inc.links[e[1]] = append(inc.links[e[1]], link{to: e[0]})
	}
	for _, e := range c.Edges {
		inc.links[e[0]] = append(inc.links[e[0]], link{to: e[1]})
	}
	for i, e := range c.Edges {
		if c.Existing[i] {
			inc.at(e[0], e[1]).why |= linkEdge
			inc.at(e[1], e[0]).why |= linkEdge
		}
	}
	for v := range int32(inc.n) {
		for i, list := range inc.proposed(v) {
			for _, u := range list {
				inc.at(v, u).why |= proposals[i].why
				inc.at(u, v).why |= proposals[i].back
			}
		}
	}
	var pairs pairs
	for i, e := range c.Edges {
		if l := inc.at(e[0], e[1]); inc.r.candidate(l) {
			pairs.add(e, c.Existing[i], 0)
		}
	}
	p, err := inc.score(&pairs)
	if err != nil {
		return err
	}
	for i, e := range pairs.ends {
		q := inc.counted(p[i], pairs.edge[i])
		inc.at(e[0], e[1]).p, inc.at(e[1], e[0]).p = q, q
	}
	return nil
}

// proposals are the ways in which nodes propose candidates.
var proposals = [2]struct{ why, back uint8 }{{linkNear, linkNearBack}, {linkTwo, linkTwoBack}}

// proposed are the candidates that a node proposes, in the order of proposals.
func (inc *incremental) proposed(v int32) (lists [2][]int32) {
	if inc.near != nil {
		lists[0] = inc.near.Nearest(v)
	}
	if inc.twoStep != nil {
		lists[1] = inc.twoStep.Of(v)
	}
	return lists
}

// at returns the link from u to v, nil if there is none.
func (inc *incremental) at(u, v int32) *link {
	row := inc.links[u]
	if i, ok := findLink(row, v); ok {
		return &row[i]
	}
	return nil
}

func findLink(row []link, v int32) (int, bool) {
	// Probabilities of others may be written meanwhile: a search over links would read them.
	i := sort.Search(len(row), func(i int) bool { return row[i].to >= v })
	return i, i < len(row) && row[i].to == v
}

// pairs are links that are scored.
type pairs struct {
	ends [][2]int32 // each ascending
	edge []bool     // which the data have
	was  []float32  // their probabilities before
}

func (p *pairs) add(ends [2]int32, edge bool, was float32) {
	p.ends, p.edge, p.was = append(p.ends, ends), append(p.edge, edge), append(p.was, was)
}

func (p *pairs) part(lo, hi int) *pairs {
	return &pairs{p.ends[lo:hi], p.edge[lo:hi], p.was[lo:hi]}
}

// score gives pairs their probabilities.
func (inc *incremental) score(all *pairs) ([]float32, error) {
	p := make([]float32, len(all.ends))
	width, score := 0, func(p []float32, some *pairs) error { return inc.judge.score(p, some, inc.both) }
	switch {
	case inc.judge != nil:
		for _, f := range inc.judge.values {
			width += f.width
		}
	case inc.scorer != nil:
		inc.near.Cosines(inc.pool, p, all.ends)
		width, score = cosineValues, inc.ofCosines
	default:
		width, score = inc.encoder.values[inc.embedding].width, inc.ofRows
	}
	count := max(1, min(scoreValues/max(1, width), max(cutLeast, (len(p)+inc.pool.Threads()-1)/inc.pool.Threads())))
	err := each(inc.pool, (len(p)+count-1)/count, func(i int) error {
		lo, hi := i*count, min((i+1)*count, len(p))
		p, some := p[lo:hi], all.part(lo, hi)
		if err := score(p, some); err != nil || inc.prior == nil {
			return err
		}
		for i, e := range some.ends {
			if some.edge[i] {
				p[i] *= inc.knownPrior(e[0], e[1])
			}
		}
		return nil
	})
	return p, err
}

// ofCosines gives pairs, whose cosines p has, their probabilities by the embedding.
func (inc *incremental) ofCosines(p []float32, some *pairs) error {
	in := map[string]ort.Tensor{inc.scorer.Cosine.Name: ort.Float32s(p, int64(len(p)))}
	out, err := inc.scorer.Run(0, 0, in, ort.Tensor{}, nil)
	if err != nil {
		return fmt.Errorf("scorer: %w", err)
	}
	q, err := probabilities(out, some.edge)
	copy(p, q)
	return err
}

// ofRows is ofCosines where the scorer reads the rows of the embedding.
func (inc *incremental) ofRows(p []float32, some *pairs) error {
	h := inc.encoder.values[inc.embedding]
	row := make(map[int32]int64, len(p))
	var nodes []int32
	ends := make([]int64, 2*len(p))
	for i, e := range some.ends {
		for side, v := range e {
			at, ok := row[v]
			if !ok {
				at = int64(len(nodes))
				row[v] = at
				nodes = append(nodes, v)
			}
			ends[side*len(p)+i] = at
		}
	}
	rows := make([]float32, 0, len(nodes)*h.width)
	for _, v := range nodes {
		rows = append(rows, h.v[int(v)*h.width:(int(v)+1)*h.width]...)
	}
	q, err := inc.r.p.score(ort.Float32s(rows, int64(len(nodes)), int64(h.width)), ends, some.edge)
	copy(p, q)
	return err
}

// revert makes everything as it was before the last version.
func (inc *incremental) revert() {
	for _, f := range slices.Backward(inc.undo) {
		f()
	}
	inc.undo = nil
}

func (inc *incremental) undoing(f func()) { inc.undo = append(inc.undo, f) }

// advance is the [advance] that computes what an update reaches.
func (inc *incremental) advance(ctx context.Context, old, next *Snapshot, c *changes) error {
	if inc.of != old { // the version that was made last was refused in the end
		inc.revert()
		inc.of = old
	}
	inc.undo = nil
	before := inc.n
	inc.undoing(func() { inc.n = before })
	if err := inc.follow(ctx, old, next, c); err != nil {
		inc.revert()
		return err
	}
	inc.of = next
	return nil
}

func (inc *incremental) follow(ctx context.Context, old, next *Snapshot, c *changes) error {
	// New numbers have rows even where the node was deleted before anybody saw it.
	moved := map[int32]bool{}
	for _, v := range c.nodes {
		moved[v] = true
	}
	for v := int32(inc.n); int(v) < next.Numbers(); v++ {
		moved[v] = true
	}
	features := slices.Sorted(maps.Keys(moved))
	inc.n = next.Numbers()
	if inc.prior != nil {
		inc.priors = append(inc.priors, make([][]float32, max(0, inc.n-len(inc.priors)))...)
	}
	added, removed := inc.connect(c, next.graph.Directed)
	for _, e := range slices.Concat(c.added, c.removed) {
		moved[e[1]] = true
		if !next.graph.Directed {
			moved[e[0]] = true
		}
	}
	out := func(v int32) []int32 { return inc.out[v] }
	if inc.r.p.info.Graph == "raw" {
		dirty, err := inc.classifier.change(inc.n, slices.Sorted(maps.Keys(moved)), &next.x, inc.rawEntries, out)
		inc.undoing(inc.classifier.revert)
		if err != nil {
			return fmt.Errorf("classifier: %w", err)
		}
		take := func(was []float32, name string) []float32 {
			f := inc.classifier.values[name]
			now := make([]float32, inc.n*f.width)
			copy(now, was)
			for _, v := range dirty {
				copy(now[int(v)*f.width:], f.v[int(v)*f.width:(int(v)+1)*f.width])
			}
			return now
		}
		next.logits, next.probabilities = take(old.logits, "logits"), take(old.probabilities, "probabilities")
		return nil
	}

	// What judges edges.
	var rescore [][2]int32
	again := make([]bool, inc.n) // nodes whose pairs are scored again
	mark := func(nodes []int32) {
		for _, v := range nodes {
			again[v] = true
		}
	}
	if inc.prior != nil {
		row := func(v int32) []float32 {
			if next.deleted.has(int(v)) {
				return make([]float32, next.x.cols)
			}
			return next.x.row(int(v))
		}
		rescore = inc.prior.Change(inc.n, features, row, added, removed, func(v int32) []int32 { return inc.both[v] })
		inc.undoing(inc.prior.Undo)
		forget := func() {
			nodes := slices.Clone(features)
			for _, e := range slices.Concat(rescore, added, removed, c.added, c.removed) {
				nodes = append(nodes, e[0], e[1])
			}
			for _, v := range nodes {
				if int(v) < len(inc.priors) {
					inc.priors[v] = nil
				}
			}
		}
		forget()
		inc.undoing(forget)
		for _, e := range rescore {
			moved[e[0]], moved[e[1]] = true, true
		}
	}
	if inc.judge != nil {
		for _, e := range slices.Concat(added, removed) { // whatever their directions
			moved[e[0]], moved[e[1]] = true, true
		}
		judged, err := inc.judge.change(inc, slices.Sorted(maps.Keys(moved)), &next.x)
		inc.undoing(inc.judge.revert)
		if err != nil {
			return err
		}
		mark(judged)
		out = func(v int32) []int32 { return inc.both[v] }
	}

	// What links nodes.
	w := inc.weave()
	reached := make([]bool, inc.n)
	for _, v := range features {
		reached[v] = true
	}
	var others [][2]int32 // pairs that may have become candidates
	touch := func(u, v int32) {
		reached[u], reached[v] = true, true
		others = append(others, [2]int32{min(u, v), max(u, v)})
	}
	for _, e := range rescore {
		touch(e[0], e[1])
	}
	for _, e := range removed {
		w.unset(e[0], e[1], linkEdge)
		w.unset(e[1], e[0], linkEdge)
		touch(e[0], e[1])
	}
	for _, e := range added {
		w.set(e[0], e[1], linkEdge)
		w.set(e[1], e[0], linkEdge)
		touch(e[0], e[1])
	}
	propose := func(way int, v int32, was, now []int32) {
		why, back := proposals[way].why, proposals[way].back
		for _, u := range was {
			if !slices.Contains(now, u) {
				w.unset(v, u, why)
				w.unset(u, v, back)
				touch(u, v)
			}
		}
		for _, u := range now {
			if !slices.Contains(was, u) {
				w.set(v, u, why)
				w.set(u, v, back)
				touch(u, v)
			}
		}
	}
	if inc.twoStep != nil {
		changed := inc.twoStep.Change(inc.pool, inc.n, slices.Concat(added, removed))
		inc.undoing(inc.twoStep.Undo)
		for _, v := range changed {
			propose(1, v, inc.twoStep.Before(v), inc.twoStep.Of(v))
		}
	}
	if inc.weighs {
		pairs := inc.toScore(again, others, func(l *link) bool { return l.why&linkEdge != 0 })
		p, err := inc.score(pairs)
		if err != nil {
			return err
		}
		for i, e := range pairs.ends {
			if inc.encoder.differ(pairs.was[i:i+1], p[i:i+1]) {
				moved[e[0]], moved[e[1]] = true, true
			}
			if pairs.was[i] != p[i] { // the classifier reads it too
				reached[e[0]], reached[e[1]] = true, true
			}
		}
		w.write(pairs, p)
	}

	// The rows by which candidates are near.
	dirty, err := inc.encoder.change(inc.n, slices.Sorted(maps.Keys(moved)), &next.x, inc.encoderEntries, out)
	inc.undoing(inc.encoder.revert)
	if err != nil {
		return fmt.Errorf("encoder: %w", err)
	}
	for _, v := range c.deleted {
		if i, ok := slices.BinarySearch(dirty, v); !ok {
			dirty = slices.Insert(dirty, i, v)
		}
	}
	h := inc.encoder.values[inc.embedding]
	row := func(v int32) []float32 {
		if next.deleted.has(int(v)) {
			return nil
		}
		return h.v[int(v)*h.width : int(v+1)*h.width]
	}
	broken := func(v int32) bool { return notFinite(h.width, row(v)) >= 0 }
	var failed atomic.Bool
	inc.pool.For(len(dirty), 1<<9, bodyFunc(func(lo, hi int) {
		if slices.ContainsFunc(dirty[lo:hi], broken) {
			failed.Store(true)
		}
	}))
	if failed.Load() {
		return next.notFinite(int(dirty[slices.IndexFunc(dirty, broken)]))
	}
	if inc.judge == nil {
		mark(dirty)
	}
	changed := inc.near.Change(inc.pool, dirty, row, inc.n)
	inc.undoing(inc.near.Undo)
	for _, v := range changed {
		propose(0, v, inc.near.Before(v), inc.near.Nearest(v))
	}

	pairs := inc.toScore(again, others, inc.r.candidate)
	p, err := inc.score(pairs)
	if err != nil {
		return err
	}
	for i, e := range pairs.ends {
		if !(p[i] >= 0 && p[i] <= 1) {
			return next.notFinite(int(e[0]))
		}
		if p[i] = inc.counted(p[i], pairs.edge[i]); pairs.was[i] != p[i] {
			reached[e[0]], reached[e[1]] = true, true
		}
	}
	w.write(pairs, p)
	links := inc.links
	return inc.later(ctx, old, next, func() entriesOf { return inc.r.refinedEntries(links) }, features, list(reached))
}

// toScore lists the links of nodes, and others, that are of a kind, each once.
func (inc *incremental) toScore(nodes []bool, others [][2]int32, kind func(*link) bool) *pairs {
	all := &pairs{}
	add := func(u int32, l *link) {
		all.add([2]int32{min(u, l.to), max(u, l.to)}, l.why&linkEdge != 0, l.p)
	}
	for v, yes := range nodes {
		if !yes {
			continue
		}
		for i := range inc.links[v] {
			l := &inc.links[v][i]
			if kind(l) && !(nodes[l.to] && int(l.to) < v) { // else it is among those of l.to
				add(int32(v), l)
			}
		}
	}
	others = slices.Clone(others)
	slices.SortFunc(others, compareEdges)
	for _, e := range slices.Compact(others) {
		if l := inc.at(e[0], e[1]); !nodes[e[0]] && !nodes[e[1]] && l != nil && kind(l) {
			add(e[0], l)
		}
	}
	return all
}

// connect enters what has changed in the lists of neighbours, and returns which edges
// there are more and less if directions do not count.
func (inc *incremental) connect(c *changes, directed bool) (added, removed [][2]int32) {
	type lists = [][]int32
	grown := func(l lists) lists { return append(l, make(lists, max(0, inc.n-len(l)))...) }
	inc.in = grown(inc.in)
	if directed {
		inc.out, inc.both = grown(inc.out), grown(inc.both)
	} else {
		inc.out, inc.both = inc.in, inc.in
	}
	owned := map[*[]int32]bool{}
	// set enters u in the row of v, or takes it out.
	set := func(l lists, v, u int32, in bool) {
		at := &l[v]
		if !owned[at] {
			owned[at] = true
			old := *at
			inc.undoing(func() { *at = old })
			*at = slices.Clone(old)
		}
		switch i, ok := slices.BinarySearch(*at, u); {
		case in && !ok:
			*at = slices.Insert(*at, i, u)
		case ok && !in:
			*at = slices.Delete(*at, i, i+1)
		}
	}
	change := func(edges [][2]int32, in bool) {
		for _, e := range edges {
			set(inc.in, e[1], e[0], in)
			set(inc.out, e[0], e[1], in) // the same lists where there are no directions
		}
	}
	change(c.removed, false)
	change(c.added, true)
	if !directed {
		return c.added, c.removed
	}
	has := func(l lists, v, u int32) bool { _, ok := slices.BinarySearch(l[v], u); return ok }
	seen := map[[2]int32]bool{}
	for _, e := range slices.Concat(c.removed, c.added) {
		u, v := min(e[0], e[1]), max(e[0], e[1])
		if pair := [2]int32{u, v}; !seen[pair] {
			seen[pair] = true
			switch now, was := has(inc.in, u, v) || has(inc.in, v, u), has(inc.both, u, v); {
			case now && !was:
				set(inc.both, u, v, true)
				set(inc.both, v, u, true)
				added = append(added, pair)
			case was && !now:
				set(inc.both, u, v, false)
				set(inc.both, v, u, false)
				removed = append(removed, pair)
			}
		}
	}
	return added, removed
}

// weaver changes the refined graph for a version, and leaves that of the version before.
type weaver struct {
	inc   *incremental
	owned []bool
}

func (inc *incremental) weave() *weaver {
	old := inc.links
	inc.undoing(func() { inc.links = old })
	inc.links = append(make([][]link, 0, inc.n), old...)[:inc.n]
	w := &weaver{inc, make([]bool, inc.n)}
	inc.weights = append(inc.weights, make([][]float32, max(0, inc.n-len(inc.weights)))...)
	inc.undoing(func() {
		for v, owned := range w.owned {
			if owned {
				inc.weights[v] = nil
			}
		}
	})
	return w
}

// own makes the row of a node the new version's alone.
func (w *weaver) own(v int32) {
	if !w.owned[v] {
		w.owned[v] = true
		w.inc.links[v] = slices.Clone(w.inc.links[v])
	}
	w.inc.weights[v] = nil
}

// write gives pairs their probabilities.
func (w *weaver) write(pairs *pairs, p []float32) {
	rows := make([]bool, w.inc.n)
	for i, e := range pairs.ends {
		if pairs.was[i] != p[i] {
			rows[e[0]], rows[e[1]] = true, true
		}
	}
	w.inc.pool.For(len(rows), 1<<9, bodyFunc(func(lo, hi int) {
		for v := lo; v < hi; v++ {
			if rows[v] {
				w.own(int32(v))
			}
		}
	}))
	w.inc.pool.For(len(p), 1<<9, bodyFunc(func(lo, hi int) {
		for i := lo; i < hi; i++ {
			e := pairs.ends[i]
			if pairs.was[i] == p[i] {
				continue
			}
			w.inc.at(e[0], e[1]).p, w.inc.at(e[1], e[0]).p = p[i], p[i]
		}
	}))
}

func (w *weaver) set(u, v int32, why uint8) {
	w.own(u)
	row := w.inc.links[u]
	i, ok := findLink(row, v)
	if !ok {
		row = slices.Insert(row, i, link{to: v})
		w.inc.links[u] = row
	}
	row[i].why |= why
}

func (w *weaver) unset(u, v int32, why uint8) {
	w.own(u)
	row := w.inc.links[u]
	i, ok := findLink(row, v)
	if !ok {
		return
	}
	if row[i].why &^= why; row[i].why == 0 {
		w.inc.links[u] = slices.Delete(row, i, i+1)
	}
}

// largestMagnitude is that of the features of some nodes.
func largestMagnitude(x *matrix, nodes []int32) (most float64) {
	for _, v := range nodes {
		for _, f := range x.row(int(v)) {
			most = max(most, math.Abs(float64(f)))
		}
	}
	return most
}
