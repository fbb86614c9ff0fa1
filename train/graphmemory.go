package train

import (
	goruntime "runtime"
	"slices"

	"github.com/gsrc-dev/gsrc/config"
	"github.com/gsrc-dev/gsrc/data"
	"github.com/gsrc-dev/gsrc/graph"
	"github.com/gsrc-dev/gsrc/internal/budget"
	"github.com/gsrc-dev/gsrc/ir"
	"github.com/gsrc-dev/gsrc/passes"
	"github.com/gsrc-dev/gsrc/runtime"
	"github.com/gsrc-dev/gsrc/runtime/kernels"
)

// Forecast is that of the largest batch that can come.
func (g graphTask) Forecast(d runtime.Device, prog *ir.Module, cfg *config.Config, _ data.Split) (*Forecast, error) {
	if d == nil {
		p, err := predictGraphs(runtime.CPU, prog, g.Collection, cfg)
		if err != nil {
			return nil, err
		}
		return p.total()
	}
	p, err := predictGraphs(d, prog, g.Collection, cfg)
	if err != nil {
		return nil, err
	}
	p.onDevice()
	return &p.f, nil
}

// predictGraphs forecasts what functions hold on a device.
func predictGraphs(d runtime.Device, prog *ir.Module, c *data.Collection, cfg *config.Config) (*graphPredictor, error) {
	p := &graphPredictor{device: d, loaded: map[*runtime.Buffer]int{}, prog: prog, c: c, cfg: cfg, batch: newGraphBatch(c, make([]float64, c.Classes))}
	refines := prog.Func("fit") != nil
	if refines {
		if err := p.guessCandidates(); err != nil {
			return nil, err
		}
	}
	every := allOf(c)
	nodes := func(g int32) int { return c.Graphs[g].N }
	if err := p.batch.join(largest(every, cfg.Train.BatchGraphs, nodes), refines); err != nil {
		return nil, err
	}
	if slices.ContainsFunc(prog.Funcs, func(f *ir.Func) bool { return f.Attrs.Bool(passes.Padded) }) {
		p.batch.pad(refines)
	}
	learned := refines && cfg.Candidates.Structure != "raw"
	for _, x := range []struct {
		name, phase string
		runs        bool
	}{
		{"pretrain", "pretrain", learned && cfg.Train.PretrainSteps > 0}, {"train", "train", !refines},
		{"fit", "train", refines}, {"joint", "train", learned && cfg.Train.JointEvery > 0},
		{"encode", "train", learned}, {"classify", "train", true},
	} {
		if prog.Func(x.name) == nil || !x.runs {
			continue
		}
		if err := p.function(x.name, x.phase, p.args(x.name)); err != nil {
			return nil, err
		}
	}
	if refines {
		if err := p.wholeCollection(learned); err != nil {
			return nil, err
		}
	}
	for _, g := range largest(every, cfg.Train.BatchGraphs, func(g int32) int { return len(c.Graphs[g].Edges) }) {
		p.edges += len(c.Graphs[g].Edges)
	}
	p.learned = learned
	return p, nil
}

type graphPredictor struct {
	edges   int  // of a batch, at most
	learned bool // candidates are searched
	device  runtime.Device
	loaded  map[*runtime.Buffer]int // bytes on the device of what is bound

	prog  *ir.Module
	c     *data.Collection
	cfg   *config.Config
	batch *graphBatch
	f     Forecast
	ops   map[string]int  // operations that are executable, by phase
	pool  kernels.Scratch // of all functions
}

// guessCandidates takes as candidates the edges and, of each node's k nearest of its own
// graph, 80 %, as [PredictMemory] does: those to the next nodes.
func (p *graphPredictor) guessCandidates() error {
	k := p.cfg.Candidates.K
	if p.cfg.Candidates.Structure == "raw" {
		k = 0
	}
	k = (k*80 + 99) / 100
	if err := affordable("the candidate edges", budget.Mul(64, int64(p.c.Nodes()), int64(k))); err != nil {
		return err
	}
	var near []int32
	for g, n := range p.c.Graphs {
		for v := range n.N {
			for i := range k {
				to := int32(-1)
				if i+2 < n.N {
					to = p.c.Offset[g] + int32((v+i+2)%n.N)
				}
				near = append(near, to)
			}
		}
	}
	cand, err := graph.NewCandidates(p.c.Union().Undirected(), near, k, false)
	if err != nil {
		return err
	}
	p.batch.refined = newCandidateBatch(&collectionEdges{known: &edges{cand: cand, p: make([]float32, len(cand.Edges))}, starts: cand.Starts(nil, p.c.Offset), weights: make([]float32, len(cand.Edges))})
	return nil
}

// args are the arguments of a function on the batch.
func (p *graphPredictor) args(name string) map[string]*runtime.Buffer {
	b := p.batch
	in := map[string]*runtime.Buffer{"x": b.x, "g": b.g, "batch": b.batch, "labels": b.labels, "targets": b.targets, "w": b.w, passes.Present: b.present}
	for _, s := range []string{"ramp", "lo", "hi"} {
		in[s] = runtime.Scalar(0)
	}
	if r := b.refined; r != nil {
		in["c"], in["p"], in["old"] = r.c, &r.p.Buffer, &r.old.Buffer
		if name == "classify" {
			in["g"], in["w"] = r.c, &r.w.Buffer
		}
	}
	return in
}

// wholeCollection forecasts the functions that run on all candidates, @score on as many
// at once as training does.
func (p *graphPredictor) wholeCollection(learned bool) error {
	all := len(p.batch.refined.known.cand.Edges)
	if err := p.function("refine", "train", map[string]*runtime.Buffer{"p": runtime.Zeros(all)}); err != nil || !learned || all == 0 {
		return err
	}
	pairs := min(pairsAtOnce, all)
	rows := p.c.Nodes() * pairs / all
	return p.function("score", "train", map[string]*runtime.Buffer{"embedding": runtime.Zeros(rows, p.cfg.Model.Encoder.Hidden),
		"pairs": runtime.I64(make([]int64, 2*pairs), 2, pairs), "lo": runtime.Scalar(0), "hi": runtime.Scalar(0)})
}

// function forecasts one function.
func (p *graphPredictor) function(name, phase string, in map[string]*runtime.Buffer) error {
	args := map[string]*runtime.Buffer{}
	for _, a := range p.prog.Func(name).Args {
		args[a.Name] = in[a.Name]
	}
	for _, a := range inputsOf(p.prog, name) {
		if b := in[a.Name]; b != nil {
			p.loaded[b] = loadedBytes(b)
		}
	}
	mem, err := runtime.PredictMemoryOn(p.device, p.prog, name, args)
	if err != nil {
		return err
	}
	p.f.Functions = append(p.f.Functions, FunctionMemory{Name: name, Phase: phase, Arena: mem.Main.Bytes, Setup: mem.Setup.Bytes, Live: mem.Main.Live, Unshared: mem.Main.Unshared})
	if p.ops == nil {
		p.ops = map[string]int{}
	}
	p.ops[phase] += mem.Main.Operations
	p.pool = p.pool.Max(mem.Pool)
	return nil
}

// total adds what is there in every phase and finds the one that needs most.
func (p *graphPredictor) total() (*Forecast, error) {
	base := 0
	add := func(name string, bytes int) {
		p.f.Parts = append(p.f.Parts, MemoryPart{name, bytes})
		base += bytes
	}
	c, x := p.c, p.c.X
	add("data set", 4*(len(x.RowPtr)+len(x.Col)+len(x.Val)+len(x.Dense))+8*c.NumEdges()+4*len(c.Labels))
	add("a batch and its structure", (8+2*(4+4+4+4))*p.edges+40*p.batch.st.N)
	if r := p.batch.refined; r != nil {
		n := len(r.known.cand.Edges)
		// Ends, whether it exists, probability and weight, and all but the weight once
		// more for the kept epoch; and the graphs as one.
		add("candidates", n*(8+1+4+4+8+1+4)+8*c.NumEdges())
		add("a batch's candidates and their structure", (8+2*(4+4+4+4)+3*(4+2*4))*len(r.g.Edges))
		if p.learned {
			width := 4 * p.cfg.Model.Encoder.Hidden
			add("similarities, embedding and pairs", 4*n+c.Nodes()*width+16*min(pairsAtOnce, n))
			add("search for neighbours", c.Nodes()*(width+p.cfg.Candidates.K*(4+4+3*8)))
		}
	}
	params := parameterBytes(p.prog)
	add("parameters", params)
	add("Adam's moments and the best parameters", 3*params)
	ops := 0
	for _, fn := range p.prog.Funcs {
		ops += len(fn.Body)
	}
	threads := p.cfg.Train.Threads
	if threads == 0 {
		threads = goruntime.GOMAXPROCS(0)
	}
	add("kernels' buffers", p.pool.Bytes(threads))
	add("compiled module and the rest", ops*moduleOpBytes+fixedBytes)
	for _, phase := range []string{"pretrain", "train"} {
		sum := base + opBytes*p.ops[phase]
		for _, f := range p.f.Functions {
			if f.Phase == phase {
				sum += f.Bytes()
			}
		}
		if sum > p.f.Peak && p.ops[phase] > 0 {
			p.f.Peak, p.f.Phase = sum, phase
		}
	}
	return &p.f, nil
}

// inputsOf returns the arguments of a function and of its set-up.
func inputsOf(prog *ir.Module, name string) []*ir.Value {
	f := prog.Func(name)
	args := f.Args
	if s := prog.Func(f.Attrs.Str("setup")); s != nil {
		args = slices.Concat(args, s.Args)
	}
	return args
}

// onDevice makes the forecast that of a device's memory: see predictor.onDevice. The
// largest batch comes after smaller ones: memory that has grown has room to grow again, a
// quarter, and pieces of arenas have theirs, a sixteenth and a bit.
func (p *graphPredictor) onDevice() {
	for i := range p.f.Functions {
		p.f.Functions[i].Arena += p.f.Functions[i].Arena * 3 / 8
	}
	inputs := 0
	for _, n := range p.loaded {
		inputs += n + n/4
	}
	p.f.onDevice(p.device, inputs, parameterBytes(p.prog), 0)
}
