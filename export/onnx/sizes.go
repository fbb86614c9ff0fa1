package onnx

import (
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/gsrc-dev/gsrc/export/onnxpb"
	"github.com/gsrc-dev/gsrc/internal/lists"
)

// sizes names dimensions whose size only a run tells, equal ones alike. onnxruntime's memory
// planner compares each freed buffer with each later result: where it cannot see that two are
// of one size it reuses none of them, and takes time that is quadratic in the nodes, most of
// what it takes to open a large model. Two dimensions have one name only if they are equal
// in every run, whatever the inputs; a wrong name would make onnxruntime refuse to run.
type sizes struct {
	dims     map[string][]dim // of values
	elements map[string][]dim // of int64 values of rank 0 and 1, as far as they are known
	names    map[string]dim   // by what a size is made of
	infos    map[string]*onnxpb.ValueInfoProto
}

// nameSizes gives names to the dimensions of results that have neither a size nor a name.
func (b *builder) nameSizes() {
	s := &sizes{dims: map[string][]dim{}, elements: map[string][]dim{}, names: map[string]dim{}, infos: b.infos}
	for _, v := range b.graph.Input {
		s.dims[v.Name] = dimsOf(v)
		for i, d := range s.dims[v.Name] {
			if d == unknown {
				s.dims[v.Name][i] = s.of("input", v.Name, i)
			}
		}
	}
	for _, t := range b.graph.Initializer {
		s.dims[t.Name] = lists.Map(t.Dims, func(n int64) dim { return dim{n: n} })
		if t.DataType == int32(Int64Type) && len(t.Dims) < 2 && len(t.RawData) <= 64 {
			for v := range slices.Chunk(t.RawData, 8) {
				s.elements[t.Name] = append(s.elements[t.Name], dim{n: int64(binary.LittleEndian.Uint64(v))})
			}
		}
	}
	for _, n := range b.graph.Node {
		s.node(n)
	}
}

func dimsOf(v *onnxpb.ValueInfoProto) []dim {
	var dims []dim
	for _, d := range v.GetType().GetTensorType().GetShape().GetDim() {
		switch v := d.Value.(type) {
		case *onnxpb.TensorShapeProto_Dimension_DimParam:
			dims = append(dims, named(v.DimParam))
		case *onnxpb.TensorShapeProto_Dimension_DimValue:
			dims = append(dims, dim{n: v.DimValue})
		default:
			dims = append(dims, unknown)
		}
	}
	return dims
}

// of is the size that comes about in a way.
func (s *sizes) of(way ...any) dim {
	key := fmt.Sprintf("%#v", way)
	if _, ok := s.names[key]; !ok {
		s.names[key] = named(fmt.Sprintf("size__%d", len(s.names)))
	}
	return s.names[key]
}

// node fills in the sizes of a node's results.
func (s *sizes) node(n *onnxpb.NodeProto) {
	for _, out := range n.Output {
		info := s.infos[out]
		if info == nil {
			continue // an output of the graph, which says what it is itself
		}
		have, made := dimsOf(info), s.result(n)
		for k, d := range have {
			if d != unknown {
				continue
			}
			if len(made) == len(have) {
				d = made[k]
			}
			if d == unknown {
				d = s.of(out, k)
			}
			have[k] = d
		}
		s.dims[out] = have
		info.Type.GetTensorType().Shape = valueInfo(tensor{dims: have}, "").Type.GetTensorType().Shape
		if info.Type.GetTensorType().ElemType == int32(Int64Type) && len(have) < 2 {
			s.elements[out] = s.values(n)
		}
	}
}

// result returns the dimensions of a node's results, nil where the operator does not tell.
func (s *sizes) result(n *onnxpb.NodeProto) []dim {
	in := lists.Map(n.Input, func(name string) []dim { return s.dims[name] })
	var x []dim
	if len(in) > 0 {
		x = slices.Clone(in[0])
	}
	axis := func() int { return (int(intOf(n, "axis", 0)) + len(x)) % max(len(x), 1) }
	switch n.OpType {
	case "Abs", "Add", "And", "Cast", "CumSum", "Div", "Equal", "Exp", "Floor", "Greater", "GreaterOrEqual", "Identity", "Less", "LessOrEqual", "Log", "Max", "Min",
		"Mul", "Neg", "Not", "Or", "Pow", "Reciprocal", "Relu", "Sqrt", "Sub", "Sum", "Where":
		return s.broadcast(in...)
	case "ScatterElements":
		return x
	case "GatherElements":
		return in[1]
	case "Gather":
		return slices.Concat(x[:axis()], in[1], x[axis()+1:])
	case "Transpose":
		for k, from := range attribute(n, "perm").GetInts() {
			x[k] = in[0][from]
		}
		return x
	case "MatMul":
		if len(x) == 2 && len(in[1]) == 2 {
			return []dim{x[0], in[1][1]}
		}
	case "Concat":
		k, parts := axis(), []any{"concat"}
		for _, d := range in {
			parts = append(parts, d[k])
		}
		x[k] = s.of(parts...)
		return x
	case "Squeeze", "Unsqueeze":
		for _, a := range s.numbers(n, 1, -1) {
			if n.OpType == "Squeeze" {
				x = slices.Delete(x, int(a.n), int(a.n)+1)
			} else {
				x = slices.Insert(x, int(a.n), fixed(1))
			}
		}
		return x
	case "Slice":
		if len(n.Input) != 4 {
			return nil
		}
		axes := s.numbers(n, 3, -1)
		for k, a := range axes {
			from, to := s.numbers(n, 1, len(axes))[k], s.numbers(n, 2, len(axes))[k]
			if from == fixed(0) && x[a.n] == s.of("Add", to, fixed(1)) {
				x[a.n] = to // all but the last
			} else {
				x[a.n] = s.of("slice", x[a.n], from, to)
			}
		}
		return x
	case "TopK":
		x[axis()] = s.numbers(n, 1, 1)[0]
		return x
	case "Range":
		if from, to, step := s.numbers(n, 0, 1)[0], s.numbers(n, 1, 1)[0], s.numbers(n, 2, 1)[0]; from == fixed(0) && step == fixed(1) {
			return []dim{to}
		}
	case "ConstantOfShape":
		return s.numbers(n, 0, -1)
	case "Expand":
		if shape := s.numbers(n, 1, -1); shape != nil {
			return s.broadcast(x, shape)
		}
	case "Reshape":
		shape := slices.Clone(s.numbers(n, 1, -1))
		for k, d := range shape {
			switch d {
			case dim{n: 0}:
				shape[k] = x[k]
			case dim{n: -1}:
				shape[k] = s.of("rest", x, s.numbers(n, 1, -1))
			}
		}
		return shape
	}
	return nil
}

// broadcast returns the dimensions of an elementwise result.
func (s *sizes) broadcast(in ...[]dim) []dim {
	out := make([]dim, len(slices.MaxFunc(in, func(a, b []dim) int { return len(a) - len(b) })))
	for k := range out {
		var sizes []any
		out[k] = fixed(1)
		for _, d := range in {
			if j := k - len(out) + len(d); j >= 0 && !d[j].isOne() && !slices.Contains(sizes, any(d[j])) {
				if sizes = append(sizes, d[j]); !out[k].isFixed() || out[k].isOne() {
					out[k] = d[j]
				}
			}
		}
		if len(sizes) > 1 && !out[k].isFixed() {
			out[k] = s.of(sizes...)
		}
	}
	return out
}

// numbers returns the elements of an input that is a number or a list of them, each with a name if it
// is not known. Without their count, -1, they are nil where the dimensions do not tell it.
func (s *sizes) numbers(n *onnxpb.NodeProto, i, count int) []dim {
	x := n.Input[i]
	if s.elements[x] == nil {
		switch d := s.dims[x]; {
		case count >= 0:
		case len(d) == 0:
			count = 1
		case len(d) == 1 && d[0].isFixed():
			count = int(d[0].n)
		}
		for k := range count {
			s.elements[x] = append(s.elements[x], s.of("value", x, k))
		}
	}
	return s.elements[x]
}

// values returns the elements of a result of rank 0 or 1 where they are those of inputs or sizes.
func (s *sizes) values(n *onnxpb.NodeProto) []dim {
	switch n.OpType {
	case "Shape":
		d := s.dims[n.Input[0]]
		return d[intOf(n, "start", 0):intOf(n, "end", int64(len(d)))]
	case "Squeeze", "Unsqueeze", "Reshape":
		return s.elements[n.Input[0]]
	case "Concat":
		var all []dim
		for i := range n.Input {
			part := s.numbers(n, i, -1)
			if part == nil {
				return nil
			}
			all = append(all, part...)
		}
		return all
	case "Add", "Sub", "Mul", "Div", "Max", "Min":
		if a, b := s.numbers(n, 0, -1), s.numbers(n, 1, -1); len(a) == 1 && len(b) == 1 {
			return []dim{s.of(n.OpType, a[0], b[0])}
		}
	}
	return nil
}

func attribute(n *onnxpb.NodeProto, name string) *onnxpb.AttributeProto {
	for _, a := range n.Attribute {
		if a.Name == name {
			return a
		}
	}
	return nil
}

func intOf(n *onnxpb.NodeProto, name string, otherwise int64) int64 {
	if a := attribute(n, name); a != nil {
		return a.GetI()
	}
	return otherwise
}
