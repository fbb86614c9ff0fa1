package graph

import (
	"math"
	"slices"
	"testing"

	"github.com/gsrc-dev/gsrc/rng"
	"pgregory.net/rapid"
)

func TestRandomCorruption(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := drawGraph(t)
		m := g.NumEdges()
		if rapid.Bool().Draw(t, "weighted") {
			g.Weights = make([]float32, m)
			for i := range g.Weights {
				g.Weights[i] = float32(i) + 2
			}
		}
		s := rng.New(rapid.Uint64().Draw(t, "seed"), "test")
		share := rapid.Float64Range(0, 1).Draw(t, "share")
		count := int(math.Round(share * float64(m)))

		less, removed, err := g.RemoveRandom(share, s)
		if err != nil {
			t.Fatal(err)
		}
		if err := less.Validate(); err != nil {
			t.Fatal(err)
		}
		if len(removed) != count || less.NumEdges() != m-count || !slices.Equal(Difference(g, less), removed) {
			t.Fatalf("removed %v from %v, left %v, want %d removed", removed, g.Edges, less.Edges, count)
		}
		for i, e := range less.Edges {
			if j, ok := g.Find(e[0], e[1]); !ok || g.Weights != nil && g.Weights[j] != less.Weights[i] {
				t.Fatalf("edge %v has another weight than before", e)
			}
		}

		more, added, err := g.AddRandom(share, s)
		if room := g.pairs() - int64(m); int64(count) > room {
			if err == nil {
				t.Fatalf("added %d edges where %d had room", count, room)
			}
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		if err := more.Validate(); err != nil {
			t.Fatal(err)
		}
		if len(added) != count || !slices.Equal(Difference(more, g), added) || len(Difference(g, more)) != 0 {
			t.Fatalf("added %v to %v, got %v, want %d added", added, g.Edges, more.Edges, count)
		}
		again, _, _ := g.AddRandom(share, s)
		if !slices.Equal(again.Edges, more.Edges) || !slices.Equal(again.Weights, more.Weights) {
			t.Fatal("the same stream added other edges")
		}
	})
}

// Edges that are replaced are as many as before, and none that was removed comes
// back as a new one.
func TestCorrupt(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := drawGraph(t)
		m := float64(g.NumEdges())
		s := rng.New(rapid.Uint64().Draw(t, "seed"), "test")
		remove, add := rapid.Float64Range(0, 1).Draw(t, "remove"), rapid.Float64Range(0, 1).Draw(t, "add")
		c, removed, added, err := g.Corrupt(Random, remove, add, nil, s)
		if room := float64(g.pairs()) - m; math.Round(add*m) > room {
			if err == nil {
				t.Fatalf("added %v edges where %v had room", math.Round(add*m), room)
			}
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Validate(); err != nil {
			t.Fatal(err)
		}
		if float64(len(removed)) != math.Round(remove*m) || !slices.Equal(Difference(g, c), removed) {
			t.Fatalf("removed %v of %v, left %v", removed, g.Edges, c.Edges)
		}
		if float64(len(added)) != math.Round(add*m) || !slices.Equal(Difference(c, g), added) {
			t.Fatalf("added %v to %v, got %v", added, g.Edges, c.Edges)
		}
	})
}

func TestCorruptionRejects(t *testing.T) {
	g := &Graph{N: 3, Edges: [][2]int32{{0, 1}, {0, 2}}}
	for _, r := range []float64{-0.1, math.NaN(), math.Inf(1)} {
		if _, _, err := g.RemoveRandom(r, 0); err == nil {
			t.Errorf("RemoveRandom accepts %v", r)
		}
		if _, _, err := g.AddRandom(r, 0); err == nil {
			t.Errorf("AddRandom accepts %v", r)
		}
	}
	if _, _, err := g.RemoveRandom(1.1, 0); err == nil {
		t.Error("RemoveRandom accepts 1.1")
	}
	if _, _, err := g.AddRandom(1, 0); err == nil {
		t.Error("AddRandom adds two edges where one has room")
	}
	for _, kind := range []Kind{"", "randon", Similar} {
		if _, _, _, err := g.Corrupt(kind, 0, 0.5, nil, 0); err == nil {
			t.Errorf("Corrupt accepts the kind %q without likeness", kind)
		}
	}
	for _, r := range [][2]float64{{-1, 0}, {0, -1}, {0, 1}} {
		if _, _, _, err := g.Corrupt(Random, r[0], r[1], nil, 0); err == nil {
			t.Errorf("Corrupt accepts %v", r)
		}
	}
	full, added, err := g.AddRandom(0.5, 0)
	if err != nil || !slices.Equal(added, [][2]int32{{1, 2}}) || full.NumEdges() != 3 {
		t.Errorf("AddRandom(0.5) added %v: %v", added, err)
	}
}

func TestPairCodeInverse(t *testing.T) {
	for _, directed := range []bool{false, true} {
		g := Graph{N: 7, Directed: directed}
		code := int64(0)
		for u := range int32(7) {
			for v := range int32(7) {
				if u == v || !directed && v < u {
					continue
				}
				e := [2]int32{u, v}
				if g.pairCode(e) != code || g.pairOf(code) != e {
					t.Fatalf("directed %v: pair %v has code %d, code %d is %v", directed, e, g.pairCode(e), code, g.pairOf(code))
				}
				code++
			}
		}
		if code != g.pairs() {
			t.Errorf("directed %v: pairs() = %d, want %d", directed, g.pairs(), code)
		}
	}
}

// Every pair must be as likely as any other: χ² with 44 degrees of freedom
// exceeds 96 once in a hundred thousand draws.
func TestAddRandomIsEven(t *testing.T) {
	g := &Graph{N: 10, Edges: [][2]int32{{2, 3}, {5, 6}, {5, 8}, {7, 9}}}
	var hist [45]int
	const draws = 4000
	for i := range uint64(draws) {
		_, added, err := g.AddRandom(0.5, rng.New(3, "even").At(i))
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range added {
			hist[g.pairCode(e)]++
		}
	}
	want, chi := 2.0*draws/41, 0.0
	for code, c := range hist {
		if e := g.pairOf(int64(code)); g.Has(e[0], e[1]) {
			if c != 0 {
				t.Errorf("edge %v was added again", e)
			}
			continue
		}
		chi += (float64(c) - want) * (float64(c) - want) / want
	}
	if chi > 96 {
		t.Errorf("χ² = %.1f over 41 pairs", chi)
	}
}

// Edges of the other kinds are new, as many as were asked for, and of their kind.
func TestAddKind(t *testing.T) {
	sample, err := Generate(DefaultCSBM())
	if err != nil {
		t.Fatal(err)
	}
	g := sample.Graph
	alike := func(u, v int32) float64 { return -math.Abs(float64(u - v)) }
	count := int(math.Round(0.1 * float64(g.NumEdges())))
	degree := g.Degrees()
	mean := map[Kind][2]float64{} // of the ends' degrees, and of how alike they are
	for _, kind := range Kinds {
		more, added, err := g.AddKind(kind, 0.1, alike, rng.New(1, "test"))
		if err != nil {
			t.Fatal(err)
		}
		if err := more.Validate(); err != nil || len(added) != count || !slices.Equal(Difference(more, g), added) {
			t.Fatalf("%s: added %d edges, want %d (%v)", kind, len(added), count, err)
		}
		if again, _, _ := g.AddKind(kind, 0.1, alike, rng.New(1, "test")); !slices.Equal(again.Edges, more.Edges) {
			t.Errorf("%s: the same stream added other edges", kind)
		}
		m := mean[kind]
		for _, e := range added {
			m[0] += float64(degree[e[0]]+degree[e[1]]) / float64(2*count)
			m[1] += alike(e[0], e[1]) / float64(count)
		}
		mean[kind] = m
	}
	if mean[Degrees][0] < 1.05*mean[Random][0] {
		t.Errorf("ends drawn by degree have %.2f neighbours, random ones %.2f", mean[Degrees][0], mean[Random][0])
	}
	// Of 20 pairs of evenly drawn nodes the nearest are 1/21 as far apart as one pair.
	if mean[Similar][1] < mean[Random][1]/5 {
		t.Errorf("similar ends are %.1f apart, random ones %.1f", -mean[Similar][1], -mean[Random][1])
	}
	full := &Graph{N: 2, Edges: [][2]int32{{0, 1}}}
	if _, _, err := full.AddKind(Degrees, 1, nil, rng.New(1, "test")); err == nil {
		t.Error("an edge was added to a graph without room")
	}
}
