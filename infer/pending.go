package infer

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gsrc-dev/gsrc/runtime/ort"
)

// pending are the answers of a version that are made when they are asked for, from the
// part of the graph that they depend on. When as much time went into that as all answers
// together take, all are made, in the background.
type pending struct {
	r       *Graph
	s       *Snapshot
	entries func() entriesOf // of the graph that the classifier reads

	base  *allAnswers // of an earlier version
	stale []bool      // [rows] which of them may be others now

	full  atomic.Pointer[allAnswers]
	spent atomic.Int64 // nanoseconds that went into single answers since all were made

	mu    sync.Mutex
	known map[int][]float32 // logits and probabilities that were made
}

// allAnswers are those of all rows, [rows, C].
type allAnswers struct{ logits, probabilities []float32 }

// later has the answers of next made when they are asked for, from a refined graph.
// features are nodes with other features, reached those and the ones with other entries.
func (inc *incremental) later(ctx context.Context, old, next *Snapshot, entries func() entriesOf, features, reached []int32) error {
	q := &pending{r: inc.r, s: next, entries: entries, base: inc.base, stale: make([]bool, next.rows()), known: map[int][]float32{}}
	if p := old.pending; p != nil {
		if q.base = p.full.Load(); q.base == nil {
			q.base = p.base
			copy(q.stale, p.stale)
			q.spent.Store(p.spent.Load())
		}
	}
	next.pending = q
	// Features beyond all that the classifier is known to tolerate may be too much for it.
	most := largestMagnitude(&next.x, features)
	if inc.r.hops == nil || most > max(1, inc.bears) {
		if err := ctx.Err(); err != nil {
			return err
		}
		all, err := q.all()
		if err != nil {
			return err
		}
		next.logits, next.probabilities, next.pending = all.logits, all.probabilities, nil
		if v := notFinite(len(inc.r.p.manifest.Classes), all.logits, all.probabilities); v >= 0 {
			return next.notFinite(v)
		}
		bears, base := inc.bears, inc.base
		inc.undoing(func() { inc.bears, inc.base = bears, base })
		inc.bears, inc.base = max(most, inc.bears), all
		return nil
	}
	out := func() func(int32) []int32 { // its edges have no direction
		in := entries()
		return func(v int32) []int32 { from, _ := in(v); return from }
	}
	for range *inc.r.hops {
		if reached = reach(inc.pool, reached, inc.n, inc.n/2, out); reached == nil { // most will be in the end
			for v := range q.stale {
				q.stale[v] = true
			}
			return nil
		}
	}
	for _, v := range reached {
		q.stale[v] = true
	}
	return nil
}

// all classifies the whole graph.
func (q *pending) all() (*allAnswers, error) {
	in := q.entries()
	var src, dst []int64
	var weight []float32
	for v := range int32(q.s.rows()) {
		from, w := in(v)
		for _, u := range from {
			src, dst = append(src, int64(u)), append(dst, int64(v))
		}
		weight = append(weight, w...)
	}
	e := int64(len(src))
	weights := ort.Float32s(weight, e)
	logits, probabilities, err := q.r.p.classify(q.s.rows(), ort.Float32s(q.s.features(), int64(q.s.rows()), int64(q.s.x.cols)), ort.Int64s(append(src, dst...), 2, e), &weights, nil)
	return &allAnswers{logits, probabilities}, err
}

// rows returns the rows of the nodes' answers, and in what they are rows.
func (q *pending) rows(nodes []int) (rows []int, logits, probabilities []float32, err error) {
	if all := q.full.Load(); all != nil {
		return nodes, all.logits, all.probabilities, nil
	}
	c := len(q.r.p.manifest.Classes)
	rows, at := make([]int, len(nodes)), map[int]int{}
	var made []int // rows of nodes that are computed now
	q.mu.Lock()
	for i, v := range nodes {
		row, seen := at[v]
		if !seen {
			row = len(at)
			at[v] = row
			known := q.known[v]
			switch {
			case known != nil:
				logits, probabilities = append(logits, known[:c]...), append(probabilities, known[c:]...)
			case !q.stale[v]:
				logits, probabilities = append(logits, q.base.logits[v*c:(v+1)*c]...), append(probabilities, q.base.probabilities[v*c:(v+1)*c]...)
			default:
				made = append(made, v)
				logits, probabilities = append(logits, make([]float32, c)...), append(probabilities, make([]float32, c)...)
			}
		}
		rows[i] = row
	}
	q.mu.Unlock()
	if len(made) == 0 {
		return rows, logits, probabilities, nil
	}
	start := time.Now()
	l, p, err := q.compute(made)
	if err != nil {
		return nil, nil, nil, err
	}
	q.mu.Lock()
	for i, v := range made {
		copy(logits[at[v]*c:], l[i*c:(i+1)*c])
		copy(probabilities[at[v]*c:], p[i*c:(i+1)*c])
		q.known[v] = append(append(make([]float32, 0, 2*c), l[i*c:(i+1)*c]...), p[i*c:(i+1)*c]...)
	}
	q.mu.Unlock()
	if spent := q.spent.Add(int64(time.Since(start))); spent >= q.r.whole.Load() {
		q.r.fill(q)
	}
	return rows, logits, probabilities, nil
}

// compute classifies the part of the graph around nodes; the first rows are theirs.
func (q *pending) compute(nodes []int) (logits, probabilities []float32, err error) {
	sub := cut(q.entries(), nodes, *q.r.hops)
	d := q.s.x.cols
	x := make([]float32, len(sub.Nodes)*d)
	for i, v := range sub.Nodes {
		if v >= 0 {
			copy(x[i*d:], q.s.x.row(v))
		}
	}
	index, weight := sub.Inputs["edge_index"], sub.Inputs["edge_weight"]
	if q.r.p.manifest.EdgeWeight {
		index, weight = gather(index, weight)
	}
	return q.r.p.classify(len(sub.Nodes), ort.Float32s(x, int64(len(sub.Nodes)), int64(d)), index, &weight, nil)
}

// fill makes all answers in the background, unless some are being made already.
func (r *Graph) fill(q *pending) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed || r.filling || q.full.Load() != nil {
		return
	}
	r.filling = true
	go func() {
		start := time.Now()
		all, err := q.all()
		if err == nil {
			q.full.Store(all)
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		r.filling = false
		if err == nil {
			r.whole.Store(int64(time.Since(start)))
		}
		r.idle.Broadcast()
	}()
}
