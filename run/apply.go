package run

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	goruntime "runtime"
	"slices"
	"strings"

	"github.com/gsrc-dev/gsrc/compiler"
	"github.com/gsrc-dev/gsrc/config"
	"github.com/gsrc-dev/gsrc/data"
	"github.com/gsrc-dev/gsrc/graph"
	"github.com/gsrc-dev/gsrc/infer"
	"github.com/gsrc-dev/gsrc/internal/budget"
	"github.com/gsrc-dev/gsrc/internal/rss"
	"github.com/gsrc-dev/gsrc/internal/scratch"
	"github.com/gsrc-dev/gsrc/ir"
	"github.com/gsrc-dev/gsrc/models"
	"github.com/gsrc-dev/gsrc/passes"
	"github.com/gsrc-dev/gsrc/runtime"
	"github.com/gsrc-dev/gsrc/runtime/kernels"
	"github.com/gsrc-dev/gsrc/train"
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
	room    int          // for a chunk; 0 is what the limit leaves
	listed  int64        // bytes that each candidate needs once it is judged
	judging *train.Judge // by evidence; nil until it is needed

	embedding *runtime.Buffer // likewise
	log       func(format string, args ...any)
}

// own is what is left of the limit, less what reserved will take.
func (a *application) own(reserved int64) int64 {
	var m goruntime.MemStats
	goruntime.GC()
	goruntime.ReadMemStats(&m)
	return a.limit - int64(m.HeapAlloc) - train.Unforeseen - reserved
}

// run computes a function on a graph, with what it reads beside that and the features.
func (a *application) run(name string, st *graph.Structure, given map[string]*runtime.Buffer) (*runtime.Chunked, error) {
	defer rss.Leave(rss.Enter("@" + name + " over chunks"))
	parts, err := a.Cut(name, compiler.Training, a.about()) // to the bits of its evaluation
	if err != nil {
		return nil, err
	}
	x, err := train.FeatureBuffer(a.ds.X)
	if err != nil {
		return nil, err
	}
	stored := 0 // elements of a row of sparse features
	if x.Sparse != nil {
		stored = len(x.Sparse.Values)/max(1, a.ds.X.Rows) + 1
	}
	least, err := runtime.LeastRoom(parts, st.MostEntries(), stored)
	if err != nil {
		return nil, err
	}
	// A node's class as it is listed and judged, and the order of judged ones.
	room, err := a.chunk("@"+name, int64(24*st.N), int64(least))
	if err != nil {
		return nil, err
	}
	c := runtime.NewChunked(parts, room.Dir, room.Room, runtime.Options{Pool: a.pool})
	c.Bind("x", x)
	for name, b := range given {
		c.Bind(name, b)
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

// weighing gives a function the weights of entries, nil for ones.
func weighing(w []float32) map[string]*runtime.Buffer {
	if w == nil {
		return nil
	}
	return map[string]*runtime.Buffer{"w": runtime.F32(w, len(w))}
}

// about says of the data what the compiler may know.
func (a *application) about() (about passes.DataInfo) {
	if a.ds.X.IsSparse() {
		about.SparseArgs = []string{"x"}
	}
	return about
}

// chunk says what a chunk of nodes may take that takes so much at least, beside what is reserved.
func (a *application) chunk(what string, reserved, least int64) (c runtime.Chunks, err error) {
	room := a.own(reserved)
	if room < least {
		return c, &budget.ExceededError{What: what + " of " + a.Model + " over chunks of nodes", Need: a.limit - room + least, Free: a.limit, Total: a.limit}
	}
	if c.Room = int(min(room, train.MostChunk)); a.room > 0 {
		c.Room = a.room
	}
	c.Dir, err = scratch.Dir()
	return c, err
}

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
	if err := a.Embeds(); err != nil {
		return nil, err
	}
	if a.embedding != nil {
		return a.embedding, nil
	}
	var w []float32
	if a.Judging != nil {
		if w, err = a.weights(); err != nil {
			return nil, err
		}
	}
	c, err := a.run("encode", a.st, weighing(w))
	if err != nil {
		return nil, err
	}
	defer func() { a.embedding = h }()
	if h = c.Result("embedding"); h == nil || len(h.Dims) != 2 {
		return nil, errors.New("@encode has no result embedding with a row for each node")
	}
	if v := slices.IndexFunc(h.F32, func(v float32) bool { return v-v != 0 }); v >= 0 {
		return nil, &infer.FiniteError{What: fmt.Sprintf("node %q, by the encoder,", a.ds.NodeID(v/h.Dims[1]))}
	}
	return h, nil
}

// judge readies what judges edges by evidence.
func (a *application) judge() (*train.Judge, error) {
	if a.judging != nil {
		return a.judging, nil
	}
	x, err := train.FeatureBuffer(a.ds.X)
	if err != nil {
		return nil, err
	}
	g, st := a.ds.Graph.Undirected(), a.undirected()
	inputs := map[string]*runtime.Buffer{"x": x}
	if err := a.bind(a.Judging.Params, func(name string, b *runtime.Buffer) { inputs[name] = b }); err != nil {
		return nil, err
	}
	a.judging, err = train.NewJudge(a.Judging, inputs, g, st, a.about(), a.pool, func(least, beside int) (runtime.Chunks, error) {
		return a.chunk("evidence", int64(beside), int64(least))
	})
	if err == nil {
		a.judging.Counts = a.counts(g)
	}
	return a.judging, err
}

// counts are what the edges of a graph count by their weights; nil: all as much.
func (a *application) counts(g *graph.Graph) []float32 {
	if a.unit == 0 || g.Weights == nil {
		return nil
	}
	return graph.RelativeWeights(g.Weights, a.unit)
}

// undirected is the structure of the graph without its directions.
func (a *application) undirected() *graph.Structure {
	if a.ds.Graph.Directed {
		return a.ds.Graph.Undirected().Structure()
	}
	return a.st
}

// weights are those of the encoder's messages, by entry.
func (a *application) weights() ([]float32, error) {
	j, err := a.judge()
	if err != nil {
		return nil, err
	}
	p, err := j.Edges()
	if err != nil {
		return nil, err
	}
	prior, st := graph.EdgePrior{Graph: a.ds.Graph.Undirected(), P: p}, a.st
	if st.EdgeOf == nil {
		return st.Spread(nil, p), nil
	}
	return prior.OfEntries(nil, a.ds.Graph, st, nil), nil
}

// compared calls use with the rows by which a similarity finds candidates.
func (a *application) compared(by string, use func(rows *runtime.Buffer) error) error {
	switch {
	case by != "" && by != config.SimilarityEmbedding:
	case a.Refinement.Rows != "":
		c, err := a.run(a.Refinement.Rows, a.st, nil)
		if err != nil {
			return err
		}
		return errors.Join(use(c.Result("rows")), c.Close())
	default:
		h, err := a.embed()
		if err != nil {
			return err
		}
		return use(h)
	}
	j, err := a.judge()
	if err != nil {
		return err
	}
	return j.Rows(by, use)
}

// candidates finds them by the similarities that the run was trained with, and two steps away.
func (a *application) candidates() (*graph.Candidates, error) {
	r, n := a.Refinement, a.ds.Graph.N
	k, by := min(r.K, max(0, n-1)), strings.Split(r.Similarity, "+")
	near, edges := int64(n)*int64(len(by)*k+r.TwoStep), int64(len(a.ds.Graph.Edges))
	// Lists of neighbours, apart and joined, with the sorter's copies; candidates as they are judged,
	// and the refined graph as it is listed.
	kept := max(48*near+32*edges, (13+a.listed)*(near+edges))
	if a.Judging != nil {
		j, err := a.judge()
		if err != nil {
			return nil, err
		}
		kept = max(kept, 9*(near+edges)+j.Least())
	}
	if r.Together { // the candidates' structure, and which exist
		kept += 40 * (near + edges)
	}
	var lists [][]int32
	for _, by := range by {
		err := a.compared(by, func(rows *runtime.Buffer) error {
			width := rows.Dims[1]
			index, ofPool := graph.SearchScratch(n, width, k, graph.IndexAuto)
			if index > 0 { // it begins with the graph
				index += a.ds.Graph.UndirectedBytes()
			}
			need := max(int64(4*n*(width+2)+index+ofPool.Bytes(a.pool.Threads()))+8*near, kept) // rows of length 1
			if free := a.own(0); need > free {
				return fmt.Errorf("%w; gsrc-beam refines in parts on several machines", &budget.ExceededError{What: "refining, most of it for candidates,", Need: a.limit - free + need, Free: a.limit, Total: a.limit})
			}
			defer rss.Leave(rss.Enter("candidates"))
			found, _, recall := (&graph.Neighbors{Near: a.undirected}).Search(a.pool, rows.F32, n, width, k, graph.IndexAuto)
			if recall < 1 {
				a.log("candidates by %s: recall %.3f of a sample", cmp.Or(by, config.SimilarityEmbedding), recall)
			}
			lists = append(lists, found)
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	defer rss.Leave(rss.Enter("candidates"))
	if r.TwoStep > 0 {
		found, _ := a.undirected().TwoStep(a.pool, min(r.TwoStep, n))
		lists = append(lists, found)
	}
	joined, k, err := graph.JoinNeighbors(n, lists...)
	if err != nil {
		return nil, err
	}
	c, err := graph.NewCandidates(a.ds.Graph, joined, k, r.Mutual)
	if err == nil {
		c.Free()
	}
	return c, err
}

// refine finds candidates, and gives them probabilities.
func (a *application) refine() (*graph.Refined, error) {
	if a.trained {
		return a.refined, nil
	}
	if err := a.Refines(); err != nil {
		return nil, err
	}
	c, err := a.candidates()
	if err != nil {
		return nil, err
	}
	r := a.Refinement
	x := &graph.Refined{Candidates: c, Mode: "expected", Threshold: r.Threshold, Lo: a.Constants["lo"], Hi: a.Constants["hi"]}
	if !r.Weighted {
		x.Mode = "threshold"
	}
	switch {
	case r.Together:
		x.Probability, err = a.weigh(c)
		return x, err
	case a.Judging == nil:
		x.Probability, err = a.score(c)
		return x, err
	}
	j, err := a.judge()
	if err != nil {
		return nil, err
	}
	defer rss.Leave(rss.Enter("evidence"))
	x.Probability, err = j.Candidates(c)
	return x, err
}

// explained returns what sources say of the edges of a refined graph, too, where they judge.
func (a *application) explained(x *graph.Refined) (*graph.Refined, error) {
	if a.Judging == nil {
		return x, nil
	}
	j, err := a.judge()
	if err != nil {
		return nil, err
	}
	defer rss.Leave(rss.Enter("evidence by source"))
	y := *x
	y.Evidence, err = j.Sources(x.Candidates)
	return &y, err
}

// pairsAtOnce is how many pairs are scored at a time: few, since what that takes is in no forecast.
const pairsAtOnce = 1 << 12

// score gives candidates probabilities by the embeddings of their ends.
func (a *application) score(c *graph.Candidates) ([]float32, error) {
	h, err := a.embed()
	if err != nil {
		return nil, err
	}
	width, probability := h.Dims[1], make([]float32, len(c.Edges))
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
			if probability[lo+i] = fresh[i]; c.Existing[lo+i] {
				probability[lo+i] = old[i]
			}
		}
	}
	return probability, err
}

// weigh gives candidates the probabilities that they have beside one another.
func (a *application) weigh(c *graph.Candidates) ([]float32, error) {
	set := runtime.NewCandidates(a.ds.Graph.Undirected(), a.pool)
	if err := set.Set(c); err != nil {
		return nil, err
	}
	given := map[string]*runtime.Buffer{"old": set.Old}
	if a.Module.Func("probability").Arg("embedding") != nil {
		h, err := a.embed()
		if err != nil {
			return nil, err
		}
		given["embedding"] = h
	}
	f, err := a.run("probability", set.Structure(), given)
	if err != nil {
		return nil, err
	}
	p, err := set.OfEdges(nil, f.Result("probability").F32)
	return p, errors.Join(err, f.Close())
}

// ofOneClass is the refined graph that is written: see [graph.Refined.OfOneClass].
func (a *application) ofOneClass(x *graph.Refined) (*graph.Refined, error) {
	if !a.Refinement.SameClass {
		return x, nil
	}
	c, _, err := a.classify(x)
	if err != nil {
		return nil, err
	}
	return x.OfOneClass(c.Result("probabilities").F32, len(a.Classes)), nil
}

// classify classifies the nodes on a refined graph of so many edges.
func (a *application) classify(x *graph.Refined) (c *runtime.Chunked, edges int, err error) {
	g := x.Graph()
	a.log("classifying on the refined graph, %d edges for the graph's %d", g.NumEdges(), a.ds.Graph.NumEdges())
	st := g.Structure()
	c, err = a.run("classify", st, weighing(st.Spread(nil, g.Weights)))
	return c, g.NumEdges(), err
}

// predict classifies the nodes.
func (a *application) predict(names []string) (*infer.Prediction, error) {
	if a.Module.Func("classify") == nil {
		return nil, errNoClassifier(a.Model)
	}
	r := &infer.Prediction{Classes: a.Classes, TrainingGraph: a.trained}
	var err error
	if names != nil {
		if r.Selected, err = infer.Find(a.ds, names); err != nil {
			return nil, err
		}
	}
	var c *runtime.Chunked
	switch {
	case a.Refinement != nil:
		a.listed = 56 // in the refined graph, its structure and weights of entries
		x, err := a.refine()
		if err != nil {
			return nil, err
		}
		if c, r.Edges, err = a.classify(x); err != nil {
			return nil, err
		}
	default:
		var w []float32
		if r.Edges = a.ds.Graph.NumEdges(); a.RawWeight != 1 {
			w = slices.Repeat([]float32{a.RawWeight}, a.st.E)
		}
		if counts := a.counts(a.ds.Graph); counts != nil {
			for i := range counts {
				counts[i] *= a.RawWeight
			}
			w = a.st.Spread(w, counts)
		}
		a.log("classifying on the graph as it is, %d edges", r.Edges)
		if c, err = a.run("classify", a.st, weighing(w)); err != nil {
			return nil, err
		}
	}
	return r, r.Judge(a.ds, c.Result("logits").F32, c.Result("probabilities").F32, a.ds.Labels)
}

// Predict classifies nodes with an export ([infer.Predict]), or with a run, whose folder dir
// is then: over chunks of nodes, by gsrc's own executor, within the limit of memory, and with
// the bits of the training's evaluation. An empty path is a run's training graph.
func Predict(ctx context.Context, dir, path, out string, o infer.PredictOptions) (p *infer.Prediction, err error) {
	o.Load.Output = out
	if isExport(dir) {
		return infer.Predict(ctx, dir, path, out, o)
	}
	if out != "" {
		if _, err := infer.GraphFormat(out); err != nil {
			return nil, err
		}
	}
	r, err := openWriting(dir, &o.Load)
	if err != nil {
		return nil, err
	}
	if r.OfGraphs() {
		return nil, r.takesExport("predict", cmp.Or(path, r.info.Data.Source))
	}
	d, whole := r.deploy()
	if whole == nil && d.Module.Func("classify") != nil {
		_, whole = d.Cut("classify", compiler.Training, passes.DataInfo{})
	}
	whole = r.orExport(whole)
	write := func() error {
		if err != nil || out == "" {
			return err
		}
		return p.WriteFile(out, func(done, total int) {
			if o.Progress != nil {
				o.Progress("writing", done, total)
			}
		})
	}
	err = r.use(ctx, path, &o, whole, func() error {
		p, err = r.predict(&o)
		return write()
	}, func(a *application) error {
		if a.Classes, err = r.ClassNames(); err != nil {
			return err
		}
		p, err = a.predict(o.Nodes)
		return write()
	})
	return p, err
}

// predict classifies the nodes of the training graph as a whole.
func (r *Run) predict(o *infer.PredictOptions) (*infer.Prediction, error) {
	ds, classify := r.Data, r.Trained.Module.Func("classify")
	if classify == nil {
		return nil, errNoClassifier(r.Trained.Model)
	}
	p, labels := &infer.Prediction{Classes: infer.ClassNames(ds.ClassNames, ds.Classes), TrainingGraph: true, Edges: ds.Graph.NumEdges()}, slices.Clone(ds.Labels)
	if x := r.Trained.Refined; x != nil {
		p.Edges = x.Graph().NumEdges()
	}
	if classify.Arg(models.KnownLabels) != nil { // which are given, and not judged
		p.Known = len(r.Trained.Split.Train)
		for _, v := range r.Trained.Split.Train {
			labels[v] = -1
		}
	}
	var err error
	if p.Selected, err = o.Wanted(ds); err != nil {
		return nil, err
	}
	logits, probabilities, err := r.calibrated(o.Threads)
	if err != nil {
		return nil, err
	}
	return p, p.Judge(ds, logits, probabilities, labels)
}

func errNoClassifier(model string) error {
	return fmt.Errorf("the model %s has no classifier, since it was trained without labels; gsrc refine and gsrc embed go with it", model)
}
