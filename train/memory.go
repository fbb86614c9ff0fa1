package train

import (
	"cmp"
	"fmt"
	"math"
	goruntime "runtime"
	"slices"
	"strings"

	"github.com/gsrc-dev/gsrc/config"
	"github.com/gsrc-dev/gsrc/internal/budget"
	"github.com/gsrc-dev/gsrc/ir"
	"github.com/gsrc-dev/gsrc/passes"
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

// forecaster is what forecasts of all tasks have in common.
type forecaster struct {
	device runtime.Device
	prog   *ir.Module
	cfg    *config.Config
	f      Forecast
	pool   kernels.Scratch // of all functions
}

func newForecaster(d runtime.Device, prog *ir.Module, cfg *config.Config) forecaster {
	return forecaster{device: cmp.Or(d, runtime.CPU), prog: prog, cfg: cfg}
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

// withSetup returns a function and the one that sets it up, if there is one.
func withSetup(m *ir.Module, f *ir.Func) []*ir.Func {
	if s := m.Func(f.Attrs.Str(passes.Setup)); s != nil {
		return []*ir.Func{f, s}
	}
	return []*ir.Func{f}
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
	p.part("kernels' buffers", p.pool.Bytes(cmp.Or(p.cfg.Train.Threads, goruntime.GOMAXPROCS(0))))
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

// parameterBytes returns what a program's parameters hold.
func parameterBytes(prog *ir.Module) int {
	params := int64(0)
	for _, v := range prog.Params {
		params += min(denseBytes(v.Type, nil), math.MaxInt64-params)
	}
	return int(min(params, math.MaxInt))
}

// denseBytes returns what a dense value takes, 0 where its size is not known.
func denseBytes(t ir.Type, dims map[string]int) int64 {
	shape, err := t.Shape(dims)
	if err != nil || t.Layout != ir.Dense {
		return 0
	}
	n := int64(4)
	if t.DType == ir.I64 || t.DType == ir.F64 {
		n = 8
	}
	for _, d := range shape {
		n = budget.Mul(n, int64(d))
	}
	return n
}
