package graph

import (
	"math"
	"testing"
)

func TestEdgeQuality(t *testing.T) {
	truth := &Graph{N: 6, Edges: [][2]int32{{0, 1}, {0, 2}, {1, 2}, {3, 4}, {4, 5}}}
	observed := &Graph{N: 6, Edges: [][2]int32{{0, 1}, {0, 5}, {1, 4}, {3, 4}}} // wrong: 0–5, 1–4; hidden: 0–2, 1–2, 4–5
	for _, c := range []struct {
		name    string
		refined [][2]int32
		want    Quality
	}{
		{"perfect", truth.Edges, Quality{Found{2, 2, 2}, Found{3, 3, 3}}},
		{"unchanged", observed.Edges, Quality{Found{0, 0, 2}, Found{0, 0, 3}}},
		{"empty", nil, Quality{Found{2, 4, 2}, Found{0, 0, 3}}},
		{"mixed", [][2]int32{{0, 2}, {1, 4}, {2, 5}, {3, 4}}, Quality{Found{1, 2, 2}, Found{1, 2, 3}}},
	} {
		if got := EdgeQuality(observed, truth, &Graph{N: 6, Edges: c.refined}); got != c.want {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
}

func TestFound(t *testing.T) {
	f := Found{Hits: 1, Found: 2, Wanted: 4}
	if f.Precision() != 0.5 || f.Recall() != 0.25 {
		t.Errorf("precision %v, recall %v", f.Precision(), f.Recall())
	}
	if z := (Found{}); !math.IsNaN(z.Precision()) || !math.IsNaN(z.Recall()) {
		t.Error("rates of nothing are not NaN")
	}
}
