package train

import (
	"slices"

	"github.com/gsrc-dev/gsrc/data"
	"github.com/gsrc-dev/gsrc/graph"
	"github.com/gsrc-dev/gsrc/passes"
	"github.com/gsrc-dev/gsrc/runtime"
	"github.com/gsrc-dev/gsrc/runtime/kernels"
)

// graphBatch is a batch of graphs as programs read it, in memory that the next
// one uses again.
type graphBatch struct {
	c       *data.Collection
	share   []float64 // of each class: what a graph of it counts in the loss; nil is 1
	b       data.Batch
	st      graph.Structure // of the union
	members graph.Structure // from nodes to graphs
	weights []float32       // a one for each entry

	featureRows                  // which the batch gathers
	g, batch, labels, targets, w *runtime.Buffer
	present                      *runtime.Buffer // which nodes are no padding

	refined *candidateBatch // nil where edges are not refined
}

func newGraphBatch(c *data.Collection, share []float64) *graphBatch {
	b := &graphBatch{c: c, share: share, labels: runtime.I64(nil, 0), targets: runtime.Zeros(0, c.Classes), w: runtime.Zeros(0), present: runtime.Zeros(0)}
	b.init(c.X)
	b.g, b.batch = runtime.Graph(&b.st), runtime.Block(&b.members)
	return b
}

// refines reports whether a function reads the candidates: in @classify in place of the
// graphs as they are.
func (b *graphBatch) refines(f *function) bool {
	return b.refined != nil && (f.Name() == "classify" || f.reads["c"] || f.reads["p"] || f.reads["old"])
}

// join makes the batch that of the given graphs, with their candidates if refined.
func (b *graphBatch) join(graphs []int32, refined bool) error {
	if _, err := b.c.Batch(&b.b, graphs); err != nil {
		return err
	}
	b.st.Rebuild(b.b.Graph)
	b.g.Dims[0], b.g.Dims[1] = b.st.N, b.st.E
	b.members.RebuildBatchIndex(b.b.Offset)
	b.batch.Dims[0], b.batch.Dims[1], b.batch.Dims[2] = b.members.N, b.members.E, b.st.N
	b.weights = b.st.Spread(b.weights, b.b.Graph.Weights)
	b.w.F32, b.w.Dims[0] = b.weights, b.st.E
	b.answers()
	if refined {
		b.refined.join(graphs, b.c.Offset, b.b.Offset)
	}
	x := b.b.X
	b.x.Dims[0], b.x.Dims[1] = x.Rows, x.Cols
	if !x.IsSparse() {
		b.x.F32 = x.Dense
		return nil
	}
	b.rows.Rows, b.rows.Cols, b.rows.RowPtr, b.rows.Col = x.Rows, x.Cols, x.RowPtr, x.Col
	kernels.TransposeTo(&b.columns, &b.rows)
	b.x.Sparse.Values = x.Val
	return nil
}

// answers makes labels the graphs' classes, and targets the same with class weights; a graph
// without a class, which is predicted and never trained on, has targets of 0.
func (b *graphBatch) answers() {
	l, n := b.labels, len(b.b.Labels)
	l.I64, l.Dims[0] = numbers(l.I64[:0], b.b.Labels), n
	if b.share == nil {
		return
	}
	t, k := b.targets, b.c.Classes
	t.F32, t.Dims[0] = slices.Grow(t.F32[:0], n*k)[:n*k], n
	clear(t.F32)
	for i, v := range b.b.Labels {
		if v >= 0 {
			t.F32[i*k+int(v)] = float32(b.share[v] / float64(n))
		}
	}
}

// pad brings the batch, which was just joined, to one of few sizes, for a function
// that bears it: see [passes.Padded].
func (b *graphBatch) pad(refined bool) {
	nodes, of := b.st.N, runtime.PaddedRows(b.st.N)
	b.present.F32, b.present.Dims[0] = b.present.F32[:0], of
	for range nodes {
		b.present.F32 = append(b.present.F32, 1)
	}
	b.present.F32 = zeros(b.present.F32, of)
	b.st.Pad(of, runtime.PaddedEntries(b.st.E))
	b.g.Dims[0], b.g.Dims[1] = b.st.N, b.st.E
	b.members.PadMembers(of)
	b.batch.Dims[1], b.batch.Dims[2] = of, of
	b.weights = zeros(b.weights, b.st.E)
	b.w.F32, b.w.Dims[0] = b.weights, b.st.E
	if refined {
		b.refined.pad(of)
	}
	x := b.b.X
	x.Rows, b.x.Dims[0] = of, of
	if !x.IsSparse() {
		x.Dense = zeros(x.Dense, of*x.Cols)
		b.x.F32 = x.Dense
		return
	}
	for range of - nodes {
		x.RowPtr = append(x.RowPtr, x.RowPtr[nodes])
	}
	stored := len(x.Val)
	x.Val = zeros(x.Val, runtime.PaddedEntries(stored))
	x.Col = zeros(x.Col, len(x.Val))
	b.columns.Col = zeros(b.columns.Col, len(x.Val))
	for i := stored; i < len(x.Val); i++ {
		b.columns.Perm = append(b.columns.Perm, int32(i))
	}
	b.rows.Rows, b.columns.Cols, b.rows.RowPtr, b.rows.Col = of, of, x.RowPtr, x.Col
	b.x.Sparse.Values = x.Val
}

// zeros appends to x until it has n elements.
func zeros[T float32 | int32](x []T, n int) []T {
	have := len(x)
	x = slices.Grow(x, max(0, n-have))[:max(n, have)]
	clear(x[have:])
	return x
}

// bind gives the batch, joined again, to a function. Where edges are refined, @classify reads the
// candidates in place of the graphs as they are.
func (b *graphBatch) bind(f *function) error {
	refined := b.refines(f)
	if f.padded {
		b.pad(refined)
	}
	g, w := b.g, b.w
	if refined {
		r := b.refined
		if f.Name() == "classify" {
			g, w = r.c, &r.w.Buffer
		}
		if err := bindRead(f, []namedBuffer{{"c", r.c}, {"p", &r.p.Buffer}, {"old", &r.old.Buffer}}); err != nil {
			return err
		}
	}
	return bindRead(f, []namedBuffer{{"x", b.x}, {"g", g}, {"batch", b.batch}, {"labels", b.labels}, {"targets", b.targets}, {"w", w}, {passes.Present, b.present}})
}

// candidateBatch is the candidate edges of a batch's graphs.
type candidateBatch struct {
	*collectionEdges
	g  graph.Graph
	st graph.Structure
	c  *runtime.Buffer
	// Values of the candidates' entries: 1 where the edge exists, the probability, and
	// the weight in the refined graph.
	old, p, w entryValues
}

// entryValues are values per edge and, in the buffer, per entry of a structure.
type entryValues struct {
	runtime.Buffer
	perEdge []float32
}

func newCandidateBatch(e *collectionEdges) *candidateBatch {
	r := &candidateBatch{collectionEdges: e}
	r.c = runtime.Graph(&r.st)
	for _, v := range [...]*entryValues{&r.old, &r.p, &r.w} {
		v.Buffer = *runtime.Zeros(0)
	}
	return r
}

// join takes the candidates of the graphs, whose nodes begin at from[g] in the
// collection and at to[k] in the batch.
func (r *candidateBatch) join(graphs, from, to []int32) {
	e := r.known
	r.g.N, r.g.Edges = int(to[len(graphs)]), r.g.Edges[:0]
	r.old.perEdge, r.p.perEdge, r.w.perEdge = r.old.perEdge[:0], r.p.perEdge[:0], r.w.perEdge[:0]
	for k, g := range graphs {
		shift, lo, hi := to[k]-from[g], r.starts[g], r.starts[g+1]
		for i, ends := range e.cand.Edges[lo:hi] {
			r.g.Edges = append(r.g.Edges, [2]int32{ends[0] + shift, ends[1] + shift})
			old := float32(0)
			if e.cand.Existing[int(lo)+i] {
				old = 1
			}
			r.old.perEdge = append(r.old.perEdge, old)
		}
		r.p.perEdge = append(r.p.perEdge, e.p[lo:hi]...)
		r.w.perEdge = append(r.w.perEdge, r.weights[lo:hi]...)
	}
	r.st.Rebuild(&r.g)
	r.c.Dims[0], r.c.Dims[1] = r.st.N, r.st.E
	for _, v := range [...]*entryValues{&r.old, &r.p, &r.w} {
		v.F32 = r.st.Spread(v.F32, v.perEdge)
		v.Dims[0] = r.st.E
	}
}

// pad appends to the candidates as to the batch, whose nodes they join.
func (r *candidateBatch) pad(nodes int) {
	r.st.Pad(nodes, runtime.PaddedEntries(r.st.E))
	r.c.Dims[0], r.c.Dims[1] = r.st.N, r.st.E
	for _, v := range [...]*entryValues{&r.old, &r.p, &r.w} {
		v.F32 = zeros(v.F32, r.st.E)
		v.Dims[0] = r.st.E
	}
}
