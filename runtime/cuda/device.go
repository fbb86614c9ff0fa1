package cuda

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"strings"

	"github.com/gsrc-dev/gsrc/ir"
	"github.com/gsrc-dev/gsrc/runtime"
	"github.com/gsrc-dev/gsrc/runtime/cuda/driver"
	"github.com/gsrc-dev/gsrc/runtime/cuda/ptx"
	"github.com/gsrc-dev/gsrc/runtime/kernels"
)

// Options say how a GPU is opened. The zero value is a good default.
type Options struct {
	// Driver is the path of the driver's library; empty is the system's, or what the
	// environment variable GSRC_CUDA_DRIVER names.
	Driver string
	// Ordinal is the number of the GPU, from 0.
	Ordinal int
	// TF32 lets cuBLAS round the factors of matrix products to TF32: faster, with
	// about three decimal digits in place of seven.
	TF32 bool
}

// NoBLAS names the environment variable that, if set, has matrix products done by
// gsrc's own kernel even where cuBLAS is found.
const NoBLAS = "GSRC_NO_CUBLAS"

// Device is a GPU as a [runtime.Device]: all that a process does on it goes
// through one stream, in order. It serves one goroutine at a time.
type Device struct {
	*runtime.DeviceBuffers
	name      string
	info      driver.Device
	ctx       *driver.Context
	stream    *driver.Stream
	module    *driver.Module
	functions map[string]*driver.Function
	blas      *driver.BLAS // nil where cuBLAS was not found
	blasName  string
	tf32      bool
	near      runtime.Buffer // memory of Nearest
	chosen    runtime.Buffer // memory of Candidates
	found     []int32        // neighbours, for the host
	drawn     runtime.Buffer // memory of DrawAnchors
	cpu       runtime.Device // draws and searches what the GPU does not
	step      uintptr
	now       uint64 // the step number there
	faults    faults
	report    report
	scoring   scoring
	staging   staging
	capturing bool
}

// Open takes a GPU into use. Its error wraps driver.ErrNoDriver where there is no
// driver, and driver.ErrNoDevice where there is no such GPU.
func Open(o Options) (*Device, error) {
	lib, err := driver.Open(o.Driver)
	if err != nil {
		return nil, err
	}
	all := lib.Devices()
	if o.Ordinal < 0 || o.Ordinal >= len(all) {
		return nil, fmt.Errorf("%w with the number %d: there are %d, from 0 on", driver.ErrNoDevice, o.Ordinal, len(all))
	}
	d := &Device{info: all[o.Ordinal], functions: map[string]*driver.Function{}, tf32: o.TF32, cpu: runtime.NewCPU(nil)}
	d.name = fmt.Sprintf("cuda:%d (%s)", o.Ordinal, d.info.Name)
	d.DeviceBuffers = runtime.NewDeviceBuffers(d)
	if err := d.open(lib); err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", d.name, err), d.Close())
	}
	return d, nil
}

func (d *Device) open(lib *driver.Driver) (err error) {
	if d.ctx, err = d.info.Open(); err != nil {
		return err
	}
	if d.stream, err = d.ctx.NewStream(); err != nil {
		return err
	}
	if d.module, err = d.ctx.LoadModule(ptx.Text()); err != nil {
		return err
	}
	if d.step, err = d.ctx.Alloc(16); err != nil { // and the word for faults
		return err
	}
	if err := d.stream.Fill(d.step, 0, 16); err != nil {
		return err
	}
	if err := d.SetStep(0); err != nil {
		return err
	}
	d.blasName = "gsrc's own kernel"
	if os.Getenv(NoBLAS) != "" {
		return nil
	}
	blas, err := lib.OpenBLAS("")
	if errors.Is(err, driver.ErrNoBLAS) {
		return nil
	}
	if err == nil {
		d.blasName = "cuBLAS " + blas.Version
		if d.tf32 {
			d.blasName += " in TF32"
		}
		d.blas, err = d.stream.NewBLAS(blas, d.tf32)
	}
	return err
}

// Close gives the GPU back. What it still holds is lost.
func (d *Device) Close() error {
	var errs []error
	if d.stream != nil {
		errs = append(errs, d.ReleaseAll(), d.report.freeTables(d), d.report.free(d), d.scoring.free(d), d.stream.Synchronize(), d.staging.free())
	}
	if d.blas != nil {
		errs = append(errs, d.blas.Close())
	}
	if d.step != 0 {
		errs = append(errs, d.ctx.Free(d.step))
	}
	if d.module != nil {
		errs = append(errs, d.module.Close())
	}
	if d.stream != nil {
		errs = append(errs, d.stream.Close())
	}
	if d.ctx != nil {
		errs = append(errs, d.ctx.Close())
	}
	d.blas, d.step, d.module, d.stream, d.ctx = nil, 0, nil, nil, nil
	return errors.Join(errs...)
}

// Name returns the device's name, such as "cuda:0 (NVIDIA H100 80GB HBM3)".
func (d *Device) Name() string { return d.name }

// Info returns what the driver says of the GPU.
func (d *Device) Info() driver.Device { return d.info }

// Products says what multiplies dense matrices: cuBLAS with its version, or gsrc's
// own kernel.
func (d *Device) Products() string { return d.blasName }

// Kernel returns what queues an operation.
func (d *Device) Kernel(op *ir.Op) (runtime.Kernel, error) {
	kernel, err := Lookup(op)
	if err != nil {
		return nil, err
	}
	return func(k *runtime.Call) error { return kernel(d, k) }, nil
}

// MemoryLimit returns that there is none beforehand: the driver says when it is full.
func (d *Device) MemoryLimit(int64) int64 { return math.MaxInt64 }

// Attach queues what programs do on the GPU's stream.
func (d *Device) Attach(p *runtime.Program) runtime.Runner { return p.OnQueue(d) }

// Pads returns true: what is recorded for the block of one step is replayed
// for those of others.
func (d *Device) Pads() bool { return true }

// BlockWork returns the workspace of SampleBlock.
func (d *Device) BlockWork(f *runtime.DeviceBlock) int { return blockWorkBytes(f) }

// SampleBlock queues the sampling of a block.
func (d *Device) SampleBlock(f *runtime.DeviceBlock) error {
	return queued(d, func(q *steps) { sampleBlock(q, f) })
}

// Workspace returns the floats of scratch of a call; nothing on a GPU is of the
// pool of threads.
func (d *Device) Workspace(k *runtime.Call) (int, kernels.Scratch) {
	if d.blas != nil && strings.HasPrefix(k.Op.Name(), "matmul") && k.In[0].Sparse == nil {
		return 0, kernels.Scratch{} // cuBLAS has its own
	}
	return (Workspace(k) + 3) / 4, kernels.Scratch{}
}

// Launch queues a kernel of the module; see [Stream].
func (d *Device) Launch(kernel string, grid, block [3]uint32, shared uint32, args ...uint64) error {
	f := d.functions[kernel]
	if f == nil {
		var err error
		if f, err = d.module.Function(kernel); err != nil {
			return err
		}
		d.functions[kernel] = f
	}
	return d.stream.Launch(f, grid, block, shared, args...)
}

// Copy queues a copy; see [Stream].
func (d *Device) Copy(dst, src uintptr, bytes int) error { return d.stream.Copy(dst, src, bytes) }

// MatMul queues a product; see [Stream].
func (d *Device) MatMul(m MatMul) error {
	if d.blas == nil || m.M == 0 || m.N == 0 || m.K == 0 {
		return LaunchMatMul(d, m)
	}
	return d.blas.MatMul(m.C, m.A, m.B, m.M, m.N, m.K, m.TA, m.TB, m.Accumulate)
}

// Step returns the address of the step number.
func (d *Device) Step() uintptr { return d.step }

// SetStep writes the step number.
func (d *Device) SetStep(step uint64) error {
	d.now = step
	d.report.number = binary.LittleEndian.AppendUint64(d.report.number[:0], step)
	return d.Upload(d.step, d.report.number)
}

// Record captures what is queued as a CUDA graph.
func (d *Device) Record(queue func() error) (runtime.CapturedGraph, error) {
	d.capturing = true
	g, err := d.stream.Capture(queue)
	d.capturing = false
	if err != nil {
		return nil, err
	}
	x, err := g.Instantiate()
	if err := errors.Join(err, g.Close()); err != nil {
		return nil, err
	}
	return recording{d, x}, nil
}

type recording struct {
	d *Device
	x *driver.Exec
}

// Replay queues the whole graph.
func (r recording) Replay() error { return r.x.Launch(r.d.stream) }

// Close destroys the graph.
func (r recording) Close() error { return r.x.Close() }

// Sync waits for the stream.
func (d *Device) Sync() error {
	err := d.stream.Synchronize()
	if err == nil {
		d.staging.used = 0
	}
	return err
}

// Alloc allocates device memory; see [runtime.DeviceMemory].
func (d *Device) Alloc(bytes int) (uintptr, error) {
	at, err := d.ctx.Alloc(bytes)
	if errors.Is(err, driver.ErrOutOfMemory) {
		now, _ := d.Held()
		return 0, &runtime.MemoryError{Device: d.name, Asked: bytes, Held: now, Err: err}
	}
	return at, err
}

// Free frees it, behind the work that is queued.
func (d *Device) Free(at uintptr) error { return d.ctx.Free(at) }

// room is memory that the device has for itself, and [runtime.DeviceBuffers.Held] does not count.
type room struct {
	at    uintptr
	bytes int
}

func (r *room) free(d *Device) error {
	at := r.at
	r.at, r.bytes = 0, 0
	return d.Free(at)
}

// reserve makes it that large at least. What was in it is lost where it grows.
func (r *room) reserve(d *Device, bytes int) error {
	if bytes <= r.bytes {
		return nil
	}
	if err := r.free(d); err != nil {
		return err
	}
	at, err := d.Alloc(bytes)
	if err == nil {
		r.at, r.bytes = at, bytes
	}
	return err
}
