package train

import (
	"math"

	"github.com/gsrc-dev/gsrc/internal/fmath"
	"github.com/gsrc-dev/gsrc/models"
	"github.com/gsrc-dev/gsrc/runtime/kernels"
)

// regression is a logistic regression on sources of evidence, as the program has it:
// sources become x = (source − mean)·scale within ±models.EvidenceRange, and the logit is
// linear·x + x·quadratic·x + bias.
type regression struct {
	mean, scale, linear []float64 // [S]
	quadratic           []float64 // [S,S], nil where there is none
	bias                float64
}

const (
	newtonSteps = 30
	rowsAtOnce  = 2048 // the bits of a regression depend on it
	// The penalties ½·ridge·|w|² of weights of standardised columns, beside the sum of the
	// losses of all rows: without products, with them, and where classes are told by features, of
	// which there may be more than training nodes.
	ridge, ridgeWithProducts, ridgeOfClasses = 1, 100, 10
)

// columnsOf returns how many weights a regression on s sources has; the bias is last.
func columnsOf(s int, products bool) int {
	if products {
		return s + s*(s+1)/2 + 1
	}
	return s + 1
}

// regressionScratch is what fitting the largest regression takes of a pool.
func regressionScratch() kernels.Scratch {
	k := columnsOf(len(models.DenseSources)+1, true)
	return kernels.MatMulScratch(k, rowsAtOnce, k, true, false)
}

// fitRegression tells edges from pairs that are none, both [S][·] by source. trust weighs
// the edges, nil with ones. each is what a pair weighs; 0: all together weigh as much as
// all edges. penalty is one of the above; ridgeWithProducts adds them.
func fitRegression(pool *kernels.Pool, edges, none [][]float32, trust []float64, each, penalty float64) *regression {
	products := penalty == ridgeWithProducts
	s, n, m := len(edges), len(edges[0]), len(none[0])
	weight := func(i int) float64 {
		if trust == nil {
			return 1
		}
		return trust[i]
	}
	total := 0.0
	for i := range n {
		total += weight(i)
	}
	if each == 0 {
		each = total / float64(m)
	}
	total += float64(each * float64(m))
	r := &regression{mean: make([]float64, s), scale: make([]float64, s), linear: make([]float64, s)}
	for c := range s {
		sum, squares := 0.0, 0.0
		add := func(v float32, w float64) {
			x := float64(w * float64(v))
			sum, squares = sum+x, squares+float64(x*float64(v))
		}
		for i, v := range edges[c] {
			add(v, weight(i))
		}
		for _, v := range none[c] {
			add(v, each)
		}
		r.mean[c] = sum / total
		if variance := squares/total - float64(r.mean[c]*r.mean[c]); variance > 1e-6*max(1, r.mean[c]*r.mean[c]) {
			r.scale[c] = 1 / math.Sqrt(variance) // else it may be rounding, which would be judged by
		}
	}
	k := columnsOf(s, products)
	// Rows of standardised sources, their products, and 1, some at a time.
	x, weighed, part := make([]float32, rowsAtOnce*k), make([]float32, rowsAtOnce*k), make([]float32, k*k)
	row := func(i int) []float32 {
		columns, x := edges, x[i%rowsAtOnce*k:][:k]
		if i >= n {
			columns, i = none, i-n
		}
		for c := range s {
			x[c] = float32(min(max((float64(columns[c][i])-r.mean[c])*r.scale[c], -models.EvidenceRange), models.EvidenceRange))
		}
		x[k-1] = 1
		if products {
			at := s
			for a := range s {
				for b := a; b < s; b++ {
					x[at] = x[a] * x[b]
					at++
				}
			}
		}
		return x
	}
	penalties := make([]float64, k)
	if products { // standardised as columns of their own
		sum, squares := make([]float64, k), make([]float64, k)
		for i := range n {
			for c, v := range row(i) {
				sum[c] += float64(v)
				squares[c] += float64(float64(v) * float64(v))
			}
		}
		for c := range k - 1 {
			mean := sum[c] / float64(n)
			penalties[c] = float64(ridgeWithProducts*max(0, squares[c]/float64(n)-float64(mean*mean))) + 1e-6
		}
	} else {
		for c := range s {
			penalties[c] = penalty
		}
	}
	penalties[k-1] = 1e-9
	w, h, grad, g := make([]float64, k), make([]float64, k*k), make([]float64, k), make([]float64, rowsAtOnce)
	// The gradient is exact; the Hessian, which only says how far to step, is of float32
	// products of some rows at a time.
	for range newtonSteps {
		clear(h)
		clear(grad)
		for lo := 0; lo < n+m; lo += rowsAtOnce {
			rows := min(rowsAtOnce, n+m-lo)
			pool.For(rows, 64, kernels.BodyFunc(func(first, end int) {
				for i := lo + first; i < lo+end; i++ {
					x, to, y, of := row(i), weighed[(i-lo)*k:][:k], 0.0, each
					if i < n {
						y, of = 1, weight(i)
					}
					logit := 0.0
					for c, v := range x {
						logit += float64(w[c] * float64(v))
					}
					p := 1 / (1 + fmath.Exp(-logit))
					g[i-lo] = of * (p - y)
					curve := float32(of * max(p*(1-p), 1e-10))
					for c, v := range x {
						to[c] = curve * v
					}
				}
			}))
			// Each column sums the rows in their order, whatever the threads.
			pool.For(k, 8, kernels.BodyFunc(func(first, end int) {
				for i := range rows {
					for c, v := range x[i*k:][first:end] {
						grad[first+c] += float64(g[i] * float64(v))
					}
				}
			}))
			pool.MatMul(part, weighed[:rows*k], x[:rows*k], k, rows, k, true, false, kernels.Epilogue{})
			for i, v := range part {
				h[i] += float64(v)
			}
		}
		for c := range grad {
			grad[c] += float64(penalties[c] * w[c])
			// More than rounding can take from it, so that it stays positive definite.
			h[c*k+c] += float64(1e-4*h[c*k+c]) + penalties[c]
		}
		solve(h, grad, k)
		step := 0.0
		for c, v := range grad {
			w[c] -= v
			step = max(step, math.Abs(v))
		}
		if step < 1e-6 {
			break
		}
	}
	copy(r.linear, w[:s])
	r.bias = w[k-1]
	if products {
		r.quadratic = make([]float64, s*s)
		at := s
		for a := range s {
			for b := a; b < s; b++ {
				r.quadratic[a*s+b] = w[at]
				at++
			}
		}
	}
	return r
}

// solve solves h·x = g for a positive definite h [k,k], whose lower triangle it overwrites
// with its Cholesky factor, in place of g.
func solve(h, g []float64, k int) {
	for i := range k {
		for j := range i + 1 {
			sum := h[i*k+j]
			for l := range j {
				sum -= float64(h[i*k+l] * h[j*k+l])
			}
			if i == j {
				h[i*k+i] = math.Sqrt(max(sum, 1e-300))
			} else {
				h[i*k+j] = sum / h[j*k+j]
			}
		}
	}
	for i := range k {
		for l := range i {
			g[i] -= float64(h[i*k+l] * g[l])
		}
		g[i] /= h[i*k+i]
	}
	for i := k - 1; i >= 0; i-- {
		for l := i + 1; l < k; l++ {
			g[i] -= float64(h[l*k+i] * g[l])
		}
		g[i] /= h[i*k+i]
	}
}

// logits returns those of rows, [S][·] by source.
func (r *regression) logits(columns [][]float32) []float64 {
	s := len(columns)
	out, x := make([]float64, len(columns[0])), make([]float64, s)
	for i := range out {
		for c := range s {
			x[c] = min(max((float64(columns[c][i])-r.mean[c])*r.scale[c], -models.EvidenceRange), models.EvidenceRange)
		}
		out[i] = r.bias
		for a, xa := range x {
			out[i] += float64(r.linear[a] * xa)
			if r.quadratic != nil {
				for b := a; b < s; b++ {
					out[i] += float64(r.quadratic[a*s+b] * float64(xa*x[b]))
				}
			}
		}
	}
	return out
}

// stretch makes every logit x slope·x + shift.
func (r *regression) stretch(slope, shift float64) {
	for _, w := range [][]float64{r.linear, r.quadratic} {
		for i := range w {
			w[i] *= slope
		}
	}
	r.bias = float64(slope*r.bias) + shift
}
