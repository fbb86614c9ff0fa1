package train

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/gsrc-dev/gsrc/compiler"
	"github.com/gsrc-dev/gsrc/config"
	"github.com/gsrc-dev/gsrc/data"
	"github.com/gsrc-dev/gsrc/data/store"
	"github.com/gsrc-dev/gsrc/graph"
	"github.com/gsrc-dev/gsrc/ir"
	"github.com/gsrc-dev/gsrc/models"
	"github.com/gsrc-dev/gsrc/passes"
	"github.com/gsrc-dev/gsrc/rng"
	"github.com/gsrc-dev/gsrc/runtime"
)

// neighbors is the value of train.sampler that trains classifiers on sampled sub-graphs.
const neighbors = "neighbors"

// sampled runs a function that trains on batches of nodes, with neighbours that are drawn:
// @train and @fit on training nodes, @pretrain on anchors, @joint on both.
type sampled struct {
	t       *nodeSteps
	prog    *program // the run's, with inputs of its own
	hops    int      // by which the function is divided; 0 where it computes all rows
	count   []int64  // 0, 1, …
	f       *function
	sampler *graph.NeighborSampler
	stream  rng.Stream // of the neighbours
	others  int        // seeds that are no training nodes
	seen    map[int32]bool
	raw     *graph.NeighborSampler // of the graph, where the other is of candidates that the graph's embeddings judge

	order []int32 // places of training nodes, shuffled
	epoch int     // whose order it is; −1 if none

	batches [2]sampledBatch // a step's, and the next one's, which is drawn meanwhile
	at      int             // the step's
	ask     chan request
	done    chan error
	asked   int // the step that is drawn meanwhile, −1 if none
}

type request struct {
	step  int
	seeds []int32 // places
	to    *sampledBatch
}

// sampledBatch is what the function gets.
type sampledBatch struct {
	graph.NeighborBatch
	featureRows
	seeds                           []int32
	g, w, idx, labels, share, loops *runtime.Buffer
	counted, anchors, xStruct       *runtime.Buffer // numbers of the seeds, of those that are no training nodes
	p, old, evidence                *runtime.Buffer // by entry of candidates
	raw                             graph.NeighborBatch
	rawG, rawW                      *runtime.Buffer
	hops                            []sampledHop
	inputs                          []namedBuffer // of the function
}

// sampledHop is what the function gets for a hop: see [passes.ByHop].
type sampledHop struct {
	graph.Structure
	block, rows, entries *runtime.Buffer
}

// fanOutsOf reads train.fanouts, which is by layer, in the order of hops from the seeds.
// An encoder takes as many from the last one's on as it has layers, the first one's again for more.
func fanOutsOf(c *config.Config, hops int, of, model string) ([]int, error) {
	if c.Train.FanOuts == "" {
		return slices.Repeat([]int{c.Train.FanOut}, hops), nil
	}
	var list []int
	for _, s := range strings.Split(c.Train.FanOuts, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(s))
		if err != nil || n < 0 {
			return nil, fmt.Errorf("train: train.fanouts is %q: give a number for each layer, such as 15,10,5", c.Train.FanOuts)
		}
		list = append(list, n)
	}
	slices.Reverse(list)
	if of == "encode" {
		for len(list) < hops {
			list = append(list, list[len(list)-1])
		}
		list = list[:hops]
	}
	if len(list) != hops {
		return nil, fmt.Errorf("train: %s reads neighbours %d steps away, for each of which train.fanouts needs a number: it has %d", model, hops, len(list))
	}
	return list, nil
}

// noSampling is the error of a model that the sampler's batches cannot train.
func noSampling(t *trainer, sampler, why string) error {
	return fmt.Errorf("train: train.sampler=%s does not work for %s: %s; take full", sampler, t.job.Model, why)
}

// takesSeedEdges reports whether contrastive steps may read a sub-graph around seed edges: they have
// samples, and no candidates, which are the whole graph's.
func takesSeedEdges(m *ir.Module) bool {
	f := m.Func("pretrain")
	return f != nil && f.Arg("anchors") != nil && f.Arg("c") == nil
}

// drawnBy returns how many neighbours are drawn of a node in the steps of a function, by hop from
// the seeds: those of the graph for the encoder, or else those that predictions read, or of these
// the ones by which the function is divided: a loss may read no neighbours that smooth predictions.
func drawnBy(t *trainer, name string) (fanouts []int, err error) {
	of := "classify"
	if name == "pretrain" || name == "encode" {
		of = "encode"
	}
	p, err := compiler.Compile(t.module, compiler.Options{Target: compiler.Inference, Funcs: []string{of}})
	if err != nil {
		return nil, err
	}
	hops, err := compiledHops(p.Module.Func(of))
	if err != nil {
		return nil, noSampling(t, neighbors, err.Error())
	}
	return fanOutsOf(t.cfg, cmp.Or(divided(t.prog.Func(name)), hops), of, t.job.Model)
}

// divided is by how many hops a function is, or 0.
func divided(f *ir.Func) (hops int) {
	if f == nil {
		return 0
	}
	for k := range f.Args {
		if f.Arg(passes.HopGraph(k)) != nil {
			hops = k + 1
		}
	}
	return hops
}

// drawing returns the functions whose steps draw, of those that training runs.
func drawing(m *ir.Module, cfg *config.Config) (names []string) {
	for _, x := range runs(m, cfg) {
		if slices.Contains([]string{"train", "pretrain", "fit", "joint"}, x.name) {
			names = append(names, x.name)
		}
	}
	return names
}

// checkDrawing returns an error if the steps of a model cannot draw.
func checkDrawing(t *trainer) error {
	if !refines(t.prog.Module) {
		return nil
	}
	if t.opts.Device != nil {
		return noSampling(t, neighbors, "what it computes of all nodes and candidates is on the CPU")
	}
	encode := t.prog.Func("encode")
	own := encode == nil || encode.Arg("p") != nil || encode.Result(models.AlsoEmbedding) != nil
	for _, f := range t.module.Funcs {
		samples := slices.ContainsFunc(f.Body, func(op *ir.Op) bool { return op.Name() == "gsr.relaxed_bernoulli" })
		own = own || !samples && (f.Name == "fit" || f.Name == "joint") || f.Name == "similar" || slices.ContainsFunc(f.Results, func(r ir.Result) bool { return strings.HasPrefix(r.Name, models.NextPrefix) })
	}
	if own && !t.edges.fixed {
		return noSampling(t, neighbors, "it learns edges, in steps that read all nodes")
	}
	if t.cfg.Model.Encoder.Cut > 0 && !t.edges.fixed {
		return noSampling(t, neighbors, "what is drawn of a node's edges weighs together what all do, and model.encoder.cut asks what each counts")
	}
	return nil
}

// numbering are arguments of steps that number nodes, in a batch those of the batch.
var numbering = []string{"train_idx", "anchors", passes.DrawnSeeds}

// readsWhole returns an operation of a function that reads a value of all nodes, or of all entries,
// of which a batch has some; nil if there is none. In a step it may take rows by their numbers.
func readsWhole(f *ir.Func, step bool) (*ir.Op, *ir.Value) {
	var rows []ir.Dim
	for _, a := range f.Args {
		if a.Type.IsGraph() {
			rows = append(rows, a.Type.Dims...)
		} else if a.Name == "x" {
			rows = append(rows, a.Type.Dims[0])
		}
	}
	ofRows := func(v *ir.Value) bool {
		return v != nil && !v.Type.IsGraph() && v.Type.Rank() > 0 && slices.Contains(rows, v.Type.Dims[0])
	}
	for _, op := range f.Body {
		if op.Name() == "spmm" && op.Bool("transpose") { // entries out of a node are drawn by chance
			return op, op.Operands[3]
		}
		if step && (op.Name() == "grad" || op.Name() == "gather" && !ofRows(op.Result()) && slices.Contains(numbering, op.Operands[1].Name)) {
			continue
		}
		for i, v := range op.Operands {
			if ofRows(v) && (op.Reads(i) == ir.ReadAll || op.Reads(i) == ir.ReadPairs) {
				return op, v
			}
		}
	}
	return nil, nil
}

// compiledHops is how many steps away the nodes are that a function reads for one of them.
func compiledHops(f *ir.Func) (int, error) {
	if op, _ := readsWhole(f, false); op != nil {
		return 0, fmt.Errorf("%s gives every node something of the whole graph", op.Name())
	}
	depth, most := map[*ir.Value]int{}, 0
	for _, op := range f.Body {
		d := 0
		for i, v := range op.Operands {
			if v == nil || v.Type.IsGraph() {
				continue
			}
			switch op.Reads(i) {
			case ir.ReadSources:
				d = max(d, depth[v]+1)
			case ir.ReadEntries:
				if v.Def != nil && !(f.Name == "encode" && v.Def.Name() == "edge_ones") { // which batches weigh
					d = max(d, depth[v], 1)
				}
			default:
				d = max(d, depth[v])
			}
		}
		for _, r := range op.Results {
			depth[r] = d
		}
		most = max(most, d)
	}
	return most, nil
}

// sampledModule is the model on weighted edges as far as it counts them: that of the zoo as it is built for
// these, a program as [passes.WeighDrawn] has it.
func (n nodeTask) sampledModule(t *trainer, names []string) *ir.Module {
	if m, err := models.Lookup(t.job.Model); err == nil {
		o := n.modelOptions(m, t.cfg)
		if zoo, err := m.Program(o, false); err == nil && zoo.String() == t.module.String() {
			o.EdgeWeights = true
			if weighted, err := m.Program(o, false); err == nil && n.Graph.Weights == nil {
				return weighted
			}
			return t.module // it has no place for weights, or reads those of the data
		}
	}
	given := t.module
	for _, name := range names {
		var all bool
		if given, all = passes.WeighDrawn(given, name); !all && t.opts.Warn != nil && !t.opts.Resume {
			t.opts.Warn(fmt.Sprintf("@%s sums over neighbours with values that no weight of edges reaches, or more than one might: in these sums each of the edges that train.sampler = neighbors draws counts as one, and they are not those of the whole graph; give it the argument %%w: f32[E], multiply the values by it once, and write {edge_weights=true} behind the name of the module", name))
		}
	}
	return given
}

// compileSteps refuses a sampler that the model cannot train by. For a run on batches it puts
// functions of its steps in the place of those on the whole graph: of the model on weighted edges,
// whose weights make up for what is not drawn, with every value computed for the nodes that reach
// the seeds ([passes.ByHop]).
func (n nodeTask) compileSteps(t *trainer) error {
	if t.cfg.Train.Sampler == "edges" && t.edges != nil && !t.edges.fixed && t.prog.takes("anchors") && !takesSeedEdges(t.prog.Module) {
		return noSampling(t, "edges", "its contrastive steps learn edges of all nodes")
	}
	if t.cfg.Train.Sampler != neighbors {
		return nil
	}
	if err := checkDrawing(t); err != nil {
		return err
	}
	names := drawing(t.prog.Module, t.cfg)
	weighted := n.sampledModule(t, names)
	if t.edges != nil && !t.edges.fixed {
		names = append(names, "probability") // over chunks, with bounds of the whole graph
	}
	for _, name := range names {
		if err := n.compileStep(t, name, weighted); err != nil {
			return err
		}
		if _, err := drawnBy(t, name); err != nil {
			return err
		}
	}
	return nil
}

func (n nodeTask) compileStep(t *trainer, name string, from *ir.Module) (err error) {
	seeds := map[string]string{"train": "train_idx", "pretrain": "anchors", "fit": passes.DrawnSeeds}[name]
	if name == "probability" {
		from = t.module
	}
	drawn := from.Clone()
	if err := passes.OnDrawn(drawn, name); err != nil {
		return err
	}
	if t.edges != nil {
		from = drawn
	}
	about := n.DataInfo(t.device, t.cfg, t.split)
	for _, d := range []string{"N", "E", "T", "B"} {
		delete(about.Dims, d)
	}
	o := compiler.Options{Target: compiler.Training, Without: t.opts.Without, Funcs: []string{name}, Data: about, Passes: passes.BeforeHops()}
	lowered, err := compiler.Compile(from, o)
	if err != nil {
		return err
	}
	if name != "probability" {
		o.Passes = append(o.Passes, "dce")
		step, err := compiler.Compile(drawn, o) // also where predictions of all of a batch's nodes are held against each other
		if err != nil {
			return err
		}
		if op, v := readsWhole(step.Module.Func(name), true); op != nil {
			return noSampling(t, neighbors, fmt.Sprintf("@%s reads all rows of %%%s (%s), of which a batch has some; let it read those of training nodes (gather by %%train_idx)", name, v.Name, op.Name()))
		}
	}
	if seeds != "" {
		divided := lowered.Module.Clone()
		if _, err := passes.ByHop(divided, name, seeds, about); err == nil { // others compute all rows
			lowered.Module = divided
		}
	}
	o.Passes = nil
	prog, err := compiler.Compile(lowered.Module, o)
	if err != nil {
		return err
	}
	for _, f := range prog.Module.Funcs {
		for _, a := range f.Args {
			if name != "probability" && !a.Attrs.Bool(passes.Hoisted) && !slices.Contains(drawnInputs, a.Name) && !strings.HasPrefix(a.Name, "hop") {
				return noSampling(t, neighbors, "it reads "+a.Name)
			}
		}
	}
	return t.prog.Module.Take(prog.Module, name, t.prog.Func(name).Attrs.Str(passes.Setup))
}

// drawnInputs are what functions may read of a batch, beside its hops.
var drawnInputs = []string{"x", "g", "w", "c", "p", "old", "evidence", "x_struct", "anchors", "train_idx", "labels", "targets", "ramp", models.SelfLoops,
	passes.DrawnSeeds, passes.DrawnWeights, passes.DrawnLo, passes.DrawnHi}

func newSampled(t *nodeSteps, name string) (*sampled, error) {
	fanouts, err := drawnBy(t.trainer, name)
	if err != nil {
		return nil, err
	}
	s := &sampled{t: t, stream: t.stream("neighbors"), epoch: -1, asked: -1, ask: make(chan request), done: make(chan error, 1), seen: map[int32]bool{}}
	s.prog = &program{Module: t.prog.Module, options: t.prog.options, params: t.optim, fns: map[string]*function{}, inputs: map[string]*runtime.Buffer{"ramp": t.prog.inputs["ramp"]}}
	if s.f, err = s.prog.function(name); err != nil {
		return nil, err
	}
	switch f := s.f; {
	case name == "train":
		rows := t.ds.Rows()
		if t.ds.Graph.Weights != nil && !t.module.Attrs.Bool(models.Weighted) { // what the data's edges weigh is not read
			rows = weighedRows{Rows: rows, weights: func() []float32 { return nil }}
		}
		s.sampler = graph.NewNeighborSampler(rows, fanouts)
	case name == "pretrain":
		s.sampler, s.stream = graph.NewNeighborSampler(rawRows(t), fanouts), t.stream("neighbors of anchors")
	default:
		s.sampler = graph.NewNeighborSampler(weighedRows{t.found.set.Structure(), t.found.set.Structure(), func() []float32 { return t.prog.inputs["p"].F32 }}, fanouts)
		if f.reads["g"] {
			if fanouts, err = drawnBy(t.trainer, "encode"); err != nil {
				return nil, err
			}
			s.raw = graph.NewNeighborSampler(rawRows(t), fanouts)
			s.raw.ByWeight = true
		}
	}
	s.sampler.ByWeight = name != "train"
	s.others = othersOf(s.f.reads, t.cfg, t.ds.Graph.N)
	s.hops = divided(t.prog.Func(name))
	for i := range s.batches {
		b := &s.batches[i]
		b.init(t.ds.X)
		floats, numbers := func() *runtime.Buffer { return runtime.F32(nil, 0) }, func() *runtime.Buffer { return runtime.I64(nil, 0) }
		b.g, b.w, b.share, b.loops = runtime.Graph(&b.Structure), floats(), runtime.Zeros(0, t.ds.Classes), floats()
		b.idx, b.labels, b.counted, b.anchors = numbers(), numbers(), numbers(), numbers()
		b.p, b.old, b.evidence, b.xStruct = floats(), floats(), floats(), runtime.Zeros(0, 0)
		b.rawG, b.rawW = runtime.Graph(&b.raw.Structure), floats()
		b.inputs = []namedBuffer{{"x", b.x}, {"train_idx", b.idx}, {"labels", b.labels}, {"targets", b.share}, {models.SelfLoops, b.loops},
			{passes.DrawnSeeds, b.counted}, {"anchors", b.anchors}, {"x_struct", b.xStruct}}
		if name == "train" || name == "pretrain" {
			b.inputs = append(b.inputs, namedBuffer{"g", b.g}, namedBuffer{"w", b.w})
		} else {
			b.inputs = append(b.inputs, namedBuffer{"c", b.g}, namedBuffer{passes.DrawnWeights, b.w}, namedBuffer{"p", b.p}, namedBuffer{"old", b.old},
				namedBuffer{"evidence", b.evidence}, namedBuffer{"g", b.rawG}, namedBuffer{"w", b.rawW})
		}
		b.hops = make([]sampledHop, s.hops)
		for k := range b.hops {
			h := &b.hops[k]
			h.block, h.rows, h.entries = runtime.Block(&h.Structure), numbers(), numbers()
			b.inputs = append(b.inputs, namedBuffer{passes.HopGraph(k), h.block}, namedBuffer{passes.HopRows(k), h.rows}, namedBuffer{passes.HopEntries(k), h.entries})
		}
	}
	go s.draw()
	return s, nil
}

// othersOf is how many seeds of a step are no training nodes: anchors, or nodes whose
// predictions are held against each other.
func othersOf(reads map[string]bool, cfg *config.Config, nodes int) int {
	switch {
	case reads["anchors"] && cfg.Train.Anchors > 0:
		return min(cfg.Train.Anchors, nodes)
	case reads["anchors"] || reads[passes.DrawnSeeds]:
		return min(cfg.Train.BatchNodes, nodes)
	}
	return 0
}

// weighedRows are rows of a structure, or of what it was made of, whose entries weigh what
// weights gives; nil: ones.
type weighedRows struct {
	graph.Rows
	st      *graph.Structure
	weights func() []float32
}

func (r weighedRows) Row(v int32) (sources []int32, weights []float32, err error) {
	if w := r.weights(); w != nil {
		weights = w[r.st.In.RowPtr[v]:r.st.In.RowPtr[v+1]]
	}
	sources, _, err = r.Rows.Row(v)
	return sources, weights, err
}

// Ahead has rows read from the disk that are asked for next.
func (r weighedRows) Ahead(nodes []int32) {
	if rows, ok := r.Rows.(interface{ Ahead(nodes []int32) }); ok {
		rows.Ahead(nodes)
	}
}

// rawRows are those of the graph whose edges weigh what the encoder takes them for.
func rawRows(t *nodeSteps) graph.Rows {
	st := t.prog.inputs["g"].Graph
	r := weighedRows{st, st, func() []float32 {
		if w := t.prog.inputs["w"]; w != nil {
			return w.F32
		}
		return nil
	}}
	if st.EdgeOf == nil { // it lies in a store
		r.Rows = t.ds.Rows()
	}
	return r
}

// draw makes the batches that are asked for.
func (s *sampled) draw() {
	for r := range s.ask {
		s.done <- store.Guard(func() error { return s.fill(r) })
	}
}

func (s *sampled) close() {
	if s.asked >= 0 {
		<-s.done
	}
	close(s.ask)
	s.prog.close()
}

// fill makes the batch of a step.
func (s *sampled) fill(r request) error {
	b, ds := r.to, s.t.ds
	b.seeds = b.seeds[:0]
	b.idx.I64, b.labels.I64 = b.idx.I64[:0], b.labels.I64[:0]
	for i, at := range r.seeds {
		b.seeds = append(b.seeds, int32(s.t.nodes[at]))
		b.idx.I64, b.labels.I64 = append(b.idx.I64, int64(i)), append(b.labels.I64, s.t.labels[at])
	}
	n := len(b.seeds)
	b.idx.Dims[0], b.labels.Dims[0] = n, n
	stream := s.stream.At(uint64(r.step))
	b.seeds = drawOthers(b.seeds, s.others, ds.Graph.N, s.seen, stream.Sub("seeds"))
	if err := s.sampler.Sample(&b.NeighborBatch, b.seeds, stream); err != nil {
		return err
	}
	b.w.F32, b.w.Dims[0] = b.Weights, b.E
	if s.f.reads["c"] {
		s.ofCandidates(b)
	}
	nodes := b.Nodes
	if s.raw != nil { // and what the embeddings of the candidates' ends are computed from
		if err := s.raw.Sample(&b.raw, b.Nodes, stream.Sub("encode")); err != nil {
			return err
		}
		b.raw.Transpose()
		b.rawG.Dims[0], b.rawG.Dims[1] = b.raw.N, b.raw.E
		b.rawW.F32, b.rawW.Dims[0] = b.raw.Weights, b.raw.E
		nodes = b.raw.Nodes
		b.Extend(len(nodes))
	}
	if s.hops == 0 {
		b.Transpose()
	}
	for k := range b.hops {
		h := &b.hops[k]
		b.Hop(k, &h.Structure)
		h.block.Dims[0], h.block.Dims[1], h.block.Dims[2] = h.N, h.E, h.In.Cols
		h.rows.I64, h.rows.Dims[0] = s.counts(h.N), h.N
		h.entries.I64, h.entries.Dims[0] = s.counts(h.E), h.E
	}
	b.counted.I64, b.counted.Dims[0] = s.counts(len(b.seeds)), len(b.seeds)
	b.anchors.I64, b.anchors.Dims[0] = b.counted.I64[n:], len(b.seeds)-n
	b.g.Dims[0], b.g.Dims[1] = b.N, b.E
	b.gather(ds.X, nodes)
	if x := s.t.prog.inputs["x_struct"]; x != nil && s.f.reads["x_struct"] {
		gatherRows(b.xStruct, x.F32, x.Dims[1], nodes)
	}
	if s.f.reads["targets"] { // what a label counts, by its class, on average over the batches
		shares := shares(s.t.labels, ds.Classes)
		b.share.F32 = slices.Grow(b.share.F32[:0], n*ds.Classes)[:n*ds.Classes]
		clear(b.share.F32)
		for i, c := range b.labels.I64 {
			count := 1 / float64(n)
			if s.t.cfg.Model.ClassWeights == "balanced" {
				count = shares[c] * float64(len(s.t.labels)) / float64(n)
			}
			b.share.F32[i*ds.Classes+int(c)] = float32(count)
		}
		b.share.Dims[0] = n
	}
	if s.f.reads[models.SelfLoops] {
		b.loops.F32 = b.loops.F32[:0]
		for _, v := range nodes {
			loop := float32(-1)
			if ds.Loops != nil {
				loop = ds.Loops[v]
			}
			b.loops.F32 = append(b.loops.F32, loop)
		}
		b.loops.Dims[0] = b.N
	}
	return nil
}

// counts returns 0, 1, …, n − 1.
func (s *sampled) counts(n int) []int64 {
	for i := len(s.count); i < n; i++ {
		s.count = append(s.count, int64(i))
	}
	return s.count[:n]
}

// drawOthers appends so many of the nodes to seeds that are none yet.
func drawOthers(seeds []int32, count, nodes int, seen map[int32]bool, s rng.Stream) []int32 {
	if count == 0 {
		return seeds
	}
	clear(seen)
	for _, v := range seeds {
		seen[v] = true
	}
	few := 2*(len(seeds)+count) < nodes
	var order []int
	if !few {
		order = s.Perm(nodes)
	}
	for i, most := 0, min(len(seeds)+count, nodes); len(seeds) < most; i++ {
		var v int32
		if few {
			v = int32(s.Intn(uint64(i), nodes))
		} else {
			v = int32(order[i])
		}
		if !seen[v] {
			seen[v] = true
			seeds = append(seeds, v)
		}
	}
	return seeds
}

// ofCandidates divides the weights of a batch's entries into the candidates' own
// probabilities, and what they stand for beside them.
func (s *sampled) ofCandidates(b *sampledBatch) {
	c, in := s.t.found.set, s.t.prog.inputs
	p, old := in["p"].F32, c.Old.F32
	var evidence []float32
	if e := in["evidence"]; e != nil {
		evidence = e.F32
	}
	b.p.F32, b.old.F32, b.evidence.F32 = b.p.F32[:0], b.old.F32[:0], b.evidence.F32[:0]
	for i := range b.NeighborBatch.N {
		rows := c.Structure().In.RowPtr[b.Nodes[i]:]
		first := int(rows[0])
		drawn := b.In.RowPtr[i+1]-b.In.RowPtr[i] < rows[1]-rows[0] && !s.f.reads["old"]
		for e := b.In.RowPtr[i]; e < b.In.RowPtr[i+1]; e++ {
			own, isOld, likely := float32(1-1e-6), float32(1), float32(1-1e-6) // of what stands for all entries
			if at := b.At[e]; at >= 0 {
				own, isOld, likely = p[first+int(at)], old[first+int(at)], 1
				if evidence != nil {
					likely = evidence[first+int(at)]
				}
				if drawn { // by their probabilities: there they are
					own = 1 - 1e-6
				}
			}
			if own > 0 {
				b.Weights[e] /= own
			}
			b.p.F32, b.old.F32, b.evidence.F32 = append(b.p.F32, own), append(b.old.F32, isOld), append(b.evidence.F32, likely)
		}
	}
	for _, x := range []*runtime.Buffer{b.p, b.old, b.evidence} {
		x.Dims[0] = b.E
	}
}

// run makes a step on every batch of an epoch, and returns the last loss.
func (s *sampled) run(epoch int) (loss float64, err error) {
	n, first := partsOf(len(s.t.nodes), s.t.cfg.Train.BatchNodes), 0
	if s.t.edges != nil {
		first = s.t.cfg.Train.PretrainSteps
	}
	if s.epoch != epoch {
		s.order = s.order[:0]
		for i := range s.t.nodes {
			s.order = append(s.order, int32(i))
		}
		shuffle(s.order, s.t.stream("batches").At(uint64(epoch)))
		s.epoch = epoch
	}
	for i := range n {
		var next []int32
		if i+1 < n {
			next = part(s.order, i+1, n)
		}
		if loss, err = s.step(first+epoch*n+i, part(s.order, i, n), next, i+1 < n); err != nil {
			return 0, err
		}
	}
	return loss, nil
}

// step makes a step on places of training nodes, and has the batch of the next one drawn
// meanwhile, if there is one.
func (s *sampled) step(step int, seeds, next []int32, more bool) (float64, error) {
	b := &s.batches[s.at]
	if s.asked != step {
		s.ask <- request{step, seeds, b}
	}
	s.asked = -1
	if err := <-s.done; err != nil {
		return 0, err
	}
	s.at = 1 - s.at
	if more {
		s.asked = step + 1
		s.ask <- request{step + 1, next, &s.batches[s.at]}
	}
	err := bindRead(s.f, b.inputs)
	if err == nil && s.f.reads[passes.DrawnLo] {
		err = bindRead(s.f, []namedBuffer{{passes.DrawnLo, runtime.Scalar(s.t.edges.lo)}, {passes.DrawnHi, runtime.Scalar(s.t.edges.hi)}})
	}
	if err != nil {
		return 0, err
	}
	return s.t.step(s.f, step)
}

// firstBatch draws a batch as those of a function, whose sizes stand for all: for @joint one of
// candidates, and around it one of the graph. Of candidates, which nobody knows yet, so many a
// node are new.
func (n nodeTask) firstBatch(prog *ir.Module, name string, cfg *config.Config, split data.Split, fresh int) (list [2]*graph.NeighborBatch, training int, err error) {
	reads := map[string]bool{}
	for _, a := range prog.Func(name).Args {
		reads[a.Name] = true
	}
	seeds := slices.Clone(split.Train)
	s := rng.New(uint64(cfg.Train.Seed), "batches")
	shuffle(seeds, s)
	if seeds = seeds[:min(len(seeds), cfg.Train.BatchNodes)]; name == "pretrain" {
		seeds = nil
	}
	training = len(seeds)
	seeds = drawOthers(seeds, othersOf(reads, cfg, n.Graph.N), n.Graph.N, map[int32]bool{}, s)
	for i, of := range []string{"classify", "encode"} {
		if (of == "encode") != (name == "pretrain") && (of == "classify" || name != "joint") {
			continue
		}
		hops, err := compiledHops(passes.WithSetup(prog, of).Func(of))
		if err != nil {
			return list, 0, nil // it is refused when it starts
		}
		if name != "joint" {
			hops = cmp.Or(divided(prog.Func(name)), hops)
		}
		fanouts, err := fanOutsOf(cfg, hops, of, prog.Name)
		if err != nil {
			return list, 0, err
		}
		rows := n.Rows()
		if i == 0 && fresh > 0 {
			rows = withOthers{rows, fresh}
		}
		list[i] = &graph.NeighborBatch{}
		if err := graph.NewNeighborSampler(rows, fanouts).Sample(list[i], seeds, s); err != nil {
			return list, 0, err
		}
		seeds = list[i].Nodes
	}
	return list, training, nil
}

// withOthers are rows with so many entries more from far away.
type withOthers struct {
	graph.Rows
	more int
}

func (r withOthers) Row(v int32) ([]int32, []float32, error) {
	sources, _, err := r.Rows.Row(v)
	n := r.Nodes()
	sources = slices.Clone(sources)
	for i := 1; i <= r.more; i++ {
		sources = append(sources, int32((int(v)+i*(n*5/8+1))%n))
	}
	return sources, nil, err
}
