package models

import (
	"slices"

	"github.com/gsrc-dev/gsrc/ir"
)

// adam is Kingma and Ba's optimizer within a program, for steps that gradients flow through:
//
//	m ← β₁m + (1 − β₁)g, v ← β₂v + (1 − β₂)g², w ← w − lr·m/(1 − β₁ᵗ)/√(v/(1 − β₂ᵗ) + ε)
//
// with g the gradient and the decay of w times w. ε stands within the root, whose gradient is
// not finite at 0.
type adam struct {
	params []*ir.Value
	of     [2][]*ir.Value // m and v of each parameter
	power  [2]*ir.Value   // β₁ᵗ and β₂ᵗ behind the last step
}

const adamEpsilon = 1e-8

var adamDecay = [2]float64{0.9, 0.999}

func newAdam(params []*ir.Value) *adam { return &adam{params: params} }

// state names what is handed from step to step: moments, which begin as 0, and powers, as 1.
func (a *adam) state() (list []value) {
	for _, prefix := range []string{"m.", "v."} {
		for _, p := range a.params {
			list = append(list, value{name: prefix + p.Name, t: p.Type})
		}
	}
	return append(list, value{name: "power1", t: ir.Scalar()}, value{name: "power2", t: ir.Scalar()})
}

// args declares the state as arguments.
func (a *adam) args(arg func(name string, t ir.Type) *ir.Value) {
	var vs []*ir.Value
	for _, s := range a.state() {
		vs = append(vs, arg(s.name, s.t))
	}
	n := len(a.params)
	a.of, a.power = [2][]*ir.Value{vs[:n], vs[n : 2*n]}, [2]*ir.Value(vs[2*n:])
}

func (a *adam) values() []*ir.Value { return slices.Concat(a.of[0], a.of[1], a.power[:]) }

// step returns the weights behind a step along the gradients.
func (a *adam) step(b *ir.Builder, weights, grads []*ir.Value, lr float64) []*ir.Value {
	var rest [2]*ir.Value // 1 − βᵗ
	for k, d := range adamDecay {
		a.power[k] = b.Scale(a.power[k], d)
		rest[k] = b.Sub(b.Const(1), a.power[k])
	}
	var out []*ir.Value
	for i, w := range weights {
		g := grads[i]
		if decay := a.params[i].Attrs.Float("decay"); decay > 0 {
			g = b.Add(g, b.Scale(w, decay))
		}
		for k, v := range []*ir.Value{g, b.One("square", nil, g)} {
			a.of[k][i] = b.Add(b.Scale(a.of[k][i], adamDecay[k]), b.Scale(v, 1-adamDecay[k]))
		}
		root := b.One("sqrt", nil, b.Shift(b.Div(a.of[1][i], rest[1]), adamEpsilon))
		out = append(out, b.Sub(w, b.Scale(b.Div(b.Div(a.of[0][i], rest[0]), root), lr)))
	}
	return out
}
