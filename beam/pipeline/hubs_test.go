package pipeline

import (
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"testing"

	"github.com/parquet-go/parquet-go"

	"github.com/gsrc-dev/gsrc/graph"
)

// hubs has nodes of so many entries be hubs.
func hubs(t *testing.T, entries int32) {
	t.Helper()
	was := hubEntries
	hubEntries = entries
	t.Cleanup(func() { hubEntries = was })
}

// wheel is a ring of nodes, each joined to the two next ones on both sides and alike to those, and where spokes
// are wanted one node in the middle that is joined to all.
func wheel(n int, spokes bool) (edges [][2]int) {
	for v := range n {
		edges = append(edges, [2]int{v, (v + 1) % n}, [2]int{v, (v + 2) % n})
		if d := v - n/2; spokes && (d > 2 || d < -2) {
			edges = append(edges, [2]int{v, n / 2})
		}
	}
	return edges
}

func wheelShards(t *testing.T, runDir string, n, features int, spokes bool) Options {
	t.Helper()
	var nodes []nodeRow
	for v := range n {
		row := nodeRow{ID: fmt.Sprint("v", v), X: make([]float32, features)}
		for j := range row.X {
			at := float64(v)/float64(n)*float64(features) - float64(j)
			at -= math.Round(at/float64(features)) * float64(features)
			row.X[j] = float32(math.Exp(-at * at))
		}
		nodes = append(nodes, row)
	}
	var edges []edgeRow
	for _, e := range wheel(n, spokes) {
		edges = append(edges, edgeRow{fmt.Sprint("v", e[0]), fmt.Sprint("v", e[1])})
	}
	dir := t.TempDir()
	if err := parquet.WriteFile(filepath.Join(dir, "nodes-0.parquet"), nodes); err != nil {
		t.Fatal(err)
	}
	if err := parquet.WriteFile(filepath.Join(dir, "edges-0.parquet"), edges); err != nil {
		t.Fatal(err)
	}
	return Options{Run: runDir, Nodes: dir + "/nodes-*.parquet", Edges: dir + "/edges-*.parquet"}
}

// What a call that judges candidates is sent does not grow with the entries of a node that all others are
// joined to, nor with the pairs of the first nodes, which are candidates of all others since they share that one with them.
func TestHub(t *testing.T) {
	const n = 1200
	hubs(t, 64)
	r := trainedOnly(t, "ecl-gsr", "candidates.similarity=evidence", "candidates.two_step=5", "candidates.k=3", "candidates.mutual=false")
	largest := func(spokes bool) map[string]int64 {
		o := wheelShards(t, r.Dir, n, r.Data.X.Cols, spokes)
		o.Partitions, o.Out = 16, filepath.Join(t.TempDir(), "out")
		p, err := Refine(t.Context(), o)
		if err == nil {
			_, err = p.Run(t.Context(), *runner)
		}
		if err != nil {
			t.Fatal(err)
		}
		bytes := map[string]int64{}
		for _, s := range p.Stages {
			bytes[s.Name] = s.Largest
		}
		return bytes
	}
	without, with := largest(false), largest(true)
	for _, stage := range []string{"two steps", "candidates", "judge"} {
		if with[stage] > without[stage]*2 {
			t.Errorf("%s: a call is sent %d bytes where a node is joined to all, %d where it is not", stage, with[stage], without[stage])
		}
	}
	same(t, Refine, wheelShards(t, r.Dir, n, r.Data.X.Cols, true), 3)
}

// Lists of entries are sent as far only as two steps are followed over them, and what is found is the same.
func TestStepsOfHub(t *testing.T) {
	const n, k, partitions = 120_000, 3, 2
	ctx := t.Context()
	g := &graph.Graph{N: n}
	var entries []int64 // target and source by turns
	for _, e := range wheel(n, true) {
		g.Edges = append(g.Edges, [2]int32{int32(e[0]), int32(e[1])})
		entries = append(entries, int64(e[0]), int64(e[1]), int64(e[1]), int64(e[0]))
	}
	want, _ := graph.TwoStep(nil, g, k)
	l := Layout{n, partitions}
	of := make([][]byte, partitions)
	sent := map[int64][][]byte{}
	for p := range l.Partitions {
		lo, end := l.start(p), l.start(p+1)
		var own []int64
		for x := range slices.Chunk(entries, 2) {
			if x[0] >= lo && x[0] < end {
				own = append(own, x...)
			}
		}
		ptr, col := rowsOf(lo, int(end-lo), own)
		var err error
		if of[p], err = newState(l, p, ptr, col).bytes(); err != nil {
			t.Fatal(err)
		}
		err = (&tellingFn[stepsFn]{Step: stepsFn{}}).ProcessElement(ctx, p, of[p], func(q int64, b []byte) { sent[q] = append(sent[q], b) })
		if err != nil {
			t.Fatal(err)
		}
	}
	iterate := func(list [][]byte) func(*[]byte) bool {
		return func(b *[]byte) bool {
			if len(list) == 0 {
				return false
			}
			*b, list = list[0], list[1:]
			return true
		}
	}
	for p := range l.Partitions {
		size := 0
		for _, b := range sent[p] {
			size += len(b)
		}
		if most := 2 * graph.TwoStepWalks * 8; size > most { // ids of entries, and those of the lists
			t.Errorf("partition %d was sent %d bytes, more than %d", p, size, most)
		}
		err := (&joinedFn[twoStepFn]{Step: twoStepFn{k}}).ProcessElement(ctx, p, iterate([][]byte{of[p]}), iterate(sent[p]), func(_ int64, b []byte) {
			s, err := parseState(b)
			if err != nil {
				t.Fatal(err)
			}
			for i, v := range array[int64](s.table, nearPrefix+"two_step") {
				if int64(want[int(s.lo)*k+i]) != v {
					t.Fatalf("node %d: found %d, in the whole graph %d", int(s.lo)+i/k, v, want[int(s.lo)*k+i])
				}
			}
		}, nil)
		if err != nil {
			t.Fatal(err)
		}
	}
}
