package inspect

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/gsrc-dev/gsrc/export/manifest"
	"github.com/gsrc-dev/gsrc/export/onnx"
	"github.com/gsrc-dev/gsrc/export/onnxpb"
	"github.com/gsrc-dev/gsrc/runtime/ort"
	"google.golang.org/protobuf/proto"
)

// Cost is what one run of a model takes, counted from the shapes that its values
// have on given inputs. Flops are additions, multiplications, comparisons and
// functions of floating point, a multiply-add being two; Bytes is what operations
// read and write, as if nothing stayed in a cache between them.
type Cost struct {
	Nodes int `json:"nodes"` // of the graph
	Edges int `json:"edges"`

	Flops int64 `json:"flops"`
	Bytes int64 `json:"bytes"`
	// PerNode is the share of the operations whose values have a row a node, per
	// node; PerEdge that of those whose values depend on the edges, per edge. What
	// depends on neither is Fixed.
	PerNode Share `json:"per_node"`
	PerEdge Share `json:"per_edge"`
	Fixed   Share `json:"fixed"`
}

// Share is a part of a cost.
type Share struct {
	Flops float64 `json:"flops"`
	Bytes float64 `json:"bytes"`
}

// ErrNoTestData says that there are no inputs beside a file to measure it on.
var ErrNoTestData = errors.New("no test data stand beside the file")

// TestInputs reads the inputs that an export keeps of a model beside it, in
// test_data_set_0/NAME; [ErrNoTestData] if it keeps none.
func (i *Inspection) TestInputs(path string) (map[string]ort.Tensor, error) {
	dir := filepath.Join(filepath.Dir(path), manifest.TestDataDir, strings.TrimSuffix(filepath.Base(path), filepath.Ext(path)))
	in := map[string]ort.Tensor{}
	for k := range i.Inputs {
		name, t, err := onnx.ReadTensor(filepath.Join(dir, fmt.Sprintf("input_%d.pb", k)))
		if errors.Is(err, fs.ErrNotExist) {
			return nil, ErrNoTestData
		}
		if err != nil {
			return nil, err
		}
		in[name] = t
	}
	return in, nil
}

// shapeSession is a model whose outputs are the shapes of all its values.
type ShapeSession struct {
	*Inspection
	session *ort.Session
	values  []string
}

const shapePrefix = "gsrc_shape_of/"

// shapeSession opens the model for its shapes.
func (i *Inspection) OpenShapes(o ort.Options) (*ShapeSession, error) {
	m := proto.Clone(i.model).(*onnxpb.ModelProto)
	if err := internalize(i.dir, m); err != nil {
		return nil, err
	}
	g := m.Graph
	s := &ShapeSession{Inspection: i}
	for _, n := range g.Node {
		for _, out := range n.Output {
			if out != "" {
				s.values = append(s.values, out)
			}
		}
	}
	g.Output, g.ValueInfo = nil, nil
	for _, v := range s.values {
		g.Node = append(g.Node, &onnxpb.NodeProto{OpType: "Shape", Input: []string{v}, Output: []string{shapePrefix + v}})
		g.Output = append(g.Output, &onnxpb.ValueInfoProto{Name: shapePrefix + v, Type: &onnxpb.TypeProto{Value: &onnxpb.TypeProto_TensorType{TensorType: &onnxpb.TypeProto_Tensor{ElemType: int32(onnx.Int64Type)}}}})
	}
	data, err := onnx.Marshal(m)
	if err != nil {
		return nil, err
	}
	s.session, err = ort.OpenBytes(data, o)
	return s, err
}

// shapes runs the model on inputs and returns the shape of every value that its
// nodes give.
func (i *Inspection) shapes(inputs map[string]ort.Tensor, o ort.Options) (map[string][]int64, error) {
	s, err := i.OpenShapes(o)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	return s.run(inputs)
}

// Close frees the model.
func (s *ShapeSession) Close() error { return s.session.Close() }

// run runs the model and returns the shape of every value that its nodes give.
func (s *ShapeSession) run(inputs map[string]ort.Tensor) (map[string][]int64, error) {
	results, err := s.session.Run(inputs)
	if err != nil {
		return nil, err
	}
	shapes := map[string][]int64{}
	for _, v := range s.values {
		shapes[v] = results[shapePrefix+v].I64
	}
	return shapes, nil
}

// peak runs the model and returns how many bytes its values take at most at a time,
// each from the operator that gives it to the last that reads it, and the outputs twice:
// they are copied.
func (s *ShapeSession) Peak(inputs map[string]ort.Tensor) (int64, error) {
	shapes, err := s.run(inputs)
	if err != nil {
		return 0, err
	}
	c := counter{Inspection: s.Inspection, sizes: map[string]size{}, kinds: map[string]int{}}
	for v, dims := range shapes {
		c.sizes[v] = size{dims, 8} // where the file does not tell the type
	}
	c.types()
	last := map[string]int{}
	for k, n := range s.model.Graph.Node {
		for _, v := range n.Input {
			last[v] = k
		}
	}
	bytes := func(v string) int64 { return elements(c.sizes[v].dims) * c.sizes[v].bytes }
	var live, most, outputs int64
	for _, v := range s.model.Graph.Output {
		last[v.GetName()] = len(s.model.Graph.Node)
		outputs += bytes(v.GetName())
	}
	for k, n := range s.model.Graph.Node {
		for _, v := range n.Output {
			live += bytes(v)
		}
		most = max(most, live)
		gone := map[string]bool{}
		for _, v := range slices.Concat(n.Input, n.Output) {
			if last[v] <= k && !gone[v] {
				gone[v] = true
				live -= bytes(v)
			}
		}
	}
	return most + outputs, nil
}

// Measure runs the model on inputs with all its shapes as outputs, and enters the
// cost, also in Operations.
func (i *Inspection) Measure(inputs map[string]ort.Tensor, o ort.Options) error {
	shapes, err := i.shapes(inputs, o)
	if err != nil {
		return err
	}
	c := counter{Inspection: i, sizes: map[string]size{}, kinds: map[string]int{}}
	for name, t := range inputs {
		c.sizes[name] = size{t.Shape, map[ort.DType]int64{ort.Float32: 4, ort.Int64: 8, ort.Bool: 1}[t.DType]}
	}
	for _, t := range i.model.Graph.Initializer {
		c.sizes[t.GetName()] = size{t.GetDims(), elementTypes[t.GetDataType()].size}
	}
	for v, dims := range shapes {
		c.sizes[v] = size{dims, 4}
	}
	c.types()
	c.count(inputs)
	return nil
}

// size is the shape of a value and the bytes of an element.
type size struct {
	dims  []int64
	bytes int64
}

// counter adds up.
type counter struct {
	*Inspection
	sizes map[string]size
	kinds map[string]int // by value: what its number of elements depends on
}

// What a value depends on.
const (
	onNothing = iota
	onNodes
	onEdges
)

// types enters element types and what dimensions depend on, by the file's own
// descriptions of its values. A dimension without a name is one that the data
// decide, such as the nodes of a bucket, and counts with the edges.
func (c *counter) types() {
	g := c.model.Graph
	for _, v := range slices.Concat(g.Input, g.ValueInfo, g.Output) {
		t := v.GetType().GetTensorType()
		if s, ok := c.sizes[v.GetName()]; ok {
			if b := elementTypes[t.GetElemType()].size; b > 0 {
				s.bytes = b
			}
			c.sizes[v.GetName()] = s
		}
		for _, d := range t.GetShape().GetDim() {
			kind := onNothing
			switch {
			case d.GetDimParam() == "num_nodes":
				kind = onNodes
			case d.GetDimParam() != "" || d.GetValue() == nil:
				kind = onEdges
			}
			c.kinds[v.GetName()] = max(c.kinds[v.GetName()], kind)
		}
	}
}

// views are operations that need not touch their data.
var views = []string{"Reshape", "Squeeze", "Unsqueeze", "Identity", "Shape", "Flatten"}

// selections read a part of their first operand.
var selections = []string{"Gather", "GatherElements", "Slice"}

// flops returns the floating-point operations of a node.
func (c *counter) flops(n *onnxpb.NodeProto) int64 {
	at := func(names []string, k int) int64 {
		if k >= len(names) || names[k] == "" {
			return 0
		}
		return elements(c.sizes[names[k]].dims)
	}
	in, out := at(n.Input, 0), at(n.Output, 0)
	switch op := n.GetOpType(); op {
	case "MatMul", "Gemm", "MatMulInteger":
		dims := c.sizes[n.Input[0]].dims
		if len(dims) == 0 {
			return 0
		}
		inner := dims[len(dims)-1]
		for _, a := range n.Attribute {
			if op == "Gemm" && a.GetName() == "transA" && a.GetI() == 1 {
				inner = dims[0]
			}
		}
		return 2 * out * inner
	case "Add", "Sub", "Mul", "Div", "Max", "Min", "Pow", "Neg", "Abs", "Exp", "Log", "Sqrt", "Reciprocal", "Sigmoid", "Tanh", "Relu", "LeakyRelu", "Elu", "Clip":
		if c.integers(n) {
			return 0
		}
		return out
	case "Sum":
		return int64(len(n.Input)-1) * out
	case "ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceL1", "ReduceL2", "ReduceLogSumExp", "CumSum":
		if c.integers(n) {
			return 0
		}
		if strings.HasPrefix(op, "ReduceL") {
			in *= 2
		}
		return in
	case "Softmax", "LogSoftmax":
		return 5 * out // maximum, difference, exponential, sum, quotient
	case "ScatterElements", "ScatterND":
		if c.integers(n) {
			return 0
		}
		return at(n.Input, 2)
	}
	return 0
}

// integers reports whether a node computes with whole numbers, which are no flops.
func (c *counter) integers(n *onnxpb.NodeProto) bool { return c.sizes[n.Output[0]].bytes == 8 }

// count adds up the nodes.
func (c *counter) count(inputs map[string]ort.Tensor) {
	cost := &Cost{}
	for _, name := range []string{"x", "embedding"} {
		if t, ok := inputs[name]; ok {
			cost.Nodes = int(t.Shape[0])
		}
	}
	for _, name := range []string{onnx.InputEdgeIndex, "pairs"} {
		if t, ok := inputs[name]; ok {
			cost.Edges = int(t.Shape[1])
		}
	}
	shares := [3]Share{}
	for k := range c.Operations {
		c.Operations[k].Flops, c.Operations[k].Bytes = 0, 0
	}
	for _, n := range c.model.Graph.Node {
		if len(n.Output) == 0 || len(n.Input) == 0 {
			continue
		}
		flops, bytes, kind := c.flops(n), int64(0), onNothing
		for k, v := range slices.Concat(n.Input, n.Output) {
			kind = max(kind, c.kinds[v])
			s := c.sizes[v]
			switch {
			case v == "" || slices.Contains(views, n.GetOpType()):
				continue
			case k == 0 && slices.Contains(selections, n.GetOpType()):
				s = c.sizes[n.Output[0]] // of its operand it reads as much as it gives
			}
			bytes += elements(s.dims) * s.bytes
		}
		cost.Flops += flops
		cost.Bytes += bytes
		shares[kind].Flops += float64(flops)
		shares[kind].Bytes += float64(bytes)
		k := slices.IndexFunc(c.Operations, func(o OperationCount) bool { return o.Type == operation(n) })
		c.Operations[k].Flops += flops
		c.Operations[k].Bytes += bytes
	}
	per := func(s Share, n int) Share { return Share{s.Flops / float64(max(1, n)), s.Bytes / float64(max(1, n))} }
	cost.Fixed, cost.PerNode, cost.PerEdge = shares[onNothing], per(shares[onNodes], cost.Nodes), per(shares[onEdges], cost.Edges)
	c.Cost = cost
}

// ReadAll inspects an ONNX file, or every one of an export folder, in the order of
// their names.
func ReadAll(path string) (files []string, list []*Inspection, err error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, nil, err
	}
	files = []string{path}
	if info.IsDir() {
		if files, err = filepath.Glob(filepath.Join(path, "*.onnx")); err != nil {
			return nil, nil, err
		}
		if len(files) == 0 {
			return nil, nil, fmt.Errorf("%s holds no .onnx file", path)
		}
		slices.Sort(files)
	}
	for _, f := range files {
		i, err := Read(f)
		if err != nil {
			return nil, nil, err
		}
		list = append(list, i)
	}
	return files, list, nil
}
