package graph

import (
	"slices"
	"testing"

	"github.com/gsrc-dev/gsrc/runtime/kernels"
)

// Rows are in the same buckets alone and among others, for any number of threads; by the pairs that meet
// in one nearly all neighbours are found.
func TestBuckets(t *testing.T) {
	const n, f, k, size, copies = 3000, 32, 10, 256, 6
	x := clusters(n, f, 60, 0.5)
	one := kernels.NewPool(1)
	defer one.Close()
	three := kernels.NewPool(3)
	defer three.Close()
	draw := func(row, bucket, of int) int { t.Error("a bucket is full"); return 0 }
	b := NewBuckets(one, x[:1000*f], 1000, f, n, size, copies)
	if again := NewBuckets(three, x[:1000*f], 1000, f, n, size, copies); !slices.Equal(again.Centroids, b.Centroids) || !slices.Equal(again.First, b.First) {
		t.Error("another number of threads makes other buckets")
	}
	if b.Len() != (copies*n+size-1)/size {
		t.Errorf("there are %d buckets", b.Len())
	}
	of := b.Of(one, x, n, draw)
	for lo := 0; lo < n; lo += 700 {
		m := min(700, n-lo)
		if some := b.Of(three, x[lo*f:], m, draw); !slices.Equal(some, of[lo*copies:(lo+m)*copies]) {
			t.Fatalf("rows from %d on are in other buckets alone", lo)
		}
	}
	exact, sim := KNN(one, x, n, f, k)
	found, all := 0, 0
	for i := range n {
		own := of[i*copies : (i+1)*copies]
		for _, v := range exact[i*k : (i+1)*k] {
			all++
			if slices.ContainsFunc(of[int(v)*copies:(int(v)+1)*copies], func(c int32) bool { return slices.Contains(own, c) }) {
				found++
			}
		}
	}
	if recall := float64(found) / float64(all); recall < 0.95 {
		t.Errorf("recall %.3f", recall)
	} else if met := b.Met(three, x, n, n, k); met < recall-1e-3 || met > recall+1e-3 { // but for equal similarities
		t.Errorf("of all rows %.4f of the neighbours are met, by the lists %.4f", met, recall)
	}
	if met := b.Met(one, x, 1000, 300, k); met > 1 || met < 0.95 {
		t.Errorf("of a sample %.4f of the neighbours are met", met)
	}

	// In two pieces, the similarities of the nearest are those of the exact search.
	self := []int32{-1, 5, -1, 1400}
	queries := slices.Concat(x[2000*f:2001*f], x[5*f:6*f], x[1999*f:2000*f], x[1400*f:1401*f])
	first := NearestTo(three, queries, self, x[:1500*f], 1500, f, k)
	second := NearestTo(one, queries, []int32{500, -1, 499, -1}, x[1500*f:], n-1500, f, k)
	for i, v := range []int{2000, 5, 1999, 1400} {
		best := slices.Concat(first[i*k:(i+1)*k], second[i*k:(i+1)*k])
		slices.Sort(best)
		slices.Reverse(best)
		for q, s := range best[:k] {
			if d := s - sim[v*k+q]; !(d <= 1e-5 && d >= -1e-5) {
				t.Errorf("row %d has the similarities %v, the exact search %v", v, best[:k], sim[v*k:(v+1)*k])
				break
			}
		}
	}
}

// What many equal rows fill is split, and rows without a direction are in no bucket.
func TestFullBuckets(t *testing.T) {
	const n, f, size, copies = 4000, 8, 100, 3
	x := clusters(n, f, 1, 1)
	for i := range 2500 * f {
		x[i] = 1
	}
	clear(x[:f])
	pool := kernels.NewPool(1)
	defer pool.Close()
	b := NewBuckets(pool, x, n, f, n, size, copies)
	held, drawn := make([]int, b.Len()), 0
	of := b.Of(pool, x, n, func(row, bucket, of int) int { drawn++; return (row*31 + bucket) % of })
	for i, c := range of {
		if (c < 0) != (i/copies == 0) {
			t.Fatalf("row %d is in bucket %d", i/copies, c)
		}
		if c >= 0 {
			held[c]++
		}
	}
	if most := slices.Max(held); most > (fullBucket+1)*size || drawn < 2400*copies {
		t.Errorf("a bucket has %d rows; %d are in one of several", most, drawn)
	}
	if b := NewBuckets(pool, make([]float32, 3*f), 3, f, 3, size, copies); b.Len() != 0 || len(b.Of(pool, x, 2, nil)) != 0 {
		t.Error("rows without a direction make buckets")
	}
}
