package graph

import (
	"slices"
	"testing"

	"github.com/gsrc-dev/gsrc/rng"
	"github.com/gsrc-dev/gsrc/runtime/kernels"
)

// Within finds what KNN finds in each graph by itself, on any number of threads.
func TestWithin(t *testing.T) {
	const f, k = 7, 3
	offset := []int32{0, 1, 9, 9, 11, 30}
	n := int(offset[len(offset)-1])
	s := rng.New(1, "within")
	emb := make([]float32, n*f)
	for i := range emb {
		emb[i] = float32(s.Normal(uint64(i)))
	}
	clear(emb[5*f : 6*f]) // has no direction
	for _, threads := range []int{1, 3} {
		pool := kernels.NewPool(threads)
		got := new(Neighbors).Within(pool, emb, offset, f, k)
		pool.Close()
		for g, end := range offset[1:] {
			first := offset[g]
			want, _ := KNN(nil, emb[int(first)*f:int(end)*f], int(end-first), f, k)
			for i, v := range want {
				if v >= 0 {
					want[i] = v + first
				}
			}
			if own := got[int(first)*k : int(end)*k]; !slices.Equal(own, want) {
				t.Errorf("%d threads, graph %d: neighbours %v, want %v", threads, g, own, want)
			}
		}
	}
	if got := new(Neighbors).Within(nil, emb, offset, f, 0); len(got) != 0 {
		t.Errorf("no neighbours are asked for, there are %v", got)
	}
}

// Nodes that differ by rounding alone are equally near: the lower number comes first.
func TestWithinRounds(t *testing.T) {
	emb := []float32{1, 0, 0.9, 0.1, 0.9, 0.1000001, 0.9, 0.0999999}
	a := slices.Clone(new(Neighbors).Within(nil, emb, []int32{0, 4}, 2, 2))
	emb[3], emb[5], emb[7] = emb[7], emb[3], emb[5]
	b := new(Neighbors).Within(nil, emb, []int32{0, 4}, 2, 2)
	if want := []int32{1, 2, 2, 3, 1, 3, 1, 2}; !slices.Equal(a, want) || !slices.Equal(b, want) {
		t.Errorf("neighbours %v and %v, want %v", a, b, want)
	}
}

// The candidates of a graph lie between its start and the next one's.
func TestStarts(t *testing.T) {
	offset := []int32{0, 3, 4, 4, 6}
	g := &Graph{N: 6, Edges: [][2]int32{{0, 1}, {1, 2}, {4, 5}}}
	c, err := NewCandidates(g, []int32{2, -1, -1, -1, -1, 4}, 1, false)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := c.Starts(nil, offset), []int32{0, 3, 3, 3, 4}; !slices.Equal(got, want) {
		t.Errorf("starts %v of %v, want %v", got, c.Edges, want)
	}
}
