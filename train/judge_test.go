package train

import (
	"math"
	"testing"

	"github.com/gsrc-dev/gsrc/runtime/kernels"
)

// Distrust raises evidence to a power that grows with the share of doubted edges.
func TestDistrustWeighsDoubtfulEdgesLess(t *testing.T) {
	ds := synthetic(t, 1)
	pool := kernels.NewPool(2)
	defer pool.Close()
	plain := FindEvidence(pool, ds, 2, 0, 1)
	if plain.Doubted <= 0 || plain.Doubted >= 1 {
		t.Fatalf("%v of the generated edges are doubted, which tests nothing", plain.Doubted)
	}
	const distrust, least = 3, 0.01
	strict := FindEvidence(pool, ds, 2, distrust, 1)
	if strict.Doubted != plain.Doubted {
		t.Errorf("doubted are %v with distrust, %v without", strict.Doubted, plain.Doubted)
	}
	between := 0
	for i, p := range plain.P {
		want := max(math.Pow(float64(p), 1+distrust*plain.Doubted), least)
		if got := float64(strict.P[i]); math.Abs(got-want) > 1e-6 && p > least {
			t.Fatalf("edge %d has the evidence %v of %v, want %v", i, got, p, want)
		}
		if p > 2*least && p < 1 {
			between++
		}
	}
	if between == 0 {
		t.Error("no edge is doubted in part")
	}
}
