package export

import (
	"errors"
	"fmt"

	"google.golang.org/protobuf/proto"

	"github.com/gsrc-dev/gsrc/export/onnxpb"
	"github.com/gsrc-dev/gsrc/runtime/ort"
)

// Products are the matrix products of a model on given inputs, and nothing else: what
// no export of the same network could do without.
type Products struct {
	Model  []byte                // an ONNX file
	Inputs map[string]ort.Tensor // what to run it on
	Count  int
	Flops  int64
}

// Products writes the products of two matrices that a model makes on inputs as a model
// of their own, with the same weights and with ones for what is computed. (Batched
// products, as the sums over edges are, do not count.) One element of each product is
// an output, so that none is left out and none is copied.
func (i *Inspection) Products(inputs map[string]ort.Tensor, o ort.Options) (*Products, error) {
	shapes, err := i.shapes(inputs, o)
	if err != nil {
		return nil, err
	}
	m := proto.Clone(i.model).(*onnxpb.ModelProto)
	if err := internalize(i.dir, m); err != nil {
		return nil, err
	}
	p := &Products{Inputs: map[string]ort.Tensor{}}
	weights := map[string]*onnxpb.TensorProto{}
	for _, t := range m.Graph.Initializer {
		weights[t.GetName()] = t
	}
	b := newBuilder("products", "the matrix products of "+i.Graph)
	b.opset = int(i.Opsets[""])
	operands := map[string]tensor{}
	operand := func(name string) (tensor, bool) {
		if t, ok := operands[name]; ok {
			return t, true
		}
		w, constant := weights[name]
		dims := shapes[name]
		if constant {
			dims = w.Dims
		} else if given, ok := inputs[name]; ok {
			dims = given.Shape
		}
		if len(dims) != 2 {
			return tensor{}, false
		}
		sizes := []dim{fixed(int(dims[0])), fixed(int(dims[1]))}
		t := tensor{name: name, dtype: float32Type, dims: sizes}
		if constant {
			b.graph.Initializer = append(b.graph.Initializer, w)
			b.names[name] = true
		} else {
			given, ok := inputs[name]
			if !ok {
				ones := make([]float32, dims[0]*dims[1])
				for k := range ones {
					ones[k] = 1
				}
				given = ort.Float32s(ones, dims...)
			}
			p.Inputs[name] = given
			t = b.input(name, "", float32Type, sizes...)
		}
		operands[name] = t
		return t, true
	}
	for _, n := range m.Graph.Node {
		if n.GetOpType() != "MatMul" {
			continue
		}
		x, ok := operand(n.Input[0])
		if !ok {
			continue
		}
		y, ok := operand(n.Input[1])
		if !ok {
			continue
		}
		p.Count++
		p.Flops += 2 * x.dims[0].n * x.dims[1].n * y.dims[1].n
		one := b.op("Slice", float32Type, []dim{fixed(1), fixed(1)}, []tensor{b.matmul(x, y), b.int64s(0, 0), b.int64s(1, 1)})
		b.output(one, fmt.Sprintf("product_%d", p.Count), "", "Identity")
	}
	if p.Count == 0 {
		return nil, errors.New("the model makes no product of two matrices")
	}
	p.Model, err = Marshal(b.finish(ModelOptions{}))
	return p, err
}
