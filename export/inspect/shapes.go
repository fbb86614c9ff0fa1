package inspect

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/gsrc-dev/gsrc/export/onnx"
	"github.com/gsrc-dev/gsrc/export/onnxpb"
	"github.com/gsrc-dev/gsrc/runtime/ort"
	"google.golang.org/protobuf/proto"
)

// ShapeSession is a model whose outputs are the shapes of all its values.
type ShapeSession struct {
	*Inspection
	session *ort.Session
	values  []string
}

const shapePrefix = "gsrc_shape_of/"

// OpenShapes opens the model for its shapes.
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
	// onnxruntime begins with what it needs for the last node that nobody reads: in this
	// order each shape is taken as soon as its value is there, which is then freed.
	// Outputs that are declared in full spare a session that is opened to ask for them.
	ranked := &onnxpb.TensorShapeProto{Dim: []*onnxpb.TensorShapeProto_Dimension{{}}}
	for _, v := range slices.Backward(s.values) {
		g.Node = append(g.Node, &onnxpb.NodeProto{OpType: "Shape", Input: []string{v}, Output: []string{shapePrefix + v}})
		g.Output = append(g.Output, &onnxpb.ValueInfoProto{Name: shapePrefix + v, Type: &onnxpb.TypeProto{Value: &onnxpb.TypeProto_TensorType{TensorType: &onnxpb.TypeProto_Tensor{ElemType: int32(onnx.Int64Type), Shape: ranked}}}})
	}
	data, err := onnx.Marshal(m)
	if err != nil {
		return nil, err
	}
	s.session, err = ort.OpenBytes(data, o)
	return s, err
}

// Scope tells whether the model has values in a scope, see [onnx.SharedEdges].
func (i *Inspection) Scope(name string) bool {
	for _, n := range i.model.Graph.Node {
		if slices.ContainsFunc(n.Output, func(out string) bool { return strings.Contains("/"+out, "/"+name+"/") }) {
			return true
		}
	}
	return false
}

// ScopeNumber returns the number behind the beginning of a scope's name, 0 where the model has
// no such scope, see [onnx.NearEdges].
func (i *Inspection) ScopeNumber(beginning string) int64 {
	for _, n := range i.model.Graph.Node {
		for _, out := range n.Output {
			if _, name, ok := strings.Cut("/"+out, "/"+beginning); ok {
				name, _, _ = strings.Cut(name, "/")
				if number, err := strconv.ParseInt(name, 10, 64); err == nil {
					return number
				}
			}
		}
	}
	return 0
}

// Close frees the model.
func (s *ShapeSession) Close() error { return s.session.Close() }

// Peak runs the model and returns how many bytes its values take at most at a time,
// each from the operator that gives it to the last that reads it, and the outputs twice:
// they are copied. An error says where two sizes of one name in the file are not equal:
// onnxruntime would take the room of one for the other.
func (s *ShapeSession) Peak(inputs map[string]ort.Tensor) (int64, error) {
	shapes, err := s.session.Run(inputs)
	if err != nil {
		return 0, err
	}
	g := s.model.Graph
	element, first := map[string]int64{}, map[string]string{}
	for _, v := range slices.Concat(g.ValueInfo, g.Output) {
		element[v.GetName()] = elementTypes[v.GetType().GetTensorType().GetElemType()].size
		shape, ok := shapes[shapePrefix+v.GetName()]
		for k, d := range v.GetType().GetTensorType().GetShape().GetDim() {
			if name := d.GetDimParam(); ok && name != "" && len(shape.I64) > k {
				here := fmt.Sprintf("%d in %s", shape.I64[k], v.GetName())
				if first[name] == "" {
					first[name] = here
				} else if n, _, _ := strings.Cut(first[name], " "); n != strconv.FormatInt(shape.I64[k], 10) {
					return 0, fmt.Errorf("the size %s is %s and %s", name, first[name], here)
				}
			}
		}
	}
	bytes := func(v string) int64 {
		shape, ok := shapes[shapePrefix+v]
		if !ok { // an input or a constant
			return 0
		}
		return elements(shape.I64) * cmp.Or(element[v], 8) // where the file does not tell the type
	}
	last := map[string]int{}
	for k, n := range g.Node {
		for _, v := range n.Input {
			last[v] = k
		}
	}
	var live, most, outputs int64
	for _, v := range g.Output {
		last[v.GetName()] = len(g.Node)
		outputs += bytes(v.GetName())
	}
	for k, n := range g.Node {
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
