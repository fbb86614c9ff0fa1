package data

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// Dense to sparse and back is the same matrix, and both forms agree on every
// count.
func TestFeatureForms(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := &Features{Rows: rapid.IntRange(0, 6).Draw(t, "rows"), Cols: rapid.IntRange(0, 6).Draw(t, "cols")}
		f.Dense = make([]float32, f.Rows*f.Cols)
		for i := range f.Dense {
			if rapid.Bool().Draw(t, "zero") {
				f.Dense[i] = rapid.Float32Range(-3, 3).Draw(t, "x")
			}
		}
		s := f.ToCSR()
		if err := s.Check(); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(s.ToDense().Dense, f.Dense) {
			t.Fatalf("%v became %v", f.Dense, s.ToDense().Dense)
		}
		if s.NNZ() != f.NNZ() || s.Density() != f.Density() || s.EmptyRows() != f.EmptyRows() {
			t.Fatal("sparse and dense disagree")
		}
		if s.ToCSR() != s || f.ToDense() != f {
			t.Fatal("a matrix that is in form already was copied")
		}
	})
}

// SciPy's CSR may be unsorted, with repeats and stored zeros.
func TestCSRCanonical(t *testing.T) {
	arr := func(d dtype, b ...byte) *array {
		a, err := newArray(d, []int{len(b) / d.size}, false, b)
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	u1 := dtype{kind: 'u', size: 1}
	i1 := dtype{kind: 'i', size: 1}
	f, err := (&csrMatrix{[]int{3, 4}, arr(u1, 0, 5, 5, 7), arr(u1, 3, 1, 3, 0, 2, 2, 1), arr(i1, 1, 2, 4, 0, 7, 5, 0xff)}).features()
	if err != nil {
		t.Fatal(err)
	}
	if want := []float32{0, 2, 7, 5, 0, 0, 0, 0, 0, 0xff - 256, 5, 0}; !slices.Equal(f.ToDense().Dense, want) || f.NNZ() != 5 {
		t.Errorf("%v, want %v", f.ToDense().Dense, want)
	}
	// Values that cancel leave nothing.
	f, err = (&csrMatrix{[]int{1, 2}, arr(u1, 0, 2), arr(u1, 1, 1), arr(i1, 1, 0xff)}).features()
	if err != nil || f.NNZ() != 0 {
		t.Errorf("%v, %v", f, err)
	}
}

func TestFeaturesCheck(t *testing.T) {
	nan := float32(math.NaN())
	for _, c := range []struct {
		f   Features
		err string
	}{
		{Features{Rows: 1, Cols: 2, Dense: []float32{1}}, "need 2 values, found 1"},
		{Features{Rows: -1}, "shape [-1,0]"},
		{Features{Rows: 2, Cols: 2, Dense: []float32{1, 2, nan, 3}}, "node 1 in column 0 is NaN"},
		{Features{Rows: 1, Cols: 2, RowPtr: []int32{0, 1}, Col: []int32{1}, Val: []float32{nan}}, "node 0 in column 1 is NaN"},
		{Features{Rows: 1, Cols: 2, RowPtr: []int32{0, 1}, Col: []int32{2}, Val: []float32{1}}, "column 2 out of order or range"},
		{Features{Rows: 1, Cols: 2, RowPtr: []int32{0, 2}, Col: []int32{1, 1}, Val: []float32{1, 1}}, "out of order"},
		{Features{Rows: 2, Cols: 2, RowPtr: []int32{0, 2, 1}, Col: []int32{1}, Val: []float32{1}}, "out of order"},
		{Features{Rows: 1, Cols: 2, RowPtr: []int32{0}, Col: nil, Val: nil}, "do not fit"},
	} {
		wantError(t, c.f.Check(), c.err)
	}
}
