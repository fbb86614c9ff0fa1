package optim

import (
	"math"
	"reflect"
	"testing"

	"github.com/gsrc-dev/gsrc/ir"
)

func TestInitialise(t *testing.T) {
	m, err := ir.Parse("m", "module @m\n\nparam $w: f32[40,16] {init=\"glorot\"}\n\nfunc @f(%x: f32[2]) -> (y: f32[2]) {\n  return %x\n}\n")
	if err != nil {
		t.Fatal(err)
	}
	weights := func(seed uint64) []float32 {
		s, err := New(m, seed, func(string) float64 { return 0.1 })
		if err != nil {
			t.Fatal(err)
		}
		return s.Params[0].Value.F32
	}
	w := weights(1)
	limit := math.Sqrt(6.0 / (40 + 16))
	sum, most := 0.0, 0.0
	for _, v := range w {
		sum += float64(v)
		most = math.Max(most, math.Abs(float64(v)))
	}
	if most > limit || most < 0.95*limit || math.Abs(sum)/float64(len(w)) > limit/8 {
		t.Errorf("glorot values reach %v with mean %v, want uniform within ±%v", most, sum/float64(len(w)), limit)
	}
	if reflect.DeepEqual(w, weights(2)) {
		t.Error("two seeds give the same parameters")
	}
	for how, want := range map[string][]float32{"zeros": {0, 0}, "ones": {1, 1}} {
		w := []float32{5, 5}
		if how == "zeros" {
			w = make([]float32, 2)
		}
		if err := initialise(w, []int{2}, how, 0); err != nil || !reflect.DeepEqual(w, want) {
			t.Errorf("%s gives %v (%v)", how, w, err)
		}
	}
	if err := initialise(nil, nil, "magic", 0); err == nil {
		t.Error("an unknown initialiser was accepted")
	}
}

// The anchors are those that a shuffle from scratch would give, whatever was
// drawn before, and drawing them allocates nothing.
