package train

import (
	"errors"
	"slices"

	"github.com/gsrc-dev/gsrc/data"
	"github.com/gsrc-dev/gsrc/graph"
	"github.com/gsrc-dev/gsrc/rng"
	"github.com/gsrc-dev/gsrc/runtime"
)

// anchorSampler draws the samples of a contrastive step from all nodes, without
// allocating: different ones, evenly, in ascending order. A step's draw depends
// on the stream and the step alone.
type anchorSampler struct {
	s     rng.Stream
	perm  []int32 // the identity between draws
	swaps []int32
	out   *runtime.Buffer // [B] i64
}

// newAnchorSampler draws count of n nodes a step; 0, or more than n, means all.
func newAnchorSampler(s rng.Stream, n, count int) *anchorSampler {
	if count == 0 || count > n {
		count = n
	}
	a := &anchorSampler{s: s, perm: make([]int32, n), swaps: make([]int32, count), out: runtime.I64(make([]int64, count), count)}
	for i := range a.perm {
		a.perm[i] = int32(i)
	}
	for i := range a.out.I64 {
		a.out.I64[i] = int64(i)
	}
	return a
}

// draw makes out the samples of a step: the first steps of a Fisher–Yates
// shuffle, undone afterwards.
func (a *anchorSampler) draw(step uint64) {
	n, count := len(a.perm), len(a.swaps)
	if count == n {
		return
	}
	s := a.s.At(step)
	for i := range count {
		j := i + s.Intn(uint64(i), n-i)
		a.swaps[i] = int32(j)
		a.perm[i], a.perm[j] = a.perm[j], a.perm[i]
	}
	for i := range count {
		a.out.I64[i] = int64(a.perm[i])
	}
	for i := count - 1; i >= 0; i-- {
		j := a.swaps[i]
		a.perm[i], a.perm[j] = a.perm[j], a.perm[i]
	}
	slices.Sort(a.out.I64)
}

// batcher gives the contrastive steps their samples: anchors of the whole graph
// (sampler = full), or the endpoints of seed edges (sampler = edges).
type batcher struct {
	t       *trainer
	full    *anchorSampler
	sampler *graph.EdgeSampler
}

func (t *trainer) newBatcher() (*batcher, error) {
	g := t.task.Data.Graph
	if g.N < 2 {
		return nil, errors.New("train: a contrastive step compares nodes with each other, but the graph has fewer than two")
	}
	b := &batcher{t: t}
	c := t.cfg.Train
	if c.Sampler == "full" {
		b.full = newAnchorSampler(t.stream("anchors"), g.N, c.Anchors)
		return b, nil
	}
	hops := c.Hops
	if hops == 0 {
		hops = t.cfg.Model.Encoder.Layers
	}
	var err error
	b.sampler, err = graph.NewEdgeSampler(g, graph.SamplerOptions{Edges: c.BatchEdges, BatchesPerEpoch: c.Batches, Hops: hops, FanOut: c.FanOut}, t.stream("edges"))
	return b, err
}

// bind gives a contrastive step of @pretrain its batch. With seed edges that is
// the subgraph which the encoder needs for them.
func (b *batcher) bind(f *function, step int) error {
	if b.full != nil {
		b.full.draw(uint64(step))
		return b.t.bind("anchors", b.full.out)
	}
	batch := b.sampler.Batch(uint64(step))
	x, err := gatherRows(b.t.task.Data.X, batch.Nodes)
	if err != nil {
		return err
	}
	anchors := make([]int64, len(batch.Anchors))
	for i, a := range batch.Anchors {
		anchors[i] = int64(a)
	}
	bound := inputs{"x": x, "g": runtime.Graph(batch.Graph.Structure()), "anchors": runtime.I64(anchors, len(anchors))}
	if s := b.t.inputs["x_struct"]; s != nil {
		width := s.Dims[1]
		rows := make([]float32, 0, len(batch.Nodes)*width)
		for _, v := range batch.Nodes {
			rows = append(rows, s.F32[int(v)*width:][:width]...)
		}
		bound["x_struct"] = runtime.F32(rows, len(batch.Nodes), width)
	}
	for name, v := range bound {
		if f.reads[name] {
			if err := f.Bind(name, v); err != nil {
				return err
			}
		}
	}
	return nil
}

// bindWhole gives a step that encodes the whole graph, as @joint does, its
// samples.
func (b *batcher) bindWhole(step int) error {
	if b.full != nil {
		return b.bind(nil, step)
	}
	batch := b.sampler.Batch(uint64(step))
	anchors := make([]int64, len(batch.Anchors))
	for i, a := range batch.Anchors {
		anchors[i] = int64(batch.Nodes[a])
	}
	return b.t.bind("anchors", runtime.I64(anchors, len(anchors)))
}

// gatherRows returns the given rows of the features.
func gatherRows(x *data.Features, nodes []int32) (*runtime.Buffer, error) {
	if !x.IsSparse() {
		rows := make([]float32, 0, len(nodes)*x.Cols)
		for _, v := range nodes {
			rows = append(rows, x.Dense[int(v)*x.Cols:][:x.Cols]...)
		}
		return runtime.F32(rows, len(nodes), x.Cols), nil
	}
	ptr := make([]int32, 1, len(nodes)+1)
	var col []int32
	var val []float32
	for _, v := range nodes {
		lo, hi := x.RowPtr[v], x.RowPtr[v+1]
		col = append(col, x.Col[lo:hi]...)
		val = append(val, x.Val[lo:hi]...)
		ptr = append(ptr, int32(len(col)))
	}
	return runtime.Sparse(len(nodes), x.Cols, ptr, col, val)
}
