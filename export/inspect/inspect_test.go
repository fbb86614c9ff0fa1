package inspect

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gsrc-dev/gsrc/export/manifest"
	"github.com/gsrc-dev/gsrc/export/onnx"
	"github.com/gsrc-dev/gsrc/export/onnxpb"
	"github.com/gsrc-dev/gsrc/ir"
	"github.com/gsrc-dev/gsrc/runtime/ort"
)

// What a small file holds, and the memory of a run counted by hand.
func TestInspect(t *testing.T) {
	m := ir.NewModule("small")
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
	shapes, err := i.OpenShapes(ort.Options{Provider: ort.CPU})
	if err != nil {
		t.Fatal(err)
	}
	defer shapes.Close()
	for _, out := range shapes.session.Outputs() { // onnxruntime, where it is asked, tells how many sizes
		if !slices.Equal(out.Dims, []int64{-1}) {
			t.Errorf("the output %s has the shape %v: it is not declared in full", out.Name, out.Dims)
		}
	}
	// Two matrices of 4 columns at a time, and the output copied.
	if peak, err := shapes.Peak(map[string]ort.Tensor{"x": ort.Float32s(make([]float32, n*5), n, 5)}); err != nil || peak != 3*4*n*4 {
		t.Errorf("%d bytes at the peak (%v), want %d", peak, err, 3*4*n*4)
	}
	shapes.model.Graph.Output[0].Type.GetTensorType().Shape.Dim[1].Value = &onnxpb.TensorShapeProto_Dimension_DimParam{DimParam: "num_nodes"}
	_, err = shapes.Peak(map[string]ort.Tensor{"x": ort.Float32s(make([]float32, n*5), n, 5)})
	if err == nil || !strings.Contains(err.Error(), "the size num_nodes is") {
		t.Errorf("two sizes of one name: %v", err)
	}
}

// small is a model of one operation, and its file.
func small(t *testing.T) (*onnxpb.ModelProto, []byte) {
	t.Helper()
	m := ir.NewModule("small")
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
	return model, data
}

// A damaged file is an error or what is left of a model; it is no panic.
func TestInspectDamagedFiles(t *testing.T) {
	_, data := small(t)
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

// A model of an export that is not what the manifest says is an error.
func TestReadAllChecksModels(t *testing.T) {
	model, data := small(t)
	dir := t.TempDir()
	write := func(name string, data []byte) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("f.onnx", data)
	export := manifest.Manifest{SchemaVersion: manifest.Version, NumFeatures: 5, Files: map[string]manifest.FileInfo{"f.onnx": manifest.NewFileInfo(data), "g.onnx": manifest.NewFileInfo(data)},
		Models: map[string]manifest.ModelInfo{}}
	for role, file := range map[string]string{"classifier": "f.onnx", "encoder": "g.onnx"} {
		export.Models[role] = manifest.ModelInfo{File: file, Inputs: manifest.NewIOInfos(model.Graph.Input), Outputs: manifest.NewIOInfos(model.Graph.Output), TestData: "t"}
	}
	text, err := export.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	write(manifest.FileName, text)
	expect := func(want string) {
		t.Helper()
		_, err := ReadAll(dir)
		var fault *manifest.FileError
		if want == "" && err != nil || want != "" && (!errors.As(err, &fault) || !strings.Contains(err.Error(), want)) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
	expect("g.onnx: the manifest lists it, and it is missing")
	write("g.onnx", data)
	expect("")
	other := bytes.Replace(data, []byte("gsrc"), []byte("gsrb"), 1)
	write("f.onnx", other)
	expect("f.onnx: its SHA-256 is")
}
