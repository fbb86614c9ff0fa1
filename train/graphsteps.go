package train

import (
	"fmt"
	"math"
	"slices"

	"github.com/gsrc-dev/gsrc/data"
	"github.com/gsrc-dev/gsrc/graph"
	"github.com/gsrc-dev/gsrc/rng"
	"github.com/gsrc-dev/gsrc/runtime"
	"github.com/gsrc-dev/gsrc/runtime/kernels"
)

// graphSteps trains on batches of the training graphs, and evaluates on batches of the
// others. In Algorithm 1 a sample of the contrastive loss is a graph, and candidates join
// nodes of one graph. What is learned (parameters, and the bounds of Eq 18) comes from the
// training graphs alone; the candidates and probabilities of the others follow from it as
// those of new graphs do.
type graphSteps struct {
	*trainer
	c      *data.Collection
	batch  *graphBatch
	order  epochOrder
	logits *runtime.Buffer

	collectionEdges
	undirected *graph.Graph // all graphs as one
	search     graph.Neighbors
	embedding  []float32 // [ΣN, F] of all nodes
	similarity []float32 // [C] of the candidates

	rows, pairs *runtime.Buffer // arguments of @score
}

// epochOrder is the order in which steps take the training graphs, shuffled for each epoch
// of them.
type epochOrder struct {
	stream string // of the shuffles
	first  int    // the step that epoch 0 begins with
	until  int    // from this step on nothing is bound ahead
	epoch  int    // whose order it is, −1 if none
	order  []int32
	bound  int // the step whose batch a function has, −1 if there is none
}

func (t *graphSteps) release() {}

func (t *graphSteps) function(name string) (*function, error) { return t.prog.function(name) }

// Graphs are not self-trained: start refuses it.
func (t *graphSteps) confident(int) ([][2]int32, error) { return nil, nil }
func (t *graphSteps) learn([][2]int32) error            { return nil }

// reserve runs functions on the largest batches, by edges or candidates and by nodes.
func (t *graphSteps) reserve(names ...string) error {
	for _, name := range names {
		f, err := t.prog.function(name)
		if err != nil {
			return err
		}
		for _, size := range []func(g int32) int{t.entriesOf(f), t.nodesOf} {
			if err := t.bindGraphs(f, largest(t.split.Train, t.cfg.Train.BatchGraphs, size)); err != nil {
				return err
			}
			if err := f.Run(0); err != nil {
				return err
			}
		}
	}
	return nil
}

// entriesOf counts the edges of a graph that a function reads: its own, or its candidates.
func (t *graphSteps) entriesOf(f *function) func(g int32) int {
	if t.batch.refines(f) {
		return func(g int32) int { return int(t.starts[g+1] - t.starts[g]) }
	}
	return func(g int32) int { return len(t.c.Graphs[g].Edges) }
}

func (t *graphSteps) nodesOf(g int32) int { return t.c.Graphs[g].N }

// largest returns the count largest of some graphs, or all there are.
func largest(among []int32, count int, size func(g int32) int) []int32 {
	list := slices.Clone(among)
	slices.SortStableFunc(list, func(a, b int32) int { return size(b) - size(a) })
	return list[:min(len(list), count)]
}

// batches returns how many batches an epoch has.
func (t *graphSteps) batches() int {
	return partsOf(len(t.split.Train), t.cfg.Train.BatchGraphs)
}

// take has the steps from first on take batches in an order from a stream.
func (t *graphSteps) take(f *function, stream string, first, until int) {
	c := &t.order
	if c.stream != stream || c.first != first {
		c.stream, c.first, c.epoch, c.bound = stream, first, -1, -1
	}
	c.until = until
	if f.ahead == nil { // while a device computes a step, the host has time for the next one's batch
		f.ahead = func(step int) error {
			if step >= t.order.until {
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
func (t *graphSteps) bindStep(f *function, step int) error {
	c, n := &t.order, t.batches()
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
func (t *graphSteps) bindGraphs(f *function, graphs []int32) error {
	t.order.bound = -1
	if err := t.batch.join(graphs, t.batch.refines(f)); err != nil {
		return err
	}
	return t.batch.bind(f)
}

// batchStep makes a step on its batch.
func (t *graphSteps) batchStep(f *function, step int) (float64, error) {
	if err := t.bindStep(f, step); err != nil {
		return 0, err
	}
	return t.step(f, step)
}

// epoch makes a step on every batch of the shuffled training graphs.
func (t *graphSteps) epoch(f *function, epoch int) (loss float64, err error) {
	n := t.batches()
	first := t.state.Pretrained + epoch*n
	t.take(f, "graphs", t.state.Pretrained, first+n) // then the batch is evaluation's
	for step := first; step < first+n && err == nil; step++ {
		loss, err = t.batchStep(f, step)
	}
	return loss, err
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
func (t *graphSteps) runParts(f *function, graphs []int32, read func(part []int32) error) error {
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
func (t *graphSteps) classify(graphs []int32) error {
	f, err := t.prog.function("classify")
	if err != nil {
		return err
	}
	k := t.info.Classes
	return t.runParts(f, graphs, func(part []int32) error {
		out, err := f.Read("logits")
		if err != nil {
			return err
		}
		if out == nil || len(out.Dims) != 2 || out.Dims[0] != len(part) || out.Dims[1] != k {
			return fmt.Errorf("train: @classify has no result logits of shape [%d %d] (graphs, classes)", len(part), k)
		}
		if !kernels.Finite(out.F32) {
			return t.nonFinite(f, t.state.Step(), "a logit of the evaluation")
		}
		for i, g := range part {
			copy(t.logits.F32[int(g)*k:][:k], out.F32[i*k:])
		}
		if !t.judgedOnce {
			probs, err := f.Read("probabilities")
			if err != nil {
				return err
			}
			return t.checkProbabilities(out, probs)
		}
		return nil
	})
}

// evaluate judges the validation graphs, and for the curve of GIN's protocol the
// test graphs.
func (t *graphSteps) evaluate() (score, error) {
	if err := t.classify(t.split.Val); err != nil {
		return score{}, err
	}
	s := t.score(t.logits)
	s.trainAcc = math.NaN() // not worth the time
	if len(t.split.Test) > 0 {
		if err := t.classify(t.split.Test); err != nil {
			return score{}, err
		}
		t.state.TestCurve = append(t.state.TestCurve, accuracy(t.logits, t.info.Labels, t.split.Test))
	}
	return s, nil
}

// final classifies all graphs by the kept state.
func (t *graphSteps) final(*Model) (logits, probs *runtime.Buffer, err error) {
	rest := without(len(t.c.Graphs), t.split.Val, t.split.Test)
	for _, part := range [][]int32{t.split.Val, t.split.Test, rest} {
		if err := t.classify(part); err != nil {
			return nil, nil, err
		}
	}
	probs = runtime.Zeros(t.logits.Dims...)
	t.pool.Softmax(probs.F32, t.logits.F32, t.logits.Dims[0], t.info.Classes)
	return t.logits, probs, nil
}

// partsOf returns into how many parts of at most size graphs that many are divided; parts
// differ by one graph at most.
func partsOf(count, size int) int { return (count + size - 1) / size }

// part returns part i of n.
func part(graphs []int32, i, n int) []int32 {
	return graphs[i*len(graphs)/n : (i+1)*len(graphs)/n]
}

// indices are 0, 1, …, n − 1.
func indices[T int | int32 | int64](n int) []T {
	x := make([]T, n)
	for i := range x {
		x[i] = T(i)
	}
	return x
}
