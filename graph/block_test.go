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
func TestBlock(t *testing.T) {
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
		field := &Block{}
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

// A padded field aggregates the same, over fields of fields as well: what is appended
// has no entries and is read by none.
func TestPaddedField(t *testing.T) {
	g := &Graph{N: 30}
	for i := range int32(29) {
		g.Edges = append(g.Edges, [2]int32{i, i + 1})
	}
	s := g.Structure()
	targets := []int64{3, 9, 20}
	var exact, padded [2]Block
	for k, f := range []*[2]Block{&exact, &padded} {
		rows, n := targets, len(targets)
		for hop := range f {
			if err := f[hop].RebuildFirst(s, rows, n); err != nil {
				t.Fatal(err)
			}
			if k == 1 {
				f[hop].Pad(16*(hop+1), 32)
				if len(f[hop].Sources) != 16*(hop+1) || f[hop].E != 32 || len(f[hop].Entries) != 32 {
					t.Errorf("hop %d: %d sources and %d entries", hop, len(f[hop].Sources), f[hop].E)
				}
			}
			rows, n = f[hop].Sources, f[hop].NumValid
		}
	}
	for hop := range exact {
		a, b := &exact[hop], &padded[hop]
		for r := range b.N {
			first, last := b.In.RowPtr[r], b.In.RowPtr[r+1]
			if r >= a.N {
				if first != last {
					t.Errorf("hop %d: row %d, which was appended, has entries", hop, r)
				}
				continue
			}
			if first != a.In.RowPtr[r] || last != a.In.RowPtr[r+1] || !slices.Equal(a.Entries[first:last], b.Entries[first:last]) {
				t.Errorf("hop %d: row %d has other entries", hop, r)
			}
			for e := first; e < last; e++ {
				if a.Sources[a.In.Col[e]] != b.Sources[b.In.Col[e]] {
					t.Errorf("hop %d: entry %d comes from %d, want %d", hop, e, b.Sources[b.In.Col[e]], a.Sources[a.In.Col[e]])
				}
			}
		}
		real := int(b.Out.RowPtr[len(b.Sources)])
		if real != a.E || len(b.Out.RowPtr) != len(b.Sources)+1 {
			t.Errorf("hop %d: Out has %d entries in %d rows, want %d", hop, real, len(b.Sources), a.E)
		}
		for r := range b.Sources {
			for e := b.Out.RowPtr[r]; e < b.Out.RowPtr[r+1]; e++ {
				if b.In.Col[b.Out.Perm[e]] != int32(r) || int(b.Out.Col[e]) >= a.N {
					t.Errorf("hop %d: Out is not the transpose at row %d", hop, r)
				}
			}
		}
	}
	if a := testing.AllocsPerRun(5, func() {
		_ = padded[0].Rebuild(s, targets)
		padded[0].Pad(16, 32)
	}); a != 0 {
		t.Errorf("padding again allocates %v times", a)
	}
	var empty Block
	if err := empty.Rebuild(s, nil); err != nil {
		t.Fatal(err)
	}
	if empty.Pad(8, 8); len(empty.Sources) != 0 || empty.E != 0 {
		t.Errorf("an empty field is padded to %d sources and %d entries", len(empty.Sources), empty.E)
	}
}

// BenchmarkBlock samples the blocks of 4096 nodes, two layers deep, in a graph
// of ogbn-arxiv's size.
func BenchmarkBlock(b *testing.B) {
	const n, m, count = 169_343, 1_166_243, 4096
	s := rng.New(1, "arxiv")
	src, dst := make([]int32, m), make([]int32, m)
	for i := range src {
		// Half of all edges lead to an eighth of the nodes.
		u := s.Sub("ends").Uniform(uint64(i))
		src[i], dst[i] = int32(s.Intn(uint64(i), n)), int32(float32(n)*u*u*u)
	}
	g, _, err := Build(n, src, dst, nil, false)
	if err != nil {
		b.Fatal(err)
	}
	st, first, next, targets := g.Structure(), &Block{}, &Block{}, make([]int64, count)
	for step := uint64(0); b.Loop(); step++ {
		for i := range targets {
			targets[i] = int64(s.At(step).Intn(uint64(i), n))
		}
		if err := first.Rebuild(st, targets); err != nil {
			b.Fatal(err)
		}
		if err := next.Rebuild(st, first.Sources); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(next.E), "entries")
}
