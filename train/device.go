package train

import (
	"errors"
	"fmt"

	"github.com/gsrc-dev/gsrc/graph"
	"github.com/gsrc-dev/gsrc/runtime"
	"github.com/gsrc-dev/gsrc/train/optim"
)

// there is what a step of a function moves on a device with a memory of its own:
// results and parameters where they lie.
type there struct {
	terms  []*runtime.Buffer
	values []float32
	grads  []*runtime.Buffer // of all groups, in the order of names
	names  []string
	adam   [][]runtime.AdamParam // by update
	follow []*runtime.Buffer     // by moved parameter
}

func newThere(f *function) *there {
	r := &there{values: make([]float32, len(f.terms))}
	for i := range f.terms {
		r.terms = append(r.terms, f.Result(f.terms[i].name))
	}
	for _, u := range f.updates {
		var ps []runtime.AdamParam
		for i, p := range u.params {
			g := f.Result(u.names[i])
			r.grads, r.names = append(r.grads, g), append(r.names, p.Name)
			ps = append(ps, runtime.AdamParam{W: p.Value, G: g, M: p.M, V: p.V, WeightDecay: p.Decay})
		}
		r.adam = append(r.adam, ps)
	}
	for _, m := range f.moved {
		r.follow = append(r.follow, f.Result(m.result))
	}
	return r
}

// stepThere ends a step on a device with a memory of its own: what the host gets to
// see are the terms of the loss, and whether all gradients are finite.
func (t *trainer) stepThere(f *function, step int) (float64, error) {
	if f.there == nil {
		f.there = newThere(f)
	}
	r := f.there
	if f.ahead != nil {
		if err := f.ahead(step + 1); err != nil {
			return 0, err
		}
	}
	bad, err := t.accel.Finite(r.terms, r.values, r.grads)
	if err != nil {
		return 0, fmt.Errorf("@%s at step %d: %w", f.Name(), step, err)
	}
	for i, v := range r.values {
		f.terms[i].value = v
	}
	if err := t.checkTerms(f, step); err != nil {
		return 0, err
	}
	if bad >= 0 {
		return 0, t.nonFinite(f, step, "the gradient of $"+r.names[bad])
	}
	for i := range f.updates {
		g := f.updates[i].group
		g.Steps++
		if err := t.accel.Adam(r.adam[i], float32(g.LR), optim.Beta1, optim.Beta2, optim.Epsilon, g.Steps); err != nil {
			return 0, err
		}
	}
	for i, m := range f.moved {
		if err := t.accel.Follow(m.p.Value, r.follow[i], 0.1); err != nil {
			return 0, err
		}
	}
	return f.loss()
}

// scoreThere is score of the logits that the classifier has just computed on a device
// with a memory of its own: the host gets to see the counts.
func (t *trainer) scoreThere(f *function) (score, error) {
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
			if err := errors.Join(t.accel.Memory().Own(rows), t.accel.Memory().Own(labels)); err != nil {
				return score{}, err
			}
			t.scored = append(t.scored, runtime.Scoring{Rows: rows, Labels: labels})
		}
	}
	finite, err := t.accel.Score(logits, t.scored)
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

// giveState gives parameters and the optimizer's state to a device with a memory of
// its own, unless it has them. From then on the host has copies, as old as the last
// fetchState.
func (t *trainer) giveState() error {
	if t.accel == nil {
		return nil
	}
	for _, p := range t.optim.Params {
		for _, b := range p.Buffers() {
			if err := t.accel.Memory().Own(b); err != nil {
				return err
			}
		}
	}
	return nil
}

// fetchState copies what giveState gave back to the host.
func (t *trainer) fetchState() error {
	if t.accel == nil {
		return nil
	}
	for _, p := range t.optim.Params {
		for _, b := range p.Buffers() {
			if err := t.accel.Memory().Fetch(b); err != nil {
				return err
			}
		}
	}
	return nil
}

// keepParams makes the current parameters the kept ones.
func (t *trainer) keepParams() error {
	for _, p := range t.optim.Params {
		if t.accel == nil {
			copy(p.Best.F32, p.Value.F32)
		} else if err := t.accel.Memory().Assign(p.Best, p.Value); err != nil {
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
		if t.accel != nil {
			if err := t.accel.Memory().Put(p.Value); err != nil {
				return err
			}
		}
	}
	return nil
}

// finite reports whether a value on the device has neither NaN nor infinities.
func (t *trainer) finite(b *runtime.Buffer) (bool, error) {
	if t.accel == nil {
		return finite(b.F32), nil
	}
	bad, err := t.accel.Finite(nil, nil, []*runtime.Buffer{b})
	return bad < 0, err
}

// evaluation is what @classify is evaluated on, in buffers that are used again.
type evaluation struct{ g, w *runtime.Buffer }

// graph returns a buffer on the structure: that of the input, where it is the same.
func (e *evaluation) graph(t *trainer, st *graph.Structure) *runtime.Buffer {
	if g := t.inputs["g"]; g != nil && g.Graph == st {
		return g
	}
	if e.g == nil {
		e.g = runtime.Graph(st)
	}
	e.g.Graph, e.g.Dims[0], e.g.Dims[1] = st, st.N, st.E
	return e.g
}

// weights returns a buffer on the weights.
func (e *evaluation) weights(w []float32) *runtime.Buffer {
	if e.w == nil {
		e.w = runtime.F32(nil, 0)
	}
	e.w.F32, e.w.Dims[0] = w, len(w)
	return e.w
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
