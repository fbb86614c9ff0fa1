package train

import (
	"errors"
	"fmt"
	"maps"
	goruntime "runtime"
	"slices"
	"strings"

	"github.com/gsrc-dev/gsrc/config"
	"github.com/gsrc-dev/gsrc/internal/budget"
	"github.com/gsrc-dev/gsrc/ir"
	"github.com/gsrc-dev/gsrc/models"
	"github.com/gsrc-dev/gsrc/runtime"
)

// checkMemory refuses a run that would take more than Options.Memory, before it has
// allocated anything. The exact forecast takes time, and memory where candidates are
// many; bounds of it, from the program's types alone, settle nearly every run.
func (t *trainer) checkMemory() error {
	total, beside := t.opts.Memory, int64(0)
	if total <= 0 {
		total, _ = budget.Default()
		beside = besideRun
	}
	total = t.device.MemoryLimit(total)
	limit := total - max(0, beside-total/10)
	least, most, what := t.bounds()
	without := ""
	exceeded := func(need int64, what string) error {
		if need < 10*beside {
			need = max(need, (need+beside)*10/11+10)
		}
		e := &budget.ExceededError{What: "training " + t.module.Name + without, Need: need, Free: total, Total: total}
		advice := t.job.Task.advice(t)
		if strings.Contains(what, "DeepWalk") {
			advice = "lower deepwalk.width or deepwalk.walks"
		} else if strings.Contains(what, "candidate") {
			advice = "lower candidates.k"
		}
		return fmt.Errorf("%w, most of it for %s; %s, or raise the limit with --memory", e, what, advice)
	}
	if least > limit {
		return exceeded(least, what)
	}
	if most <= limit && t.opts.NewExecutor == nil {
		return nil
	}
	if t.cfg.Candidates.TwoStep > 0 { // how many nodes are two steps away is known when they were all looked for
		less := *t.cfg
		less.Candidates.TwoStep = 0
		f, err := t.job.Task.Forecast(nil, t.prog.Module, &less, t.split, limit)
		if err != nil {
			return err
		}
		if int64(f.Peak) > limit {
			without = ", without candidates two steps away,"
			return exceeded(int64(f.Peak), f.largest())
		}
	}
	f, err := t.job.Task.Forecast(nil, t.prog.Module, t.cfg, t.split, limit)
	if err != nil {
		return err
	}
	if t.opts.NewExecutor != nil {
		f.unshare()
	}
	if int64(f.Peak) > limit {
		return exceeded(int64(f.Peak), f.largest())
	}
	t.prog.turns = f.Turns
	if t.chunk = f.Chunk; t.chunk > 0 && !refines(t.prog.Module) && t.opts.Note != nil {
		t.opts.Note(fmt.Sprintf("the model is evaluated over chunks of nodes, of %s each: on all of them at once the run would take more than %s", budget.Format(int64(f.Chunk)), budget.Format(total)))
	}
	return nil
}

// besideRun is what a process holds beside what is forecast: the program, the runtime of the
// language, and garbage while it is collected. Up to a tenth of the process's limit it may come on
// top of that.
const besideRun = 24 << 20

// affordable returns an error where n bytes are more than the process may use at all.
func affordable(what string, n int64) error {
	if limit, _ := budget.Default(); n > limit {
		return &budget.ExceededError{What: what, Need: n, Free: limit, Total: limit}
	}
	return nil
}

// unshare makes the forecast one for an executor that gives every value memory of its own.
func (f *Forecast) unshare() {
	most := 0
	for _, phase := range phases {
		more := 0
		for _, x := range f.Functions {
			if x.in(phase) {
				more += x.Unshared - x.Arena
			}
		}
		most = max(most, more)
	}
	for i := range f.Functions {
		f.Functions[i].Arena = f.Functions[i].Unshared
	}
	f.Peak += most
}

// largest names what takes most of a forecast.
func (f *Forecast) largest() string {
	what, most := "", -1
	for _, p := range f.Parts {
		if p.Bytes > most && (p.Phase == "" || p.Phase == f.Phase) {
			what, most = p.Name, p.Bytes
		}
	}
	for _, x := range f.Functions {
		if x.in(f.Phase) && x.Bytes() > most {
			what, most = "the values of @"+x.Name, x.Bytes()
		}
	}
	return what
}

// workspaces is how much more than the values of its functions a step may take: what
// kernels need beside them.
const workspaces = 2

// bounds returns what training takes at least, and at most, in bytes, and what takes most.
func (t *trainer) bounds() (least, most int64, what string) {
	largest := int64(-1)
	part := func(name string, n int64) {
		if least = add(least, n); n > largest {
			largest, what = n, name
		}
	}
	cfg := t.cfg
	dims := map[string]int{} // at most
	refined := refines(t.prog.Module)
	learned := refined && cfg.Candidates.Structure != "raw"
	size := t.job.Task.extent(cfg, t.split)
	maps.Copy(dims, size.most)
	maps.Copy(dims, size.fixed)
	x, nodes, entries := t.info.Features, t.info.Nodes, size.entries
	candidates := int64(0)
	if learned {
		candidates = size.candidates
		if size.deepWalk > 0 {
			part("DeepWalk", size.deepWalk)
		}
	}
	dims["N"] = nodes
	if refined { // the similar nodes of each, of which some are mutual or neighbours
		part("the search for candidates", budget.Mul(8, candidates))
	}
	part("parameters and Adam's moments", budget.Mul(4, int64(parameterBytes(t.prog.Module))))
	other := max(nodes, entries+2*int(min(candidates, ir.MaxSize))) // of sizes that are found in steps
	one, in := int64(0), ""
	most = fixedBytes
	for _, f := range t.prog.Funcs {
		most = add(most, moduleOpBytes*int64(len(f.Body)))
	}
	functions := runs(t.prog.Module, cfg)
	if cfg.Train.Sampler == neighbors { // its batches, and chunks of nodes, are in the forecast
		drawn := append(drawing(t.prog.Module, cfg), "classify", "encode", "probability", "rows")
		functions = slices.DeleteFunc(functions, func(x running) bool { return slices.Contains(drawn, x.name) })
		most = 1 << 62
	}
	if refined && cfg.Model.Edges.Judge == models.JudgeEvidence {
		most = add(most, declaredEvidenceBytes+declaredSpectrumBytes)
		if learned {
			for _, name := range slices.Concat(judges[:]...) {
				functions = append(functions, running{name, "evidence"})
			}
			most = add(most, 20*newPairs+int64(regressionScratch().Bytes(goruntime.GOMAXPROCS(0))))
		}
	}
	for _, name := range functions {
		fns := withSetup(t.prog.Module, t.prog.Func(name.name))
		if name.phase == "evidence" && cfg.Train.Sampler == neighbors {
			fns = fns[:1] // the set-up runs over chunks of nodes, with values in files
		}
		for _, f := range fns {
			for _, op := range f.Body {
				for _, r := range op.Results {
					n := valueBytes(r.Type, dims, other, len(x.Val))
					most = add(most, budget.Mul(workspaces, n))
					if _, err := r.Type.Shape(size.fixed); err == nil && r.Type.Layout == ir.Dense && n > one {
						one, in = n, f.Name
					}
				}
			}
			most = add(most, opBytes*int64(len(f.Body)))
		}
	}
	if one > 0 {
		part("the values of @"+in, one)
	}
	// The data and the transpose, graphs and their candidates with what is known of each.
	rest := add(12*int64(len(x.RowPtr)+len(x.Col)+len(x.Val)+len(x.Dense)), budget.Mul(128, add(candidates, int64(entries+nodes))))
	return least, add(add(most, least), rest), what
}

// valueBytes returns at most what a value takes: dimensions that are not known are of
// size other.
func valueBytes(t ir.Type, dims map[string]int, other, stored int) int64 {
	n := int64(4)
	if t.DType == ir.I64 || t.DType == ir.F64 {
		n = 8
	}
	switch {
	case t.Layout == ir.CSR:
		return 16 * int64(stored)
	case t.IsGraph():
		return 24 * int64(other)
	}
	for _, d := range t.Dims {
		size, err := d.Resolve(dims)
		if err != nil {
			size = other
		}
		n = budget.Mul(n, int64(size))
	}
	return n
}

// add returns a sum of sizes, which stays at the largest number.
func add(a, b int64) int64 {
	if a > 1<<62 || b > 1<<62 {
		return 1 << 62
	}
	return a + b
}

// nearest bounds how many pairs the search for candidates among n nodes finds.
func nearest(cfg *config.Config, n int) int64 {
	return budget.Mul(int64(n), int64(min(cfg.MostCandidates(), n)))
}

// explainMemory adds to the error of a device without room how much the run was
// predicted to need there, and what lowers that.
func (t *trainer) explainMemory(err error) error {
	if _, ok := errors.AsType[*runtime.MemoryError](err); !ok {
		return err
	}
	advice := t.job.Task.advice(t)
	need := ""
	f, failed := t.job.Task.Forecast(t.device, t.prog.Module, t.cfg, t.split, 0)
	if failed == nil {
		need = fmt.Sprintf("the run was predicted to need %.1f MiB there; ", float64(f.Device)/(1<<20))
	}
	return fmt.Errorf("%w; %s%s, or run with --device cpu", err, need, advice)
}
