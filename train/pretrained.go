package train

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/gsrc-dev/gsrc/config"
	"github.com/gsrc-dev/gsrc/runtime/kernels"
)

// FromPretrained makes a finished run of parameters that were trained elsewhere: it runs the
// job's @classify with them on the data, judges the result on the split, and writes
// the run directory that [Train] would have left, without metrics. params holds every
// parameter of the module by name, row-major. A model that refines its graph cannot be
// taken: its parameters do not hold the graph.
func FromPretrained(ctx context.Context, job Job, cfg *config.Config, params map[string][]float32, opts Options) (*Result, error) {
	t, err := newTrainer(ctx, job, cfg, opts)
	if err != nil {
		return nil, err
	}
	defer t.close()
	switch {
	case t.module.Func("classify") == nil:
		return nil, fmt.Errorf("train: module @%s has no function @classify", t.module.Name)
	case t.module.Func("refine") != nil:
		return nil, fmt.Errorf("train: module @%s refines its graph, which its parameters do not hold: copy its run directory instead", t.module.Name)
	}
	if err := t.setParams(params); err != nil {
		return nil, err
	}
	if err := t.open(); err != nil {
		return nil, err
	}
	s, err := t.steps.evaluate()
	if err != nil {
		return nil, err
	}
	if err := t.keep(s); err != nil {
		return nil, err
	}
	if err := t.checkpoint(); err != nil {
		return nil, err
	}
	return t.finish()
}

// setParams enters parameters.
func (t *trainer) setParams(params map[string][]float32) error {
	for _, p := range t.optim.Params {
		w, ok := params[p.Name]
		switch {
		case !ok:
			return fmt.Errorf("train: there is no parameter %q; module @%s needs it", p.Name, t.module.Name)
		case len(w) != len(p.Value.F32):
			return fmt.Errorf("train: parameter %q has %d elements, module @%s needs the shape %v", p.Name, len(w), t.module.Name, p.Value.Dims)
		case !kernels.Finite(w):
			return fmt.Errorf("train: parameter %q holds a number that is not finite", p.Name)
		}
		copy(p.Value.F32, w)
	}
	unknown := slices.DeleteFunc(slices.Sorted(maps.Keys(params)), func(name string) bool { return t.optim.Lookup(name) != nil })
	if len(unknown) > 0 {
		return fmt.Errorf("train: module @%s has no parameters %q", t.module.Name, unknown)
	}
	return nil
}
