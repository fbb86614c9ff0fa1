package train

import (
	"fmt"

	"github.com/gsrc-dev/gsrc/metrics"
	"github.com/gsrc-dev/gsrc/runtime"
	"github.com/gsrc-dev/gsrc/runtime/kernels"
)

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
				ones := g.Graph.Spread(nil, nil)
				w = runtime.F32(ones, len(ones))
			}
			if err := f.Bind("w", w); err != nil {
				return nil, err
			}
		}
	}
	return f, f.Run(uint64(t.state.Step()))
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
		return nil, nil, t.nonFinite(f, t.state.Step(), "a logit of the evaluation")
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
	if by := t.cfg.Train.Select; by == "accuracy" || by == "loss" {
		f, err := t.runClassifier(g, w, rebind)
		if err != nil {
			return score{}, err
		}
		return t.scoreLogits(f)
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
	b := &t.state
	if b.BestEpoch > 0 && (s.selected < b.Selected || s.selected == b.Selected && s.valLoss >= b.BestLoss) {
		return nil
	}
	b.BestEpoch, b.BestAcc, b.BestLoss, b.Selected = b.Epoch, s.valAcc, s.valLoss, s.selected
	if err := t.keepParams(); err != nil {
		return err
	}
	if t.edges != nil {
		if err := t.fetchEdges(); err != nil {
			return err
		}
		t.best = t.edges.kept(t.best)
	}
	return nil
}

// stopsEarly reports whether patience has run out.
func (t *trainer) stopsEarly() bool {
	p := t.cfg.Train.Patience
	return p > 0 && t.state.BestEpoch > 0 && t.state.Epoch-t.state.BestEpoch >= p
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
			t.state.ValAcc = &s.valAcc
			if err := t.keep(s); err != nil {
				return err
			}
			if err := t.record(f, &s); err != nil {
				return err
			}
		}
		t.observe(t.state.Epoch, c.Epochs, loss)
		if every := c.CheckpointEvery; every > 0 && t.state.Step()%every == 0 {
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
		loss, err := t.step(f, t.state.Step())
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
	t.device.Changed(ramp)
}
