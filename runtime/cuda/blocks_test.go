//go:build darwin || linux

package cuda

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/gsrc-dev/gsrc/graph"
	"github.com/gsrc-dev/gsrc/rng"
	"github.com/gsrc-dev/gsrc/runtime"
	"github.com/gsrc-dev/gsrc/runtime/kernels"
)

// blockMemory is the memory of a block that the test can read.
type blockMemory struct {
	runtime.DeviceBlock
	counts           []int32
	sources, entries []int64
	in, out          kernels.CSR
	inRow, outRow    []int32
}

func newBlock(t *testing.T, q *hostQueue, f runtime.DeviceBlock) *blockMemory {
	m := &blockMemory{DeviceBlock: f, counts: make([]int32, runtime.BlockCounts)}
	e, s := f.MaxEntries, f.MaxSources()
	m.sources, m.entries, m.inRow, m.outRow = make([]int64, s), make([]int64, e), make([]int32, e), make([]int32, e)
	m.in = kernels.CSR{RowPtr: make([]int32, f.MaxTargets+1), Col: make([]int32, e)}
	m.out = kernels.CSR{RowPtr: make([]int32, s+1), Col: make([]int32, e), Perm: make([]int32, e)}
	m.Counts, m.Sources, m.Entries = place(t, q, m.counts), place(t, q, m.sources), place(t, q, m.entries)
	m.In = runtime.DeviceCSR{RowPtr: place(t, q, m.in.RowPtr), Col: place(t, q, m.in.Col), Row: place(t, q, m.inRow)}
	m.Out = runtime.DeviceCSR{RowPtr: place(t, q, m.out.RowPtr), Col: place(t, q, m.out.Col), Row: place(t, q, m.outRow), Perm: place(t, q, m.out.Perm)}
	m.Work = place(t, q, make([]int64, blockWorkBytes(&m.DeviceBlock)/8+1))
	return m
}

// compare holds the block against that of the host.
func (m *blockMemory) compare(t *testing.T, want *graph.Block, targets int) {
	t.Helper()
	n := m.counts
	if n[runtime.BlockWrong] != math.MaxInt32 || n[runtime.BlockNeeded] != 0 {
		t.Fatalf("counts %v", n)
	}
	if int(n[runtime.BlockTargets]) != targets || int(n[runtime.BlockSources]) != want.NumValid || int(n[runtime.BlockAllSources]) != len(want.Sources) || int(n[runtime.BlockAllEntries]) != want.E {
		t.Fatalf("counts %v, want %d targets, %d sources (%d padded), %d entries padded", n, targets, want.NumValid, len(want.Sources), want.E)
	}
	rows := func(c *kernels.CSR) []int32 {
		r := make([]int32, len(c.Col))
		for i := range len(c.RowPtr) - 1 {
			for e := c.RowPtr[i]; e < c.RowPtr[i+1]; e++ {
				r[e] = int32(i)
			}
		}
		return r
	}
	e := want.E
	for _, c := range []struct {
		name      string
		got, want []int32
	}{
		{"in offsets", m.in.RowPtr[:targets+1], want.In.RowPtr}, {"columns", m.in.Col[:e], want.In.Col}, {"rows", m.inRow[:e], rows(want.In)},
		{"out offsets", m.out.RowPtr[:len(want.Sources)+1], want.Out.RowPtr}, {"out columns", m.out.Col[:e], want.Out.Col},
		{"out rows", m.outRow[:e], rows(want.Out)}, {"places", m.out.Perm[:e], want.Out.Perm},
	} {
		if !slices.Equal(c.got, c.want) {
			t.Errorf("%s are %v, want %v", c.name, c.got, c.want)
		}
	}
	if got := m.sources[:len(want.Sources)]; !slices.Equal(got, want.Sources) {
		t.Errorf("sources %v, want %v", got, want.Sources)
	}
	if got := m.entries[:e]; !slices.Equal(got, want.Entries) {
		t.Errorf("entries %v, want %v", got, want.Entries)
	}
}

// The device's blocks are the host's: of random targets, of none and of all, some of
// them twice, in directed and undirected graphs, of one layer and of the next, padded
// and not, with no more room than they need.
func TestSampleBlock(t *testing.T) {
	q := newQueue(t)
	for _, n := range []int{1, 40, 700} {
		for _, directed := range []bool{false, true} {
			s := rng.New(uint64(n), "graph")
			var src, dst []int32
			for i := range 3 * n {
				u, v := s.Intn(uint64(2*i), n), s.Intn(uint64(2*i+1), n)
				if i%4 == 0 {
					v = 0 // a hub
				}
				if u != v {
					src, dst = append(src, int32(u)), append(dst, int32(v))
				}
			}
			g, _, err := graph.Build(n, src, dst, nil, directed)
			if err != nil {
				t.Fatal(err)
			}
			st := g.Structure()
			whole := &runtime.DeviceCSR{Rows: n, Cols: n, NNZ: st.E, RowPtr: place(t, q, st.In.RowPtr), Col: place(t, q, st.In.Col)}
			for _, count := range []int{0, 1, n/2 + 1, n} {
				for _, pads := range []bool{false, true} {
					t.Run(fmt.Sprint(n, directed, count, pads), func(t *testing.T) {
						targets := make([]int64, count)
						for i := range targets {
							targets[i] = int64(s.Sub("targets").Intn(uint64(i), n))
						}
						var want [2]graph.Block
						must := func(err error) {
							if err != nil {
								t.Fatal(err)
							}
						}
						pad := func(f *graph.Block) {
							if pads {
								f.Pad(runtime.PaddedRows(len(f.Sources)), runtime.PaddedEntries(f.E))
							}
						}
						must(want[0].Rebuild(st, targets))
						pad(&want[0])
						must(want[1].RebuildFirst(st, want[0].Sources, want[0].NumValid))
						pad(&want[1])
						first := newBlock(t, q, runtime.DeviceBlock{Graph: whole, Targets: place(t, q, targets), Pads: pads, MaxTargets: count, MaxEntries: want[0].E})
						next := newBlock(t, q, runtime.DeviceBlock{Graph: whole, From: &first.DeviceBlock, Targets: first.Sources, Pads: pads, MaxTargets: first.MaxSources(), MaxEntries: want[1].E + 300})
						for range 2 { // the second time over what the first has left
							must(queued(q, func(q *steps) {
								sampleBlock(q, &first.DeviceBlock)
								sampleBlock(q, &next.DeviceBlock)
							}))
						}
						first.compare(t, &want[0], count)
						next.compare(t, &want[1], len(want[0].Sources))
					})
				}
			}
		}
	}
}

// A block without room says how much it needs and is empty, and so is the next one;
// a target outside of the graph is named.
func TestSampleBlockWithoutRoom(t *testing.T) {
	q := newQueue(t)
	g, _, err := graph.Build(50, []int32{0, 1, 2, 3}, []int32{4, 4, 4, 4}, nil, false)
	if err != nil {
		t.Fatal(err)
	}
	st := g.Structure()
	whole := &runtime.DeviceCSR{Rows: 50, Cols: 50, NNZ: st.E, RowPtr: place(t, q, st.In.RowPtr), Col: place(t, q, st.In.Col)}
	targets := []int64{4, 7, 0}
	first := newBlock(t, q, runtime.DeviceBlock{Graph: whole, Targets: place(t, q, targets), MaxTargets: 3, MaxEntries: 4})
	next := newBlock(t, q, runtime.DeviceBlock{Graph: whole, From: &first.DeviceBlock, Targets: first.Sources, MaxTargets: first.MaxSources(), MaxEntries: 4})
	find := func() {
		for _, f := range []*blockMemory{first, next} {
			if err := queued(q, func(q *steps) { sampleBlock(q, &f.DeviceBlock) }); err != nil {
				t.Fatal(err)
			}
		}
	}
	find()
	if n := first.counts; n[runtime.BlockNeeded] != 5 || n[runtime.BlockAllEntries] != 0 || n[runtime.BlockTargets] != 0 {
		t.Errorf("without room: counts %v, want 5 entries needed", n)
	}
	if n := next.counts; n[runtime.BlockNeeded] != 0 || n[runtime.BlockAllSources] != 0 {
		t.Errorf("behind a block without room: counts %v", n)
	}
	for _, bad := range []int64{-1, 50, 1 << 40} {
		targets[0], targets[1], targets[2] = 7, bad, bad
		find()
		if n := first.counts; n[runtime.BlockWrong] != 1 || n[runtime.BlockAllEntries] != 0 {
			t.Errorf("target %d: counts %v, want position 1", bad, n)
		}
	}
	targets[0], targets[1], targets[2] = 4, 7, 8
	find()
	if n := first.counts; n[runtime.BlockNeeded] != 0 || n[runtime.BlockEntries] != 4 || n[runtime.BlockSources] != 7 {
		t.Errorf("with room: counts %v", n)
	}
}
