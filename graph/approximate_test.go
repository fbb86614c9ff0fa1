package graph

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/gsrc-dev/gsrc/rng"
	"github.com/gsrc-dev/gsrc/runtime/kernels"
)

// clusters draws n rows around as many centres as asked for, whose coordinates
// have variance 1; those of the rows around them have variance spread².
func clusters(n, f, count int, spread float64) []float32 {
	x := make([]float32, n*f)
	s, centre, of := rng.New(1, "rows"), rng.New(1, "centres"), rng.New(1, "cluster")
	for i := range n {
		c := of.Intn(uint64(i), count)
		for j := range f {
			x[i*f+j] = float32(centre.Normal(uint64(c*f+j)) + spread*s.Normal(uint64(i*f+j)))
		}
	}
	return x
}

// recallOf is the share of exact neighbours that were found.
func recallOf(found, exact []int32, k int) float64 {
	hits, all := 0, 0
	for i := range len(exact) / k {
		for _, v := range exact[i*k : (i+1)*k] {
			if v >= 0 {
				all++
				if slices.Contains(found[i*k:(i+1)*k], v) {
					hits++
				}
			}
		}
	}
	return float64(hits) / float64(all)
}

// On clusters, tight and overlapping, at 128 columns, at least 90 of 100 of the
// 20 nearest neighbours are found, the measured recall is that of all rows within
// 0.03, and the result is the same for any number of threads.
func TestApproximate(t *testing.T) {
	if testing.Short() {
		t.Skip("searches 8000 rows many times")
	}
	const n, f, k = 8000, 128, 20
	pool := kernels.NewPool(0)
	defer pool.Close()
	for _, c := range []struct {
		count  int
		spread float64
	}{{20, 0.3}, {200, 0.3}, {200, 1}} {
		x := clusters(n, f, c.count, c.spread)
		exact, exactSim := KNN(pool, x, n, f, k)
		var s Neighbors
		idx, sim, measured := s.Approximate(pool, x, n, f, k)
		recall := recallOf(idx, exact, k)
		t.Logf("%d clusters of spread %v: recall %.4f, measured %.4f", c.count, c.spread, recall, measured)
		if recall < 0.9 || math.Abs(recall-measured) > 0.03 {
			t.Errorf("%d clusters of spread %v: recall %.4f, measured %.4f", c.count, c.spread, recall, measured)
		}
		for i := range sim {
			if i%k > 0 && sim[i] > sim[i-1] || sim[i] > exactSim[i]+1e-5 {
				t.Fatalf("node %d: similarities %v are out of order or beyond the exact ones", i/k, sim[i/k*k:(i/k+1)*k])
			}
		}
		for i := range n {
			row := slices.Clone(idx[i*k : (i+1)*k])
			slices.Sort(row)
			if len(slices.Compact(row)) < k || slices.Contains(row, int32(i)) {
				t.Fatalf("node %d has neighbours %v", i, idx[i*k:(i+1)*k])
			}
		}
		other := kernels.NewPool(3)
		again, againSim, _ := new(Neighbors).Approximate(other, x, n, f, k)
		other.Close()
		if !slices.Equal(again, idx) || !slices.Equal(againSim, sim) {
			t.Error("another number of threads gives other neighbours")
		}
	}
}

// Rows without a direction, equal rows, and fewer rows than neighbours.
func TestApproximateOddRows(t *testing.T) {
	const n, f, k = 3000, 4, 5
	x := make([]float32, n*f) // equal rows, and none at all below
	for i := range 2500 * f {
		x[i] = 1
	}
	var s Neighbors
	idx, sim, recall := s.Approximate(nil, x, n, f, k)
	if recall != 1 {
		t.Errorf("recall of equal rows is %v", recall)
	}
	for i := range n {
		for q := range k {
			j, v := idx[i*k+q], sim[i*k+q]
			if i < 2500 != (j >= 0) || int(j) == i || i < 2500 && (j >= 2500 || math.Abs(float64(v)-1) > 1e-6) {
				t.Fatalf("node %d has neighbours %v at %v", i, idx[i*k:(i+1)*k], sim[i*k:(i+1)*k])
			}
		}
	}
	clear(x[3*f:])
	idx, _, recall = s.Approximate(nil, x, n, f, k)
	if want := []int32{1, 2, -1, -1, -1}; recall != 1 || !slices.Equal(idx[:k], want) || idx[3*k] != -1 {
		t.Errorf("three rows: %v, want %v", idx[:k], want)
	}
	if idx, _, _ := s.Approximate(nil, nil, 0, f, k); len(idx) != 0 {
		t.Error("no rows have neighbours")
	}
}

func TestApproximateAllocatesNothing(t *testing.T) {
	const n, f, k = 2500, 8, 4
	pool := kernels.NewPool(1)
	defer pool.Close()
	x := clusters(n, f, 10, 0.3)
	var s Neighbors
	s.Approximate(pool, x, n, f, k)
	if allocs := testing.AllocsPerRun(3, func() { s.Approximate(pool, x, n, f, k) }); allocs != 0 {
		t.Errorf("a search in used memory allocates %v times", allocs)
	}
}

func TestSearch(t *testing.T) {
	const n, f, k = 3000, 32, 20
	x := clusters(n, f, 1, 1) // no clusters: hard to search
	exact, _ := KNN(nil, x, n, f, k)
	for _, by := range []Index{IndexAuto, IndexExact, IndexApproximate} {
		var s Neighbors
		idx, _, recall := s.Search(nil, x, n, f, k, by)
		if isExact := recall == 1 && slices.Equal(idx, exact); isExact != (by != IndexApproximate) {
			t.Errorf("%s: recall %v", by, recall)
		}
	}
}

func TestNth(t *testing.T) {
	s := rng.New(3, "nth")
	for size := range 40 {
		for n := range size + 1 {
			x := make([]uint64, size)
			for i, v := range s.At(uint64(size*64 + n)).Perm(size) {
				x[i] = uint64(v)
			}
			nth(x, n)
			for i, v := range x {
				if (i < n) != (v < uint64(n)) {
					t.Fatalf("the %d smallest of %d: %v", n, size, x)
				}
			}
		}
	}
}

// BenchmarkApproximate reports the measured recall and, for fewer nodes, how much
// faster than the exact search it is.
func BenchmarkApproximate(b *testing.B) {
	const f, k = 128, 20
	pool := kernels.NewPool(0)
	defer pool.Close()
	for _, n := range []int{25_000, 50_000, 100_000, 200_000} {
		b.Run(fmt.Sprint("n=", n), func(b *testing.B) {
			x := clusters(n, f, n/100, 0.5)
			var s Neighbors
			exact, search, recall := math.Inf(1), math.Inf(1), 0.0
			for b.Loop() {
				if n <= 50_000 {
					start := time.Now()
					s.Exact(pool, x, n, f, k)
					exact = min(exact, time.Since(start).Seconds())
				}
				start := time.Now()
				_, _, recall = s.Approximate(pool, x, n, f, k)
				search = min(search, time.Since(start).Seconds())
			}
			b.ReportMetric(search*1e3, "ms/search")
			if n <= 50_000 {
				b.ReportMetric(exact/search, "exact/search")
			}
			b.ReportMetric(recall, "recall")
		})
	}
}

// Where 32 trees find too little the neighbours of neighbours are looked at until that finds no more.
func TestApproximateGoesOn(t *testing.T) {
	if testing.Short() {
		t.Skip("searches 40,000 rows with 32 trees")
	}
	const n, f, k = 40_000, 64, 5
	pool := kernels.NewPool(0)
	defer pool.Close()
	x := make([]float32, n*f)
	pool.Normal(x, rng.New(1, "rows"))
	var s Neighbors
	_, _, recall := s.Approximate(pool, x, n, f, k)
	if recall >= indexRecall {
		t.Fatalf("recall %.3f: rows as near as each other are found by trees alone", recall)
	}
	s.around(pool, n, f, k, indexBack)
	if more := s.sample.recall(s.sim, k); more > recall+indexGain {
		t.Errorf("recall %.3f, and %.3f with one round more", recall, more)
	}
}

// After two trees, rows in whose lists a row is lead to more of its neighbours than those in its own alone.
func TestAroundBothWays(t *testing.T) {
	const n, f, k = 8000, 16, 5
	pool := kernels.NewPool(0)
	defer pool.Close()
	x := make([]float32, n*f)
	pool.Normal(x, rng.New(2, "rows"))
	similar := func(back int) []float32 {
		var s Neighbors
		s.directions.of(pool, x, n, f)
		s.idx, s.sim = slices.Repeat([]int32{-1}, n*k), slices.Repeat([]float32{float32(math.Inf(-1))}, n*k)
		for t := range uint64(2) {
			s.tree.grow(pool, s.z, n, f, rng.New(0, "neighbours").At(t))
			pool.NearestWithin(s.idx, s.sim, s.z, n, f, k, s.tree.order, s.tree.start, indexLeaf)
		}
		s.around(pool, n, f, k, back)
		return s.sim
	}
	one, both, nearer := similar(0), similar(indexBack), 0
	for i := range one {
		if both[i] < one[i] {
			t.Fatalf("neighbour %d of row %d is farther: %v, by the lists of a row alone %v", i%k, i/k, both[i], one[i])
		}
		if both[i] > one[i] {
			nearer++
		}
	}
	if nearer < len(one)/100 {
		t.Errorf("%d of %d neighbours are nearer", nearer, len(one))
	}
}
