package memplan

import (
	"math/rand/v2"
	"testing"
)

func check(t *testing.T, spans []Span, align int) int {
	t.Helper()
	offsets, size := Layout(spans, align)
	for i, a := range spans {
		if a.Size == 0 {
			continue
		}
		if offsets[i] < 0 || offsets[i]%align != 0 || offsets[i]+a.Size > size {
			t.Fatalf("span %d of %d bytes lies at %d of %d", i, a.Size, offsets[i], size)
		}
		for k, b := range spans[:i] {
			apart := a.Last < b.First || b.Last < a.First
			if !apart && b.Size > 0 && offsets[i] < offsets[k]+b.Size && offsets[k] < offsets[i]+a.Size {
				t.Fatalf("spans %d and %d are alive together and overlap", i, k)
			}
		}
	}
	if least := Live(spans, align); size < least {
		t.Fatalf("%d bytes hold what needs %d", size, least)
	}
	return size
}

func TestLayoutReusesMemory(t *testing.T) {
	for _, c := range []struct {
		spans []Span
		want  int
	}{
		{nil, 0},
		{[]Span{{0, 0, 9}}, 0},
		{[]Span{{1, 0, 0}}, 64},
		{[]Span{{64, 0, 1}, {64, 2, 3}}, 64},
		{[]Span{{64, 0, 2}, {64, 2, 3}}, 128}, // the end is included
		{[]Span{{100, 0, 9}, {64, 1, 2}, {64, 3, 4}, {128, 5, 6}}, 256},
		// The long one must go above both of the others, or below.
		{[]Span{{64, 0, 4}, {128, 0, 1}, {128, 3, 4}, {64, 1, 3}}, 256},
	} {
		if got := check(t, c.spans, 64); got != c.want {
			t.Errorf("%v: %d bytes, want %d", c.spans, got, c.want)
		}
	}
}

// Layouts of random spans are sound, and seldom far from what is alive at once.
func TestLayoutOfRandomSpans(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	total, least := 0, 0
	for range 100 {
		var spans []Span
		for range 5 + r.IntN(80) {
			first := r.IntN(60)
			spans = append(spans, Span{r.IntN(1000), first, first + r.IntN(12)})
		}
		total += check(t, spans, 64)
		least += Live(spans, 64)
	}
	if total*100 > least*115 {
		t.Errorf("layouts take %d bytes in all, %d are alive at once", total, least)
	}
}
