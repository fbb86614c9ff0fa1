package runtime

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/gsrc-dev/gsrc/ir"
)

// arenaExecutor calls kernels in the order of the program, which passes have
// chosen, on memory that was planned.
//
// An operation that only renames its operand becomes a view of the operand's
// memory; one that depends on sizes alone runs when sizes change. Every other
// value has its place in one arena; see memoryPlan.
type arenaExecutor struct {
	p      *program
	timed  bool
	trace  *Trace         // nil unless somebody wants one
	record bool           // this run goes to the trace
	code   []*Instruction // run every time
	once   []*Instruction // run when sizes change
	varied []*Instruction // those of once whose sizes the program finds itself
	views  []view         // of computed values, set when sizes change
	live   []view         // of inputs, set before every run

	mem   memoryPlan
	whole bool // memory is laid out, and once has run
}

// view is a slot that shares the memory of its operand, all of it or the rows
// from one on.
type view struct {
	slot, operand *slot
	from          int
}

// sized reports whether a value of the instruction has a size that may change. Those of
// padded batches change from step to step, so that constants of such sizes are best
// made by each recording.
func (i *Instruction) sized() bool {
	return slices.ContainsFunc(slices.Concat(i.in, i.outs), func(c *slot) bool {
		return c != nil && slices.ContainsFunc(c.dims, func(d dim) bool { return len(d.terms) > 0 })
	})
}

func newArenaExecutor(p *program, opts Options) *arenaExecutor {
	e := &arenaExecutor{p: p, timed: opts.Profile || opts.Trace != nil, trace: opts.Trace}
	inputs := map[*slot]bool{}
	for _, in := range p.inputs {
		inputs[in.slot] = true
	}
	for _, s := range p.shapeOps { // found before the run, like inputs
		for _, c := range s.out {
			inputs[c] = true
		}
	}
	for _, i := range p.ops {
		from, isView := i.Op.View()
		switch {
		case i.Op.Def.Sizes:
		case isView:
			v := view{slot: i.outs[0], operand: i.in[0], from: from}
			v.slot.root = v.operand.base()
			if inputs[v.slot.root] {
				e.live = append(e.live, v)
			} else {
				e.views = append(e.views, v)
			}
		case i.Op.Def.ShapeOnly && !(p.padded && i.sized()):
			e.once = append(e.once, i)
		default:
			e.code = append(e.code, i)
		}
	}
	e.mem.place(e)
	varies := p.varying()
	for _, i := range e.once {
		if slices.ContainsFunc(i.in, varies) || slices.ContainsFunc(i.outs, varies) {
			e.varied = append(e.varied, i)
		}
	}
	return e
}

// allocate gives every value its place for the sizes that the slots have now.
func (e *arenaExecutor) allocate() error {
	again, once := e.mem.layout() || e.p.moved || !e.whole, e.varied
	if again {
		e.whole, once = false, e.once
		if err := e.p.runner.forget(); err != nil {
			return fmt.Errorf("@%s: %w", e.p.fn.Name, err)
		}
	}
	e.mem.leave(e.views, e.live)
	if err := e.mem.provide(e.p.device); err != nil {
		return fmt.Errorf("@%s: %w", e.p.fn.Name, err)
	}
	for _, v := range e.views {
		e.show(v)
	}
	if err := e.execute(once, 0); err != nil {
		return err
	}
	e.whole = true
	if err := e.p.runner.enter(); err != nil {
		return fmt.Errorf("@%s: %w", e.p.fn.Name, err)
	}
	return nil
}

// show makes a view's buffer that of its operand, or some rows of it. Views are
// shown in program order, so the operand has its memory.
func (e *arenaExecutor) show(v view) {
	e.p.device.Alias(v.slot.view, v.operand.view, v.from*v.slot.view.RowWidth(), v.slot.n)
}

func (e *arenaExecutor) Run(step uint64) error {
	for _, v := range e.live {
		e.show(v)
	}
	e.record = e.trace != nil && e.trace.begin(e.p.fn.Name)
	err := e.p.runner.run(e, step)
	e.record = false // what runs when sizes change is no run
	return err
}

// execute recovers once for all instructions, which costs small ones less than once for each, as
// [Instruction.Run] does.
func (e *arenaExecutor) execute(code []*Instruction, step uint64) (err error) {
	var at *Instruction
	defer func() {
		if r := recover(); r != nil {
			err = opError(e.p.fn, &at.Call, kernelFailed(r))
		}
	}()
	for _, i := range code {
		at = i
		if i.random {
			i.Key = i.Stream.At(step)
		}
		var start time.Time
		if e.timed {
			start = time.Now()
		}
		if err := i.kernel(&i.Call); err != nil {
			return opError(e.p.fn, &i.Call, err)
		}
		if e.timed {
			if err := e.p.runner.sync(); err != nil {
				return opError(e.p.fn, &i.Call, err)
			}
			took := time.Since(start)
			i.time += took
			i.runs++
			if e.record {
				e.trace.add(e.p.fn.Name, &i.Call, step, start, took)
			}
		}
		if err := i.check(); err != nil {
			return err
		}
	}
	return nil
}

func (e *arenaExecutor) Buffer(v *ir.Value) *Buffer { return e.p.slots[v].view }

func (e *arenaExecutor) plan() Plan {
	p := e.mem.plan()
	p.Operations, p.Instructions = len(e.p.ops), len(e.code)
	return p
}

// close gives back the memory that the executor holds on the device.
func (e *arenaExecutor) close() error {
	return errors.Join(e.p.runner.close(), e.p.device.Release(&e.mem.arena))
}
