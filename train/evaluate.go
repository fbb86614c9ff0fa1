package train

import (
	"fmt"

	"github.com/gsrc-dev/gsrc/metrics"
	"github.com/gsrc-dev/gsrc/runtime"
	"github.com/gsrc-dev/gsrc/runtime/kernels"
)

// state is how far a run has come. Together with the parameters, their moments,
// the kept state and the edges it is all that a resumed run needs.
type state struct {
	Phase      string
	Pretrained int // contrastive steps done
	Epoch      int // epochs done

	// TestCurve is the accuracy on the test graphs at each evaluation, in percent:
	// what GIN's protocol is computed from. Nothing is chosen by it.
	TestCurve []float64

	valAcc float64 // of the last evaluation in percent, NaN before the first
}

// step is the number of the next step of the run, which its random streams are
// split by.
func (s *state) step() int { return s.Pretrained + s.Epoch }

// best is the kept state, beside the parameters' best values.
type best struct {
	Epoch   int // from 1; 0 before the first evaluation
	ValAcc  float64
	ValLoss float64
	// selected is what train.select compares, higher being better.
	selected float64
	edges    *keptEdges // nil where nothing is refined
}

// score is the outcome of an evaluation, accuracies in percent.
type score struct {
	trainAcc, valAcc, valLoss float64
	// selected is what train.select compares, higher being better.
	selected float64
}

// runClassifier runs the classifier on a graph with weights per entry (nil: ones).
func (t *trainer) runClassifier(g, w *runtime.Buffer, rebind bool) (*function, error) {
	_, made := t.fns["classify"]
	f, err := t.function("classify")
	if err != nil {
		return nil, err
	}
	if rebind || !made {
		if f.reads["g"] {
			if err := f.Bind("g", g); err != nil {
				return nil, err
			}
		}
		if f.reads["w"] {
			if w == nil {
				w = t.judged.weights(g.Graph.Spread(nil, nil))
			}
			if err := f.Bind("w", w); err != nil {
				return nil, err
			}
		}
	}
	return f, f.Run(uint64(t.state.step()))
}

// classify runs the classifier on a graph with weights per entry (nil: ones)
// and returns its logits [N, classes] and probabilities, valid until the next
// run.
func (t *trainer) classify(g, w *runtime.Buffer, rebind bool) (logits, probs *runtime.Buffer, err error) {
	f, err := t.runClassifier(g, w, rebind)
	if err != nil {
		return nil, nil, err
	}
	if logits, err = f.Read("logits"); err != nil {
		return nil, nil, err
	}
	if probs, err = f.Read("probabilities"); err != nil {
		return nil, nil, err
	}
	if logits == nil || probs == nil {
		return nil, nil, fmt.Errorf("train: @classify has no results logits and probabilities; it has %v", f.Outputs())
	}
	if err := t.checkLogits(logits); err != nil {
		return nil, nil, err
	}
	if !finite(logits.F32) {
		return nil, nil, t.nonFinite(f, t.state.step(), "a logit of the evaluation")
	}
	return logits, probs, nil
}

func (t *trainer) checkLogits(logits *runtime.Buffer) error {
	if n := t.task.Data.Graph.N; len(logits.Dims) != 2 || logits.Dims[0] != n || logits.Dims[1] != t.classes {
		return fmt.Errorf("train: the logits of @classify have the shape %v, want [%d %d] (nodes, classes)", logits.Dims, n, t.classes)
	}
	return nil
}

// scoreOn judges the current parameters by the classifier on a graph with weights per
// entry (nil: ones).
func (t *trainer) scoreOn(g, w *runtime.Buffer, rebind bool) (score, error) {
	if by := t.cfg.Train.Select; t.accel != nil && (by == "accuracy" || by == "loss") {
		f, err := t.runClassifier(g, w, rebind)
		if err != nil {
			return score{}, err
		}
		return t.scoreThere(f)
	}
	logits, _, err := t.classify(g, w, rebind)
	if err != nil {
		return score{}, err
	}
	return t.score(logits), nil
}

// score judges logits on the training and the validation nodes.
func (t *trainer) score(logits *runtime.Buffer) score {
	labels := t.data.labels
	s := score{trainAcc: accuracy(logits, labels, t.split.Train), valAcc: accuracy(logits, labels, t.split.Val)}
	for _, v := range t.split.Val {
		s.valLoss += kernels.NLL(logits.F32[int(v)*t.classes:][:t.classes], int(labels[v]))
	}
	s.valLoss /= float64(len(t.split.Val))
	switch t.cfg.Train.Select {
	case "macro_f1":
		s.selected = metrics.MacroF1(metrics.Argmax(logits.F32, t.classes), t.classes, labels, t.split.Val)
	case "auc":
		probs := make([]float32, len(logits.F32))
		t.pool.Softmax(probs, logits.F32, logits.Dims[0], t.classes)
		s.selected, _ = metrics.AUC(probs, t.classes, labels, t.split.Val)
	default:
		s.selectBy(t.cfg.Train.Select)
	}
	return s
}

// selectBy makes loss or accuracy what is compared.
func (s *score) selectBy(what string) {
	s.selected = s.valAcc
	if what == "loss" {
		s.selected = -s.valLoss
	}
}

// accuracy returns the share of the nodes, in percent, whose largest logit (the
// first of equal ones) is that of their label; NaN without nodes.
func accuracy(logits *runtime.Buffer, labels, nodes []int32) float64 {
	k, hits := logits.Dims[1], 0
	for _, v := range nodes {
		if kernels.Top(logits.F32[int(v)*k:][:k]) == int(labels[v]) {
			hits++
		}
	}
	return 100 * float64(hits) / float64(len(nodes))
}

// keep makes the current state the kept one if it is better: higher in what
// train.select says, or the same with lower loss.
func (t *trainer) keep(s score) error {
	b := &t.best
	if b.Epoch > 0 && (s.selected < b.selected || s.selected == b.selected && s.valLoss >= b.ValLoss) {
		return nil
	}
	b.Epoch, b.ValAcc, b.ValLoss, b.selected = t.state.Epoch, s.valAcc, s.valLoss, s.selected
	if err := t.keepParams(); err != nil {
		return err
	}
	if t.edges != nil {
		if err := t.fetchEdges(); err != nil {
			return err
		}
		b.edges = t.edges.kept(b.edges)
	}
	return nil
}

// stopsEarly reports whether patience has run out.
func (t *trainer) stopsEarly() bool {
	p := t.cfg.Train.Patience
	return p > 0 && t.best.Epoch > 0 && t.state.Epoch-t.best.Epoch >= p
}

// epochs trains until all epochs are done or patience has run out. step makes
// the step of an epoch (from 0) and returns the function it ran and its loss;
// evaluate judges the current parameters.
func (t *trainer) epochs(phase string, step func(epoch int) (*function, float64, error), evaluate func() (score, error)) error {
	t.state.Phase = phase
	c := t.cfg.Train
	for t.state.Epoch < c.Epochs && !t.stopsEarly() {
		if err := t.ctx.Err(); err != nil {
			return err
		}
		t.optim.Halve(t.state.Epoch, c.HalveLREvery)
		f, loss, err := step(t.state.Epoch)
		if err != nil {
			return err
		}
		t.state.Epoch++
		if t.state.Epoch%c.EvalEvery == 0 || t.state.Epoch == c.Epochs {
			s, err := evaluate()
			if err != nil {
				return err
			}
			t.state.valAcc = s.valAcc
			if err := t.keep(s); err != nil {
				return err
			}
			if err := t.record(f, &s); err != nil {
				return err
			}
		}
		t.observe(t.state.Epoch, c.Epochs, loss)
		if every := c.CheckpointEvery; every > 0 && t.state.step()%every == 0 {
			if err := t.checkpoint(); err != nil {
				return err
			}
		}
	}
	return nil
}

// supervised trains @train and evaluates @classify on the raw graph.
type supervised struct{ *trainer }

func (t *supervised) run() error {
	f, err := t.function("train")
	if err != nil {
		return err
	}
	err = t.epochs("train", func(epoch int) (*function, float64, error) {
		t.raiseRamp(epoch)
		loss, err := t.step(f, t.state.step())
		return f, loss, err
	}, func() (score, error) { return t.scoreOn(t.inputs["g"], nil, false) })
	if err != nil {
		return err
	}
	return t.checkpoint()
}

// raiseRamp sets the share of its weight that the consistency term has in an
// epoch.
func (t *trainer) raiseRamp(epoch int) {
	ramp := t.inputs["ramp"]
	ramp.F32[0] = float32(min(1, float64(epoch+1)/float64(max(1, t.cfg.Train.Warmup))))
	if t.accel != nil {
		t.accel.Memory().Changed(ramp)
	}
}
