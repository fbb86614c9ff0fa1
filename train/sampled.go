package train

import (
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

// sampled trains @train on batches of training nodes, with neighbours that are drawn.
type sampled struct {
	t       *nodeSteps
	prog    *program // the run's, with inputs of its own
	hops    int      // by which @train is divided; 0 where it computes all rows
	count   []int64  // 0, 1, …
	f       *function
	sampler *graph.NeighborSampler
	stream  rng.Stream // of the neighbours

	nodes, labels []int64 // what is learned from
	order         []int32 // places in these, shuffled
	epoch         int     // whose order it is; −1 if none

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

// sampledBatch is what @train gets.
type sampledBatch struct {
	graph.NeighborBatch
	featureRows
	seeds                           []int32
	g, w, idx, labels, share, loops *runtime.Buffer
	hops                            []sampledHop
	inputs                          []namedBuffer // of @train
}

// sampledHop is what @train gets for a hop: see [passes.ByHop].
type sampledHop struct {
	graph.Structure
	block, rows, entries *runtime.Buffer
}

type namedBuffer struct {
	name string
	*runtime.Buffer
}

// fanOutsOf reads train.fanouts, which is by layer, in the order of hops from the seeds.
func fanOutsOf(c *config.Config, hops int, model string) ([]int, error) {
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
	if len(list) != hops {
		return nil, fmt.Errorf("train: train.fanouts has %d numbers, and %s reads neighbours %d steps away: give as many", len(list), model, hops)
	}
	slices.Reverse(list)
	return list, nil
}

// noSampling is the error of a model that sampled batches cannot train.
func noSampling(t *trainer, why string) error {
	return fmt.Errorf("train: train.sampler=neighbors does not work for %s: %s; take full", t.job.Model, why)
}

// drawnBy returns how many neighbours are drawn of a node, by hop from the seeds.
func drawnBy(t *trainer) (hops int, fanouts []int, err error) {
	if t.prog.Func("train") == nil {
		return 0, nil, noSampling(t, "it learns edges, in steps that read all nodes")
	}
	if hops, err = hopsOf(t.module); err != nil {
		return 0, nil, noSampling(t, err.Error())
	}
	fanouts, err = fanOutsOf(t.cfg, hops, t.job.Model)
	return hops, fanouts, err
}

// hopsOf is how many steps away the nodes are that a prediction of a model reads.
func hopsOf(m *ir.Module) (int, error) {
	p, err := compiler.Compile(m, compiler.Options{Target: compiler.Inference, Funcs: []string{"classify"}})
	if err != nil {
		return 0, err
	}
	return compiledHops(p.Module.Func("classify"))
}

// compiledHops is how many steps away the nodes are that a function reads for one of them.
func compiledHops(f *ir.Func) (int, error) {
	var g *ir.Value
	for _, a := range f.Args {
		if a.Type.IsGraph() {
			g = a
		}
	}
	if g == nil {
		return 0, nil
	}
	depth, most := map[*ir.Value]int{}, 0
	for _, op := range f.Body {
		d := 0
		for i, v := range op.Operands {
			if v == nil || v.Type.IsGraph() {
				continue
			}
			switch op.Reads(i) {
			case ir.ReadAll, ir.ReadPairs:
				if v.Type.Rank() > 0 && slices.Contains(g.Type.Dims, v.Type.Dims[0]) {
					return 0, fmt.Errorf("%s gives every node something of the whole graph", op.Name())
				}
				d = max(d, depth[v])
			case ir.ReadSources:
				d = max(d, depth[v]+1)
			case ir.ReadEntries:
				if v.Def != nil {
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

// sampledModule is the model on weighted edges where it is one of the zoo that counts them,
// or else as it is.
func (n nodeTask) sampledModule(t *trainer) *ir.Module {
	m, err := models.Lookup(t.job.Model)
	if err != nil || t.job.Module != nil || n.Graph.Weights != nil {
		return t.module // a program of the user's
	}
	o := t.cfg.Model
	o.Features, o.Classes, o.StructWidth, o.EdgeWeights = n.X.Cols, n.Classes, t.cfg.DeepWalk.Width, true
	if weighted, err := m.Program(o, false); err == nil {
		return weighted
	}
	return t.module // it has no place for weights
}

// compileSteps puts, for a run on batches, the function of its steps in the place of @train:
// that of the model on weighted edges, whose weights make up for what is not drawn, with
// every value computed for the nodes that reach the seeds ([passes.ByHop]).
func (n nodeTask) compileSteps(t *trainer) error {
	if t.cfg.Train.Sampler != neighbors {
		return nil
	}
	if _, _, err := drawnBy(t); err != nil {
		return err
	}
	old := t.prog.Func("train")
	about := n.DataInfo(t.device, t.cfg, t.split)
	for _, d := range []string{"N", "E", "T"} {
		delete(about.Dims, d)
	}
	o := compiler.Options{Target: compiler.Training, Without: t.opts.Without, Funcs: []string{"train"}, Data: about, Passes: passes.BeforeHops()}
	lowered, err := compiler.Compile(n.sampledModule(t), o)
	if err != nil {
		return err
	}
	divided := lowered.Module.Clone()
	if _, err := passes.ByHop(divided, "train", "train_idx", about); err == nil { // others compute all rows
		lowered.Module = divided
	}
	o.Passes = nil
	prog, err := compiler.Compile(lowered.Module, o)
	if err != nil {
		return err
	}
	return t.prog.Module.Take(prog.Module, "train", old.Attrs.Str(passes.Setup))
}

func newSampled(t *nodeSteps) (*sampled, error) {
	hops, fanouts, err := drawnBy(t.trainer)
	if err != nil {
		return nil, err
	}
	s := &sampled{t: t, sampler: graph.NewNeighborSampler(t.ds.Rows(), fanouts), stream: t.stream("neighbors"), epoch: -1, asked: -1, ask: make(chan request), done: make(chan error, 1)}
	s.prog = &program{Module: t.prog.Module, options: t.prog.options, params: t.optim, fns: map[string]*function{}, inputs: map[string]*runtime.Buffer{"ramp": t.prog.inputs["ramp"]}}
	if s.f, err = s.prog.function("train"); err != nil {
		return nil, err
	}
	for k := range hops {
		if s.f.reads[passes.HopGraph(k)] {
			s.hops = k + 1
		}
	}
	known := []string{"ramp"}
	for i := range s.batches {
		b := &s.batches[i]
		b.init(t.ds.X)
		b.g, b.w, b.share, b.loops = runtime.Graph(&b.Structure), runtime.F32(nil, 0), runtime.Zeros(0, t.ds.Classes), runtime.F32(nil, 0)
		b.idx, b.labels = runtime.I64(nil, 0), runtime.I64(nil, 0)
		b.inputs = []namedBuffer{{"x", b.x}, {"g", b.g}, {"w", b.w}, {"train_idx", b.idx}, {"labels", b.labels}, {"targets", b.share}, {models.SelfLoops, b.loops}}
		b.hops = make([]sampledHop, s.hops)
		for k := range b.hops {
			h := &b.hops[k]
			h.block, h.rows, h.entries = runtime.Block(&h.Structure), runtime.I64(nil, 0), runtime.I64(nil, 0)
			b.inputs = append(b.inputs, namedBuffer{passes.HopGraph(k), h.block}, namedBuffer{passes.HopRows(k), h.rows}, namedBuffer{passes.HopEntries(k), h.entries})
		}
		for _, in := range b.inputs {
			known = append(known, in.name)
		}
		b.inputs = slices.DeleteFunc(b.inputs, func(in namedBuffer) bool { return !s.f.reads[in.name] })
	}
	for _, name := range s.f.Inputs() {
		if !slices.Contains(known, name) && s.f.reads[name] {
			return nil, noSampling(t.trainer, "it reads "+name)
		}
	}
	go s.draw()
	return s, nil
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

// learn sets what is learned from.
func (s *sampled) learn(nodes, labels []int64) {
	s.nodes, s.labels, s.epoch = nodes, labels, -1
}

// fill makes the batch of a step.
func (s *sampled) fill(r request) error {
	b, ds := r.to, s.t.ds
	b.seeds = b.seeds[:0]
	b.idx.I64, b.labels.I64 = b.idx.I64[:0], b.labels.I64[:0]
	for i, at := range r.seeds {
		b.seeds = append(b.seeds, int32(s.nodes[at]))
		b.idx.I64, b.labels.I64 = append(b.idx.I64, int64(i)), append(b.labels.I64, s.labels[at])
	}
	n := len(b.seeds)
	b.idx.Dims[0], b.labels.Dims[0] = n, n
	if err := s.sampler.Sample(&b.NeighborBatch, b.seeds, s.stream.At(uint64(r.step))); err != nil {
		return err
	}
	if s.hops == 0 {
		b.Transpose()
	}
	for k := range b.hops {
		h := &b.hops[k]
		b.Hop(k, &h.Structure)
		h.block.Dims[0], h.block.Dims[1], h.block.Dims[2] = h.N, h.E, h.In.Cols
		for n := len(s.count); n < max(h.N, h.E); n++ {
			s.count = append(s.count, int64(n))
		}
		h.rows.I64, h.rows.Dims[0] = s.count[:h.N], h.N
		h.entries.I64, h.entries.Dims[0] = s.count[:h.E], h.E
	}
	b.g.Dims[0], b.g.Dims[1] = b.N, b.E
	b.w.F32, b.w.Dims[0] = b.Weights, b.E
	b.gather(ds.X, b.Nodes)
	if s.f.reads["targets"] { // what a label counts, by its class, on average over the batches
		shares := shares(s.labels, ds.Classes)
		b.share.F32 = slices.Grow(b.share.F32[:0], n*ds.Classes)[:n*ds.Classes]
		clear(b.share.F32)
		for i, c := range b.labels.I64 {
			count := 1 / float64(n)
			if s.t.cfg.Model.ClassWeights == "balanced" {
				count = shares[c] * float64(len(s.labels)) / float64(n)
			}
			b.share.F32[i*ds.Classes+int(c)] = float32(count)
		}
		b.share.Dims[0] = n
	}
	if s.f.reads[models.SelfLoops] {
		b.loops.F32 = b.loops.F32[:0]
		for _, v := range b.Nodes {
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

// request has the batch of a step drawn.
func (s *sampled) request(step, batch, of int, to *sampledBatch) {
	s.asked = step
	s.ask <- request{step, part(s.order, batch, of), to}
}

// run makes a step on every batch of an epoch, and returns the last loss.
func (s *sampled) run(epoch int) (loss float64, err error) {
	n := partsOf(len(s.nodes), s.t.cfg.Train.BatchNodes)
	if s.epoch != epoch {
		s.order = s.order[:0]
		for i := range s.nodes {
			s.order = append(s.order, int32(i))
		}
		shuffle(s.order, s.t.stream("batches").At(uint64(epoch)))
		s.epoch = epoch
	}
	for i := range n {
		step := epoch*n + i
		b := &s.batches[s.at]
		if s.asked != step {
			s.request(step, i, n, b)
		}
		s.asked = -1
		if err := <-s.done; err != nil {
			return 0, err
		}
		s.at = 1 - s.at
		if i+1 < n {
			s.request(step+1, i+1, n, &s.batches[s.at])
		}
		for _, in := range b.inputs {
			if err := s.f.Bind(in.name, in.Buffer); err != nil {
				return 0, err
			}
		}
		if loss, err = s.t.step(s.f, step); err != nil {
			return 0, err
		}
	}
	return loss, nil
}

// firstBatch draws a batch as those of training, whose sizes stand for all.
func (n nodeTask) firstBatch(prog *ir.Module, cfg *config.Config, split data.Split) (*graph.NeighborBatch, error) {
	hops := 0
	if cfg.Train.FanOuts == "" {
		var err error
		if hops, err = compiledHops(passes.WithSetup(prog, "classify").Func("classify")); err != nil {
			return nil, nil // it is refused when it starts
		}
	} else {
		hops = strings.Count(cfg.Train.FanOuts, ",") + 1
	}
	fanouts, err := fanOutsOf(cfg, hops, prog.Name)
	if err != nil {
		return nil, err
	}
	b := &graph.NeighborBatch{}
	order := slices.Clone(split.Train)
	s := rng.New(uint64(cfg.Train.Seed), "batches")
	shuffle(order, s)
	return b, graph.NewNeighborSampler(n.Rows(), fanouts).Sample(b, order[:min(len(order), cfg.Train.BatchNodes)], s)
}
