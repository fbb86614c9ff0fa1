package onnx

import (
	"strconv"

	"github.com/gsrc-dev/gsrc/export/onnxpb"
)

// DefaultExternalData is from which size on weights go to a file of their own,
// beside the model, where nothing else is asked for. NoExternalData keeps everything
// in one file.
const (
	DefaultExternalData = 64 << 20
	NoExternalData      = -1
)

// leastExternal is the size below which a tensor stays in the model in any case:
// shape inference reads small ones. alignment of tensors in the file lets runtimes
// map them into memory.
const (
	leastExternal = 1 << 10
	alignment     = 4096
)

// The keys of external_data.
const (
	ExternalLocation = "location"
	ExternalOffset   = "offset"
	ExternalLength   = "length"
)

// Externalize moves the weights of a model that take at least that many bytes (and at
// least 1 KiB) out of it, and returns the file that holds them, nil if there are
// none; location is its name, in the folder of the model. Numbers of nodes and other
// integers of 64 bits stay.
func Externalize(m *onnxpb.ModelProto, location string, least int) []byte {
	var file []byte
	for _, t := range m.Graph.Initializer {
		if len(t.RawData) < max(least, leastExternal) || onnxpb.TensorProto_DataType(t.DataType) == Int64Type {
			continue
		}
		file = append(file, make([]byte, -len(file)&(alignment-1))...)
		t.DataLocation = onnxpb.TensorProto_EXTERNAL
		t.ExternalData = []*onnxpb.StringStringEntryProto{
			{Key: ExternalLocation, Value: location},
			{Key: ExternalOffset, Value: strconv.Itoa(len(file))},
			{Key: ExternalLength, Value: strconv.Itoa(len(t.RawData))},
		}
		file = append(file, t.RawData...)
		t.RawData = nil
	}
	return file
}
