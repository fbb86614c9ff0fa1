package run

import (
	"context"
	"errors"
	"fmt"
	goruntime "runtime"
	"slices"

	"github.com/gsrc-dev/gsrc/compiler"
	"github.com/gsrc-dev/gsrc/data"
	"github.com/gsrc-dev/gsrc/data/store"
	"github.com/gsrc-dev/gsrc/graph"
	"github.com/gsrc-dev/gsrc/infer"
	"github.com/gsrc-dev/gsrc/internal/budget"
	"github.com/gsrc-dev/gsrc/internal/rss"
	"github.com/gsrc-dev/gsrc/internal/scratch"
	"github.com/gsrc-dev/gsrc/ir"
	"github.com/gsrc-dev/gsrc/passes"
	"github.com/gsrc-dev/gsrc/runtime"
	"github.com/gsrc-dev/gsrc/runtime/kernels"
)

// application is the model of a run on a graph: gsrc's own executor runs it over chunks of
// nodes, in memory that is bounded. What functions give for all nodes lies in files meanwhile.
type application struct {
	*Deployed
	ds      *data.Dataset
	trained bool           // it is the one that the run was trained on
	refined *graph.Refined // what the run made of that
	st      *graph.Structure
	pool    *kernels.Pool
	limit   int64
	room    int // for a chunk; 0 is what the limit leaves
	log     func(format string, args ...any)
}

// apply readies the run's model for the data at a path; empty is what it was trained on.
func (r *Run) apply(path string, o *infer.PredictOptions) (*application, error) {
	d, err := r.Deploy()
	if err != nil {
		return nil, fmt.Errorf("%w; or make an export, and use that: gsrc build %s --out DIR", err, r.Dir)
	}
	if r.info.Data.Nodes == 0 || d.Module.Func("classify") != nil && d.Module.Func("classify").Arg("batch") != nil {
		return nil, fmt.Errorf("the model %s is one of whole graphs: build an export, and use that", d.Model)
	}
	a := &application{Deployed: d, limit: o.Load.MaxBytes, log: o.Log}
	if a.limit <= 0 {
		a.limit, _ = budget.Default()
	}
	if a.log == nil {
		a.log = func(string, ...any) {}
	}
	if path != "" {
		load := o.Load
		load.Directed, load.NoPrepare, load.Weights = r.Trained.Config.Data.Directed, true, data.IgnoreWeights
		if a.ds, err = data.Load(path, load); err != nil {
			return nil, err
		}
	}
	if a.ds == nil || a.ds.Checksum == r.info.Data.Checksum {
		if err := r.LoadData(path); err != nil { // with what was done to them in training
			return nil, err
		}
		a.ds, a.trained, a.refined = r.Data, true, r.Trained.Refined
		d.Classes = infer.ClassNames(a.ds.ClassNames, a.ds.Classes)
	}
	if a.ds.X.Cols != d.Features {
		return nil, fmt.Errorf("%s has %d features, the model was trained on %d", a.ds.Source, a.ds.X.Cols, d.Features)
	}
	if a.st, err = a.ds.Forward(); err != nil {
		return nil, err
	}
	a.pool = kernels.NewPool(o.Threads)
	return a, nil
}

// use applies the run to data that may lie in mapped files.
func (r *Run) use(path string, o *infer.PredictOptions, do func(*application) error) error {
	if line := r.Unchecked(); line != "" && o.Log != nil {
		o.Log("%s", line)
	}
	return store.Guard(func() error {
		a, err := r.apply(path, o)
		if err != nil {
			return err
		}
		defer a.pool.Close()
		return do(a)
	})
}

// own is what is left of the limit, less what reserved will take.
func (a *application) own(reserved int64) int64 {
	const unforeseen = 32 << 20 // of the language's runtime, and garbage
	var m goruntime.MemStats
	goruntime.GC()
	goruntime.ReadMemStats(&m)
	return a.limit - int64(m.HeapAlloc) - unforeseen - reserved
}

// run computes a function on a graph with weights by entry, nil for ones.
func (a *application) run(name string, st *graph.Structure, w []float32) (*runtime.Chunked, error) {
	defer rss.Leave(rss.Enter("@" + name + " over chunks"))
	var about passes.DataInfo
	if a.ds.X.IsSparse() {
		about.SparseArgs = []string{"x"}
	}
	parts, err := a.Cut(name, compiler.Training, about) // to the bits of its evaluation
	if err != nil {
		return nil, err
	}
	degree, stored := 0, 0
	for v := range st.N {
		degree = max(degree, int(st.In.RowPtr[v+1]-st.In.RowPtr[v]))
	}
	x := runtime.F32(a.ds.X.Dense, len(a.ds.X.Dense)/max(1, a.ds.X.Cols), a.ds.X.Cols)
	if f := a.ds.X; f.IsSparse() {
		stored = len(f.Val)/max(1, f.Rows) + 1
		if x, err = runtime.Sparse(f.Rows, f.Cols, f.RowPtr, f.Col, f.Val); err != nil {
			return nil, err
		}
	}
	least, err := runtime.LeastRoom(parts, degree, stored)
	if err != nil {
		return nil, err
	}
	// A node's class as it is listed and judged, and the order of judged ones.
	room := a.own(int64(24 * st.N))
	if room < int64(least) {
		return nil, &budget.ExceededError{What: "@" + name + " of " + a.Model + " over chunks of nodes", Need: a.limit - room + int64(least), Free: a.limit, Total: a.limit}
	}
	if room = min(room, mostChunk); a.room > 0 {
		room = int64(a.room)
	}
	dir, err := scratch.Dir()
	if err != nil {
		return nil, err
	}
	c := runtime.NewChunked(parts, dir, int(room), runtime.Options{Pool: a.pool})
	c.Bind("x", x)
	if w != nil {
		c.Bind("w", runtime.F32(w, len(w)))
	}
	for name, v := range a.Constants {
		c.Bind(name, runtime.Scalar(v))
	}
	for _, arg := range a.Module.Func(name).Args {
		if arg.Type.IsGraph() {
			c.Bind(arg.Name, runtime.Graph(st))
		}
	}
	if err := a.bind(parts.Module.Params, c.Bind); err != nil {
		return nil, err
	}
	return c, c.Run()
}

// mostChunk is what a chunk takes where there is more memory: larger ones are no faster.
const mostChunk = 128 << 20

// bind gives a function its parameters.
func (a *application) bind(params []*ir.Value, bind func(string, *runtime.Buffer)) error {
	for _, p := range params {
		shape, err := p.Type.Shape(nil)
		if err != nil {
			return err
		}
		bind(p.Name, runtime.F32(a.Params[p.Name], shape...))
	}
	return nil
}

// embed computes the embedding of all nodes, [N, width].
func (a *application) embed() (h *runtime.Buffer, err error) {
	if a.Refinement == nil {
		return nil, fmt.Errorf("the model %s has no encoder that was trained; ecl-gsr trains one", a.Model)
	}
	c, err := a.run("encode", a.st, nil)
	if err != nil {
		return nil, err
	}
	if h = c.Result("embedding"); h == nil || len(h.Dims) != 2 {
		return nil, errors.New("@encode has no result embedding with a row for each node")
	}
	if v := slices.IndexFunc(h.F32, func(v float32) bool { return v-v != 0 }); v >= 0 {
		return nil, &infer.FiniteError{What: fmt.Sprintf("node %q, by the encoder,", a.ds.NodeID(v/h.Dims[1]))}
	}
	return h, nil
}

// pairsAtOnce is how many pairs are scored at a time.
const pairsAtOnce = 1 << 16

// refine finds candidates by the embedding, and gives them probabilities.
func (a *application) refine() (*graph.Refined, error) {
	if a.trained {
		return a.refined, nil
	}
	if err := a.Refines(); err != nil {
		return nil, err
	}
	h, err := a.embed()
	if err != nil {
		return nil, err
	}
	r, n, width := a.Refinement, a.ds.Graph.N, h.Dims[1]
	near := int64(n) * int64(min(r.K, n))
	index, _ := graph.SearchScratch(n, width, min(r.K, n), graph.IndexAuto)
	// Rows of length 1, the neighbours with the sorter's copies, and candidates.
	need := int64(4*n*(width+2)+index) + 48*near + 32*int64(len(a.ds.Graph.Edges))
	if free := a.own(0); need > free {
		return nil, fmt.Errorf("%w; gsrc-beam refines in parts on several machines", &budget.ExceededError{What: "the search for candidates", Need: a.limit - free + need, Free: a.limit, Total: a.limit})
	}
	defer rss.Leave(rss.Enter("candidates"))
	info := infer.Info{K: r.K, Mutual: r.Mutual}
	c, err := info.Candidates(a.pool, h.F32, width, a.ds.Graph, nil)
	if err != nil {
		return nil, err
	}
	mode := "expected"
	if !r.Weighted {
		mode = "threshold"
	}
	x := &graph.Refined{Candidates: c, Probability: make([]float32, len(c.Edges)), Mode: mode, Threshold: r.Threshold, Lo: a.Constants["lo"], Hi: a.Constants["hi"]}
	p, err := compiler.Compile(a.Module, compiler.Options{Target: compiler.Inference, Funcs: []string{"score"}})
	if err != nil {
		return nil, err
	}
	f, err := runtime.NewFunction(p.Module, "score", runtime.Options{Pool: a.pool})
	if err != nil {
		return nil, err
	}
	defer f.Close()
	bind := func(name string, b *runtime.Buffer) { err = errors.Join(err, f.Bind(name, b)) }
	if e := a.bind(p.Module.Params, bind); e != nil {
		return nil, e
	}
	for name, v := range a.Constants {
		if p.Module.Func("score").Arg(name) != nil {
			bind(name, runtime.Scalar(v))
		}
	}
	// Rows of the ends alone, since the function computes something for each row.
	rows := runtime.Zeros(2*pairsAtOnce, width)
	pairs := runtime.I64(make([]int64, 2*pairsAtOnce), 2, pairsAtOnce)
	for lo := 0; lo < len(c.Edges) && err == nil; lo += pairsAtOnce {
		some := c.Edges[lo:min(lo+pairsAtOnce, len(c.Edges))]
		m := len(some)
		rows.Dims[0], rows.F32, pairs.Dims[1], pairs.I64 = 2*m, rows.F32[:2*m*width], m, pairs.I64[:2*m]
		for i, e := range some {
			for k, v := range e {
				copy(rows.F32[(k*m+i)*width:][:width], h.F32[int(v)*width:])
				pairs.I64[k*m+i] = int64(k*m + i)
			}
		}
		bind("embedding", rows)
		bind("pairs", pairs)
		if err == nil {
			err = f.Run(0)
		}
		if err != nil {
			return nil, err
		}
		fresh, old := f.Output("probability").F32, f.Output("probability_existing").F32
		for i := range some {
			if x.Probability[lo+i] = fresh[i]; c.Existing[lo+i] {
				x.Probability[lo+i] = old[i]
			}
		}
	}
	return x, err
}

// predict classifies the nodes.
func (a *application) predict(names []string) (*infer.Prediction, error) {
	if a.Module.Func("classify") == nil {
		return nil, fmt.Errorf("the model %s has no classifier, since it was trained without labels; gsrc refine and gsrc embed go with it", a.Model)
	}
	r := &infer.Prediction{Classes: a.Classes, TrainingGraph: a.trained}
	var err error
	if names != nil {
		if r.Selected, err = infer.Find(a.ds, names); err != nil {
			return nil, err
		}
	}
	st, w := a.st, []float32(nil)
	switch {
	case a.Refinement != nil:
		x, err := a.refine()
		if err != nil {
			return nil, err
		}
		g := x.Graph()
		st = g.Structure()
		w, r.Edges = st.Spread(nil, g.Weights), g.NumEdges()
		a.log("classifying on the refined graph, %d edges for the graph's %d", r.Edges, a.ds.Graph.NumEdges())
	default:
		if r.Edges = a.ds.Graph.NumEdges(); a.RawWeight != 1 {
			w = slices.Repeat([]float32{a.RawWeight}, st.E)
		}
		a.log("classifying on the graph as it is, %d edges", r.Edges)
	}
	c, err := a.run("classify", st, w)
	if err != nil {
		return nil, err
	}
	return r, r.Judge(a.ds, c.Result("logits").F32, c.Result("probabilities").F32, a.ds.Labels)
}

// Predict classifies nodes with an export ([infer.Predict]), or with a run, whose folder dir
// is then: over chunks of nodes, by gsrc's own executor, within the limit of memory, and with
// the bits of the training's evaluation. An empty path is a run's training graph.
func Predict(ctx context.Context, dir, path, out string, o infer.PredictOptions) (p *infer.Prediction, err error) {
	if isExport(dir) {
		return infer.Predict(ctx, dir, path, out, o)
	}
	if out != "" {
		if _, err := infer.GraphFormat(out); err != nil {
			return nil, err
		}
	}
	r, err := Open(dir)
	if err != nil {
		return nil, err
	}
	err = r.use(path, &o, func(a *application) (err error) {
		if p, err = a.predict(o.Nodes); err != nil || out == "" {
			return err
		}
		return p.WriteFile(out, func(done, total int) {
			if o.Progress != nil {
				o.Progress("writing", done, total)
			}
		})
	})
	return p, err
}
