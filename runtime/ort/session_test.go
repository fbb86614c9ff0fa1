//go:build cgo

package ort_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/gsrc-dev/gsrc/export/onnxpb"
	"github.com/gsrc-dev/gsrc/internal/orttest"
	"github.com/gsrc-dev/gsrc/runtime/ort"
)

func info(name string, dtype onnxpb.TensorProto_DataType, dims ...any) *onnxpb.ValueInfoProto {
	shape := &onnxpb.TensorShapeProto{}
	for _, d := range dims {
		p := &onnxpb.TensorShapeProto_Dimension{}
		switch d := d.(type) {
		case string:
			p.Value = &onnxpb.TensorShapeProto_Dimension_DimParam{DimParam: d}
		case int:
			p.Value = &onnxpb.TensorShapeProto_Dimension_DimValue{DimValue: int64(d)}
		}
		shape.Dim = append(shape.Dim, p)
	}
	return &onnxpb.ValueInfoProto{Name: name, Type: &onnxpb.TypeProto{Value: &onnxpb.TypeProto_TensorType{
		TensorType: &onnxpb.TypeProto_Tensor{ElemType: int32(dtype), Shape: shape}}}}
}

// everyType has an input and an output of each element type, and an output of
// rank 0.
func everyType(t testing.TB) []byte {
	t.Helper()
	node := func(op, out string, in ...string) *onnxpb.NodeProto {
		return &onnxpb.NodeProto{OpType: op, Name: "node_" + out, Input: in, Output: []string{out}}
	}
	total := node("ReduceSum", "total", "x")
	total.Attribute = []*onnxpb.AttributeProto{{Name: "keepdims", Type: onnxpb.AttributeProto_INT, I: proto.Int64(0)}}
	m := &onnxpb.ModelProto{
		IrVersion: 8, OpsetImport: []*onnxpb.OperatorSetIdProto{{Version: 17}},
		MetadataProps: []*onnxpb.StringStringEntryProto{{Key: "task", Value: "test"}, {Key: "Ünï", Value: "çödé"}},
		Graph: &onnxpb.GraphProto{
			Name: "g",
			Node: []*onnxpb.NodeProto{node("Add", "twice", "x", "x"), node("Neg", "minus", "i"), node("Not", "not", "b"), total},
			Input: []*onnxpb.ValueInfoProto{info("x", onnxpb.TensorProto_FLOAT, "n", 2), info("i", onnxpb.TensorProto_INT64, "m"),
				info("b", onnxpb.TensorProto_BOOL, "k", "l", 3)},
			Output: []*onnxpb.ValueInfoProto{info("twice", onnxpb.TensorProto_FLOAT, "n", 2), info("minus", onnxpb.TensorProto_INT64, "m"),
				info("not", onnxpb.TensorProto_BOOL, "k", "l", 3), info("total", onnxpb.TensorProto_FLOAT)},
		},
	}
	data, err := proto.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func open(t testing.TB, o ort.Options) *ort.Session {
	t.Helper()
	lib := orttest.Need(t)
	o.Library = &lib
	s, err := ort.OpenBytes(everyType(t), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func inputs(rows int) map[string]ort.Tensor {
	x, i, b := make([]float32, 2*rows), make([]int64, rows), make([]bool, rows*2*3)
	for k := range x {
		x[k] = float32(k) + 0.5
	}
	for k := range i {
		i[k] = int64(k) << 40
	}
	for k := range b {
		b[k] = k%3 == 0
	}
	n := int64(rows)
	return map[string]ort.Tensor{"x": ort.Float32s(x, n, 2), "i": ort.Int64s(i, n), "b": ort.Bools(b, n, 2, 3)}
}

func TestRun(t *testing.T) {
	s := open(t, ort.Options{Provider: ort.CPU, Threads: 2})
	for _, rows := range []int{0, 1, 5, 1000} {
		in := inputs(rows)
		out, err := s.Run(in)
		if err != nil {
			t.Fatalf("%d rows: %v", rows, err)
		}
		sum := float32(0)
		for k, v := range in["x"].F32 {
			sum += v
			if out["twice"].F32[k] != 2*v {
				t.Fatalf("%d rows: twice[%d] = %g", rows, k, out["twice"].F32[k])
			}
		}
		for k, v := range in["i"].I64 {
			if out["minus"].I64[k] != -v {
				t.Fatalf("%d rows: minus[%d] = %d", rows, k, out["minus"].I64[k])
			}
		}
		for k, v := range in["b"].Bool {
			if out["not"].Bool[k] == v {
				t.Fatalf("%d rows: not[%d] = %v", rows, k, v)
			}
		}
		for name, in := range map[string]ort.Tensor{"twice": in["x"], "minus": in["i"], "not": in["b"]} {
			if !slices.Equal(out[name].Shape, in.Shape) || out[name].DType != in.DType {
				t.Errorf("%d rows: %s is %v %v, want %v %v", rows, name, out[name].DType, out[name].Shape, in.DType, in.Shape)
			}
		}
		if total := out["total"]; len(total.Shape) != 0 || len(total.F32) != 1 || total.F32[0] != sum {
			t.Errorf("%d rows: total is %v %v, want the scalar %g", rows, total.Shape, total.F32, sum)
		}
	}
}

func TestDescription(t *testing.T) {
	s := open(t, ort.Options{Provider: ort.CPU})
	want := []ort.IO{{Name: "x", DType: ort.Float32, Dims: []int64{-1, 2}}, {Name: "i", DType: ort.Int64, Dims: []int64{-1}}, {Name: "b", DType: ort.Bool, Dims: []int64{-1, -1, 3}}}
	same := func(a, b ort.IO) bool { return a.Name == b.Name && a.DType == b.DType && slices.Equal(a.Dims, b.Dims) }
	if got := s.Inputs(); !slices.EqualFunc(got, want, same) {
		t.Errorf("inputs %v, want %v", got, want)
	}
	if got := s.Outputs(); len(got) != 4 || got[3].Name != "total" || len(got[3].Dims) != 0 {
		t.Errorf("outputs %v", got)
	}
	if md := s.Metadata(); len(md) != 2 || md["task"] != "test" || md["Ünï"] != "çödé" {
		t.Errorf("metadata %v", md)
	}
	if s.Provider() != ort.CPU {
		t.Errorf("provider %s", s.Provider())
	}
}

// Inputs and outputs are read from the file as onnxruntime reports them, and left to it where
// they are not tensors of known rank.
func TestSignature(t *testing.T) {
	open(t, ort.Options{Provider: ort.CPU}) // loads onnxruntime
	models := map[string][]byte{"every type": everyType(t)}
	for _, name := range []string{"encoder", "scorer", "classifier"} {
		data, err := os.ReadFile(filepath.Join("..", "..", "testdata", "earlier", "export", name+".onnx"))
		if err != nil {
			t.Fatal(err)
		}
		models[name] = data
	}
	for name, model := range models {
		in, out, ok := ort.Signature(model)
		wantIn, wantOut, err := ort.Described(model)
		if err != nil || !ok || !reflect.DeepEqual(in, wantIn) || !reflect.DeepEqual(out, wantOut) {
			t.Errorf("%s: %v, %v (%v), onnxruntime reports %v, %v (%v)", name, in, out, ok, wantIn, wantOut, err)
		}
		for cut := 1; cut < len(model); cut += 1 + len(model)/50 {
			if _, _, ok := ort.Signature(model[:cut]); ok && len(model)-cut > 200 {
				t.Errorf("%s: %d of %d bytes have a signature", name, cut, len(model))
			}
		}
	}
	m := &onnxpb.ModelProto{}
	if err := proto.Unmarshal(models["every type"], m); err != nil {
		t.Fatal(err)
	}
	m.Graph.Input[1].Type.GetTensorType().Shape = nil
	data, err := proto.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, ok := ort.Signature(data); ok {
		t.Error("an input without a shape was read")
	}
}

func TestRunRefusesBadInputs(t *testing.T) {
	s := open(t, ort.Options{Provider: ort.CPU})
	tests := []struct {
		name   string
		change func(map[string]ort.Tensor)
		want   string
	}{
		{"missing", func(in map[string]ort.Tensor) { delete(in, "i") }, `input "i" is missing`},
		{"unknown", func(in map[string]ort.Tensor) { in["y"] = in["x"] }, `no input "y"; its inputs are x, i, b`},
		{"type", func(in map[string]ort.Tensor) { in["x"] = ort.Int64s(make([]int64, 4), 2, 2) }, "it is int64, the model wants float32"},
		{"rank", func(in map[string]ort.Tensor) { in["x"] = ort.Float32s(make([]float32, 4), 4) }, "the model wants [? 2]"},
		{"fixed dimension", func(in map[string]ort.Tensor) { in["x"] = ort.Float32s(make([]float32, 6), 2, 3) }, "the model wants [? 2]"},
		{"too few elements", func(in map[string]ort.Tensor) { in["x"] = ort.Float32s(make([]float32, 3), 2, 2) }, "needs 4 elements, the tensor has 3"},
		{"negative", func(in map[string]ort.Tensor) { in["x"] = ort.Float32s(nil, -1, 2) }, "negative dimension"},
		{"overflow", func(in map[string]ort.Tensor) { in["x"] = ort.Float32s(nil, 1<<62, 1<<62) }, "too large"},
		{"empty value", func(in map[string]ort.Tensor) { in["x"] = ort.Tensor{} }, "unsupported type"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			in := inputs(2)
			test.change(in)
			if _, err := s.Run(in); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want one with %q", err, test.want)
			}
		})
	}
}

func TestOpenRefusesBadModels(t *testing.T) {
	lib := orttest.Need(t)
	o := ort.Options{Provider: ort.CPU, Library: &lib}
	good := everyType(t)
	for name, model := range map[string][]byte{"empty": nil, "text": []byte("this is no model"), "cut": good[:len(good)/2]} {
		if _, err := ort.OpenBytes(model, o); err == nil {
			t.Errorf("%s: a broken model was opened", name)
		}
	}
	if _, err := ort.Open(filepath.Join(t.TempDir(), "gone.onnx"), o); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("error %v, want that the file does not exist", err)
	}
	o.Threads = -1
	if _, err := ort.OpenBytes(good, o); err == nil {
		t.Error("a negative number of threads was accepted")
	}
	o = ort.Options{Provider: "tpu", Library: &lib}
	if _, err := ort.OpenBytes(good, o); err == nil || !strings.Contains(err.Error(), "choose auto, cpu or cuda") {
		t.Errorf("error %v, want the providers there are", err)
	}
}

func TestConcurrentRuns(t *testing.T) {
	s := open(t, ort.Options{Provider: ort.CPU, Threads: 1})
	var wg sync.WaitGroup
	errs := make([]error, 16)
	for g := range errs {
		wg.Go(func() {
			for range 50 {
				in := inputs(g)
				out, err := s.Run(in)
				if err != nil {
					errs[g] = err
					return
				}
				if g > 0 && out["twice"].F32[2*g-1] != 2*in["x"].F32[2*g-1] {
					errs[g] = errors.New("a run got another run's numbers")
				}
			}
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

func TestClose(t *testing.T) {
	s := open(t, ort.Options{Provider: ort.CPU})
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for {
				if _, err := s.Run(inputs(100)); err != nil {
					if !errors.Is(err, ort.ErrClosed) {
						t.Error(err)
					}
					return
				}
			}
		})
	}
	for range 2 {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	wg.Wait()
	if _, err := s.Run(inputs(1)); !errors.Is(err, ort.ErrClosed) {
		t.Errorf("error %v, want ErrClosed", err)
	}
}

func TestProviders(t *testing.T) {
	lib := orttest.Need(t)
	defer ort.SetGPU(true)()
	var lines []string
	log := func(format string, _ ...any) { lines = append(lines, format) }
	cuda, err := ort.OpenBytes(everyType(t), ort.Options{Provider: ort.CUDA, Library: &lib})
	if err == nil {
		defer cuda.Close()
		t.Skip("this machine has CUDA: there is no fallback to test")
	}
	if !strings.Contains(err.Error(), "CUDA cannot be used") || !strings.Contains(err.Error(), "onnxruntime") {
		t.Errorf("error %v, want what is missing", err)
	}
	for range 3 {
		s, err := ort.OpenBytes(everyType(t), ort.Options{Library: &lib, Log: log})
		if err != nil {
			t.Fatal(err)
		}
		if s.Provider() != ort.CPU {
			t.Errorf("provider %s, want the CPU", s.Provider())
		}
		s.Close()
	}
	if len(lines) != 1 {
		t.Errorf("the fallback was told %d times, want once: %q", len(lines), lines)
	}
}

func TestSecondLibraryIsRefused(t *testing.T) {
	open(t, ort.Options{Provider: ort.CPU})
	other := ort.Library{Path: filepath.Join(t.TempDir(), "libonnxruntime.so"), Version: "1.27.0", Found: "test"}
	_, err := ort.OpenBytes(everyType(t), ort.Options{Library: &other})
	if err == nil || !strings.Contains(err.Error(), "cannot load") {
		t.Errorf("error %v, want that a process loads one library", err)
	}
}

func TestDoctor(t *testing.T) {
	lib := orttest.Need(t)
	f := ort.Doctor(t.Context())
	if f.Problem != "" || f.Library != lib || !strings.HasPrefix(f.Loaded, lib.Version) || !f.Cgo || len(f.SHA256) != 64 || len(f.Providers) != 2 || !f.Providers[0].Works {
		t.Errorf("facts %+v for %+v", f, lib)
	}
}

func BenchmarkRun(b *testing.B) {
	s := open(b, ort.Options{Provider: ort.CPU, Threads: 1})
	in := inputs(4)
	for b.Loop() {
		if _, err := s.Run(in); err != nil {
			b.Fatal(err)
		}
	}
}

// A run ends with its context, after the operator that it is at.
func TestRunEndsWithItsContext(t *testing.T) {
	g := &onnxpb.GraphProto{Name: "long", Input: []*onnxpb.ValueInfoProto{info("v0", onnxpb.TensorProto_FLOAT, 384, 384)}}
	const steps = 20_000 // a minute or so of products
	for k := range steps {
		g.Node = append(g.Node, &onnxpb.NodeProto{OpType: "MatMul", Input: []string{fmt.Sprint("v", k), "v0"}, Output: []string{fmt.Sprint("v", k+1)}})
	}
	g.Output = []*onnxpb.ValueInfoProto{info(fmt.Sprint("v", steps), onnxpb.TensorProto_FLOAT, 384, 384)}
	data, err := proto.Marshal(&onnxpb.ModelProto{IrVersion: 8, OpsetImport: []*onnxpb.OperatorSetIdProto{{Version: 17}}, Graph: g})
	if err != nil {
		t.Fatal(err)
	}
	orttest.Need(t)
	s, err := ort.OpenBytes(data, ort.Options{Provider: ort.CPU, Threads: 1, Release: true, Optimization: ort.OptimizeNone})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	in := map[string]ort.Tensor{"v0": ort.Float32s(make([]float32, 384*384), 384, 384)}
	if _, err := s.RunContext(ctx, in); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a run whose time is up gives %v", err)
	}
	if _, err := s.RunContext(ctx, in); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a run after its time gives %v", err)
	}
}
