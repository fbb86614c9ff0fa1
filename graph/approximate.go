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
	// Codes; what lists hold beyond k, and held before; rows of nodes; a tree with its cells, rows, centroids and products; the sample.
	wide := max(k, indexNear)
	bytes = kernels.CodeBytes(n, f) + 8*n*(wide-k) + 4*n*wide + 4*n + (4+8)*n + 4*(indexBlock*(f+indexCells)+indexCells*f) + 4*indexSample*(indexBlock+f+2*k)
	return bytes, kernels.NearestWithinScratch(indexLeaf, f).Max(kernels.MatMulScratch(indexSample, f, indexBlock, false, true)).
		Max(kernels.MatMulScratch(indexBlock, f, indexCells, false, true)).Max(kernels.Scratch{Part: n})
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
	indexHalf   = 0.4  // enough for lists to lead to more
	indexGain   = 0.02 // less, and looking at neighbours of neighbours again is not worth it
	indexSample = 512  // rows that recall is measured on
	indexRound  = 4    // trees between two measurements
	indexTrees  = 32   // at most
	indexNear   = 14   // neighbours that lists hold at least meanwhile: the fewer, the less lies around them
	indexLeaf   = 256  // most rows of a leaf
	indexCells  = 64   // most cells of a part
	indexDrawn  = 64   // rows drawn for each cell
	indexMoves  = 6    // of the centroids
	indexBlock  = 4096 // rows that are compared with a sample or with centroids at a time
)

// Approximate is [Neighbors.Exact] with an index: in time that grows little
// faster than n, and memory in proportion to n, it finds most of the neighbours.
// recall is the share of the true ones, as measured on 512 rows; the search goes
// on until that is 95 %, or, where rows are all about equally far from each other, for 32
// trees. Similarities may differ from exact ones in the last bits.
//
// Rows are divided among the nearest of up to 64 centroids, again and again, down to
// leaves of at most 256: hierarchical k-means (Muja and Lowe, "Scalable nearest neighbor
// algorithms for high dimensional data", TPAMI 2014), of rows drawn anew for each tree. In a leaf all
// pairs are compared, as matrix products. The first tree's leaves are the order in which rows lie from then on, so that
// near ones share pages of memory. After it each row is compared with its neighbours in
// the graph of s.Near ([kernels.Pool.NearestAmong]). When two in five of the neighbours are found, after that tree or
// every four, those of neighbours are looked at again and again while that finds more
// ([kernels.Pool.NearestAround]). Both read codes of 8 bits first ([kernels.Codes]), and rows where these
// leave open whether they are near enough. The draws are the same for every search.
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
	stream := rng.New(0, "neighbours")
	s.tree.grow(pool, s.z, rows, f, stream.At(0))
	s.arrange(f)
	s.codes.Set(pool, s.z, rows, f)
	s.sample.take(pool, s.z, rows, f, k)
	s.old = room(s.old, rows*wide)
	for i := range s.old {
		s.old[i] = -1
	}
	for s.trees = 0; s.trees < indexTrees && recall < indexRecall; {
		if s.trees > 0 {
			s.tree.grow(pool, s.z, rows, f, stream.At(uint64(s.trees)))
		}
		pool.NearestWithin(s.idx, s.sim, s.z, rows, f, wide, s.tree.order, s.tree.start, indexLeaf)
		s.trees++
		if s.trees == 1 && s.Near != nil {
			s.beside(pool, n, f, wide)
		} else if s.trees%indexRound != 0 {
			continue
		}
		recall = s.sample.recall(s.sim, wide)
		if recall < indexHalf && s.trees < indexTrees {
			continue
		}
		for before := -1.0; recall < indexRecall && recall >= before+indexGain; {
			s.around(pool, rows, f, wide)
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

// arrange puts rows in the order of the tree's leaves, so that those that are near lie near each other,
// on the same pages of memory.
func (s *Neighbors) arrange(f int) {
	permute(s.tree.order, func(a, b int) {
		swap(s.z[a*f:(a+1)*f], s.z[b*f:(b+1)*f])
		s.nodes[a], s.nodes[b] = s.nodes[b], s.nodes[a]
	})
}

// inOrder puts the lists of arranged rows in the order of their nodes, which are among n.
func (s *Neighbors) inOrder(n, k int) {
	order := s.tree.order[:0]
	for _, r := range s.rowOf(n) {
		if r >= 0 {
			order = append(order, r)
		}
	}
	permute(order, func(a, b int) {
		swap(s.idx[a*k:(a+1)*k], s.idx[b*k:(b+1)*k])
		swap(s.sim[a*k:(a+1)*k], s.sim[b*k:(b+1)*k])
		s.nodes[a], s.nodes[b] = s.nodes[b], s.nodes[a]
	})
}

// rowOf returns the row of each of n nodes, -1 where it has none.
func (s *Neighbors) rowOf(n int) []int32 {
	s.row = room(s.row, n)
	for v := range s.row {
		s.row[v] = -1
	}
	for i, v := range s.nodes {
		s.row[v] = int32(i)
	}
	return s.row
}

// permute has what lies at order[i] put at i, for every i. It makes order the identity.
func permute(order []int32, swap func(a, b int)) {
	for i := range order {
		for to := i; ; {
			from := int(order[to])
			order[to] = int32(to)
			if from == i {
				break
			}
			swap(to, from)
			to = from
		}
	}
}

func swap[T any](a, b []T) {
	for i := range a {
		a[i], b[i] = b[i], a[i]
	}
}

// beside looks at the neighbours in the graph that the search begins with, of n nodes.
func (s *Neighbors) beside(pool *kernels.Pool, n, f, k int) {
	in := s.Near().In
	pool.NearestAmong(s.idx, s.sim, &s.codes, k, in.RowPtr, in.Col, s.nodes, s.rowOf(n), s.tree.order)
}

// around looks at the neighbours of the neighbours that were found.
func (s *Neighbors) around(pool *kernels.Pool, rows, f, k int) {
	s.since.idx, s.since.old, s.since.k = s.idx, s.old, k
	pool.For(rows, 1024, &s.since)
	pool.NearestAround(s.idx, s.sim, &s.codes, k, s.old, s.tree.order)
}

// since brings lists of before up to date, and marks what was in them.
type since struct {
	idx, old []int32 // [n, k]
	k        int
}

// Do does so for some rows: the body of a parallel loop.
func (s *since) Do(lo, hi int) {
	for u := lo; u < hi; u++ {
		now, old := s.idx[u*s.k:(u+1)*s.k], s.old[u*s.k:(u+1)*s.k]
		unmark(old)
		for i, v := range now {
			if v >= 0 && slices.Contains(old, v) {
				now[i] = kernels.Known(v)
			}
		}
		copy(old, now)
		unmark(now)
	}
}

func unmark(list []int32) {
	for i, v := range list {
		if v < 0 {
			list[i] = kernels.Known(v)
		}
	}
}

// sample is some rows with the similarities of their true neighbours.
type sample struct {
	rows  []int32
	k     int
	best  []float32 // [rows, k] the largest products, descending
	near  []int32   // [rows, k] of which rows they are
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
	s.best, s.near = room(s.best, m*s.k), room(s.near, m*s.k)
	for i := range s.best {
		s.best[i] = float32(math.Inf(-1))
	}
	s.tile = room(s.tile, m*min(n, indexBlock))
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
		best, near, self := s.best[i*s.k:(i+1)*s.k], s.near[i*s.k:(i+1)*s.k], int(s.rows[i])-s.first
		for j, x := range s.tile[i*s.width : (i+1)*s.width] {
			at := s.k - 1
			if !(x > best[at]) || j == self {
				continue
			}
			for ; at > 0 && x > best[at-1]; at-- {
				best[at], near[at] = best[at-1], near[at-1]
			}
			best[at], near[at] = x, int32(s.first+j)
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
// has found, given the similarities that it has. Both descend; of a neighbour that is not there it is below −2,
// and it counts in neither. Equally near rows stand for each other.
func Hits(best, sim []float32) (found, all int) {
	const rounding = 1e-5
	for all < min(len(best), len(sim)) && best[all] >= -2 {
		all++
	}
	for found < all && sim[found] >= best[all-1]-rounding {
		found++
	}
	return found, all
}

// meansTree divides rows into leaves.
type meansTree struct {
	order []int32 // the rows, leaf by leaf
	start []int32 // [leaves+1] where each leaf begins

	next  []int32
	cells []uint64  // [rows] the cell of each row of a part, and the row
	count []int32   // [cells] rows of each
	means []float32 // [cells, f]
	tile  meansTile
}

// grow makes a tree of the rows of z, [rows, f].
func (t *meansTree) grow(pool *kernels.Pool, z []float32, rows, f int, s rng.Stream) {
	t.order, t.cells = room(t.order, rows), room(t.cells, rows)
	for i := range t.order {
		t.order[i] = int32(i)
	}
	t.start = append(t.start[:0], 0, int32(rows))
	for divided, parts := uint64(0), 0; parts < len(t.start); { // until none was divided
		parts = len(t.start)
		t.next = append(t.next[:0], 0)
		for i, lo := range t.start[:parts-1] {
			if hi := t.start[i+1]; hi-lo > indexLeaf {
				t.divide(pool, z, f, lo, hi, s.At(divided))
				divided++
			} else {
				t.next = append(t.next, hi)
			}
		}
		t.start, t.next = t.next, t.start
	}
}

// divide gives the rows of a part to the nearest of some centroids.
func (t *meansTree) divide(pool *kernels.Pool, z []float32, f int, lo, hi int32, s rng.Stream) {
	order, cells := t.order[lo:hi], t.cells[lo:hi]
	n := min(indexCells, (len(order)+indexLeaf-1)/indexLeaf)
	t.means, t.count = room(t.means, n*f), room(t.count, n)
	d := &t.tile
	d.z, d.f, d.n, d.x, d.product = z, f, n, room(d.x, indexBlock*f), room(d.product, indexBlock*n)
	drawn := min(len(order), n*indexDrawn)
	for i := range drawn {
		copy(d.x[i*f:(i+1)*f], z[int(order[s.Intn(uint64(i), len(order))])*f:])
	}
	copy(t.means, d.x)
	for range indexMoves {
		pool.MatMul(d.product, d.x, t.means, drawn, f, n, false, true, kernels.Epilogue{})
		clear(t.means)
		for i := range drawn {
			mean := t.means[d.nearest(i)*f:][:f]
			for c, x := range d.x[i*f : (i+1)*f] {
				mean[c] += x
			}
		}
		for c := range n {
			normalize(t.means[c*f:(c+1)*f], t.means[c*f:(c+1)*f])
		}
	}
	for first := 0; first < len(order); first += indexBlock {
		d.rows = order[first:min(first+indexBlock, len(order))]
		d.cells = nil
		pool.For(len(d.rows), 64, d)
		pool.MatMul(d.product, d.x, t.means, len(d.rows), f, n, false, true, kernels.Epilogue{})
		d.cells = cells[first:]
		pool.For(len(d.rows), 64, d)
	}
	clear(t.count)
	for _, c := range cells {
		t.count[c>>32]++
	}
	at := lo
	for c, rows := range t.count {
		t.count[c] = at - lo
		at += rows
		if rows > (hi-lo)/8*7 { // hardly told apart
			t.next = append(t.next, at-rows/2)
		}
		if rows > 0 {
			t.next = append(t.next, at)
		}
	}
	for _, c := range cells {
		to := &t.count[c>>32]
		order[*to] = int32(uint32(c))
		*to++
	}
}

// meansTile is some rows of a part as they are compared with its centroids.
type meansTile struct {
	z       []float32
	f, n    int // columns, centroids
	rows    []int32
	x       []float32 // [rows, f]
	product []float32 // [rows, n]
	cells   []uint64  // [rows]; nil while rows are gathered
}

// Do gathers rows, or chooses their cells: the body of a parallel loop.
func (d *meansTile) Do(lo, hi int) {
	for i := lo; i < hi; i++ {
		if v := d.rows[i]; d.cells == nil {
			copy(d.x[i*d.f:(i+1)*d.f], d.z[int(v)*d.f:])
		} else {
			d.cells[i] = uint64(d.nearest(i))<<32 | uint64(v)
		}
	}
}

// nearest returns the centroid that row i is nearest to, the first of such.
func (d *meansTile) nearest(i int) int { return kernels.ArgMax(d.product[i*d.n : (i+1)*d.n]) }
