package ir

import (
	"fmt"
	"maps"
	"math"
	"slices"
)

// maxElements bounds a tensor of the interpreter: 1 GiB of float64.
const maxElements = 1 << 27

type interp struct {
	module *Module
	params map[string]*Tensor
	random Random
}

// frame is one call of a function.
type frame struct {
	fn   *Func
	env  map[*Value]Val
	bind map[string]int
	// base holds the values at the point where a gradient is taken, while the
	// interpreter moves around it; nil elsewhere.
	base map[*Value]Val
	// target is what the gradient is taken of, nil where that is not in this function.
	target *Value
}

// Interpret runs a function in float64, operation by operation, as the
// operation table defines it. Gradients (the grad operation, the sampler's
// steps) are central differences, so that the interpreter shares nothing with
// the gradient rules it checks; what stops or scales a gradient does so here
// too. It is slow and meant for small inputs.
//
// args are in the order of the function's arguments; params by name; random
// may be nil where the function draws nothing.
func Interpret(m *Module, fn string, args []Val, params map[string]*Tensor, random Random) ([]Val, error) {
	f := m.Func(fn)
	if f == nil {
		return nil, fmt.Errorf("module %s has no function @%s", m.Name, fn)
	}
	out, _, err := (&interp{m, params, random}).call(f, args, nil)
	return out, err
}

func (in *interp) call(f *Func, args []Val, base map[*Value]Val) ([]Val, map[*Value]Val, error) {
	if len(args) != len(f.Args) {
		return nil, nil, fmt.Errorf("@%s takes %d arguments, got %d", f.Name, len(f.Args), len(args))
	}
	fr := &frame{fn: f, env: map[*Value]Val{}, bind: map[string]int{}, base: base}
	for range 2 { // again, for sums such as N+E whose symbols are bound later
		for i, a := range f.Args {
			if err := bindDims(a, args[i], fr.bind); err != nil {
				return nil, nil, fmt.Errorf("@%s: argument %w", f.Name, err)
			}
			fr.env[a] = args[i]
		}
	}
	for _, p := range in.module.Params {
		if t, ok := in.params[p.Name]; ok {
			if err := bindDims(p, Val{T: t}, fr.bind); err != nil {
				return nil, nil, fmt.Errorf("parameter %w", err)
			}
			fr.env[p] = Val{T: t}
		}
	}
	if err := in.run(fr, 0, len(f.Body)); err != nil {
		return nil, nil, fmt.Errorf("@%s: %w", f.Name, err)
	}
	var out []Val
	for _, r := range f.Results {
		v, ok := fr.env[r.Value]
		if !ok {
			return nil, nil, fmt.Errorf("@%s: result %s: %s has no value; give it in params", f.Name, r.Name, r.Value.Ref())
		}
		out = append(out, v)
	}
	return out, fr.env, nil
}

func (in *interp) run(fr *frame, from, to int) error {
	for pos := from; pos < to; pos++ {
		op := fr.fn.Body[pos]
		c := &EvalCtx{Op: op, Out: make([]Val, len(op.Results)), Random: in.random, interp: in}
		if op.Draws() && in.random == nil {
			return fmt.Errorf("%s: the operation is random, but no random source was given", op.Name())
		}
		for _, v := range op.Operands {
			if v == nil {
				c.In = append(c.In, Val{})
				continue
			}
			x, ok := fr.env[v]
			if !ok {
				return fmt.Errorf("%s: %s has no value; give it in params", op.Name(), v.Ref())
			}
			c.In = append(c.In, x)
		}
		for _, r := range op.Results {
			if op.Def.Sizes {
				break // known once evaluated
			}
			s, err := r.Type.Shape(fr.bind)
			if err != nil {
				return fmt.Errorf("%s: %w", op.Name(), err)
			}
			if elements(s) > maxElements {
				return fmt.Errorf("%s: a result of shape %v is too large to interpret", op.Name(), s)
			}
			c.Shapes = append(c.Shapes, s)
		}
		if fr.base != nil {
			for _, v := range op.Operands {
				c.Base = append(c.Base, fr.base[v])
			}
			for _, r := range op.Results {
				c.baseOut = append(c.baseOut, fr.base[r])
			}
		}
		c.gradient = func() error {
			if fr.base != nil && fr.target != nil && !reaches(fr.fn, op, fr.target) && c.detached() {
				return nil // as a sampler's steps
			}
			return in.grad(fr, pos, c)
		}
		if err := c.eval(); err != nil {
			return err
		}
		for i, r := range op.Results {
			fr.env[r] = c.Out[i]
		}
		if op.Def.Sizes {
			if err := fr.bindResults(op); err != nil {
				return fmt.Errorf("%s: %w", op.Name(), err)
			}
		}
	}
	return nil
}

// bindResults binds the sizes that an operation has found.
func (fr *frame) bindResults(op *Op) error {
	for _, d := range op.newDims() { // an earlier evaluation may have found others
		delete(fr.bind, string(d))
	}
	for _, r := range op.Results {
		if err := bindDims(r, fr.env[r], fr.bind); err != nil {
			return err
		}
	}
	return nil
}

// grad evaluates ∂y/∂x by moving each element of x and running again what lies
// between x and y.
func (in *interp) grad(fr *frame, pos int, c *EvalCtx) error {
	y := c.Op.Operands[0]
	for i, x := range c.Op.Operands[1:] {
		from := 0
		for k, op := range fr.fn.Body {
			if op == x.Def {
				from = k + 1
			}
		}
		t := fr.env[x].T.Clone()
		local := &frame{fn: fr.fn, env: maps.Clone(fr.env), bind: fr.bind, base: maps.Clone(fr.env), target: y}
		local.env[x] = Val{T: t}
		g, err := centralDifferences(t, func() (float64, error) {
			if err := in.run(local, from, pos); err != nil {
				return 0, err
			}
			return local.env[y].T.Data[0], nil
		})
		if err != nil {
			return err
		}
		c.Set(i, g)
	}
	return nil
}

// reaches reports whether a value depends on the results of an operation in a way that a
// gradient follows.
func reaches(f *Func, op *Op, y *Value) bool {
	from := map[*Value]bool{}
	for _, o := range f.Body {
		follows := o == op || o.Name() != "stop_gradient" && !(o.Name() == "unroll" && o.Bool("detach")) &&
			slices.ContainsFunc(o.Operands, func(v *Value) bool { return v != nil && from[v] })
		for _, r := range o.Results {
			from[r] = follows
		}
	}
	return from[y]
}

// evalUnroll calls the step function. Where a gradient moves the operands, each step is
// held against the same at the point where it is taken.
func evalUnroll(c *EvalCtx) {
	if c.Op.Bool("detach") && c.detached() {
		return
	}
	f := c.interp.module.Func(c.Op.FuncRef("step"))
	if f == nil {
		fail("unroll: there is no function @%s", c.Op.FuncRef("step"))
	}
	n := c.Op.Int("states")
	in, base := slices.Clone(c.In), slices.Clone(c.Base)
	for k := range c.Op.Int("steps") {
		at := *c.interp
		if at.random != nil {
			at.random = stepRandom{at.random, k}
		}
		var env map[*Value]Val
		if base != nil {
			out, values, err := at.call(f, base, nil)
			if err != nil {
				fail("%w", err)
			}
			env = values
			copy(base, out)
		}
		out, _, err := at.call(f, in, env)
		if err != nil {
			fail("%w", err)
		}
		copy(in, out)
	}
	for i := range n {
		c.Set(i, in[i].T)
	}
}

// StepStream is the name of a random stream in step k of what is unrolled.
func StepStream(stream string, k int) string { return fmt.Sprintf("%s.%d", stream, k) }

// stepRandom gives the numbers of a step.
type stepRandom struct {
	Random
	k int
}

func (r stepRandom) Uniform(stream string, i int) float64 {
	return r.Random.Uniform(StepStream(stream, r.k), i)
}

func (r stepRandom) Normal(stream string, i int) float64 {
	return r.Random.Normal(StepStream(stream, r.k), i)
}

func (r stepRandom) UniformPair(stream string, a, b int) float64 {
	return r.Random.UniformPair(StepStream(stream, r.k), a, b)
}

// elements multiplies a shape out, saturating.
func elements(shape []int) int {
	n := 1
	for _, s := range shape {
		if s != 0 && n > math.MaxInt32*maxElements/s {
			return math.MaxInt
		}
		n *= s
	}
	return n
}

// centralDifferences returns the gradient of f at x, by the fourth-order
// central difference; x is moved in place and restored.
func centralDifferences(x *Tensor, f func() (float64, error)) (*Tensor, error) {
	g := NewTensor(x.Shape...)
	for i, v := range x.Data {
		h := 1e-4 * math.Max(1, math.Abs(v))
		var at [4]float64
		for k, s := range [4]float64{-2, -1, 1, 2} {
			x.Data[i] = v + s*h
			y, err := f()
			if err != nil {
				return nil, err
			}
			at[k] = y
		}
		x.Data[i] = v
		g.Data[i] = (at[0] - 8*at[1] + 8*at[2] - at[3]) / (12 * h)
	}
	return g, nil
}

// bindDims binds the symbols of a value's type to the sizes it is given.
func bindDims(v *Value, val Val, bind map[string]int) error {
	var shape []int
	switch {
	case v.Type.IsGraph():
		if val.G == nil {
			return fmt.Errorf("%s is a graph, got a tensor", v.Name)
		}
		if err := val.G.Validate(); err != nil {
			return fmt.Errorf("%s: %w", v.Name, err)
		}
		shape = []int{val.G.N, len(val.G.Row)}
		if v.Type.IsBlock() {
			shape = append(shape, val.G.sources())
		}
	case val.T == nil:
		return fmt.Errorf("%s is a tensor, got a graph or nothing", v.Name)
	default:
		shape = val.T.Shape
		negative := slices.ContainsFunc(shape, func(s int) bool { return s < 0 })
		if negative || elements(shape) != len(val.T.Data) {
			return fmt.Errorf("%s has shape %v, but %d elements", v.Name, shape, len(val.T.Data))
		}
	}
	return BindDims(v, shape, bind)
}

// BindDims checks a shape against the type of an argument or parameter and
// enters the sizes of its symbols.
func BindDims(v *Value, shape []int, bind map[string]int) error {
	if len(shape) != len(v.Type.Dims) {
		return fmt.Errorf("%s is %s, got shape %v", v.Name, v.Type, shape)
	}
	for i, d := range v.Type.Dims {
		want, err := d.Resolve(bind)
		if err != nil {
			bind[string(d)] = shape[i]
			continue
		}
		if want != shape[i] {
			return fmt.Errorf("%s is %s with %s = %d, got shape %v", v.Name, v.Type, d, want, shape)
		}
	}
	return nil
}
