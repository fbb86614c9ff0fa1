package train

import (
	"math"

	"github.com/gsrc-dev/gsrc/internal/rss"
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

// score judges logits on the training and the validation nodes.
func (t *trainer) score(logits *runtime.Buffer) score {
	labels := t.info.Labels
	s := score{trainAcc: accuracy(logits, labels, t.split.Train), valAcc: accuracy(logits, labels, t.split.Val)}
	for _, v := range t.split.Val {
		s.valLoss += kernels.NLL(logits.F32[int(v)*t.info.Classes:][:t.info.Classes], int(labels[v]))
	}
	s.valLoss /= float64(len(t.split.Val))
	switch t.cfg.Train.Select {
	case "macro_f1":
		s.selected = metrics.MacroF1(metrics.Argmax(logits.F32, t.info.Classes), t.info.Classes, labels, t.split.Val)
	case "auc":
		probs := make([]float32, len(logits.F32))
		t.pool.Softmax(probs, logits.F32, logits.Dims[0], t.info.Classes)
		s.selected, _ = metrics.AUC(probs, t.info.Classes, labels, t.split.Val)
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
	if err := t.optim.Keep(t.device); err != nil {
		return err
	}
	if t.edges != nil {
		if err := t.steps.(refiner).fetch(); err != nil {
			return err
		}
		t.best = t.edges.kept(t.best)
	}
	return nil
}

// restoreBest makes the parameters those of the kept epoch.
func restoreBest(t *trainer) error {
	t.prog.outdate(nil)
	return t.optim.Restore(t.device)
}

// epochsLeft reports whether the round has epochs left: patience may have run out. Without
// self-training there is one round.
func (t *trainer) epochsLeft() bool {
	p, s := t.cfg.Train.Patience, &t.state
	return s.Epoch-s.RoundFrom < t.cfg.Train.Epochs && !(p > 0 && s.BestEpoch > 0 && s.Epoch-max(s.BestEpoch, s.RoundFrom) >= p)
}

// epochs trains until all epochs are done or patience has run out. step makes
// the steps of an epoch (from 0) and returns the function it ran and its loss;
// evaluate judges the current parameters.
func (t *trainer) epochs(phase string, step func(epoch int) (*function, float64, error), evaluate func() (score, error)) error {
	t.state.Phase = phase
	rss.Enter(phase)
	c := t.cfg.Train
	total := c.Epochs * (1 + c.SelfTraining)
	for {
		if t.state.Due == nil && !t.epochsLeft() {
			if t.state.Round == c.SelfTraining {
				return t.checkpoint()
			}
			if err := t.selfTrain(evaluate); err != nil {
				return err
			}
		}
		if err := t.ctx.Err(); err != nil {
			return err
		}
		loss := math.NaN()
		if t.state.Due == nil {
			t.optim.Halve(t.state.Epoch, c.HalveLREvery)
			f, l, err := step(t.state.Epoch)
			if err != nil {
				return err
			}
			loss = l
			t.state.Epoch++
			if t.state.Epoch%c.EvalEvery == 0 || t.state.Epoch-t.state.RoundFrom == c.Epochs {
				t.state.Due = made(t, f)
			}
		}
		if t.state.Due != nil {
			s, err := evaluate()
			if err != nil {
				return err
			}
			t.state.ValAcc = &s.valAcc
			if err := t.keep(s); err != nil {
				return err
			}
			if err := t.record(t.state.Due, &s); err != nil {
				return err
			}
			t.state.Due = nil
		}
		t.observe(t.state.Epoch, total, loss)
		if every := c.CheckpointEvery; every > 0 && t.state.Step()%every == 0 {
			if err := t.checkpoint(); err != nil {
				return err
			}
		}
	}
}

// raiseRamp sets the share of its weight that the consistency term has in an
// epoch.
func (t *trainer) raiseRamp(epoch int) {
	ramp := t.prog.inputs["ramp"]
	ramp.F32[0] = float32(min(1, float64(epoch+1)/float64(max(1, t.cfg.Train.Warmup))))
	t.device.Changed(ramp)
}
