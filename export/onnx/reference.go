package onnx

import (
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/gsrc-dev/gsrc/internal/lists"
	"github.com/gsrc-dev/gsrc/ir"
	"github.com/gsrc-dev/gsrc/runtime/ort"
)

// Forward computes an exported function with the compiler's own means: from the
// inputs as the ONNX model takes them (edge_index, not adjacency) to all
// outputs by name. fn is "encode", "score" or "classify".
type Forward func(fn string, inputs map[string]ort.Tensor) (map[string]ort.Tensor, error)

// Graph reads edge_index [2,E] (sources, then targets) as the exported models
// do: self-loops are dropped, duplicates kept. The second result gives for each
// entry of the graph its position in edge_index, by which edge weights are
// picked.
func Graph(nodes int, edgeIndex ort.Tensor) (*ir.Graph, []int, error) {
	if err := edgeIndex.Check(); err != nil {
		return nil, nil, fmt.Errorf("edge_index: %w", err)
	}
	if edgeIndex.DType != ort.Int64 || len(edgeIndex.Shape) != 2 || edgeIndex.Shape[0] != 2 {
		return nil, nil, fmt.Errorf("edge_index is %v of shape %v, want int64 [2,E]", edgeIndex.DType, edgeIndex.Shape)
	}
	e := int(edgeIndex.Shape[1])
	src, dst := edgeIndex.I64[:e], edgeIndex.I64[e:]
	var at []int
	for i := range e {
		if min(src[i], dst[i]) < 0 || max(src[i], dst[i]) >= int64(nodes) {
			return nil, nil, fmt.Errorf("edge_index: edge %d goes from %d to %d, outside the nodes 0 to %d", i, src[i], dst[i], nodes-1)
		}
		if src[i] != dst[i] {
			at = append(at, i)
		}
	}
	slices.SortStableFunc(at, func(a, b int) int {
		if c := dst[a] - dst[b]; c != 0 {
			return int(c)
		}
		return int(src[a] - src[b])
	})
	g := &ir.Graph{N: nodes, Row: make([]int, len(at)), Col: make([]int, len(at))}
	for k, i := range at {
		g.Row[k], g.Col[k] = int(dst[i]), int(src[i])
	}
	return g, at, nil
}

// Adjacency returns the matrix that the dense form takes in place of edge_index
// and edge_weight (nil: ones): entry (i, j) sums the weights of the edges from j
// to i, and the diagonal is 0.
func Adjacency(nodes int, edgeIndex ort.Tensor, weight *ort.Tensor) (ort.Tensor, error) {
	g, at, err := Graph(nodes, edgeIndex)
	if err != nil {
		return ort.Tensor{}, err
	}
	if err := CheckWeights(edgeIndex, weight); err != nil {
		return ort.Tensor{}, err
	}
	a := make([]float32, nodes*nodes)
	for k, i := range at {
		w := float32(1)
		if weight != nil {
			w = weight.F32[i]
		}
		a[g.Row[k]*nodes+g.Col[k]] += w
	}
	return ort.Float32s(a, int64(nodes), int64(nodes)), nil
}

// LoopWeights returns what [ArgSelfLoops] stands for: the weights [nodes] of the self-loops in
// edge_index, the last of equal ones, and -1 of nodes that have none. weight nil is ones.
func LoopWeights(nodes int, edgeIndex ort.Tensor, weight *ort.Tensor) []float32 {
	loops := slices.Repeat([]float32{-1}, nodes)
	e := len(edgeIndex.I64) / 2
	for i, v := range edgeIndex.I64[:e] {
		if v != edgeIndex.I64[e+i] {
			continue
		}
		loops[v] = 1
		if weight != nil {
			loops[v] = weight.F32[i]
		}
	}
	return loops
}

// EdgeWeight returns edge_weight among a model's inputs, nil if it is not.
func EdgeWeight(inputs map[string]ort.Tensor) *ort.Tensor {
	if w, ok := inputs[InputEdgeWeight]; ok {
		return &w
	}
	return nil
}

func CheckWeights(edgeIndex ort.Tensor, weight *ort.Tensor) error {
	if weight == nil {
		return nil
	}
	if weight.DType != ort.Float32 || !slices.Equal(weight.Shape, edgeIndex.Shape[1:]) {
		return fmt.Errorf("edge_weight is %v of shape %v, want float32 %v", weight.DType, weight.Shape, edgeIndex.Shape[1:])
	}
	return weight.Check()
}

// Interpreter returns the Forward that runs a module in the float64 reference
// interpreter: slow, and right by definition. constants replaces scalar
// arguments, as in [ModelOptions].
func Interpreter(m *ir.Module, params map[string][]float32, constants map[string]float32) Forward {
	ps := map[string]*ir.Tensor{}
	return func(name string, inputs map[string]ort.Tensor) (map[string]ort.Tensor, error) {
		fn := m.Func(name)
		if fn == nil {
			return nil, fmt.Errorf("module %s has no function @%s", m.Name, name)
		}
		for _, p := range m.Params {
			data, ok := params[p.Name]
			if !ok || ps[p.Name] != nil {
				continue
			}
			shape, err := p.Type.Shape(nil)
			if err != nil {
				return nil, err
			}
			t := ir.NewTensor(shape...)
			if len(t.Data) != len(data) {
				return nil, fmt.Errorf("parameter $%s is %s, got %d numbers", p.Name, p.Type, len(data))
			}
			for i, v := range data {
				t.Data[i] = float64(v)
			}
			ps[p.Name] = t
		}
		args, at, err := Arguments(fn, inputs, constants)
		if err != nil {
			return nil, err
		}
		values := make([]ir.Val, len(args))
		for i, a := range args {
			if values[i].G = a.Graph; a.Graph == nil {
				values[i].T = toReference(a.Tensor)
			}
		}
		results, err := ir.Interpret(m, name, values, ps, nil)
		if err != nil {
			return nil, err
		}
		out := map[string]ort.Tensor{}
		for i, r := range fn.Results {
			out[r.Name] = fromReference(results[i].T)
			if OfEdges(fn, r.Value) {
				out[r.Name] = EdgeValues(out[r.Name].F32, at, int(inputs[InputEdgeIndex].Shape[1]))
			}
		}
		return out, nil
	}
}

// OutputMargin begins the names of results of [WithMargins].
const OutputMargin = "margin."

// WithMargins returns m where @probability also tells by how much what it chooses by edge_kth is above
// the k-th, or below: what is as near as rounding comes out otherwise in another computation.
func WithMargins(m *ir.Module) *ir.Module {
	m = m.Clone()
	f := m.Func("probability")
	if f == nil {
		return m
	}
	b := ir.NewBuilder(m, f)
	for i, op := range slices.Clone(f.Body) {
		if op.Name() == "edge_kth" {
			kth := b.One("edge_gather", ir.Attrs{"side": "dst"}, op.Operands[0], op.Result())
			b.Return(OutputMargin+strconv.Itoa(i), b.Sub(op.Operands[1], kth))
		}
	}
	return m
}

// OfEdges tells that a function gives a number for each edge of its graph.
func OfEdges(fn *ir.Func, v *ir.Value) bool {
	g := GraphArg(fn)
	return g != nil && OverEdges(v, g)
}

// EdgeValues brings values of the entries of [Graph] in the order of edge_index, of so
// many edges, as models give them: 0 of self-loops. at is what Graph returns.
func EdgeValues(values []float32, at []int, edges int) ort.Tensor {
	out := make([]float32, edges)
	for k, i := range at {
		out[i] = values[k]
	}
	return ort.Float32s(out, int64(edges))
}

// Argument is an argument of a function: a graph, or numbers.
type Argument struct {
	Graph  *ir.Graph
	Tensor ort.Tensor
}

// Arguments turns a model's inputs into a function's arguments, and returns where
// edge_index lists the entries of the graph. constants replaces scalar arguments, as in
// [ModelOptions].
func Arguments(fn *ir.Func, inputs map[string]ort.Tensor, constants map[string]float32) (args []Argument, at []int, err error) {
	graph := GraphArg(fn)
	var g *ir.Graph
	if graph != nil {
		n := -1
		for _, a := range fn.Args {
			if t, ok := inputs[a.Name]; ok && !a.Type.IsGraph() && a.Type.Rank() > 0 && a.Type.Dims[0] == graph.Type.Dims[0] && len(t.Shape) > 0 {
				n = int(t.Shape[0])
			}
		}
		if n < 0 {
			return nil, nil, errors.New("no input tells the number of nodes")
		}
		index, ok := inputs[InputEdgeIndex]
		if !ok {
			return nil, nil, errors.New("input edge_index is missing")
		}
		if g, at, err = Graph(n, index); err != nil {
			return nil, nil, err
		}
	}
	for _, a := range fn.Args {
		var arg Argument
		switch c, constant := constants[a.Name]; {
		case a.Type.IsBlock(): // it leads from nodes to their graphs
			ids, ok := inputs[InputGraphIDs]
			if !ok {
				return nil, nil, errors.New("input graph_ids is missing")
			}
			if arg.Graph, err = Batch(ids); err != nil {
				return nil, nil, err
			}
		case a.Type.IsGraph():
			arg.Graph = g
		case graph != nil && OverEdges(a, graph):
			w := slices.Repeat([]float32{1}, len(at))
			if t, ok := inputs[InputEdgeWeight]; ok {
				for k, i := range at {
					w[k] = t.F32[i]
				}
			}
			arg.Tensor = ort.Float32s(w, int64(len(w)))
		case graph != nil && a.Name == ArgSelfLoops:
			arg.Tensor = ort.Float32s(LoopWeights(g.N, inputs[InputEdgeIndex], EdgeWeight(inputs)), int64(g.N))
		case constant:
			arg.Tensor = ort.Float32s([]float32{c})
		default:
			t, ok := inputs[a.Name]
			if !ok {
				return nil, nil, fmt.Errorf("input %s is missing", a.Name)
			}
			if err := t.Check(); err != nil {
				return nil, nil, fmt.Errorf("input %s: %w", a.Name, err)
			}
			arg.Tensor = t
		}
		args = append(args, arg)
	}
	return args, at, nil
}

func toReference(t ort.Tensor) *ir.Tensor {
	out := &ir.Tensor{Data: make([]float64, t.Len()), Shape: lists.Map(t.Shape, func(d int64) int { return int(d) })}
	for i := range out.Data {
		switch t.DType {
		case ort.Float32:
			out.Data[i] = float64(t.F32[i])
		case ort.Int64:
			out.Data[i] = float64(t.I64[i])
		}
	}
	return out
}

func fromReference(t *ir.Tensor) ort.Tensor {
	data := lists.Map(t.Data, func(v float64) float32 { return float32(v) })
	return ort.Float32s(data, lists.Map(t.Shape, func(d int) int64 { return int64(d) })...)
}

// CheckIndices refuses node numbers out of range: onnxruntime reads negative
// ones from the end.
func CheckIndices(what string, t ort.Tensor, nodes int64) error {
	if err := t.Check(); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	if t.DType != ort.Int64 || len(t.Shape) != 2 || t.Shape[0] != 2 {
		return fmt.Errorf("%s is %v of shape %v, want int64 [2,n]", what, t.DType, t.Shape)
	}
	n := int(t.Shape[1])
	for i, v := range t.I64 {
		if v < 0 || v >= nodes {
			return fmt.Errorf("%s: row %d, column %d is %d, outside the nodes 0 to %d", what, i/n, i%n, v, nodes-1)
		}
	}
	return nil
}
