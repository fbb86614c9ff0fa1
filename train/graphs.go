package train

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/gsrc-dev/gsrc/config"
	"github.com/gsrc-dev/gsrc/data"
	"github.com/gsrc-dev/gsrc/graph"
	"github.com/gsrc-dev/gsrc/ir"
	"github.com/gsrc-dev/gsrc/models"
	"github.com/gsrc-dev/gsrc/passes"
	"github.com/gsrc-dev/gsrc/rng"
	"github.com/gsrc-dev/gsrc/runtime"
)

// GraphDataInfo are what a compilation may know beforehand of training on batches of
// graphs on a device. Their sizes differ, so only the features' form is known, and
// whether batches are padded: see [runtime.Device].
func GraphDataInfo(d runtime.Device, c *data.Collection) passes.DataInfo {
	f := passes.DataInfo{Dims: map[string]int{}}
	f.PadBatches = d.Pads()
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
	if m.Refines && !slices.Contains(models.GraphClassifiers(), cfg.Model.Classifier) {
		return nil, fmt.Errorf("model.classifier=%s classifies nodes, and %s is a collection of graphs; take one of %s", cfg.Model.Classifier, c.Name, strings.Join(models.GraphClassifiers(), ", "))
	}
	o := cfg.Model
	o.Features, o.Classes, o.StructWidth = c.X.Cols, c.Classes, 0
	return m.Program(o, true)
}

// partsOf returns into how many parts of at most size graphs so many are divided; parts
// differ by one graph at most.
func partsOf(count, size int) int { return (count + size - 1) / size }

// part returns part i of n.
func part(graphs []int32, i, n int) []int32 {
	return graphs[i*len(graphs)/n : (i+1)*len(graphs)/n]
}

// graphsProcedure trains @train on batches of graphs and evaluates @classify on
// the graphs as they are.
type graphsProcedure struct {
	*trainer
	batch  *graphBatch
	course course
	every  []int32 // all graphs
	logits *runtime.Buffer
}

// course is the order in which steps take the training graphs, shuffled for each epoch
// of them.
type course struct {
	stream string // of the shuffles
	first  int    // the step that epoch 0 begins with
	until  int    // from this step on nothing is bound ahead
	epoch  int    // whose order it is, −1 if none
	order  []int32
	bound  int // the step whose batch a function has, −1 if there is none
}

func (t *trainer) newGraphs() *graphsProcedure {
	c := t.task.Graphs
	var share []float64
	if slices.ContainsFunc(t.prog.Funcs, func(f *ir.Func) bool { return f.Arg("targets") != nil }) {
		labels := make([]int64, len(t.split.Train))
		for i, g := range t.split.Train {
			labels[i] = int64(c.Labels[g])
		}
		share = shares(labels, t.classes)
		for k := range share {
			share[k] *= float64(len(labels))
		}
	}
	p := &graphsProcedure{trainer: t, course: course{epoch: -1, bound: -1}, batch: newGraphBatch(c, share), logits: runtime.Zeros(len(c.Graphs), t.classes)}
	for g := range c.Graphs {
		p.every = append(p.every, int32(g))
	}
	t.graphs = p
	return p
}

func (t *graphsProcedure) run() error {
	f, err := t.function("train")
	if err != nil {
		return err
	}
	if err := t.reserve(f, t.edgesOf, t.nodesOf); err != nil {
		return err
	}
	if err := t.epochs("train", func(epoch int) (*function, float64, error) { return t.epoch(f, epoch) }, t.evaluate); err != nil {
		return err
	}
	return t.checkpoint()
}

// reserve runs a function on the largest batches that can come, by each of some sizes,
// without learning from them, so that the memory it takes serves all others.
func (t *graphsProcedure) reserve(f *function, sizes ...func(g int32) int) error {
	for _, size := range sizes {
		if err := t.bindGraphs(f, largest(t.split.Train, t.cfg.Train.BatchGraphs, size)); err != nil {
			return err
		}
		if err := f.Run(0); err != nil {
			return err
		}
	}
	return nil
}

func (t *graphsProcedure) edgesOf(g int32) int { return len(t.task.Graphs.Graphs[g].Edges) }
func (t *graphsProcedure) nodesOf(g int32) int { return t.task.Graphs.Graphs[g].N }

// largest returns the count largest of some graphs, or all there are.
func largest(among []int32, count int, size func(g int32) int) []int32 {
	list := slices.Clone(among)
	slices.SortStableFunc(list, func(a, b int32) int { return size(b) - size(a) })
	return list[:min(len(list), count)]
}

// batches returns how many batches an epoch has.
func (t *graphsProcedure) batches() int {
	return partsOf(len(t.split.Train), t.cfg.Train.BatchGraphs)
}

// take has the steps from first on take batches in an order from a stream.
func (t *graphsProcedure) take(f *function, stream string, first, until int) {
	c := &t.course
	if c.stream != stream || c.first != first {
		c.stream, c.first, c.epoch, c.bound = stream, first, -1, -1
	}
	c.until = until
	if f.ahead == nil { // while a device computes a step, the host has time for the next one's batch
		f.ahead = func(step int) error {
			if step >= t.course.until {
				return nil
			}
			if err := t.bindStep(f, step); err != nil {
				return err
			}
			return f.Prepare()
		}
	}
}

// bindStep gives a function the batch of a step.
func (t *graphsProcedure) bindStep(f *function, step int) error {
	c, n := &t.course, t.batches()
	if c.bound == step {
		return nil
	}
	if epoch := (step - c.first) / n; epoch != c.epoch {
		c.order = append(c.order[:0], t.split.Train...)
		shuffle(c.order, t.stream(c.stream).At(uint64(epoch)))
		c.epoch = epoch
	}
	if err := t.bindGraphs(f, part(c.order, (step-c.first)%n, n)); err != nil {
		return err
	}
	c.bound = step
	return nil
}

// bindGraphs gives a function the batch of some graphs.
func (t *graphsProcedure) bindGraphs(f *function, graphs []int32) error {
	t.course.bound = -1
	if err := t.batch.join(graphs); err != nil {
		return err
	}
	return t.batch.bind(f)
}

// batchStep makes a step on its batch.
func (t *graphsProcedure) batchStep(f *function, step int) (float64, error) {
	if err := t.bindStep(f, step); err != nil {
		return 0, err
	}
	return t.step(f, step)
}

// epoch makes a step on every batch of the shuffled training graphs and returns
// the last one's loss.
func (t *graphsProcedure) epoch(f *function, epoch int) (_ *function, loss float64, err error) {
	n := t.batches()
	first := t.state.Pretrained + epoch*n
	t.take(f, "graphs", t.state.Pretrained, first+n) // then the batch is evaluation's
	for step := first; step < first+n && err == nil; step++ {
		loss, err = t.batchStep(f, step)
	}
	return f, loss, err
}

// shuffle permutes list in place (Fisher and Yates).
func shuffle(list []int32, s rng.Stream) {
	for i := len(list) - 1; i > 0; i-- {
		j := s.Intn(uint64(i), i+1)
		list[i], list[j] = list[j], list[i]
	}
}

// runParts runs a function that learns nothing on the given graphs, batch by batch, and
// calls read behind each.
func (t *graphsProcedure) runParts(f *function, graphs []int32, read func(part []int32) error) error {
	n := partsOf(len(graphs), t.cfg.Train.BatchGraphs)
	for i := range n {
		if i == 0 {
			if err := t.bindGraphs(f, part(graphs, i, n)); err != nil {
				return err
			}
		}
		if err := f.Run(uint64(t.state.Step())); err != nil {
			return err
		}
		if i+1 < n {
			if err := t.bindGraphs(f, part(graphs, i+1, n)); err != nil {
				return err
			}
			if err := f.Prepare(); err != nil {
				return err
			}
		}
		if err := read(part(graphs, i, n)); err != nil {
			return err
		}
	}
	return nil
}

// classify computes the logits of the given graphs, into their rows of t.logits.
func (t *graphsProcedure) classify(graphs []int32) error {
	f, err := t.function("classify")
	if err != nil {
		return err
	}
	k := t.classes
	return t.runParts(f, graphs, func(part []int32) error {
		out, err := f.Read("logits")
		if err != nil {
			return err
		}
		if out == nil || len(out.Dims) != 2 || out.Dims[0] != len(part) || out.Dims[1] != k {
			return fmt.Errorf("train: @classify has no result logits of shape [%d %d] (graphs, classes)", len(part), k)
		}
		if !finite(out.F32) {
			return t.nonFinite(f, t.state.Step(), "a logit of the evaluation")
		}
		for i, g := range part {
			copy(t.logits.F32[int(g)*k:][:k], out.F32[i*k:])
		}
		return nil
	})
}

// finishRefined enters the kept candidates of all graphs.
func (t *graphsProcedure) finishRefined(run *Trained) error {
	k := t.best
	if err := t.setCandidates(k.Candidates); err != nil {
		return err
	}
	if err := t.setGraphProbabilities(k.Probability, k.Lo, k.Hi); err != nil {
		return err
	}
	run.Refined = &graph.Refined{Raw: t.edges.fixed, Candidates: k.Candidates, Probability: k.Probability, Lo: k.Lo, Hi: k.Hi, Mode: t.cfg.Model.Edges.Mode, Threshold: t.threshold()}
	return nil
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
	t.pool.Softmax(probs.F32, t.logits.F32, t.logits.Dims[0], t.classes)
	return t.logits, probs, nil
}
