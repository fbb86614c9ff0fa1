package run

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/gsrc-dev/gsrc/config"
	"github.com/gsrc-dev/gsrc/data"
	"github.com/gsrc-dev/gsrc/data/store"
	"github.com/gsrc-dev/gsrc/infer"
	"github.com/gsrc-dev/gsrc/internal/budget"
	"github.com/gsrc-dev/gsrc/runtime/kernels"
	"github.com/gsrc-dev/gsrc/runtime/ort"
	"github.com/gsrc-dev/gsrc/train"
)

// LoadOther reads a graph for a run's model as that of its training was read. One that does not fit it is an error.
func (r *Run) LoadOther(d *Deployed, path string, o data.LoadOptions) (*data.Dataset, error) {
	o.Directed, o.Weights = d.Directed, d.edgeWeights
	o.Columns, o.NoPrepare, o.Trained = d.Columns, d.Columns == nil, r.info.BaseChecksum()
	o.Roles, o.Merge, o.Ignored = tables(r.info, r.Trained.Config)
	if r.info.Data.Source == data.Synthetic {
		o.GenerateAs(LoadOptions(r.Trained.Config).Synthetic)
	}
	ds, err := data.Load(path, o)
	if err != nil {
		return nil, err
	}
	if ds.Structural && ds.Checksum != r.info.BaseChecksum() {
		return nil, fmt.Errorf("the nodes of %s have no features, and their places in it mean nothing to a model of another graph: train it on these data, or on data with features", path)
	}
	if ds.PlacesAs(d.Features); ds.X.Cols != d.Features {
		return nil, fmt.Errorf("%s has %d features, the model was trained on %d", ds.Source, ds.X.Cols, d.Features)
	}
	return ds, nil
}

// tables says how the tables of a run's training were read: as the options said, in a run of an earlier version.
func tables(info *train.Info, of *config.Config) (data.Roles, string, []string) {
	from, c := &info.Data, &of.Data
	if from.Columns == nil && from.Roles == (data.Roles{}) {
		return data.Roles{ID: c.ID, Label: c.Label, Source: c.Source, Target: c.Target, Weight: c.Weight}, c.Merge, data.SplitNames(c.Ignore)
	}
	return from.Roles, from.Merge, data.SplitNames(c.Ignore)
}

// unread refuses an option of reading that says other than the training did, for the graph of that, which is read as it was.
func (r *Run) unread(o *data.LoadOptions) error {
	t, seed := &o.Tables, ""
	if o.Seed != 0 {
		seed = fmt.Sprint(o.Seed)
	}
	roles, merge, ignored := tables(r.info, r.Trained.Config)
	names := func(list []string) string {
		return data.JoinNames(slices.Sorted(slices.Values(data.SplitNames(data.JoinNames(list)))))
	}
	for _, x := range [][3]string{{"id", t.ID, roles.ID}, {"label", t.Label, roles.Label}, {"source", t.Source, roles.Source}, {"target", t.Target, roles.Target},
		{"weight", t.Weight, roles.Weight}, {"merge", t.Merge, cmp.Or(merge, data.MergeFirst)}, {"ignore", names(t.Ignore), names(ignored)}, {"seed", seed, fmt.Sprint(r.info.Seed)}} {
		if x[1] != "" && x[1] != x[2] {
			return fmt.Errorf("--%s %s is not what the run in %s was trained with, whose training graph is read here as it was then; leave the option out", x[0], x[1], r.Dir)
		}
	}
	return nil
}

// apply readies the run's model for the data at a path; empty is what it was trained on.
func (r *Run) apply(path string, o *infer.PredictOptions) (*application, error) {
	d, err := r.deploy()
	if err != nil {
		return nil, err
	}
	a := &application{Deployed: d, limit: o.Load.MaxBytes, log: o.Log}
	if a.limit <= 0 {
		a.limit, _ = budget.Default()
	}
	if a.log == nil {
		a.log = func(string, ...any) {}
	}
	if path != "" {
		if a.ds, err = r.LoadOther(d, path, o.Load); err != nil {
			return nil, err
		}
		for _, text := range a.ds.Notes {
			a.log("%s", text)
		}
		classify := a.Module.Func("classify")
		reads := a.Refinement != nil || classify != nil && classify.Uses()[classify.Arg("g")] > 0
		if text := infer.FewEdges(a.ds, r.info.Data.Nodes, r.info.Data.Edges); reads && text != "" {
			a.log("%s", text)
		}
		if a.unit > 0 && a.ds.Graph.Weights == nil {
			a.log("the model reads weights of edges, and %s has none: every edge counts in full", path)
		}
	}
	if a.ds == nil || a.ds.Checksum == r.info.BaseChecksum() {
		if err := r.LoadData(path); err != nil { // with what was done to them in training
			return nil, err
		}
		r.noteDamage(path, a.log)
		a.ds, a.trained, a.refined = r.Data, true, r.Trained.Refined
	}
	if a.st, err = a.ds.Forward(); err != nil {
		return nil, err
	}
	a.pool = kernels.NewPool(o.Threads)
	return a, nil
}

// noteDamage says that the training data, given by a path, were damaged again.
func (r *Run) noteDamage(path string, log func(format string, args ...any)) {
	if c := r.info.Data.Corruption; c != nil && path != "" {
		log("%s", c.Again())
	}
}

// use applies the run to data that may lie in mapped files. When ctx ends, so does the kernel that runs.
// Where whole keeps the model from being used on other graphs, it calls onTraining once the training
// graph is there.
func (r *Run) use(ctx context.Context, path string, o *infer.PredictOptions, whole error, onTraining func() error, do func(*application) error) error {
	if line := r.Unchecked(); line != "" && o.Log != nil {
		o.Log("%s", line)
	}
	if path == "" || whole != nil {
		if err := r.unread(&o.Load); err != nil {
			return err
		}
	}
	if err := ort.CheckThreads(o.Threads); err != nil {
		return err
	}
	if whole != nil {
		if err := r.loadWhole(path, whole); err != nil {
			return err
		}
		if o.Log != nil {
			r.noteDamage(path, o.Log)
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		r.ctx = ctx
		return onTraining()
	}
	return store.Guard(func() error {
		a, err := r.apply(path, o)
		if err != nil {
			return err
		}
		defer a.pool.Close()
		return a.pool.Until(ctx, func() error { return do(a) })
	})
}
