package kernels

import (
	"math"
	"testing"
)

// refReduce reduces a vector four ways.
func refReduce(x []float64) (sum, hi, lo, lse float64) {
	hi, lo = math.Inf(-1), math.Inf(1)
	for _, v := range x {
		sum += v
		hi, lo = math.Max(hi, v), math.Min(lo, v)
	}
	lse = hi
	if !math.IsInf(hi, 0) {
		s := 0.0
		for _, v := range x {
			s += math.Exp(v - hi)
		}
		lse += math.Log(s)
	}
	return sum, hi, lo, lse
}

var matrixShapes = [][2]int{{0, 0}, {0, 4}, {4, 0}, {1, 1}, {1, 17}, {17, 1}, {9, 7}, {33, 40}, {700, 65}, {3, 20000}}

func TestReductions(t *testing.T) {
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	eachISA(t, func(t *testing.T) {
		p := NewPool(3)
		defer p.Close()
		for _, s := range matrixShapes {
			rows, cols := s[0], s[1]
			for spoil := range 5 {
				x := normals(1, rows*cols)
				for i := range x {
					x[i] *= 5
				}
				if n := len(x); n > 20 {
					switch spoil {
					case 1:
						x[n/2] = nan
					case 2:
						x[n/2], x[1] = -inf, inf
					case 3:
						for i := range cols { // one row of −Inf
							x[i] = -inf
						}
					case 4:
						for i := 0; i < n; i += cols { // one column of −Inf
							x[i] = -inf
						}
					}
				}
				ref := wide(x)
				sum, hi, lo, _ := refReduce(ref)
				dst := junk(1)
				what := func(k string) string { return name(k, " ", s, " case ", spoil) }
				p.Reduce(ReduceSum, dst, x)
				within(t, what("Sum"), dst, []float64{sum}, 3e-6*float64(len(x)+1), 1e-6)
				p.Reduce(ReduceMax, dst, x)
				within(t, what("Max"), dst, []float64{hi}, 0, 0)
				p.Reduce(ReduceMin, dst, x)
				within(t, what("Min"), dst, []float64{lo}, 0, 0)

				var want [4][]float64
				for r := range rows {
					a, b, c, d := refReduce(ref[r*cols : (r+1)*cols])
					want[0], want[1], want[2], want[3] = append(want[0], a), append(want[1], b), append(want[2], c), append(want[3], d)
				}
				for k := range ReduceLSE + 1 {
					dst := junk(rows)
					p.ReduceRows(k, dst, x, rows, cols)
					within(t, what(name("rows ", k)), dst, want[k], 2e-6*float64(cols+1), 2e-6)
				}
				want = [4][]float64{}
				for c := range cols {
					col := make([]float64, rows)
					for r := range rows {
						col[r] = ref[r*cols+c]
					}
					a, b, e, d := refReduce(col)
					want[0], want[1], want[2], want[3] = append(want[0], a), append(want[1], b), append(want[2], e), append(want[3], d)
				}
				for k := range ReduceLSE + 1 {
					dst := junk(cols)
					p.ReduceCols(k, dst, x, rows, cols)
					within(t, what(name("columns ", k)), dst, want[k], 2e-6*float64(rows+1), 2e-6)
				}
			}
		}
	})
}

func TestSoftmaxFamily(t *testing.T) {
	eachISA(t, func(t *testing.T) {
		p := NewPool(2)
		defer p.Close()
		for _, s := range matrixShapes {
			rows, cols := s[0], s[1]
			n := rows * cols
			x, dy := normals(1, n), normals(2, n)
			labels := make([]int64, rows)
			soft, logs, l2, l2G, l1, ceG := make([]float64, n), make([]float64, n), make([]float64, n), make([]float64, n), make([]float64, n), make([]float64, n)
			count, loss := 0, 0.0
			const eps = 2.0 // large enough that some rows fall below
			for r := range rows {
				labels[r] = int64(r%(cols+2)) - 1
				if labels[r] >= 0 && labels[r] < int64(cols) {
					count++
				}
			}
			for r := range rows {
				row, d := wide(x[r*cols:(r+1)*cols]), wide(dy[r*cols:(r+1)*cols])
				_, _, _, z := refReduce(row)
				sq, abs, inner := 0.0, 0.0, 0.0
				for c, v := range row {
					sq, abs, inner = sq+v*v, abs+math.Abs(v), inner+v*d[c]
				}
				norm := math.Sqrt(sq)
				for c, v := range row {
					i := r*cols + c
					soft[i], logs[i] = math.Exp(v-z), v-z
					l2[i], l1[i] = v/math.Max(norm, eps), v/math.Max(abs, eps)
					l2G[i] = d[c] / eps
					if norm > eps {
						l2G[i] = (d[c] - v/norm*inner/norm) / norm
					}
					if l := labels[r]; l >= 0 && l < int64(cols) {
						ceG[i] = soft[i] * 0.7 / float64(count)
						if int64(c) == l {
							loss += z - v
							ceG[i] -= 0.7 / float64(count)
						}
					}
				}
			}
			check := func(what string, want []float64, f func(dst []float32)) {
				t.Helper()
				dst := junk(n)
				f(dst)
				within(t, name(what, " ", s), dst, want, 2e-6, 2e-5)
			}
			check("Softmax", soft, func(dst []float32) { p.Softmax(dst, x, rows, cols) })
			check("LogSoftmax", logs, func(dst []float32) { p.LogSoftmax(dst, x, rows, cols) })
			check("L2NormalizeRows", l2, func(dst []float32) { p.L2NormalizeRows(dst, x, rows, cols, eps) })
			check("L2NormalizeRowsGrad", l2G, func(dst []float32) { p.L2NormalizeRowsGrad(dst, x, dy, rows, cols, eps) })
			check("L1NormalizeRows", l1, func(dst []float32) { p.L1NormalizeRows(dst, x, rows, cols, eps) })
			check("SoftmaxCrossEntropyGrad", ceG, func(dst []float32) {
				p.SoftmaxCrossEntropyGrad(dst, x, labels, []float32{0.7}, rows, cols)
			})
			got := junk(1)
			p.SoftmaxCrossEntropy(got, x, labels, rows, cols)
			within(t, name("SoftmaxCrossEntropy ", s), got, []float64{loss / math.Max(1, float64(count))}, 1e-6, 2e-5)
		}
	})
}

// Shifts of thousands neither overflow nor cancel, and −Inf entries have no weight.
func TestLogSumExpExtremes(t *testing.T) {
	inf := float32(math.Inf(1))
	eachISA(t, func(t *testing.T) {
		p := NewPool(1)
		defer p.Close()
		x := []float32{5000, 5001, -5000, -inf, -5000, -5001, -inf, -inf}
		dst := junk(4)
		p.ReduceRows(ReduceLSE, dst, x, 4, 2)
		within(t, "rows", dst, []float64{5001 + math.Log1p(math.Exp(-1)), -5000, -5000 + math.Log1p(math.Exp(-1)), math.Inf(-1)}, 0, 1e-6)
		dst = junk(2)
		p.ReduceCols(ReduceLSE, dst, x, 4, 2)
		within(t, "columns", dst, []float64{5000, 5001}, 0, 1e-6)
	})
}
