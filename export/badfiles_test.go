package export

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gsrc-dev/gsrc/export/dist"
	"github.com/gsrc-dev/gsrc/export/manifest"
	"github.com/gsrc-dev/gsrc/export/onnx"
	"github.com/gsrc-dev/gsrc/export/onnxpb"
	"github.com/gsrc-dev/gsrc/runtime/ort"
	"google.golang.org/protobuf/proto"
)

// TestBadFiles opens exports whose classifier is damaged, and has the right checksum
// nevertheless: an error that names the file, and no crash.
func TestBadFiles(t *testing.T) {
	o := buildOptions(t, "gcn/struct=0/l1")
	good := filepath.Join(t.TempDir(), "dist")
	if _, _, err := Build(t.Context(), good, o); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(good, "classifier.onnx"))
	if err != nil {
		t.Fatal(err)
	}
	changed := func(f func(*onnxpb.ModelProto)) []byte {
		var m onnxpb.ModelProto
		if err := proto.Unmarshal(data, &m); err != nil {
			t.Fatal(err)
		}
		f(&m)
		out, err := proto.Marshal(&m)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	files := map[string][]byte{
		"empty":                       {},
		"of another kind":             []byte("PK\x03\x04 not a model"),
		"zeros":                       make([]byte, len(data)),
		"of an operator set to come":  changed(func(m *onnxpb.ModelProto) { m.OpsetImport[0].Version = 999 }),
		"of an IR version to come":    changed(func(m *onnxpb.ModelProto) { m.IrVersion = 999 }),
		"with an unknown operator":    changed(func(m *onnxpb.ModelProto) { m.Graph.Node[0].OpType = "Unheard" }),
		"without a parameter":         changed(func(m *onnxpb.ModelProto) { m.Graph.Initializer = m.Graph.Initializer[1:] }),
		"with a parameter cut off":    changed(func(m *onnxpb.ModelProto) { cutLargest(m) }),
		"without its inputs":          changed(func(m *onnxpb.ModelProto) { m.Graph.Input = nil }),
		"with inputs of other names":  changed(func(m *onnxpb.ModelProto) { m.Graph.Input[0].Name = "features" }),
		"with operations in disorder": changed(func(m *onnxpb.ModelProto) { m.Graph.Node = m.Graph.Node[len(m.Graph.Node)/2:] }),
	}
	for _, part := range []int{1, 100, len(data) / 2, len(data) - 1} {
		files[fmt.Sprintf("cut after %d bytes", part)] = data[:part]
	}
	for name, content := range files {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "dist")
			if err := os.CopyFS(dir, os.DirFS(good)); err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(dir, "classifier.onnx")
			if err := os.WriteFile(path, content, 0o644); err != nil {
				t.Fatal(err)
			}
			m, err := manifest.Read(dir)
			if err != nil {
				t.Fatal(err)
			}
			m.Files["classifier.onnx"] = manifest.NewFileInfo(content)
			text, err := m.Marshal()
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, manifest.FileName), text, 0o644); err != nil {
				t.Fatal(err)
			}
			d, err := dist.Open(dir, ort.Options{Provider: ort.CPU, Library: o.Library})
			if err != nil {
				t.Fatal(err)
			}
			defer d.Close()
			_, err = d.Classify(o.Sample.X, o.Sample.Edges, nil)
			if err == nil {
				t.Fatal("the file was run")
			}
			if len(err.Error()) < 20 || strings.Contains(err.Error(), "\n\n") {
				t.Errorf("the error %q says little", err)
			}
		})
	}
}

// cutLargest takes the end of the largest parameter's data away.
func cutLargest(m *onnxpb.ModelProto) {
	var largest *onnxpb.TensorProto
	for _, p := range m.Graph.Initializer {
		if largest == nil || len(p.RawData) > len(largest.RawData) {
			largest = p
		}
	}
	largest.RawData = largest.RawData[:len(largest.RawData)-4]
}

// TestBadTestData reads damaged tensor files.
func TestBadTestData(t *testing.T) {
	good, err := onnx.MarshalTensor("x", ort.Float32s([]float32{1, 2, 3, 4}, 2, 2))
	if err != nil {
		t.Fatal(err)
	}
	kind, err := proto.Marshal(&onnxpb.TensorProto{Name: "x", Dims: []int64{1}, DataType: 8, RawData: []byte("1234")})
	if err != nil {
		t.Fatal(err)
	}
	huge, err := proto.Marshal(&onnxpb.TensorProto{Name: "x", Dims: []int64{1 << 40, 1 << 40}, DataType: int32(onnxpb.TensorProto_FLOAT), RawData: []byte("1234")})
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string][]byte{"cut": good[:len(good)-3], "text": []byte("x,y\n1,2\n"), "another type": kind, "huge": huge} {
		path := filepath.Join(t.TempDir(), "input_0.pb")
		if _, _, err := onnx.ParseTensor(path, content); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: error %v, want one that names the file", name, err)
		}
	}
}
