package kernels

import (
	"fmt"
	"testing"

	"github.com/gsrc-dev/gsrc/rng"
)

// chainCases are chains with the kernels that they stand for, one a step. x are
// the inputs: two matrices, a row, a column and a number; under an epilogue
// result holds the product, else zeros.
var chainCases = []struct {
	name string
	c    Chain
	want func(p *Pool, result []float32, x [5][]float32, rows, cols int, key rng.Stream)
}{
	{"noise", Chain{Regs: 2, Steps: []ChainStep{
		{Kind: StepNormal, Dst: 0},
		{Kind: StepBinary, Op: int(Mul), Args: [2]ChainArg{{Kind: ArgReg}, {Kind: ArgNumber, Value: 0.01}}, Dst: 0},
		{Kind: StepBinary, Op: int(Add), Args: [2]ChainArg{{Kind: ArgInput}, {Kind: ArgResult}}, Dst: 1},
		{Kind: StepBinary, Op: int(Add), Args: [2]ChainArg{{Kind: ArgReg, Index: 1}, {Kind: ArgReg}}, Dst: ToResult},
	}}, func(p *Pool, result []float32, x [5][]float32, rows, cols int, key rng.Stream) {
		n := rows * cols
		noise := make([]float32, n)
		p.Normal(noise, key)
		p.Binary(Mul, noise, noise, []float32{0.01}, rows, cols, Full, Scalar)
		p.Binary(Add, result, x[0], result, rows, cols, Full, Full)
		p.Binary(Add, result, result, noise, rows, cols, Full, Full)
	}},
	{"broadcast and drop", Chain{Regs: 1, Steps: []ChainStep{
		{Kind: StepBinary, Op: int(Sub), Args: [2]ChainArg{{Kind: ArgInput, Index: 2}, {Kind: ArgInput, Index: 3}}, Dst: 0},
		{Kind: StepBinary, Op: int(Max), Args: [2]ChainArg{{Kind: ArgResult}, {Kind: ArgReg}}, Dst: 0},
		{Kind: StepEluGrad, Args: [2]ChainArg{{Kind: ArgInput, Index: 1}, {Kind: ArgReg}}, Dst: 0},
		{Kind: StepBinary, Op: int(Div), Args: [2]ChainArg{{Kind: ArgInput, Index: 4}, {Kind: ArgReg}}, Dst: 0},
		{Kind: StepDropout, Args: [2]ChainArg{{Kind: ArgReg}}, Param: 0.3, Dst: ToResult},
	}}, func(p *Pool, result []float32, x [5][]float32, rows, cols int, key rng.Stream) {
		t := make([]float32, rows*cols)
		p.Binary(Sub, t, x[2], x[3], rows, cols, RowVector, ColVector)
		p.Binary(Max, t, result, t, rows, cols, Full, Full)
		p.EluGrad(t, x[1], t)
		p.Binary(Div, t, x[4], t, rows, cols, Scalar, Full)
		p.Dropout(result, t, 0.3, key)
	}},
	{"functions", Chain{Regs: 2, Steps: []ChainStep{
		{Kind: StepUnary, Op: int(Sigmoid), Args: [2]ChainArg{{Kind: ArgInput}}, Dst: 0},
		{Kind: StepUnary, Op: int(Pow), Param: 0.5, Args: [2]ChainArg{{Kind: ArgReg}}, Dst: 0},
		{Kind: StepLeakyGrad, Param: 0.2, Args: [2]ChainArg{{Kind: ArgInput, Index: 1}, {Kind: ArgReg}}, Dst: 0},
		{Kind: StepCompare, Op: int(CompareLess), Args: [2]ChainArg{{Kind: ArgReg}, {Kind: ArgNumber, Value: 0.5}}, Dst: 1},
		{Kind: StepReluGrad, Args: [2]ChainArg{{Kind: ArgInput}, {Kind: ArgNumber, Value: 2}}, Dst: 0},
		{Kind: StepBinary, Op: int(Add), Args: [2]ChainArg{{Kind: ArgReg}, {Kind: ArgReg, Index: 1}}, Dst: 0},
		{Kind: StepBinary, Op: int(Mul), Args: [2]ChainArg{{Kind: ArgNumber, Value: 3}, {Kind: ArgNumber, Value: 4}}, Dst: 1},
		{Kind: StepBinary, Op: int(Sub), Args: [2]ChainArg{{Kind: ArgReg}, {Kind: ArgReg, Index: 1}}, Dst: ToResult},
	}}, func(p *Pool, result []float32, x [5][]float32, rows, cols int, _ rng.Stream) {
		n := rows * cols
		t, u := make([]float32, n), make([]float32, n)
		p.Unary(Sigmoid, t, x[0], 0)
		p.Unary(Pow, t, t, 0.5)
		p.LeakyReluGrad(t, x[1], t, 0.2)
		p.Compare(CompareLess, u, t, []float32{0.5}, rows, cols, Full, Scalar)
		fill(t, 2)
		p.ReluGrad(t, x[0], t)
		p.Binary(Add, t, t, u, rows, cols, Full, Full)
		p.Binary(Sub, result, t, []float32{12}, rows, cols, Full, Scalar)
	}},
	{"uniform", Chain{Regs: 1, Steps: []ChainStep{
		{Kind: StepUniform, Dst: 0},
		{Kind: StepCompare, Op: int(CompareGreaterEqual), Args: [2]ChainArg{{Kind: ArgReg}, {Kind: ArgInput, Index: 4}}, Dst: ToResult},
	}}, func(p *Pool, result []float32, x [5][]float32, rows, cols int, key rng.Stream) {
		p.Uniform(result, key)
		p.Compare(CompareGreaterEqual, result, result, x[4], rows, cols, Full, Scalar)
	}},
}

func chainInputs(rows, cols int) (x [5][]float32, in []ChainInput) {
	sizes := [5]int{rows * cols, rows * cols, cols, rows, 1}
	modes := [5]BroadcastMode{Full, Full, RowVector, ColVector, Scalar}
	for i := range x {
		x[i] = normals(uint64(10+i), sizes[i])
		in = append(in, ChainInput{x[i], modes[i]})
	}
	x[4][0] = 0.4
	return x, in
}

func readsResult(c *Chain) bool {
	for _, st := range c.Steps {
		if st.Args[0].Kind == ArgResult || st.Args[1].Kind == ArgResult {
			return true
		}
	}
	return false
}

var chainShapes = [][2]int{{0, 5}, {5, 0}, {1, 1}, {1, 3000}, {3000, 1}, {7, 3}, {100, 16}, {33, 128}, {64, 100}, {5, 1024}, {9, 1500}, {2, 20000}}

// A chain computes what its steps compute as kernels, bit for bit: alone, over
// an input, and as the epilogue of dense and sparse products.
func TestChain(t *testing.T) {
	key := rng.New(4, "chain")
	eachISA(t, func(t *testing.T) {
		p, four := NewPool(1), NewPool(4)
		defer p.Close()
		defer four.Close()
		for _, shape := range chainShapes {
			rows, cols := shape[0], shape[1]
			n := rows * cols
			for _, tc := range chainCases {
				what := fmt.Sprintf("%s [%d,%d]", tc.name, rows, cols)
				x, in := chainInputs(rows, cols)
				c := tc.c
				c.Inputs, c.Key = in, key

				want, got := make([]float32, n), make([]float32, n)
				tc.want(p, want, x, rows, cols, key)
				four.Elementwise(got, rows, cols, &c)
				sameBits(t, what, got, want)

				c.Inputs = append([]ChainInput{}, in...)
				over := append([]float32{}, x[0]...)
				c.Inputs[0].Data = over
				if !readsResult(&c) {
					p.Elementwise(over, rows, cols, &c)
					sameBits(t, what+" in place", over, want)
				}

				const k = 17
				a, b, sum := normals(1, rows*k), normals(2, k*cols), normals(3, n)
				copy(want, sum)
				p.MatMul(want, a, b, rows, k, cols, false, false, Epilogue{Accumulate: true})
				tc.want(p, want, x, rows, cols, key)
				c.Inputs = in
				got = junk(n)
				four.MatMul(got, a, b, rows, k, cols, false, false, Epilogue{Add: sum, Then: &c})
				sameBits(t, what+" after matmul", got, want)
				over = append([]float32{}, sum...)
				p.MatMul(over, a, b, rows, k, cols, false, false, Epilogue{Add: over, Then: &c})
				sameBits(t, what+" after matmul over its summand", over, want)

				s := randomCSR(5, rows, k)
				vals := normals(6, s.NNZ())
				copy(want, sum)
				p.SpMM(want, s, vals, nil, b, cols, Epilogue{Accumulate: true})
				tc.want(p, want, x, rows, cols, key)
				got = junk(n)
				four.SpMM(got, s, vals, nil, b, cols, Epilogue{Add: sum, Then: &c})
				sameBits(t, what+" after spmm", got, want)
			}
		}
	})
}

// A chain that reads beyond an input panics before the assembly does.
func TestChainChecks(t *testing.T) {
	p := NewPool(1)
	defer p.Close()
	defer func() {
		if recover() == nil {
			t.Error("a short input was accepted")
		}
	}()
	p.Elementwise(make([]float32, 6), 2, 3, &Chain{Inputs: []ChainInput{{make([]float32, 5), Full}}, Steps: []ChainStep{{Kind: StepCopy, Dst: ToResult}}})
}

func BenchmarkChain(b *testing.B) {
	const rows, cols = 2708, 128
	p := NewPool(2)
	defer p.Close()
	x := normals(1, rows*cols)
	dst := make([]float32, rows*cols)
	c := chainCases[0].c
	c.Inputs = []ChainInput{{x, Full}}
	bench(b, rows*cols, "Gelem/s", func() { p.Elementwise(dst, rows, cols, &c) })
}
