package kernels

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/gsrc-dev/gsrc/rng"
)

var csrShapes = [][2]int{{0, 0}, {0, 5}, {5, 0}, {1, 1}, {7, 9}, {40, 33}, {500, 321}}

func TestSpMM(t *testing.T) {
	eachISA(t, func(t *testing.T) {
		p := NewPool(2)
		defer p.Close()
		for _, shape := range csrShapes {
			s := randomCSR(1, shape[0], shape[1])
			for _, f := range []int{0, 1, 3, 7, 8, 16, 33, 64, 100, 128, 200} {
				h, vals := normals(2, s.Cols*f), normals(3, s.NNZ())
				for variant := range 6 {
					v, epi := vals, Epilogue{}
					var diag []float32
					switch variant {
					case 1:
						v = nil
					case 2:
						epi = Epilogue{Bias: normals(4, f), Act: Elu}
					case 3:
						epi = Epilogue{Act: Relu, Accumulate: true}
					case 4:
						if s.Rows > s.Cols {
							continue
						}
						diag = normals(5, s.Rows)
					case 5:
						v, epi.Accumulate = nil, true
					}
					dst := junk(s.Rows * f)
					if epi.Accumulate {
						dst = normals(6, s.Rows*f)
					}
					want := refSpMM(dst, s, v, diag, h, f, epi)
					p.SpMM(dst, s, v, diag, h, f, epi)
					within(t, name("shape ", shape, " f ", f, " variant ", variant), dst, want, 1e-5, 1e-5)
				}
				// The transposed structure reads the same values through Perm.
				tr := Transpose(s)
				if err := tr.Validate(); err != nil {
					t.Fatal(err)
				}
				g, dst := normals(7, s.Rows*f), junk(s.Cols*f)
				p.SpMM(dst, tr, vals, nil, g, f, Epilogue{})
				want := make([]float64, s.Cols*f)
				for r := range s.Rows {
					for e := s.RowPtr[r]; e < s.RowPtr[r+1]; e++ {
						for c := range f {
							want[int(s.Col[e])*f+c] += float64(vals[e]) * float64(g[r*f+c])
						}
					}
				}
				within(t, name("transposed shape ", shape, " f ", f), dst, want, 1e-5, 1e-5)
				p.SpMM(dst, tr, nil, nil, g, f, Epilogue{})
			}
		}
	})
}

// Some rows of a product, of which the first own column is told, have the bits of the whole.
func TestSpMMOfSomeRows(t *testing.T) {
	eachISA(t, func(t *testing.T) {
		p := NewPool(2)
		defer p.Close()
		const lo, hi = 100, 330
		whole := randomCSR(1, 400, 400)
		first, last := whole.RowPtr[lo], whole.RowPtr[hi]
		some := &CSR{Rows: hi - lo, Cols: 400, First: lo, Col: whole.Col[first:last]}
		for _, at := range whole.RowPtr[lo : hi+1] {
			some.RowPtr = append(some.RowPtr, at-first)
		}
		for _, f := range []int{1, 8, 24, 100} {
			for _, heads := range []int{1, f} {
				h, vals, diag, bias := normals(2, 400*f), normals(3, whole.NNZ()*heads), normals(4, 400*heads), normals(5, f)
				for _, add := range []bool{false, true} {
					want, got := normals(6, 400*f), normals(6, 400*f)[lo*f:hi*f]
					epi := Epilogue{Bias: bias, Act: Relu, Accumulate: add}
					p.SpMMHeads(want, whole, vals, diag, h, f, heads, epi)
					p.SpMMHeads(got, some, vals[int(first)*heads:int(last)*heads], diag[lo*heads:hi*heads], h, f, heads, epi)
					if !slices.Equal(got, want[lo*f:hi*f]) {
						t.Errorf("%d columns, %d heads, added %v: the rows differ", f, heads, add)
					}
				}
			}
		}
	})
}

func refSpMM(dst0 []float32, s *CSR, vals, diag, h []float32, f int, epi Epilogue) []float64 {
	out := make([]float64, s.Rows*f)
	for r := range s.Rows {
		for c := range f {
			sum := 0.0
			for e := s.RowPtr[r]; e < s.RowPtr[r+1]; e++ {
				v := 1.0
				if vals != nil {
					v = float64(vals[e])
				}
				sum += v * float64(h[int(s.Col[e])*f+c])
			}
			if diag != nil {
				sum += float64(diag[r]) * float64(h[r*f+c])
			}
			if epi.Accumulate {
				sum += float64(dst0[r*f+c])
			}
			if epi.Bias != nil {
				sum += float64(epi.Bias[c])
			}
			out[r*f+c] = refAct(sum, epi.Act)
		}
	}
	return out
}

func TestSDDMM(t *testing.T) {
	eachISA(t, func(t *testing.T) {
		p := NewPool(2)
		defer p.Close()
		for _, shape := range csrShapes {
			s := randomCSR(1, shape[0], shape[1])
			tr := Transpose(s)
			for _, f := range []int{0, 1, 7, 8, 16, 33, 64, 128, 200} {
				a, b := normals(2, s.Rows*f), normals(3, s.Cols*f)
				want := make([]float64, s.NNZ())
				for r := range s.Rows {
					for e := s.RowPtr[r]; e < s.RowPtr[r+1]; e++ {
						for c := range f {
							want[e] += float64(a[r*f+c]) * float64(b[int(s.Col[e])*f+c])
						}
					}
				}
				dst := junk(s.NNZ())
				p.SDDMM(dst, s, a, b, f)
				within(t, name("shape ", shape, " f ", f), dst, want, 2e-5, 1e-5)
				dst = junk(s.NNZ())
				p.SDDMM(dst, tr, b, a, f)
				within(t, name("transposed shape ", shape, " f ", f), dst, want, 2e-5, 1e-5)
			}
		}
	})
}

func TestEdgeKernels(t *testing.T) {
	eachISA(t, func(t *testing.T) {
		p := NewPool(3)
		defer p.Close()
		for _, shape := range csrShapes {
			s := randomCSR(1, shape[0], shape[1])
			tr := Transpose(s)
			w, u, v := normals(2, s.NNZ()), normals(3, s.Rows), normals(4, s.Cols)
			key := rng.New(5, "edges")
			row, col, uniform := make([]float64, s.NNZ()), make([]float64, s.NNZ()), make([]float64, s.NNZ())
			rowSum, colSum := make([]float64, s.Rows), make([]float64, s.Cols)
			for r := range s.Rows {
				for e := s.RowPtr[r]; e < s.RowPtr[r+1]; e++ {
					c := s.Col[e]
					row[e], col[e] = float64(u[r]), float64(v[c])
					uniform[e] = float64(key.UniformPair(uint32(c), uint32(r)))
					rowSum[r] += float64(w[e])
					colSum[c] += float64(w[e])
				}
			}
			dst := junk(s.NNZ())
			p.EdgeGather(dst, s, u, 1, Dst)
			within(t, "EdgeGather rows", dst, row, 0, 0)
			p.EdgeGather(dst, s, v, 1, Src)
			within(t, "EdgeGather columns", dst, col, 0, 0)
			p.EdgeGather(dst, tr, v, 1, Dst)
			within(t, "EdgeGather rows of the transposed", dst, col, 0, 0)
			p.EdgeUniform(dst, s, key)
			within(t, "EdgeUniform", dst, uniform, 0, 0)
			p.EdgeUniform(dst, tr, key)
			within(t, "EdgeUniform of the transposed", dst, uniform, 0, 0)
			rows, cols := junk(s.Rows), junk(s.Cols)
			p.EdgeSum(rows, s, w, 1, Dst)
			within(t, "EdgeSum rows", rows, rowSum, 1e-5, 1e-5)
			p.EdgeSum(cols, s, w, 1, Src)
			within(t, "EdgeSum columns", cols, colSum, 1e-5, 1e-5)
			cols2 := junk(s.Cols)
			p.EdgeSum(cols2, tr, w, 1, Dst)
			sameBits(t, "EdgeSum by the transposed", cols2, cols)
		}
	})
}

func TestCSRValidate(t *testing.T) {
	good := func() *CSR { return &CSR{Rows: 2, Cols: 3, RowPtr: []int32{0, 1, 3}, Col: []int32{2, 0, 1}} }
	if err := good().Validate(); err != nil {
		t.Fatal(err)
	}
	for want, spoil := range map[string]func(*CSR){
		"negative shape":   func(s *CSR) { s.Cols = -1 },
		"row offsets for":  func(s *CSR) { s.RowPtr = s.RowPtr[:2] },
		"run from":         func(s *CSR) { s.RowPtr[2] = 2 },
		"fall from 5 to 3": func(s *CSR) { s.RowPtr[1] = 5 },
		"has column 3":     func(s *CSR) { s.Col[1] = 3 },
		"has column -1":    func(s *CSR) { s.Col[0] = -1 },
		"permutation":      func(s *CSR) { s.Perm = []int32{0} },
		"Perm[2] = 0 is":   func(s *CSR) { s.Perm = []int32{0, 1, 0} },
		"Perm[0] = 3 is":   func(s *CSR) { s.Perm = []int32{3, 1, 0} },
	} {
		s := good()
		spoil(s)
		if err := s.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one with %q", err, want)
		}
	}
}

func TestGatherScatterRows(t *testing.T) {
	eachISA(t, func(t *testing.T) {
		p := NewPool(2)
		defer p.Close()
		for _, c := range [][3]int{{0, 0, 3}, {4, 0, 3}, {1, 1, 1}, {9, 30, 0}, {9, 30, 5}, {300, 2000, 40}} {
			rows, n, cols := c[0], c[1], c[2]
			x, dy, idx := normals(1, rows*cols), normals(2, n*cols), make([]int64, n)
			key := rng.New(3, "index")
			for i := range idx {
				idx[i] = int64(key.Intn(uint64(i), rows))
			}
			gather, scatter := make([]float64, n*cols), make([]float64, rows*cols)
			for i, r := range idx {
				for l := range cols {
					gather[i*cols+l] = float64(x[int(r)*cols+l])
					scatter[int(r)*cols+l] += float64(dy[i*cols+l])
				}
			}
			dst := junk(n * cols)
			p.GatherRows(dst, x, idx, cols)
			within(t, name("gather ", c), dst, gather, 0, 0)
			dst = junk(rows * cols)
			p.ScatterAddRows(dst, dy, idx, rows, cols)
			within(t, name("scatter ", c), dst, scatter, 1e-5, 1e-5)
		}
		for _, bad := range []int64{-1, 2} {
			msg := panics(func() { p.GatherRows(make([]float32, 3), make([]float32, 6), []int64{bad}, 3) })
			if !strings.Contains(msg, "outside the 2 rows") {
				t.Errorf("gather of row %d of 2: %q", bad, msg)
			}
		}
	})
}

func panics(f func()) (msg string) {
	defer func() { msg, _ = recover().(string) }()
	f()
	return ""
}

func TestShortSlicesPanic(t *testing.T) {
	p := NewPool(2)
	defer p.Close()
	s := randomCSR(1, 5, 5)
	x := make([]float32, 10)
	for want, f := range map[string]func(){
		"MatMul: b has 10":     func() { p.MatMul(x, x, x, 2, 5, 3, false, false, Epilogue{}) },
		"MatMul: bias has 1":   func() { p.MatMul(x, x, x, 2, 2, 2, false, false, Epilogue{Bias: x[:1]}) },
		"SpMM: h has 10":       func() { p.SpMM(make([]float32, 100), s, nil, nil, x, 20, Epilogue{}) },
		"Binary: b has 1 ele":  func() { p.Binary(Add, x, x, x[:1], 2, 5, Full, RowVector) },
		"ReduceRows: dst has":  func() { p.ReduceRows(ReduceSum, x[:1], x, 2, 5) },
		"Softmax: dst has 1":   func() { p.Softmax(x[:1], x, 2, 5) },
		"Dropout: dst has 1":   func() { p.Dropout(x[:1], x, 0.5, 1) },
		"AdamStep: M has 0":    func() { p.AdamStep([]AdamParam{{W: x, G: x}}, 1, 0, 0, 0, 1) },
		"Reduce: workspace":    func() { p.PairwiseReduce(PairwiseResult{}, x, x, 2, 5, 1, nil, nil) },
		"unknown activation 9": func() { p.MatMul(x, x, x, 2, 2, 2, false, false, Epilogue{Act: 9}) },
	} {
		if msg := panics(f); !strings.Contains(msg, want) {
			t.Errorf("panic %q, want one with %q", msg, want)
		}
	}
	// The pool is usable afterwards.
	dst := make([]float32, 1)
	p.Reduce(ReduceSum, dst, []float32{1, 2})
	if dst[0] != 3 || math.IsNaN(float64(dst[0])) {
		t.Errorf("sum after panics is %g", dst[0])
	}
}
