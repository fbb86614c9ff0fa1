package runtime

import (
	"fmt"
	"maps"
	goruntime "runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/gsrc-dev/gsrc/compiler"
	"github.com/gsrc-dev/gsrc/internal/optest"
	"github.com/gsrc-dev/gsrc/ir"
	"github.com/gsrc-dev/gsrc/models"
	"github.com/gsrc-dev/gsrc/passes"
	"github.com/gsrc-dev/gsrc/rng"
	"github.com/gsrc-dev/gsrc/runtime/kernels"
)

// smallOptions makes models small enough for the interpreter, with everything
// switched on.
func smallOptions() models.Options {
	o := models.Default()
	o.Features, o.Classes, o.StructWidth = 11, 3, 4
	o.Hidden, o.Encoder.Hidden, o.Encoder.Projection = 6, 5, 4
	o.Views.Blur = 0.1
	o.LDS.Steps = 2
	o.ProGNN.Rank = 3 // a basis of more columns than nodes is one of rounding errors
	return o
}

// modelWords says what values the models' arguments take.
var modelWords = map[string]string{
	"x": "positive", "anchors": "index:N", "train_idx": "index:N", "pairs": "index:N", "labels": "index:C",
	"w": "positive", "p": "prob", "old": "flag", "lo": "prob", "hi": "prob",
	"outer_idx": "index:N", "outer_labels": "index:C", "power1": "prob", "power2": "prob", "updates": "positive",
	"v.classifier.0.weight": "positive", "v.classifier.0.bias": "positive", "v.classifier.1.weight": "positive", "v.classifier.1.bias": "positive",
}

// modelSizes are a usual graph and the smallest one.
var modelSizes = []sizes{
	{"N": 14, "E": -1, "M": -1, "B": 9, "T": 6, "V": 3, "P": 5, "G": 5, "C": 3},
	{"N": 1, "E": 0, "M": 0, "B": 1, "T": 1, "V": 1, "P": 1, "G": 1, "C": 3},
	{"N": 9, "E": 0, "M": -1, "B": 4, "T": 0, "V": 2, "P": 0, "G": 2, "C": 3},
	{"N": 17, "E": -1, "M": -1, "B": 12, "T": 6, "V": 4, "P": 8, "G": 4, "C": 3},
}

type namedModule struct {
	name string
	m    *ir.Module
}

// compiledModels are all models, with dense and with sparse features: of nodes, with
// every classifier and encoder of those that refine, and of graphs, with every
// readout.
func compiledModels(t testing.TB) []namedModule {
	t.Helper()
	ps, err := compileModels()
	if err != nil {
		t.Fatal(err)
	}
	return ps
}

// compileModels compiles them once for all tests, which leave them as they are.
var compileModels = sync.OnceValues(func() (ps []namedModule, err error) {
	all := map[string]models.Options{"": smallOptions()}
	for _, name := range models.Classifiers()[1:] {
		o := smallOptions()
		o.Classifier = name
		all["/"+name] = o
	}
	for _, kind := range models.Encoders()[1:] {
		o := smallOptions()
		o.Encoder.Kind = kind
		all["/encoder "+kind] = o
	}
	for _, model := range models.All {
		for _, sparse := range []string{"", "x"} {
			o := compiler.Options{}
			name := model.Name
			if sparse != "" {
				o.Data = passes.DataInfo{SparseArgs: []string{sparse}}
				name += "/sparse"
			}
			seen := map[string]bool{} // not every model reads every option
			for _, kind := range slices.Sorted(maps.Keys(all)) {
				m := model.Build(all[kind])
				if text := m.String(); seen[text] {
					continue
				} else {
					seen[text] = true
				}
				p, err := compiler.Compile(m, o)
				if err != nil {
					return nil, fmt.Errorf("%s: %w", name+kind, err)
				}
				ps = append(ps, namedModule{name + kind, p.Module})
			}
			if model.Graphs == nil {
				continue
			}
			for i, readout := range ir.Readouts {
				if sparse != "" && i > 0 {
					break // a readout does not see how features are stored
				}
				graphs := smallOptions()
				graphs.Classifier, graphs.Readout, graphs.StructWidth = "gin", readout, 0
				p, err := compiler.Compile(model.Graphs(graphs), o)
				if err != nil {
					return nil, fmt.Errorf("%s of graphs, %s: %w", name, readout, err)
				}
				ps = append(ps, namedModule{name + "/graphs, " + readout, p.Module})
			}
		}
	}
	return ps, nil
})

func moduleParams(t testing.TB, m *ir.Module) map[string]*Buffer {
	t.Helper()
	ps := map[string]*Buffer{}
	for _, v := range m.Params {
		ps[v.Name] = bufferOf(t, optest.RandomValue(t, v.Type, "", nil, rng.New(5, v.Name)))
		for i := range ps[v.Name].F32 {
			ps[v.Name].F32[i] *= 0.4
			if strings.HasSuffix(v.Name, "variance") { // of GIN's batch normalisation
				ps[v.Name].F32[i] = 0.5 + max(ps[v.Name].F32[i], -ps[v.Name].F32[i])
			}
		}
	}
	return ps
}

// inputArguments draws values for all inputs of a function, those of its
// set-up included.
func inputArguments(t testing.TB, m *ir.Module, f *ir.Func, sz sizes, s rng.Stream) map[string]*Buffer {
	t.Helper()
	all := &ir.Func{Name: f.Name}
	fs := []*ir.Func{f}
	if setup, _ := setupOf(m, f); setup != nil {
		fs = append(fs, setup)
	}
	for _, g := range fs {
		for _, a := range g.Args {
			if !a.Attrs.Bool("hoisted") && all.Arg(a.Name) == nil {
				all.Args = append(all.Args, a)
			}
		}
	}
	return arguments(t, all, modelWords, sz, s)
}

// TestModels runs every function of every model on both executors and on one
// and four threads: all agree bit for bit, and with the float64 reference.
func TestModels(t *testing.T) {
	one, four := kernels.NewPool(1), kernels.NewPool(4)
	defer one.Close()
	defer four.Close()
	for _, p := range compiledModels(t) {
		params := moduleParams(t, p.m)
		for _, fn := range p.m.Funcs {
			if strings.HasSuffix(fn.Name, ".setup") {
				continue
			}
			t.Run(p.name+"/"+fn.Name, func(t *testing.T) {
				opts := Options{Pool: one, Seed: rng.New(8, "models")}
				arena := mustFunction(t, p.m, fn.Name, opts)
				opts.Pool = four
				threads := mustFunction(t, p.m, fn.Name, opts)
				opts.NewExecutor = TapeExecutor
				tape := mustFunction(t, p.m, fn.Name, opts)
				for k, sz := range modelSizes {
					args := inputArguments(t, p.m, fn, sz, rng.New(uint64(k), p.name))
					for _, f := range []*Function{arena, threads, tape} {
						bindAll(t, f, args, params)
						for step := range uint64(3) {
							if err := f.Run(step); err != nil {
								t.Fatal(err)
							}
						}
					}
					want, err := Reference(p.m, fn.Name, args, params, opts.Seed, 2)
					if err != nil {
						t.Fatal(err)
					}
					for _, r := range arena.Outputs() {
						if err := sameBits(arena.Output(r), tape.Output(r)); err != nil {
							t.Errorf("%s at %v: arena and tape differ: %v", r, sz, err)
						}
						if err := sameBits(arena.Output(r), threads.Output(r)); err != nil {
							t.Errorf("%s at %v: 1 and 4 threads differ: %v", r, sz, err)
						}
						if err := closeTo(arena.Output(r), want[r], 2e-4); err != nil {
							t.Errorf("%s at %v: %v", r, sz, err)
						}
					}
				}
			})
		}
	}
}

// TestFuse runs every function of every model with and without the pass fuse:
// the same numbers are drawn, and results differ by no more than the order of
// sums.
func TestFuse(t *testing.T) {
	pool := kernels.NewPool(2)
	defer pool.Close()
	fused := 0
	for _, model := range models.All {
		var programs []*ir.Module
		for _, without := range [][]string{nil, {"fuse"}} {
			p, err := compiler.Compile(model.Build(smallOptions()), compiler.Options{Without: without})
			if err != nil {
				t.Fatalf("%s: %v", model.Name, err)
			}
			programs = append(programs, p.Module)
		}
		params := moduleParams(t, programs[0])
		for _, fn := range programs[0].Funcs {
			if strings.HasSuffix(fn.Name, ".setup") {
				continue
			}
			for _, op := range fn.Body {
				if strings.Contains(op.Name(), "fused") {
					fused++
				}
			}
			args := inputArguments(t, programs[0], fn, modelSizes[0], rng.New(4, model.Name))
			var results []*Function
			for _, m := range programs {
				f := mustFunction(t, m, fn.Name, Options{Pool: pool, Seed: rng.New(8, "models")})
				bindAll(t, f, args, params)
				if err := f.Run(3); err != nil {
					t.Fatal(err)
				}
				results = append(results, f)
			}
			for _, r := range results[0].Outputs() {
				if err := closeTo(results[0].Output(r), refValue(results[1].Output(r)).T, 1e-5); err != nil {
					t.Errorf("%s: @%s: %s with and without: %v", model.Name, fn.Name, r, err)
				}
			}
		}
	}
	if fused < 100 {
		t.Errorf("only %d operations of all models are fused", fused)
	}
}

// TestNoAllocation runs every function of every model 100 times: after the
// first runs, no thread allocates.
func TestNoAllocation(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	pool := kernels.NewPool(2)
	defer pool.Close()
	for _, p := range compiledModels(t) {
		params := moduleParams(t, p.m)
		for _, fn := range p.m.Funcs {
			t.Run(p.name+"/"+fn.Name, func(t *testing.T) {
				if strings.HasSuffix(fn.Name, ".setup") {
					return
				}
				f := mustFunction(t, p.m, fn.Name, Options{Pool: pool, Seed: rng.New(8, "models")})
				bindAll(t, f, inputArguments(t, p.m, fn, modelSizes[0], rng.New(1, p.name)), params)
				if n := allocations(t, f, 100); n != 0 {
					t.Errorf("%d allocations in 100 steps", n)
				}
			})
		}
	}
}

// TestNoAllocationOnResize alternates between two graphs of different size, as
// refinement does: once both have been seen, no thread allocates.
func TestNoAllocationOnResize(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	pool := kernels.NewPool(2)
	defer pool.Close()
	m := parse(t, "graph.gsr")
	f := mustFunction(t, m, "conv", Options{Pool: pool, Seed: rng.New(8, "resize")})
	var sets []map[string]*Buffer
	for k := range 2 {
		args := arguments(t, m.Func("conv"), nil, sizes{"N": 40 + 10*k, "E": -1, "D": 6}, rng.New(uint64(k), "resize"))
		sets = append(sets, args)
	}
	params := moduleParams(t, m)
	names := f.Inputs()
	slices.Sort(names)
	bindAll(t, f, params)
	round := func(step uint64) {
		for _, set := range sets {
			for _, name := range names {
				if set[name] == nil {
					continue
				}
				if err := f.Bind(name, set[name]); err != nil {
					t.Fatal(err)
				}
			}
			if err := f.Run(step); err != nil {
				t.Fatal(err)
			}
		}
	}
	round(0)
	round(1)
	best := ^uint64(0)
	for range 3 { // see allocations
		var before, after goruntime.MemStats
		goruntime.ReadMemStats(&before)
		for step := range uint64(50) {
			round(step)
		}
		goruntime.ReadMemStats(&after)
		best = min(best, after.Mallocs-before.Mallocs)
	}
	if best != 0 {
		t.Errorf("%d allocations in 100 runs", best)
	}
}

// allocations counts the allocations of all threads in n steps, after three
// for warming up. Go's own runtime allocates now and then, when a thread that
// waits is parked for the first time: the best of three counts.
func allocations(t testing.TB, f *Function, n int) uint64 {
	t.Helper()
	for step := range uint64(3) {
		if err := f.Run(step); err != nil {
			t.Fatal(err)
		}
	}
	best := ^uint64(0)
	for range 3 {
		var before, after goruntime.MemStats
		goruntime.ReadMemStats(&before)
		for step := range n {
			if err := f.Run(uint64(step)); err != nil {
				t.Fatal(err)
			}
		}
		goruntime.ReadMemStats(&after)
		best = min(best, after.Mallocs-before.Mallocs)
	}
	return best
}

// TestPlanReusesMemory holds the plan to what it is for: the steps of the
// largest model run in less memory than their values have, with fewer
// instructions than operations.
func TestPlanReusesMemory(t *testing.T) {
	for _, p := range compiledModels(t) {
		if !strings.HasPrefix(p.name, "ecl-gsr") {
			continue
		}
		for _, name := range []string{"pretrain", "joint"} {
			f := mustFunction(t, p.m, name, Options{})
			bindAll(t, f, inputArguments(t, p.m, p.m.Func(name), modelSizes[0], rng.New(1, p.name)), moduleParams(t, p.m))
			if err := f.Run(0); err != nil {
				t.Fatal(err)
			}
			plan := f.Main().Plan()
			if plan.Bytes == 0 || plan.Bytes*2 > plan.Unshared || plan.Instructions >= plan.Operations {
				t.Errorf("%s: @%s: %+v", p.name, name, plan)
			}
			t.Logf("%s: @%s: %+v", p.name, name, plan)
		}
	}
}
