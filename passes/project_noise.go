package passes

import (
	"fmt"
	"slices"

	"github.com/gsrc-dev/gsrc/ir"
)

// projectNoise moves noise into the row space of the first weight.
//
// A noisy matrix ν [n,D] that is only read as νW, W [D,F] with F < D, matters
// through n×F numbers. With G = WᵀW = RᵀR the pass keeps ν as X + Q, Q known by
// Y [n,F] with QW = YR:
//
//	Gaussian noise ω [n,D]        Y = η, standard normal [n,F]   (ωW and ηR are equally distributed)
//	a gradient step ΔWᵀ           Y = ΔRᵀ                        (exact; its row norms are those of Y)
//	νW                            XW + YR
//	the weight's gradient νᵀΔ     XᵀΔ + W·R⁻¹(YᵀΔ)               (its expectation given νW: Rao–Blackwell)
//
// so that no noise of size n×D is drawn, stored or multiplied, and X stays
// sparse. It fires where it can prove that ν is read in no other way.
func projectNoise(m *ir.Module, info DataInfo) error {
	for _, f := range m.Funcs {
		p := &projection{f: f, noisy: map[*ir.Value]bool{}, pureStep: map[*ir.Value]bool{}, hasNoise: map[*ir.Value]bool{}}
		reason := p.analyse()
		if reason == "" {
			p.rewrite(m)
			reason = fmt.Sprintf("noise of %d columns is drawn in %s", p.columns(), p.w.Type.Dims[1])
		}
		if len(p.noisy) > 0 {
			info.say("project-noise", f, reason)
		}
	}
	return nil
}

type projection struct {
	f *ir.Func
	w *ir.Value // the weight
	// noisy are the values kept as X + Q; those of hasNoise contain Gaussian
	// noise, those of pureStep are multiples of ΔWᵀ by rows.
	noisy, hasNoise, pureStep map[*ir.Value]bool
}

func (p *projection) columns() int { d, _ := p.w.Type.Dims[0].Size(); return d }

func (p *projection) isStep(op *ir.Op) bool {
	return op.Name() == "matmul" && op.Bool("tb") && !op.Bool("ta") && op.Operands[1] == p.w
}

func isNoise(op *ir.Op) bool { return op.Name() == "normal" && op.Result().Type.Rank() == 2 }

// rowScale reports whether multiplying by v scales whole rows.
func rowScale(v *ir.Value) bool {
	return v.Type.Rank() == 0 || v.Type.Rank() == 2 && v.Type.Dims[1] == "1"
}

// analyse finds the weight and the noisy values, and returns why the pass does
// not fire, or "".
func (p *projection) analyse() string {
	mixes := func(op *ir.Op) bool { // operations that keep X + Q
		switch op.Name() {
		case "add", "sub":
			return true
		case "mul":
			return rowScale(op.Operands[1]) || rowScale(op.Operands[0])
		}
		return op.Name() == "neg"
	}
	// First the noise alone, to find the weight that reads it.
	reach := map[*ir.Value]bool{}
	for _, op := range p.f.Body {
		touched := slices.ContainsFunc(op.Operands, func(v *ir.Value) bool { return reach[v] })
		switch {
		case isNoise(op) || touched && mixes(op):
			reach[op.Result()] = true
			p.noisy[op.Result()] = true
		case touched && op.Name() == "matmul" && reach[op.Operands[0]] && !op.Bool("ta") && !op.Bool("tb"):
			if w := op.Operands[1]; p.w == nil {
				p.w = w
			} else if p.w != w {
				return "the noise is read by more than one weight"
			}
		}
	}
	if len(p.noisy) == 0 {
		return "there is no noise"
	}
	if p.w == nil {
		return "no product with a weight reads the noise"
	}
	d, okD := p.w.Type.Dims[0].Size()
	width, okF := p.w.Type.Dims[1].Size()
	if !p.w.Param || !okD || !okF {
		return "the noise is read by a product with something that is no parameter"
	}
	if d <= width {
		return fmt.Sprintf("the weight has %d rows and %d columns: nothing is gained", d, width)
	}
	// Then all values of the form X + Q, and every way they are read.
	p.noisy = map[*ir.Value]bool{}
	for _, op := range p.f.Body {
		touched := slices.ContainsFunc(op.Operands, func(v *ir.Value) bool { return p.noisy[v] })
		switch {
		case isNoise(op):
			p.noisy[op.Result()], p.hasNoise[op.Result()] = true, true
		case p.isStep(op) && !touched:
			p.noisy[op.Result()], p.pureStep[op.Result()] = true, true
		case touched && mixes(op):
			r := op.Result()
			p.noisy[r] = true
			p.hasNoise[r] = slices.ContainsFunc(op.Operands, func(v *ir.Value) bool { return p.hasNoise[v] })
			p.pureStep[r] = (op.Name() == "mul" || op.Name() == "neg") && slices.ContainsFunc(op.Operands, func(v *ir.Value) bool { return p.pureStep[v] })
			for _, v := range op.Operands {
				if !p.noisy[v] && op.Name() != "mul" && !v.Type.SameShape(r.Type) {
					return fmt.Sprintf("the noise is added to a broadcast value in %q", op)
				}
			}
		case touched && !p.readable(op):
			return fmt.Sprintf("the noisy values are read by %q", op)
		}
	}
	for _, r := range p.f.Results {
		if p.noisy[r.Value] {
			return fmt.Sprintf("the noisy values are the result %s", r.Name)
		}
	}
	return ""
}

// readable reports whether an operation reads noisy values in a way that the
// rewriting knows: a product with the weight, the weight's gradient, or the
// squared row norm of a gradient step.
func (p *projection) readable(op *ir.Op) bool {
	switch op.Name() {
	case "matmul":
		x, y, ta, tb := op.Operands[0], op.Operands[1], op.Bool("ta"), op.Bool("tb")
		if p.noisy[y] || !p.noisy[x] || tb {
			return false
		}
		return !ta && y == p.w || ta && p.onlyGradient(op.Result())
	case "square":
		return p.pureStep[op.Operands[0]] && p.onlyRowSums(op.Result())
	}
	return false
}

// onlyGradient reports whether a value goes nowhere but into the gradient of
// the weight: only there may νᵀΔ be replaced by its conditional expectation.
func (p *projection) onlyGradient(v *ir.Value) bool {
	for _, op := range p.f.Body {
		if !slices.Contains(op.Operands, v) {
			continue
		}
		if op.Name() != "add" && op.Name() != "sub" && op.Name() != "neg" || !p.onlyGradient(op.Result()) {
			return false
		}
	}
	for _, r := range p.f.Results {
		if r.Value == v && r.Name != GradPrefix+p.w.Name {
			return false
		}
	}
	return true
}

func (p *projection) onlyRowSums(v *ir.Value) bool {
	for _, op := range p.f.Body {
		if slices.Contains(op.Operands, v) && !(op.Name() == "reduce_sum" && op.Str("axis") == "1") {
			return false
		}
	}
	return !slices.ContainsFunc(p.f.Results, func(r ir.Result) bool { return r.Value == v })
}

// rowSpace is a noisy value: x [n,D], nil for zero, and y [n,F].
type rowSpace struct{ x, y *ir.Value }

func (p *projection) rewrite(m *ir.Module) {
	kept := map[*ir.Value]rowSpace{}
	squares := map[*ir.Value]*ir.Value{} // of a step's Y, by the square it replaces
	var r *ir.Value                      // the Cholesky factor
	width := p.w.Type.Dims[1]
	rewrite(m, p.f, func(b *ir.Builder, op *ir.Op) []*ir.Value {
		defer b.Named("rowspace")()
		if r == nil && (isNoise(op) || p.isStep(op)) {
			gram := b.One("matmul", ir.Attrs{"ta": true}, p.w, p.w)
			r = b.One("cholesky", nil, gram)
		}
		noisy := len(op.Results) == 1 && p.noisy[op.Result()]
		switch {
		case isNoise(op):
			t := op.Result().Type
			kept[op.Result()] = rowSpace{y: b.OneTyped("normal", ir.Attrs{"stream": op.Str("stream")}, t.WithDims(t.Dims[0], width))}
		case noisy && p.isStep(op):
			kept[op.Result()] = rowSpace{y: b.One("matmul", ir.Attrs{"tb": true}, op.Operands[0], r)}
		case noisy:
			kept[op.Result()] = mix(b, op, kept)
		case op.Name() == "square" && p.noisy[op.Operands[0]]:
			squares[op.Result()] = b.One("square", nil, kept[op.Operands[0]].y)
		case op.Name() == "reduce_sum" && squares[op.Operands[0]] != nil:
			return one(b.One("reduce_sum", op.Attrs, squares[op.Operands[0]]))
		case op.Name() == "matmul" && p.noisy[op.Operands[0]]:
			v := kept[op.Operands[0]]
			var low *ir.Value
			if op.Bool("ta") {
				yd := b.One("matmul", ir.Attrs{"ta": true}, v.y, op.Operands[1])
				low = b.MatMul(p.w, b.One("solve_upper", nil, r, yd))
			} else {
				low = b.MatMul(v.y, r)
			}
			if v.x == nil {
				return one(low)
			}
			return one(b.Add(b.One("matmul", op.Attrs, v.x, op.Operands[1]), low))
		}
		return nil
	})
	pruneBody(p.f)
}

// mix carries X + Q through an operation.
func mix(b *ir.Builder, op *ir.Op, kept map[*ir.Value]rowSpace) rowSpace {
	get := func(v *ir.Value) rowSpace {
		if s, ok := kept[v]; ok {
			return s
		}
		return rowSpace{x: v}
	}
	apply := func(x, y *ir.Value) *ir.Value {
		switch {
		case x == nil && y == nil:
			return nil
		case y == nil:
			return x
		case x == nil && op.Name() == "sub":
			return b.One("neg", nil, y)
		case x == nil:
			return y
		}
		return b.One(op.Name(), nil, x, y)
	}
	each := func(v *ir.Value, f func(*ir.Value) *ir.Value) rowSpace {
		s := get(v)
		if s.x != nil {
			s.x = f(s.x)
		}
		if s.y != nil {
			s.y = f(s.y)
		}
		return s
	}
	switch op.Name() {
	case "neg":
		return each(op.Operands[0], func(v *ir.Value) *ir.Value { return b.One("neg", nil, v) })
	case "mul":
		v, scale := op.Operands[0], op.Operands[1]
		if _, ok := kept[v]; !ok {
			v, scale = scale, v
		}
		return each(v, func(v *ir.Value) *ir.Value { return b.Mul(v, scale) })
	}
	s, t := get(op.Operands[0]), get(op.Operands[1])
	return rowSpace{apply(s.x, t.x), apply(s.y, t.y)}
}
