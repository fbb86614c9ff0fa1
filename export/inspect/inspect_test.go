package inspect

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/gsrc-dev/gsrc/export/onnx"
	"github.com/gsrc-dev/gsrc/ir"
	"github.com/gsrc-dev/gsrc/runtime/ort"
)

// The cost of a program whose operations are counted by hand.
func TestCostIsCounted(t *testing.T) {
	m := ir.NewModule("cost")
	w := m.AddParam("w", ir.T(ir.F32, "5", "4"), "zeros", 0, "")
	b := m.NewFunc("f")
	x := b.Arg("x", ir.T(ir.F32, "N", "5"))
	b.Return("y", b.One("softmax", nil, b.One("relu", nil, b.MatMul(x, w))))
	model, err := onnx.Model(b.Func, map[string][]float32{"w": make([]float32, 20)}, onnx.ModelOptions{})
	if err != nil {
		t.Fatal(err)
	}
	data, err := onnx.Marshal(model)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "f.onnx")
	if err := os.WriteFile(path, data, 0o644); err != nil {
		t.Fatal(err)
	}
	i, err := Read(path)
	if err != nil {
		t.Fatal(err)
	}
	if i.Parameters.Elements != 20 || i.Parameters.Bytes != 80 || i.Inputs[0].Name != "x" || i.Opsets[""] != onnx.OpsetVersion {
		t.Errorf("the file is described as %+v", i)
	}
	const n = 7
	if err := i.Measure(map[string]ort.Tensor{"x": ort.Float32s(make([]float32, n*5), n, 5)}, ort.Options{Provider: ort.CPU}); err != nil {
		t.Fatal(err)
	}
	// Product, ReLU, softmax; the last operation names the output.
	wantFlops := int64(2*n*5*4 + n*4 + 5*n*4)
	wantBytes := int64(4 * (n*5 + 20 + n*4 + 2*n*4 + 2*n*4))
	if i.Cost.Flops != wantFlops || i.Cost.Bytes != wantBytes {
		t.Errorf("%d flops and %d bytes, want %d and %d", i.Cost.Flops, i.Cost.Bytes, wantFlops, wantBytes)
	}
	if i.Cost.PerNode.Flops != float64(wantFlops)/n || i.Cost.PerEdge.Flops != 0 {
		t.Errorf("%v flops a node and %v an edge", i.Cost.PerNode.Flops, i.Cost.PerEdge.Flops)
	}
}

// A damaged file is an error or what is left of a model; it is no panic.
func TestInspectDamagedFiles(t *testing.T) {
	m := ir.NewModule("damaged")
	b := m.NewFunc("f")
	b.Return("y", b.One("relu", nil, b.Arg("x", ir.T(ir.F32, "N", "5"))))
	model, err := onnx.Model(b.Func, nil, onnx.ModelOptions{})
	if err != nil {
		t.Fatal(err)
	}
	data, err := onnx.Marshal(model)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "f.onnx")
	for cut := range data {
		damaged := append([]byte(nil), data...)
		damaged[cut] ^= 0x55
		for _, text := range [][]byte{data[:cut], damaged} {
			if err := os.WriteFile(path, text, 0o644); err != nil {
				t.Fatal(err)
			}
			if i, err := Read(path); err == nil && len(i.Operations) == 0 {
				t.Errorf("with a fault at byte %d a file without operations is taken for a model", cut)
			}
		}
	}
}
