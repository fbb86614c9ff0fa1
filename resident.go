package gsrc

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/gsrc-dev/gsrc/data"
	"github.com/gsrc-dev/gsrc/export"
	"github.com/gsrc-dev/gsrc/graph"
	"github.com/gsrc-dev/gsrc/runtime/ort"
)

// ResidentOptions say how a graph is kept for questions about its nodes.
type ResidentOptions struct {
	PredictOptions
	// Subgraphs has every question answered from the part of the graph that it depends
	// on, when it is asked. Otherwise all nodes of a version are classified before it is
	// there, and an answer is looked up: faster, and the graph's size is paid for at every
	// update.
	Subgraphs bool
}

// Resident is a graph that is kept in memory with an export, and answers which class
// its nodes have. It can grow; every state of it is a [Snapshot] with a version. Its
// methods may be called by many goroutines at once.
type Resident struct {
	p         *predictor
	subgraphs bool
	hops      *int
	current   atomic.Pointer[Snapshot]
	numbers   sync.Map // number of a node by its name, of all versions; nil names have none

	mu      sync.Mutex
	waiting []*growing
	busy    bool // somebody works on what waits
}

// Snapshot is one version of a resident graph. It does not change.
type Snapshot struct {
	// Version counts from 1, the graph as it was read.
	Version int64

	r  *Resident
	ds *data.Dataset
	x  ort.Tensor // [N,D]

	// All answers, where they are made ahead.
	logits, probabilities []float32 // [N,C]
	// The graph that the classifier reads, where they are not.
	structure *graph.Structure
	weights   []float32 // by entry
}

// OpenResident reads a graph and makes it ready for questions. The graph that the
// classifier reads is the one that [Predict] would use: the refined edges of the
// training, on the training graph, newly found ones on another.
func OpenResident(ctx context.Context, dist, path string, o ResidentOptions) (*Resident, error) {
	p, err := newPredictor(dist, path, o.PredictOptions)
	if err != nil {
		return nil, err
	}
	p.yield = true
	r := &Resident{p: p, subgraphs: o.Subgraphs}
	info, ok := p.manifest.Models["classifier"]
	if !ok {
		return nil, fmt.Errorf("%s has no classifier", dist)
	}
	if r.hops = info.Hops; r.subgraphs && r.hops == nil {
		return nil, fmt.Errorf("the answers of %s for a node depend on the whole graph, or its models make the graph undirected (--symmetrize), or it was exported by a version of gsrc that does not tell: they cannot be given from sub-graphs", dist)
	}
	if _, err := p.models(ctx); err != nil {
		return nil, err
	}
	for i, name := range p.ds.NodeIDs {
		r.numbers.Store(name, int32(i))
	}
	s := &Snapshot{Version: 1, r: r, ds: p.ds, x: p.x}
	if err := s.prepare(ctx, p); err != nil {
		p.close()
		return nil, err
	}
	// Later versions are other graphs than the training's, and say nothing of it.
	p.o.Log = func(string, ...any) {}
	r.current.Store(s)
	return r, nil
}

// Close frees the models.
func (r *Resident) Close() { r.p.close() }

// Manifest describes the export.
func (r *Resident) Manifest() *export.Manifest { return r.p.manifest }

// Dist is the export, open.
func (r *Resident) Dist() *export.Dist { return r.p.dist }

// Snapshot returns the latest version.
func (r *Resident) Snapshot() *Snapshot { return r.current.Load() }

// prepare does the work of a version that is done before anybody asks. p reads the
// version's data.
func (s *Snapshot) prepare(ctx context.Context, p *predictor) error {
	g, err := p.graph(ctx)
	if err != nil {
		return err
	}
	st := g.Structure()
	weights := st.Spread(nil, g.Weights)
	if s.r.subgraphs {
		s.structure, s.weights = st, weights
		return nil
	}
	s.logits, s.probabilities, err = s.classify(s.x, edgeIndex(st), ort.Float32s(weights, int64(len(weights))))
	return err
}

// classify runs the classifier on a graph or a part of one.
func (s *Snapshot) classify(x, index, weight ort.Tensor) (logits, probabilities []float32, err error) {
	w := &weight
	if !s.r.p.manifest.EdgeWeight { // the export has none: every edge counts the same
		w = nil
	}
	out, err := s.r.p.dist.Classify(x, index, w)
	if err != nil {
		return nil, nil, fmt.Errorf("classifier: %w", err)
	}
	n, c := int(x.Shape[0]), len(s.r.p.manifest.Classes)
	for _, name := range []string{"logits", "probabilities"} {
		if t := out[name]; len(t.Shape) != 2 || int(t.Shape[0]) != n || int(t.Shape[1]) != c {
			return nil, nil, fmt.Errorf("the classifier gave %s of shape %v, want [%d %d]", name, t.Shape, n, c)
		}
	}
	return out["logits"].F32, out["probabilities"].F32, nil
}

// Nodes counts the nodes.
func (s *Snapshot) Nodes() int { return s.ds.Graph.N }

// Edges counts the edges of the data, each undirected one once.
func (s *Snapshot) Edges() int { return s.ds.Graph.NumEdges() }

// Find returns the number of a node by its name.
func (s *Snapshot) Find(name string) (int, bool) {
	if s.ds.NodeIDs == nil {
		v, err := strconv.Atoi(name)
		return v, err == nil && v >= 0 && v < s.Nodes() && strconv.Itoa(v) == name
	}
	v, ok := s.r.numbers.Load(name)
	if !ok || int(v.(int32)) >= s.Nodes() { // of a later version
		return 0, false
	}
	return int(v.(int32)), true
}

// Answer returns logits and probabilities, [len(nodes), classes], of nodes by their
// numbers, which may repeat. They are those of the whole graph: to the bit where
// answers are made ahead, within 1e-5 where they come from sub-graphs.
func (s *Snapshot) Answer(nodes []int) (logits, probabilities []float32, err error) {
	for _, v := range nodes {
		if v < 0 || v >= s.Nodes() {
			return nil, nil, fmt.Errorf("there is no node number %d, there are 0 to %d", v, s.Nodes()-1)
		}
	}
	rows, l, p := nodes, s.logits, s.probabilities
	if s.r.subgraphs && len(nodes) > 0 {
		if rows, l, p, err = s.answerFromSubgraph(nodes); err != nil {
			return nil, nil, err
		}
	}
	c := len(s.r.p.manifest.Classes)
	logits, probabilities = make([]float32, 0, len(nodes)*c), make([]float32, 0, len(nodes)*c)
	for _, i := range rows {
		logits, probabilities = append(logits, l[i*c:(i+1)*c]...), append(probabilities, p[i*c:(i+1)*c]...)
	}
	return logits, probabilities, nil
}

// answerFromSubgraph classifies the part of the graph around nodes; rows are theirs.
func (s *Snapshot) answerFromSubgraph(nodes []int) (rows []int, logits, probabilities []float32, err error) {
	row := make(map[int]int, len(nodes))
	var seeds []int
	for _, v := range nodes {
		i, ok := row[v]
		if !ok {
			i = len(seeds)
			row[v], seeds = i, append(seeds, v)
		}
		rows = append(rows, i)
	}
	sub := cut(s.structure, s.weights, seeds, *s.r.hops)
	d := int(s.x.Shape[1])
	x := make([]float32, len(sub.Nodes)*d)
	for i, v := range sub.Nodes {
		if v >= 0 {
			copy(x[i*d:], s.x.F32[v*d:(v+1)*d])
		}
	}
	index, weight := sub.Inputs["edge_index"], sub.Inputs["edge_weight"]
	if s.r.p.manifest.EdgeWeight {
		index, weight = gather(index, weight)
	}
	logits, probabilities, err = s.classify(ort.Float32s(x, int64(len(sub.Nodes)), int64(d)), index, weight)
	return rows, logits, probabilities, err
}

// ErrFixedGraph is returned where a resident graph cannot grow.
var ErrFixedGraph = errors.New("this graph cannot grow: the model's encoder reads structural attributes, whose columns mean something for the training graph only; train with --set deepwalk.width=0 for a model that serves other graphs")

// Growth is what is added to a resident graph.
type Growth struct {
	// X are the features of new nodes, [new, D], row after row.
	X []float32
	// IDs name the new nodes. Where the data have no names they may be left out; given
	// ones must be the next numbers.
	IDs []string
	// Sources and Targets name the ends of new edges, old nodes or new ones. Edges that
	// are there already and self-loops are left out.
	Sources, Targets []string
}

// GrowthError says what is wrong with a [Growth].
type GrowthError struct{ Reason string }

func (e *GrowthError) Error() string { return e.Reason }

func badGrowth(format string, args ...any) error { return &GrowthError{fmt.Sprintf(format, args...)} }

// growing is a growth that waits.
type growing struct {
	Growth
	done chan struct{}
	s    *Snapshot
	err  error
}

// Grow adds nodes and edges, and returns the first version that has them. Calls at
// the same time may share a version. The error is a *[GrowthError] where it is the
// caller's fault; nothing is then added. When ctx ends while the new version is
// worked on, Grow returns, and the version comes nevertheless.
func (r *Resident) Grow(ctx context.Context, g Growth) (*Snapshot, error) {
	if r.p.info.Graph == "refined" && !r.p.manifest.Inductive {
		return nil, ErrFixedGraph
	}
	mine := &growing{Growth: g, done: make(chan struct{})}
	r.mu.Lock()
	r.waiting = append(r.waiting, mine)
	if !r.busy {
		r.busy = true
		go r.growAll()
	}
	r.mu.Unlock()
	select {
	case <-mine.done:
		return mine.s, mine.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// growAll makes versions until nothing waits.
func (r *Resident) growAll() {
	for {
		r.mu.Lock()
		all := r.waiting
		r.waiting = nil
		r.busy = len(all) > 0
		r.mu.Unlock()
		if len(all) == 0 {
			return
		}
		r.grow(all)
	}
}

// grow makes one version of all growths that can be made.
func (r *Resident) grow(all []*growing) {
	old := r.current.Load()
	d := newDraft(old)
	var made []*growing
	for _, g := range all {
		if g.err = d.add(g.Growth); g.err == nil {
			made = append(made, g)
		}
	}
	var next *Snapshot
	var err error
	if len(made) > 0 {
		next, err = d.finish()
	}
	if err == nil && next != nil {
		for name, v := range d.names {
			r.numbers.Store(name, v)
		}
		r.current.Store(next)
	}
	for _, g := range made {
		g.s, g.err = next, err
	}
	for _, g := range all {
		close(g.done)
	}
}

// draft is a version in the making. Rows are appended behind those of the version
// before, whose readers do not look there.
type draft struct {
	old      *Snapshot
	ds       data.Dataset
	x        []float32
	src, dst []int32
	names    map[string]int32
}

func newDraft(old *Snapshot) *draft {
	return &draft{old: old, ds: *old.ds, x: old.x.F32, names: map[string]int32{}}
}

func (d *draft) nodes() int { return len(d.ds.Labels) }

// find returns the number of a node of the draft.
func (d *draft) find(name string, fresh map[string]int32) (int32, bool) {
	if v, ok := fresh[name]; ok {
		return v, true
	}
	if v, ok := d.names[name]; ok {
		return v, true
	}
	v, ok := d.old.Find(name)
	return int32(v), ok
}

// add checks a growth and adds all of it or nothing.
func (d *draft) add(g Growth) error {
	width := d.ds.X.Cols
	if width == 0 || len(g.X)%width != 0 {
		return badGrowth("%d numbers are no rows of %d features", len(g.X), width)
	}
	count := len(g.X) / width
	if len(g.IDs) != 0 && len(g.IDs) != count || len(g.IDs) == 0 && d.ds.NodeIDs != nil && count > 0 {
		return badGrowth("%d names for %d new nodes", len(g.IDs), count)
	}
	if len(g.Sources) != len(g.Targets) {
		return badGrowth("%d sources and %d targets: an edge has one of each", len(g.Sources), len(g.Targets))
	}
	if count == 0 && len(g.Sources) == 0 {
		return badGrowth("there is nothing to add")
	}
	for i, v := range g.X {
		if v-v != 0 {
			return badGrowth("feature %d of new node %d is %v; features are finite", i%width, i/width, v)
		}
	}
	fresh := make(map[string]int32, count)
	for i := range count {
		number := d.nodes() + i
		name := strconv.Itoa(number)
		if len(g.IDs) > 0 {
			if d.ds.NodeIDs == nil && g.IDs[i] != name {
				return badGrowth("new node %d is called %q; the nodes of these data are called by their numbers, and the next is %s", i, g.IDs[i], name)
			}
			name = g.IDs[i]
		}
		if _, taken := d.find(name, fresh); taken || name == "" {
			return badGrowth("new node %d is called %q: a name is not empty, and no other node has it", i, name)
		}
		fresh[name] = int32(number)
	}
	ends := func(names []string) ([]int32, error) {
		list := make([]int32, len(names))
		for i, name := range names {
			v, ok := d.find(name, fresh)
			if !ok {
				return nil, badGrowth("edge %d ends at %q, and there is no such node", i, name)
			}
			list[i] = v
		}
		return list, nil
	}
	src, err := ends(g.Sources)
	if err != nil {
		return err
	}
	dst, err := ends(g.Targets)
	if err != nil {
		return err
	}
	d.src, d.dst = append(d.src, src...), append(d.dst, dst...)
	for range count {
		d.ds.Labels = append(d.ds.Labels, -1)
	}
	if d.ds.NodeIDs != nil {
		d.ds.NodeIDs = append(d.ds.NodeIDs, g.IDs...)
	}
	d.x = append(d.x, g.X...)
	for name, v := range fresh {
		d.names[name] = v
	}
	return nil
}

// finish makes the draft a version.
func (d *draft) finish() (*Snapshot, error) {
	old := d.old.ds.Graph
	src, dst := make([]int32, 0, len(old.Edges)+len(d.src)), make([]int32, 0, len(old.Edges)+len(d.src))
	for _, e := range old.Edges {
		src, dst = append(src, e[0]), append(dst, e[1])
	}
	weights := old.Weights
	if weights != nil {
		weights = append(make([]float32, 0, cap(src)), weights...)
		for range d.src {
			weights = append(weights, 1)
		}
	}
	n := d.nodes()
	g, _, err := graph.Build(n, append(src, d.src...), append(dst, d.dst...), weights, old.Directed)
	if err != nil {
		return nil, err
	}
	d.ds.Graph, d.ds.Checksum = g, "" // no longer what was read
	width := d.ds.X.Cols
	d.ds.X = d.ds.X.Append(d.x[d.old.Nodes()*width:])
	s := &Snapshot{Version: d.old.Version + 1, r: d.old.r, ds: &d.ds, x: ort.Float32s(d.x, int64(n), int64(width))}
	p := *s.r.p
	p.ds, p.x = s.ds, s.x
	return s, s.prepare(context.Background(), &p)
}
