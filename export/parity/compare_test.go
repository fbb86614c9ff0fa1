package parity

import (
	"math"
	"slices"
	"testing"

	"github.com/gsrc-dev/gsrc/export/onnx"
	"github.com/gsrc-dev/gsrc/runtime/ort"
)

func TestUlps(t *testing.T) {
	next := func(v float32, n int) float32 {
		for range n {
			v = math.Nextafter32(v, math.MaxFloat32)
		}
		return v
	}
	nan := float32(math.NaN())
	for _, test := range []struct {
		a, b float32
		want uint64
	}{
		{1, 1, 0}, {0, float32(math.Copysign(0, -1)), 0}, {1, next(1, 1), 1}, {next(-3, 5), -3, 5},
		{-math.SmallestNonzeroFloat32, math.SmallestNonzeroFloat32, 2}, {1, 2, 1 << 23}, {nan, 1, 1 << 32}, {nan, nan, 1 << 32},
	} {
		if got := ulps(test.a, test.b); got != test.want {
			t.Errorf("%g and %g are %d ulp apart, want %d", test.a, test.b, got, test.want)
		}
	}
}

func TestCompareOutputCountsUlpsAndClasses(t *testing.T) {
	up := func(v float32, n uint32) float32 { return math.Float32frombits(math.Float32bits(v) + n) }
	want := ort.Float32s([]float32{1, 2, 3, 3, 5, 4}, 3, 2)
	got := ort.Float32s([]float32{1, up(2, 1), 3, up(3, 2), up(5, 4), 4}, 3, 2)
	o, err := compareOutput("logits", got, want, onnx.Exact)
	if err != nil || !slices.Equal(o.Ulps, []int{3, 1, 1, 1}) {
		t.Errorf("histogram %v (error %v), want 3 equal and 1, 2 and 4 ulp once each", o.Ulps, err)
	}
	// The tie of the second row fell to the other side.
	if o.Argmax == nil || *o.Argmax != (Agreement{Agree: 2, Rows: 3}) {
		t.Errorf("agreement %+v, want 2 of 3", o.Argmax)
	}
	if o, _ := compareOutput("embedding", got, want, onnx.Exact); o.Argmax != nil {
		t.Error("an embedding has no classes")
	}
}
