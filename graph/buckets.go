package graph

import (
	"slices"

	"github.com/gsrc-dev/gsrc/runtime/kernels"
)

// Buckets divide rows for a search of neighbours that no machine makes alone. Each row is in those of
// the centroids that are nearest to it, several, and is compared with the rows that are in one of them
// too: the lists of Jégou, Douze and Schmid ("Product quantization for nearest neighbor search", TPAMI
// 2011), joined with themselves.
type Buckets struct {
	Centroids []float32 // [count, width] of length 1
	First     []int32   // [count+1] the first bucket of each: where a bucket would be too full, there are more
	Width     int
	Copies    int // buckets that a row is in
}

// Most rows of a bucket that is expected to hold size of them, before it is split.
const fullBucket = 4

// NewBuckets makes buckets of about size rows each for n rows, of which sampled, [m, f], are some. The
// centroids are means of the sampled rows that are nearest to each of some of these: one pass of Lloyd's
// algorithm ("Least squares quantization in PCM", 1982) by cosine similarity. The result depends on the
// order of the sampled rows.
func NewBuckets(pool *kernels.Pool, sampled []float32, m, f int, n int64, size, copies int) *Buckets {
	var d directions
	d.of(pool, sampled[:m*f], m, f)
	rows := len(d.nodes)
	count := int(min((int64(copies)*n+int64(size)-1)/int64(size), int64(rows)))
	b := &Buckets{Width: f, Copies: min(copies, count), First: make([]int32, count+1)}
	if count == 0 {
		return b
	}
	for c := range count {
		at := c * rows / count
		b.Centroids = append(b.Centroids, d.z[at*f:(at+1)*f]...)
	}
	sums := make([]float32, count*f)
	for i, c := range b.nearest(pool, d.z, rows, 1) {
		for j, x := range d.z[i*f : (i+1)*f] {
			sums[int(c)*f+j] += x
		}
	}
	for c := range count {
		if mean := sums[c*f : (c+1)*f]; normalize(mean, mean) {
			copy(b.Centroids[c*f:], mean)
		}
	}
	held := make([]int64, count)
	for _, c := range b.nearest(pool, d.z, rows, b.Copies) {
		held[c]++
	}
	for c, h := range held {
		split := int32(1)
		if expected := h * n / int64(m); expected > fullBucket*int64(size) {
			split = int32((expected + int64(size) - 1) / int64(size))
		}
		b.First[c+1] = b.First[c] + split
	}
	return b
}

// Len is the number of buckets.
func (b *Buckets) Len() int { return int(b.First[len(b.First)-1]) }

// Met returns how large a share of the k nearest other rows, of so many of the sampled ones, [m, b.Width], among
// all of these, is in a bucket with them: what would be found, or less, as rows that were not sampled are nearer.
func (b *Buckets) Met(pool *kernels.Pool, sampled []float32, m, queries, k int) float64 {
	var d directions
	d.of(pool, sampled, m, b.Width)
	n, f := len(d.nodes), b.Width
	if queries = min(queries, n); n < 2 {
		return 1
	}
	self := make([]int32, queries)
	for i := range self {
		self[i] = int32(i * n / queries)
	}
	k = min(k+1, n) // and the row itself
	rows := Buckets{Centroids: d.z[:n*f], Width: f, First: make([]int32, n+1)}
	z := gather(d.z, f, self)
	near, own := rows.nearest(pool, z, queries, k), b.nearest(pool, z, queries, b.Copies)
	others := b.nearest(pool, gather(d.z, f, near), queries*k, b.Copies)
	met, all := 0, 0
	for i, u := range near {
		if u == self[i/k] {
			continue
		}
		all++
		if slices.ContainsFunc(others[i*b.Copies:(i+1)*b.Copies], func(c int32) bool { return slices.Contains(own[i/k*b.Copies:(i/k+1)*b.Copies], c) }) {
			met++
		}
	}
	return float64(met) / float64(max(all, 1))
}

// Of returns the buckets, [n, b.Copies], that the rows of emb are in, −1 those of rows without a
// direction. draw chooses one of some buckets, for a row, where a centroid has several.
func (b *Buckets) Of(pool *kernels.Pool, emb []float32, n int, draw func(row, bucket, of int) int) []int32 {
	var d directions
	d.of(pool, emb, n, b.Width)
	of := slices.Repeat([]int32{-1}, n*b.Copies)
	near := b.nearest(pool, d.z, len(d.nodes), b.Copies)
	for i, v := range d.nodes {
		for q, c := range near[i*b.Copies : (i+1)*b.Copies] {
			first, some := b.First[c], int(b.First[c+1]-b.First[c])
			if some > 1 {
				first += int32(draw(int(v), int(first), some))
			}
			of[int(v)*b.Copies+q] = first
		}
	}
	return of
}

// nearest returns the most similar centroids of rows of length 1.
func (b *Buckets) nearest(pool *kernels.Pool, z []float32, n, most int) (near []int32) {
	const products = 1 << 20 // at a time
	count := len(b.First) - 1
	if n == 0 || most == 0 {
		return nil
	}
	step := max(16, products/count)
	s := sample{rows: slices.Repeat([]int32{-1}, min(n, step)), k: most} // none is a centroid
	for ; n > 0; n -= len(s.rows) {
		s.rows = s.rows[:min(n, len(s.rows))]
		s.z, z = z, z[len(s.rows)*b.Width:]
		s.search(pool, b.Centroids, count, b.Width)
		near = append(near, s.near...)
	}
	return near
}

// NearestTo returns the similarities, [m, k] and descending, of the k nearest of n rows to m queries, −Inf
// where there are fewer. self says which row a query is, −1 one that is none of these.
func NearestTo(pool *kernels.Pool, queries []float32, self []int32, emb []float32, n, f, k int) []float32 {
	s, m := sample{k: k}, len(self)
	var d, q directions
	d.of(pool, emb, n, f)
	q.normalise(pool, queries, m, f)
	s.z = q.z
	for _, v := range self {
		row, is := slices.BinarySearch(d.nodes, v)
		if !is {
			row = -1
		}
		s.rows = append(s.rows, int32(row))
	}
	s.search(pool, d.z, len(d.nodes), f)
	return s.best
}

// Directed tells which rows of emb, [n, f], have a direction.
func Directed(emb []float32, n, f int) []bool {
	pool := kernels.NewPool(1)
	defer pool.Close()
	var d directions
	d.normalise(pool, emb, n, f)
	return d.directed
}
