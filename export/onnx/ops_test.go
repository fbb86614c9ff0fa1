package onnx

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/gsrc-dev/gsrc/internal/onnxtest"
	"github.com/gsrc-dev/gsrc/ir"
	"github.com/gsrc-dev/gsrc/rng"
	"github.com/gsrc-dev/gsrc/runtime/ort"
)

// opCase is one way to use an operation: the arguments' types and attributes.
type opCase struct {
	op       string
	attrs    ir.Attrs
	args     []ir.Type // graph<N,E> and f32[E] bind to the graph
	result   *ir.Type  // declared, where the operation wants it
	positive bool      // arguments above zero
	gram     bool      // arguments are the products of the rows of a matrix [4,2]
	weights  bool      // edge weights of 0 and above
}

var (
	nodeMatrix = ir.T(ir.F32, "N", "4")
	nodeVector = ir.T(ir.F32, "N")
	nodeColumn = ir.T(ir.F32, "N", "1")
	edgeVector = ir.T(ir.F32, "E")
	nodeHeads  = ir.T(ir.F32, "N", "2")
	edgeHeads  = ir.T(ir.F32, "E", "2") // made of a nodeHeads argument
	rowVector  = ir.T(ir.F32, "4")
	theGraph   = ir.GraphType("N", "E")
	indices    = ir.T(ir.I64, "B")
	nodePairs  = ir.T(ir.I64, "2", "P")
	edgePairs  = ir.T(ir.I64, "2", "E") // made of the graph
	absent     = ir.T(ir.F32, "absent")
)

func opCases() []opCase {
	cases := []opCase{
		{op: "fill", attrs: ir.Attrs{"value": 1.5}, result: &nodeMatrix, args: []ir.Type{nodeMatrix}},
		{op: "fill", attrs: ir.Attrs{"value": -2}, result: &rowVector, args: []ir.Type{nodeMatrix}},
		{op: "leaky_relu", attrs: ir.Attrs{"slope": 0.1}, args: []ir.Type{nodeMatrix}},
		{op: "pow", attrs: ir.Attrs{"exponent": 1.7}, args: []ir.Type{nodeMatrix}, positive: true},
		{op: "broadcast_to", result: &nodeMatrix, args: []ir.Type{nodeColumn}},
		{op: "broadcast_to", result: &nodeMatrix, args: []ir.Type{rowVector, nodeMatrix}},
		{op: "unsqueeze", args: []ir.Type{nodeVector}},
		{op: "squeeze", args: []ir.Type{nodeColumn}},
		{op: "concat", args: []ir.Type{nodeMatrix, ir.T(ir.F32, "N", "2")}},
		{op: "columns", attrs: ir.Attrs{"from": 1, "width": 2}, args: []ir.Type{nodeMatrix}},
		{op: "slice", attrs: ir.Attrs{"from": 1, "count": 2}, args: []ir.Type{ir.T(ir.F32, "4", "3")}},
		{op: "slice", attrs: ir.Attrs{"from": 0, "count": 3}, args: []ir.Type{ir.T(ir.F32, "4")}},
		{op: "stack", args: []ir.Type{ir.T(ir.F32, "4", "3"), ir.T(ir.F32, "2", "3")}},
		{op: "stack", args: []ir.Type{ir.T(ir.F32, "4"), ir.T(ir.F32, "2")}},
		{op: "gather", args: []ir.Type{nodeMatrix, indices}},
		{op: "gather", args: []ir.Type{nodeVector, indices}},
		{op: "scatter_add", result: &nodeMatrix, args: []ir.Type{ir.T(ir.F32, "B", "4"), indices, nodeMatrix}},
		{op: "scatter_add", result: &nodeVector, args: []ir.Type{ir.T(ir.F32, "B"), indices, nodeMatrix}},
		{op: "pair_dot", args: []ir.Type{nodeMatrix, nodePairs}},
		{op: "pair_dot", args: []ir.Type{nodeMatrix, nodePairs, nodeMatrix}},
		{op: "pair_dot", args: []ir.Type{nodeMatrix, edgePairs, nodeMatrix}},
		{op: "pair_gather", attrs: ir.Attrs{"end": "first"}, args: []ir.Type{nodeVector, nodePairs}},
		{op: "pair_gather", attrs: ir.Attrs{"end": "second"}, args: []ir.Type{nodeVector, nodePairs}},
		{op: "pair_gather", attrs: ir.Attrs{"end": "first"}, args: []ir.Type{nodeVector, edgePairs}},
		{op: "pair_gather", attrs: ir.Attrs{"end": "second"}, args: []ir.Type{nodeVector, edgePairs}},
		{op: "edge_pairs", args: []ir.Type{theGraph, nodeMatrix}},
		{op: "common_neighbors", args: []ir.Type{theGraph, edgeVector, nodeVector, nodePairs}},
		{op: "common_neighbors", args: []ir.Type{theGraph, edgeVector, nodeVector, edgePairs}},
		{op: "common_neighbors", args: []ir.Type{theGraph, absent, nodeVector, nodePairs}},
		{op: "common_neighbors", args: []ir.Type{theGraph, absent, nodeVector, edgePairs}},
		{op: "neighbor_kernel", attrs: ir.Attrs{"tau": 0.7, "most": 3}, args: []ir.Type{theGraph, edgeVector, nodeMatrix, nodePairs}},
		{op: "neighbor_kernel", attrs: ir.Attrs{"tau": 0.7, "most": 100}, args: []ir.Type{theGraph, edgeVector, nodeMatrix, edgePairs}},
		{op: "neighbor_kernel", attrs: ir.Attrs{"tau": 2.0, "most": 2}, args: []ir.Type{theGraph, absent, nodeMatrix, nodePairs}},
		{op: "neighbor_kernel", attrs: ir.Attrs{"tau": 2.0, "most": 1}, args: []ir.Type{theGraph, absent, nodeMatrix, edgePairs}},
		{op: "spectral_map", attrs: ir.Attrs{"map": "soft_inverse_sqrt", "amount": 1e-2}, args: []ir.Type{ir.T(ir.F32, "4", "4")}, gram: true},
		{op: "matmul", args: []ir.Type{nodeMatrix, ir.T(ir.F32, "4", "3")}},
		{op: "matmul", attrs: ir.Attrs{"tb": true}, args: []ir.Type{nodeMatrix, ir.T(ir.F32, "3", "4")}},
		{op: "matmul", attrs: ir.Attrs{"ta": true}, args: []ir.Type{nodeMatrix, ir.T(ir.F32, "N", "3")}},
		{op: "l1_normalize", attrs: ir.Attrs{"eps": 0.5}, args: []ir.Type{nodeMatrix}},
		{op: "l2_normalize", attrs: ir.Attrs{"eps": 0.5}, args: []ir.Type{nodeMatrix}},
		{op: "spmax", args: []ir.Type{theGraph, nodeMatrix}},
		{op: "spmm", args: []ir.Type{theGraph, edgeVector, nodeVector, nodeMatrix}},
		{op: "spmm", attrs: ir.Attrs{"transpose": true}, args: []ir.Type{theGraph, edgeVector, nodeVector, nodeMatrix}},
		{op: "edge_gather", attrs: ir.Attrs{"side": "dst"}, args: []ir.Type{theGraph, nodeVector}},
		{op: "edge_gather", attrs: ir.Attrs{"side": "src"}, args: []ir.Type{theGraph, nodeVector}},
		{op: "edge_sum", attrs: ir.Attrs{"side": "dst"}, args: []ir.Type{theGraph, edgeVector}},
		{op: "edge_sum", attrs: ir.Attrs{"side": "src"}, args: []ir.Type{theGraph, edgeVector}},
		{op: "edge_kth", attrs: ir.Attrs{"k": 2}, args: []ir.Type{theGraph, edgeVector}},
		{op: "edge_ones", args: []ir.Type{theGraph, nodeMatrix}},
		{op: "sddmm", args: []ir.Type{theGraph, nodeMatrix, nodeMatrix}},
		{op: "sddmm", attrs: ir.Attrs{"heads": 2}, args: []ir.Type{theGraph, nodeMatrix, nodeMatrix}},
		{op: "spmm", args: []ir.Type{theGraph, edgeHeads, nodeHeads, nodeMatrix}},
		{op: "spmm", attrs: ir.Attrs{"transpose": true}, args: []ir.Type{theGraph, edgeHeads, nodeHeads, nodeMatrix}},
		{op: "edge_gather", attrs: ir.Attrs{"side": "dst"}, args: []ir.Type{theGraph, nodeMatrix}},
		{op: "edge_sum", attrs: ir.Attrs{"side": "dst"}, args: []ir.Type{theGraph, edgeHeads, nodeMatrix}},
		{op: "edge_sum", attrs: ir.Attrs{"side": "src"}, args: []ir.Type{theGraph, edgeHeads, nodeMatrix}},
		{op: "edge_softmax", args: []ir.Type{theGraph, edgeVector, nodeVector}},
		{op: "edge_softmax", args: []ir.Type{theGraph, edgeHeads, nodeHeads}},
		{op: "edge_softmax", args: []ir.Type{theGraph, edgeHeads, nodeHeads, edgeVector}, weights: true},
		{op: "group_sum", attrs: ir.Attrs{"groups": 2}, args: []ir.Type{nodeMatrix}},
		{op: "group_repeat", attrs: ir.Attrs{"times": 3}, args: []ir.Type{nodeMatrix}},
	}
	for _, name := range []string{"add", "sub", "mul", "div", "maximum", "minimum", "logaddexp", "greater", "greater_equal", "less"} {
		for _, b := range []ir.Type{nodeMatrix, nodeColumn, rowVector, ir.Scalar()} {
			cases = append(cases, opCase{op: name, args: []ir.Type{nodeMatrix, b}})
		}
		cases = append(cases, opCase{op: name, args: []ir.Type{nodeVector, nodeVector}})
	}
	for _, name := range []string{"neg", "exp", "sigmoid", "tanh", "relu", "elu", "square", "stop_gradient", "to_dense", "softmax", "log_softmax", "l1_normalize", "l2_normalize"} {
		cases = append(cases, opCase{op: name, args: []ir.Type{nodeMatrix}})
	}
	cases = append(cases, opCase{op: "scale_grad", attrs: ir.Attrs{"factor": 0.5}, args: []ir.Type{nodeMatrix}})
	for _, name := range []string{"log", "sqrt", "rsqrt"} {
		cases = append(cases, opCase{op: name, args: []ir.Type{nodeMatrix}, positive: true}, opCase{op: name, args: []ir.Type{nodeVector}, positive: true})
	}
	for _, name := range []string{"reduce_sum", "reduce_mean", "reduce_max", "reduce_min", "logsumexp"} {
		for _, axis := range []string{"0", "1", "all"} {
			for _, keep := range []bool{false, true} {
				cases = append(cases, opCase{op: name, attrs: ir.Attrs{"axis": axis, "keep": keep}, args: []ir.Type{nodeMatrix}})
			}
		}
		cases = append(cases, opCase{op: name, attrs: ir.Attrs{"axis": "all"}, args: []ir.Type{ir.Scalar(), nodeMatrix}})
	}
	for _, axis := range []string{"0", "1", "all"} {
		cases = append(cases, opCase{op: "count", attrs: ir.Attrs{"axis": axis}, args: []ir.Type{nodeMatrix}})
	}
	return cases
}

// module wraps the operation in a function. Results over the edges are summed
// into the targets, since edges have no order of their own outside.
func (c opCase) module() *ir.Module {
	m := ir.NewModule("op")
	b := m.NewFunc("f")
	var args []*ir.Value
	var graph *ir.Value
	hasNodes := false
	for i, t := range c.args {
		name := fmt.Sprintf("a%d", i)
		if t.Equal(edgeHeads) {
			a := b.Arg(name, nodeHeads)
			at := func(side string) *ir.Value { return b.One("edge_gather", ir.Attrs{"side": side}, graph, a) }
			args, hasNodes = append(args, b.Sub(at("src"), b.One("square", nil, at("dst")))), true
			continue
		}
		if t.Equal(absent) {
			args = append(args, nil)
			continue
		}
		if t.Equal(edgePairs) {
			if graph == nil {
				graph = b.Arg("g", theGraph)
			}
			args = append(args, b.One("edge_pairs", nil, graph))
			continue
		}
		a := b.Arg(name, t)
		args = append(args, a)
		if t.IsGraph() {
			graph = a
		} else {
			hasNodes = hasNodes || t.Dims != nil && t.Dims[0] == "N"
		}
	}
	if !hasNodes {
		b.Arg("nodes", nodeMatrix)
	}
	def := ir.Lookup(c.op)
	if n := len(def.Operands); len(args) > n { // the rest only gives N a meaning
		args = args[:n]
	}
	var declared []ir.Type
	if c.result != nil {
		declared = []ir.Type{*c.result}
	}
	results := b.OpTyped(c.op, c.attrs, declared, args...)
	for i, r := range results[1:] {
		b.Return(fmt.Sprintf("also%d", i), r)
	}
	y := results[0]
	if y.Type.Equal(edgePairs) {
		x := b.Arg("x", nodeVector)
		end := func(end string) *ir.Value { return b.One("pair_gather", ir.Attrs{"end": end}, x, y) }
		y = b.Sub(end("first"), b.One("square", nil, end("second")))
	}
	if graph != nil && y.Type.Rank() > 0 && y.Type.Dims[0] == "E" {
		b.Return("into", b.One("edge_sum", ir.Attrs{"side": "dst"}, graph, y))
		b.Return("weighted", b.One("reduce_sum", ir.Attrs{"axis": "all"}, b.Mul(y, y)))
		return m
	}
	b.Return("y", y)
	return m
}

func (c opCase) inputs(fn *ir.Func, g *onnxtest.Graph, b int) map[string]ort.Tensor {
	in := map[string]ort.Tensor{}
	size := map[ir.Dim]int{"N": g.N, "B": b, "P": b}
	for _, a := range fn.Args {
		switch {
		case a.Type.IsGraph():
			in["edge_index"] = g.EdgeIndex()
			continue
		case a.Type.Rank() == 1 && a.Type.Dims[0] == "E":
			w := onnxtest.RandomFloats("w", len(g.Src))
			for i, v := range w {
				if c.weights {
					w[i] = max(v, 0)
				}
			}
			in["edge_weight"] = ort.Float32s(w, int64(len(w)))
			continue
		}
		n, shape := 1, []int64{}
		for _, d := range a.Type.Dims {
			k, ok := d.Size()
			if !ok {
				k = size[d]
			}
			n *= k
			shape = append(shape, int64(k))
		}
		if a.Type.DType == ir.I64 {
			ix := make([]int64, n)
			for i := range ix {
				ix[i] = int64(rng.New(5, a.Name).Intn(uint64(i), g.N))
			}
			in[a.Name] = ort.Int64s(ix, shape...)
			continue
		}
		x := onnxtest.RandomFloats(a.Name, n)
		for i, v := range x {
			if c.positive || c.op == "div" && a.Name == "a1" {
				x[i] = v/2 + 0.75
			} else {
				x[i] = 3 * v
			}
		}
		if c.gram && a.Name == "a0" {
			rows := slices.Clone(x[:8])
			for i := range x {
				u, v := rows[i/4*2:], rows[i%4*2:]
				x[i] = u[0]*v[0] + u[1]*v[1]
			}
		}
		in[a.Name] = ort.Float32s(x, shape...)
	}
	return in
}

// graphs are those on which the case runs.
func (c opCase) graphs() []*onnxtest.Graph {
	all := onnxtest.Graphs()
	graphs := []*onnxtest.Graph{all[0], all[1], all[2], all[3], all[5]}
	if c.op == "common_neighbors" || c.op == "neighbor_kernel" {
		graphs = append(graphs, all[4], all[6], all[7], all[9])
	}
	return graphs
}

// denseInPrograms have a dense form on values that a program computes, but not on
// its arguments: single edges, and vectors. TestModels runs them in the dense
// exports of whole models.
var denseInPrograms = []string{"edge_gather", "edge_ones", "spmm", "unsqueeze"}

// TestOperations compares each line of the table with the reference evaluation
// in float64, on small, one-node and empty shapes.
func TestOperations(t *testing.T) {
	covered, dense := map[string]bool{}, map[string]bool{}
	for _, c := range opCases() {
		covered[c.op] = true
		m := c.module()
		fn := m.Func("f")
		lowerings := []Lowering{DegreeBuckets}
		if GraphArg(fn) != nil {
			lowerings = []Lowering{DegreeBuckets, Scatter}
		}
		if opEmitters[c.op].dense {
			lowerings = append(lowerings, Dense)
		}
		for _, l := range lowerings {
			t.Run(fmt.Sprintf("%s%v/%v/%s", c.op, c.attrs, c.args, l), func(t *testing.T) {
				model, err := Model(fn, nil, ModelOptions{Lowering: l})
				if err != nil {
					// Some uses have no dense form, and the error says which; that the
					// operation has one at all is checked below.
					if l == Dense && (strings.Contains(err.Error(), "the dense form") || strings.Contains(err.Error(), "with the dense lowering")) {
						t.Skip(err)
					}
					t.Fatal(err)
				}
				if l == Dense {
					dense[c.op] = true
				}
				data, err := Marshal(model)
				if err != nil {
					t.Fatal(err)
				}
				s := onnxtest.Open(t, data, 1)
				for _, g := range c.graphs() {
					for _, b := range []int{0, 1, 9} {
						in := c.inputs(fn, g, b)
						want, err := Interpreter(m, nil, nil)("f", in)
						if err != nil {
							t.Fatal(err)
						}
						if l == Dense {
							in = denseInputs(t, g, in)
						}
						got := onnxtest.Run(t, s, in)
						if l != Dense { // there a vector is a matrix
							onnxtest.Compare(t, g.Name, got, want)
							continue
						}
						for name, w := range want {
							w.Shape = got[name].Shape
							onnxtest.Compare(t, g.Name, map[string]ort.Tensor{name: got[name]}, map[string]ort.Tensor{name: w})
						}
					}
				}
			})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(opEmitters)) {
		if !covered[name] {
			t.Errorf("operation %s is in the export table, and no case tests it", name)
		}
		if opEmitters[name].dense && !dense[name] && !slices.Contains(denseInPrograms, name) {
			t.Errorf("operation %s has a dense form, and no case of it runs", name)
		}
	}
}
