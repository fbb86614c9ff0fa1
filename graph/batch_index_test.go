package graph

import (
	"slices"
	"testing"
)

func TestRebuildBatchIndex(t *testing.T) {
	s := &Structure{}
	for _, offset := range [][]int32{{0, 2, 2, 5}, {0}, {0, 1}, {0, 3, 4, 4}} {
		s.RebuildBatchIndex(offset)
		graphs, nodes := len(offset)-1, int(offset[len(offset)-1])
		if s.N != graphs || s.E != nodes || s.In.Rows != graphs || s.In.Cols != nodes || s.Out.Rows != nodes || s.Out.Cols != graphs {
			t.Fatalf("%v: %d graphs and %d entries, in [%d,%d], out [%d,%d]", offset, s.N, s.E, s.In.Rows, s.In.Cols, s.Out.Rows, s.Out.Cols)
		}
		for _, m := range []interface{ Validate() error }{s.In, s.Out} {
			if err := m.Validate(); err != nil {
				t.Fatalf("%v: %v", offset, err)
			}
		}
		if !slices.Equal(s.In.RowPtr, offset) {
			t.Errorf("%v: the rows are %v", offset, s.In.RowPtr)
		}
		src, dst := s.EdgeIndex()
		for v := range nodes {
			g := dst[v]
			if src[v] != int64(v) || int32(v) < offset[g] || int32(v) >= offset[g+1] || int64(s.Out.Col[v]) != g {
				t.Errorf("%v: node %d leads to graph %d", offset, v, g)
			}
		}
	}
	large := []int32{0, 400, 900, 1000}
	s.RebuildBatchIndex(large)
	if n := testing.AllocsPerRun(10, func() { s.RebuildBatchIndex(large); s.RebuildBatchIndex(large[:2]) }); n != 0 {
		t.Errorf("rebuilding takes new memory %v times", n)
	}
}
