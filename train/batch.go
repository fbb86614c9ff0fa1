package train

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/gsrc-dev/gsrc/data"
	"github.com/gsrc-dev/gsrc/graph"
	"github.com/gsrc-dev/gsrc/internal/scratch"
	"github.com/gsrc-dev/gsrc/ir"
	"github.com/gsrc-dev/gsrc/rng"
	"github.com/gsrc-dev/gsrc/runtime"
	"github.com/gsrc-dev/gsrc/runtime/kernels"
)

// anchorSampler draws the samples of a contrastive step from all nodes, without
// allocating: different ones, evenly, in ascending order. A step's draw depends
// on the stream and the step alone.
type anchorSampler struct {
	device runtime.Device
	s      rng.Stream
	n      int
	out    *runtime.Buffer // [B] i64, on the device
}

// newAnchorSampler draws count of n nodes a step; 0, or more than n, means all.
func newAnchorSampler(d runtime.Device, s rng.Stream, n, count int) (*anchorSampler, error) {
	a := &anchorSampler{device: d, s: s, n: n}
	if count > 0 && count < n {
		a.out = &runtime.Buffer{DType: ir.I64, Dims: []int{count}}
		return a, d.Reserve(a.out, count)
	}
	a.out = runtime.I64(indices[int64](n), n)
	return a, nil
}

// all reports whether every node is a sample of every step.
func (a *anchorSampler) all() bool { return a.out.Dims[0] == a.n }

// draw makes out the samples of a step.
func (a *anchorSampler) draw(step uint64) error {
	if a.all() {
		return nil
	}
	return a.device.DrawAnchors(a.out, a.n, a.s.At(step))
}

// batcher gives the contrastive steps their samples: anchors of the whole graph
// (sampler = full), or the endpoints of seed edges (sampler = edges).
type batcher struct {
	t       *nodeSteps
	bound   int // the step whose batch @pretrain has, −1 if there is none
	full    *anchorSampler
	sampler *graph.EdgeSampler

	// The batch of seed edges, in memory that every step uses again.
	st graph.Structure
	featureRows
	g       *runtime.Buffer
	xStruct *runtime.Buffer
	anchors *runtime.Buffer // [B] i64
	w       *runtime.Buffer // [E] of the entries of g, where edges are judged
}

func newBatcher(t *nodeSteps) (b *batcher, err error) {
	g := t.ds.Graph
	if g.N < 2 {
		return nil, errors.New("train: a contrastive step compares nodes with each other, but the graph has fewer than two")
	}
	b = &batcher{t: t, bound: -1, xStruct: runtime.Zeros(0, 0), anchors: runtime.I64(nil, 0), w: runtime.F32(nil, 0)}
	b.g = runtime.Graph(&b.st)
	b.init(t.ds.X)
	c := t.cfg.Train
	if c.Sampler == "full" {
		b.full, err = newAnchorSampler(t.device, t.stream("anchors"), g.N, c.Anchors)
		return b, err
	}
	hops := cmp.Or(c.Hops, t.cfg.Model.Encoder.Layers)
	b.sampler, err = graph.NewEdgeSampler(g, graph.SamplerOptions{Edges: c.BatchEdges, BatchesPerEpoch: c.Batches, Hops: hops, FanOut: c.FanOut}, t.stream("edges"))
	return b, err
}

// bind gives a contrastive step of @pretrain its batch. With seed edges that is
// the subgraph which the encoder needs for them.
func (b *batcher) bind(f *function, step int) error {
	if b.bound == step {
		return nil
	}
	b.bound = -1
	if err := b.draw(f, step); err != nil {
		return err
	}
	b.bound = step
	return nil
}

// draw draws the batch of a step and binds it.
func (b *batcher) draw(f *function, step int) error {
	if b.full != nil {
		if b.full.all() && b.t.prog.inputs["anchors"] == b.full.out {
			return nil // a device that has them need not get them again
		}
		if err := b.full.draw(uint64(step)); err != nil {
			return fmt.Errorf("train: drawing the samples of step %d: %w", step, err)
		}
		return b.t.prog.bind("anchors", b.full.out)
	}
	batch := b.sampler.Batch(uint64(step))
	b.st.Rebuild(batch.Graph)
	b.g.Graph, b.g.Dims[0], b.g.Dims[1] = &b.st, b.st.N, b.st.E
	b.gather(b.t.ds.X, batch.Nodes)
	b.anchors.I64 = numbers(b.anchors.I64[:0], batch.Anchors)
	b.anchors.Dims[0] = len(batch.Anchors)
	inputs := append(make([]namedBuffer, 0, 5), namedBuffer{"x", b.x}, namedBuffer{"g", b.g}, namedBuffer{"anchors", b.anchors})
	if e := b.t.edges.prior; e != nil && f.reads["w"] {
		b.w.F32 = e.OfEntries(b.w.F32, batch.Graph, &b.st, batch.Nodes)
		b.w.Dims[0] = len(b.w.F32)
		inputs = append(inputs, namedBuffer{"w", b.w})
	}
	if s := b.t.prog.inputs["x_struct"]; s != nil && f.reads["x_struct"] {
		gatherRows(b.xStruct, s.F32, s.Dims[1], batch.Nodes)
		inputs = append(inputs, namedBuffer{"x_struct", b.xStruct})
	}
	return bindRead(f, inputs)
}

// bindWhole gives a step that encodes the whole graph, as @joint does, its
// samples.
func (b *batcher) bindWhole(step int) error {
	b.bound = -1
	if b.full != nil {
		return b.draw(nil, step)
	}
	batch := b.sampler.Batch(uint64(step))
	b.anchors.I64 = answers(b.anchors.I64[:0], batch.Nodes, batch.Anchors)
	b.anchors.Dims[0] = len(batch.Anchors)
	return b.t.prog.bind("anchors", b.anchors)
}

// featureRows are the features of some nodes, in memory that is used again.
type featureRows struct {
	x       *runtime.Buffer
	rows    kernels.CSR // where features are sparse
	columns kernels.CSR // the transpose
	values  []float32
	ahead   *scratch.Ahead // of dense features in a file
}

// init makes the buffer for rows of such features.
func (r *featureRows) init(x *data.Features) {
	r.x, r.ahead = runtime.Zeros(0, 0), scratch.NewAhead(x.Dense)
	if x.IsSparse() {
		r.x = &runtime.Buffer{DType: ir.F32, Dims: make([]int, 2), Sparse: &runtime.SparseMatrix{ByRow: &r.rows, ByCol: &r.columns}}
	}
}

// gather makes x the features of the given nodes.
func (r *featureRows) gather(x *data.Features, nodes []int32) {
	if !x.IsSparse() {
		if r.ahead.Begin() {
			for _, v := range nodes {
				r.ahead.Want(int(v)*x.Cols, (int(v)+1)*x.Cols)
			}
			r.ahead.Read()
		}
		gatherRows(r.x, x.Dense, x.Cols, nodes)
		return
	}
	m := &r.rows
	m.Rows, m.Cols = len(nodes), x.Cols
	m.RowPtr, m.Col, r.values = append(m.RowPtr[:0], 0), m.Col[:0], r.values[:0]
	for _, v := range nodes {
		lo, hi := x.RowPtr[v], x.RowPtr[v+1]
		m.Col = append(m.Col, x.Col[lo:hi]...)
		r.values = append(r.values, x.Val[lo:hi]...)
		m.RowPtr = append(m.RowPtr, int32(len(m.Col)))
	}
	kernels.TransposeTo(&r.columns, m)
	r.x.Sparse.Values = r.values
	r.x.Dims[0], r.x.Dims[1] = m.Rows, m.Cols
}

// gatherRows makes dst the given rows of x, which has width columns.
func gatherRows(dst *runtime.Buffer, x []float32, width int, nodes []int32) {
	if n := len(nodes) * width; cap(dst.F32) < n {
		dst.F32 = nil
		dst.F32 = make([]float32, 0, n+n/16)
	}
	dst.F32 = dst.F32[:0]
	for _, v := range nodes {
		dst.F32 = append(dst.F32, x[int(v)*width:][:width]...)
	}
	dst.Dims[0], dst.Dims[1] = len(nodes), width
}
