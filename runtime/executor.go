package runtime

import (
	"time"

	"github.com/gsrc-dev/gsrc/ir"
)

// Instruction is an operation of a function that runs: its kernel, its operands
// and its results.
type Instruction struct {
	Call
	p        *program
	kernel   Kernel
	random   bool
	in, outs []*slot // operands, nil where absent, and results

	runs int // with Options.Profile
	time time.Duration
}

// Run computes the results at a step from the operands in In, which the caller
// may have set. A kernel that panics gives an error.
func (i *Instruction) Run(step uint64) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = opError(i.p.fn, &i.Call, kernelFailed(r))
		}
	}()
	if i.random {
		i.Key = i.Stream.At(step)
	}
	if err := i.kernel(&i.Call); err != nil {
		return opError(i.p.fn, &i.Call, err)
	}
	return i.check()
}

// check looks whether the results are finite, where that is asked for.
func (i *Instruction) check() error {
	if i.p.check {
		if err := checkFinite(i.p.device, &i.Call); err != nil {
			return opError(i.p.fn, &i.Call, err)
		}
	}
	return nil
}

// Executor runs a [Program], each of its values in memory of its own. Package
// runtime/gorgonia has one.
type Executor interface {
	// Run computes all instructions at a step.
	Run(step uint64) error
	// Buffer returns a value that the last run computed.
	Buffer(v *ir.Value) *Buffer
}

// Program is what a [Runner] or an [Executor] runs: a function of the tensor level whose
// operations have kernels.
type Program struct{ p *program }

// Module returns the module that the function is in.
func (p *Program) Module() *ir.Module { return p.p.module }

// Func returns the function.
func (p *Program) Func() *ir.Func { return p.p.fn }

// Instructions returns the operations, in the order of the function's body.
func (p *Program) Instructions() []*Instruction { return p.p.ops }

// Buffer returns where a value lies: the same buffer for every run, whose payload
// and sizes are there when the executor runs.
func (p *Program) Buffer(v *ir.Value) *Buffer { return p.p.slots[v].view }

// separate gives every value memory of its own and leaves the running to an [Executor].
type separate struct {
	Executor
	p      *program
	stores map[*slot]*Buffer
}

func newSeparate(p *program, opts Options) (*separate, error) {
	x, err := opts.NewExecutor(&Program{p})
	return &separate{x, p, map[*slot]*Buffer{}}, err
}

func (e *separate) allocate() error {
	for _, i := range e.p.ops {
		if i.Op.Def.Sizes {
			continue // its results have memory
		}
		for _, c := range i.outs {
			if e.stores[c] == nil {
				e.stores[c] = &Buffer{DType: c.value.Type.DType}
			}
			if err := e.p.device.Reserve(e.stores[c], c.n); err != nil {
				return opError(e.p.fn, &i.Call, err)
			}
			e.p.device.View(c.view, e.stores[c], 0, c.n)
		}
	}
	return nil
}
