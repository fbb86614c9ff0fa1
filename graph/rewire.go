package graph

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/gsrc-dev/gsrc/rng"
	"github.com/gsrc-dev/gsrc/runtime/kernels"
)

// Rewiring says which edges take the place of a graph's own, by the attributes of nodes
// alone. The zero value is the graph as it is.
type Rewiring struct {
	None     bool    // no edge of the graph stays
	Cut      float64 // edges stay whose ends have at least this cosine; 0 keeps all
	Training bool    // of the edges of training nodes those stay that are not likelier to have been added; see misleading
	K        int     // each node is joined to so many nearest by cosine
}

// CutTraining is the text of a Rewiring that only cuts edges of training nodes.
const CutTraining = "cut:training"

// ParseRewiring reads parts joined by +: raw (edges as they are), none, cut:T (the edges
// whose ends' attributes have a cosine of at least T), cut:training (all edges but those of training
// nodes that were likelier added to mislead), knn:K (each node with its K nearest
// by that cosine). Empty is raw, and knn:K alone leaves the graph's edges out.
func ParseRewiring(text string) (r Rewiring, err error) {
	if text == "" {
		return r, nil
	}
	fail := func() (Rewiring, error) {
		return Rewiring{}, fmt.Errorf("must be raw, none, cut:T with a cosine T above 0 and at most 1, cut:training, knn:K with a number K of neighbours, or raw or a cut with +knn:K, got %q", text)
	}
	r.None = true
	for i, part := range strings.Split(text, "+") {
		kind, value, _ := strings.Cut(part, ":")
		switch {
		case part == "none" && text == part:
		case i == 0 && part == "raw":
			r.None = false
		case i == 0 && part == CutTraining:
			r.None, r.Training = false, true
		case i == 0 && kind == "cut":
			r.None = false
			if r.Cut, err = strconv.ParseFloat(value, 64); err != nil || !(r.Cut > 0 && r.Cut <= 1) {
				return fail()
			}
		case kind == "knn" && r.K == 0:
			if r.K, err = strconv.Atoi(value); err != nil || r.K < 1 {
				return fail()
			}
		default:
			return fail()
		}
	}
	return r, nil
}

// Bytes is about what Apply takes for n nodes with such attributes.
func (r Rewiring) Bytes(n int, x NodeFeatures) int64 {
	if r == (Rewiring{None: r.None}) {
		return 0
	}
	b := 8*int64(len(x.Val)+len(x.Dense)) + 32*int64(n)
	if r.K > 0 {
		b += 40 * int64(n) * int64(min(r.K, n))
		if x.comparedDense(n) {
			index, _ := SearchScratch(n, x.Cols, min(r.K, n), IndexAuto)
			b += 4*int64(n)*int64(x.Cols) + int64(index)
		} else {
			b += 8 * int64(len(x.Val))
		}
	}
	return b
}

// Apply returns the graph that takes the place of an undirected g, and how many edges were
// dropped and added. Columns of x are multiplied by the given factors, nil for ones. Added
// edges have the weight 1 where g has weights. A node without attributes keeps no edge that
// is cut and gets no neighbours. A nil pool means one of its own, a thread for each processor;
// the result does not depend on their number. training is read where r.Training is.
func (r Rewiring) Apply(pool *kernels.Pool, g *Graph, x NodeFeatures, columns []float64, training []int32) (out *Graph, dropped, added int, err error) {
	if r == (Rewiring{}) {
		return g, 0, 0, nil
	}
	if g.Directed && r.K > 0 {
		return nil, 0, 0, fmt.Errorf("nearest neighbours have no direction, and the graph is directed")
	}
	if pool == nil {
		pool = kernels.NewPool(0)
		defer pool.Close()
	}
	if columns == nil {
		columns = slices.Repeat([]float64{1}, x.Cols)
	}
	var rows []sparseRow
	if r.Cut > 0 || r.Training || r.K > 0 {
		rows = make([]sparseRow, g.N)
		parallel(pool, g.N, 256, func(lo, hi int) {
			for i := lo; i < hi; i++ {
				rows[i] = x.scaled(i, columns)
			}
		})
	}
	keep := make([]bool, len(g.Edges))
	for i, e := range g.Edges {
		keep[i] = !r.None && (r.Cut <= 0 || rows[e[0]].dot(rows[e[1]]) >= r.Cut)
	}
	if r.Training {
		for i, wrong := range misleading(g, rows, training) {
			keep[i] = keep[i] && !wrong
		}
	}
	out = g.only(keep)
	dropped = len(g.Edges) - len(out.Edges)
	if r.K == 0 {
		return out, dropped, 0, nil
	}
	k := min(r.K, g.N)
	c, err := NewCandidates(out, nearestRows(pool, rows, x.Cols, k, !x.comparedDense(g.N)), k, false)
	if err != nil {
		return nil, 0, 0, err
	}
	var pairs [][2]int32
	for i, e := range c.Edges {
		if !c.Existing[i] {
			pairs = append(pairs, e)
		}
	}
	return out.with(pairs), dropped, len(pairs), nil
}

// cosineLevels are the quantiles of random pairs' cosines between which edges are counted.
var cosineLevels = []float64{0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.98}

// misleading tells which edges of training nodes were likelier added than not. An attack that misleads a
// classifier adds edges at the nodes that it learns from (Li et al., “Revisiting graph adversarial attack and
// defense from a data distribution perspective”, ICLR 2023), and joins unlike ones. So the cosines of edges' ends are there
// a mixture of those of all other edges and of random pairs; the means tell its share, and how many
// of both fall between two quantiles how likely an edge was added. Where nothing was added the share is about 0.
func misleading(g *Graph, rows []sparseRow, training []int32) []bool {
	trains := make([]bool, g.N)
	for _, v := range training {
		trains[v] = true
	}
	at := func(e [2]int32) bool { return trains[e[0]] || trains[e[1]] }
	cosine := func(e [2]int32) float64 { return rows[e[0]].dot(rows[e[1]]) }
	var random []float64
	for _, e := range RandomPairs(g, 20_000, false, rng.New(0, "rewire")) {
		random = append(random, cosine(e))
	}
	out := make([]bool, len(g.Edges))
	if len(random) == 0 {
		return out
	}
	slices.Sort(random)
	var bounds []float64
	for _, q := range cosineLevels {
		bounds = append(bounds, random[int(q*float64(len(random)))])
	}
	bounds = slices.Compact(bounds)
	var own, others, none counted
	for _, c := range random {
		none.count(c, bounds)
	}
	for _, e := range g.Edges {
		if c := cosine(e); at(e) {
			own.count(c, bounds)
		} else {
			others.count(c, bounds)
		}
	}
	share := min(0.9, (others.mean()-own.mean())/(others.mean()-none.mean()))
	if !(others.mean() > none.mean() && share > 0) {
		return out
	}
	for i, e := range g.Edges {
		if at(e) {
			c := cosine(e)
			out[i] = float64(share*none.density(c, bounds)) > float64((1-share)*others.density(c, bounds))
		}
	}
	return out
}

// counted are numbers, by between which bounds they lie.
type counted struct {
	n, sum float64
	by     []float64
}

func (x *counted) count(v float64, bounds []float64) {
	if x.by == nil {
		x.by = make([]float64, len(bounds)+1)
	}
	at, _ := slices.BinarySearch(bounds, v)
	x.n, x.sum = x.n+1, x.sum+v
	x.by[at]++
}

// mean is NaN where nothing was counted.
func (x *counted) mean() float64 { return x.sum / x.n }

// density is the share of numbers that lie between the same bounds; none is taken to be impossible.
func (x *counted) density(v float64, bounds []float64) float64 {
	at, _ := slices.BinarySearch(bounds, v)
	return (x.by[at] + 1) / (x.n + float64(len(x.by)))
}

// comparedDense tells whether n rows are compared in all columns, which takes less where an eighth of the elements are not 0.
func (x NodeFeatures) comparedDense(n int) bool {
	return x.RowPtr == nil || 8*int64(len(x.Val)) >= int64(n)*int64(x.Cols)
}

// nearestRows returns the k nearest of each row by cosine, as [KNN] does, but none whose
// cosine is not above 0. Sparse rows are compared where they have columns in common.
func nearestRows(pool *kernels.Pool, rows []sparseRow, cols, k int, sparse bool) []int32 {
	n := len(rows)
	if !sparse {
		z := make([]float32, n*cols)
		for i, r := range rows {
			for j, c := range r.col {
				z[i*cols+int(c)] = r.val[j]
			}
		}
		idx, sim, _ := new(Neighbors).Search(pool, z, n, cols, k, IndexAuto)
		for i, s := range sim {
			if !(s > 0) {
				idx[i] = -1
			}
		}
		return idx
	}
	byColumn := transposed(rows, cols)
	idx := slices.Repeat([]int32{-1}, n*k)
	parallel(pool, n, 128, func(lo, hi int) {
		sum := make([]float64, n)
		var near []int32
		for u := lo; u < hi; u++ {
			clear(sum)
			for j, c := range rows[u].col {
				v := float64(rows[u].val[j])
				for m, w := range byColumn[c].col {
					sum[w] += float64(v * float64(byColumn[c].val[m]))
				}
			}
			near = near[:0]
			for w, s := range sum {
				if w == u || !(s > 0) || math.IsInf(s, 0) {
					continue
				}
				if len(near) == k {
					if s <= sum[near[k-1]] {
						continue
					}
					near = near[:k-1]
				}
				at := len(near)
				for at > 0 && sum[near[at-1]] < s {
					at--
				}
				near = slices.Insert(near, at, int32(w))
			}
			copy(idx[u*k:], near)
		}
	})
	return idx
}
