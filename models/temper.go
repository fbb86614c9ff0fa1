package models

import (
	"slices"

	"github.com/gsrc-dev/gsrc/ir"
)

// CanTemper reports whether @classify gives the softmax of its logits as probabilities.
func CanTemper(m *ir.Module) bool { return softmaxOfLogits(m.Func("classify")) != nil }

// Temper returns the module with probabilities that are the softmax of the logits divided by
// t, a temperature that calibrates them; the logits stay. [CanTemper] must hold.
func Temper(m *ir.Module, t float64) *ir.Module {
	m = m.Clone()
	f := m.Func("classify")
	op := softmaxOfLogits(f)
	b := ir.NewBuilder(m, f).At(slices.Index(f.Body, op))
	defer b.Named("calibration")()
	op.Operands[0] = b.Scale(op.Operands[0], 1/t)
	return m
}

// softmaxOfLogits is the operation that makes the probabilities of the logits, nil where the
// function does something else.
func softmaxOfLogits(f *ir.Func) *ir.Op {
	if f == nil {
		return nil
	}
	p, logits := f.Result("probabilities"), f.Result("logits")
	if p == nil || p.Def == nil || p.Def.Name() != "softmax" || p.Def.Operands[0] != logits {
		return nil
	}
	return p.Def
}
