package graph

import (
	"fmt"
	"math"
	"slices"

	"github.com/gsrc-dev/gsrc/rng"
	"github.com/gsrc-dev/gsrc/runtime/kernels"
)

// Index says how neighbours are searched.
type Index string

const (
	IndexExact       Index = "exact"       // [Neighbors.Exact]
	IndexApproximate Index = "approximate" // [Neighbors.Approximate]
	// IndexAuto is approximate above [ApproximateAbove] nodes, where a device searches
	// above [DeviceApproximateAbove].
	IndexAuto Index = "auto"
)

// ApproximateAbove is the number of nodes above which [IndexAuto] accepts that
// neighbours are missed: an exact search of as many rows of 128 columns makes
// 5·10¹² floating-point operations, 40 to 50 seconds on two cores, and the
// fourfold for twice the nodes.
const ApproximateAbove = 200_000

// DeviceApproximateAbove is [ApproximateAbove] where a device that is made for products
// of matrices searches: 2.6·10¹⁴ operations at 128 columns.
const DeviceApproximateAbove = 1_000_000

// ExactOnDevice reports whether a device that can search n rows exactly is to do so, in
// place of a search on the host.
func (by Index) ExactOnDevice(n int) bool {
	return by == IndexExact || by == IndexAuto && n <= DeviceApproximateAbove
}

// Same reports whether two ways search n rows alike on the host.
func (by Index) Same(other Index, n int) bool { return by.approximate(n) == other.approximate(n) }

// approximate reports whether n rows are searched approximately.
func (by Index) approximate(n int) bool {
	return by == IndexApproximate || by == IndexAuto && n > ApproximateAbove
}

// SearchScratch returns what a search of [n, f] rows for k neighbours takes
// beside rows and result: bytes of its own, and of a pool.
func SearchScratch(n, f, k int, by Index) (bytes int, pool kernels.Scratch) {
	if !by.approximate(n) || n <= indexLeaf {
		return 0, kernels.NearestScratch(n, f, k)
	}
	pieces := n/indexRun + 2*n/indexLeaf + 1
	// What lists hold beyond k; those of before, and of rows in whose lists each is; a tree with its keys,
	// products and normals; the sample.
	wide := max(k, indexNear)
	bytes = 8*n*(wide-k) + 4*n*(wide+indexBack) + (4+8+4)*n + 4*pieces*f + 4*indexSample*(indexBlock+f+k)
	return bytes, kernels.NearestWithinScratch(indexLeaf, f).Max(kernels.MatMulScratch(indexSample, f, indexBlock, false, true)).Max(kernels.Scratch{Part: n})
}

// Search finds neighbours by the given index; see [Neighbors.Exact] and
// [Neighbors.Approximate]. recall is 1 where the search was exact.
func (s *Neighbors) Search(pool *kernels.Pool, emb []float32, n, f, k int, by Index) (idx []int32, sim []float32, recall float64) {
	if by.approximate(n) {
		return s.Approximate(pool, emb, n, f, k)
	}
	idx, sim = s.Exact(pool, emb, n, f, k)
	return idx, sim, 1
}

// Sizes of the approximate index. The result depends on them.
const (
	indexRecall = 0.95 // of a sample, enough to stop at
	indexGain   = 0.01 // less, and looking at neighbours of neighbours again is not worth it
	indexSample = 128  // rows that recall is measured on
	indexRound  = 4    // trees between two measurements
	indexTrees  = 32   // at most
	indexNear   = 10   // neighbours that lists hold at least meanwhile: the fewer, the less lies around them
	indexBack   = 4    // rows in whose lists a row is, at most, that count as its neighbours
	indexLeaf   = 1024 // most rows of a leaf
	indexRun    = 512  // most rows that are projected as one piece of work
	indexBlock  = 4096 // rows that a sample is compared with at a time
)

// Approximate is [Neighbors.Exact] with an index: in time that grows little
// faster than n, and memory in proportion to n, it finds most of the neighbours.
// recall is the share of the true ones, as measured on 128 rows; the search goes
// on until that is 95 %, or, where rows are all about equally far from each other, for 32
// trees. Similarities may differ from exact ones in the last bits.
//
// Rows are halved again and again by their product with the difference of two of
// them, drawn at random, down to leaves of at most 1024: a random projection tree
// (Dasgupta and Freund, "Random projection trees and low dimensional manifolds",
// STOC 2008). In a leaf all pairs are compared, as matrix products. After the first
// four trees the neighbours of neighbours are looked at, and after eight, sixteen and the
// last one again and again while that finds more, those in whose lists a row is among them
// ([kernels.Pool.NearestAround]). The draws are the same for every search.
func (s *Neighbors) Approximate(pool *kernels.Pool, emb []float32, n, f, k int) (idx []int32, sim []float32, recall float64) {
	if len(emb) < n*f {
		panic(fmt.Sprintf("graph: approximate neighbours: emb has %d elements, its shape [%d,%d] needs %d", len(emb), n, f, n*f))
	}
	if n <= indexLeaf || k <= 0 {
		idx, sim = s.Exact(pool, emb, n, f, k)
		return idx, sim, 1
	}
	if pool == nil {
		pool = kernels.NewPool(1)
		defer pool.Close()
	}
	s.directions.of(pool, emb, n, f)
	wide := max(k, indexNear)
	s.idx, s.sim = room(s.idx, n*wide), room(s.sim, n*wide)
	for i := range s.idx {
		s.idx[i], s.sim[i] = -1, float32(math.Inf(-1))
	}
	rows := len(s.nodes)
	if rows <= indexLeaf {
		s.idx, s.sim = s.idx[:n*k], s.sim[:n*k]
		pool.Nearest(s.idx, s.sim, s.z, rows, f, k)
		s.number(n, k)
		return s.idx, s.sim, 1
	}
	s.sample.take(pool, s.z, rows, f, k)
	stream := rng.New(0, "neighbours")
	for t, again := 0, 2*indexRound; t < indexTrees && recall < indexRecall; {
		s.tree.grow(pool, s.z, rows, f, stream.At(uint64(t)))
		pool.NearestWithin(s.idx, s.sim, s.z, rows, f, wide, s.tree.order, s.tree.start, indexLeaf)
		if t++; t%indexRound != 0 {
			continue
		}
		if t == indexRound {
			s.around(pool, rows, f, wide, 0)
		}
		recall = s.sample.recall(s.sim, wide)
		if t < again {
			continue
		}
		again *= 2
		for before := -1.0; recall < indexRecall && recall >= before+indexGain; {
			s.around(pool, rows, f, wide, indexBack)
			before, recall = recall, s.sample.recall(s.sim, wide)
		}
	}
	for u := 1; u < rows; u++ {
		copy(s.idx[u*k:(u+1)*k], s.idx[u*wide:])
		copy(s.sim[u*k:(u+1)*k], s.sim[u*wide:])
	}
	s.idx, s.sim = s.idx[:n*k], s.sim[:n*k]
	s.number(n, k)
	return s.idx, s.sim, recall
}

// around looks at the neighbours of the neighbours that were found, and of so many of those rows in whose
// lists a row is.
func (s *Neighbors) around(pool *kernels.Pool, rows, f, k, back int) {
	s.old, s.back = append(s.old[:0], s.idx[:rows*k]...), room(s.back, rows*back)
	for i := range s.back {
		s.back[i] = -1
	}
	for q := range k * min(back, 1) { // the nearest first
		for u := range rows {
			if v := int(s.old[u*k+q]); v >= 0 {
				list := s.back[v*back:][:back]
				if i := slices.Index(list, -1); i >= 0 {
					list[i] = int32(u)
				}
			}
		}
	}
	pool.NearestAround(s.idx, s.sim, s.z, rows, f, k, s.old, s.back, s.tree.order)
}

// sample is some rows with the similarities of their true neighbours.
type sample struct {
	rows  []int32
	k     int
	best  []float32 // [rows, k] the largest products, descending
	z     []float32 // [rows, f]
	tile  []float32 // [rows, indexBlock]
	first int       // row that the tile begins with
	width int       // rows of the tile
}

// take chooses the rows and searches all others.
func (s *sample) take(pool *kernels.Pool, z []float32, n, f, k int) {
	m := min(n, indexSample)
	s.rows, s.z, s.k = room(s.rows, m), s.z[:0], k
	for i := range s.rows {
		v := i * n / m
		s.rows[i] = int32(v)
		s.z = append(s.z, z[v*f:(v+1)*f]...)
	}
	s.search(pool, z, n, f)
}

// search finds the largest products of the sample's rows with those of z.
func (s *sample) search(pool *kernels.Pool, z []float32, n, f int) {
	m := len(s.rows)
	s.best = room(s.best, m*s.k)
	for i := range s.best {
		s.best[i] = float32(math.Inf(-1))
	}
	s.tile = room(s.tile, m*indexBlock)
	for s.first = 0; s.first < n; s.first += indexBlock {
		s.width = min(indexBlock, n-s.first)
		pool.MatMul(s.tile, s.z, z[s.first*f:], m, f, s.width, false, true, kernels.Epilogue{})
		pool.For(m, 4, s)
	}
}

// Do looks through the tile for some of the sampled rows: the body of a parallel
// loop.
func (s *sample) Do(lo, hi int) {
	for i := lo; i < hi; i++ {
		best, self := s.best[i*s.k:(i+1)*s.k], int(s.rows[i])-s.first
		for j, x := range s.tile[i*s.width : (i+1)*s.width] {
			at := s.k - 1
			if !(x > best[at]) || j == self {
				continue
			}
			for ; at > 0 && x > best[at-1]; at-- {
				best[at] = best[at-1]
			}
			best[at] = x
		}
	}
}

// recall returns the share of the true neighbours among those found, at the
// given similarities, of which a row has each. Equally near rows stand for each other.
func (s *sample) recall(sim []float32, each int) float64 {
	found, all := 0, 0
	for i, v := range s.rows {
		f, a := Hits(s.best[i*s.k:(i+1)*s.k], sim[int(v)*each:][:s.k])
		found, all = found+f, all+a
	}
	return float64(found) / float64(max(all, 1))
}

// Hits counts the true neighbours of a row, given their similarities, and those of them that a search
// has found, given the similarities that it has. Both descend; of a neighbour that is not there it is below −2.
// Equally near rows stand for each other.
func Hits(best, sim []float32) (found, all int) {
	const rounding = 1e-5
	least := best[len(best)-1] - rounding
	for q, x := range sim {
		if best[q] < -2 { // there are fewer others
			break
		}
		all++
		if x >= least {
			found++
		}
	}
	return found, all
}

// projectionTree splits rows into leaves.
type projectionTree struct {
	order []int32 // the rows, leaf by leaf
	start []int32 // [leaves+1] where each leaf begins

	next   []int32
	keys   []uint64 // [rows] a row's product, in an order of integers, and the row
	pieces kernels.CSR
	normal []float32 // [pieces, f]
	at     []float32 // [rows] products
}

// grow makes a tree of the rows of z, [rows, f].
func (t *projectionTree) grow(pool *kernels.Pool, z []float32, rows, f int, s rng.Stream) {
	t.order, t.keys, t.at = room(t.order, rows), room(t.keys, rows), room(t.at, rows)
	for i := range t.order {
		t.order[i] = int32(i)
	}
	t.start = append(t.start[:0], 0, int32(rows))
	for level := uint64(0); int(t.start[1]-t.start[0]) > indexLeaf; level++ { // the first is the largest
		t.project(pool, z, rows, f, s.At(level))
		t.next = t.next[:0]
		for i, lo := range t.start[:len(t.start)-1] {
			hi := t.start[i+1]
			t.next = append(t.next, lo, lo+(hi-lo+1)/2)
		}
		t.next = append(t.next, int32(rows))
		pool.For(len(t.start)-1, 1, t)
		t.start, t.next = t.next, t.start
		for i, key := range t.keys {
			t.order[i] = int32(uint32(key))
		}
	}
}

// project computes the products of every part's rows with its normal.
func (t *projectionTree) project(pool *kernels.Pool, z []float32, rows, f int, s rng.Stream) {
	p := &t.pieces
	p.RowPtr, t.normal = append(p.RowPtr[:0], 0), t.normal[:0]
	for i, lo := range t.start[:len(t.start)-1] {
		hi := t.start[i+1]
		size := int(hi - lo)
		a := s.Intn(uint64(2*i), size)
		b := (a + 1 + s.Intn(uint64(2*i+1), size-1)) % size
		from, to := z[int(t.order[int(lo)+a])*f:][:f], z[int(t.order[int(lo)+b])*f:][:f]
		first := len(t.normal)
		for c, x := range from {
			t.normal = append(t.normal, x-to[c])
		}
		for at := lo; at < hi; at += indexRun {
			p.RowPtr = append(p.RowPtr, min(at+indexRun, hi))
			if at > lo {
				t.normal = append(t.normal, t.normal[first:first+f]...)
			}
		}
	}
	p.Rows, p.Cols, p.Col = len(p.RowPtr)-1, rows, t.order
	pool.SDDMM(t.at, p, t.normal, z, f)
	for i, v := range t.order {
		bits := math.Float32bits(t.at[i])
		if bits>>31 != 0 {
			bits = ^bits
		} else {
			bits |= 1 << 31
		}
		t.keys[i] = uint64(bits)<<32 | uint64(v)
	}
}

// Do halves parts by their keys: the body of a parallel loop.
func (t *projectionTree) Do(lo, hi int) {
	for i := lo; i < hi; i++ {
		first, mid, end := t.next[2*i], t.next[2*i+1], t.start[i+1]
		nth(t.keys[first:end], int(mid-first))
	}
}

// nth puts the n smallest of x, which are all different, before the others
// (Hoare's "Find", CACM 1961).
func nth(x []uint64, n int) {
	for len(x) > 1 && n > 0 && n < len(x) {
		a, b, c := x[0], x[len(x)/2], x[len(x)-1]
		pivot := max(min(a, b), min(max(a, b), c)) // the median
		i, j := 0, len(x)-1
		for i <= j {
			for x[i] < pivot {
				i++
			}
			for x[j] > pivot {
				j--
			}
			if i <= j {
				x[i], x[j] = x[j], x[i]
				i++
				j--
			}
		}
		switch {
		case n <= j:
			x = x[:j+1]
		case n >= i:
			x, n = x[i:], n-i
		default:
			return
		}
	}
}
