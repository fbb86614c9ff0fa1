package graph

import (
	"cmp"
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
		if recall < 0.9 || !(math.Abs(recall-measured) <= 0.03) {
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
			if i < 2500 != (j >= 0) || int(j) == i || i < 2500 && (j >= 2500 || !(math.Abs(float64(v)-1) <= 1e-6)) {
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

// Places of neighbours that are not there count as neither found nor missed.
func TestHits(t *testing.T) {
	none := float32(math.Inf(-1))
	for _, c := range []struct {
		best, sim  []float32
		found, all int
	}{
		{[]float32{1, 0.5, 0}, []float32{1, 0.5, 0}, 3, 3},
		{[]float32{1, 0.5, 0}, []float32{1, 0, -1}, 2, 3},
		{[]float32{1, 0.5, none}, []float32{1, none, none}, 1, 2},
		{[]float32{1, 0.5, none}, []float32{1, 0.5, none}, 2, 2},
		{[]float32{1, 0.5}, []float32{none, none}, 0, 2},
		{[]float32{none}, []float32{none}, 0, 0},
		{nil, nil, 0, 0},
	} {
		if found, all := Hits(c.best, c.sim); found != c.found || all != c.all {
			t.Errorf("of %v in %v: %d of %d found, want %d of %d", c.best, c.sim, found, all, c.found, c.all)
		}
	}
}

// Where there are no more others than neighbours are searched, the measured recall is the true one.
func TestApproximateFewOthers(t *testing.T) {
	const n, f, k = 1200, 8, 800
	x := clusters(n, f, 20, 1)
	clear(x[800*f:])
	exact, _ := KNN(nil, x, n, f, k)
	var s Neighbors
	idx, _, measured := s.Approximate(nil, x, n, f, k)
	if recall := recallOf(idx, exact, k); !(math.Abs(recall-measured) <= 0.03) {
		t.Errorf("recall %.4f, measured %.4f in %d trees", recall, measured, s.trees)
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

// Where 32 trees find too little the search has looked at neighbours of neighbours, until that finds no more.
func TestApproximateGoesOn(t *testing.T) {
	if testing.Short() {
		t.Skip("searches 40,000 rows with 32 trees")
	}
	const n, f, k = 40_000, 256, 5
	pool := kernels.NewPool(0)
	defer pool.Close()
	x := make([]float32, n*f)
	pool.Normal(x, rng.New(1, "rows"))
	var s Neighbors
	_, _, recall := s.Approximate(pool, x, n, f, k)
	if recall >= indexRecall {
		t.Fatalf("recall %.3f: rows about as near as each other are not hard to find", recall)
	}
	if !slices.ContainsFunc(s.old, func(v int32) bool { return v != -1 }) {
		t.Error("no neighbours of neighbours were looked at")
	}
	for i := range s.old {
		s.old[i] = -1
	}
	s.around(pool, n, f, k)
	if more := s.sample.recall(s.sim, k); more > recall+indexGain {
		t.Errorf("recall %.3f, and %.3f with one round more", recall, more)
	}
}

// Looking around again leaves out what was compared, and finds what it finds with all of it; and it finds more.
func TestAroundAgain(t *testing.T) {
	const n, f, k = 8000, 64, 10
	pool := kernels.NewPool(0)
	defer pool.Close()
	x := make([]float32, n*f)
	pool.Normal(x, rng.New(2, "rows"))
	similar := func(times int, all bool) []float32 {
		var s Neighbors
		s.directions.of(pool, x, n, f)
		s.codes.Set(pool, s.z, n, f)
		s.idx, s.sim = slices.Repeat([]int32{-1}, n*k), slices.Repeat([]float32{float32(math.Inf(-1))}, n*k)
		s.old = slices.Clone(s.idx)
		for t := range uint64(2) { // rows that share a leaf of one alone have been compared
			s.tree.grow(pool, s.z, n, f, rng.New(0, "neighbours").At(t))
			pool.NearestWithin(s.idx, s.sim, s.z, n, f, k, s.tree.order, s.tree.start, indexLeaf)
		}
		for range times {
			if all {
				s.old = slices.Repeat([]int32{-1}, n*k)
			}
			s.around(pool, n, f, k)
		}
		return s.sim
	}
	sum := func(x []float32) (sum float64) {
		for _, v := range x {
			sum += float64(v)
		}
		return sum
	}
	once, thrice := similar(1, false), similar(3, false)
	if !slices.Equal(thrice, similar(3, true)) {
		t.Error("what was compared before and is left out leads to other neighbours")
	}
	if sum(thrice) < sum(once)+1 {
		t.Errorf("the sum of similarities is %v, and %v after one time", sum(thrice), sum(once))
	}
}

// The leaves have each row once and at most 1024, also where rows are equal. Of clusters that are
// smaller than a leaf most rows are in the leaf that has most of them.
func TestMeansTree(t *testing.T) {
	pool := kernels.NewPool(0)
	defer pool.Close()
	for _, c := range []struct {
		n, clusters int
		spread      float64
		together    float64
	}{{70_000, 700, 0.2, 0.8}, {5000, 1, 0, 0}, {1025, 1, 1, 0}} {
		const f = 16
		z := clusters(c.n, f, c.clusters, c.spread)
		var tree meansTree
		tree.grow(pool, z, c.n, f, rng.New(1, "tree"))
		rows := slices.Sorted(slices.Values(tree.order))
		for i, v := range rows {
			if int(v) != i {
				t.Fatalf("%d rows: row %d is in the tree %v times", c.n, i, v)
			}
		}
		if tree.start[0] != 0 || int(tree.start[len(tree.start)-1]) != c.n {
			t.Fatalf("%d rows: leaves from %d to %d", c.n, tree.start[0], tree.start[len(tree.start)-1])
		}
		for i, lo := range tree.start[1:] {
			if size := lo - tree.start[i]; size < 1 || size > indexLeaf {
				t.Errorf("%d rows: a leaf of %d", c.n, size)
			}
		}
		of, together := rng.New(1, "cluster"), 0 // as clusters draws them
		most := make([]int, c.clusters)
		for i, lo := range tree.start[:len(tree.start)-1] {
			here := make([]int, c.clusters)
			for _, v := range tree.order[lo:tree.start[i+1]] {
				here[of.Intn(uint64(v), c.clusters)]++
			}
			for j, count := range here {
				most[j] = max(most[j], count)
			}
		}
		for _, count := range most {
			together += count
		}
		if share := float64(together) / float64(c.n); share < c.together {
			t.Errorf("%d rows: %.2f of them are in the leaf that has most of their cluster, want at least %v", c.n, share, c.together)
		}
	}
}

// Rows that are means over a graph's neighbours, as an encoder's are, have theirs near in it: a search that
// begins there finds them. Rows without a direction are nobody's, and any number of threads finds the same.
func TestApproximateBeginsWithAGraph(t *testing.T) {
	const n, f, k, degree = 10_000, 256, 3, 4
	pool := kernels.NewPool(0)
	defer pool.Close()
	stream := rng.New(3, "graph")
	g := &Graph{N: n}
	for u := range int32(n) {
		for i := range uint64(degree / 2) {
			if v := int32(stream.Intn(uint64(u)*degree+i, n)); v != u {
				g.Edges = append(g.Edges, [2]int32{min(u, v), max(u, v)})
			}
		}
	}
	slices.SortFunc(g.Edges, func(a, b [2]int32) int { return cmp.Or(cmp.Compare(a[0], b[0]), cmp.Compare(a[1], b[1])) })
	g.Edges = slices.Compact(g.Edges)
	noise, x := make([]float32, n*f), make([]float32, n*f)
	pool.Normal(noise, rng.New(3, "rows"))
	for _, e := range g.Edges {
		for c := range f {
			x[int(e[0])*f+c] += noise[int(e[1])*f+c]
			x[int(e[1])*f+c] += noise[int(e[0])*f+c]
		}
	}
	for v := range n {
		for c := range f {
			if x[v*f+c] += noise[v*f+c]; v%100 == 7 {
				x[v*f+c] = 0
			}
		}
	}
	exact, _ := KNN(pool, x, n, f, k)
	var without Neighbors
	without.Approximate(pool, x, n, f, k)
	s := Neighbors{Near: g.Structure}
	idx, sim, recall := s.Approximate(pool, x, n, f, k)
	t.Logf("recall %.3f by %d trees; without the graph it takes %d", recall, s.trees, without.trees)
	if s.trees != 1 || without.trees < 8 {
		t.Error("the graph does not lead to neighbours")
	}
	found, all := 0, 0
	for i, v := range exact {
		row := idx[i/k*k:][:k]
		if v < 0 {
			if row[i%k] >= 0 {
				t.Fatalf("row %d has neighbour %d, and no direction", i/k, row[i%k])
			}
			continue
		}
		all++
		if slices.Contains(row, v) {
			found++
		}
	}
	if of := float64(found) / float64(all); recall < indexRecall || math.Abs(of-recall) > 0.02 {
		t.Errorf("%.3f of the neighbours are found, recall %.3f", of, recall)
	}
	other := kernels.NewPool(3)
	defer other.Close()
	if again, againSim, _ := (&Neighbors{Near: g.Structure}).Approximate(other, x, n, f, k); !slices.Equal(again, idx) || !slices.Equal(againSim, sim) {
		t.Error("another number of threads gives other neighbours")
	}
}
