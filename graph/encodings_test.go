package graph

import (
	"math"
	"testing"

	"github.com/gsrc-dev/gsrc/rng"
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
	for c := range EncodingWidth - encodedMarks {
		sum, squares := 0.0, 0.0
		for v := range g.N {
			x := float64(one[v*EncodingWidth+c])
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
