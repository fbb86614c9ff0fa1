package graph

import (
	"slices"
	"strings"
	"testing"

	"github.com/gsrc-dev/gsrc/rng"
	"github.com/gsrc-dev/gsrc/runtime/kernels"
)

// What is aggregated over a field equals the same rows aggregated over the whole
// graph, there and back.
func TestField(t *testing.T) {
	pool := kernels.NewPool(2)
	defer pool.Close()
	const n, f = 40, 3
	for _, directed := range []bool{false, true} {
		g := &Graph{N: n, Directed: directed}
		for i := range int32(n) {
			for _, j := range []int32{i + 1, i*i%7 + i + 2} {
				if j < n && j != i {
					g.Edges = append(g.Edges, [2]int32{i, j})
				}
			}
		}
		if err := g.Validate(); err != nil {
			t.Fatal(err)
		}
		s := g.Structure()
		h, vals, diag := make([]float32, n*f), make([]float32, s.E), make([]float32, n)
		for _, x := range [][]float32{h, vals, diag} {
			pool.Normal(x, rng.New(1, "field").Sub(string(rune('a'+len(x)))))
		}
		all := make([]float32, n*f)
		pool.SpMM(all, s.In, vals, diag, h, f, kernels.Epilogue{})
		field := &Field{}
		for _, targets := range [][]int64{{}, {7}, {3, 1, 30, 2, 3}, {0, 39, 20}} {
			if err := field.Rebuild(s, targets); err != nil {
				t.Fatal(err)
			}
			if err := field.In.Validate(); err != nil {
				t.Fatal(err)
			}
			if err := field.Out.Validate(); err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(field.Sources[:len(targets)], targets) {
				t.Errorf("sources %v do not begin with the targets %v", field.Sources, targets)
			}
			if rest := slices.Sorted(slices.Values(field.Sources[len(targets):])); len(slices.Compact(rest)) != len(rest) {
				t.Errorf("neighbours occur twice in %v", field.Sources)
			}
			want := kernels.Transpose(field.In)
			if !slices.Equal(want.RowPtr, field.Out.RowPtr) || !slices.Equal(want.Col, field.Out.Col) || !slices.Equal(want.Perm, field.Out.Perm) {
				t.Error("Out is not the transpose of In")
			}
			hs, vs, ds := make([]float32, len(field.Sources)*f), make([]float32, field.E), make([]float32, field.N)
			pool.GatherRows(hs, h, field.Sources, f)
			pool.GatherRows(vs, vals, field.Entries, 1)
			pool.GatherRows(ds, diag, targets, 1)
			got, rows := make([]float32, len(targets)*f), make([]float32, len(targets)*f)
			pool.SpMM(got, field.In, vs, ds, hs, f, kernels.Epilogue{})
			pool.GatherRows(rows, all, targets, f)
			if !slices.Equal(got, rows) {
				t.Errorf("targets %v: got %v, want %v", targets, got, rows)
			}
		}
		for _, bad := range []int64{-1, n} {
			if err := field.Rebuild(s, []int64{0, bad}); err == nil || !strings.Contains(err.Error(), "at position 1 is outside 0..39") {
				t.Errorf("target %d: got %v", bad, err)
			}
		}
		targets := []int64{3, 1, 30, 2}
		if a := testing.AllocsPerRun(10, func() { _ = field.Rebuild(s, targets) }); a != 0 {
			t.Errorf("rebuilding allocates %v times", a)
		}
	}
}
