// Package fakedevice is a device for tests whose memory is not the host's: its
// addresses mean nothing to the host, fresh memory is full of NaN, and what is
// read must have been put there. It computes with the kernels of the CPU, so that a
// program gives the same bits on both.
//
// It is strict. An address outside live memory, and a buffer that the host changed
// without binding it again, are errors. What is not given back Leaks counts.
package fakedevice

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/gsrc-dev/gsrc/graph"
	"github.com/gsrc-dev/gsrc/ir"
	"github.com/gsrc-dev/gsrc/rng"
	"github.com/gsrc-dev/gsrc/runtime"
	"github.com/gsrc-dev/gsrc/runtime/kernels"
)

// Device is a [runtime.Device] whose work is queued. Make one with [New].
type Device struct {
	*runtime.DeviceBuffers
	// Fail, if set, is asked before the device does something: alloc, upload,
	// download, launch, record, replay. Its error is what comes of it.
	Fail func(what string) error
	// Runs counts operations that were queued one by one, Replays those of recordings of
	// operations.
	Runs, Replays int
	// Pad has blocks padded (see [runtime.Device]). Sums over their rows
	// may then be made in another order than on the CPU.
	Pad bool

	store     store
	step      uintptr
	pool      *kernels.Pool
	cpu       runtime.Device // computes
	recording *recording     // what is queued goes here, unless nil
}

// New returns a device with a thread of its own.
func New() (*Device, error) {
	d := &Device{pool: kernels.NewPool(1)}
	d.cpu = runtime.NewCPU(d.pool)
	d.store = store{d: d, next: 1 << 40}
	d.DeviceBuffers = runtime.NewDeviceBuffers(&d.store)
	var err error
	d.step, err = d.store.Alloc(8)
	return d, err
}

// Close gives back what the device holds itself.
func (d *Device) Close() error {
	d.pool.Close()
	return d.store.Free(d.step)
}

// Leaks returns the bytes that are still allocated.
func (d *Device) Leaks() (n int) {
	for _, b := range d.store.blocks {
		n += len(b.data)
	}
	return n
}

func (d *Device) ask(what string) error {
	if d.Fail == nil {
		return nil
	}
	return d.Fail(what)
}

// Name returns "fakedevice".
func (d *Device) Name() string { return "fakedevice" }

// Pads returns Pad.
func (d *Device) Pads() bool { return d.Pad }

// MemoryLimit returns that there is none.
func (d *Device) MemoryLimit(int64) int64 { return math.MaxInt64 }

// Attach queues what programs do.
func (d *Device) Attach(p *runtime.Program) runtime.Runner { return p.OnQueue(d) }

// Workspace is that of the CPU.
func (d *Device) Workspace(k *runtime.Call) (int, kernels.Scratch) { return d.cpu.Workspace(k) }

// Import also looks whether the host changed what the device has.
func (d *Device) Import(view, bound *runtime.Buffer) error {
	if err := d.DeviceBuffers.Import(view, bound); err != nil || bound.OnDevice() {
		return err
	}
	there := shot(bound)
	if err := d.fill(there); err != nil {
		return err
	}
	same := true
	switch {
	case bound.Graph != nil:
		same = sameStructure(there.Graph.In, bound.Graph.In) && sameStructure(there.Graph.Out, bound.Graph.Out)
	case bound.Sparse != nil:
		same = sameStructure(there.Sparse.ByRow, bound.Sparse.ByRow) && slices.Equal(there.Sparse.Values, bound.Sparse.Values)
	case bound.DType == ir.I64:
		same = slices.Equal(there.I64, bound.I64)
	default:
		same = slices.Equal(there.F32, bound.F32)
	}
	if !same {
		return fmt.Errorf("fakedevice: a buffer of size %v changed and was not bound again", bound.Dims)
	}
	return nil
}

func sameStructure(a, b *kernels.CSR) bool {
	return slices.Equal(a.RowPtr, b.RowPtr) && slices.Equal(a.Col, b.Col) && slices.Equal(a.Perm, b.Perm)
}

// work is one queued operation, with the addresses and sizes of when it was queued.
type work struct {
	d       *Device
	kernel  runtime.Kernel
	call    runtime.Call
	in, out []*runtime.Buffer
}

// Kernel queues the CPU's kernel.
func (d *Device) Kernel(op *ir.Op) (runtime.Kernel, error) {
	kernel, err := d.cpu.Kernel(op)
	if err != nil {
		return nil, err
	}
	return func(k *runtime.Call) error {
		if err := d.ask("launch"); err != nil {
			return err
		}
		if floats, _ := d.Workspace(k); floats > 0 {
			if _, err := d.store.memory(k.ScratchAt(), 4*floats); err != nil {
				return fmt.Errorf("workspace: %w", err)
			}
		}
		w := &work{d: d, kernel: kernel, call: runtime.Call{Op: k.Op, Pool: d.pool, Stream: k.Stream}, in: shots(k.In), out: shots(k.Out)}
		if d.recording != nil {
			d.recording.operations++
		} else {
			d.Runs++
		}
		return d.queue(w.run)
	}, nil
}

// queue does work, or records it.
func (d *Device) queue(work func() error) error {
	if d.recording != nil {
		d.recording.work = append(d.recording.work, work)
		return nil
	}
	return work()
}

// shots copies buffers as they are now, without contents.
func shots(bs []*runtime.Buffer) []*runtime.Buffer {
	out := make([]*runtime.Buffer, len(bs))
	for i, b := range bs {
		if b != nil {
			out[i] = shot(b)
		}
	}
	return out
}

func shot(b *runtime.Buffer) *runtime.Buffer {
	s := &runtime.Buffer{DType: b.DType, Dims: slices.Clone(b.Dims), Device: b.Device}
	if b.Device.In != nil {
		in, dst := *b.Device.In, *b.Device.Out
		s.Device.In, s.Device.Out = &in, &dst
	}
	if b.Graph != nil {
		s.Graph = &graph.Structure{N: b.Graph.N, E: b.Graph.E}
	}
	if b.Sparse != nil {
		s.Sparse = &runtime.SparseMatrix{}
	}
	return s
}

// run maps the addresses and calls the kernel.
func (w *work) run() error {
	for _, b := range slices.Concat(w.in, w.out) {
		if b == nil {
			continue
		}
		if err := w.d.fill(b); err != nil {
			return err
		}
	}
	w.call.In, w.call.Out = w.in, w.out
	step, err := elements[uint64](w.d, w.d.step, 1)
	if err != nil {
		return err
	}
	if w.call.Stream != rng.Stream(0) {
		w.call.Key = w.call.Stream.At(step[0])
	}
	return w.kernel(&w.call)
}

// fill makes a buffer's payload the memory at its addresses.
func (d *Device) fill(b *runtime.Buffer) (err error) {
	switch {
	case b.Graph != nil:
		if b.Graph.In, err = d.structure(b.Device.In); err == nil {
			b.Graph.Out, err = d.structure(b.Device.Out)
		}
	case b.Sparse != nil:
		if b.Sparse.ByRow, err = d.structure(b.Device.In); err != nil {
			return err
		}
		if b.Sparse.ByCol, err = d.structure(b.Device.Out); err == nil {
			b.Sparse.Values, err = elements[float32](d, b.Device.Elements, b.Device.In.NNZ)
		}
	case b.DType == ir.I64:
		b.I64, err = elements[int64](d, b.Device.Elements, b.Size())
	default:
		b.F32, err = elements[float32](d, b.Device.Elements, b.Size())
	}
	return err
}

func (d *Device) structure(at *runtime.DeviceCSR) (*kernels.CSR, error) {
	if at == nil {
		return nil, errors.New("fakedevice: a structure is not on the device")
	}
	c := &kernels.CSR{Rows: at.Rows, Cols: at.Cols}
	var rows []int32
	for _, x := range []struct {
		to *[]int32
		at uintptr
		n  int
	}{{&c.RowPtr, at.RowPtr, at.Rows + 1}, {&c.Col, at.Col, at.NNZ}, {&rows, at.Row, at.NNZ}, {&c.Perm, at.Perm, at.NNZ}} {
		if x.to == &c.Perm && x.at == 0 {
			continue
		}
		var err error
		if *x.to, err = elements[int32](d, x.at, x.n); err != nil {
			return nil, err
		}
	}
	for r := range c.Rows {
		for e := c.RowPtr[r]; e < c.RowPtr[r+1]; e++ {
			if rows[e] != int32(r) {
				return nil, fmt.Errorf("fakedevice: entry %d is of row %d, not %d", e, r, rows[e])
			}
		}
	}
	return c, nil
}
