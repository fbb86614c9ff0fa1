package data

import (
	"strings"
	"testing"
)

// A corrupted data set has other edges by as much as was asked for, another
// checksum, and says what was done.
func TestCorrupt(t *testing.T) {
	o := LoadOptions{Seed: 3}
	clean := mustLoad(t, Synthetic, o)
	m := clean.Graph.NumEdges()
	o.AddEdges, o.RemoveEdges = 0.4, 0.4
	ds := mustLoad(t, Synthetic, o)
	count := (m*4 + 5) / 10
	c := ds.Corruption
	if c == nil || c.Added != count || c.Removed != count || c.Checksum != clean.Checksum || c.Seed != 3 {
		t.Fatalf("corruption %+v of %d edges", c, m)
	}
	if in := ds.Info(); in.Edges != m || in.Truth.Wrong <= clean.Info().Truth.Wrong {
		t.Errorf("%d edges, %d of them wrong; before there were %d", in.Edges, in.Truth.Wrong, m)
	}
	var text strings.Builder
	if err := ds.Info().WriteText(&text); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(text.String(), "edges added at random") {
		t.Errorf("the information does not tell of the corruption:\n%s", &text)
	}
	if again := mustLoad(t, Synthetic, o); again.Checksum != ds.Checksum || len(again.Graph.Edges) != m || again.Graph.Edges[m/2] != ds.Graph.Edges[m/2] {
		t.Error("the same options gave another graph")
	}
	seen := map[string]bool{clean.Checksum: true, ds.Checksum: true}
	for _, shares := range [][2]float64{{0.4, 0}, {0, 0.4}, {0.4, 0.3}} {
		other := mustLoad(t, Synthetic, LoadOptions{Seed: 3, AddEdges: shares[0], RemoveEdges: shares[1]})
		if seen[other.Checksum] {
			t.Errorf("shares %v have a checksum that others have", shares)
		}
		seen[other.Checksum] = true
	}
	if err := ds.Corrupt(0.1, 0, 1); err == nil {
		t.Error("a corrupted graph was corrupted again, and its checksum would not say so")
	}
	if err := clean.Corrupt(0, 0, 1); err != nil || clean.Corruption != nil {
		t.Errorf("shares of 0 changed the data: %v", err)
	}
	for _, bad := range []LoadOptions{{AddEdges: -1}, {RemoveEdges: 2}, {AddEdges: 1e9}} {
		_, err := Load(Synthetic, bad)
		wantError(t, err, Synthetic, "edges")
	}
}
