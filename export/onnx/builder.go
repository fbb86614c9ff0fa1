package onnx

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"strconv"

	"google.golang.org/protobuf/proto"

	"github.com/gsrc-dev/gsrc/export/onnxpb"
	"github.com/gsrc-dev/gsrc/internal/lists"
)

// OpsetVersion is the version of the operator set that is written where nothing
// else is asked for: the widest support among runtimes, and the first that has all
// that the lowerings need. MaxOpset is the highest that can be asked for.
const (
	OpsetVersion = 17
	MaxOpset     = 21
)

// IRVersion is the version of the file format that came with an operator set, the
// lowest that runtimes expect.
func IRVersion(opset int) int64 {
	switch {
	case opset < 19:
		return 8
	case opset < 21:
		return 9
	}
	return 10
}

// CheckOpset reads a version; 0 is OpsetVersion.
func CheckOpset(opset int) (int, error) {
	if opset == 0 {
		return OpsetVersion, nil
	}
	if opset < OpsetVersion || opset > MaxOpset {
		return 0, fmt.Errorf("operator set %d cannot be written; choose %d to %d", opset, OpsetVersion, MaxOpset)
	}
	return opset, nil
}

const (
	float32Type = onnxpb.TensorProto_FLOAT
	Int64Type   = onnxpb.TensorProto_INT64
	boolType    = onnxpb.TensorProto_BOOL
	uint8Type   = onnxpb.TensorProto_UINT8
)

// dim is one dimension of a value: a size, a name such as num_nodes, or
// unknown (the zero value with n < 0 and no name).
type dim struct {
	n    int64
	name string
}

func fixed(n int) dim       { return dim{n: int64(n)} }
func named(name string) dim { return dim{n: -1, name: name} }
func (d dim) isFixed() bool { return d.name == "" && d.n >= 0 }
func (d dim) isOne() bool   { return d.isFixed() && d.n == 1 }

var unknown = dim{n: -1}

// tensor is a value of the graph under construction.
type tensor struct {
	name  string
	dtype onnxpb.TensorProto_DataType
	dims  []dim
}

func (t tensor) rank() int { return len(t.dims) }

// width is the fixed size of the last dimension.
func (t tensor) width() int {
	d := t.dims[len(t.dims)-1]
	if !d.isFixed() {
		panic(fmt.Sprintf("export: %s has no fixed width", t.name))
	}
	return int(d.n)
}

// builder puts an ONNX graph together. Names depend on the order of calls
// alone, so equal programs give equal bytes.
type builder struct {
	graph  *onnxpb.GraphProto
	scope  string              // prefix of the names that op makes
	base   string              // prefix of all names, where several functions share the graph; see under
	names  map[string]bool     // value names in use
	next   map[string]int      // per name stem: where the search for a free number begins
	shared map[[32]byte]tensor // initialisers by content
	infos  map[string]*onnxpb.ValueInfoProto
	opset  int // version of the operator set that is written
}

func newBuilder(name, doc string) *builder {
	return &builder{
		graph:  &onnxpb.GraphProto{Name: name, DocString: doc},
		names:  map[string]bool{},
		next:   map[string]int{},
		shared: map[[32]byte]tensor{},
		infos:  map[string]*onnxpb.ValueInfoProto{},
		opset:  OpsetVersion,
	}
}

// unique returns name, or name_1, name_2, … if it is taken.
func (b *builder) unique(name string) string {
	free := name
	for b.names[free] {
		b.next[name]++
		free = name + "_" + strconv.Itoa(b.next[name])
	}
	b.names[free] = true
	return free
}

// in runs f with names prefixed by scope.
func (b *builder) in(scope string, f func()) {
	old := b.scope
	b.scope = old + scope + "/"
	f()
	b.scope = old
}

// under runs f with all names prefixed by that of one of several functions.
func (b *builder) under(function string, f func()) {
	b.in(function, func() {
		old := b.base
		b.base = b.scope
		f()
		b.base = old
	})
}

func valueInfo(t tensor, doc string) *onnxpb.ValueInfoProto {
	shape := &onnxpb.TensorShapeProto{}
	for _, d := range t.dims {
		p := &onnxpb.TensorShapeProto_Dimension{}
		switch {
		case d.name != "":
			p.Value = &onnxpb.TensorShapeProto_Dimension_DimParam{DimParam: d.name}
		case d.n >= 0:
			p.Value = &onnxpb.TensorShapeProto_Dimension_DimValue{DimValue: d.n}
		}
		shape.Dim = append(shape.Dim, p)
	}
	return &onnxpb.ValueInfoProto{
		Name: t.name, DocString: doc,
		Type: &onnxpb.TypeProto{Value: &onnxpb.TypeProto_TensorType{
			TensorType: &onnxpb.TypeProto_Tensor{ElemType: int32(t.dtype), Shape: shape}}},
	}
}

// input declares a graph input.
func (b *builder) input(name, doc string, dtype onnxpb.TensorProto_DataType, dims ...dim) tensor {
	t := tensor{name: b.unique(name), dtype: dtype, dims: dims}
	b.graph.Input = append(b.graph.Input, valueInfo(t, doc))
	return t
}

// reserve keeps a name for an output.
func (b *builder) reserve(name string) error {
	if b.names[name] {
		return fmt.Errorf("the name %s is taken by an input or another output", name)
	}
	b.names[name] = true
	return nil
}

// output declares t as a graph output of a reserved name, through a node of the
// given type whose other inputs leave the value as it is.
func (b *builder) output(t tensor, name, doc string) {
	out := tensor{name: name, dtype: t.dtype, dims: t.dims}
	node := &onnxpb.NodeProto{Name: name, OpType: "Identity", Input: []string{t.name}, Output: []string{out.name}}
	b.graph.Node = append(b.graph.Node, node)
	b.graph.Output = append(b.graph.Output, valueInfo(out, doc))
}

// op appends a node with one result of the given type.
func (b *builder) op(opType string, dtype onnxpb.TensorProto_DataType, dims []dim, inputs []tensor, attrs ...*onnxpb.AttributeProto) tensor {
	return b.multi(opType, []tensor{{dtype: dtype, dims: dims}}, inputs, attrs...)[0]
}

// multi appends a node whose results have the given types.
func (b *builder) multi(opType string, results []tensor, inputs []tensor, attrs ...*onnxpb.AttributeProto) []tensor {
	node := &onnxpb.NodeProto{OpType: opType, Attribute: attrs, Input: lists.Map(inputs, func(t tensor) string { return t.name })}
	results = slices.Clone(results)
	for i := range results {
		results[i].name = b.unique(b.scope + opType)
		node.Output = append(node.Output, results[i].name)
		info := valueInfo(results[i], "")
		b.infos[results[i].name] = info
		b.graph.ValueInfo = append(b.graph.ValueInfo, info)
	}
	node.Name = results[0].name
	b.graph.Node = append(b.graph.Node, node)
	return results
}

// rename gives the result of the last node a name of its own and a line of
// documentation.
func (b *builder) rename(t tensor, name, doc string) tensor {
	info, last := b.infos[t.name], b.graph.Node[len(b.graph.Node)-1]
	if info == nil || len(last.Output) != 1 || last.Output[0] != t.name {
		return t // an input, an initialiser or the result of an earlier node
	}
	delete(b.infos, t.name)
	delete(b.names, t.name)
	t.name = b.unique(b.base + name)
	info.Name, info.DocString = t.name, doc
	last.Output[0], last.Name, last.DocString = t.name, t.name, doc
	b.infos[t.name] = info
	return t
}

// prune drops nodes, initialisers and value infos that no output needs.
func (b *builder) prune() {
	needed := map[string]bool{}
	for _, out := range b.graph.Output {
		needed[out.Name] = true
	}
	var nodes []*onnxpb.NodeProto
	for _, n := range slices.Backward(b.graph.Node) {
		if !slices.ContainsFunc(n.Output, func(name string) bool { return needed[name] }) {
			continue
		}
		nodes = append(nodes, n)
		for _, name := range slices.Concat(n.Input, n.Output) {
			needed[name] = true
		}
	}
	slices.Reverse(nodes)
	b.graph.Node = nodes
	b.graph.Initializer = slices.DeleteFunc(b.graph.Initializer, func(t *onnxpb.TensorProto) bool { return !needed[t.Name] })
	b.graph.ValueInfo = slices.DeleteFunc(b.graph.ValueInfo, func(v *onnxpb.ValueInfoProto) bool { return !needed[v.Name] })
}

// outputsOf is the set of the values that nodes make.
func outputsOf(nodes []*onnxpb.NodeProto) map[string]bool {
	made := map[string]bool{}
	for _, n := range nodes {
		for _, name := range n.Output {
			made[name] = true
		}
	}
	return made
}

func intAttr(name string, v int64) *onnxpb.AttributeProto {
	return &onnxpb.AttributeProto{Name: name, Type: onnxpb.AttributeProto_INT, I: proto.Int64(v)}
}

func intsAttr(name string, v ...int64) *onnxpb.AttributeProto {
	return &onnxpb.AttributeProto{Name: name, Type: onnxpb.AttributeProto_INTS, Ints: v}
}

func floatAttr(name string, v float32) *onnxpb.AttributeProto {
	return &onnxpb.AttributeProto{Name: name, Type: onnxpb.AttributeProto_FLOAT, F: proto.Float32(v)}
}

func stringAttr(name, v string) *onnxpb.AttributeProto {
	return &onnxpb.AttributeProto{Name: name, Type: onnxpb.AttributeProto_STRING, S: []byte(v)}
}

func tensorAttr(name string, t *onnxpb.TensorProto) *onnxpb.AttributeProto {
	return &onnxpb.AttributeProto{Name: name, Type: onnxpb.AttributeProto_TENSOR, T: t}
}

// floats returns an initialiser; ones of equal type, shape and content are
// written once, under the first name.
func (b *builder) floats(name string, data []float32, dims ...int) tensor {
	return b.initializer(name, float32Type, rawData(data), dims)
}

// ints is floats for int64.
func (b *builder) ints(name string, data []int64, dims ...int) tensor {
	return b.initializer(name, Int64Type, rawData(data), dims)
}

func (b *builder) initializer(name string, dtype onnxpb.TensorProto_DataType, raw []byte, dims []int) tensor {
	h := sha256.New()
	fmt.Fprintf(h, "%d %v\n", dtype, dims)
	h.Write(raw)
	key := [32]byte(h.Sum(nil))
	if t, ok := b.shared[key]; ok {
		return t
	}
	t := tensor{name: b.unique(name), dtype: dtype}
	p := &onnxpb.TensorProto{Name: t.name, DataType: int32(dtype), RawData: raw}
	for _, d := range dims {
		t.dims = append(t.dims, fixed(d))
		p.Dims = append(p.Dims, int64(d))
	}
	b.graph.Initializer = append(b.graph.Initializer, p)
	b.shared[key] = t
	return t
}

// int64s is a constant vector; int64Const a constant scalar.
func (b *builder) int64s(v ...int64) tensor    { return b.ints("const", v, len(v)) }
func (b *builder) int64Const(v int64) tensor   { return b.ints("const", []int64{v}) }
func (b *builder) floatConst(v float32) tensor { return b.floats("const", []float32{v}) }

// widths are those of classes of rows, int64 [classes].
func (b *builder) widths(list []int) tensor {
	return b.ints("width", lists.Map(list, func(w int) int64 { return int64(w) }), len(list))
}

// upTo lists 0, 1, …, n−1.
func upTo(n int) []int64 { return lists.Of(n, func(i int) int64 { return int64(i) }) }

// filled returns a tensor of one repeated value whose shape is a value.
func (b *builder) filled(shape tensor, dtype onnxpb.TensorProto_DataType, raw []byte, dims ...dim) tensor {
	value := &onnxpb.TensorProto{Dims: []int64{1}, DataType: int32(dtype), RawData: raw}
	return b.op("ConstantOfShape", dtype, dims, []tensor{shape}, tensorAttr("value", value))
}

func (b *builder) filledFloat(shape tensor, v float32, dims ...dim) tensor {
	return b.filled(shape, float32Type, rawData([]float32{v}), dims...)
}

func (b *builder) filledInt(shape tensor, v int64, dims ...dim) tensor {
	return b.filled(shape, Int64Type, rawData([]int64{v}), dims...)
}

// The methods below are operators of the standard with their result types.

// sizeOf returns dimension axis of t as a vector of one element.
func (b *builder) sizeOf(t tensor, axis int) tensor {
	return b.op("Shape", Int64Type, []dim{fixed(1)}, []tensor{t}, intAttr("start", int64(axis)), intAttr("end", int64(axis+1)))
}

// gather picks rows of t. (Of vectors GatherElements does the same, several times
// faster in onnxruntime.)
func (b *builder) gather(t, index tensor) tensor {
	if t.rank() == 1 && index.rank() == 1 {
		return b.op("GatherElements", t.dtype, index.dims, []tensor{t, index}, intAttr("axis", 0))
	}
	return b.op("Gather", t.dtype, append(slices.Clone(index.dims), t.dims[1:]...), []tensor{t, index}, intAttr("axis", 0))
}

func (b *builder) concat(axis int, ts ...tensor) tensor {
	dims := slices.Clone(ts[0].dims)
	total := int64(0)
	for _, t := range ts {
		if d := t.dims[axis]; total >= 0 && d.isFixed() {
			total += d.n
		} else {
			total = -1
		}
	}
	dims[axis] = dim{n: total}
	return b.op("Concat", ts[0].dtype, dims, ts, intAttr("axis", int64(axis)))
}

func (b *builder) unsqueeze(t tensor, axis int) tensor {
	return b.op("Unsqueeze", t.dtype, slices.Insert(slices.Clone(t.dims), axis, fixed(1)), []tensor{t, b.int64s(int64(axis))})
}

func (b *builder) squeeze(t tensor, axis int) tensor {
	return b.op("Squeeze", t.dtype, slices.Delete(slices.Clone(t.dims), axis, axis+1), []tensor{t, b.int64s(int64(axis))})
}

// reshape changes the shape; shape is a vector that follows ONNX's rules.
func (b *builder) reshape(t, shape tensor, dims ...dim) tensor {
	return b.op("Reshape", t.dtype, dims, []tensor{t, shape})
}

// binary applies an elementwise operator with NumPy's broadcasting.
func (b *builder) binary(opType string, x, y tensor) tensor {
	return b.op(opType, x.dtype, broadcast(x.dims, y.dims), []tensor{x, y})
}

// compare is binary with a boolean result.
func (b *builder) compare(opType string, x, y tensor) tensor {
	return b.op(opType, boolType, broadcast(x.dims, y.dims), []tensor{x, y})
}

func broadcast(x, y []dim) []dim {
	if len(x) < len(y) {
		x, y = y, x
	}
	out := slices.Clone(x)
	off := len(x) - len(y)
	for i, d := range y {
		switch o := &out[off+i]; {
		case d.isOne() || *o == d:
		case o.isOne():
			*o = d
		case !o.isFixed() && d.isFixed():
			*o = d // a name against a size above 1: they are the same at run time
		}
	}
	return out
}

func (b *builder) unary(opType string, x tensor, attrs ...*onnxpb.AttributeProto) tensor {
	return b.op(opType, x.dtype, x.dims, []tensor{x}, attrs...)
}

func (b *builder) cast(x tensor, to onnxpb.TensorProto_DataType) tensor {
	return b.op("Cast", to, x.dims, []tensor{x}, intAttr("to", int64(to)))
}

// reduceOp reduces axes. Where they are an input and where an attribute depends on
// the operator and the version of the operator set.
func (b *builder) reduceOp(opType string, x tensor, axes []int64, keep bool, dims ...dim) tensor {
	kept := int64(0)
	if keep {
		kept = 1
	}
	if opType == "ReduceSum" || b.opset >= 18 {
		return b.op(opType, x.dtype, dims, []tensor{x, b.int64s(axes...)}, intAttr("keepdims", kept))
	}
	return b.op(opType, x.dtype, dims, []tensor{x}, intsAttr("axes", axes...), intAttr("keepdims", kept))
}

// refusal returns a zero, int64 [1], by way of a Gather of the given name that fails
// where wrong, bool [1], is true. What must not run then adds it to what it reads.
func (b *builder) refusal(wrong tensor, name, doc string) tensor {
	zero := b.op("Gather", Int64Type, []dim{fixed(1)}, []tensor{b.int64s(0), b.cast(wrong, Int64Type)}, intAttr("axis", 0))
	return b.rename(zero, name, doc)
}

// ofLength returns a vector, by way of a Reshape that fails where it has not n elements,
// int64 [1]. (With n = 0 any vector passes; there is then nothing to read it for.)
func (b *builder) ofLength(t, n tensor, name, doc string) tensor {
	return b.rename(b.reshape(t, n, t.dims...), name, doc)
}

// outside tells, bool [1], whether an element of index is below 0, or not below n,
// int64 [1].
func (b *builder) outside(index, n tensor) tensor {
	all := b.concat(0, b.reshape(index, b.int64s(-1), unknown), b.int64s(0))
	low := b.reduceOp("ReduceMin", all, []int64{0}, true, fixed(1))
	high := b.reduceOp("ReduceMax", all, []int64{0}, true, fixed(1))
	return b.either(b.compare("Less", low, b.int64Const(0)), b.compare("GreaterOrEqual", high, b.binary("Max", n, b.int64s(1))))
}

// different tells, bool [1], whether two int64 [1] are not equal.
func (b *builder) different(x, y tensor) tensor {
	return b.op("Not", boolType, []dim{fixed(1)}, []tensor{b.compare("Equal", x, y)})
}

func (b *builder) either(x, y tensor) tensor {
	return b.op("Or", boolType, broadcast(x.dims, y.dims), []tensor{x, y})
}

func (b *builder) matmul(x, y tensor) tensor {
	dims := append(slices.Clone(x.dims[:x.rank()-1]), y.dims[y.rank()-1])
	return b.op("MatMul", x.dtype, dims, []tensor{x, y})
}

// nonZero returns the positions where a boolean vector is true.
func (b *builder) nonZero(mask tensor) tensor {
	return b.squeeze(b.op("NonZero", Int64Type, []dim{fixed(1), unknown}, []tensor{mask}), 0)
}

// span returns 0, 1, …, n−1 for a scalar n.
func (b *builder) span(n tensor) tensor {
	return b.op("Range", Int64Type, []dim{unknown}, []tensor{b.int64Const(0), n, b.int64Const(1)})
}

// cumSum returns the sums of the elements of a vector up to each, itself included
// unless exclusive.
func (b *builder) cumSum(t tensor, exclusive bool) tensor {
	without := int64(0)
	if exclusive {
		without = 1
	}
	return b.op("CumSum", t.dtype, t.dims, []tensor{t, b.int64Const(0)}, intAttr("exclusive", without))
}

// ascending returns the size elements of an int64 vector, sorted, and their positions.
func (b *builder) ascending(t, size tensor) []tensor {
	list := tensor{dtype: Int64Type, dims: []dim{unknown}}
	return b.multi("TopK", []tensor{list, list}, []tensor{t, size}, intAttr("axis", 0), intAttr("largest", 0), intAttr("sorted", 1))
}

// scatterAdd adds updates to a vector at the given positions. Vectors alone:
// the N-dimensional operators race in onnxruntime or are slow.
func (b *builder) scatterAdd(data, index, updates tensor) tensor {
	return b.op("ScatterElements", data.dtype, data.dims, []tensor{data, index, updates}, intAttr("axis", 0), stringAttr("reduction", "add"))
}
