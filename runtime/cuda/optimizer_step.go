package cuda

import (
	"errors"
	"slices"

	"github.com/gsrc-dev/gsrc/runtime"
)

// chunk is the number of elements that a block of step.cu's kernels has.
const chunk = 1024

// report is what the kernels behind a training step read and write: tables of
// tensors, which stay on the device while they are the same, and numbers for the host.
type report struct {
	tables []listing
	words  []uint64  // of a table, before it is compared with those that are there
	room             // of numbers on the device
	host   []float32 // the same on the host
	number []byte
}

type listing struct {
	words []uint64
	at    uintptr
}

// mostTables bounds the tables that are kept: two for each function that trains, and
// those of buffers that moved.
const mostTables = 64

// table returns the address of the words on the device.
func (r *report) table(d *Device) (uintptr, error) {
	for i := range r.tables {
		if slices.Equal(r.tables[i].words, r.words) {
			return r.tables[i].at, nil
		}
	}
	if len(r.tables) == mostTables {
		if err := r.freeTables(d); err != nil {
			return 0, err
		}
	}
	at, err := d.ctx.Alloc(8 * max(1, len(r.words)))
	if err != nil {
		return 0, err
	}
	r.tables = append(r.tables, listing{slices.Clone(r.words), at})
	return at, d.Upload(at, bytesOf(r.words))
}

func (r *report) freeTables(d *Device) error {
	var errs []error
	for _, t := range r.tables {
		errs = append(errs, d.ctx.Free(t.at))
	}
	r.tables = nil
	return errors.Join(errs...)
}

// Adam makes an optimizer step over all parameters in one launch, one row of blocks
// for each. The kernel counts from the run's step number on.
func (d *Device) Adam(params []runtime.AdamParam, lr, b1, b2, eps float32, t int) error {
	r := &d.report
	r.words = r.words[:0]
	most := 0
	for i := range params {
		p := &params[i]
		n := p.W.Size()
		r.words = append(r.words, Ptr(p.W.Device.Elements), Ptr(p.G.Device.Elements), Ptr(p.M.Device.Elements), Ptr(p.V.Device.Elements), uint64(n), Float(p.WeightDecay))
		most = max(most, n)
	}
	if most == 0 {
		return nil
	}
	at, err := r.table(d)
	if err != nil {
		return err
	}
	grid := blocks(most, threads)
	grid[1] = uint32(len(params))
	return d.Launch("gsrc_adam", grid, [3]uint32{threads, 1, 1}, 0,
		Ptr(at), Ptr(d.step), Long(t-int(d.now)), Float(lr), Float(b1), Float(b2), Float(eps))
}

// Finite looks for what is not finite, and reads scalars, in one copy to the host.
func (d *Device) Finite(scalars []*runtime.Buffer, values []float32, bs []*runtime.Buffer) (int, error) {
	r := &d.report
	r.words = r.words[:0]
	for _, b := range scalars {
		r.words = append(r.words, Ptr(b.Device.Elements), 0, 1)
	}
	chunks := 0
	for _, b := range bs {
		if _, err := countElements(b.Dims); err != nil {
			return -1, err
		}
		r.words = append(r.words, Ptr(b.Device.Elements), uint64(chunks), uint64(b.Size()))
		chunks += (b.Size() + chunk - 1) / chunk
	}
	n := len(scalars) + len(bs)
	if n == 0 {
		return -1, nil
	}
	r.host = slices.Grow(r.host[:0], n)[:n]
	if err := r.reserve(d, 4*n); err != nil {
		return -1, err
	}
	if err := r.queue(d, r.at, len(scalars), len(bs), chunks); err != nil {
		return -1, err
	}
	if err := d.Download(bytesOf(r.host), r.at); err != nil {
		return -1, err
	}
	copy(values, r.host[:len(scalars)])
	return slices.IndexFunc(r.host[len(scalars):], func(v float32) bool { return v != 0 }), nil
}

// notFinite queues the look for what is not finite among n elements; the float at flag
// becomes 1 if there is any, or else 0.
func (d *Device) notFinite(flag, x uintptr, n int) error {
	r := &d.report
	r.words = append(r.words[:0], Ptr(x), 0, uint64(n))
	return r.queue(d, flag, 0, 1, (n+chunk-1)/chunk)
}

// queue queues the copy of scalars to dst, and behind them for each tensor, which have so many
// chunks together, whether it has what is not finite. The words are of scalars and tensors.
func (r *report) queue(d *Device, dst uintptr, scalars, tensors, chunks int) error {
	table, err := r.table(d)
	if err != nil {
		return err
	}
	return queued(d, func(q *steps) {
		q.every("gsrc_report", scalars+tensors, Ptr(dst), Ptr(table), Int(scalars), Int(tensors))
		if chunks > 0 {
			flags, rows := dst+uintptr(4*scalars), table+uintptr(3*8*scalars)
			q.launch("gsrc_finite", [3]uint32{uint32(chunks), 1, 1}, [3]uint32{threads, 1, 1}, 0, Ptr(flags), Ptr(rows), Int(tensors))
		}
	})
}

// EMAUpdate moves dst towards src.
func (d *Device) EMAUpdate(dst, src *runtime.Buffer, share float32) error {
	n, err := countElements(dst.Dims)
	if err != nil {
		return err
	}
	return queued(d, func(q *steps) { q.every("gsrc_follow", n, at(dst), at(src), Int(n), Float(share)) })
}
