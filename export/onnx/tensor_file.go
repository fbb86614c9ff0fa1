package onnx

import (
	"encoding/binary"
	"fmt"

	"google.golang.org/protobuf/proto"

	"github.com/gsrc-dev/gsrc/export/onnxpb"
	"github.com/gsrc-dev/gsrc/runtime/ort"
)

// TensorProto is the ONNX form of a tensor, as test data sets hold it.
func TensorProto(name string, t ort.Tensor) (*onnxpb.TensorProto, error) {
	if err := t.Check(); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if t.DType == ort.Float64 || t.DType == ort.String {
		return nil, fmt.Errorf("a tensor of %v is not written", t.DType)
	}
	p := &onnxpb.TensorProto{Name: name, Dims: t.Shape, RawData: []byte{}}
	switch t.DType {
	case ort.Float32:
		p.DataType, p.RawData = int32(float32Type), rawData(t.F32)
	case ort.Int64:
		p.DataType, p.RawData = int32(Int64Type), rawData(t.I64)
	case ort.Bool:
		p.DataType, p.RawData = int32(boolType), rawData(t.Bool)
	}
	return p, nil
}

// rawData is how tensors hold numbers, or truth values, in files.
func rawData[T float64 | float32 | int64 | uint16 | bool](values []T) []byte {
	raw, err := binary.Append([]byte{}, binary.LittleEndian, values)
	if err != nil {
		panic(err) // of no type that is allowed
	}
	return raw
}

// fromRawData is the inverse of rawData. What is left of an element at the end is dropped.
func fromRawData[T float32 | int64 | bool](raw []byte) []T {
	values := make([]T, len(raw)/binary.Size(*new(T)))
	if _, err := binary.Decode(raw, binary.LittleEndian, values); err != nil {
		panic(err) // of no type that is allowed
	}
	return values
}

// fromTensorProto reads a tensor with raw data.
func fromTensorProto(p *onnxpb.TensorProto) (ort.Tensor, error) {
	t := ort.Tensor{Shape: p.Dims}
	raw := p.RawData
	switch onnxpb.TensorProto_DataType(p.DataType) {
	case float32Type:
		t.DType, t.F32 = ort.Float32, fromRawData[float32](raw)
	case Int64Type:
		t.DType, t.I64 = ort.Int64, fromRawData[int64](raw)
	case boolType:
		t.DType, t.Bool = ort.Bool, fromRawData[bool](raw)
	default:
		return ort.Tensor{}, fmt.Errorf("element type %d is not read (float32, int64 and bool are)", p.DataType)
	}
	return t, t.Check()
}

// MarshalTensor gives a tensor and its name as the bytes of an ONNX tensor file, as
// [ParseTensor] reads it and ONNX's test data are written.
func MarshalTensor(name string, t ort.Tensor) ([]byte, error) {
	p, err := TensorProto(name, t)
	if err != nil {
		return nil, err
	}
	return proto.MarshalOptions{Deterministic: true}.Marshal(p)
}

// ParseTensor reads the content of a .pb file of an ONNX test data set: the tensor's name
// and its elements.
func ParseTensor(path string, data []byte) (string, ort.Tensor, error) {
	var p onnxpb.TensorProto
	if err := proto.Unmarshal(data, &p); err != nil {
		return "", ort.Tensor{}, fmt.Errorf("%s is no ONNX tensor: %w", path, err)
	}
	t, err := fromTensorProto(&p)
	if err != nil {
		return "", ort.Tensor{}, fmt.Errorf("%s: %w", path, err)
	}
	return p.Name, t, nil
}
