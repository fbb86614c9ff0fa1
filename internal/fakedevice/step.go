package fakedevice

import (
	"encoding/binary"
	"slices"

	"github.com/gsrc-dev/gsrc/runtime"
	"github.com/gsrc-dev/gsrc/runtime/kernels"
)

// recording is work that was queued while the device recorded.
type recording struct {
	d    *Device
	work []*work
}

// SetStep writes the step number to the device.
func (d *Device) SetStep(step uint64) error {
	return d.store.Upload(d.step, binary.NativeEndian.AppendUint64(nil, step))
}

// Record keeps what is queued instead of doing it.
func (d *Device) Record(queue func() error) (runtime.Recording, error) {
	if err := d.ask("record"); err != nil {
		return nil, err
	}
	r := &recording{d: d}
	d.recording = r
	err := queue()
	d.recording = nil
	if err != nil {
		return nil, err
	}
	return r, nil
}

// Replay does the recorded work.
func (r *recording) Replay() error {
	if err := r.d.ask("replay"); err != nil {
		return err
	}
	r.d.Replays++
	for _, w := range r.work {
		if err := w.run(); err != nil {
			return err
		}
	}
	return nil
}

// Close forgets the work.
func (r *recording) Close() error {
	r.work = nil
	return nil
}

// Sync has nothing to wait for.
func (d *Device) Sync() error { return d.ask("sync") }

func (d *Device) floats(b *runtime.Buffer) ([]float32, error) {
	return elements[float32](d, b.At.Elements, b.Size())
}

// Adam is that of package kernels.
func (d *Device) Adam(params []runtime.AdamParam, lr, b1, b2, eps float32, t int) error {
	if err := d.ask("launch"); err != nil {
		return err
	}
	there := make([]kernels.AdamParam, len(params))
	for i, p := range params {
		q := &there[i]
		q.WeightDecay = p.WeightDecay
		for _, x := range []struct {
			to   *[]float32
			from *runtime.Buffer
		}{{&q.W, p.W}, {&q.G, p.G}, {&q.M, p.M}, {&q.V, p.V}} {
			var err error
			if *x.to, err = d.floats(x.from); err != nil {
				return err
			}
		}
	}
	d.pool.AdamStep(there, lr, b1, b2, eps, t)
	return nil
}

// Finite looks for what is not finite.
func (d *Device) Finite(scalars []*runtime.Buffer, values []float32, bs []*runtime.Buffer) (int, error) {
	if err := d.ask("download"); err != nil {
		return -1, err
	}
	for i, b := range scalars {
		x, err := d.floats(b)
		if err != nil {
			return -1, err
		}
		values[i] = x[0]
	}
	for i, b := range bs {
		x, err := d.floats(b)
		if err != nil {
			return -1, err
		}
		for _, v := range x {
			if v-v != 0 {
				return i, nil
			}
		}
	}
	return -1, nil
}

// Follow moves dst towards src.
func (d *Device) Follow(dst, src *runtime.Buffer, share float32) error {
	to, err := d.floats(dst)
	if err != nil {
		return err
	}
	from, err := d.floats(src)
	if err != nil {
		return err
	}
	for i, v := range from[:len(to)] {
		to[i] += share * (v - to[i])
	}
	return nil
}

// Score compares logits with labels.
func (d *Device) Score(logits *runtime.Buffer, sets []runtime.Scoring) (bool, error) {
	if err := d.ask("download"); err != nil {
		return false, err
	}
	x, err := d.floats(logits)
	if err != nil {
		return false, err
	}
	k := logits.Dims[1]
	for i := range sets {
		s := &sets[i]
		rows, err := elements[int64](d, s.Rows.At.Elements, s.Rows.Size())
		if err != nil {
			return false, err
		}
		labels, err := elements[int64](d, s.Labels.At.Elements, s.Labels.Size())
		if err != nil {
			return false, err
		}
		s.Hits, s.Loss = 0, 0
		for j, r := range rows {
			row := x[int(r)*k:][:k]
			if kernels.Top(row) == int(labels[j]) {
				s.Hits++
			}
			s.Loss += kernels.NLL(row, int(labels[j]))
		}
	}
	return !slices.ContainsFunc(x, func(v float32) bool { return v-v != 0 }), nil
}
