// Package onnxgo runs models of the dense form in onnx-go: an independent second runtime
// in pure Go, for small graphs.
package onnxgo

import (
	"errors"
	"fmt"

	onnx "github.com/owulveryck/onnx-go"
	"github.com/owulveryck/onnx-go/backend/x/gorgonnx"
	"google.golang.org/protobuf/proto"
	gorgonia "gorgonia.org/tensor"

	"github.com/gsrc-dev/gsrc/export/onnxpb"
	"github.com/gsrc-dev/gsrc/runtime/ort"
)

// Run runs a model of the dense form on inputs, float32 matrices by name.
func Run(model []byte, inputs map[string]ort.Tensor) (outputs map[string]ort.Tensor, err error) {
	// onnx-go panics on what it does not expect.
	defer func() {
		if r := recover(); r != nil {
			outputs, err = nil, fmt.Errorf("onnx-go: %v", r)
		}
	}()
	var m onnxpb.ModelProto
	if err := proto.Unmarshal(model, &m); err != nil {
		return nil, fmt.Errorf("not an ONNX model: %w", err)
	}
	if m.Graph == nil {
		return nil, errors.New("the model has no graph")
	}
	backend := gorgonnx.NewGraph()
	net := onnx.NewModel(backend)
	if err := net.UnmarshalBinary(model); err != nil {
		return nil, fmt.Errorf("onnx-go: %w", err)
	}
	for i, in := range m.Graph.Input {
		t, ok := inputs[in.Name]
		if !ok {
			return nil, fmt.Errorf("input %s is missing", in.Name)
		}
		if t.DType != ort.Float32 {
			return nil, fmt.Errorf("input %s is %v; onnx-go is given float32 alone", in.Name, t.DType)
		}
		if err := t.Check(); err != nil {
			return nil, fmt.Errorf("input %s: %w", in.Name, err)
		}
		shape := make([]int, len(t.Shape))
		for k, d := range t.Shape {
			shape[k] = int(d)
		}
		// A copy: gorgonia may write into its inputs.
		data := append([]float32(nil), t.F32...)
		if err := net.SetInput(i, gorgonia.New(gorgonia.WithShape(shape...), gorgonia.WithBacking(data))); err != nil {
			return nil, fmt.Errorf("onnx-go: input %s: %w", in.Name, err)
		}
	}
	if err := backend.Run(); err != nil {
		return nil, fmt.Errorf("onnx-go: %w", err)
	}
	results, err := net.GetOutputTensors()
	if err != nil {
		return nil, fmt.Errorf("onnx-go: %w", err)
	}
	outputs = map[string]ort.Tensor{}
	for i, out := range m.Graph.Output {
		data, ok := results[i].Data().([]float32)
		if !ok {
			return nil, fmt.Errorf("onnx-go: output %s is %T, want []float32", out.Name, results[i].Data())
		}
		t := ort.Float32s(append([]float32(nil), data...))
		for _, d := range results[i].Shape() {
			t.Shape = append(t.Shape, int64(d))
		}
		outputs[out.Name] = t
	}
	return outputs, nil
}
