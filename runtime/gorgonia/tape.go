package gorgonia

import (
	"fmt"

	"gorgonia.org/gorgonia"

	"github.com/gsrc-dev/gsrc/ir"
	"github.com/gsrc-dev/gsrc/runtime"
)

// TapeExecutor runs a function on gorgonia's TapeMachine.
type TapeExecutor struct {
	graph  *Graph
	vm     gorgonia.VM
	step   *runtime.Buffer
	values map[*ir.Value]*runtime.Buffer
}

// NewTapeExecutor emits the program's function and compiles the graph for the
// TapeMachine. It is for [runtime.Options].NewExecutor.
func NewTapeExecutor(p *runtime.Program) (x runtime.Executor, err error) {
	g, err := Emit(p.Module(), p.Func())
	if err != nil {
		return nil, err
	}
	defer func() { // NewTapeMachine panics where it cannot compile
		if r := recover(); r != nil {
			x, err = nil, fmt.Errorf("compiling the graph for gorgonia's TapeMachine: %v", r)
		}
	}()
	t := &TapeExecutor{graph: g, step: runtime.I64(make([]int64, 1)), values: map[*ir.Value]*runtime.Buffer{}}
	for i, instr := range p.Instructions() {
		o := g.ops[i]
		o.instr, o.out = instr, nil
		for _, b := range instr.Out {
			o.out = append(o.out, &value{Buffer: b})
		}
		o.out[0].all = o.out
	}
	// Bound through the construction option and not by Let, which compares
	// shapes and has no symbolic ones.
	gorgonia.WithValue(&value{Buffer: t.step})(g.step)
	for _, v := range g.inputs {
		gorgonia.WithValue(&value{Buffer: p.Buffer(v)})(g.nodes[v])
	}
	for v := range g.nodes {
		t.values[v] = p.Buffer(v)
	}
	t.vm = gorgonia.NewTapeMachine(g.expr)
	return t, nil
}

// Run computes the function at a step.
func (t *TapeExecutor) Run(step uint64) error {
	t.step.I64[0] = int64(step)
	for _, o := range t.graph.ops {
		o.err = nil
	}
	t.vm.Reset()
	err := t.vm.RunAll()
	if err == nil {
		return nil
	}
	for _, o := range t.graph.ops {
		if o.err != nil {
			return o.err // gorgonia's says the same with the tape's registers
		}
	}
	return fmt.Errorf("@%s: %w", t.graph.fn.Name, err)
}

// Buffer returns what the last run left at the value's node.
func (t *TapeExecutor) Buffer(v *ir.Value) *runtime.Buffer {
	if b, ok := t.graph.nodes[v].Value().(*value); ok {
		return b.Buffer
	}
	return t.values[v]
}
