package train

import (
	"fmt"
	"math"
	goruntime "runtime"
	"slices"
	"strings"

	"github.com/gsrc-dev/gsrc/config"
	"github.com/gsrc-dev/gsrc/data"
	"github.com/gsrc-dev/gsrc/graph"
	"github.com/gsrc-dev/gsrc/internal/budget"
	"github.com/gsrc-dev/gsrc/ir"
	"github.com/gsrc-dev/gsrc/models"
	"github.com/gsrc-dev/gsrc/passes"
	"github.com/gsrc-dev/gsrc/rng"
	"github.com/gsrc-dev/gsrc/runtime"
	"github.com/gsrc-dev/gsrc/runtime/kernels"
)

// Forecast is the memory that training steps will need, known before any of them
// has run. All sizes are in bytes.
type Forecast struct {
	Functions []FunctionMemory `json:"functions"`
	// Parts are what is there beside them: data, inputs, parameters.
	Parts []MemoryPart `json:"parts"`
	// Peak is the most that is needed at one time, in phase Phase.
	Peak  int    `json:"peak"`
	Phase string `json:"phase"`
	// Chunk is what evaluation takes, if it runs over chunks of nodes, beside rows in files;
	// 0 where it runs on the whole graph.
	Chunk int `json:"chunk,omitempty"`
	// Turns says that functions which are large are made again when they are needed, instead of
	// held together.
	Turns bool `json:"turns,omitempty"`
	// Device is the most that a device with a memory of its own holds, in phase
	// Phase, and Name its name; Functions and Parts are what it holds then, and Peak
	// is 0.
	Device int    `json:"device,omitempty"`
	Name   string `json:"device_name,omitempty"`
}

// FunctionMemory is the memory of a function that training runs.
type FunctionMemory struct {
	Name string `json:"name"`
	// Phase is the first that holds it; see phases.
	Phase string `json:"phase"`
	// Arena is the size of its values and workspaces, Setup that of what its
	// set-up function computes once, Blocks that of sampled blocks ([graph.Block]).
	Arena  int `json:"arena"`
	Setup  int `json:"setup"`
	Blocks int `json:"fields"`
	// Live is what Arena could not be less than, Unshared what it would be if
	// every value had memory of its own.
	Live     int `json:"live"`
	Unshared int `json:"unshared"`

	later      []string // other phases that hold it
	operations int      // that are executable
}

// phases are what a run is at, one after the other; what a function or part of one phase takes is
// given back before another needs memory.
var phases = []string{
	"evidence",   // edges are judged, and candidates
	"search",     // candidates are searched
	"pretrain",   // contrastive steps
	"candidates", // candidates get the probabilities that they keep
	"joint",      // joint steps, where functions take turns
	"train",      // steps of the classifier, and joint ones
	"joint",      // these, where the others' batches are given back meanwhile
	"end",        // what was kept is evaluated
}

// in reports whether a phase holds the function.
func (f FunctionMemory) in(phase string) bool {
	return f.Phase == phase || slices.Contains(f.later, phase)
}

// Bytes returns the memory of the function.
func (f FunctionMemory) Bytes() int { return f.Arena + f.Setup + f.Blocks }

// Table formats the forecast: the functions, then the rest, in MiB (2²⁰ bytes).
func (f *Forecast) Table() string {
	var b strings.Builder
	mib := func(n int) float64 { return float64(n) / (1 << 20) }
	fmt.Fprintf(&b, "%-38s %9s %9s %9s %9s\n", "memory in MiB", "arena", "least", "unshared", "set-up")
	for _, x := range f.Functions {
		fmt.Fprintf(&b, "%-38s %9.2f %9.2f %9.2f %9.2f\n", "@"+x.Name, mib(x.Arena), mib(x.Live), mib(x.Unshared), mib(x.Setup+x.Blocks))
	}
	for _, x := range f.Parts {
		fmt.Fprintf(&b, "%-38s %9.2f\n", x.Name, mib(x.Bytes))
	}
	if f.Name != "" {
		fmt.Fprintf(&b, "%-38s %9.2f\n", "most that "+f.Name+" holds", mib(f.Device))
		return b.String()
	}
	fmt.Fprintf(&b, "%-38s %9.2f in phase %s\n", "peak of the training steps", mib(f.Peak), f.Phase)
	return b.String()
}

// MemoryPart is one kind of memory beside the functions'.
type MemoryPart struct {
	Name  string `json:"name"`
	Bytes int    `json:"bytes"`
	// Phase is the only one that holds it; empty: all do.
	Phase string `json:"phase,omitempty"`
}

// Forecast estimates what no one can know beforehand from above: blocks by those
// of the run's own first steps, candidate edges by k for each node of which 80 % are new
// (of embeddings' nearest neighbours a third and more choose each other, or are
// neighbours already).
func (n nodeTask) Forecast(d runtime.Device, prog *ir.Module, cfg *config.Config, split data.Split, limit int64) (*Forecast, error) {
	p, err := n.predict(d, prog, cfg, split)
	if err != nil {
		return nil, err
	}
	if d != nil {
		p.onDevice()
		return &p.f, nil
	}
	p.parts()
	p.host()
	if limit <= 0 {
		limit = math.MaxInt
	}
	if int64(p.f.Peak) > limit && p.once && !p.settled && cfg.Train.Sampler != neighbors {
		p.takeTurns()
	}
	if cfg.Train.Sampler == neighbors && (refines(prog) || int64(p.f.Peak) > limit) {
		err = p.chunks(int(limit))
	}
	return &p.f, err
}

// chunks has evaluation run over chunks of nodes, in what a limit leaves for it, and all that a
// refining model computes of all nodes.
func (p *predictor) chunks(limit int) error {
	degree, stored, least := 0, 0, 0
	for v := range p.g.N {
		degree = max(degree, int(p.g.In.RowPtr[v+1]-p.g.In.RowPtr[v]))
	}
	if x := p.ds.X; x.IsSparse() {
		stored = len(x.Val)/max(1, x.Rows) + 1
	}
	names := []string{"classify"}
	if refines(p.prog) {
		names = append(names, "encode", "probability")
		degree += p.cfg.MostCandidates() // and who proposes the node, which no one knows
	}
	for _, name := range names {
		if p.prog.Func(name) == nil || p.embedding() == nil && name != "classify" {
			continue
		}
		parts, err := passes.Cut(p.prog, name)
		if err != nil && !refines(p.prog) {
			return nil // it reads more than neighbours: the whole graph it is
		} else if err != nil {
			return fmt.Errorf("train: @%s cannot be computed over chunks of nodes: %w; take train.sampler=full", name, err)
		}
		room, err := runtime.LeastRoom(parts, degree, stored)
		if err != nil {
			return err
		}
		least = max(least, room)
	}
	weights := 0
	switch {
	case p.prog.Func("classify").Arg("w") == nil:
	case refines(p.prog): // in files, but for those of the graph
		if weights = 4 * max(p.g.E, p.dims["M"]); weighsEdges(p.cfg, p.prog) {
			weights -= 4 * p.g.E
		}
	case p.ds.Graph.Weights == nil: // ones, of a chunk's entries
		weights = 4 * p.g.E
	}
	for i := range p.f.Parts {
		if x := &p.f.Parts[i]; x.Name == graphsPart {
			x.Bytes -= weights
		}
	}
	if refines(p.prog) {
		p.part("weights of candidates", 4*4*min(weighedAtOnce, p.dims["M"]))
		for i := range p.f.Functions {
			switch f := &p.f.Functions[i]; {
			case f.Name == "joint":
				f.Phase = "joint"
			case f.Name != "fit" && f.Phase == "train":
				f.later = append(f.later, "joint", "search")
			}
		}
	}
	p.f.Functions = slices.DeleteFunc(p.f.Functions, func(f FunctionMemory) bool { return slices.Contains(names, f.Name) })
	p.peak() // of what is left
	least = max(least, min(leastChunk, 4096*p.g.N))
	p.f.Chunk = max(least, min(limit-p.f.Peak-unforeseen, mostChunk))
	p.f.Functions = append(p.f.Functions, FunctionMemory{Name: "classify", Phase: "train", later: []string{"joint", "end"}, Arena: p.f.Chunk, Live: least, Unshared: p.f.Chunk})
	p.peak()
	return nil
}

const graphsPart = "graphs and transposed features"

// mostChunk is what chunks of nodes take where there is more memory: larger ones are no faster.
const mostChunk = 128 << 20

// leastChunk is what chunks of many nodes take at least: smaller ones read what others gave too often.
const leastChunk = 16 << 20

// unforeseen is what chunks leave to the runtime of the language and its garbage.
const unforeseen = 32 << 20

// predict forecasts what functions hold on a device.
func (n nodeTask) predict(d runtime.Device, prog *ir.Module, cfg *config.Config, split data.Split) (*predictor, error) {
	ds := n.Dataset
	st, err := n.structure(cfg, prog)
	if err != nil {
		return nil, err
	}
	p := &predictor{forecaster: newForecaster(d, prog, cfg), loaded: map[string]int{}, ds: ds, g: st, dims: n.DataInfo(d, cfg, split).Dims, val: len(split.Val), split: split}
	for _, v := range mostTrained(cfg, split, ds.Graph.N, ds.Classes) {
		p.train = append(p.train, int64(v))
	}
	outer := split.Outer
	if outer == nil {
		outer = split.Halved().Outer
	}
	for _, v := range outer {
		p.outer = append(p.outer, int64(v))
	}
	p.dims["N"], p.dims["T"] = ds.Graph.N, len(p.train)
	if cfg.Train.Sampler == "edges" { // both ends of each seed edge, if no two share one
		p.dims["B"] = min(2*cfg.Train.BatchEdges, ds.Graph.N)
	}
	entries := p.g.E
	p.dims["M"] = entries
	if refines(prog) && cfg.Candidates.Structure != "raw" {
		two, err := farther(ds.Graph, cfg)
		if err != nil {
			return nil, err
		}
		p.dims["M"] = min(2*(len(ds.Graph.Edges)+two+searches(prog)*ds.Graph.N*cfg.Candidates.K*80/100), ds.Graph.N*max(0, ds.Graph.N-1))
	}
	if err := p.functions(); err != nil || d != nil || cfg.Model.Edges.Judge != models.JudgeEvidence || p.embedding() == nil {
		return p, err
	}
	p.dims["P"] = min(evidenceChunk, p.dims["M"]/2)
	if err := p.judges(); err != nil {
		return p, err
	}
	return p, p.givenBack()
}

// givenBack says which functions are given back before others are there, as [program.drop] does,
// and what else is needed before.
func (p *predictor) givenBack() error {
	p.once = !choosesAgain(p.cfg, p.prog)
	if p.searchedFirst() || p.inFiles() && p.prog.Func("rows") != nil {
		if err := p.run(running{"rows", "search"}); err != nil {
			return err
		}
	}
	// Twice as much as is large: with fewer candidates, too, it will be.
	if p.once && p.cfg.Train.JointEvery == 0 && p.trains("encode").Bytes()+p.trains("probability").Bytes() >= 2*large {
		p.settle()
	}
	return nil
}

// trains is the function as the phase train, or those that follow, hold it.
func (p *predictor) trains(name string) *FunctionMemory {
	i := slices.IndexFunc(p.f.Functions, func(f FunctionMemory) bool { return f.Name == name && f.Phase == "train" })
	if i < 0 {
		return &FunctionMemory{}
	}
	return &p.f.Functions[i]
}

// settle has the functions that give candidates their probabilities given back; see [settle].
func (p *predictor) settle() {
	p.settled = true
	end := []string{"end"}
	p.trains("refine").later, p.trains("classify").later = end, end
	if fit := p.trains("fit"); fit.Bytes() < 2*large {
		fit.later = end
	}
	p.trains("encode").later = end
	p.trains("encode").Phase, p.trains("probability").Phase = "candidates", "candidates"
}

// takeTurns has functions held in turns; see [turns].
func (p *predictor) takeTurns() {
	p.f.Turns = true
	p.settle()
	p.trains("fit").later = nil
	p.trains("joint").Phase = "joint"
	p.part("probabilities of candidates", 4*p.dims["M"])
	p.kept()
	p.peak()
}

// kept adds what the end reads of functions that were given back.
func (p *predictor) kept() {
	p.partOf("end", "embedding and predictions", 4*p.ds.Graph.N*p.embedding()[1]+8*p.ds.Graph.N*p.ds.Classes)
}

// searchedFirst reports whether candidates do not depend on the encoder, and what searched them is
// given back.
func (p *predictor) searchedFirst() bool {
	return p.once && p.prog.Func("rows") != nil && (p.prog.Func("encode") == nil || !slices.Contains(p.cfg.Similarities(), config.SimilarityEmbedding))
}

// judges are the functions that take most to judge edges, on the host, whatever device trains, and
// those for candidates.
var judges = [2][]string{
	{models.SourcesFunc, models.ExistingFunc, models.ExistingFunc + models.Weighed},
	{models.MissingFunc, models.MissingFunc + models.Weighed},
}

// judges forecasts those: one is there at a time, before what trains is, the latter also beside
// that, where candidates become others.
func (p *predictor) judges() error {
	var most []FunctionMemory
	for k, names := range judges {
		for i, name := range names {
			if err := p.run(running{name, "evidence"}); err != nil {
				return err
			}
			last := len(p.f.Functions) - 1
			f := p.f.Functions[last]
			if p.f.Functions = p.f.Functions[:last]; i == 0 && (k == 0 || searchesAgain(p.cfg)) {
				most = append(most, f)
			} else if x := &most[len(most)-1]; f.Bytes() > x.Bytes() {
				*x = f
			}
		}
	}
	if searchesAgain(p.cfg) {
		most[1].Phase = "train"
	}
	p.f.Functions = append(p.f.Functions, most...)
	return nil
}

// forecaster is what forecasts of all tasks have in common.
type forecaster struct {
	device runtime.Device
	prog   *ir.Module
	cfg    *config.Config
	f      Forecast
	pool   kernels.Scratch // of all functions
}

func newForecaster(d runtime.Device, prog *ir.Module, cfg *config.Config) forecaster {
	if d == nil {
		d = runtime.CPU
	}
	return forecaster{device: d, prog: prog, cfg: cfg}
}

// function adds a function, given inputs of the sizes that it will have and those that
// several steps draw.
func (p *forecaster) function(x running, in map[string]*runtime.Buffer, draws ...map[string]*runtime.Buffer) error {
	mem, err := runtime.PredictMemory(p.device, p.prog, x.name, in, draws...)
	if err != nil {
		return err
	}
	p.f.Functions = append(p.f.Functions, FunctionMemory{
		Name: x.name, Phase: x.phase, Arena: mem.Main.Bytes, Setup: mem.Setup.Bytes, Blocks: mem.Blocks, Live: mem.Main.Live, Unshared: mem.Main.Unshared,
		operations: mem.Main.Operations + mem.Setup.Operations,
	})
	p.pool = p.pool.Max(mem.Pool)
	return nil
}

// part adds memory beside the functions'.
func (p *forecaster) part(name string, bytes int) { p.partOf("", name, bytes) }

// partOf adds memory that only one phase needs.
func (p *forecaster) partOf(phase, name string, bytes int) {
	if bytes > 0 {
		p.f.Parts = append(p.f.Parts, MemoryPart{name, bytes, phase})
	}
}

// host adds what the program takes beside its values and finds the phase that needs most.
func (p *forecaster) host() *Forecast {
	p.part("parameters", parameterBytes(p.prog))
	p.part("Adam's moments and the best parameters", 3*parameterBytes(p.prog))
	threads := p.cfg.Train.Threads
	if threads == 0 {
		threads = goruntime.GOMAXPROCS(0)
	}
	p.part("kernels' buffers", p.pool.Bytes(threads))
	ops := 0
	for _, f := range p.prog.Funcs {
		ops += len(f.Body)
	}
	p.part("compiled module and the rest", ops*moduleOpBytes+fixedBytes)
	p.peak()
	return &p.f
}

// peak finds the phase that needs most.
func (p *forecaster) peak() {
	p.f.Peak = 0
	for _, phase := range phases {
		sum := 0
		for _, x := range p.f.Parts {
			if x.Phase == "" || x.Phase == phase {
				sum += x.Bytes
			}
		}
		for _, f := range p.f.Functions {
			if f.in(phase) {
				sum += f.Bytes() + opBytes*f.operations
			}
		}
		if sum > p.f.Peak {
			p.f.Peak, p.f.Phase = sum, phase
		}
	}
}

// predictor forecasts training on one graph.
type predictor struct {
	forecaster
	loaded map[string]int // bytes on the device of what is bound, by name
	ds     *data.Dataset
	g      *graph.Structure
	dims   map[string]int
	train  []int64 // training nodes
	outer  []int64 // nodes of the outer problem
	val    int     // how many validation nodes
	split  data.Split
	once   bool // candidates are judged by evidence, and chosen once

	settled bool // their probabilities are those of an encoder that is then given back
}

// drawn is how many steps' samples are looked at for the sizes of
// blocks.
const drawn = 32

// farther returns how many candidates are two steps away, which depends on the graph alone.
func farther(g *graph.Graph, cfg *config.Config) (n int, err error) {
	k := min(cfg.Candidates.TwoStep, g.N)
	if k == 0 {
		return 0, nil
	}
	found, _ := graph.TwoStep(kernels.NewPool(cfg.Train.Threads), g, k)
	c, err := graph.NewCandidates(g, found, k, cfg.Candidates.Mutual)
	if err != nil {
		return 0, err
	}
	return len(c.Edges) - len(g.Edges), nil
}

// running is a function that the training procedure runs, and in which phase.
type running struct{ name, phase string }

// runs returns the functions that the training procedure runs.
func runs(prog *ir.Module, cfg *config.Config) (list []running) {
	c := cfg.Train
	refined := refines(prog)
	learned := refined && cfg.Candidates.Structure != "raw"
	searching := learned && c.PretrainSteps > 0 && prog.Func("begin") != nil // while it pre-trains
	for _, x := range []struct {
		running
		runs bool
	}{
		{running{"begin", "pretrain"}, searching}, {running{"encode", "pretrain"}, searching},
		{running{"pretrain", "pretrain"}, learned && c.PretrainSteps > 0}, {running{"train", "train"}, !refined},
		{running{"fit", "train"}, refined}, {running{"joint", "train"}, learned && c.JointEvery > 0},
		{running{"begin", "train"}, learned && c.JointEvery > 0 && prog.Func("pretrain") == nil},
		{running{"similar", "train"}, learned}, {running{"encode", "train"}, learned}, {running{"probability", "train"}, learned},
		{running{"refine", "train"}, refined}, {running{"classify", "train"}, true},
	} {
		if x.runs && prog.Func(x.name) != nil {
			list = append(list, x.running)
		}
	}
	return list
}

// functions forecasts those that the training procedure runs.
func (p *predictor) functions() error {
	for _, x := range runs(p.prog, p.cfg) {
		if err := p.run(x); err != nil {
			return err
		}
	}
	return nil
}

// run forecasts one function, with the samples of several steps where the
// sizes of its values depend on them.
func (p *predictor) run(x running) error {
	f := p.prog.Func(x.name)
	dims := p.dims
	if f.Name == "classify" && refines(p.prog) { // evaluated on the candidates
		dims = map[string]int{}
		for k, v := range p.dims {
			dims[k] = v
		}
		dims["E"] = dims["M"]
	}
	in := map[string]*runtime.Buffer{}
	stored, batches := len(p.ds.X.Val), 0
	if p.cfg.Train.Sampler == neighbors && slices.Contains(drawing(p.prog, p.cfg), f.Name) {
		fresh := (p.dims["M"] - p.g.E + p.g.N - 1) / max(1, p.g.N)
		list, training, err := nodeTask{p.ds}.firstBatch(p.prog, f.Name, p.cfg, p.split, fresh)
		if err != nil {
			return err
		}
		b, graphs := list[0], map[string]*graph.NeighborBatch{"g": list[0]}
		if refines(p.prog) {
			graphs = map[string]*graph.NeighborBatch{"c": list[0], "g": list[1]}
		}
		if b == nil {
			b = list[1]
		}
		if list[0] != nil && list[1] != nil {
			list[0].Extend(list[1].N)
		}
		seeds := make([]int64, b.Reach[0])
		for i := range seeds {
			seeds[i] = int64(i)
		}
		for name, x := range map[string][]int64{"train_idx": seeds[:training], passes.DrawnSeeds: seeds, "anchors": seeds[training:]} {
			in[name] = runtime.I64(x, len(x))
		}
		dims = map[string]int{"T": training, "SEEDS": len(seeds), "B": len(seeds) - training}
		hops := 0
		for name, b := range graphs {
			if b == nil {
				continue
			}
			if dims["N"] = max(dims["N"], b.N); name == "c" {
				dims["M"] = b.E
			} else {
				dims["E"] = b.E
			}
			for k := range len(b.Reach) - 1 {
				if f.Arg(passes.HopGraph(k)) == nil && f.Arg(passes.HopRows(k)) == nil && f.Arg(passes.HopEntries(k)) == nil {
					continue
				}
				h := &graph.Structure{}
				b.Hop(k, h)
				hops += h.Bytes() - 4*(h.N+1+h.E) // its rows are the batch's
				in[passes.HopGraph(k)] = runtime.Block(h)
				in[passes.HopRows(k)], in[passes.HopEntries(k)] = runtime.I64(make([]int64, h.N), h.N), runtime.I64(make([]int64, h.E), h.E)
			}
			if in[passes.HopGraph(0)] == nil {
				b.Transpose()
			}
			in[name] = runtime.Graph(&b.Structure)
			batches += 2*(b.Bytes()+8*b.E) + 8*b.E + 8*p.ds.Graph.N // two batches, with what their entries weigh, and the sampler's marks
		}
		width := 4 * p.ds.X.Cols
		if p.ds.X.IsSparse() { // in proportion, and some more
			stored = min(len(p.ds.X.Val), 2*len(p.ds.X.Val)/p.ds.Graph.N*dims["N"]+1)
			width = 16 * (2*len(p.ds.X.Val)/p.ds.Graph.N + 1)
		}
		batches += 2 * (dims["N"]*width*17/16 + hops)
	}
	fns := []*ir.Func{f}
	if s := p.prog.Func(f.Attrs.Str("setup")); s != nil {
		fns = append(fns, s)
	}
	for _, fn := range fns {
		for _, a := range fn.Args {
			if a.Attrs.Bool("hoisted") || in[a.Name] != nil {
				continue
			}
			switch {
			case a.Name == "g" && dims["E"] == p.g.E:
				in["g"] = runtime.Graph(p.g)
				continue
			case a.Name == "c" && slices.ContainsFunc(fns, func(f *ir.Func) bool { return f.Arg("c") != nil && samplesBlocks(f, f.Arg("c")) }):
				if err := affordable("the graph of candidate edges", budget.Mul(64, int64(p.dims["M"]))); err != nil {
					return err
				}
				in["c"] = runtime.Graph(p.candidateGraph())
				continue
			case a.Name == "anchors":
				a, err := newAnchorSampler(runtime.NewCPU(nil), rng.New(0, "anchors"), p.ds.Graph.N, p.dims["B"])
				if err != nil {
					return err
				}
				in["anchors"] = a.out
				continue
			case a.Name == "train_idx":
				in["train_idx"] = runtime.I64(p.train, len(p.train))
				continue
			case a.Name == models.OuterIdx:
				in[a.Name] = runtime.I64(p.outer, len(p.outer))
				continue
			}
			shape, err := a.Type.Shape(dims)
			if err != nil {
				return fmt.Errorf("train: @%s: the size of %%%s: %w", f.Name, a.Name, err)
			}
			size := runtime.Extent{Dims: shape}
			if a.Type.Layout == ir.CSR {
				size.Stored = stored
			}
			in[a.Name] = size.Buffer(a.Type)
		}
	}
	steps := 1
	if slices.ContainsFunc(f.Body, func(op *ir.Op) bool { return op.Def.Sizes }) {
		steps = drawn
	}
	var draws []map[string]*runtime.Buffer
	if in["anchors"] != nil && batches == 0 {
		for step := range steps {
			a, err := newAnchorSampler(runtime.NewCPU(nil), rng.New(uint64(p.cfg.Train.Seed), "anchors"), p.ds.Graph.N, p.dims["B"])
			if err == nil {
				err = a.draw(uint64(step))
			}
			if err != nil {
				return err
			}
			draws = append(draws, map[string]*runtime.Buffer{"anchors": a.out})
		}
	}
	if batches > 0 {
		draws = append(draws, nil) // others will be larger
	}
	p.load(f, in)
	err := p.function(x, in, draws...)
	if err == nil {
		p.f.Functions[len(p.f.Functions)-1].Blocks += batches
	}
	return err
}

// searches returns how many searches of nearest neighbours candidates come from.
func searches(prog *ir.Module) int {
	n := 0
	if prog.Func("similar") != nil {
		n++
	}
	if f := prog.Func("encode"); f != nil {
		if n++; f.Result(models.AlsoEmbedding) != nil {
			n++
		}
	}
	return n
}

// samplesBlocks reports whether a function samples blocks of a graph.
func samplesBlocks(f *ir.Func, g *ir.Value) bool {
	return slices.ContainsFunc(f.Body, func(op *ir.Op) bool { return op.Def.Sizes && op.Operands[0] == g })
}

// candidateGraph stands for the candidate edges, which nobody knows yet: as many,
// the existing ones among them. The new ones lead far away from a node and its
// neighbours in number, so that blocks in it are not smaller than in the real one.
func (p *predictor) candidateGraph() *graph.Structure {
	n, old := p.ds.Graph.N, p.ds.Graph.Edges
	if p.dims["M"] == p.g.E {
		return p.g
	}
	src, dst := make([]int32, 0, p.dims["M"]/2), make([]int32, 0, p.dims["M"]/2)
	has := make(map[[2]int32]bool, p.dims["M"]/2)
	add := func(u, v int) {
		e := [2]int32{int32(min(u, v)), int32(max(u, v))}
		if u != v && !has[e] && 2*len(src) < p.dims["M"] {
			has[e] = true
			src, dst = append(src, e[0]), append(dst, e[1])
		}
	}
	for _, e := range old {
		add(int(e[0]), int(e[1]))
	}
	// Strides that are multiples of a number without a common factor with n reach
	// every node.
	stride := max(1, n*5/8)
	for gcd(stride, n) != 1 {
		stride++
	}
	for i := 1; i < n && 2*len(src) < p.dims["M"]; i++ {
		for u := range n {
			add(u, (u+i*stride)%n)
		}
	}
	g, _, err := graph.Build(n, src, dst, nil, false)
	if err != nil {
		return p.g // the nodes are in range, so this does not happen
	}
	return g.Structure()
}

func gcd(a, b int) int {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// candidates adds up what candidate edges take, and the search for them.
func (p *predictor) candidates() {
	if !refines(p.prog) {
		return
	}
	n, m := p.ds.Graph.N, p.dims["M"]
	// By entry: the structure and marks; by edge, of which there are half as many, ends,
	// mark and probability, twice for the kept ones.
	// What chunks read of entries, and of edges beside the kept ones their probabilities, is in files.
	entry, edge := 12+4, 2*(8+1+4)
	if p.inFiles() {
		entry, edge = 0, edge-4
	}
	p.part("candidate edges", 4*2*n+entry*m+edge*m/2)
	for _, f := range []*ir.Func{p.prog.Func("pretrain"), p.prog.Func("joint")} {
		if f == nil {
			continue
		}
		for _, a := range f.Args {
			if f.Result(models.NextPrefix+a.Name) == nil {
				continue
			}
			if ofCandidates(f, a.Name) { // by entry; by edge before and behind a search, with their ends
				p.part("what steps hand on", 4*m+(4+4+8)*m/2)
			} else if shape, err := a.Type.Shape(p.dims); err == nil && len(shape) == 2 {
				p.part("what steps hand on", 4*shape[0]*shape[1])
			}
		}
	}
	if p.cfg.Model.Edges.Judge == models.JudgeEvidence {
		declared := declaredEvidenceBytes
		if p.prog.Param(models.EvidenceSpectrum) != nil {
			declared += declaredSpectrumBytes
		}
		p.part("evidence as declared", declared)
	}
	shape := p.embedding()
	if shape == nil {
		return
	}
	if weighsEdges(p.cfg, p.prog) {
		// By edge; by entry of the graph; by candidate and by its two entries.
		bytes := 4*m/2 + 4*m
		if p.inFiles() {
			bytes = 0
		}
		p.part("evidence for edges", 4*len(p.ds.Graph.Edges)+4*p.g.E+bytes)
	}
	if p.cfg.Model.Edges.Judge == models.JudgeEvidence {
		// By pair judged at a time, its ends and weight; by new candidate, its ends and
		// probability, the ends twice when others are found; logits; by entry, its weight.
		phase, edges := "", len(p.ds.Graph.Edges)
		if p.once {
			phase = "evidence"
			if names, _, _ := models.EvidenceOf(func(param string) bool { return p.prog.Param(param) != nil }); edges*len(names) <= mostKept {
				p.partOf(phase, "evidence for all edges by source", 3*4*edges*len(names))
			}
		}
		p.partOf(phase, "pairs to judge", 20*min(evidenceChunk, max(newPairs, m/2))+20*max(0, m/2-edges)+4*max(edges, m/2-edges))
		p.part("weights of edges to judge by", 4*p.g.E)
		if p.cfg.Model.Edges.Disguised {
			p.partOf("evidence", "pairs that wrong edges may look like", 24*min(edges, evidenceSample))
		}
		p.pool = p.pool.Max(regressionScratch())
	}
	near, width := searches(p.prog)*n*min(p.cfg.MostCandidates(), n), 0
	if p.prog.Func("similar") != nil {
		width = p.ds.X.Cols
	}
	for _, by := range p.cfg.Similarities() {
		if by == config.SimilarityEmbedding {
			width = max(width, shape[1])
		} else {
			width = max(width, models.EvidenceWidth(p.ds.X.Cols))
		}
	}
	// Normalised rows; neighbours and their pairs, with the sorter's copies; lists of those
	// that do not depend on the encoder, apart and joined.
	index, pool := graph.SearchScratch(n, width, min(p.cfg.Candidates.K, n), graph.Index(p.cfg.Candidates.Index))
	search, lists := 4*n*width+8*n+8*len(p.ds.Graph.Edges)+index, (8+2*12)*near
	if p.searchedFirst() || p.inFiles() {
		if p.cfg.Model.Edges.Judge == models.JudgeEvidence {
			// The lists that regressions are fitted to, with similarities; of nodes drawn, pairs.
			const listed = newNearest + newTwoStep
			search, lists = max(search+max(lists, 8*newNearest*n), 8*listed*n+40*listed*min(n, newNodes)), 0
		}
		p.partOf("search", "search for candidates", search+lists)
	} else {
		p.part("search for candidates", search+lists)
	}
	if p.settled {
		p.kept()
	}
	if p.cfg.Model.Edges.Judge == models.JudgeEvidence {
		p.part("candidates known beforehand", 4*near)
	}
	p.pool = p.pool.Max(pool)
}

// inFiles reports whether what is known of candidates' entries is in files.
func (p *predictor) inFiles() bool {
	return p.cfg.Train.Sampler == neighbors && refines(p.prog)
}

// embedding returns the shape [N, F] of what new candidates are searched by, nil where
// none are.
func (p *predictor) embedding() []int {
	by, name := p.prog.Func("encode"), "embedding"
	if by == nil {
		by, name = p.prog.Func("similar"), "rows"
	}
	if !refines(p.prog) || by == nil || by.Result(name) == nil || p.cfg.Candidates.Structure == "raw" {
		return nil
	}
	shape, err := by.Result(name).Type.Shape(p.dims)
	if err != nil || len(shape) != 2 {
		return nil
	}
	return shape
}

// What a program takes beside its values, measured: an operation as a node of
// the graph and an instruction where it is executable, an operation of the
// module, and what does not depend on the program.
const (
	opBytes       = 2200
	moduleOpBytes = 600
	fixedBytes    = 448 << 10

	declaredEvidenceBytes = 13 << 18 // before what its sources share is joined
	declaredSpectrumBytes = 3 << 19  // of the source spectrum, likewise
)

// parts adds up what is there beside the functions.
func (p *predictor) parts() {
	x := p.ds.X
	resident := 4*(len(x.RowPtr)+len(x.Col)+len(x.Val)+len(x.Dense)) + 8*len(p.ds.Graph.Edges) + 4*len(p.ds.Graph.Weights) + 4*len(p.ds.Labels)
	inputs := p.g.Bytes()
	if p.ds.Stored != nil {
		resident -= p.ds.MappedBytes()
		if p.g.EdgeOf == nil {
			inputs = 4 * (p.ds.Graph.N + 1)
		}
	}
	p.part("data set", resident)
	if c := p.prog.Func("classify"); c != nil && c.Arg("w") != nil {
		inputs += 4 * max(p.g.E, p.dims["M"])
	}
	if x.IsSparse() {
		inputs += 4 * (x.Cols + 1 + 2*len(x.Val)) // the transpose
	}
	p.part(graphsPart, inputs)
	if c := p.prog.Func("classify"); c != nil && c.Arg(models.KnownLabels) != nil {
		p.part("known labels", 4*p.ds.Graph.N*p.ds.Classes)
	}
	p.candidates()
	for _, f := range p.prog.Funcs {
		if a := f.Arg("x_struct"); a != nil {
			if shape, err := a.Type.Shape(p.dims); err == nil {
				p.part("structural attributes", 4*shape[0]*shape[1])
				break
			}
		}
	}
}

// parameterBytes returns what a program's parameters hold.
func parameterBytes(prog *ir.Module) int {
	return int(min(paramBytes(prog), math.MaxInt))
}
