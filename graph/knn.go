package graph

import (
	"fmt"
	"math"
	"slices"

	"github.com/gsrc-dev/gsrc/runtime/kernels"
)

// KNN finds the k nearest neighbours of every node by cosine similarity of the
// rows of emb, [n, f] row-major, exactly. It returns [n, k] node numbers and
// similarities, the nearest first; of equally near nodes the one with the lower
// number comes first. A node is not its own neighbour.
//
// Rows that have no direction (all zeros, or with a value that is not finite)
// have no neighbours and are nobody's. Where a node has fewer than k, idx is -1
// and sim 0. Similarities are as they were computed, so that lists of parts of the
// rows can be joined by them: rounding may take one beyond 1. KNN panics if emb is shorter than n·f.
//
// The n×n similarities are never stored: see [kernels.Pool.Nearest]. A nil pool
// means one thread. The result does not depend on the number of threads.
func KNN(pool *kernels.Pool, emb []float32, n, f, k int) (idx []int32, sim []float32) {
	return new(Neighbors).Exact(pool, emb, n, f, k)
}

// Neighbors searches for nearest neighbours again and again in memory of its
// own, which holds the result too. The zero value is ready for use.
type Neighbors struct {
	// Near returns a graph of all rows, in which neighbours are often near, for an approximate search to
	// begin with; nil where there is none.
	Near func() *Structure

	idx []int32
	sim []float32
	directions
	tree   meansTree
	trees  int // that the last search grew
	codes  kernels.Codes
	row    []int32 // of each node
	sample sample
	old    []int32
	since  since
	rounds []int32 // [n, k] of Within: similarity of each, in steps

	rows, columns kernels.CSR // of z, where few of its entries are not 0
	values        []float32
}

// Exact is [KNN]. The result is valid until the next search.
func (s *Neighbors) Exact(pool *kernels.Pool, emb []float32, n, f, k int) (idx []int32, sim []float32) {
	if len(emb) < n*f {
		panic(fmt.Sprintf("graph: KNN: emb has %d elements, its shape [%d,%d] needs %d", len(emb), n, f, n*f))
	}
	if n <= 0 || k <= 0 {
		return []int32{}, []float32{}
	}
	if pool == nil {
		pool = kernels.NewPool(1)
		defer pool.Close()
	}
	s.directions.of(pool, emb, n, f)
	s.idx, s.sim = room(s.idx, n*k), room(s.sim, n*k)
	if s.sparse(f) {
		pool.NearestSparse(s.idx, s.sim, &s.rows, &s.columns, s.values, k)
	} else {
		pool.Nearest(s.idx, s.sim, s.z, len(s.nodes), f, k)
	}
	s.number(n, k)
	return s.idx, s.sim
}

// sparse reports whether the search is faster by the entries of z that are not 0, of which it makes
// rows and columns.
func (s *Neighbors) sparse(f int) bool {
	const first, share = 64, 32 // rows that are looked at before it is given up, and how many entries there must be for each that is not 0
	n := len(s.nodes)
	r := &s.rows
	r.Rows, r.Cols, r.RowPtr, r.Col, s.values = n, f, append(r.RowPtr[:0], 0), r.Col[:0], s.values[:0]
	for i := range n {
		for c, v := range s.z[i*f : (i+1)*f] {
			if v != 0 {
				r.Col, s.values = append(r.Col, int32(c)), append(s.values, v)
			}
		}
		r.RowPtr = append(r.RowPtr, int32(len(r.Col)))
		if i+1 >= first && share*len(r.Col) > (i+1)*f {
			return false
		}
	}
	if share*len(r.Col) > n*f {
		return false
	}
	kernels.TransposeTo(&s.columns, r)
	return kernels.SparseNearestPays(r, &s.columns)
}

// number turns the neighbours of rows, which the first len(nodes) of [n, k] idx
// and sim hold, into those of nodes.
func (s *Neighbors) number(n, k int) {
	rows := len(s.nodes)
	for i, j := range s.idx[:rows*k] {
		if j < 0 {
			s.sim[i] = 0
			continue
		}
		s.idx[i] = s.nodes[j]
	}
	if !slices.IsSorted(s.nodes) {
		s.inOrder(n, k)
	}
	// From the last on: the row of a node lies at or before the node's place.
	for v, row := n-1, rows-1; row < v; v-- {
		idx, sim := s.idx[v*k:(v+1)*k], s.sim[v*k:(v+1)*k]
		if row >= 0 && int(s.nodes[row]) == v {
			copy(idx, s.idx[row*k:(row+1)*k])
			copy(sim, s.sim[row*k:(row+1)*k])
			row--
			continue
		}
		for i := range idx {
			idx[i], sim[i] = -1, 0
		}
	}
}

// directions are the rows of a matrix that have a direction.
type directions struct {
	z        []float32 // [len(nodes), f] rows of length 1
	nodes    []int32   // the number that each had
	emb      []float32
	f        int
	directed []bool
}

// normalise makes z all n rows of emb, those without a direction zero.
func (d *directions) normalise(pool *kernels.Pool, emb []float32, n, f int) {
	d.z, d.directed = room(d.z, n*f), room(d.directed, n)
	d.emb, d.f = emb, f
	pool.For(n, 256, d)
	d.emb = nil
}

func (d *directions) of(pool *kernels.Pool, emb []float32, n, f int) {
	d.normalise(pool, emb, n, f)
	d.nodes = room(d.nodes, n)[:0]
	for i, ok := range d.directed {
		if !ok {
			continue
		}
		if at := len(d.nodes); at < i {
			copy(d.z[at*f:(at+1)*f], d.z[i*f:(i+1)*f])
		}
		d.nodes = append(d.nodes, int32(i))
	}
	d.z = d.z[:len(d.nodes)*f]
}

// Do normalises rows: the body of a parallel loop.
func (d *directions) Do(lo, hi int) {
	for i := lo; i < hi; i++ {
		d.directed[i] = normalize(d.z[i*d.f:(i+1)*d.f], d.emb[i*d.f:(i+1)*d.f])
	}
}

// room returns x with n elements, in its own memory if that suffices; what they
// hold is unspecified.
func room[T any](x []T, n int) []T {
	if cap(x) < n {
		return make([]T, n)
	}
	return x[:n]
}

// normalize writes x divided by its L2 norm to dst, or zeros if x has no
// direction, and reports whether it has one. The norm is computed in float64,
// so that it neither over- nor underflows.
func normalize(dst, x []float32) bool {
	sum := 0.0
	for _, v := range x {
		sum += float64(float64(v) * float64(v))
	}
	if !(sum > 0) || math.IsInf(sum, 0) {
		clear(dst)
		return false
	}
	scale := 1 / math.Sqrt(sum)
	for i, v := range x {
		dst[i] = float32(float64(v) * scale)
	}
	return true
}
