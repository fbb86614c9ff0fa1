package fakedevice

import (
	"encoding/binary"
	"errors"
	"math"
	"slices"

	"github.com/gsrc-dev/gsrc/graph"
	"github.com/gsrc-dev/gsrc/rng"
	"github.com/gsrc-dev/gsrc/runtime"
	"github.com/gsrc-dev/gsrc/runtime/kernels"
)

// recording is work that was queued while the device recorded.
type recording struct {
	d    *Device
	work []func() error

	operations int
}

// SetStep writes the step number to the device.
func (d *Device) SetStep(step uint64) error {
	return d.store.Upload(d.step, binary.NativeEndian.AppendUint64(nil, step))
}

// Record keeps what is queued instead of doing it.
func (d *Device) Record(queue func() error) (runtime.CapturedGraph, error) {
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
	if r.operations > 0 {
		r.d.Replays++
	}
	for _, w := range r.work {
		if err := w(); err != nil {
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

// onCPU asks the device whether it does something, and has the CPU do it on the memory of
// buffers.
func (d *Device) onCPU(what string, do func() error, buffers ...**runtime.Buffer) error {
	if err := d.ask(what); err != nil {
		return err
	}
	for _, b := range buffers {
		x := shot(*b)
		if err := d.fill(x); err != nil {
			return err
		}
		*b = x
	}
	return do()
}

// Adam is that of the CPU.
func (d *Device) Adam(params []runtime.AdamParam, lr, b1, b2, eps float32, t int) error {
	params = slices.Clone(params)
	var all []**runtime.Buffer
	for i := range params {
		p := &params[i]
		all = append(all, &p.W, &p.G, &p.M, &p.V)
	}
	return d.onCPU("launch", func() error { return d.cpu.Adam(params, lr, b1, b2, eps, t) }, all...)
}

// Finite looks for what is not finite.
func (d *Device) Finite(scalars []*runtime.Buffer, values []float32, bs []*runtime.Buffer) (bad int, err error) {
	scalars, bs = slices.Clone(scalars), slices.Clone(bs)
	var all []**runtime.Buffer
	for _, list := range [][]*runtime.Buffer{scalars, bs} {
		for i := range list {
			all = append(all, &list[i])
		}
	}
	err = d.onCPU("download", func() error { bad, err = d.cpu.Finite(scalars, values, bs); return err }, all...)
	return bad, err
}

// EMAUpdate moves dst towards src.
func (d *Device) EMAUpdate(dst, src *runtime.Buffer, share float32) error {
	return d.onCPU("follow", func() error { return d.cpu.EMAUpdate(dst, src, share) }, &dst, &src)
}

// Score compares logits with labels.
func (d *Device) Score(logits *runtime.Buffer, sets []runtime.Scoring) (finite bool, err error) {
	there := slices.Clone(sets)
	all := []**runtime.Buffer{&logits}
	for i := range there {
		all = append(all, &there[i].Rows, &there[i].Labels)
	}
	err = d.onCPU("download", func() error { finite, err = d.cpu.Score(logits, there); return err }, all...)
	for i := range sets {
		sets[i].Hits, sets[i].Loss = there[i].Hits, there[i].Loss
	}
	return finite, err
}

// DrawAnchors draws samples.
func (d *Device) DrawAnchors(dst *runtime.Buffer, n int, s rng.Stream) error {
	return d.onCPU("draw", func() error { return d.cpu.DrawAnchors(dst, n, s) }, &dst)
}

// Candidates are searched and built on the host.
func (d *Device) Candidates(c *runtime.Candidates, emb *runtime.Buffer, o runtime.CandidateOptions) error {
	h, err := d.Export(emb)
	if err != nil {
		return err
	}
	return d.cpu.Candidates(c, h, o)
}

// CandidateBytes returns 0.
func (d *Device) CandidateBytes(int, int, int, runtime.CandidateOptions) int { return 0 }

// BlockWork returns 0.
func (d *Device) BlockWork(*runtime.DeviceBlock) int { return 0 }

// SampleBlock samples a block as the host does.
func (d *Device) SampleBlock(f *runtime.DeviceBlock) error {
	r := *f
	g, from := *f.Graph, f.From
	return d.queue(func() error { return d.sampleBlock(&r, &g, from) })
}

func (d *Device) sampleBlock(f *runtime.DeviceBlock, at *runtime.DeviceCSR, from *runtime.DeviceBlock) error {
	counts, err := elements[int32](d, f.Counts, runtime.BlockCounts)
	if err != nil {
		return err
	}
	n, exact := f.MaxTargets, f.MaxTargets
	if from != nil {
		before, err := elements[int32](d, from.Counts, runtime.BlockCounts)
		if err != nil {
			return err
		}
		n, exact = int(before[runtime.BlockAllSources]), int(before[runtime.BlockSources])
	}
	in, err := d.structure(at)
	if err != nil {
		return err
	}
	targets, err := elements[int64](d, f.Targets, n)
	if err != nil {
		return err
	}
	clear(counts)
	counts[runtime.BlockWrong] = math.MaxInt32
	for i, t := range targets {
		if t < 0 || t >= int64(in.Rows) {
			counts[runtime.BlockWrong] = int32(i)
			return nil
		}
	}
	var x graph.Block
	if err := x.RebuildFirst(&graph.Structure{N: in.Rows, E: in.NNZ(), In: in}, targets, exact); err != nil {
		return err
	}
	if x.E > f.MaxEntries {
		counts[runtime.BlockNeeded] = int32(x.E)
		return nil
	}
	counts[runtime.BlockTargets], counts[runtime.BlockExact], counts[runtime.BlockEntries] = int32(n), int32(exact), int32(x.E)
	if f.Pads {
		x.Pad(runtime.PaddedRows(len(x.Sources)), runtime.PaddedEntries(x.E))
	}
	counts[runtime.BlockSources], counts[runtime.BlockAllSources], counts[runtime.BlockAllEntries] = int32(x.NumValid), int32(len(x.Sources)), int32(x.E)
	return errors.Join(put(d, f.Sources, x.Sources), put(d, f.Entries, x.Entries), d.putCSR(&f.In, x.In), d.putCSR(&f.Out, x.Out))
}

// putCSR writes a structure to its addresses.
func (d *Device) putCSR(at *runtime.DeviceCSR, c *kernels.CSR) error {
	rows := make([]int32, len(c.Col))
	for r := range c.Rows {
		for e := c.RowPtr[r]; e < c.RowPtr[r+1]; e++ {
			rows[e] = int32(r)
		}
	}
	return errors.Join(put(d, at.RowPtr, c.RowPtr), put(d, at.Col, c.Col), put(d, at.Row, rows), put(d, at.Perm, c.Perm))
}

func put[T int32 | int64](d *Device, at uintptr, x []T) error {
	to, err := elements[T](d, at, len(x))
	copy(to, x)
	return err
}
