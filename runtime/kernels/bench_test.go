package kernels

import (
	"testing"

	"github.com/gsrc-dev/gsrc/rng"
)

// randomGraph has about degree entries a row, uniform, to anywhere.
func randomGraph(rows, degree int) *CSR {
	key := rng.New(1, "graph")
	s := &CSR{Rows: rows, Cols: rows, RowPtr: make([]int32, rows+1)}
	for r := range rows {
		for range 1 + key.Intn(uint64(2*r), 2*degree-1) {
			s.Col = append(s.Col, int32(key.Intn(uint64(len(s.Col))*2+1, rows)))
		}
		s.RowPtr[r+1] = int32(len(s.Col))
	}
	return s
}

// skewedGraph has rows of length ∝ 1/(place of the row), as a power law gives.
func skewedGraph(rows, longest int) *CSR {
	key := rng.New(2, "graph")
	s := &CSR{Rows: rows, Cols: rows, RowPtr: make([]int32, rows+1)}
	for r := range rows {
		for range 1 + longest/(1+r) {
			s.Col = append(s.Col, int32(key.Intn(uint64(len(s.Col)), rows)))
		}
		s.RowPtr[r+1] = int32(len(s.Col))
	}
	return s
}

// benchBytes measures f and reports GB/s, on average and for the fastest call.
func benchBytes(b *testing.B, bytes int, f func()) {
	b.SetBytes(int64(bytes))
	bench(b, float64(bytes), "GB/s", f)
}

// BenchmarkTriad is the limit that the sparse kernels are held against: the sum of
// two vectors, as STREAM counts it (two reads and a write), in the second-level
// cache, in the third and from memory.
func BenchmarkTriad(b *testing.B) {
	for _, threads := range []int{1, 2} {
		p := NewPool(threads)
		defer p.Close()
		for _, n := range []int{8 << 10, 400 << 10, 10 << 20} {
			x, y, dst := normals(1, n), normals(2, n), make([]float32, n)
			b.Run(name("threads=", threads, "/KiB=", 12*n>>10), func(b *testing.B) {
				benchBytes(b, 12*n, func() { p.Binary(Add, dst, x, y, 1, n, Full, Full) })
			})
		}
	}
}

// BenchmarkSparse counts the least that has to move: the structure and the values
// once, the row that each entry names, the result once.
func BenchmarkSparse(b *testing.B) {
	for _, threads := range []int{1, 2} {
		p := NewPool(threads)
		defer p.Close()
		for _, g := range []struct {
			name string
			s    *CSR
		}{{"cora", randomGraph(2708, 5)}, {"skewed", skewedGraph(2708, 2000)}, {"rows=100000", randomGraph(100_000, 5)}} {
			s, e := g.s, g.s.NNZ()
			t := Transpose(s)
			vals, diag, edge := normals(1, e), normals(3, s.Rows), make([]float32, e)
			structure := 4*e + 4*s.Rows
			run := func(kind string, bytes int, f func()) {
				b.Run(name(kind, "/", g.name, "/threads=", threads), func(b *testing.B) { benchBytes(b, bytes, f) })
			}
			for _, f := range []int{16, 128} {
				h, dst := normals(2, s.Cols*f), make([]float32, s.Rows*f)
				row := 4 * f
				run(name("SpMM/f=", f), structure+4*e+e*row+s.Rows*row, func() { p.SpMM(dst, s, vals, nil, h, f, Epilogue{}) })
				run(name("SpMMDiag/f=", f), structure+4*e+e*row+2*s.Rows*row, func() { p.SpMM(dst, s, vals, diag, h, f, Epilogue{}) })
				run(name("SpMMTransposed/f=", f), structure+8*e+e*row+s.Rows*row, func() { p.SpMM(dst, t, vals, nil, h, f, Epilogue{}) })
				run(name("SDDMM/f=", f), structure+4*e+e*row+s.Rows*row, func() { p.SDDMM(edge, s, h, h, f) })
			}
			node := make([]float32, s.Rows)
			run("EdgeSum", structure+4*s.Rows, func() { p.EdgeSum(node, s, vals, 1, Dst) })
			run("EdgeGather", structure+4*e+4*e, func() { p.EdgeGather(edge, s, diag, 1, Src) })
		}
		// Bags of words, 18 of 1433 a row, times the first weight, and its gradient.
		words := &CSR{Rows: 2708, Cols: 1433, RowPtr: make([]int32, 2709)}
		key := rng.New(3, "words")
		for r := range words.Rows {
			for range 18 {
				words.Col = append(words.Col, int32(key.Intn(uint64(len(words.Col)), words.Cols)))
			}
			words.RowPtr[r+1] = int32(len(words.Col))
		}
		const f = 128
		e, t := words.NNZ(), Transpose(words)
		vals, w, y := normals(1, e), normals(2, words.Cols*f), normals(3, words.Rows*f)
		b.Run(name("Features/threads=", threads), func(b *testing.B) {
			benchBytes(b, 8*e+4*e*f+4*words.Rows*f, func() { p.SpMM(y, words, vals, nil, w, f, Epilogue{}) })
		})
		b.Run(name("FeaturesGradient/threads=", threads), func(b *testing.B) {
			benchBytes(b, 12*e+4*e*f+4*words.Cols*f, func() { p.SpMM(w, t, vals, nil, y, f, Epilogue{}) })
		})
	}
}

// BenchmarkNearest searches the 100 nearest of rows like GRCN's embedding of Cora, of which a fifth is
// not 0 and a few have much more than others, and of rows without zeros.
func BenchmarkNearest(b *testing.B) {
	const n, f, k = 2708, 1433, 100
	key := rng.New(5, "nearest")
	some, all := make([]float32, n*f), make([]float32, n*f)
	for i := range n {
		share := 0.05 + 0.3*key.Uniform(uint64(i))*key.Uniform(uint64(n+i))*key.Uniform(uint64(2*n+i))*5
		for c := range f {
			at := uint64(3*n + i*f + c)
			all[i*f+c] = key.Sub("v").Uniform(at) / 20
			if key.Uniform(at) < share {
				some[i*f+c] = key.Sub("v").Uniform(at) / 8
			}
		}
	}
	p := NewPool(1)
	defer p.Close()
	idx, sim := make([]int32, n*k), make([]float32, n*k)
	for _, c := range []struct {
		name string
		z    []float32
	}{{"zeros", some}, {"dense", all}} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportMetric(float64(notZero(c.z))/(n*f), "stored")
			bench(b, 2*n*n/2*f, "GFLOP/s", func() { p.Nearest(idx, sim, c.z, n, f, k) })
		})
	}
}

// BenchmarkAttention times what graph attention of 8 heads of 8 does on a graph as
// large as Cora, in assembly and in portable loops; counted as in BenchmarkSparse.
func BenchmarkAttention(b *testing.B) {
	const heads, f = 8, 64
	s, p := randomGraph(2708, 5), NewPool(1)
	defer p.Close()
	n, rows := s.NNZ()*heads, s.Rows*heads
	e, own, a, self, de, ds := normals(1, n), normals(2, rows), make([]float32, n), make([]float32, rows), make([]float32, n), make([]float32, rows)
	h, dst, one := normals(3, s.Cols*f), make([]float32, s.Rows*f), make([]float32, s.Rows*f/heads)
	columns, vals := make([]float32, s.Cols*f/heads), make([]float32, s.NNZ())
	defer func(before string) { _ = SetISA(before) }(ISA())
	for _, isa := range []string{ISA(), "go"} {
		if err := SetISA(isa); err != nil {
			b.Fatal(err)
		}
		run := func(kind string, floats int, f func()) {
			b.Run(kind+"/"+isa, func(b *testing.B) { benchBytes(b, 4*floats, f) })
		}
		run("EdgeSoftmax", 2*n+2*rows, func() { p.EdgeSoftmax(a, self, s, e, own, nil, heads) })
		run("EdgeSoftmaxGrad", 3*n+3*rows, func() { p.EdgeSoftmaxGrad(de, ds, nil, s, e, own, nil, a, self, e, own, heads) })
		run("LeakyReluGrad", 3*n, func() { p.LeakyReluGrad(de, e, a, 0.2) })
		product := 2*s.NNZ() + s.NNZ()*f + s.Rows*f
		run("Product", product, func() { p.SpMMHeads(dst, s, e, nil, h, f, heads, Epilogue{}) })
		run("ProductByHeads", product, func() { // the same, with one product of its own for each head
			for k := range heads {
				p.CopyColumns(columns, f/heads, 0, h, f, k*f/heads, s.Cols, f/heads)
				p.CopyColumns(vals, 1, 0, e, heads, k, s.NNZ(), 1)
				p.SpMM(one, s, vals, nil, columns, f/heads, Epilogue{})
				p.CopyColumns(dst, f, k*f/heads, one, f/heads, 0, s.Rows, f/heads)
			}
		})
	}
}

// BenchmarkEdgeRandom reports thousand millions of entries a second.
func BenchmarkEdgeRandom(b *testing.B) {
	s := randomGraph(2708, 5)
	vals, e := normals(1, s.NNZ()), float64(s.NNZ())
	p := NewPool(1)
	defer p.Close()
	dst := make([]float32, s.NNZ())
	b.Run("EdgeUniform", func(b *testing.B) { bench(b, e, "Gelem/s", func() { p.EdgeUniform(dst, s, 7) }) })
	b.Run("DropoutSparse", func(b *testing.B) {
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
	run("RowLogSumExp", func() { p.ReduceRows(ReduceLSE, dst, x, rows, cols) })
	run("ColLogSumExp", func() { p.ReduceCols(ReduceLSE, dst, x, rows, cols) })
	run("ColSum", func() { p.ReduceCols(ReduceSum, dst, x, rows, cols) })
	run("Softmax", func() { p.Softmax(dst, x, rows, cols) })
	m, v := make([]float32, n), make([]float32, n)
	params := []AdamParam{{W: dst, G: x, M: m, V: v}}
	run("Adam", func() { p.AdamStep(params, 1e-3, 0.9, 0.999, 1e-8, 10) })
}

// BenchmarkPairwise reports the floating-point operations of the products that
// cannot be done without: 2·b²·f forward, four times more for both gradients, half
// of either for the rows among themselves, as much again as forward for the mean.
func BenchmarkPairwise(b *testing.B) {
	const f = 128
	for _, n := range []int{512, 2708} {
		for _, threads := range []int{1, 2} {
			p := NewPool(threads)
			defer p.Close()
			u, v, ws := unitRows(1, n, f), unitRows(2, n, f), make([]float32, PairwiseWorkspace(n, f))
			row, col, diag, sum, mean := make([]float32, n), make([]float32, n), make([]float32, n), make([]float32, 1), make([]float32, n*f)
			du, dv := make([]float32, n*f), make([]float32, n*f)
			product := 2 * float64(n) * float64(n) * f
			run := func(kind string, work float64, body func()) {
				b.Run(name(kind, "/rows=", n, "/threads=", threads), func(b *testing.B) { bench(b, work, "GFLOP/s", body) })
			}
			out, d := PairwiseResult{RowLSE: row, ColLSE: col, Diag: diag, SumSq: sum}, PairwiseCotangent{diag, diag, diag, []float32{1e-6}}
			run("Forward", product, func() { p.PairwiseReduce(out, u, v, n, f, 0.1, nil, ws) })
			run("Backward", 3*product, func() { p.PairwiseReduceGrad(du, dv, u, v, row, col, d, n, f, 0.1, nil, ws) })
			if k := PairwiseKept(n, false); k > 0 {
				kept := make([]float32, k)
				run("ForwardKeep", product, func() { p.PairwiseReduce(out, u, v, n, f, 0.1, kept, ws) })
				run("BackwardKept", 2*product, func() { p.PairwiseReduceGrad(du, dv, u, v, row, col, d, n, f, 0.1, kept, ws) })
			}
			run("Mean", 2*product, func() { p.PairwiseReduce(PairwiseResult{RowLSE: row, Mean: mean}, u, v, n, f, 0.1, nil, ws) })
			run("Self", product/2, func() { p.PairwiseSelf(row, u, n, f, 0.1, nil, ws) })
			run("SelfBackward", 1.5*product, func() { p.PairwiseSelfGrad(du, u, row, diag, n, f, 0.1, nil, ws) })
			run("Forward/tau=0.01", product, func() { p.PairwiseReduce(out, u, v, n, f, 0.01, nil, ws) })
			run("Backward/tau=0.01", 3*product, func() { p.PairwiseReduceGrad(du, dv, u, v, row, col, d, n, f, 0.01, nil, ws) })
		}
	}
}
