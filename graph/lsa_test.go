package graph

import (
	"math"
	"slices"
	"testing"

	"github.com/gsrc-dev/gsrc/rng"
	"github.com/gsrc-dev/gsrc/runtime/kernels"
	"gonum.org/v1/gonum/mat"
)

// The projection is an orthonormal basis of what a singular value decomposition gives,
// scaled by rarity.
func TestLSAIsASingularValueDecomposition(t *testing.T) {
	const n, cols, width = 60, 30, 5
	s := rng.New(2, "lsa test")
	at := uint64(0)
	normal := func() float64 { at++; return s.Normal(at) }
	factors, loads := mat.NewDense(n, width, nil), mat.NewDense(width, cols, nil)
	for _, m := range []*mat.Dense{factors, loads} {
		m.Apply(func(int, int, float64) float64 { return normal() }, m)
	}
	var made mat.Dense
	made.Mul(factors, loads)
	x := NodeFeatures{Cols: cols, Dense: make([]float32, n*cols)}
	for i := range x.Dense {
		x.Dense[i] = float32(made.At(i/cols, i%cols) + 0.01*normal())
	}
	pool := kernels.NewPool(2)
	defer pool.Close()
	p, rarity := x.LSA(pool, n, width, s.Sub("projection")), x.Rarity(n)
	v, scaled := mat.NewDense(cols, width, nil), mat.NewDense(n, cols, nil)
	v.Apply(func(i, j int, _ float64) float64 { return float64(p[i*width+j]) / rarity[i] }, v)
	scaled.Apply(func(i, j int, _ float64) float64 { return float64(x.Dense[i*cols+j]) * rarity[j] }, scaled)
	var gram mat.Dense
	gram.Mul(v.T(), v)
	for i := range width {
		for j := range width {
			want := 0.0
			if i == j {
				want = 1
			}
			if !(math.Abs(gram.At(i, j)-want) <= 1e-5) {
				t.Errorf("directions %d and %d have the product %v", i, j, gram.At(i, j))
			}
		}
	}
	for i := range n {
		row := scaled.RawRowView(i)
		length := mat.Norm(mat.NewVecDense(cols, row), 2)
		for c := range row {
			row[c] /= length
		}
	}
	var svd mat.SVD
	if !svd.Factorize(scaled, mat.SVDThin) {
		t.Fatal("no singular value decomposition")
	}
	var right, got, want mat.Dense
	svd.VTo(&right)
	got.Mul(scaled, v)
	want.Mul(scaled, right.Slice(0, cols, 0, width))
	cosine := func(m *mat.Dense, i, j int) float64 {
		a, b := m.RowView(i), m.RowView(j)
		return mat.Dot(a, b) / mat.Norm(a, 2) / mat.Norm(b, 2)
	}
	for i := range n {
		for j := range i {
			if a, b := cosine(&got, i, j), cosine(&want, i, j); !(math.Abs(a-b) <= 1e-3) {
				t.Fatalf("the cosine of rows %d and %d is %v, by singular vectors %v", i, j, a, b)
			}
		}
	}
}

// Directions are found by all rows, or by drawn ones with as many entries as are asked for.
func TestSomeRows(t *testing.T) {
	x := NodeFeatures{Cols: 10, RowPtr: []int32{0}}
	for i := range 1000 {
		x.RowPtr = append(x.RowPtr, x.RowPtr[i]+int32(i%5))
	}
	s := rng.New(1, "some rows")
	if rows := x.someRows(1000, 2000, s); len(rows) < 999 || !slices.IsSorted(rows) {
		t.Errorf("%d rows of 1000", len(rows))
	}
	rows := x.someRows(1000, 500, s)
	sum := 0
	for _, i := range rows {
		sum += i % 5
	}
	if sum < 500 || sum > 504 || !slices.IsSorted(rows) || rows[len(rows)-1] < 900 {
		t.Errorf("%d rows with %d entries, the last %d", len(rows), sum, rows[len(rows)-1])
	}
	if !slices.Equal(rows, x.someRows(1000, 500, s)) {
		t.Error("other rows of the same stream")
	}
	dense := NodeFeatures{Cols: 10, Dense: make([]float32, 1000)}
	if n := len(dense.someRows(100, 500, s)); n != 50 {
		t.Errorf("%d dense rows, want 50", n)
	}
}

// How large attributes are does not matter, up to the largest and down to the smallest float32.
func TestLSAOfFarRows(t *testing.T) {
	s, err := Generate(DefaultCSBM())
	if err != nil {
		t.Fatal(err)
	}
	n := s.Graph.N
	of := func(value float32) []float32 {
		x := NodeFeatures{Cols: len(s.X) / n, Dense: make([]float32, len(s.X))}
		for i, v := range s.X {
			if v > 0.5 {
				x.Dense[i] = value
			}
		}
		return x.LSA(nil, n, 8, rng.New(6, "lsa"))
	}
	want := of(1)
	for _, e := range []int{127, 60, 41, -41, -60, -126, -149} {
		if !slices.Equal(of(float32(math.Ldexp(1, e))), want) {
			t.Errorf("of attributes times 2^%d the projection is another", e)
		}
	}
}
