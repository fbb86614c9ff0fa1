package runtime

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/gsrc-dev/gsrc/ir"
	"github.com/gsrc-dev/gsrc/rng"
	"github.com/gsrc-dev/gsrc/runtime/kernels"
)

// Options says how a program runs. The zero value is a good default.
type Options struct {
	// NewExecutor makes what runs the program; nil is the arena executor, which
	// plans memory and allocates nothing after the first run.
	NewExecutor func(*Program) (Executor, error)
	// Device has kernels and memory; nil means CPU.
	Device Device
	// Pool is the threads that CPU kernels use; nil means one made for this
	// program, with a thread for each processor. A pool serves one run at a time.
	Pool *kernels.Pool
	// Seed is the stream that random operations draw from.
	Seed rng.Stream
	// CheckFinite stops a run at the first operation that gives NaN or an
	// infinity. It costs a pass over every result: for hunting faults.
	CheckFinite bool
	// Profile measures the time of every operation, for [Executable.Profile];
	// the arena executor only.
	Profile bool
	// Trace, if set, records when each operation ran; the arena executor only.
	Trace *Trace
	// Chunks, if set, has the set-up of a [Function] run over chunks of nodes, with what it gives in
	// files: see [Chunked].
	Chunks *Chunks
}

// Chunks says where rows of scratch lie, and how many bytes a chunk of nodes may take beside them.
type Chunks struct {
	Dir  string
	Room int
}

// Executable is a function ready to run: bind its inputs by name, run it, read
// its outputs. It is not safe for use by several goroutines at once.
type Executable struct {
	p       *program
	opts    Options
	ownPool bool
	exec    executor
	byName  map[string]*input
	params  map[string]bool // of the module, whether read or not
	ready   bool            // sizes are resolved and memory is there
	ran     bool
	closed  bool
}

// executor runs a program whose sizes are resolved.
type executor interface {
	Executor
	// allocate provides memory for the sizes that the program's slots have now.
	allocate() error
}

// NewExecutable makes a function executable. All its operations must be of the
// tensor level, with kernels on the device; the error names one that is not.
func NewExecutable(m *ir.Module, f *ir.Func, opts Options) (*Executable, error) {
	if err := ir.Verify(m, f); err != nil {
		return nil, fmt.Errorf("runtime: %w", err)
	}
	if opts.Device == nil {
		opts.Device = CPU
	}
	p, err := newProgram(m, f, opts.Device, opts.Seed)
	if err != nil {
		return nil, fmt.Errorf("runtime: %w", err)
	}
	x := &Executable{p: p, opts: opts, byName: map[string]*input{}, params: map[string]bool{}}
	for _, in := range p.inputs {
		x.byName[in.value.Name] = in
	}
	for _, v := range m.Params {
		x.params[v.Name] = true
	}
	if opts.Pool == nil {
		x.opts.Pool, x.ownPool = kernels.NewPool(0), true
	}
	p.check = opts.CheckFinite
	for _, i := range p.ops {
		i.Pool = x.opts.Pool
	}
	if opts.NewExecutor != nil {
		if err = p.runner.separate(); err == nil {
			x.exec, err = newSeparate(p, x.opts)
		}
	} else {
		x.exec = newArenaExecutor(p, x.opts)
	}
	if err != nil {
		x.Close()
		return nil, fmt.Errorf("runtime: @%s: %w", f.Name, err)
	}
	return x, nil
}

// Close ends the threads that the executable started itself, and gives back what
// it holds in the device's memory. What [Executable.Output] has returned
// stays readable; Bind and Run fail from then on.
func (x *Executable) Close() {
	x.closed = true
	if x.ownPool {
		x.opts.Pool.Close()
	}
	if e, ok := x.exec.(*arenaExecutor); ok {
		_ = e.close() // a device that fails here has failed before, with an error that was returned
		x.ran, x.ready = false, false
	}
}

// open returns an error if the executable is closed.
func (x *Executable) open() error {
	if x.closed {
		return fmt.Errorf("runtime: @%s is closed", x.Name())
	}
	return nil
}

// Name returns the name of the function.
func (x *Executable) Name() string { return x.p.fn.Name }

// Func returns the function that runs.
func (x *Executable) Func() *ir.Func { return x.p.fn }

// Inputs returns the names of all inputs that must be bound: the arguments and
// the parameters that the function reads.
func (x *Executable) Inputs() []string {
	var names []string
	for _, in := range x.p.inputs {
		names = append(names, in.value.Name)
	}
	return names
}

// Outputs returns the names of the results in order.
func (x *Executable) Outputs() []string {
	var names []string
	for _, r := range x.p.fn.Results {
		names = append(names, r.Name)
	}
	return names
}

// Bind gives an argument or a parameter its value. The buffer is kept, not
// copied: its elements may be changed in place between runs. Sizes may differ
// from what was bound before. A parameter of the module that the function does
// not read is accepted and ignored. On a device with a memory of its own, binding a
// buffer again is what says that its elements have changed.
func (x *Executable) Bind(name string, b *Buffer) error {
	if err := x.open(); err != nil {
		return err
	}
	in := x.byName[name]
	if in == nil {
		if x.params[name] {
			return nil
		}
		return fmt.Errorf("runtime: @%s has no input %q (it has %s)", x.Name(), name, strings.Join(x.Inputs(), ", "))
	}
	if b == nil {
		return fmt.Errorf("runtime: @%s: nothing to bind to %s", x.Name(), in.value.Ref())
	}
	if err := b.fits(in.value.Type); err != nil {
		return fmt.Errorf("runtime: @%s: cannot bind %s: %w", x.Name(), in.value.Ref(), err)
	}
	if len(b.Dims) != in.value.Type.Rank() {
		return fmt.Errorf("runtime: @%s: cannot bind %s: it is %s, got shape %v", x.Name(), in.value.Ref(), in.value.Type, b.Dims)
	}
	in.bound = b
	x.p.device.Changed(b)
	return nil
}

// Run computes the function at a step. Random operations draw from the streams
// of that step. An error from within the program is an [*OpError].
func (x *Executable) Run(step uint64) error {
	if err := x.open(); err != nil {
		return err
	}
	x.ran = false
	if err := x.p.load(); err != nil {
		return fmt.Errorf("runtime: @%s: %w", x.Name(), err)
	}
	if err := x.p.runner.inferDynamicShapes(); err != nil {
		return fmt.Errorf("runtime: %w", err)
	}
	if err := x.layOut(); err != nil {
		return err
	}
	if err := x.exec.Run(step); err != nil {
		return fmt.Errorf("runtime: %w", err)
	}
	x.ran = true
	return nil
}

// layOut provides memory for the sizes that inputs and what shape operations found have now.
func (x *Executable) layOut() error {
	if x.ready && !x.p.moved && !x.p.resized {
		return nil
	}
	x.ready = false
	if err := x.p.resolve(); err != nil {
		return fmt.Errorf("runtime: @%s: %w", x.Name(), err)
	}
	if err := x.exec.allocate(); err != nil {
		return fmt.Errorf("runtime: %w", err)
	}
	x.ready, x.p.moved, x.p.resized = true, false, false
	return nil
}

// Prepare does what the next run begins with while a device that queues work is busy with
// the last one: it copies what was bound since, and queues the sampling of
// blocks. What the last run computed stays to be read. It does nothing before the first
// run, nor where the host is what computes.
func (x *Executable) Prepare() error {
	if !x.ready {
		return nil
	}
	if err := x.p.runner.prepare(); err != nil {
		return fmt.Errorf("runtime: %w", err)
	}
	return nil
}

// Output returns a result of the last run, valid until the next one. It is nil
// when there is no such result or no run has succeeded.
func (x *Executable) Output(name string) *Buffer {
	b, err := x.Read(name)
	if err != nil {
		return nil
	}
	return b
}

// Read is [Executable.Output] with an error where there is no such result, or the memory of a
// device could not be read. It is nil without one where no run has succeeded.
func (x *Executable) Read(name string) (*Buffer, error) {
	if x.p.fn.Result(name) == nil {
		return nil, fmt.Errorf("runtime: @%s has no result %q (it has %s)", x.Name(), name, strings.Join(x.Outputs(), ", "))
	}
	b := x.Result(name)
	if b == nil {
		return nil, nil
	}
	b, err := x.p.device.Export(b)
	if err != nil {
		return nil, fmt.Errorf("runtime: @%s: reading the result %s: %w", x.Name(), name, err)
	}
	return b, nil
}

// Result returns a result of the last run where it lies: to be bound to a
// function on the same device, which costs no copy, and not to be read unless
// that is the CPU. It is valid until the next run, and nil as Output is.
func (x *Executable) Result(name string) *Buffer {
	v := x.p.fn.Result(name)
	if v == nil || !x.ran {
		return nil
	}
	return x.exec.Buffer(v)
}

// OpTime is the time that an operation has taken in all runs so far, and the
// sizes of its values in the last one.
type OpTime struct {
	Op      *ir.Op
	Runs    int
	Time    time.Duration
	In, Out []Extent // as Op.Operands and Op.Results; zero for an absent operand
}

// Extent is the size of a value.
type Extent struct {
	Dims   []int // of a graph: nodes and entries
	Stored int   // elements in memory: of a sparse matrix its entries, of a graph none
}

func extents(bufs []*Buffer) []Extent {
	out := make([]Extent, len(bufs))
	for i, b := range bufs {
		if b != nil {
			out[i] = Extent{slices.Clone(b.Dims), b.len()}
		}
	}
	return out
}

// Profile returns the time of every operation that runs, longest first. It is
// empty unless Options.Profile is set.
func (x *Executable) Profile() []OpTime {
	e, ok := x.exec.(*arenaExecutor)
	if !ok || !x.opts.Profile {
		return nil
	}
	var ts []OpTime
	for _, i := range slices.Concat(e.once, e.code) {
		ts = append(ts, OpTime{i.Op, i.runs, i.time, extents(i.In), extents(i.Out)})
	}
	slices.SortStableFunc(ts, func(a, b OpTime) int { return cmp.Compare(b.Time, a.Time) })
	return ts
}

// Plan describes what the arena executor does each run, and in what memory.
type Plan struct {
	Operations   int // of the function
	Instructions int // kernels called each run; views and constants cost none
	Values       int // values and workspaces that have memory
	Buffers      int // pieces of memory, which Values share where they are written in place
	Bytes        int // of the arena that holds them
	Live         int // bytes in use at the busiest time: no plan needs fewer
	Unshared     int // bytes if every value had memory of its own
}

// Plan returns the plan, complete after the first run; zero for other executors.
func (x *Executable) Plan() Plan {
	if e, ok := x.exec.(*arenaExecutor); ok {
		return e.plan()
	}
	return Plan{}
}
