package train

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/gsrc-dev/gsrc/config"
	"github.com/gsrc-dev/gsrc/internal/budget"
	"github.com/gsrc-dev/gsrc/runtime"
)

// checkMemory refuses a run that would take more than Options.Memory, before it has
// allocated anything.
func (t *trainer) checkMemory() error {
	total, beside := t.opts.Memory, int64(0)
	if total <= 0 {
		total, _ = budget.Default()
		beside = besideRun
	}
	total = t.device.MemoryLimit(total)
	limit := total - max(0, beside-total/10)
	least, what := t.leastMemory()
	without := ""
	exceeded := func(need int64, what string, atLeast bool) error {
		if need < 10*beside {
			need = max(need, (need+beside)*10/11+10)
		}
		e := &budget.ExceededError{What: "training " + t.job.Model + without, Need: need, Free: total, Total: total, Least: atLeast}
		advice := t.job.Task.advice(t)
		if strings.Contains(what, "DeepWalk") {
			advice = "lower deepwalk.width or deepwalk.walks"
		} else if strings.Contains(what, "candidate") {
			advice = "lower candidates.k"
		}
		return fmt.Errorf("%w, most of it for %s; %s, or raise the limit with --memory", e, what, advice)
	}
	if least > limit {
		return exceeded(least, what, true)
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
			return exceeded(int64(f.Peak), f.largest(), true)
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
		return exceeded(int64(f.Peak), f.largest(), false)
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

// affordable returns an error where n bytes for candidates are more than the process may use at all.
func affordable(what string, n int64) error {
	if limit, _ := budget.Default(); n > limit {
		return fmt.Errorf("%w; lower candidates.k, or raise the limit with --memory", &budget.ExceededError{What: what, Need: n, Free: limit, Total: limit})
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

// leastMemory returns what training takes at least, in bytes, as far as options and types alone say,
// and what takes most of it: sizes that a forecast, which looks at samples of the graph, would itself
// take memory for, or which it does not count.
func (t *trainer) leastMemory() (least int64, what string) {
	in := ""
	parts := map[string]int64{"parameters and Adam's moments": budget.Mul(4, int64(parameterBytes(t.prog.Module)))}
	if refines(t.prog.Module) && t.cfg.Candidates.Structure != "raw" {
		parts["the search for candidates"] = budget.Mul(8, t.job.Task.searched(t.cfg)) // the similar nodes of each, of which some are mutual or neighbours
		if d := t.cfg.DeepWalk; d.Width > 0 {
			parts["DeepWalk"] = deepWalkOptions(t.cfg).Bytes(t.info.Nodes)
		}
	}
	fixed, largest := t.job.Task.DataInfo(nil, t.cfg, t.split).Dims, int64(0)
	for _, x := range runs(t.prog.Module, t.cfg) {
		if t.cfg.Train.Sampler == neighbors { // of batches, and chunks of nodes, the forecast knows
			break
		}
		for _, f := range withSetup(t.prog.Module, t.prog.Func(x.name)) {
			for _, op := range f.Body {
				for _, r := range op.Results {
					if n := denseBytes(r.Type, fixed); n > largest {
						largest, in = n, "the values of @"+f.Name
					}
				}
			}
		}
	}
	parts[in] = largest
	for _, name := range slices.Sorted(maps.Keys(parts)) {
		if least += min(parts[name], math.MaxInt64-least); what == "" || parts[name] > parts[what] {
			what = name
		}
	}
	return least, what
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
