package graph

import (
	"math"
	"slices"
	"sync"

	"github.com/gsrc-dev/gsrc/rng"
	"github.com/gsrc-dev/gsrc/runtime/kernels"
)

// sketch shortens rows of length 1 so that the product of two short rows, plus slack, is
// never below the similarity that a search computes for the rows.
//
// A short row has the row's coordinates p in an orthonormal basis of few columns, and the
// length ρ of what they leave out. By Cauchy and Schwarz z_i·z_j ≤ p_i·p_j + ρ_i ρ_j,
// whatever the basis. It is close where the basis spans the directions in which rows
// differ most.
type sketch struct {
	f, w  int
	basis []float32 // [f,w], the last column 0
	slack float32
}

const (
	sketchFewest = 2048 // rows; fewer are compared sooner than a basis is found
	sketchSample = 4096
	sketchStep   = 8
	sketchMost   = 96 // coordinates
)

// newSketch chooses a basis for the rows of s that there are, and with columns < 0 how many
// columns it has, by what would be spared on a sample; nil where that is too little.
func newSketch(pool *kernels.Pool, s *Near, columns int) *sketch {
	var sample []int32
	count := 0
	for _, there := range s.there {
		if there {
			count++
		}
	}
	most := columns
	if columns < 0 {
		most = min(sketchMost, s.f/2/sketchStep*sketchStep)
	}
	if most <= 0 || columns < 0 && count < sketchFewest {
		return nil
	}
	at := 0
	var z, least []float32
	for v, there := range s.there {
		if !there {
			continue
		}
		if at++; at%(1+count/sketchSample) == 0 {
			sample = append(sample, int32(v))
			z, least = append(z, s.z[v*s.f:(v+1)*s.f]...), append(least, s.bound[v].sim)
		}
	}
	if len(sample) == 0 {
		return nil
	}
	basis, off := principal(pool, z, len(sample), s.f, most)
	if columns < 0 {
		columns = spared(pool, z, least, basis, len(sample), s.f, most)
		if columns == 0 {
			return nil
		}
	}
	k := &sketch{f: s.f, w: columns + 1}
	k.basis = make([]float32, k.f*k.w)
	for c := range columns {
		for i, x := range basis[c*k.f : (c+1)*k.f] {
			k.basis[i*k.w+c] = x
		}
	}
	// Rounding of the coordinates, of their products and of those of the rows, and what the
	// basis lacks to be orthonormal; twice that.
	k.slack = float32(2 * (off + float64(math.Ldexp(float64(2*math.Sqrt(float64(k.w)))+2, -24)*float64(k.f+k.w))))
	return k
}

// principal returns an orthonormal basis [columns,f] near to that of the largest principal
// components of z [n,f], the largest first, by subspace iteration, and a bound of how far
// the eigenvalues of its products with itself are from 1. Directions that are not there are 0.
func principal(pool *kernels.Pool, z []float32, n, f, columns int) (basis []float32, off float64) {
	cov := make([]float32, f*f)
	pool.MatMul(cov, z, z, f, n, f, true, false, kernels.Epilogue{})
	basis, next := make([]float32, columns*f), make([]float32, columns*f)
	for i, s := 0, rng.New(1, "sketch"); i < len(basis); i++ {
		basis[i] = s.Uniform(uint64(i)) - 0.5
	}
	row := func(c int) []float32 { return basis[c*f : (c+1)*f] }
	for range 8 {
		pool.MatMul(next, basis, cov, columns, f, f, false, false, kernels.Epilogue{})
		basis, next = next, basis
		for c := range columns {
			before := product(row(c), row(c))
			for range 2 { // once leaves rounding
				for b := range c {
					d := float32(product(row(b), row(c)))
					for i, x := range row(b) {
						row(c)[i] -= float32(d * x)
					}
				}
			}
			scale := float32(0)
			if after := product(row(c), row(c)); after > 1e-9*before {
				scale = float32(1 / math.Sqrt(after))
			}
			for i := range row(c) {
				row(c)[i] *= scale
			}
		}
	}
	for a := range columns {
		sum := 0.0
		for b := range columns {
			d := product(row(a), row(b))
			if a == b && d > 0 {
				d--
			}
			sum += math.Abs(d)
		}
		off = max(off, sum)
	}
	return basis, off
}

// spared returns how many coordinates make a search cheapest, 0 where that is not much less
// than without. least has the least similarity that each row's list takes.
func spared(pool *kernels.Pool, z, least, basis []float32, n, f, most int) int {
	p := make([]float32, n*most)
	pool.MatMul(p, z, basis, n, f, most, false, true, kernels.Epilogue{})
	steps := most / sketchStep
	rest := make([]float32, n*steps)
	for i := range n {
		left := 1.0
		for c, x := range p[i*most : (i+1)*most] {
			left -= float64(float64(x) * float64(x))
			if c%sketchStep == sketchStep-1 {
				rest[i*steps+c/sketchStep] = float32(math.Sqrt(max(0, left)))
			}
		}
	}
	left := make([]int, steps) // pairs
	rows := 0
	for u := 0; u < n; u += max(1, n/32) {
		rows++
		for v := range n {
			sum, reach := float32(0), min(least[u], least[v])
			for c := range most {
				sum += float32(p[u*most+c] * p[v*most+c])
				if q := c / sketchStep; c%sketchStep == sketchStep-1 && sum+float32(rest[u*steps+q]*rest[v*steps+q]) >= reach {
					left[q]++
				}
			}
		}
	}
	// A pair that is left costs about as much as 32 within a tile: its rows come from memory.
	best, columns := 0.75*float64(f), 0
	for q, pairs := range left {
		c := (q + 1) * sketchStep
		if cost := float64(c+1) + float64(32*f)*float64(pairs)/float64(rows*n); cost < best {
			best, columns = cost, c
		}
	}
	return columns
}

// of writes the short rows of z [n,f] to q [n,w].
func (k *sketch) of(pool *kernels.Pool, q, z []float32, n int) {
	pool.MatMul(q, z, k.basis, n, k.f, k.w, false, false, kernels.Epilogue{})
	parallel(pool, n, 256, func(lo, hi int) {
		for i := lo; i < hi; i++ {
			z, q := z[i*k.f:(i+1)*k.f], q[i*k.w:(i+1)*k.w]
			if rest := product(z, z); rest > 0 {
				rest += float64(k.slack) - product(q, q)
				q[k.w-1] = float32(math.Sqrt(max(0, rest)))
			}
		}
	})
}

// product is the inner product of two rows.
func product(a, b []float32) (sum float64) {
	for i, x := range a {
		sum += float64(float64(x) * float64(b[i]))
	}
	return sum
}

// gather copies some rows of x, [·,w].
func gather(x []float32, w int, rows []int32) []float32 {
	out := make([]float32, 0, len(rows)*w)
	for _, v := range rows {
		out = append(out, x[int(v)*w:(int(v)+1)*w]...)
	}
	return out
}

// looker is the scratch of a part of a search.
type looker struct {
	hits     []uint64
	rows     []int32
	cols     []int32
	sim      []float32
	products kernels.Products
}

// lookers are those that nobody uses.
var lookers = sync.Pool{New: func() any { return new(looker) }}

// of sets sim to the similarities of row u with rows.
func (l *looker) of(s *Near, u int32) []float32 { return l.at(s.z, s.f, u) }

// at is of for rows z.
func (l *looker) at(z []float32, f int, u int32) []float32 {
	l.sim = slices.Grow(l.sim[:0], len(l.rows))[:len(l.rows)]
	l.products.Of(l.sim, z[int(u)*f:(int(u)+1)*f], z, l.rows)
	return l.sim
}
