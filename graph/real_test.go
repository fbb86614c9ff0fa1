package graph_test

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/gsrc-dev/gsrc/data"
	"github.com/gsrc-dev/gsrc/graph"
	"github.com/gsrc-dev/gsrc/internal/datatest"
	"github.com/gsrc-dev/gsrc/rng"
	"github.com/gsrc-dev/gsrc/runtime/kernels"
)

// BenchmarkApproximateReal searches embeddings of coauthor_phy's 34,493 nodes,
// [N, 128]: by DeepWalk of one walk a node, and the features in a random
// projection, averaged twice over neighbours as an untrained encoder does; and both
// with the graph to begin with. It reports the true recall@20 and how much faster than an exact search it is.
func BenchmarkApproximateReal(b *testing.B) {
	const f, k = 128, 20
	ds, err := data.Load(datatest.Path(b, "large/coauthor_phy.npz"), data.LoadOptions{})
	if err != nil {
		b.Fatal(err)
	}
	pool := kernels.NewPool(0)
	defer pool.Close()
	deepwalk := func() ([]float32, error) {
		return graph.DeepWalk(pool, ds.Graph, graph.DeepWalkOptions{WalksPerNode: 1})
	}
	features := func() ([]float32, error) { return propagated(ds, f), nil }
	for _, c := range []struct {
		name string
		x    func() ([]float32, error)
		near func() *graph.Structure
	}{{"deepwalk", deepwalk, nil}, {"deepwalk/graph", deepwalk, ds.Graph.Structure}, {"features", features, nil}, {"features/graph", features, ds.Graph.Structure}} {
		b.Run(c.name, func(b *testing.B) {
			x, err := c.x()
			if err != nil {
				b.Fatal(err)
			}
			n := ds.Graph.N
			var exactly graph.Neighbors
			approximately := graph.Neighbors{Near: c.near}
			var exact, found []int32
			slow, fast := math.Inf(1), math.Inf(1)
			for b.Loop() {
				start := time.Now()
				exact, _ = exactly.Exact(pool, x, n, f, k)
				slow = min(slow, time.Since(start).Seconds())
				start = time.Now()
				found, _, _ = approximately.Approximate(pool, x, n, f, k)
				fast = min(fast, time.Since(start).Seconds())
			}
			hits := 0
			for i := range n {
				for _, v := range exact[i*k : (i+1)*k] {
					if slices.Contains(found[i*k:(i+1)*k], v) {
						hits++
					}
				}
			}
			b.ReportMetric(float64(hits)/float64(n*k), "recall")
			b.ReportMetric(fast*1e3, "ms/search")
			b.ReportMetric(slow/fast, "exact/search")
		})
	}
}

// propagated returns (D⁻¹(A+I))²·X·R for Gaussian R.
func propagated(ds *data.Dataset, f int) []float32 {
	s, st := rng.New(1, "projection"), ds.Graph.Structure()
	x := ds.X.ToCSR()
	h, next := make([]float32, x.Rows*f), make([]float32, x.Rows*f)
	r := make([]float32, x.Cols*f)
	for i := range r {
		r[i] = float32(s.Normal(uint64(i)))
	}
	for i := range x.Rows {
		for e := x.RowPtr[i]; e < x.RowPtr[i+1]; e++ {
			for c, v := range r[int(x.Col[e])*f:][:f] {
				h[i*f+c] += x.Val[e] * v
			}
		}
	}
	for range 2 {
		for v := range st.N {
			row := next[v*f : (v+1)*f]
			copy(row, h[v*f:])
			for _, u := range st.In.Col[st.In.RowPtr[v]:st.In.RowPtr[v+1]] {
				for c, y := range h[int(u)*f:][:f] {
					row[c] += y
				}
			}
			for c := range row {
				row[c] /= float32(1 + st.In.RowPtr[v+1] - st.In.RowPtr[v])
			}
		}
		h, next = next, h
	}
	return h
}
