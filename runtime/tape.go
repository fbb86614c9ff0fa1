package runtime

import (
	"fmt"

	"gorgonia.org/gorgonia"

	"github.com/gsrc-dev/gsrc/ir"
)

// tape runs the graph on gorgonia's TapeMachine, every value in memory of its
// own: the executor that others are compared with.
type tape struct {
	p      *program
	vm     gorgonia.VM
	stores map[*cell]*Buffer // the memory behind each cell
}

func newTape(p *program, opts Options) (t *tape, err error) {
	defer func() { // NewTapeMachine panics where it cannot compile
		if r := recover(); r != nil {
			t, err = nil, fmt.Errorf("compiling the graph for gorgonia's TapeMachine: %v", r)
		}
	}()
	t = &tape{p: p, stores: map[*cell]*Buffer{}}
	for _, o := range p.ops {
		o.call.Pool, o.check = opts.Pool, opts.CheckFinite
		for _, r := range o.op.Results {
			t.stores[p.cells[r]] = &Buffer{DType: r.Type.DType}
		}
	}
	// Bound through the construction option and not by Let, which compares
	// shapes and has no symbolic ones.
	gorgonia.WithValue(p.step)(p.stepAt)
	for _, in := range p.inputs {
		gorgonia.WithValue(in.view)(p.nodes[in.value])
	}
	t.vm = gorgonia.NewTapeMachine(p.graph)
	return t, nil
}

func (t *tape) allocate() error {
	for _, o := range t.p.ops {
		if o.op.Def.Sizes {
			continue // its results have memory
		}
		for _, r := range o.op.Results {
			c := t.p.cells[r]
			if err := t.p.device.Reserve(t.stores[c], c.n); err != nil {
				return opError(t.p.fn, &o.call, err)
			}
			t.p.device.View(c.view, t.stores[c], 0, c.n)
		}
	}
	return nil
}

func (t *tape) run(step uint64) error {
	t.p.step.I64[0] = int64(step)
	for _, o := range t.p.ops {
		o.err = nil
	}
	t.vm.Reset()
	err := t.vm.RunAll()
	if err == nil {
		return nil
	}
	for _, o := range t.p.ops {
		if o.err != nil {
			return opError(t.p.fn, &o.call, o.err)
		}
	}
	return fmt.Errorf("@%s: %w", t.p.fn.Name, err)
}

func (t *tape) buffer(v *ir.Value) *Buffer {
	if b, ok := t.p.nodes[v].Value().(*Buffer); ok {
		return b
	}
	return t.p.cells[v].view
}
