package train

import (
	"slices"

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
		s.order = indices[int32](len(s.t.nodes))
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
			hops = stepHops(prog, name, hops)
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
