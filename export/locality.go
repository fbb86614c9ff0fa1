package export

import (
	"fmt"
	"slices"

	"github.com/gsrc-dev/gsrc/ir"
)

// rowwise are operations whose results' row of a node depends on that node's row of
// their operands, and on operands that are the same for all nodes.
var rowwise = []string{
	"add", "sub", "mul", "div", "maximum", "minimum", "logaddexp", "greater", "greater_equal", "less",
	"neg", "exp", "log", "sqrt", "sigmoid", "tanh", "relu", "elu", "leaky_relu", "square", "rsqrt", "pow", "stop_gradient", "scale_grad", "to_dense",
	"softmax", "log_softmax", "l1_normalize", "l2_normalize", "columns", "concat", "unsqueeze", "squeeze", "group_sum", "group_repeat", "fill", "edge_ones",
}

// hops returns how many edges away from a node the features lie that its results of
// a function depend on. Degrees do not count, where they are sums of edge weights: a
// cut of the graph can keep them. It is an error if a result of a node depends on the
// whole graph.
func hops(fn *ir.Func) (int, error) {
	g := graphArg(fn)
	if batchArg(fn) != nil {
		return 0, fmt.Errorf("@%s classifies whole graphs", fn.Name)
	}
	depth := map[*ir.Value]int{}
	byNode := func(v *ir.Value) bool {
		return g != nil && v != nil && !v.Type.IsGraph() && v.Type.Rank() > 0 && v.Type.Dims[0] == g.Type.Dims[0]
	}
	for _, op := range fn.Body {
		most, local := 0, true
		for _, v := range op.Operands {
			if v != nil {
				most = max(most, depth[v])
			}
		}
		switch name := op.Name(); {
		case g == nil && name != "matmul", slices.Contains(rowwise, name):
		case name == "matmul":
			local = !byNode(op.Operands[1]) && !op.Bool("ta")
		case name == "spmm":
			// The sum's own term lies no further than the node itself.
			most = 0
			for k, v := range op.Operands[1:] {
				if v == nil {
					continue
				}
				if most = max(most, depth[v]); k == 2 {
					most = max(most, depth[v]+1)
				}
			}
		case name == "spmax":
			most++
		case name == "edge_gather":
			if op.Str("side") == "src" {
				most++
			}
		case name == "edge_sum":
			local = op.Str("side") == "dst"
			if op.Operands[1].Def != nil { // not the edge weights themselves
				most = max(1, most)
			}
		case name == "edge_softmax":
			most = max(1, most)
		case slices.ContainsFunc(op.Operands, byNode):
			local = false
		}
		if name := op.Name(); g != nil && (name == "reduce_sum" || name == "reduce_mean" || name == "reduce_max" || name == "reduce_min" || name == "logsumexp") {
			local = op.Str("axis") == "1" || !slices.ContainsFunc(op.Operands, byNode)
		}
		if !local {
			return 0, fmt.Errorf("@%s: %s gives every node something of the whole graph", fn.Name, op.Results[0].Name)
		}
		for _, r := range op.Results {
			depth[r] = most
		}
	}
	most := 0
	for _, r := range fn.Results {
		most = max(most, depth[r.Value])
	}
	return most, nil
}
