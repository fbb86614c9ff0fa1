package passes

import (
	"fmt"

	"github.com/gsrc-dev/gsrc/ir"
)

// unroll replaces unroll operations by their steps: copies of the step function, whose
// results are the state of the next copy. A copy's random streams have its number behind
// their names. What takes gradients within a step, grad operations, becomes plain operations
// before a gradient of the last state is taken, which so flows through all of them.
func unroll(m *ir.Module, _ DataInfo) error {
	done, steps := map[*ir.Func]bool{}, map[string]bool{}
	var visit func(f *ir.Func)
	visit = func(f *ir.Func) {
		if done[f] {
			return
		}
		done[f] = true
		rewrite(m, f, func(b *ir.Builder, op *ir.Op) []*ir.Value {
			if op.Name() != "unroll" {
				return nil
			}
			step := m.Func(op.FuncRef("step"))
			visit(step)
			steps[step.Name] = true
			return unrolled(b, op, step)
		})
	}
	for _, f := range m.Funcs {
		visit(f)
	}
	for name := range steps {
		m.RemoveFunc(name) // inlined everywhere; nothing calls it any more
	}
	return nil
}

func unrolled(b *ir.Builder, op *ir.Op, step *ir.Func) []*ir.Value {
	n := op.Int("states")
	states, captured := append([]*ir.Value{}, op.Operands[:n]...), op.Operands[n:]
	stop := func() {
		if !op.Bool("detach") {
			return
		}
		for i, s := range states {
			states[i] = b.Stop(s)
		}
	}
	stop()
	for k := range op.Int("steps") {
		restore := b.Named(fmt.Sprintf("%s%d", step.Name, k))
		from := b.Pos()
		states = b.Inline(step, append(states, captured...)...)
		for _, o := range b.Func.Body[from:b.Pos()] {
			if s := o.Attrs.Str("stream"); s != "" {
				o.Attrs["stream"] = ir.StepStream(s, k)
			}
		}
		stop()
		restore()
	}
	return states
}
