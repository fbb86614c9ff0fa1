package kernels

import (
	"math"
	"slices"
	"strings"
	"testing"
)

var pairShapes = [][2]int{{0, 0}, {0, 3}, {4, 0}, {1, 1}, {1, 9}, {9, 1}, {37, 21}, {300, 65}}

// at is the element of an operand that row r and column c of the result read.
func (m BroadcastMode) at(x []float32, r, c, cols int) float64 {
	switch m {
	case Full:
		return float64(x[r*cols+c])
	case RowVector:
		return float64(x[c])
	case ColVector:
		return float64(x[r])
	}
	return float64(x[0])
}

// TestPairs compares the kernels of two broadcast operands with float64, for any
// number of threads.
func TestPairs(t *testing.T) {
	bit := func(b bool) float64 {
		if b {
			return 1
		}
		return 0
	}
	kinds := []struct {
		name string
		run  func(p *Pool, dst, a, b []float32, rows, cols int, ma, mb BroadcastMode)
		want func(a, b float64) float64
	}{
		{"greater", func(p *Pool, dst, a, b []float32, rows, cols int, ma, mb BroadcastMode) {
			p.Compare(CompareGreater, dst, a, b, rows, cols, ma, mb)
		}, func(a, b float64) float64 { return bit(a > b) }},
		{"greater or equal", func(p *Pool, dst, a, b []float32, rows, cols int, ma, mb BroadcastMode) {
			p.Compare(CompareGreaterEqual, dst, a, b, rows, cols, ma, mb)
		}, func(a, b float64) float64 { return bit(a >= b) }},
		{"less", func(p *Pool, dst, a, b []float32, rows, cols int, ma, mb BroadcastMode) {
			p.Compare(CompareLess, dst, a, b, rows, cols, ma, mb)
		}, func(a, b float64) float64 { return bit(a < b) }},
		{"logaddexp", (*Pool).LogAddExp, func(a, b float64) float64 {
			hi := math.Max(a, b)
			return hi + math.Log1p(math.Exp(-math.Abs(a-b)))
		}},
	}
	modes := []BroadcastMode{Full, RowVector, ColVector, Scalar}
	one, three := NewPool(1), NewPool(3)
	defer one.Close()
	defer three.Close()
	for _, k := range kinds {
		for _, shape := range pairShapes {
			rows, cols := shape[0], shape[1]
			for _, ma := range modes {
				for _, mb := range modes {
					a, b := normals(1, ma.size(rows, cols)), normals(2, mb.size(rows, cols))
					for i := range a { // equal elements occur
						a[i] = float32(math.Round(float64(2*a[i]))) / 2
					}
					for i := range b {
						b[i] = float32(math.Round(float64(2*b[i]))) / 2
					}
					want := make([]float64, rows*cols)
					for i := range want {
						want[i] = k.want(ma.at(a, i/cols, i%cols, cols), mb.at(b, i/cols, i%cols, cols))
					}
					dst, again := junk(rows*cols), junk(rows*cols)
					k.run(one, dst, a, b, rows, cols, ma, mb)
					k.run(three, again, a, b, rows, cols, ma, mb)
					what := name(k.name, " ", shape, " modes ", ma, " ", mb)
					within(t, what, dst, want, 1e-6, 1e-6)
					sameBits(t, what, again, dst)
				}
			}
		}
	}
}

func TestPairsAtTheEdges(t *testing.T) {
	p := NewPool(1)
	defer p.Close()
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	a := []float32{inf, -inf, -inf, nan, 1, 1000, -1000}
	b := []float32{1, -inf, 2, 1, nan, 1000, -1000}
	dst := junk(len(a))
	p.LogAddExp(dst, a, b, 1, len(a), Full, Full)
	within(t, "logaddexp", dst, []float64{math.Inf(1), math.Inf(-1), 2, math.NaN(), math.NaN(), 1000 + math.Ln2, -1000 + math.Ln2}, 1e-4, 0)
	p.Compare(CompareGreaterEqual, dst, a, b, 1, len(a), Full, Full)
	within(t, "greater or equal", dst, []float64{1, 1, 0, 0, 0, 1, 1}, 0, 0)
	p.LeakyReluGrad(dst[:4], []float32{1, -1, 0, nan}, []float32{2, 2, 2, 2}, 0.25)
	within(t, "leaky relu", dst[:4], []float64{2, 0.5, 0.5, 0.5}, 0, 0)
}

func TestMoves(t *testing.T) {
	one, three := NewPool(1), NewPool(3)
	defer one.Close()
	defer three.Close()
	for _, shape := range pairShapes {
		rows, cols := shape[0], shape[1]
		x := normals(3, rows*cols)
		for _, p := range []*Pool{one, three} {
			for _, m := range []BroadcastMode{Full, RowVector, ColVector, Scalar} {
				v := normals(4, m.size(rows, cols))
				dst, want := junk(rows*cols), make([]float64, rows*cols)
				for i := range want {
					want[i] = m.at(v, i/cols, i%cols, cols)
				}
				p.BroadcastTo(dst, v, rows, cols, m)
				within(t, name("broadcast ", shape, " mode ", m), dst, want, 0, 0)
			}
			dst, want := junk(rows*cols), make([]float64, rows*cols)
			for i := range x {
				want[i%cols*rows+i/cols] = float64(x[i])
			}
			p.Transpose(dst, x, rows, cols)
			within(t, name("transpose ", shape), dst, want, 0, 0)

			// Columns 1… of x to columns 2… of a matrix that is 3 wider.
			if width := cols - 1; width >= 0 {
				dst, want := normals(5, rows*(cols+3)), wide(normals(5, rows*(cols+3)))
				for r := range rows {
					for c := range width {
						want[r*(cols+3)+2+c] = float64(x[r*cols+1+c])
					}
				}
				p.CopyColumns(dst, cols+3, 2, x, cols, 1, rows, width)
				within(t, name("columns ", shape), dst, want, 0, 0)
			}
		}
	}
}

func TestPairDot(t *testing.T) {
	eachISA(t, func(t *testing.T) {
		p := NewPool(2)
		defer p.Close()
		for _, f := range []int{0, 1, 7, 64, 129} {
			const rows, pairs = 50, 3000
			x, y := normals(6, rows*f), normals(7, rows*f)
			left, right, want := make([]int64, pairs), make([]int64, pairs), make([]float64, pairs)
			for k := range pairs {
				left[k], right[k] = int64(k%rows), int64(k*7%rows)
				for c := range f {
					want[k] += float64(x[int(left[k])*f+c]) * float64(y[int(right[k])*f+c])
				}
			}
			dst := junk(pairs)
			p.PairDot(dst, x, y, left, right, rows, f)
			within(t, name("f ", f), dst, want, 1e-4, 1e-5)
		}
	})
}

// TestCommonNeighbors compares with the dense matrix: rows with entries at the same
// place and on the diagonal, of like and of very different lengths, and a transpose,
// whose values are permuted.
func TestCommonNeighbors(t *testing.T) {
	one, four := NewPool(1), NewPool(4)
	defer one.Close()
	defer four.Close()
	const n = 60
	s := &CSR{Rows: n, Cols: n, RowPtr: make([]int32, n+1)}
	for i := range n {
		for j := range n {
			count := 0
			switch { // 0 and 1 lead everywhere, to some nodes twice; 2 has no entries
			case i < 2:
				count = 1 + j%5/4
			case i > 2 && (i+7*j)%11 < 2:
				count = 1 + i%2
			}
			for range count {
				s.Col = append(s.Col, int32(j))
			}
		}
		s.RowPtr[i+1] = int32(len(s.Col))
	}
	v := normals(9, n)
	var left, right []int64
	for i := range n {
		for j := range n {
			left, right = append(left, int64(i)), append(right, int64(j))
		}
	}
	for _, m := range []*CSR{s, Transpose(s)} {
		for _, vals := range [][]float32{normals(8, s.NNZ()), nil} {
			a := refDense(m, vals)
			want := make([]float64, len(left))
			for k := range want {
				i, j := int(left[k]), int(right[k])
				for w := range n {
					if w != i && w != j {
						want[k] += a[i*n+w] * a[j*n+w] * float64(v[w])
					}
				}
			}
			dst, again := junk(len(left)), junk(len(left))
			one.CommonNeighbors(dst, m, vals, v, left, right)
			four.CommonNeighbors(again, m, vals, v, left, right)
			within(t, "common neighbors", dst, want, 1e-6, 1e-6)
			if !slices.Equal(dst, again) {
				t.Error("1 and 4 threads differ")
			}
		}
	}
	vals := normals(8, s.NNZ())
	dst := junk(len(left))
	if got := testing.AllocsPerRun(5, func() { four.CommonNeighbors(dst, s, vals, v, left, right) }); got > 0 {
		t.Errorf("%g allocations", got)
	}
}

// TestNeighborKernel compares with the dense matrix, on a structure with entries at the same
// place and on the diagonal.
func TestNeighborKernel(t *testing.T) {
	eachISA(t, func(t *testing.T) {
		one, four := NewPool(1), NewPool(4)
		defer one.Close()
		defer four.Close()
		const n, f, tau, most = 40, 9, 0.8, 3
		s := randomCSR(5, n, n)
		for i := range n {
			slices.Sort(s.Col[s.RowPtr[i]:s.RowPtr[i+1]])
		}
		vals, x := normals(6, s.NNZ()), normals(7, n*f)
		for i := range x {
			x[i] /= 3
		}
		var left, right []int64
		for i := range n {
			for j := range n {
				left, right = append(left, int64(i)), append(right, int64(j))
			}
		}
		for _, a := range [][]float32{nil, vals} {
			want := make([]float64, len(left))
			for k := range left {
				for _, end := range [][2]int64{{left[k], right[k]}, {right[k], left[k]}} {
					var row []int32
					for e := s.RowPtr[end[1]]; e < s.RowPtr[end[1]+1]; e++ {
						if int64(s.Col[e]) != end[1] {
							row = append(row, e)
						}
					}
					for t := range min(len(row), most) {
						e := row[t*len(row)/min(len(row), most)]
						w := int64(s.Col[e])
						if w == end[0] {
							continue
						}
						dot, weight := 0.0, 1.0
						for c := range int64(f) {
							dot += float64(x[end[0]*f+c]) * float64(x[w*f+c])
						}
						if a != nil {
							weight = float64(a[e])
						}
						want[k] += weight * math.Exp((dot-1)/tau)
					}
				}
			}
			dst, again := junk(len(left)), junk(len(left))
			one.NeighborKernel(dst, s, a, x, f, left, right, tau, most)
			four.NeighborKernel(again, s, a, x, f, left, right, tau, most)
			within(t, "neighbor kernel", dst, want, 1e-5, 1e-5)
			if !slices.Equal(dst, again) {
				t.Error("1 and 4 threads differ")
			}
			if got := testing.AllocsPerRun(5, func() { four.NeighborKernel(dst, s, a, x, f, left, right, tau, most) }); got > 0 {
				t.Errorf("%g allocations", got)
			}
		}
	})
}

// TestSparseMatrixKernels compares with the dense form, on a structure and on
// its transpose, whose values are permuted.
func TestSparseMatrixKernels(t *testing.T) {
	one, three := NewPool(1), NewPool(3)
	defer one.Close()
	defer three.Close()
	for _, shape := range csrShapes {
		s := distinct(randomCSR(8, shape[0], shape[1]))
		vals := normals(9, s.NNZ())
		for _, m := range []*CSR{s, Transpose(s)} {
			for _, v := range [][]float32{vals, nil} {
				dense := refDense(m, v)
				sparse := func(what string, run func(p *Pool, dst []float32), want []float64) {
					t.Helper()
					dst, again := junk(m.NNZ()), junk(m.NNZ())
					run(one, dst)
					run(three, again)
					what = name(what, " ", shape, " ones ", v == nil, " transposed ", m != s)
					within(t, what, dst, pick(m, want), 1e-6, 1e-5)
					sameBits(t, what, again, dst)
				}
				out := junk(m.Rows * m.Cols)
				three.SparseToDense(out, v, m)
				within(t, name("dense ", shape), out, dense, 0, 0)

				row, col, num := positives(1, m.Rows), positives(2, m.Cols), positives(3, 1)
				scaled := func(f func(r, c int) float64) []float64 {
					w := make([]float64, len(dense))
					for i, x := range dense {
						w[i] = x * f(i/m.Cols, i%m.Cols)
					}
					return w
				}
				sparse("rows", func(p *Pool, dst []float32) { p.SparseScale(dst, v, m, row, 1, 0, false) },
					scaled(func(r, _ int) float64 { return float64(row[r]) }))
				sparse("columns", func(p *Pool, dst []float32) { p.SparseScale(dst, v, m, col, 0, 1, true) },
					scaled(func(_, c int) float64 { return 1 / float64(col[c]) }))
				sparse("number", func(p *Pool, dst []float32) { p.SparseScale(dst, v, m, num, 0, 0, false) },
					scaled(func(_, _ int) float64 { return float64(num[0]) }))
				for _, eps := range []float32{1e-12, 2} {
					norms := func(f func(x float64) float64, g func(x float64) float64) []float64 {
						n := make([]float64, m.Rows)
						for i, x := range dense {
							n[i/m.Cols] += f(x)
						}
						return scaled(func(r, _ int) float64 { return 1 / math.Max(g(n[r]), float64(eps)) })
					}
					sparse("l1", func(p *Pool, dst []float32) { p.SparseL1Normalize(dst, v, m, eps) },
						norms(math.Abs, func(x float64) float64 { return x }))
					sparse("l2", func(p *Pool, dst []float32) { p.SparseL2Normalize(dst, v, m, eps) },
						norms(func(x float64) float64 { return x * x }, math.Sqrt))
				}
			}
		}
	}
}

// distinct drops repeated places.
func distinct(s *CSR) *CSR {
	d := &CSR{Rows: s.Rows, Cols: s.Cols, RowPtr: []int32{0}, Col: []int32{}}
	for r := range s.Rows {
		seen := map[int32]bool{}
		for _, c := range s.Col[s.RowPtr[r]:s.RowPtr[r+1]] {
			if !seen[c] {
				seen[c] = true
				d.Col = append(d.Col, c)
			}
		}
		d.RowPtr = append(d.RowPtr, int32(len(d.Col)))
	}
	return d
}

func refDense(s *CSR, vals []float32) []float64 {
	out := make([]float64, s.Rows*s.Cols)
	for r := range s.Rows {
		for e := s.RowPtr[r]; e < s.RowPtr[r+1]; e++ {
			v := 1.0
			if vals != nil {
				v = float64(vals[s.value(e)])
			}
			out[r*s.Cols+int(s.Col[e])] += v
		}
	}
	return out
}

// pick reads a dense matrix at the places of the values.
func pick(s *CSR, dense []float64) []float64 {
	out := make([]float64, s.NNZ())
	for r := range s.Rows {
		for e := s.RowPtr[r]; e < s.RowPtr[r+1]; e++ {
			out[s.value(e)] = dense[r*s.Cols+int(s.Col[e])]
		}
	}
	return out
}

func TestTriangular(t *testing.T) {
	eachISA(t, func(t *testing.T) {
		p := NewPool(2)
		defer p.Close()
		for _, n := range []int{0, 1, 2, 17, 64, 130} {
			x := normals(7, (n+5)*n)
			a := make([]float32, n*n)
			p.MatMul(a, x, x, n, n+5, n, true, false, Epilogue{})
			r, ws := junk(n*n), make([]float64, n*n)
			if err := p.Cholesky(r, a, n, 1e-6, ws); err != nil {
				t.Fatal(err)
			}
			rtr := make([]float64, n*n)
			for i := range n {
				for j := range n {
					if j < i && r[i*n+j] != 0 {
						t.Fatalf("n %d: element (%d, %d) below the diagonal is %v", n, i, j, r[i*n+j])
					}
					for k := range n {
						rtr[i*n+j] += float64(r[k*n+i]) * float64(r[k*n+j])
					}
				}
			}
			within(t, name("rᵀr, n ", n), a, rtr, 1e-4*float64(n+1), 1e-5)

			const cols = 70
			want := normals(8, n*cols)
			b := make([]float32, n*cols)
			p.MatMul(b, r, want, n, n, cols, false, false, Epilogue{})
			y := junk(n * cols)
			p.SolveUpper(y, r, b, n, cols)
			within(t, name("solution, n ", n), y, wide(want), 2e-2, 1e-3)
			p.SolveUpper(b, r, b, n, cols)
			sameBits(t, "in place", b, y)
		}
		// A singular matrix gets a ridge; one with a negative eigenvalue is refused.
		r, ws := junk(4), make([]float64, 4)
		if err := p.Cholesky(r, []float32{1, 1, 1, 1}, 2, 1e-6, ws); err != nil {
			t.Error(err)
		}
		within(t, "singular", r[:3], []float64{1, 1, 0}, 2e-3, 0)
		if r[3] <= 0 {
			t.Errorf("the last pivot is %v", r[3])
		}
		for _, a := range [][]float32{{1, 3, 3, 1}, {-1, 0, 0, -1}, {float32(math.NaN()), 0, 0, 1}} {
			if err := p.Cholesky(r, a, 2, 1e-6, ws); err == nil || !strings.Contains(err.Error(), "not positive definite") {
				t.Errorf("%v: %v", a, err)
			}
		}
	})
}
