package train

import (
	"fmt"
	"strings"

	"github.com/gsrc-dev/gsrc/config"
	"github.com/gsrc-dev/gsrc/data"
	"github.com/gsrc-dev/gsrc/graph"
	"github.com/gsrc-dev/gsrc/internal/budget"
	"github.com/gsrc-dev/gsrc/ir"
)

// checkMemory refuses a run that would take more than Options.Memory, before it has
// allocated anything. The exact forecast takes time, and memory where candidates are
// many; bounds of it, from the program's types alone, settle nearly every run.
func (t *trainer) checkMemory() error {
	limit := t.opts.Memory
	if limit <= 0 {
		limit, _ = budget.Default()
	}
	limit = t.device.MemoryLimit(limit)
	least, most, what := t.bounds()
	exceeded := func(need int64, what string) error {
		e := &budget.ExceededError{What: "training " + t.module.Name, Need: need, Free: limit, Total: limit}
		advice := t.lower()
		switch {
		case strings.Contains(what, "DeepWalk"):
			advice = "lower deepwalk.width or deepwalk.walks"
		case strings.Contains(what, "candidate"):
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
	var f *Forecast
	var err error
	if t.task.Graphs != nil {
		f, err = PredictGraphMemory(t.prog, t.task.Graphs, t.cfg)
	} else {
		f, err = PredictMemory(t.prog, t.task.Data, t.split, t.cfg)
	}
	if err != nil {
		return err
	}
	if t.opts.NewExecutor != nil {
		f.unshare()
	}
	if int64(f.Peak) > limit {
		return exceeded(int64(f.Peak), f.largest())
	}
	return nil
}

// affordable returns an error where n bytes are more than the process may use at all.
func affordable(what string, n int64) error {
	if limit, _ := budget.Default(); n > limit {
		return fmt.Errorf("train: %w", &budget.ExceededError{What: what, Need: n, Free: limit, Total: limit})
	}
	return nil
}

// unshare makes the forecast one for an executor that gives every value memory of its own.
func (f *Forecast) unshare() {
	more := map[string]int{}
	for i := range f.Functions {
		x := &f.Functions[i]
		more[x.Phase] += x.Unshared - x.Arena
		x.Arena = x.Unshared
	}
	f.Peak += max(more["pretrain"], more["train"])
}

// largest names what takes most of a forecast.
func (f *Forecast) largest() string {
	what, most := "", -1
	for _, p := range f.Parts {
		if p.Bytes > most {
			what, most = p.Name, p.Bytes
		}
	}
	for _, x := range f.Functions {
		if x.Phase == f.Phase && x.Bytes() > most {
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
	fixed := map[string]int{} // sizes that are the same in every step
	dims := map[string]int{}  // at most
	var x *data.Features
	nodes, entries, candidates := 0, 0, int64(0)
	refined := t.prog.Func("fit") != nil
	learned := refined && cfg.Candidates.Structure != "raw"
	near := func(n int) int64 {
		if !learned {
			return 0
		}
		return budget.Mul(int64(n), int64(min(cfg.Candidates.K, n)))
	}
	if c := t.task.Graphs; c != nil {
		x, nodes, entries = c.X, c.Nodes(), 2*c.NumEdges()
		for _, g := range c.Graphs {
			candidates = add(candidates, near(g.N))
		}
		dims["G"] = min(cfg.Train.BatchGraphs, len(c.Graphs))
	} else {
		ds := t.task.Data
		x, nodes, entries, candidates = ds.X, ds.Graph.N, 2*len(ds.Graph.Edges), near(ds.Graph.N)
		fixed = DataInfo(cfg, ds, t.split).Dims
		if d := cfg.DeepWalk; learned && d.Width > 0 {
			o := graph.DeepWalkOptions{Dim: d.Width, WalksPerNode: d.Walks, WalkLength: d.Length, Window: d.Window, Negatives: d.Negatives}
			part("DeepWalk", o.Bytes(nodes))
		}
	}
	for d, n := range fixed {
		dims[d] = n
	}
	dims["N"] = nodes
	if refined { // the similar nodes of each, of which some are mutual or neighbours
		part("the search for candidates", budget.Mul(8, candidates))
	}
	part("parameters and Adam's moments", budget.Mul(4, paramBytes(t.prog)))
	other := max(nodes, entries+2*int(min(candidates, ir.MaxSize))) // of sizes that are found in steps
	one, in := int64(0), ""
	for _, name := range runs(t.prog, cfg) {
		f := t.prog.Func(name.name)
		for _, f := range []*ir.Func{f, t.prog.Func(f.Attrs.Str("setup"))} {
			if f == nil {
				continue
			}
			for _, op := range f.Body {
				for _, r := range op.Results {
					n := valueBytes(r.Type, dims, other, len(x.Val))
					most = add(most, budget.Mul(workspaces, n))
					if _, err := r.Type.Shape(fixed); err == nil && r.Type.Layout == ir.Dense && n > one {
						one, in = n, f.Name
					}
				}
			}
			most = add(most, (opBytes+moduleOpBytes)*int64(len(f.Body)))
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

// paramBytes returns what a program's parameters hold.
func paramBytes(prog *ir.Module) int64 {
	params := int64(0)
	for _, v := range prog.Params {
		params = add(params, valueBytes(v.Type, nil, 0, 0))
	}
	return params
}

// lower says which options make a run take less memory.
func (t *trainer) lower() string { return lowerMemory(t.cfg, t.prog, t.task.Graphs != nil) }

func lowerMemory(cfg *config.Config, prog *ir.Module, graphs bool) string {
	switch c := cfg.Train; {
	case graphs:
		return "lower train.batch_graphs or model.hidden"
	case prog.Func("pretrain") != nil && c.Sampler == "full" && c.Anchors == 0:
		return "set train.anchors to some hundreds, or lower model.encoder.hidden"
	case prog.Func("pretrain") != nil && c.Sampler == "full":
		return "lower train.anchors or model.encoder.hidden, or take train.sampler=edges"
	case prog.Func("pretrain") != nil:
		return "lower train.batch_edges, train.fanout or model.encoder.hidden"
	}
	return "lower model.hidden"
}
