package infer

import (
	"errors"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
)

// Nodes that come and go leave nothing behind but their numbers and names: the graph takes no more memory
// than the most nodes that were there at a time, and is answered and kept as one that never had them.
func TestNodesComeAndGo(t *testing.T) {
	defer func(n int) { condenseAfter = n }(condenseAfter)
	condenseAfter = 50
	for _, model := range []string{"gcn", "ecl-gsr", "exact"} {
		o := GraphOptions{Exact: model == "exact", Journal: filepath.Join(t.TempDir(), "journal")}
		if o.Exact {
			model = "gcn"
		}
		dist, run := exported120(t, model)
		o.Load = run.Load
		open := func() *Graph {
			t.Helper()
			r, err := OpenGraph(t.Context(), dist, "synthetic", o)
			if err != nil {
				t.Fatal(err)
			}
			return r
		}
		r := open()
		first := r.Snapshot()
		want, most, held := answers(t, first), 0, r.memory.Bytes()
		x := slices.Repeat(first.x.row(3), 60)
		for round := range 6 {
			var u Update
			for i := range 60 {
				u.DeleteNodes = append(u.DeleteNodes, strconv.Itoa(120+60*round+i))
			}
			mustUpdate(t, r, Update{X: x, Sources: u.DeleteNodes, Targets: slices.Repeat([]string{"7", "8"}, 30)})
			mustUpdate(t, r, u)
			most = max(most, r.Snapshot().rows())
		}
		check := func() {
			t.Helper()
			s := r.Snapshot()
			got := answers(t, s)
			if len(got) != len(want) || s.Numbers() != 480 || s.Nodes() != 120 {
				t.Fatalf("%d numbers, %d nodes, %d probabilities", s.Numbers(), s.Nodes(), len(got))
			}
			for i := range got {
				if d := got[i] - want[i]; !(d <= 1e-5 && d >= -1e-5) {
					t.Fatalf("probability %d is %g, want %g", i, got[i], want[i])
				}
			}
			var node *NodeError
			if _, err := s.Find("300"); !errors.As(err, &node) || !node.Deleted {
				t.Errorf("a deleted node: %v", err)
			}
			if _, err := s.Find("480"); !errors.As(err, &node) || node.Deleted {
				t.Errorf("a node to come: %v", err)
			}
		}
		check()
		if most > 120+2*120 || first.rows() != 120 {
			t.Errorf("%s: %d rows for 180 nodes at most", model, most)
		}
		if now := r.memory.Bytes(); now > 4*held {
			t.Errorf("%s: %d bytes are held, %d before", model, now, held)
		}
		r.Close()
		r = open()
		check()
		if n := r.Snapshot().rows(); n != 120 {
			t.Errorf("%s: %d rows once the log is read again", model, n)
		}
		if _, err := r.Compact(); err != nil {
			t.Fatal(err)
		}
		r.Close()
		r = open()
		check()
		// What a record has behind the compacted graph is by numbers too.
		mustUpdate(t, r, Update{X: x[:first.x.cols], Sources: []string{"480", "5"}, Targets: []string{"5", "119"}, DeleteNodes: []string{"2"}, ChangeNodes: []string{"118"}, ChangeX: first.x.row(1)})
		want = answers(t, r.Snapshot())
		same(t, r.Snapshot(), dist, folder(t, r.Snapshot()), PredictOptions{})
		r.Close()
		r = open()
		if got := answers(t, r.Snapshot()); len(got) != len(want) {
			t.Fatalf("%d probabilities, want %d", len(got), len(want))
		}
		if s := r.Snapshot(); s.Numbers() != 481 || s.Nodes() != 120 || s.Check(480) != nil || s.Check(2) == nil {
			t.Errorf("%d numbers, %d nodes", s.Numbers(), s.Nodes())
		}
		same(t, r.Snapshot(), dist, folder(t, r.Snapshot()), PredictOptions{})
		r.Close()
	}
}

// Where deleted nodes have what an update needs, their rows are given back for it.
func TestDeletedMakeRoom(t *testing.T) {
	dist, run := exported120(t, "ecl-gsr")
	r, err := OpenGraph(t.Context(), dist, "synthetic", GraphOptions{PredictOptions: PredictOptions{Load: run.Load}, Memory: 1 << 40})
	if err != nil {
		t.Fatal(err)
	}
	held := r.memory.Bytes()
	r.Close()
	r, err = OpenGraph(t.Context(), dist, "synthetic", GraphOptions{PredictOptions: PredictOptions{Load: run.Load}, Memory: held + held/2})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	s := r.Snapshot()
	for round := range 20 {
		var u Update
		for i := range 30 {
			u.DeleteNodes = append(u.DeleteNodes, strconv.Itoa(120+30*round+i))
		}
		mustUpdate(t, r, Update{X: slices.Repeat(s.x.row(3), 30)})
		mustUpdate(t, r, u)
	}
	var growth *GrowthError
	if _, err := r.Update(t.Context(), Update{X: slices.Repeat(s.x.row(3), 500)}); !errors.As(err, &growth) {
		t.Errorf("620 nodes: %v", err)
	}
	if s := r.Snapshot(); s.Nodes() != 120 || s.Numbers() != 720 {
		t.Errorf("%d nodes, %d numbers", s.Nodes(), s.Numbers())
	}
}
