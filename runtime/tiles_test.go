package runtime

import (
	"math"
	"slices"
	"testing"

	"github.com/gsrc-dev/gsrc/internal/scratch"
	"github.com/gsrc-dev/gsrc/rng"
	"github.com/gsrc-dev/gsrc/runtime/kernels"
)

// A product that reads the rows of a file tile by tile has the bits of one that reads them as
// its entries name them.
func TestTiledProduct(t *testing.T) {
	const rows, cols, f = 300, tileNumbers/64*2 + 77, 64 // three tiles
	s := rng.New(1, "tiles")
	draw := func(n int) []float32 {
		x := make([]float32, n)
		for i := range x {
			x[i] = s.At(uint64(n)).Uniform(uint64(i)) - 0.5
		}
		return x
	}
	m := &kernels.CSR{Rows: rows, Cols: cols, First: 12345, RowPtr: []int32{0}}
	for r := range rows {
		var col []int32
		for e := range r % 40 * 10 {
			col = append(col, int32(s.At(uint64(r)).Intn(uint64(e), cols)))
		}
		slices.Sort(col)
		m.Col = append(m.Col, slices.Compact(col)...)
		m.RowPtr = append(m.RowPtr, int32(len(m.Col)))
	}
	pool := kernels.NewPool(2)
	defer pool.Close()
	h, add, bias := draw(cols*f), draw(rows*f), draw(f)
	for _, heads := range []int{1, 4} {
		for name, x := range map[string]struct {
			vals, diag []float32
			epi        kernels.Epilogue
		}{
			"ones":     {},
			"values":   {vals: draw(len(m.Col) * heads)},
			"own":      {vals: draw(len(m.Col) * heads), diag: draw(rows * heads)},
			"epilogue": {vals: draw(len(m.Col) * heads), diag: draw(rows * heads), epi: kernels.Epilogue{Add: add, Bias: bias, Act: kernels.Relu}},
		} {
			want, got := make([]float32, rows*f), make([]float32, rows*f)
			pool.SpMMHeads(want, m, x.vals, x.diag, h, f, heads, x.epi)
			k := &Call{Pool: pool, In: make([]*Buffer, 4), Out: []*Buffer{F32(got, rows, f)}}
			for i, v := range [][]float32{nil, x.vals, x.diag} {
				if v != nil {
					k.In[i] = F32(v, len(v))
				}
			}
			k.In[3] = F32(h, cols, f)
			k.In[3].file = (*scratch.Ahead)(nil)
			tiledProduct(k, m, heads, x.epi)
			if n := testing.AllocsPerRun(1, func() { tiledProduct(k, m, heads, x.epi) }); n > 1 { // the empty matrix's
				t.Errorf("%d heads, %s: %v allocations in another product", heads, name, n)
			}
			if !slices.EqualFunc(got, want, func(a, b float32) bool { return math.Float32bits(a) == math.Float32bits(b) }) {
				t.Errorf("%d heads, %s: the bits differ", heads, name)
			}
		}
	}
}
