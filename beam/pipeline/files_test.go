package pipeline

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/parquet-go/parquet-go"
)

// Unsigned integers have no sign at the borders of signed ones, as ids and as features.
func TestUnsigned(t *testing.T) {
	type row struct {
		ID uint64 `parquet:"id"`
		A  uint32 `parquet:"a"`
		B  uint64 `parquet:"b"`
		C  int32  `parquet:"c"`
	}
	type edge struct {
		Source uint32 `parquet:"source"`
		Target uint64 `parquet:"target"`
	}
	dir := t.TempDir()
	nodes, edges := filepath.Join(dir, "nodes.parquet"), filepath.Join(dir, "edges.parquet")
	if err := parquet.WriteFile(nodes, []row{{1<<63 - 1, 1 << 31, 1 << 63, -1}, {1 << 63, 4e9, 1<<63 - 1, 2}}); err != nil {
		t.Fatal(err)
	}
	if err := parquet.WriteFile(edges, []edge{{1 << 31, 1 << 63}}); err != nil {
		t.Fatal(err)
	}
	ids, x, err := readNodes(t.Context(), Chunk{Path: nodes, Count: 2}, []string{"a", "b", "c"}, 3)
	if err != nil || !slices.Equal(ids, []string{"9223372036854775807", "9223372036854775808"}) || !slices.Equal(x, []float32{1 << 31, 1 << 63, -1, 4e9, 1 << 63, 2}) {
		t.Errorf("%v %v %v", ids, x, err)
	}
	ends, err := readEdges(t.Context(), Chunk{Path: edges, Count: 1})
	if err != nil || !slices.Equal(ends, []string{"2147483648", "9223372036854775808"}) {
		t.Errorf("%v %v", ends, err)
	}
}
