package graph

import (
	"cmp"
	"math"

	"github.com/gsrc-dev/gsrc/internal/fmath"
	"github.com/gsrc-dev/gsrc/rng"
	"github.com/gsrc-dev/gsrc/runtime/kernels"
)

const (
	encodedWalks = 64 // columns of DeepWalk among those of Encodings
	// RoleWidth is the number of the first columns of [Encodings], which say what the graph around a node looks like.
	RoleWidth = 4
	// PlacesWidth is the number of its columns before those of [Marks].
	PlacesWidth = RoleWidth + encodedWalks
	marksAtOnce = 64 // columns of one stream

	// markScale makes what tells nodes apart too small for a network to learn from: of inputs this small
	// Adam, which moves weights by its learning rate, makes next to nothing.
	markScale = 1e-3

	mostReturnSteps = 1 << 32
)

// EncodingWidth is the number of columns of [Encodings] of a graph of n nodes. What marks tell is as noisy as they
// are few, and all models read them: large graphs have a quarter.
func EncodingWidth(n int) int {
	if n > 20_000 {
		return PlacesWidth + 128
	}
	return PlacesWidth + 512
}

// EncodingBytes returns at most how much memory [Encodings] takes on a graph of n nodes,
// beside its structure.
func EncodingBytes(n int) int64 {
	return DeepWalkOptions{Dim: encodedWalks}.Bytes(n) + int64(n)*int64(4*EncodingWidth(n)+4*marksAtOnce+16)
}

// Encodings describes nodes by their places in the graph, [N, EncodingWidth(N)] row-major: ln(1 +
// degree), the probability that a random walk is back after 2, 3 and 4 steps (Dwivedi et al.
// 2022; 0 where hubs make that more than mostReturnSteps operations), and [DeepWalk]. These columns have mean 0 and variance 1. Edges count in both directions,
// without their weights. The others are small random numbers, alike for no two nodes: [Marks].
func Encodings(g *Graph) ([]float32, error) {
	pool := kernels.NewPool(0)
	defer pool.Close()
	walks, err := DeepWalk(pool, g, DeepWalkOptions{Dim: encodedWalks})
	if err != nil {
		return nil, err
	}
	u := g.Undirected()
	in := (&Graph{N: u.N, Edges: u.Edges}).Structure().In
	width := EncodingWidth(g.N)
	x := make([]float32, g.N*width)
	back := returns(in)
	for v := range g.N {
		row := x[v*width:][:width]
		row[0] = float32(fmath.Log(1 + float64(in.RowPtr[v+1]-in.RowPtr[v])))
		for k, p := range back[v] {
			row[1+k] = float32(p)
		}
		copy(row[RoleWidth:], walks[v*encodedWalks:][:encodedWalks])
	}
	for c := range PlacesWidth {
		sum, squares := 0.0, 0.0
		for i := c; i < len(x); i += width {
			sum += float64(x[i])
		}
		mean := sum / float64(g.N)
		for i := c; i < len(x); i += width {
			d := float64(x[i]) - mean
			squares += float64(d * d)
		}
		scale := math.Sqrt(squares / float64(g.N))
		scale = cmp.Or(scale, 1)
		for i := c; i < len(x); i += width {
			x[i] = float32((float64(x[i]) - mean) / scale)
		}
	}
	marks := make([]float32, g.N*marksAtOnce)
	for c := PlacesWidth; c < width; c += marksAtOnce {
		pool.Normal(marks, rng.New(uint64((c-PlacesWidth)/marksAtOnce), "marks"))
		for i, m := range marks {
			x[i/marksAtOnce*width+c+i%marksAtOnce] = m * markScale
		}
	}
	return x, nil
}

// Marks returns the projection that reads of rows of [Encodings] what tells nodes apart,
// [cols, width] row-major, cols being their columns. Places in a graph are made from its edges, so that those of the two ends of an
// edge are alike whether it is right or wrong. Sums of marks over neighbours say how many two nodes share
// (random indexing, Kanerva et al. 2000), and with the edge itself taken off nothing of it is left.
func Marks(cols, width int) []float32 {
	p := make([]float32, cols*width)
	for k := range min(width, cols-PlacesWidth) {
		p[(PlacesWidth+k)*width+k] = 1 / markScale
	}
	return p
}

// returns gives the diagonals of P², P³ and P⁴, P = D⁻¹A of an undirected graph. As
// P_ji = P_ij·d_i/d_j, two steps from each node tell them.
func returns(a *kernels.CSR) [][3]float64 {
	degree := func(v int32) float64 { return float64(a.RowPtr[v+1] - a.RowPtr[v]) }
	near := func(v int32) []int32 { return a.Col[a.RowPtr[v]:a.RowPtr[v+1]] }
	out := make([][3]float64, a.Rows)
	steps := 0.0
	for v := range int32(a.Rows) {
		steps += float64(degree(v) * degree(v))
	}
	if steps > mostReturnSteps {
		return out
	}
	two := make([]float64, a.Rows) // of P², the row of v
	var touched []int32
	for i := range out {
		v := int32(i)
		d := degree(v)
		for _, u := range near(v) {
			p := 1 / (d * degree(u))
			for _, w := range near(u) {
				if two[w] == 0 {
					touched = append(touched, w)
				}
				two[w] += p
			}
		}
		out[i][0] = two[v]
		for _, u := range near(v) {
			out[i][1] += two[u] / degree(u)
		}
		for _, w := range touched {
			out[i][2] += float64(two[w]*two[w]) * d / degree(w)
			two[w] = 0
		}
		touched = touched[:0]
	}
	return out
}
