//go:build darwin || linux

package cuda

import (
	"fmt"
	"slices"
	"testing"
	"unsafe"

	"github.com/gsrc-dev/gsrc/graph"
	"github.com/gsrc-dev/gsrc/internal/cudatest"
	"github.com/gsrc-dev/gsrc/rng"
	"github.com/gsrc-dev/gsrc/runtime"
)

// arrayOf copies n elements from the device.
func arrayOf[T int32 | int64 | float32](t *testing.T, d *Device, at uintptr, n int) []T {
	t.Helper()
	x := make([]T, n)
	if n > 0 {
		if err := d.Download(unsafe.Slice((*byte)(unsafe.Pointer(&x[0])), n*int(unsafe.Sizeof(x[0]))), at); err != nil {
			t.Fatal(err)
		}
	}
	return x
}

// Candidates that the device chooses, and the graph that it makes of them, are the
// host's: with few neighbours and with more than there are nodes, mutual and not, with
// and without existing edges, one after another in the same memory.
func TestDeviceCandidates(t *testing.T) {
	cudatest.Either(t)
	d := openDevice(t)
	for _, n := range []int{1, 2, 60, 400} {
		s := rng.New(uint64(n), "edges")
		for _, m := range []int{0, 3 * n} {
			var src, dst []int32
			for i := range m {
				if u, v := s.Intn(uint64(2*i), n), s.Intn(uint64(2*i+1), n); u != v {
					src, dst = append(src, int32(u)), append(dst, int32(v))
				}
			}
			g, _, err := graph.Build(n, src, dst, nil, false)
			if err != nil {
				t.Fatal(err)
			}
			all := runtime.NewCandidates(g.Undirected(), nil)
			c, err := all.OnDevice(d.DeviceBuffers)
			if err != nil {
				t.Fatal(err)
			}
			for _, k := range []int{0, 1, 5, n + 1} {
				if k > 60 {
					continue
				}
				for _, mutual := range []bool{false, true} {
					t.Run(fmt.Sprint(n, m, k, mutual), func(t *testing.T) {
						rows := exactRows(n, 16, uint64(k))
						emb := runtime.F32(rows, n, 16)
						if err := d.ToDevice(emb); err != nil {
							t.Fatal(err)
						}
						defer d.Release(emb)
						if err := d.Candidates(all, emb, runtime.CandidateOptions{K: k, Mutual: mutual, Index: graph.IndexExact}); err != nil {
							t.Fatal(err)
						}
						idx, _ := graph.KNN(nil, rows, n, 16, k)
						want, err := graph.NewCandidates(g, idx, k, mutual)
						if err != nil {
							t.Fatal(err)
						}
						st := want.Graph().Structure()
						got, err := all.Host()
						if err != nil {
							t.Fatal(err)
						}
						if !slices.Equal(got.Edges, want.Edges) || !slices.Equal(got.Existing, want.Existing) {
							t.Fatalf("candidates %v %v, want %v %v", got.Edges, got.Existing, want.Edges, want.Existing)
						}
						if c.Graph.Graph.E != st.E || c.Graph.Graph.N != n {
							t.Fatalf("the graph has %d nodes and %d entries, want %d and %d", c.Graph.Graph.N, c.Graph.Graph.E, n, st.E)
						}
						for _, a := range []struct {
							name string
							at   uintptr
							want []int32
						}{
							{"in offsets", c.Graph.Device.In.RowPtr, st.In.RowPtr}, {"columns", c.Graph.Device.In.Col, st.In.Col},
							{"out offsets", c.Graph.Device.Out.RowPtr, st.Out.RowPtr}, {"out columns", c.Graph.Device.Out.Col, st.Out.Col}, {"places", c.Graph.Device.Out.Perm, st.Out.Perm},
						} {
							if got := arrayOf[int32](t, d, a.at, len(a.want)); !slices.Equal(got, a.want) {
								t.Errorf("%s %v, want %v", a.name, got, a.want)
							}
						}
						row, old := arrayOf[int32](t, d, c.Graph.Device.In.Row, st.E), arrayOf[float32](t, d, c.Old.Device.Elements, st.E)
						for v := range n {
							for p := st.In.RowPtr[v]; p < st.In.RowPtr[v+1]; p++ {
								if row[p] != int32(v) || (old[p] == 1) != want.Existing[st.EdgeOf[p]] {
									t.Fatalf("entry %d: row %d, old %g; want %d, %v", p, row[p], old[p], v, want.Existing[st.EdgeOf[p]])
								}
							}
						}
						for i, p := range arrayOf[int64](t, d, c.Entry.Device.Elements, len(want.Edges)) {
							if st.EdgeOf[p] != int32(i) {
								t.Errorf("entry %d is of edge %d, not %d", p, st.EdgeOf[p], i)
							}
						}
					})
				}
			}
			for _, b := range []*runtime.Buffer{c.Known, c.Memory} {
				if err := d.Release(b); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	for _, b := range []*runtime.Buffer{&d.near, &d.chosen} {
		if err := d.Release(b); err != nil {
			t.Fatal(err)
		}
	}
	if now, _ := d.Held(); now != 0 {
		t.Errorf("%d bytes are held", now)
	}
}
