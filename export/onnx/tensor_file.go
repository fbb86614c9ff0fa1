package onnx

import (
	"encoding/binary"
	"fmt"
	"math"

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
		p.DataType = int32(float32Type)
		for _, v := range t.F32 {
			p.RawData = binary.LittleEndian.AppendUint32(p.RawData, math.Float32bits(v))
		}
	case ort.Int64:
		p.DataType = int32(Int64Type)
		for _, v := range t.I64 {
			p.RawData = binary.LittleEndian.AppendUint64(p.RawData, uint64(v))
		}
	case ort.Bool:
		p.DataType = int32(boolType)
		for _, v := range t.Bool {
			b := byte(0)
			if v {
				b = 1
			}
			p.RawData = append(p.RawData, b)
		}
	}
	return p, nil
}

// fromTensorProto reads a tensor with raw data.
func fromTensorProto(p *onnxpb.TensorProto) (ort.Tensor, error) {
	t := ort.Tensor{Shape: p.Dims}
	raw := p.RawData
	switch onnxpb.TensorProto_DataType(p.DataType) {
	case float32Type:
		t.DType, t.F32 = ort.Float32, make([]float32, len(raw)/4)
		for i := range t.F32 {
			t.F32[i] = math.Float32frombits(binary.LittleEndian.Uint32(raw[4*i:]))
		}
	case Int64Type:
		t.DType, t.I64 = ort.Int64, make([]int64, len(raw)/8)
		for i := range t.I64 {
			t.I64[i] = int64(binary.LittleEndian.Uint64(raw[8*i:]))
		}
	case boolType:
		t.DType, t.Bool = ort.Bool, make([]bool, len(raw))
		for i := range t.Bool {
			t.Bool[i] = raw[i] != 0
		}
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
