package infer

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/gsrc-dev/gsrc/export/onnx"
	"github.com/gsrc-dev/gsrc/graph"
	"github.com/gsrc-dev/gsrc/runtime/ort"
)

// Scorer runs a model that judges by evidence, such as [dist.Dist.ScoreByEvidence]: the
// edges of a graph, each without itself, and pairs of nodes as new ones. weight is nil where
// it reads none.
type Scorer func(x, edgeIndex, pairs ort.Tensor, weight *ort.Tensor) (map[string]ort.Tensor, error)

// pairsAtOnce bounds how many pairs a scorer is asked for, each of which takes some rows of 128
// numbers. As many as it judges edges, every time, it may be asked for in any case.
const pairsAtOnce = 1 << 18

// Candidates returns how likely candidates for edges of g are edges, and the evidence for
// them by source, in the order of its names. x are the features of the nodes, [N,D]; info
// says whether weights of edges count.
func (score Scorer) Candidates(x ort.Tensor, g *graph.Graph, c *graph.Candidates, info *Info) (p []float32, evidence []graph.Evidence, err error) {
	g = g.Undirected()
	st := g.Structure()
	index, weight := EdgeIndex(st), info.EntryWeights(g, st)
	first := make([]int, st.E) // entry of each edge
	for i, k := range slices.Backward(st.EdgeOf) {
		first[k] = i
	}
	edge := 0 // candidates that exist are sorted as edges are
	some := max(pairsAtOnce, st.E)
	for lo := 0; lo < len(c.Edges); lo += some {
		hi := min(lo+some, len(c.Edges))
		var pairs []int64
		for end := range 2 {
			for _, e := range c.Edges[lo:hi] {
				pairs = append(pairs, int64(e[end]))
			}
		}
		out, err := score(x, index, ort.Int64s(pairs, 2, int64(hi-lo)), weight)
		if err != nil {
			return nil, nil, fmt.Errorf("scorer: %w", err)
		}
		sources := []string{"probability"}
		for _, name := range slices.Sorted(maps.Keys(out)) {
			if strings.HasPrefix(name, onnx.EvidencePrefix) {
				sources = append(sources, name)
			}
		}
		if evidence == nil {
			evidence = make([]graph.Evidence, len(sources))
		}
		at := edge
		for k, name := range sources {
			fresh, old := out[name].F32, out["edge_"+name].F32
			if len(fresh) != hi-lo || len(old) != st.E {
				return nil, nil, fmt.Errorf("the scorer gave %s of %d pairs and %d edges for %d and %d", name, len(fresh), len(old), hi-lo, st.E)
			}
			edge = at
			for i := lo; i < hi; i++ {
				v := fresh[i-lo]
				if c.Existing[i] {
					v = old[first[edge]]
					edge++
				}
				evidence[k].Values = append(evidence[k].Values, v)
			}
			evidence[k].Source = strings.TrimPrefix(name, onnx.EvidencePrefix)
		}
	}
	if evidence == nil {
		return nil, nil, nil
	}
	if v := notFinite(1, evidence[0].Values); v >= 0 {
		return nil, nil, &FiniteError{What: fmt.Sprintf("the edge %d–%d, by the scorer,", c.Edges[v][0], c.Edges[v][1])}
	}
	return evidence[0].Values, evidence[1:], nil
}
