package train

import (
	"errors"
	"fmt"

	"github.com/gsrc-dev/gsrc/runtime"
)

// scoreLogits judges the logits that the classifier has just computed where they lie: the
// host gets to see the counts.
func (t *trainer) scoreLogits(f *function) (score, error) {
	logits := f.Result("logits")
	if logits == nil {
		return score{}, fmt.Errorf("train: @classify has no result logits; it has %v", f.Outputs())
	}
	if err := t.checkLogits(logits); err != nil {
		return score{}, err
	}
	if t.scored == nil {
		for _, nodes := range [][]int32{t.split.Train, t.split.Val} {
			rows, labels := runtime.I64(make([]int64, len(nodes)), len(nodes)), runtime.I64(make([]int64, len(nodes)), len(nodes))
			for i, v := range nodes {
				rows.I64[i], labels.I64[i] = int64(v), int64(t.data.labels[v])
			}
			if err := errors.Join(t.device.ToDevice(rows), t.device.ToDevice(labels)); err != nil {
				return score{}, err
			}
			t.scored = append(t.scored, runtime.Scoring{Rows: rows, Labels: labels, WithLoss: len(t.scored) == 1})
		}
	}
	finite, err := t.device.Score(logits, t.scored)
	if err != nil {
		return score{}, fmt.Errorf("@%s, scoring its logits: %w", f.Name(), err)
	}
	if !finite {
		return score{}, t.nonFinite(f, t.state.Step(), "a logit of the evaluation")
	}
	share := func(s *runtime.Scoring) float64 { return 100 * float64(s.Hits) / float64(s.Rows.Dims[0]) }
	s := score{trainAcc: share(&t.scored[0]), valAcc: share(&t.scored[1]), valLoss: t.scored[1].Loss / float64(len(t.split.Val))}
	s.selectBy(t.cfg.Train.Select)
	return s, nil
}

// giveState gives parameters and the optimizer's state to the device, unless it has them.
// From then on the host's copies may be as old as the last fetchState.
func (t *trainer) giveState() error { return t.eachOfState(t.device.ToDevice) }

// fetchState copies what giveState gave back to the host.
func (t *trainer) fetchState() error { return t.eachOfState(t.device.CopyToHost) }

func (t *trainer) eachOfState(do func(*runtime.Buffer) error) error {
	for _, p := range t.optim.Params {
		for _, b := range p.Buffers() {
			if err := do(b); err != nil {
				return err
			}
		}
	}
	return nil
}

// keepParams makes the current parameters the kept ones.
func (t *trainer) keepParams() error {
	for _, p := range t.optim.Params {
		if err := t.device.Assign(p.Best, p.Value); err != nil {
			return err
		}
	}
	return nil
}

// takeKept makes the kept parameters the current ones, on the host as well.
func (t *trainer) takeKept() error {
	if err := t.fetchState(); err != nil {
		return err
	}
	for _, p := range t.optim.Params {
		copy(p.Value.F32, p.Best.F32)
		if err := t.device.CopyToDevice(p.Value); err != nil {
			return err
		}
	}
	return nil
}

// finite reports whether a value on the device has neither NaN nor infinities.
func (t *trainer) finite(b *runtime.Buffer) (bool, error) {
	t.checked[0] = b
	bad, err := t.device.Finite(nil, nil, t.checked[:])
	return bad < 0, err
}

// read3 reads three results of a function.
func read3(f *function, a, b, c string) (x, y, z *runtime.Buffer, err error) {
	if x, err = f.Read(a); err == nil {
		y, err = f.Read(b)
	}
	if err == nil {
		z, err = f.Read(c)
	}
	return x, y, z, err
}

// explainMemory adds to the error of a device without room how much the run was
// predicted to need there, and what lowers that.
func (t *trainer) explainMemory(err error) error {
	var e *runtime.MemoryError
	if !errors.As(err, &e) {
		return err
	}
	advice := t.lower()
	need := ""
	var f *Forecast
	var failed error
	if t.task.Graphs != nil {
		f, failed = PredictGraphMemoryOn(t.device, t.prog, t.task.Graphs, t.cfg)
	} else {
		f, failed = PredictMemoryOn(t.device, t.prog, t.task.Data, t.split, t.cfg)
	}
	if failed == nil {
		need = fmt.Sprintf("the run was predicted to need %.1f MiB there; ", float64(f.Device)/(1<<20))
	}
	return fmt.Errorf("%w; %s%s, or run with --device cpu", err, need, advice)
}
