package onnx

import (
	"fmt"
	"slices"

	"github.com/gsrc-dev/gsrc/ir"
)

// hops returns how many edges away from a node the features lie that its results of
// a function depend on. Degrees do not count, where they are sums of edge weights: a
// cut of the graph can keep them. It is an error if a result of a node depends on the
// whole graph.
func ReceptiveHops(fn *ir.Func) (int, error) {
	return hopsOf(fn, fn.Body, fn.Results, nil)
}

// hopsOf is ReceptiveHops of some results, which the operations compute; those whose results
// are of pairs may read the nodes of these.
func hopsOf(fn *ir.Func, ops []*ir.Op, results []ir.Result, pairs map[*ir.Value]bool) (int, error) {
	if BatchArg(fn) != nil {
		return 0, fmt.Errorf("@%s classifies whole graphs", fn.Name)
	}
	depth, perRow := map[*ir.Value]int{}, hasRows(fn)
	for _, op := range ops {
		most := 0
		for i, v := range op.Operands {
			if v == nil || v.Type.IsGraph() {
				continue
			}
			switch read := op.Reads(i); read {
			case ir.ReadAll, ir.ReadPairs:
				if perRow(v) && (read == ir.ReadAll || !pairs[op.Result()]) {
					return 0, fmt.Errorf("@%s: %s gives every node something of the whole graph", fn.Name, op.Results[0].Name)
				}
			case ir.ReadSources:
				most = max(most, depth[v]+1)
			case ir.ReadEntries:
				if v.Def != nil { // not the edge weights themselves
					most = max(most, depth[v], 1)
				}
			default:
				most = max(most, depth[v])
			}
		}
		for _, r := range op.Results {
			depth[r] = most
		}
	}
	most := 0
	for _, r := range results {
		most = max(most, depth[r.Value])
	}
	return most, nil
}

// hasRows tells the values of a function that have a row for each node or edge. Without
// a graph, those that have as many rows as its first result.
func hasRows(fn *ir.Func) func(*ir.Value) bool {
	var dims []ir.Dim
	if g := GraphArg(fn); g != nil {
		dims = g.Type.Dims
	} else if len(fn.Results) > 0 && fn.Results[0].Value.Type.Rank() > 0 {
		dims = fn.Results[0].Value.Type.Dims[:1]
	}
	return func(v *ir.Value) bool {
		return !v.Type.IsGraph() && v.Type.Rank() > 0 && slices.Contains(dims, v.Type.Dims[0])
	}
}
