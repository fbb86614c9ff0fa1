package runtime

import (
	"fmt"
	"slices"

	"github.com/gsrc-dev/gsrc/graph"
	"github.com/gsrc-dev/gsrc/ir"
	"github.com/gsrc-dev/gsrc/rng"
	"github.com/gsrc-dev/gsrc/runtime/kernels"
)

// Reference computes a function in float64 with the interpreter of package ir,
// on the inputs that [Function] takes and with the random numbers that its
// kernels draw. If the function has a set-up, that is interpreted first. Results
// are by name; sparse ones are given densely. It is slow and meant for tests.
func Reference(m *ir.Module, fn string, args, params map[string]*Buffer, seed rng.Stream, step uint64) (map[string]*ir.Tensor, error) {
	f := m.Func(fn)
	if f == nil {
		return nil, fmt.Errorf("runtime: module @%s has no function @%s", m.Name, fn)
	}
	setup, err := setupOf(m, f)
	if err != nil {
		return nil, err
	}
	vals := map[string]ir.Val{}
	for name, b := range args {
		vals[name] = refValue(b)
	}
	ps := map[string]*ir.Tensor{}
	for name, b := range params {
		ps[name] = refValue(b).T
	}
	for _, run := range []struct {
		fn   *ir.Func
		step uint64
	}{{setup, 0}, {f, step}} {
		if run.fn == nil {
			continue
		}
		var in []ir.Val
		for _, a := range run.fn.Args {
			v, ok := vals[a.Name]
			if !ok {
				return nil, fmt.Errorf("runtime: @%s: %%%s is not given", run.fn.Name, a.Name)
			}
			in = append(in, v)
		}
		out, err := ir.Interpret(m, run.fn.Name, in, ps, refRandom{seed, run.step})
		if err != nil {
			return nil, err
		}
		for i, r := range run.fn.Results {
			vals[r.Name] = out[i]
		}
	}
	tensors := map[string]*ir.Tensor{}
	for _, r := range f.Results {
		tensors[r.Name] = vals[r.Name].T
	}
	return tensors, nil
}

// refValue converts a buffer to a value of the interpreter.
func refValue(b *Buffer) ir.Val {
	if b.Graph != nil {
		return ir.Val{G: refGraph(b.Graph)}
	}
	t := &ir.Tensor{Shape: slices.Clone(b.Dims), Data: make([]float64, count(b.Dims))}
	switch {
	case b.Sparse != nil:
		s := b.Sparse.ByRow
		for r := range s.Rows {
			for e := s.RowPtr[r]; e < s.RowPtr[r+1]; e++ {
				t.Data[r*s.Cols+int(s.Col[e])] += float64(b.Sparse.Values[e])
			}
		}
	case b.DType == ir.I64:
		for i, v := range b.I64 {
			t.Data[i] = float64(v)
		}
	default:
		for i, v := range b.F32 {
			t.Data[i] = float64(v)
		}
	}
	return ir.Val{T: t}
}

func refGraph(s *graph.Structure) *ir.Graph {
	g := &ir.Graph{N: s.N}
	for r := range s.N {
		for e := s.In.RowPtr[r]; e < s.In.RowPtr[r+1]; e++ {
			g.Row, g.Col = append(g.Row, r), append(g.Col, int(s.In.Col[e]))
		}
	}
	if s.In.Cols != s.N {
		g.Sources = s.In.Cols
	}
	return g
}

// refRandom gives the interpreter the numbers that kernels draw at a step.
type refRandom struct {
	seed rng.Stream
	step uint64
}

func (r refRandom) key(stream string) rng.Stream { return r.seed.Sub(stream).At(r.step) }

func (r refRandom) Uniform(stream string, i int) float64 {
	return float64(r.key(stream).Uniform(uint64(i)))
}

func (r refRandom) Normal(stream string, i int) float64 {
	return float64(kernels.NormalAt(r.key(stream), uint64(i)))
}

func (r refRandom) UniformPair(stream string, a, b int) float64 {
	return float64(r.key(stream).UniformPair(uint32(a), uint32(b)))
}
