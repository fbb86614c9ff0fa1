package train

import (
	"fmt"
	"math"
	"slices"

	"github.com/gsrc-dev/gsrc/config"
	"github.com/gsrc-dev/gsrc/data"
	"github.com/gsrc-dev/gsrc/graph"
	"github.com/gsrc-dev/gsrc/ir"
	"github.com/gsrc-dev/gsrc/models"
	"github.com/gsrc-dev/gsrc/passes"
	"github.com/gsrc-dev/gsrc/rng"
	"github.com/gsrc-dev/gsrc/runtime"
	"github.com/gsrc-dev/gsrc/runtime/kernels"
)

// GraphFacts are what a compilation may know beforehand of training on batches of
// graphs. Their sizes differ, so only the features' form is known.
func GraphFacts(c *data.Collection) passes.Facts {
	f := passes.Facts{Dims: map[string]int{}}
	if c.X.IsSparse() {
		f.SparseArgs = []string{"x"}
	}
	return f
}

// GraphModule builds a model of the zoo that classifies the graphs of a
// collection.
func GraphModule(model string, cfg *config.Config, c *data.Collection) (*ir.Module, error) {
	m, err := models.Lookup(model)
	if err != nil {
		return nil, err
	}
	if m.Graphs == nil {
		return nil, fmt.Errorf("%s classifies nodes, and %s is a collection of graphs; \"gsrc models\" lists the models that classify graphs", model, c.Name)
	}
	o := cfg.Model
	o.Features, o.Classes, o.StructWidth = c.X.Cols, c.Classes, 0
	return m.Graphs(o), nil
}

// graphBatch is a batch of graphs as programs read it, in memory that the next
// one uses again.
type graphBatch struct {
	c       *data.Collection
	b       data.Batch
	st      graph.Structure // of the union
	members graph.Structure // from nodes to graphs
	rows    kernels.CSR     // of x, where that is sparse
	columns kernels.CSR     // the transpose
	weights []float32       // a one for each entry

	x, g, batch, labels, w *runtime.Buffer
}

func newGraphBatch(c *data.Collection) *graphBatch {
	b := &graphBatch{c: c, x: runtime.Zeros(0, c.X.Cols), labels: runtime.I64(nil, 0), w: runtime.Zeros(0)}
	if c.X.IsSparse() {
		b.x = &runtime.Buffer{DType: ir.F32, Dims: make([]int, 2), Sparse: &runtime.SparseMatrix{ByRow: &b.rows, ByCol: &b.columns}}
	}
	b.g, b.batch = runtime.Graph(&b.st), runtime.Block(&b.members)
	return b
}

// join makes the batch that of the given graphs.
func (b *graphBatch) join(graphs []int32) error {
	if _, err := b.c.Batch(&b.b, graphs); err != nil {
		return err
	}
	b.st.Rebuild(b.b.Graph)
	b.g.Dims[0], b.g.Dims[1] = b.st.N, b.st.E
	b.members.RebuildMembers(b.b.Offset)
	b.batch.Dims[0], b.batch.Dims[1], b.batch.Dims[2] = b.members.N, b.members.E, b.st.N
	b.weights = b.st.Spread(b.weights, b.b.Graph.Weights)
	b.w.F32, b.w.Dims[0] = b.weights, b.st.E
	l := b.labels
	l.I64, l.Dims[0] = slices.Grow(l.I64[:0], len(graphs)), len(graphs)
	for _, v := range b.b.Labels {
		l.I64 = append(l.I64, int64(v))
	}
	x := b.b.X
	b.x.Dims[0], b.x.Dims[1] = x.Rows, x.Cols
	if !x.IsSparse() {
		b.x.F32 = x.Dense
		return nil
	}
	b.rows.Rows, b.rows.Cols, b.rows.RowPtr, b.rows.Col = x.Rows, x.Cols, x.RowPtr, x.Col
	kernels.TransposeTo(&b.columns, &b.rows)
	b.x.Sparse.Values = x.Val
	return nil
}

// bind gives the batch to a function.
func (b *graphBatch) bind(f *function) error {
	for _, in := range [...]struct {
		name string
		v    *runtime.Buffer
	}{{"x", b.x}, {"g", b.g}, {"batch", b.batch}, {"labels", b.labels}, {"w", b.w}} {
		if f.reads[in.name] {
			if err := f.Bind(in.name, in.v); err != nil {
				return err
			}
		}
	}
	return nil
}

// parts divides graphs into as few parts as possible of at most size graphs, which
// differ by one at most, and calls f with each.
func parts(graphs []int32, size int, f func(part []int32) error) error {
	n := (len(graphs) + size - 1) / size
	for i := range n {
		if err := f(graphs[i*len(graphs)/n : (i+1)*len(graphs)/n]); err != nil {
			return err
		}
	}
	return nil
}

// graphsProcedure trains @train on batches of graphs and evaluates @classify on
// the graphs as they are.
type graphsProcedure struct {
	*trainer
	batch  *graphBatch
	order  []int32 // training graphs, shuffled
	logits *runtime.Buffer
}

func (t *trainer) newGraphs() *graphsProcedure {
	n := len(t.task.Graphs.Graphs)
	return &graphsProcedure{trainer: t, batch: newGraphBatch(t.task.Graphs), logits: runtime.Zeros(n, t.classes)}
}

func (t *graphsProcedure) run() error {
	f, err := t.function("train")
	if err != nil {
		return err
	}
	if err := t.reserve(f); err != nil {
		return err
	}
	if err := t.epochs("train", func(epoch int) (*function, float64, error) { return t.epoch(f, epoch) }, t.evaluate); err != nil {
		return err
	}
	return t.checkpoint()
}

// reserve runs a function on the largest batches that can come, without learning
// from them, so that the memory it takes serves all others.
func (t *graphsProcedure) reserve(f *function) error {
	for _, size := range []func(*graph.Graph) int{edgesOf, nodesOf} {
		if err := t.batch.join(largest(t.task.Graphs, t.split.Train, t.cfg.Train.BatchGraphs, size)); err != nil {
			return err
		}
		if err := t.batch.bind(f); err != nil {
			return err
		}
		if err := f.Run(0); err != nil {
			return err
		}
	}
	return nil
}

func edgesOf(g *graph.Graph) int { return len(g.Edges) }
func nodesOf(g *graph.Graph) int { return g.N }

// largest returns the count largest of some graphs (nil: of all), or all there are.
func largest(c *data.Collection, among []int32, count int, size func(*graph.Graph) int) []int32 {
	list := slices.Clone(among)
	if among == nil {
		for g := range c.Graphs {
			list = append(list, int32(g))
		}
	}
	slices.SortStableFunc(list, func(a, b int32) int { return size(c.Graphs[b]) - size(c.Graphs[a]) })
	return list[:min(len(list), count)]
}

// epoch makes a step on every batch of the shuffled training graphs and returns
// the last one's loss.
func (t *graphsProcedure) epoch(f *function, epoch int) (*function, float64, error) {
	t.order = append(t.order[:0], t.split.Train...)
	shuffle(t.order, t.stream("graphs").At(uint64(epoch)))
	loss, size := 0.0, t.cfg.Train.BatchGraphs
	step := epoch * ((len(t.order) + size - 1) / size)
	err := parts(t.order, size, func(part []int32) (err error) {
		if err = t.batch.join(part); err == nil {
			err = t.batch.bind(f)
		}
		if err == nil {
			loss, err = t.step(f, step)
		}
		step++
		return err
	})
	return f, loss, err
}

// shuffle permutes list in place (Fisher and Yates).
func shuffle(list []int32, s rng.Stream) {
	for i := len(list) - 1; i > 0; i-- {
		j := s.Intn(uint64(i), i+1)
		list[i], list[j] = list[j], list[i]
	}
}

// classify computes the logits of the given graphs, into their rows of t.logits.
func (t *graphsProcedure) classify(graphs []int32) error {
	f, err := t.function("classify")
	if err != nil {
		return err
	}
	k := t.classes
	return parts(graphs, t.cfg.Train.BatchGraphs, func(part []int32) error {
		if err := t.batch.join(part); err != nil {
			return err
		}
		if err := t.batch.bind(f); err != nil {
			return err
		}
		if err := f.Run(uint64(t.state.step())); err != nil {
			return err
		}
		out := f.Output("logits")
		if out == nil || len(out.Dims) != 2 || out.Dims[0] != len(part) || out.Dims[1] != k {
			return fmt.Errorf("train: @classify has no result logits of shape [%d %d] (graphs, classes)", len(part), k)
		}
		if !finite(out.F32) {
			return t.nonFinite(f, t.state.step(), "a logit of the evaluation")
		}
		for i, g := range part {
			copy(t.logits.F32[int(g)*k:][:k], out.F32[i*k:])
		}
		return nil
	})
}

// evaluate judges the validation graphs, and for the curve of GIN's protocol the
// test graphs.
func (t *graphsProcedure) evaluate() (score, error) {
	if err := t.classify(t.split.Val); err != nil {
		return score{}, err
	}
	s := t.score(t.logits)
	s.trainAcc = math.NaN() // not worth the time
	if len(t.split.Test) > 0 {
		if err := t.classify(t.split.Test); err != nil {
			return score{}, err
		}
		t.state.TestCurve = append(t.state.TestCurve, accuracy(t.logits, t.task.Graphs.Labels, t.split.Test))
	}
	return s, nil
}

// final classifies all graphs by the kept state.
func (t *graphsProcedure) final() (logits, probs *runtime.Buffer, err error) {
	var rest []int32
	used := make([]bool, t.logits.Dims[0])
	for _, part := range [][]int32{t.split.Val, t.split.Test} {
		for _, g := range part {
			used[g] = true
		}
		if err := t.classify(part); err != nil {
			return nil, nil, err
		}
	}
	for g := range used {
		if !used[g] {
			rest = append(rest, int32(g))
		}
	}
	if err := t.classify(rest); err != nil {
		return nil, nil, err
	}
	probs = runtime.Zeros(t.logits.Dims...)
	for i := range t.logits.Dims[0] {
		softmax(probs.F32[i*t.classes:][:t.classes], t.logits.F32[i*t.classes:])
	}
	return t.logits, probs, nil
}

// softmax writes the probabilities of a row of logits.
func softmax(dst, logits []float32) {
	top, sum := logits[0], 0.0
	for _, v := range logits[:len(dst)] {
		top = max(top, v)
	}
	for i := range dst {
		sum += math.Exp(float64(logits[i] - top))
	}
	for i := range dst {
		dst[i] = float32(math.Exp(float64(logits[i]-top)) / sum)
	}
}
