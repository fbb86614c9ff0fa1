package bench

import (
	"fmt"

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
		cases = append(cases, attentionCases(name, 8, 8)...)
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
	return append(cases, vectorCases()...)
}

// attentionCases time what graph attention of so many heads of f columns adds, and
// its products.
func attentionCases(name string, heads, f int) []Case {
	size := fmt.Sprintf("%s/%dx%d", name, heads, f)
	// Every array is read or written once; what fits in a cache may be read again.
	sweeps := func(entries, nodes float64) Cost { bytes := 4 * (entries + nodes); return Cost{0, bytes, bytes} }
	return []Case{
		kernelCase("edge_softmax/"+fmt.Sprintf("%s/%d", name, heads), "softmax over the edges into each node, by heads", name, func(e *env, p *kernels.Pool) (func(), Cost) {
			s := e.ds.Graph.Structure()
			scores, own, a, self := ramp(s.E*heads), ramp(s.N*heads), make([]float32, s.E*heads), make([]float32, s.N*heads)
			return func() { p.EdgeSoftmax(a, self, s.In, scores, own, nil, heads) }, sweeps(float64(2*s.E*heads), float64(2*s.N*heads))
		}),
		kernelCase("edge_softmax_grad/"+fmt.Sprintf("%s/%d", name, heads), "its gradient", name, func(e *env, p *kernels.Pool) (func(), Cost) {
			s := e.ds.Graph.Structure()
			scores, own, a, self := ramp(s.E*heads), ramp(s.N*heads), make([]float32, s.E*heads), make([]float32, s.N*heads)
			p.EdgeSoftmax(a, self, s.In, scores, own, nil, heads)
			de, ds := make([]float32, s.E*heads), make([]float32, s.N*heads)
			return func() { p.EdgeSoftmaxGrad(de, ds, nil, s.In, scores, own, nil, a, self, scores, own, heads) }, sweeps(float64(3*s.E*heads), float64(3*s.N*heads))
		}),
		kernelCase("spmm/"+size, "neighbours' rows summed with weights of each head", name, func(e *env, p *kernels.Pool) (func(), Cost) {
			s := e.ds.Graph.Structure()
			h, w, dst := ramp(s.N*heads*f), ramp(s.E*heads), make([]float32, s.N*heads*f)
			return func() { p.SpMMHeads(dst, s.In, w, nil, h, heads*f, heads, kernels.Epilogue{}) }, gatherCost(float64(s.E), float64(s.N), float64(heads*f), float64(s.N*heads*f))
		}),
		kernelCase("sddmm/"+size, "inner product for each edge and head", name, func(e *env, p *kernels.Pool) (func(), Cost) {
			s := e.ds.Graph.Structure()
			a, b, dst := ramp(s.N*heads*f), ramp(s.N*heads*f), make([]float32, s.E*heads)
			return func() { p.SDDMMHeads(dst, s.In, a, b, heads*f, heads) }, gatherCost(float64(s.E), 2*float64(s.N), float64(heads*f), float64(s.E*heads))
		}),
	}
}

// pairwiseCases time the streamed contrastive loss over b samples of width f.
func pairwiseCases(b, f int) []Case {
	type state struct {
		p, q, ws, dp, dq []float32
		out              kernels.PairwiseResult
	}
	prepare := func() *state {
		s := &state{p: ramp(b * f), q: ramp(b * f), ws: make([]float32, kernels.PairwiseWorkspace(b, f)), dp: make([]float32, b*f), dq: make([]float32, b*f)}
		for i := range s.q { // not the same points
			s.p[i], s.q[i] = s.p[i]/float32(f), s.q[len(s.q)-1-i]/float32(f)
		}
		s.out = kernels.PairwiseResult{RowLSE: make([]float32, b), ColLSE: make([]float32, b), Diag: make([]float32, b), SumSq: make([]float32, 1)}
		return s
	}
	return []Case{
		kernelCase(fmt.Sprintf("pairwise_reduce/%dx%d", b, f), "distances of all pairs, reduced without being stored", "", func(_ *env, p *kernels.Pool) (func(), Cost) {
			s := prepare()
			return func() { p.PairwiseReduce(s.out, s.p, s.q, b, f, 0.1, nil, s.ws) }, pairwiseCost(float64(b), float64(f), 1)
		}),
		kernelCase(fmt.Sprintf("pairwise_reduce_grad/%dx%d", b, f), "its gradient: the distances again, and two products", "", func(_ *env, p *kernels.Pool) (func(), Cost) {
			s := prepare()
			p.PairwiseReduce(s.out, s.p, s.q, b, f, 0.1, nil, s.ws)
			ones := make([]float32, b)
			for i := range ones {
				ones[i] = 1
			}
			d := kernels.PairwiseCotangent{RowLSE: ones, ColLSE: ones, Diag: ones, SumSq: []float32{1e-6}}
			return func() {
				p.PairwiseReduceGrad(s.dp, s.dq, s.p, s.q, s.out.RowLSE, s.out.ColLSE, d, b, f, 0.1, nil, s.ws)
			}, pairwiseCost(float64(b), float64(f), 3)
		}),
		kernelCase(fmt.Sprintf("pairwise_mean/%dx%d", b, f), "what each row sees of all others, in one pass", "", func(_ *env, p *kernels.Pool) (func(), Cost) {
			s := prepare()
			out := kernels.PairwiseResult{RowLSE: s.out.RowLSE, Mean: s.dp}
			return func() { p.PairwiseReduce(out, s.p, s.q, b, f, 0.1, nil, s.ws) }, pairwiseCost(float64(b), float64(f), 2)
		}),
		kernelCase(fmt.Sprintf("pairwise_self/%dx%d", b, f), "distances of the rows among themselves, each once", "", func(_ *env, p *kernels.Pool) (func(), Cost) {
			s := prepare()
			return func() { p.PairwiseSelf(s.out.RowLSE, s.p, b, f, 0.1, nil, s.ws) }, pairwiseCost(float64(b), float64(f), 0.5)
		}),
		kernelCase(fmt.Sprintf("pairwise_self_grad/%dx%d", b, f), "its gradient: half the distances again, and one product", "", func(_ *env, p *kernels.Pool) (func(), Cost) {
			s := prepare()
			p.PairwiseSelf(s.out.RowLSE, s.p, b, f, 0.1, nil, s.ws)
			return func() { p.PairwiseSelfGrad(s.dp, s.p, s.out.RowLSE, s.out.ColLSE, b, f, 0.1, nil, s.ws) }, pairwiseCost(float64(b), float64(f), 1.5)
		}),
	}
}

// vectorCases time sweeps over arrays.
func vectorCases() []Case {
	var cases []Case
	sweep := func(name, doc string, n int, words float64, make func(p *kernels.Pool) func()) {
		cases = append(cases, kernelCase(name, doc, "", func(_ *env, p *kernels.Pool) (func(), Cost) {
			return make(p), Cost{0, 4 * words * float64(n), 4 * words * float64(n)}
		}))
	}
	for _, side := range []int{512, 2708} {
		n := side * side
		sweep(fmt.Sprintf("exp/%dx%d", side, side), "exponentials", n, 2, func(p *kernels.Pool) func() {
			x, y := ramp(n), make([]float32, n)
			return func() { p.Unary(kernels.Exp, y, x, 0) }
		})
		sweep(fmt.Sprintf("log/%dx%d", side, side), "logarithms", n, 2, func(p *kernels.Pool) func() {
			x, y := ramp(n), make([]float32, n)
			for i := range x {
				x[i] += 2
			}
			return func() { p.Unary(kernels.Log, y, x, 0) }
		})
	}
	const rows, cols = 2708, 128
	sweep("elu/2708x128", "activation of a layer", rows*cols, 2, func(p *kernels.Pool) func() {
		x, y := ramp(rows*cols), make([]float32, rows*cols)
		return func() { p.Unary(kernels.EluOp, y, x, 0) }
	})
	sweep("softmax/2708x128", "softmax of rows", rows*cols, 2, func(p *kernels.Pool) func() {
		x, y := ramp(rows*cols), make([]float32, rows*cols)
		return func() { p.Softmax(y, x, rows, cols) }
	})
	sweep("normal/2708x128", "normal random numbers", rows*cols, 1, func(p *kernels.Pool) func() {
		y := make([]float32, rows*cols)
		return func() { p.Normal(y, 3) }
	})
	const weights = 2866 * 128
	sweep("adam/2866x128", "a step of Adam", weights, 7, func(p *kernels.Pool) func() {
		params := []kernels.AdamParam{{W: ramp(weights), G: ramp(weights), M: make([]float32, weights), V: make([]float32, weights)}}
		return func() { p.AdamStep(params, 1e-3, 0.9, 0.999, 1e-8, 10) }
	})
	return cases
}
