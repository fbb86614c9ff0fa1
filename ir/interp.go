package ir

import (
	"fmt"
	"math"
)

type interp struct {
	module *Module
	params map[string]*Tensor
	random Random
}

// Interpret runs a function in float64, operation by operation, as the
// operation table defines it. Gradients (the grad operation, the sampler's
// steps) are central differences, so that the interpreter shares nothing with
// the gradient rules it checks. It is slow and meant for small inputs.
//
// args are in the order of the function's arguments; params by name.
func Interpret(m *Module, fn string, args []Val, params map[string]*Tensor, random Random) ([]Val, error) {
	f := m.Func(fn)
	if f == nil {
		return nil, fmt.Errorf("module %s has no function @%s", m.Name, fn)
	}
	return (&interp{m, params, random}).call(f, args)
}

func (in *interp) call(f *Func, args []Val) ([]Val, error) {
	if len(args) != len(f.Args) {
		return nil, fmt.Errorf("@%s takes %d arguments, got %d", f.Name, len(f.Args), len(args))
	}
	bind := map[string]int{}
	env := map[*Value]Val{}
	for i, a := range f.Args {
		if err := bindDims(a, args[i], bind); err != nil {
			return nil, fmt.Errorf("@%s: %w", f.Name, err)
		}
		env[a] = args[i]
	}
	for _, p := range in.module.Params {
		if t, ok := in.params[p.Name]; ok {
			if err := bindDims(p, Val{T: t}, bind); err != nil {
				return nil, err
			}
			env[p] = Val{T: t}
		}
	}
	if err := in.run(f, 0, len(f.Body), env, bind); err != nil {
		return nil, fmt.Errorf("@%s: %w", f.Name, err)
	}
	var out []Val
	for _, r := range f.Results {
		out = append(out, env[r.Value])
	}
	return out, nil
}

func (in *interp) run(f *Func, from, to int, env map[*Value]Val, bind map[string]int) error {
	for pos := from; pos < to; pos++ {
		op := f.Body[pos]
		c := &EvalCtx{Op: op, Out: make([]Val, len(op.Results)), Random: in.random, interp: in}
		for _, v := range op.Operands {
			if v == nil {
				c.In = append(c.In, Val{})
				continue
			}
			x, ok := env[v]
			if !ok {
				return fmt.Errorf("%s: %s has no value (a parameter that was not given?)", op.Name(), v.Name)
			}
			c.In = append(c.In, x)
		}
		for _, r := range op.Results {
			s, err := r.Type.Shape(bind)
			if err != nil {
				return fmt.Errorf("%s: %w", op.Name(), err)
			}
			c.Shapes = append(c.Shapes, s)
		}
		c.gradient = func() error { return in.grad(f, pos, c, env, bind) }
		if err := op.Def.Eval(c); err != nil {
			return err
		}
		for i, r := range op.Results {
			env[r] = c.Out[i]
		}
	}
	return nil
}

// grad evaluates ∂y/∂x by moving each element of x and running again what lies
// between x and y.
func (in *interp) grad(f *Func, pos int, c *EvalCtx, env map[*Value]Val, bind map[string]int) error {
	y := c.Op.Operands[0]
	for i, x := range c.Op.Operands[1:] {
		from := 0
		for k, op := range f.Body {
			if op == x.Def {
				from = k + 1
			}
		}
		t := env[x].T.Clone()
		local := map[*Value]Val{}
		for v, val := range env {
			local[v] = val
		}
		local[x] = Val{T: t}
		g, err := centralDifferences(t, func() (float64, error) {
			if err := in.run(f, from, pos, local, bind); err != nil {
				return 0, err
			}
			return local[y].T.Data[0], nil
		})
		if err != nil {
			return err
		}
		c.Set(i, g)
	}
	return nil
}

// centralDifferences returns the gradient of f at x, by the fourth-order
// central difference; x is moved in place and restored.
func centralDifferences(x *Tensor, f func() (float64, error)) (*Tensor, error) {
	g := NewTensor(x.Shape...)
	for i, v := range x.Data {
		h := 1e-3 * math.Max(1, math.Abs(v))
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
	case val.T == nil:
		return fmt.Errorf("%s is a tensor, got a graph or nothing", v.Name)
	default:
		shape = val.T.Shape
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
