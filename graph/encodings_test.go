package graph

import (
	"math"
	"testing"

	"github.com/gsrc-dev/gsrc/rng"
	"github.com/gsrc-dev/gsrc/runtime/kernels"
)

// The probabilities of returning are those of powers of the dense transition matrix.
func TestReturns(t *testing.T) {
	const n = 12
	r := rng.New(3, "returns")
	var src, dst []int32
	p := make([][]float64, n)
	for i := range p {
		p[i] = make([]float64, n)
	}
	for i := range int32(n - 1) { // the last node has no neighbours
		for j := range i {
			if r.Uniform(uint64(i)*n+uint64(j)) < 0.3 {
				src, dst = append(src, j), append(dst, i)
				p[i][j], p[j][i] = 1, 1
			}
		}
	}
	for _, row := range p {
		d := 0.0
		for _, v := range row {
			d += v
		}
		for j := range row {
			row[j] /= max(d, 1)
		}
	}
	g, _, err := Build(n, src, dst, nil, false)
	if err != nil {
		t.Fatal(err)
	}
	have, power := returns(g.Structure().In), p
	for k := range 3 {
		next := make([][]float64, n)
		for i := range next {
			next[i] = make([]float64, n)
			for j := range n {
				for m := range n {
					next[i][j] += power[i][m] * p[m][j]
				}
			}
		}
		power = next
		for i := range n {
			if !(math.Abs(have[i][k]-power[i][i]) <= 1e-12) {
				t.Errorf("node %d, %d steps: %v, want %v", i, k+2, have[i][k], power[i][i])
			}
		}
	}
}

func TestEncodings(t *testing.T) {
	g := ring(60)
	one, err := Encodings(g)
	if err != nil {
		t.Fatal(err)
	}
	for c := range PlacesWidth {
		sum, squares := 0.0, 0.0
		for v := range g.N {
			x := float64(one[v*EncodingWidth(g.N)+c])
			sum, squares = sum+x, squares+x*x
		}
		want := float64(g.N) // of a ring all nodes have the same degree, and return alike
		if c < 4 {
			want = 0
		}
		if !(math.Abs(sum) <= 1e-3) || !(math.Abs(squares-want) <= 1e-2) {
			t.Errorf("column %d has sum %v and squares %v", c, sum, squares)
		}
	}
}

func ring(n int32) *Graph {
	var src, dst []int32
	for v := range n {
		src, dst = append(src, v), append(dst, (v+1)%n)
	}
	g, _, err := Build(int(n), src, dst, nil, false)
	if err != nil {
		panic(err)
	}
	return g
}

// Marks of versions that had 64 are the first of those of now, so that their models read what they were trained on;
// large graphs have fewer. The projection reads each mark as it was drawn.
func TestMarks(t *testing.T) {
	g := ring(60)
	x, err := Encodings(g)
	if err != nil {
		t.Fatal(err)
	}
	pool := kernels.NewPool(1)
	defer pool.Close()
	before := make([]float32, g.N*64)
	pool.Normal(before, rng.New(0, "marks"))
	cols := EncodingWidth(g.N)
	p := Marks(cols, cols-PlacesWidth)
	for v := range g.N {
		for k := range 64 {
			row, sum := x[v*cols:][:cols], float32(0)
			for c, value := range row {
				sum += value * p[c*(cols-PlacesWidth)+k]
			}
			if want := before[v*64+k]; row[PlacesWidth+k] != want*markScale || math.Abs(float64(sum-want)) > 1e-5 {
				t.Fatalf("mark %d of node %d is %v and read as %v, want %v", k, v, row[PlacesWidth+k], sum, want)
			}
		}
	}
	if few := EncodingWidth(20_001); few >= cols || few < PlacesWidth+64 {
		t.Errorf("a large graph has %d columns, a small one %d", few, cols)
	}
}
