package graph

import (
	"math"
	"testing"
)

// The strength raises the prior to a power that grows with π₀.
func TestPriorStrengthWeighsDoubtfulEdgesLess(t *testing.T) {
	s, err := Generate(DefaultCSBM())
	if err != nil {
		t.Fatal(err)
	}
	plain := NewEdgePrior(nil, s.Graph, sampleRows(s), 2, 0, 1)
	null := plain.Calibration.NullFraction
	if null <= 0 || null >= 1 {
		t.Fatalf("%v of the generated edges are doubted, which tests nothing", null)
	}
	const strength, least = 3, 0.01
	strict := NewEdgePrior(nil, s.Graph, sampleRows(s), 2, strength, 1)
	if strict.Calibration.NullFraction != null {
		t.Errorf("π₀ is %v with a strength, %v without", strict.Calibration.NullFraction, null)
	}
	between := 0
	for i, p := range plain.P {
		want := max(math.Pow(float64(p), 1+strength*null), least)
		if got := float64(strict.P[i]); math.Abs(got-want) > 1e-6 && p > least {
			t.Fatalf("edge %d has the prior %v of %v, want %v", i, got, p, want)
		}
		if p > 2*least && p < 1 {
			between++
		}
	}
	if between == 0 {
		t.Error("no edge is doubted in part")
	}
}
