package infer

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"sync/atomic"
	"time"

	"github.com/gsrc-dev/gsrc/export/dist"
	"github.com/gsrc-dev/gsrc/export/onnx"
	"github.com/gsrc-dev/gsrc/graph"
	"github.com/gsrc-dev/gsrc/internal/lists"
	"github.com/gsrc-dev/gsrc/runtime/kernels"
)

// incremental makes versions' answers out of those of the version before. It holds what
// they follow from for the version last made: the levels of the encoder, the nearest
// neighbours, the refined graph; or, where the classifier reads the
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
	in, out   [][]int32   // neighbours in the data, ascending
	both      [][]int32   // in either direction
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

// newIncremental prepares for the versions behind s.
func newIncremental(r *Graph, s *Snapshot) (*incremental, error) {
	g := s.graph
	inc := &incremental{r: r, of: s, n: g.N, pool: kernels.NewPool(r.p.o.Threads)}
	rows := func(c *kernels.CSR) [][]int32 {
		return lists.Of(g.N, func(v int) []int32 { return slices.Clone(c.Col[c.RowPtr[v]:c.RowPtr[v+1]]) })
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
			return inc, cmp.Or(err, inc.noStages("classifier"))
		}
		inc.classifier, err = newLayers(inc.pool, m, inc.n, &s.x, inc.rawEntries)
		return inc, err
	}
	if r.p.together() {
		return inc, errGlobal
	}
	if r.p.manifest.JudgesByEvidence() {
		var err error
		if inc.judge, err = newJudge(inc, &s.x); err != nil {
			return inc, err
		}
	}
	m, err := r.p.dist.Stage("encoder")
	if err != nil || m == nil {
		return inc, cmp.Or(err, inc.noStages("encoder"))
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
			clear(h.row(int32(v)))
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

// wholeError says why the answers of a model cannot be made out of those before, and what to do.
type wholeError string

func (e wholeError) Error() string { return string(e) }

const (
	errSymmetrize wholeError = "the model was exported with --symmetrize; export its run again without"
	errDense      wholeError = "the model was exported with --lowering dense; export its run again with another, such as degree-buckets"
	errBeside     wholeError = "weights of the model are in a file beside it; export its run again with --external-data none"
	errGate       wholeError = "the model judges edges by how others are, since its training graph looked attacked (the parameter evidence.gate is above 0); train it with --set model.edges.judge=embedding where updates are to cost less"
	errSpectrum   wholeError = "the model judges edges by the spectrum of the whole graph, since its training graph has 32 edges a node or more (evidence.spectrum); train it with --set model.edges.judge=embedding where updates are to cost less"
	errEarlier    wholeError = "the model was exported by an earlier version of gsrc; export its run again"
	errGlobal     wholeError = "the model's answers for a node depend on the whole graph"
	errUntold     wholeError = "the model's answers for a node depend on the whole graph, or it was exported by an earlier version of gsrc; export its run again to know"
	errWeights    wholeError = "the model reads weights of edges"
)

// noStages is why a model of the export tells no stages.
func (inc *incremental) noStages(role string) error {
	d := inc.r.p.dist
	m := d.Manifest
	switch {
	case m.Symmetrize:
		return errSymmetrize
	case m.Lowering == onnx.Dense:
		return errDense
	case m.Models[role].Data != "":
		return errBeside
	case role == "scorer":
		for _, of := range []struct {
			param string
			why   wholeError
		}{{"evidence.robust", errGate}, {"evidence.spectrum", errSpectrum}} {
			if holds, err := d.Holds(role, of.param); err != nil {
				return err
			} else if holds {
				return of.why
			}
		}
		return errEarlier
	case m.Models[role].Hops != nil:
		return errEarlier
	}
	return errUntold
}

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
	return func(v int32) ([]int32, []float32) { return inc.in[v], nil }
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
	// New rows are there even where the node was deleted before anybody saw it.
	moved := map[int32]bool{}
	for _, v := range c.nodes {
		moved[v] = true
	}
	for v := int32(inc.n); int(v) < next.rows(); v++ {
		moved[v] = true
	}
	features := slices.Sorted(maps.Keys(moved))
	inc.n = next.rows()
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
				copy(now[int(v)*f.width:], f.row(v))
			}
			return now
		}
		next.logits, next.probabilities = take(old.logits, "logits"), take(old.probabilities, "probabilities")
		return nil
	}

	// What judges edges.
	again := make([]bool, inc.n) // nodes whose pairs are scored again
	mark := func(nodes []int32) {
		for _, v := range nodes {
			again[v] = true
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
		return h.row(v)
	}
	broken := func(v int32) bool { return tooLarge(h.width, row(v)) >= 0 }
	var failed atomic.Bool
	inc.pool.For(len(dirty), 1<<9, kernels.BodyFunc(func(lo, hi int) {
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

// largestMagnitude is that of the features of some nodes.
func largestMagnitude(x *matrix, nodes []int32) (most float64) {
	for _, v := range nodes {
		for _, f := range x.row(int(v)) {
			most = max(most, math.Abs(float64(f)))
		}
	}
	return most
}
