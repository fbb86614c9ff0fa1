package kernels

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/gsrc-dev/gsrc/rng"
)

// eachISA runs f under every instruction set; one the processor lacks is skipped.
func eachISA(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	before := ISA()
	defer func() { _ = SetISA(before) }()
	for _, name := range []string{"avx512", "avx2", "go"} {
		t.Run(name, func(t *testing.T) {
			if err := SetISA(name); err != nil {
				t.Skip(err)
			}
			f(t)
		})
	}
}

// normals returns n standard normal numbers by the reference generator.
func normals(seed uint64, n int) []float32 {
	key := rng.New(seed, "test")
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(key.Normal(uint64(i)))
	}
	return x
}

// positives returns n numbers in (0, 10).
func positives(seed uint64, n int) []float32 {
	key := rng.New(seed, "positive")
	x := make([]float32, n)
	for i := range x {
		x[i] = 10*key.Uniform(uint64(i)) + 1e-3
	}
	return x
}

// junk returns n NaN: a kernel that leaves an element unwritten is seen.
func junk(n int) []float32 {
	x := make([]float32, n)
	fill(x, float32(math.NaN()))
	return x
}

// within fails unless |got − want| ≤ abs + rel·|want| everywhere; NaN equals NaN
// and infinities must agree.
func within(t *testing.T, what string, got []float32, want []float64, abs, rel float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %d elements, want %d", what, len(got), len(want))
	}
	for i, w := range want {
		g := float64(got[i])
		if math.IsNaN(w) && math.IsNaN(g) || g == w {
			continue
		}
		if d := math.Abs(g - w); !(d <= abs+rel*math.Abs(w)) || math.IsInf(w, 0) {
			t.Fatalf("%s: element %d of %d is %g, want %g", what, i, len(want), g, w)
		}
	}
}

func sameBits(t *testing.T, what string, got, want []float32) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %d elements, want %d", what, len(got), len(want))
	}
	for i := range want {
		if math.Float32bits(got[i]) != math.Float32bits(want[i]) {
			t.Fatalf("%s: element %d is %g (%#x), want %g (%#x)", what, i, got[i], math.Float32bits(got[i]), want[i], math.Float32bits(want[i]))
		}
	}
}

func wide(x []float32) []float64 {
	y := make([]float64, len(x))
	for i, v := range x {
		y[i] = float64(v)
	}
	return y
}

// randomCSR has rows of very different length: row 0 is full, every fifth row is
// empty, the others have up to five entries.
func randomCSR(seed uint64, rows, cols int) *CSR {
	key := rng.New(seed, "csr")
	s := &CSR{Rows: rows, Cols: cols, RowPtr: make([]int32, rows+1), Col: []int32{}}
	draw := uint64(0)
	for r := range rows {
		switch {
		case cols == 0 || r%5 == 4:
		case r == 0:
			for c := range cols {
				s.Col = append(s.Col, int32(c))
			}
		default:
			for range key.Intn(draw, 6) {
				draw++
				s.Col = append(s.Col, int32(key.Intn(draw, cols)))
			}
			draw++
		}
		s.RowPtr[r+1] = int32(len(s.Col))
	}
	return s
}

// lengths for elementwise kernels: nothing, one, around the vector widths, more
// than one chunk.
var lengths = []int{0, 1, 2, 7, 8, 9, 15, 16, 17, 31, 33, 63, 64, 100, 127, 1000, 2*elemChunk + 13}

func name(parts ...any) string { return fmt.Sprint(parts...) }

// bench measures f and reports work/1e9 a second, on average and for the fastest
// call: the latter is what a machine shared with others can still tell.
func bench(b *testing.B, work float64, unit string, f func()) {
	f()
	best := math.Inf(1)
	for b.Loop() {
		start := time.Now()
		f()
		best = min(best, time.Since(start).Seconds())
	}
	b.ReportMetric(work*float64(b.N)/b.Elapsed().Seconds()/1e9, unit)
	b.ReportMetric(work/best/1e9, "best-"+unit)
}
