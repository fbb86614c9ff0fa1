package data

import (
	"bytes"
	"encoding/csv"
	"errors"
	"io"
	"slices"
	"testing"

	"github.com/gsrc-dev/gsrc/graph"
)

// Node ids come back from refined_edges.csv as they are, whatever is in them.
func TestWriteRefinedQuotes(t *testing.T) {
	ids := []string{"a", "", ` b`, "c,d", `e"f`, "g\nh", `\.`, "ä", "é,", "-1_x"}
	r := &graph.Refined{Candidates: &graph.Candidates{N: len(ids)}, Threshold: 0.5}
	for v := 1; v < len(ids); v++ {
		r.Candidates.Edges = append(r.Candidates.Edges, [2]int32{int32(v - 1), int32(v)})
		r.Candidates.Existing = append(r.Candidates.Existing, v%2 == 0)
		r.Probability = append(r.Probability, float32(v%3)/3)
	}
	ds := &Dataset{Graph: &graph.Graph{N: len(ids)}, NodeIDs: ids}
	var b bytes.Buffer
	if err := ds.WriteRefined(&b, r); err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(bytes.NewReader(b.Bytes())).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	want := [][]string{{"source", "target", "probability", "status"}}
	for i, e := range r.Candidates.Edges {
		if s := r.Status(i); s != "" {
			want = append(want, []string{ids[e[0]], ids[e[1]], []string{"0", "0.33333334", "0.6666667"}[(i+1)%3], s})
		}
	}
	if !slices.EqualFunc(rows, want, slices.Equal) {
		t.Errorf("%q is read as %q, want %q", b.String(), rows, want)
	}
	var by bytes.Buffer
	if err := csv.NewWriter(&by).WriteAll(want); err != nil {
		t.Fatal(err)
	}
	if by.String() != b.String() {
		t.Errorf("%q, want what encoding/csv writes, %q", b.String(), by.String())
	}
}

// Lines are made in the same memory, however many there are.
func TestWriteRefinedAllocates(t *testing.T) {
	n := 10_000
	r := &graph.Refined{Candidates: &graph.Candidates{N: n}}
	for v := 1; v < n; v++ {
		r.Candidates.Edges, r.Candidates.Existing, r.Probability = append(r.Candidates.Edges, [2]int32{int32(v - 1), int32(v)}), append(r.Candidates.Existing, true), append(r.Probability, 1/float32(v))
	}
	ds := &Dataset{Graph: &graph.Graph{N: n}}
	if allocs := testing.AllocsPerRun(3, func() {
		if err := ds.WriteRefined(io.Discard, r); err != nil {
			t.Fatal(err)
		}
	}); allocs > 20 {
		t.Errorf("%v allocations for %d edges", allocs, n)
	}
}

// An export's file has the weights of edges behind the other columns, and both files are read.
func TestWriteWeighed(t *testing.T) {
	ds := &Dataset{Graph: &graph.Graph{N: 3, Edges: [][2]int32{{0, 1}, {0, 2}}}}
	r := &graph.Refined{Candidates: &graph.Candidates{N: 3, Edges: [][2]int32{{0, 1}, {0, 2}, {1, 2}}, Existing: []bool{true, true, false}}, Probability: []float32{0.75, 0.25, 0.5}, Threshold: 0.5}
	for mode, want := range map[string]string{"expected": "0,1,0.75,old,0.75\n0,2,0.25,removed,0\n1,2,0.5,new,0.5\n", "threshold": "0,1,0.75,old,1\n0,2,0.25,removed,0\n1,2,0.5,new,1\n"} {
		r.Mode = mode
		var b, plain bytes.Buffer
		if err := errors.Join(ds.WriteWeighed(&b, r), ds.WriteRefined(&plain, r)); err != nil {
			t.Fatal(err)
		}
		if got := b.String(); got != "source,target,probability,status,weight\n"+want {
			t.Errorf("%s: %s", mode, got)
		}
		for _, text := range []*bytes.Buffer{&b, &plain} {
			got, err := ds.ReadRefined("refined_edges.csv", text, mode, 0.5)
			if err != nil || !slices.Equal(got.Weights(), r.Weights()) {
				t.Errorf("%s: read as %v, %v", mode, got, err)
			}
		}
	}
}
