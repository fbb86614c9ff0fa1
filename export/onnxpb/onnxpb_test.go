package onnxpb_test

import (
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/gsrc-dev/gsrc/export/onnxpb"
)

// TestWireFormat checks field numbers against bytes put together by hand from
// the ONNX specification, so that a slip in the .proto cannot pass unnoticed.
func TestWireFormat(t *testing.T) {
	bytesField := func(num protowire.Number, b []byte) []byte {
		return protowire.AppendBytes(protowire.AppendTag(nil, num, protowire.BytesType), b)
	}
	intField := func(num protowire.Number, v uint64) []byte {
		return protowire.AppendVarint(protowire.AppendTag(nil, num, protowire.VarintType), v)
	}
	join := func(parts ...[]byte) []byte {
		var out []byte
		for _, p := range parts {
			out = append(out, p...)
		}
		return out
	}
	attr := join(bytesField(1, []byte("axis")), intField(3, 0), intField(20, 2))
	node := join(bytesField(1, []byte("x")), bytesField(2, []byte("y")), bytesField(3, []byte("n")), bytesField(4, []byte("Softmax")), bytesField(5, attr))
	tensor := join(bytesField(1, protowire.AppendVarint(nil, 1)), intField(2, 1), bytesField(8, []byte("w")), bytesField(9, []byte{0, 0, 128, 63}))
	dim := bytesField(1, bytesField(2, []byte("num_nodes")))
	valueType := bytesField(1, join(intField(1, 1), bytesField(2, dim)))
	value := join(bytesField(1, []byte("x")), bytesField(2, valueType), bytesField(3, []byte("doc")))
	graph := join(bytesField(1, node), bytesField(2, []byte("g")), bytesField(5, tensor), bytesField(11, value), bytesField(12, value), bytesField(13, value))
	want := join(intField(1, 8), bytesField(2, []byte("gsrc")), bytesField(7, graph), bytesField(8, intField(2, 17)),
		bytesField(14, join(bytesField(1, []byte("k")), bytesField(2, []byte("v")))))

	info := func() *onnxpb.ValueInfoProto {
		return &onnxpb.ValueInfoProto{Name: "x", DocString: "doc", Type: &onnxpb.TypeProto{Value: &onnxpb.TypeProto_TensorType{TensorType: &onnxpb.TypeProto_Tensor{
			ElemType: int32(onnxpb.TensorProto_FLOAT),
			Shape: &onnxpb.TensorShapeProto{Dim: []*onnxpb.TensorShapeProto_Dimension{
				{Value: &onnxpb.TensorShapeProto_Dimension_DimParam{DimParam: "num_nodes"}}}},
		}}}}
	}
	m := &onnxpb.ModelProto{
		IrVersion:    8,
		ProducerName: "gsrc",
		OpsetImport:  []*onnxpb.OperatorSetIdProto{{Version: 17}},
		Graph: &onnxpb.GraphProto{
			Name: "g",
			Node: []*onnxpb.NodeProto{{Input: []string{"x"}, Output: []string{"y"}, Name: "n", OpType: "Softmax",
				Attribute: []*onnxpb.AttributeProto{{Name: "axis", I: proto.Int64(0), Type: onnxpb.AttributeProto_INT}}}},
			Initializer: []*onnxpb.TensorProto{{Dims: []int64{1}, DataType: int32(onnxpb.TensorProto_FLOAT), Name: "w", RawData: []byte{0, 0, 128, 63}}},
			Input:       []*onnxpb.ValueInfoProto{info()},
			Output:      []*onnxpb.ValueInfoProto{info()},
			ValueInfo:   []*onnxpb.ValueInfoProto{info()},
		},
		MetadataProps: []*onnxpb.StringStringEntryProto{{Key: "k", Value: "v"}},
	}
	got, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != string(want) {
		t.Errorf("wire bytes differ from the ONNX specification\n got %x\nwant %x", got, want)
	}
	var back onnxpb.ModelProto
	if err := proto.Unmarshal(want, &back); err != nil {
		t.Fatal(err)
	}
	if !proto.Equal(&back, m) {
		t.Errorf("reading the bytes back gives another message: %v", &back)
	}
}
