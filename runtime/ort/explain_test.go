//go:build cgo

package ort

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/gsrc-dev/gsrc/export/onnxpb"
	onnxruntime "github.com/yalue/onnxruntime_go"
	"google.golang.org/protobuf/proto"
)

func TestExplainLoad(t *testing.T) {
	lib := Library{Path: "/opt/libonnxruntime.so", Found: "system"}
	for msg, want := range map[string]string{
		"Platform-specific initialization failed: Error setting ORT API base: 2":                "too old: gsrc needs 1.24 or later",
		`Error looking up OrtGetApiBase in "x": undefined symbol`:                               "not onnxruntime",
		`Error loading ONNX shared library "x": libstdc++.so.6: cannot open shared object file`: "install libstdc++6",
		`Error loading ONNX shared library "x": version 'GLIBC_2.38' not found (required by x)`: "C++ runtime",
		`Error loading ONNX shared library "x": file too short`:                                 "file too short",
	} {
		err := explainLoad(lib, errors.New(msg))
		for _, part := range []string{want, lib.Path, msg} {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%q is explained as %q, which does not contain %q", msg, err, part)
			}
		}
	}
}

func TestExplainCUDA(t *testing.T) {
	err := explainCUDA(errors.New(`Error creating session: [ONNXRuntimeError] : 1 : FAIL : provider_options_utils.h:187 Parse Failed to parse provider option "device_id": ` +
		"CUDA failure 35: CUDA driver version is insufficient for CUDA runtime version ; GPU=-1 ; hostname=h ; file=/onnxruntime_src/x.cc ; line=67 ; expr=cudaGetDeviceCount(&num_devices);"))
	if !strings.Contains(err.Error(), "CUDA driver version is insufficient for CUDA runtime version; ") || strings.Contains(err.Error(), "hostname") {
		t.Error(err)
	}
}

// A provider that can be added and then fails is left by Auto, which says why, and not
// by CUDA.
func TestFallbackFromFailingCUDA(t *testing.T) {
	lib, err := Locate(t.Context())
	if err != nil {
		t.Skip(err)
	}
	defer func(f func(*onnxruntime.SessionOptions, Options) error) { addCUDA = f }(addCUDA)
	addCUDA = func(*onnxruntime.SessionOptions, Options) error { return nil }
	value := func(name string) *onnxpb.ValueInfoProto {
		return &onnxpb.ValueInfoProto{Name: name, Type: &onnxpb.TypeProto{Value: &onnxpb.TypeProto_TensorType{TensorType: &onnxpb.TypeProto_Tensor{
			ElemType: int32(onnxpb.TensorProto_FLOAT), Shape: &onnxpb.TensorShapeProto{}}}}}
	}
	model, err := proto.Marshal(&onnxpb.ModelProto{
		IrVersion: 8, OpsetImport: []*onnxpb.OperatorSetIdProto{{Version: 17}},
		Graph: &onnxpb.GraphProto{Name: "g", Node: []*onnxpb.NodeProto{{OpType: "Neg", Name: "neg", Input: []string{"x"}, Output: []string{"y"}}},
			Input: []*onnxpb.ValueInfoProto{value("x")}, Output: []*onnxpb.ValueInfoProto{value("y")}},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, provider := range []Provider{Auto, CUDA} {
		calls, told := 0, ""
		s, err := open(Options{Provider: provider, Library: &lib, Log: func(format string, args ...any) { told += fmt.Sprintf(format, args...) }}, source{
			describe: func() (in, out []IO, err error) {
				return Described(model)
			},
			session: func(in, out []string, o *onnxruntime.SessionOptions) (*onnxruntime.DynamicAdvancedSession, error) {
				if calls++; calls == 1 {
					return nil, errors.New("CUDA failure 2: out of memory ; GPU=0 ; hostname=h")
				}
				return onnxruntime.NewDynamicAdvancedSessionWithONNXData(model, in, out, o)
			},
		})
		if provider == CUDA {
			if err == nil || !strings.Contains(err.Error(), "out of memory") || calls != 1 {
				t.Errorf("cuda: %v after %d sessions", err, calls)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if s.Provider() != CPU || told != "CUDA fails for onnxruntime, using the CPU: CUDA failure 2: out of memory" {
			t.Errorf("auto: provider %s, told %q", s.Provider(), told)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}
