package kernels

import (
	"testing"

	"github.com/gsrc-dev/gsrc/rng"
)

// coraLike has the size of the Cora graph with self-loops: 2708 rows, about 13 300 entries.
func coraLike() *CSR {
	key := rng.New(1, "graph")
	s := &CSR{Rows: 2708, Cols: 2708, RowPtr: make([]int32, 2709)}
	for r := range s.Rows {
		for range 1 + key.Intn(uint64(2*r), 9) {
			s.Col = append(s.Col, int32(key.Intn(uint64(len(s.Col))*2+1, s.Cols)))
		}
		s.RowPtr[r+1] = int32(len(s.Col))
	}
	return s
}

func BenchmarkSparse(b *testing.B) {
	s := coraLike()
	vals, e := normals(1, s.NNZ()), float64(s.NNZ())
	p := NewPool(1)
	defer p.Close()
	for _, f := range []int{7, 16, 128} {
		h, dst, edge := normals(2, s.Cols*f), make([]float32, s.Rows*f), make([]float32, s.NNZ())
		b.Run(name("SpMM/", f), func(b *testing.B) {
			bench(b, 2*e*float64(f), "GFLOP/s", func() { p.SpMM(dst, s, vals, nil, h, f, Epilogue{}) })
		})
		b.Run(name("SDDMM/", f), func(b *testing.B) {
			bench(b, 2*e*float64(f), "GFLOP/s", func() { p.SDDMM(edge, s, h, h, f) })
		})
	}
	b.Run("EdgeUniform", func(b *testing.B) {
		dst := make([]float32, s.NNZ())
		bench(b, e, "Gelem/s", func() { p.EdgeUniform(dst, s, 7) })
	})
	b.Run("DropoutSparse", func(b *testing.B) {
		dst := make([]float32, s.NNZ())
		bench(b, e, "Gelem/s", func() { p.DropoutSparse(dst, vals, s, s.Cols, 0.5, 7) })
	})
}

// BenchmarkVector reports thousand millions of elements a second on one thread.
func BenchmarkVector(b *testing.B) {
	const rows, cols, n = 1000, 100, 100000
	x, y, dst := normals(1, n), positives(2, n), make([]float32, n)
	p := NewPool(1)
	defer p.Close()
	run := func(name string, f func()) {
		b.Run(name, func(b *testing.B) { bench(b, n, "Gelem/s", f) })
	}
	run("Normal", func() { p.Normal(dst, 3) })
	run("Uniform", func() { p.Uniform(dst, 3) })
	run("Dropout", func() { p.Dropout(dst, x, 0.5, 3) })
	for _, op := range []UnaryOp{Exp, Log, Sigmoid, Tanh, EluOp, ReluOp} {
		run(unaryNames[op], func() { p.Unary(op, dst, y, 0) })
	}
	run("Add", func() { p.Binary(Add, dst, x, y, rows, cols, Full, Full) })
	run("AddRow", func() { p.Binary(Add, dst, x, y, rows, cols, Full, RowVector) })
	run("RowLogSumExp", func() { p.RowLogSumExp(dst, x, rows, cols) })
	run("ColLogSumExp", func() { p.ColLogSumExp(dst, x, rows, cols) })
	run("ColSum", func() { p.ColSum(dst, x, rows, cols) })
	run("Softmax", func() { p.Softmax(dst, x, rows, cols) })
	m, v := make([]float32, n), make([]float32, n)
	params := []AdamParam{{W: dst, G: x, M: m, V: v}}
	run("Adam", func() { p.AdamStep(params, 1e-3, 0.9, 0.999, 1e-8, 10) })
}

// BenchmarkPairwise reports the floating-point operations of the products alone:
// 2·b²·f forward, three times that backward.
func BenchmarkPairwise(b *testing.B) {
	const n, f = 512, 128
	for _, threads := range []int{1, 2} {
		p := NewPool(threads)
		defer p.Close()
		u, v, ws := unitRows(1, n, f), unitRows(2, n, f), make([]float32, PairwiseWorkspace(n, f))
		out := PairwiseResult{make([]float32, n), make([]float32, n), make([]float32, n), make([]float32, 1)}
		du, dv := make([]float32, n*f), make([]float32, n*f)
		b.Run(name("Forward/threads=", threads), func(b *testing.B) {
			bench(b, 2*n*n*f, "GFLOP/s", func() { p.PairwiseReduce(out, u, v, n, f, 0.1, ws) })
		})
		d := PairwiseCotangent{out.Diag, out.Diag, out.Diag, []float32{1e-6}}
		b.Run(name("Backward/threads=", threads), func(b *testing.B) {
			bench(b, 6*n*n*f, "GFLOP/s", func() { p.PairwiseReduceGrad(du, dv, u, v, out.RowLSE, out.ColLSE, d, n, f, 0.1, ws) })
		})
	}
}
