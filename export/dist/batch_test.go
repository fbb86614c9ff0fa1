package dist

import (
	"strings"
	"testing"

	"github.com/gsrc-dev/gsrc/runtime/ort"
)

// An edge of a batch joins nodes of one graph, whatever the order of the nodes is.
func TestEdgesOfABatch(t *testing.T) {
	edges := func(ends ...int64) ort.Tensor { return ort.Int64s(ends, 2, int64(len(ends)/2)) }
	ids := []int64{0, 2, 0, 2}
	for _, within := range []ort.Tensor{edges(), edges(0, 2, 1, 2, 0, 3)} {
		if err := withinGraphs(within, ids); err != nil {
			t.Error(err)
		}
	}
	if err := withinGraphs(edges(0, 4, 2, 2), ids); err == nil || !strings.Contains(err.Error(), "outside the nodes") {
		t.Errorf("of a node that is not there: %v", err)
	}
	_, err := (&Dist{}).ClassifyGraphs(ort.Float32s(make([]float32, 4), 4, 1), edges(0, 3, 2, 2), nil, ort.Int64s(ids, 4))
	if err == nil || !strings.Contains(err.Error(), "edge 1 joins node 3 of graph 2 and node 2 of graph 0") {
		t.Errorf("between two graphs: %v", err)
	}
}
