package bench

import (
	"fmt"
	"slices"

	"github.com/gsrc-dev/gsrc/runtime/kernels"
)

// kernelCase times one kernel, whose call and cost make returns.
func kernelCase(name, doc string, workload string, make func(e *env, p *kernels.Pool) (call func(), cost Cost)) Case {
	c := Case{Name: "kernel/" + name, Doc: doc, run: func(e *env) (Result, error) {
		p := kernels.NewPool(e.Threads)
		defer p.Close()
		call, cost := make(e, p)
		r, err := e.rounds(func() error { call(); return nil })
		r.Cost = &cost
		return r, err
	}}
	if workload != "" {
		c.workload = FindWorkload(workload)
	}
	return c
}

// kernelCases are the kernels that decide how long steps take, and those that PyTorch is
// compared with. "make bench" times all of them.
func kernelCases() []Case {
	var cases []Case
	matmul := func(kind string, m, k, n int) {
		cases = append(cases, kernelCase(fmt.Sprintf("matmul/%s/%dx%dx%d", kind, m, k, n), "matrix product, m×k×n, T: transposed in memory", "",
			func(_ *env, p *kernels.Pool) (func(), Cost) {
				a, b, dst := ramp(m*k), ramp(k*n), make([]float32, m*n)
				ta, tb := kind[0] == 'T', kind[1] == 'T'
				return func() { p.MatMul(dst, a, b, m, k, n, ta, tb, kernels.Epilogue{}) }, matmulCost(float64(m), float64(k), float64(n))
			}))
	}
	for _, kind := range []string{"NN", "NT", "TN"} {
		matmul(kind, 2708, 1433, 128)
		matmul(kind, 2708, 128, 128)
		matmul(kind, 34493, 128, 128)
		matmul(kind, 1024, 1024, 1024)
	}
	matmul("NT", 512, 128, 512)
	matmul("TN", 1433, 2708, 128)
	matmul("TN", 128, 2708, 128)
	for _, name := range []string{"cora", "actor", "coauthor_phy"} {
		for _, f := range []int{16, 128} {
			size := fmt.Sprintf("%s/%d", name, f)
			cases = append(cases,
				kernelCase("spmm/"+size, "neighbours' rows summed with weights", name, func(e *env, p *kernels.Pool) (func(), Cost) {
					s := e.ds.Graph.Structure()
					h, w, dst := ramp(s.N*f), ramp(s.E), make([]float32, s.N*f)
					return func() { p.SpMM(dst, s.In, w, nil, h, f, kernels.Epilogue{}) }, gatherCost(float64(s.E), float64(s.N), float64(f), float64(s.N*f))
				}),
				kernelCase("sddmm/"+size, "inner product for each edge", name, func(e *env, p *kernels.Pool) (func(), Cost) {
					s := e.ds.Graph.Structure()
					a, b, dst := ramp(s.N*f), ramp(s.N*f), make([]float32, s.E)
					return func() { p.SDDMM(dst, s.In, a, b, f) }, gatherCost(float64(s.E), 2*float64(s.N), float64(f), float64(s.E))
				}))
		}
		cases = append(cases, kernelCase("features/"+name+"/128", "sparse features times dense weights", name, func(e *env, p *kernels.Pool) (func(), Cost) {
			x := e.ds.X.ToCSR()
			s := &kernels.CSR{Rows: x.Rows, Cols: x.Cols, RowPtr: x.RowPtr, Col: x.Col}
			w, dst := ramp(x.Cols*128), make([]float32, x.Rows*128)
			return func() { p.SpMM(dst, s, x.Val, nil, w, 128, kernels.Epilogue{}) }, gatherCost(float64(s.NNZ()), float64(x.Cols), 128, float64(x.Rows*128))
		}))
	}
	for _, b := range []int{512, 2708} {
		cases = append(cases, pairwiseCases(b, 128)...)
	}
	for _, side := range []int{512, 2708} {
		n := side * side
		cases = append(cases, kernelCase(fmt.Sprintf("exp/%dx%d", side, side), "exponentials", "", func(_ *env, p *kernels.Pool) (func(), Cost) {
			x, y := ramp(n), make([]float32, n)
			return func() { p.Unary(kernels.Exp, y, x, 0) }, Cost{0, 8 * float64(n), 8 * float64(n)}
		}))
	}
	return cases
}

// pairwiseCases time the streamed contrastive loss over b samples of width f.
func pairwiseCases(b, f int) []Case {
	forward := func(p *kernels.Pool) (x, y, ws []float32, out kernels.PairwiseResult, call func()) {
		x, y, ws = ramp(b*f), ramp(b*f), make([]float32, kernels.PairwiseWorkspace(b, f))
		for i := range y { // not the same points
			x[i], y[i] = x[i]/float32(f), y[len(y)-1-i]/float32(f)
		}
		out = kernels.PairwiseResult{RowLSE: make([]float32, b), ColLSE: make([]float32, b), Diag: make([]float32, b), SumSq: make([]float32, 1)}
		return x, y, ws, out, func() { p.PairwiseReduce(out, x, y, b, f, 0.1, nil, ws) }
	}
	return []Case{
		kernelCase(fmt.Sprintf("pairwise_reduce/%dx%d", b, f), "distances of all pairs, reduced without being stored", "", func(_ *env, p *kernels.Pool) (func(), Cost) {
			_, _, _, _, call := forward(p)
			return call, pairwiseCost(float64(b), float64(f), 1)
		}),
		kernelCase(fmt.Sprintf("pairwise_reduce_grad/%dx%d", b, f), "its gradient: the distances again, and two products", "", func(_ *env, p *kernels.Pool) (func(), Cost) {
			x, y, ws, out, call := forward(p)
			call()
			ones := slices.Repeat([]float32{1}, b)
			d := kernels.PairwiseCotangent{RowLSE: ones, ColLSE: ones, Diag: ones, SumSq: []float32{1e-6}}
			dx, dy := make([]float32, b*f), make([]float32, b*f)
			return func() { p.PairwiseReduceGrad(dx, dy, x, y, out.RowLSE, out.ColLSE, d, b, f, 0.1, nil, ws) }, pairwiseCost(float64(b), float64(f), 3)
		}),
	}
}
