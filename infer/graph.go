package infer

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/gsrc-dev/gsrc/data"
	"github.com/gsrc-dev/gsrc/export/manifest"
	"github.com/gsrc-dev/gsrc/graph"
	"github.com/gsrc-dev/gsrc/internal/budget"
	"github.com/gsrc-dev/gsrc/runtime/ort"
)

// GraphOptions say how a graph is kept for questions about its nodes.
type GraphOptions struct {
	PredictOptions
	// ReadOnly refuses updates with [ErrReadOnly], and saves the time and memory to prepare for
	// them.
	ReadOnly bool
	// Exact has every version recomputed as a whole: its answers are then those of
	// [Predict] to the bit, and the graph's size is paid for at every update. Otherwise
	// only what an update reaches is computed again, and answers are within 1e-5 of them.
	Exact bool
	// Journal is a folder in which updates are kept, so that the graph is the same when it
	// is opened again; without one they are forgotten. It belongs to one export and one
	// data set, and one process uses it at a time.
	Journal string
	// Memory is how many bytes the graph and what answers for it may take; an update that
	// would take more is refused with a *[GrowthError]. 0 is no limit. Reading the data has
	// one of its own, Load.MaxBytes.
	Memory int64
}

// Graph is a graph that is kept in memory with an export, and answers which class
// its nodes have. It can be changed by [Graph.Update]; every state of it is a
// [Snapshot] with a version. Its methods may be called by many goroutines at once.
type Graph struct {
	p       *predictor // without the data, which the versions hold
	hops    *int
	fixed   error // why it takes no updates, nil where it does
	current atomic.Pointer[Snapshot]
	held    *atomic.Int64 // versions in memory; of its own, or the cleanup of the last one would keep the graph
	numbers sync.Map      // number of a node by its name, of all versions; nil names have none
	advance advance
	log     func(format string, args ...any)
	scratch []float32    // the features of the version that is being made
	inc     *incremental // nil where every version is computed as a whole
	whole   atomic.Int64 // nanoseconds that it takes to classify all nodes
	budget  *budget.Budget
	more    struct{ node, edge int64 } // bytes that inc has of each
	models  *modelMemory

	journal *journal // nil without
	labels  []string // of the nodes of the data
	memory  *budget.Reservation

	mu      sync.Mutex
	keys    keys
	waiting []*attempt
	busy    bool // somebody works on what waits, or has it wait
	closed  bool
	filling bool      // a version's answers are being made in the background
	idle    sync.Cond // signalled when busy or filling ends
}

// advance gives a version that is being made its answers. old is the version before,
// and c what next has changed; both are nil for the first version, which knows nothing
// to start from. Versions are made one at a time. Where it returns an error the version
// is dropped, and the next one starts from old again.
type advance func(ctx context.Context, old, next *Snapshot, c *changes) error

// Snapshot is one version of an online graph. It does not change, and refers to no
// other version.
//
// To others a node has a number, which no update changes: that of a deleted node stays free.
// Here everything is by rows, which ascend as the numbers do. A row of a deleted node is there until
// [Graph.condense].
type Snapshot struct {
	// Version counts from 1, the graph as it was read.
	Version int64

	r       *Graph
	graph   *graph.Graph // of all rows; deleted nodes have no edges
	x       matrix       // [rows, D]; rows of deleted nodes say nothing
	ids     []string     // [rows], or nil if nodes are called by their numbers
	deleted bitset
	numbering
	checksum string // of the data that it was read from; "" once it was changed

	logits, probabilities []float32 // [rows, C], where they are made ahead
	pending               *pending  // where they are not
}

// OpenGraph reads a graph and makes it ready for questions. The graph that the
// classifier reads is the one that [Predict] would use: the refined edges of the
// training, on the training graph, newly found ones on another.
func OpenGraph(ctx context.Context, dist, path string, o GraphOptions) (*Graph, error) {
	var b *budget.Budget
	if o.Memory < 0 {
		return nil, fmt.Errorf("the memory of an online graph is %d bytes; give a positive number, or 0 for no limit", o.Memory)
	} else if o.Memory > 0 {
		b = budget.New(o.Memory)
	}
	return OpenGraphWithin(ctx, b, dist, path, o)
}

// OpenGraphWithin is [OpenGraph] in the memory of a budget that others share; o.Memory is not
// read. A nil budget has no limit.
func OpenGraphWithin(ctx context.Context, b *budget.Budget, dist, path string, o GraphOptions) (_ *Graph, err error) {
	p, err := newPredictor(dist, path, o.PredictOptions)
	if err != nil {
		return nil, err
	}
	if err := p.refuseLabels("an online graph"); err != nil {
		return nil, err
	}
	p.online = true
	r := &Graph{p: p, held: new(atomic.Int64), budget: b, log: p.o.Log}
	r.idle.L = &r.mu
	defer func() {
		if err != nil {
			r.Close()
		}
	}()
	r.advance = r.exact
	info, ok := p.manifest.Models["classifier"]
	if !ok {
		return nil, fmt.Errorf("%s has no classifier", dist)
	}
	r.hops = info.Hops
	if !p.onTrainingGraph() {
		if err := p.refinesOthers(); err != nil {
			return nil, err
		}
	}
	if err := p.models(ctx); err != nil {
		return nil, err
	}
	if r.budget != nil {
		if r.models, err = p.memoryOf(p.answering(p.info.Graph == "refined" && (!o.ReadOnly && p.refinesOthers() == nil || !p.onTrainingGraph()))...); err != nil {
			return nil, err
		}
	}
	for i, name := range p.ds.NodeIDs {
		r.numbers.Store(name, int32(i))
	}
	s := &Snapshot{Version: 1, r: r, graph: p.ds.Graph, x: matrixOf(p.x.F32, p.ds.X.Cols), ids: p.ds.NodeIDs, checksum: p.ds.Checksum, numbering: numbering{next: p.ds.Graph.N}}
	names := ClassNames(p.ds.ClassNames, p.ds.Classes)
	r.labels = make([]string, len(p.ds.Labels))
	for v, c := range p.ds.Labels {
		if c >= 0 {
			r.labels[v] = names[c]
		}
	}
	if o.Journal != "" {
		if s, err = r.openJournal(o.Journal, s, p.ds); err != nil {
			return nil, err
		}
	}
	// The versions have the data now, and only those that are in use are to be held.
	p.ds, p.x = &data.Dataset{Name: p.ds.Name, Source: p.ds.Source}, ort.Tensor{}
	if err := r.answer(ctx, nil, s, nil); err != nil {
		return nil, err
	}
	if err := r.prepare(s, o); err != nil {
		return nil, err
	}
	// Later versions are other graphs than the training's, and say nothing of it.
	p.o.Log = func(string, ...any) {}
	r.show(s)
	return r, nil
}

// Close waits for the version that is being made, and frees the models. No method may
// be called after it but Update and Compact, which fail.
func (r *Graph) Close() {
	r.mu.Lock()
	r.closed = true
	for r.busy || r.filling {
		r.idle.Wait()
	}
	r.mu.Unlock()
	if r.inc != nil {
		r.inc.close()
	}
	if r.journal != nil {
		r.journal.close()
	}
	r.memory.Release()
	r.p.close()
}

// prepare makes ready for updates, where they are taken.
func (r *Graph) prepare(s *Snapshot, o GraphOptions) error {
	switch r.fixed = nil; {
	case r.p.info.Graph == "refined" && !r.p.manifest.Inductive:
		r.fixed = fmt.Errorf("%w: the model gave each edge of its training graph a weight of its own", ErrFixedGraph)
		if _, apart := r.p.manifest.Models["scorer"]; apart {
			r.fixed = fmt.Errorf("%w: the model's encoder reads structural attributes, whose columns mean something for its training graph only; train with --set deepwalk.width=0 for one that serves other graphs", ErrFixedGraph)
		}
	case o.ReadOnly:
		r.fixed = ErrReadOnly
	}
	if r.fixed != nil || o.Exact {
		return nil
	}
	if v := tooLarge(s.x.cols, s.features()); v >= 0 {
		r.p.o.Log("updates may be refused until node %q is deleted or changed: its features %s", s.name(v), tooLargeText)
	}
	r.more.node, r.more.edge = r.incrementalBytes(s)
	if err := r.grow(s); err != nil {
		return err
	}
	inc, err := newIncremental(r, s)
	if _, whole := errors.AsType[wholeError](err); whole {
		r.p.o.Log("every update computes the whole graph anew: %v", err)
		inc.close()
		r.more.node, r.more.edge = 0, 0
		r.memory.Shrink(r.memory.Bytes() - r.bytes(s))
		return nil
	}
	if err != nil {
		inc.close()
		return err
	}
	if line := searchNote(&r.p.info, s.Nodes()); line != "" {
		r.p.o.Log("%s", line)
	}
	if r.hops == nil {
		r.p.o.Log("every update classifies the whole graph anew: the classifier does not say how far it sees")
	}
	r.inc, r.advance = inc, inc.advance
	r.more.node, r.more.edge = r.incrementalBytes(s)
	return r.grow(s)
}

// searchNote says where candidates are searched otherwise than by gsrc predict, if they are.
func searchNote(info *Info, nodes int) string {
	if info.Graph != "refined" || nodes <= graph.ApproximateAbove {
		return ""
	}
	return fmt.Sprintf("the graph has %d nodes: the first version finds candidates as gsrc predict does above %d, by an index that misses some, and versions after an update find them exactly; with --exact all find them as gsrc predict does", nodes, graph.ApproximateAbove)
}

// ReadsWeights reports whether the model reads weights of edges.
func (r *Graph) ReadsWeights() bool { return r.p.info.ReadsWeights() }

// Manifest describes the export.
func (r *Graph) Manifest() *manifest.Manifest { return r.p.manifest }

// Fixed returns the error with which updates are refused, nil where they are taken.
func (r *Graph) Fixed() error { return r.fixed }

// show makes a version the latest.
func (r *Graph) show(s *Snapshot) {
	r.held.Add(1)
	runtime.AddCleanup(s, func(held *atomic.Int64) { held.Add(-1) }, r.held)
	r.current.Store(s)
}

// Versions counts the versions in memory: the latest, those that are being read, and
// those that the garbage collector has not come to.
func (r *Graph) Versions() int { return int(r.held.Load()) }

// Snapshot returns the latest version.
func (r *Graph) Snapshot() *Snapshot { return r.current.Load() }

// answer gives a version its answers, and refuses it where one of them is no number.
func (r *Graph) answer(ctx context.Context, old, next *Snapshot, c *changes) error {
	if err := r.grow(next); err != nil {
		return err
	}
	if err := r.advance(ctx, old, next, c); err != nil {
		return err
	}
	return next.finite()
}

// GrowthError says that a graph would take more memory than it may.
type GrowthError struct {
	Nodes, Edges int // of the graph
	Err          error
}

func (e *GrowthError) Error() string {
	return fmt.Sprintf("the graph would have %d nodes and %d edges, and %v", e.Nodes, e.Edges, e.Err)
}

func (e *GrowthError) Unwrap() error { return e.Err }

// grow takes the memory that a version needs, before it is made. One that shrinks gives none back
// until [Graph.condense]: what it took is in use.
func (r *Graph) grow(s *Snapshot) error {
	more := r.bytes(s) - r.memory.Bytes()
	if r.memory == nil {
		var err error
		if r.memory, err = r.budget.Reserve("the online graph", r.bytes(s)); err != nil {
			return &GrowthError{s.Nodes(), s.Edges(), err}
		}
	} else if more > 0 {
		if err := r.memory.Grow(more); err != nil {
			return &GrowthError{s.Nodes(), s.Edges(), err}
		}
	}
	return nil
}

// bytes estimates how much memory a graph takes when its next version is made: features
// and what is written to make them one tensor, edges and answers of two versions, and
// what the classifier has between its layers.
func (r *Graph) bytes(s *Snapshot) int64 {
	n, e, widest := int64(s.rows()), int64(s.Edges()), r.widest(s)
	node := r.more.node + 2*4*int64(s.x.cols) + 2*8*int64(len(r.p.manifest.Classes)) + 4*4*widest + 128
	edge := r.more.edge + int64(2*8+2*2*(8+4+4+4)+4*16)
	return n*node + e*edge + r.models.bytes(s.graph)
}

// widest is the largest width of what models give for a node.
func (r *Graph) widest(s *Snapshot) int64 {
	widest := int64(len(r.p.manifest.Classes))
	for _, m := range r.p.manifest.Models {
		for _, t := range slices.Concat(m.Inputs, m.Outputs) {
			if len(t.Shape) == 2 {
				if w, ok := t.Shape[1].(float64); ok && int64(w) != int64(s.x.cols) {
					widest = max(widest, int64(w))
				}
			}
		}
	}
	return widest
}

// incrementalBytes estimates what [incremental] holds of each node and edge, with what one
// update keeps to take itself back.
func (r *Graph) incrementalBytes(s *Snapshot) (node, edge int64) {
	role, lists := "classifier", int64(1)
	if s.graph.Directed {
		lists = 3
	}
	node, edge = 2*24*lists, 2*4*lists // neighbours
	if r.p.info.Graph == "refined" {
		role = "encoder"
		k := int64(r.p.info.K)
		node += graph.NearBytes(int(r.widest(s)), r.p.info.K)
		two := int64(r.p.info.TwoStep)
		node += 3*24 + 2*2*12*(k+two) + 8*two + 64 // links in the rows of both ends, and answers that are made
		edge += 2 * 2 * 12
	}
	// The levels' values. How wide those between are is known once they are made.
	values := 2 * r.widest(s)
	for _, role := range []string{role, "scorer"} {
		if st := r.p.manifest.Models[role].Stages; st != nil {
			for _, level := range st.Values {
				values += int64(len(level)) * r.widest(s)
			}
		}
	}
	if r.inc != nil {
		values = 0
		for _, l := range r.inc.layers() {
			for _, f := range l.values {
				values += int64(f.width)
			}
		}
	}
	node += 2 * 4 * values
	return node, edge
}

// exact is the [advance] that recomputes everything, exactly as [Predict] does.
func (r *Graph) exact(ctx context.Context, old, next *Snapshot, _ *changes) error {
	p := *r.p
	var rows []int32
	p.ds, rows = next.dataset(&r.scratch)
	p.x = Features(p.ds)
	g, err := p.graph(ctx)
	if err != nil {
		return err
	}
	index, weights := WeightedEdges(g)
	next.logits, next.probabilities, err = p.classify(g.N, p.x, index, &weights, nil)
	if err == nil && rows != nil {
		c := len(r.p.manifest.Classes)
		next.logits, next.probabilities = scatter(next.logits, rows, next.rows(), c), scatter(next.probabilities, rows, next.rows(), c)
	}
	return err
}

// dataset returns the graph as [Predict] reads it: without the deleted nodes, so that
// the rest move up. rows tells which row each of its nodes has here, nil where
// none was deleted. The features may be in the memory of scratch.
func (s *Snapshot) dataset(scratch *[]float32) (ds *data.Dataset, rows []int32) {
	ds = &data.Dataset{Name: s.r.p.ds.Name, Source: s.r.p.ds.Source, Checksum: s.checksum, Graph: s.graph, NodeIDs: s.ids}
	x := s.x.whole
	if s.deleted.count > 0 {
		rows, ds.Graph = s.living()
		x = nil
	}
	if s.deleted.count > 0 || s.numbers != nil {
		ds.NodeIDs = make([]string, 0, s.Nodes())
		for v := range s.rows() {
			if !s.deleted.has(v) {
				ds.NodeIDs = append(ds.NodeIDs, s.name(v))
			}
		}
	}
	if x == nil {
		*scratch = s.x.appendRows((*scratch)[:0], s.deleted.has)
		x = *scratch
	}
	ds.X = &data.Features{Rows: s.Nodes(), Cols: s.x.cols, Dense: x}
	return ds, rows
}

// living returns the rows of the nodes that are not deleted, and the graph of these.
func (s *Snapshot) living() (rows []int32, g *graph.Graph) {
	rows = s.deleted.others(s.rows())
	place := make([]int32, s.rows())
	for i, v := range rows {
		place[v] = int32(i)
	}
	return rows, renumber(s.graph, place, len(rows))
}

// features returns those of all rows, [rows, D], zeros for deleted nodes.
func (s *Snapshot) features() []float32 {
	if s.x.whole != nil && s.deleted.count == 0 {
		return s.x.whole
	}
	x := make([]float32, s.rows()*s.x.cols)
	for v := range s.rows() {
		if !s.deleted.has(v) {
			copy(x[v*s.x.cols:], s.x.row(v))
		}
	}
	return x
}

// scatter writes rows, [len(to), width], to other places among n.
func scatter(rows []float32, to []int32, n, width int) []float32 {
	all := make([]float32, n*width)
	for i, v := range to {
		copy(all[int(v)*width:], rows[i*width:(i+1)*width])
	}
	return all
}

// Numbers is the first number above those of all nodes, deleted ones included.
func (s *Snapshot) Numbers() int { return s.next }

// rows counts the nodes and the deleted ones that still have a row.
func (s *Snapshot) rows() int { return s.graph.N }

// Nodes counts the nodes.
func (s *Snapshot) Nodes() int { return s.graph.N - s.deleted.count }

// Edges counts the edges of the data, each undirected one once.
func (s *Snapshot) Edges() int { return s.graph.NumEdges() }

// name is what the node of a row is called.
func (s *Snapshot) name(v int) string {
	if s.ids == nil {
		return strconv.Itoa(s.number(v))
	}
	return s.ids[v]
}

// NodeError says that a version of a graph has no such node.
type NodeError struct {
	Version int64
	Node    string // its name (the first 200 characters) in quotes, or "number" and its number
	Deleted bool   // an earlier version had it
	Numbers int    // of the version, see [Snapshot.Numbers]
}

func (e *NodeError) Error() string {
	if e.Deleted {
		return fmt.Sprintf("the node %s was deleted; version %d of the graph has it no more", e.Node, e.Version)
	}
	return fmt.Sprintf("version %d of the graph has no node %s; numbers are below %d", e.Version, e.Node, e.Numbers)
}

func (s *Snapshot) noNode(node string, deleted bool) error {
	return &NodeError{Version: s.Version, Node: node, Deleted: deleted, Numbers: s.Numbers()}
}

// numbered reads the name of a node that is called by its number, which is below n.
func numbered(name string, n int) (v int, ok bool) {
	v, err := strconv.Atoi(name)
	return v, err == nil && v >= 0 && v < n && strconv.Itoa(v) == name
}

// numberOf returns the number of a node by its name, though it be deleted.
func (s *Snapshot) numberOf(name string) (v int, ok bool) {
	if s.ids == nil {
		return numbered(name, s.next)
	}
	n, ok := s.r.numbers.Load(name)
	if !ok || int(n.(int32)) >= s.next { // of a later version
		return 0, false
	}
	return int(n.(int32)), true
}

// Find returns the number of a node by its name. The error is a *[NodeError].
func (s *Snapshot) Find(name string) (int, error) {
	v, ok := s.numberOf(name)
	if !ok || s.gone(s.row(v)) {
		return 0, s.noNode(fmt.Sprintf("%.200q", name), ok)
	}
	return v, nil
}

// gone tells whether a row, or −1, is of a deleted node.
func (s *Snapshot) gone(row int) bool { return row < 0 || s.deleted.has(row) }

// Check tells whether there is a node of this number. The error is a *[NodeError].
func (s *Snapshot) Check(number int64) error {
	if inside := number >= 0 && number < int64(s.next); !inside || s.gone(s.row(int(number))) {
		return s.noNode(fmt.Sprintf("number %d", number), inside)
	}
	return nil
}

// Answer returns logits and probabilities, [len(nodes), classes], of nodes by their
// numbers, which may repeat. They are those that [Predict] gives, to the bit for the
// first version and with [GraphOptions.Exact], otherwise within 1e-5. The error is a
// *[NodeError] where there is no such node, and a *[FiniteError] where an answer is no
// number.
func (s *Snapshot) Answer(nodes []int) (logits, probabilities []float32, err error) {
	row := make([]int, len(nodes))
	for i, v := range nodes {
		if err := s.Check(int64(v)); err != nil {
			return nil, nil, err
		}
		row[i] = s.row(v)
	}
	rows, l, p := row, s.logits, s.probabilities
	if s.pending != nil {
		if rows, l, p, err = s.pending.rows(row); err != nil {
			return nil, nil, err
		}
	}
	c := len(s.r.p.manifest.Classes)
	logits, probabilities = make([]float32, 0, len(nodes)*c), make([]float32, 0, len(nodes)*c)
	for _, i := range rows {
		logits, probabilities = append(logits, l[i*c:(i+1)*c]...), append(probabilities, p[i*c:(i+1)*c]...)
	}
	if i := notFinite(c, logits, probabilities); i >= 0 {
		return nil, nil, s.notFinite(row[i])
	}
	return logits, probabilities, nil
}

// ErrFixedGraph is returned where an online graph cannot change.
var ErrFixedGraph = errors.New("this graph cannot change")

// ErrReadOnly is returned where an online graph was opened for questions alone.
var ErrReadOnly = errors.New("this graph takes no updates: it was opened with ReadOnly; open it without to change it")
