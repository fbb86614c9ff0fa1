package export

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gsrc-dev/gsrc/export/dist"
	"github.com/gsrc-dev/gsrc/export/inspect"
	"github.com/gsrc-dev/gsrc/export/manifest"
	"github.com/gsrc-dev/gsrc/export/onnx"
	"github.com/gsrc-dev/gsrc/export/onnxpb"
	"github.com/gsrc-dev/gsrc/export/parity"
	"github.com/gsrc-dev/gsrc/internal/onnxtest"
	"github.com/gsrc-dev/gsrc/models"
	"github.com/gsrc-dev/gsrc/runtime/ort"
	"google.golang.org/protobuf/proto"
)

// externalOptions export a model with two weights of at least 1 KiB.
func externalOptions(t testing.TB) BuildOptions {
	o := buildOptions(t, "gcn/struct=0/l1")
	m, err := models.Lookup("gcn")
	if err != nil {
		t.Fatal(err)
	}
	mo := models.Default()
	mo.Features, mo.Classes, mo.Norm, mo.Hidden = onnxtest.Features, 4, "l1", 160
	o.Module = m.Build(mo)
	o.Params, o.ExternalData = onnxtest.Params(o.Module), 1
	return o
}

// TestExternalData builds a model with its weights in another file, in every
// precision, and expects of it what one file computes.
func TestExternalData(t *testing.T) {
	for _, p := range []onnx.Precision{onnx.FP32, onnx.FP16} {
		one, two := filepath.Join(t.TempDir(), "one"), filepath.Join(t.TempDir(), "two")
		o := externalOptions(t)
		o.Precision = p
		m, _, err := Build(t.Context(), two, o)
		if err != nil {
			t.Fatal(err)
		}
		o.ExternalData = onnx.NoExternalData
		if m, _, err := Build(t.Context(), one, o); err != nil || m.Models["classifier"].Data != "" {
			t.Fatalf("one file: %v, %+v", err, m)
		}
		if info := m.Models["classifier"]; info.Data != "classifier.data" || m.Files["classifier.data"].Bytes <= 4096 && p == onnx.FP32 {
			t.Errorf("%q: the manifest says data %q, files %v", p, info.Data, m.Files)
		}
		if _, _, err := parity.Verify(t.Context(), two, parity.VerifyOptions{Provider: ort.CPU, Library: o.Library}); err != nil {
			t.Error(err)
		}
		var logits [2][]float32
		for k, dir := range []string{one, two} {
			d, err := dist.Open(dir, ort.Options{Provider: ort.CPU, Threads: 1, Library: o.Library})
			if err != nil {
				t.Fatal(err)
			}
			out, err := d.Classify(o.Sample.X, o.Sample.Edges, nil)
			if err := errors.Join(err, d.Close()); err != nil {
				t.Fatal(err)
			}
			logits[k] = out["logits"].F32
		}
		for i, v := range logits[0] {
			if v != logits[1][i] {
				t.Fatalf("%q: logits differ at %d: %g and %g", p, i, v, logits[1][i])
			}
		}
		i, err := inspect.Read(filepath.Join(two, "classifier.onnx"))
		if err != nil {
			t.Fatal(err)
		}
		if len(i.External) != 1 || i.External[0] != "classifier.data" {
			t.Errorf("inspecting finds the files %v", i.External)
		}
		shapes, err := i.OpenShapes(ort.Options{Provider: ort.CPU, Library: o.Library})
		if err != nil {
			t.Fatalf("opening for shapes: %v", err)
		}
		shapes.Close()
	}
	// What is below the threshold stays.
	o := externalOptions(t)
	o.ExternalData = 0
	if m, _, err := Build(t.Context(), filepath.Join(t.TempDir(), "small"), o); err != nil || m.Models["classifier"].Data != "" {
		t.Errorf("%v, data %q", err, m.Models["classifier"].Data)
	}
}

// TestExternalDataDamaged damages the file of weights: every way to use the model
// says what is wrong with which file.
func TestExternalDataDamaged(t *testing.T) {
	o := externalOptions(t)
	dir := filepath.Join(t.TempDir(), "dist")
	if _, _, err := Build(t.Context(), dir, o); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "classifier.data")
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	flipped := bytes.Clone(good)
	flipped[10] ^= 1
	for _, test := range []struct {
		name    string
		content []byte
		verify  string
		inspect string // which reads no checksums; empty: no error
		use     string
	}{
		{"cut", good[:len(good)-1], "the manifest says", "bytes", "the manifest says"},
		{"empty", []byte{}, "it has 0 bytes", "it has 0 bytes", "it has 0 bytes"},
		{"changed", flipped, "SHA-256", "", "its checksum is crc32c:"},
		{"gone", nil, "missing", "missing", "missing"},
	} {
		if test.content == nil {
			err = os.Remove(path)
		} else {
			err = os.WriteFile(path, test.content, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
		expect := func(what string, err error, want string) {
			var file *manifest.FileError
			if want == "" && err != nil || want != "" && (!errors.As(err, &file) || file.Path != path || !strings.Contains(err.Error(), want)) {
				t.Errorf("%s, %s: error %v, want one of %s with %q", test.name, what, err, path, want)
			}
		}
		_, _, err = parity.Verify(t.Context(), dir, parity.VerifyOptions{Provider: ort.CPU, Library: o.Library})
		expect("verify", err, test.verify)
		_, err = inspect.Read(filepath.Join(dir, "classifier.onnx"))
		expect("inspect", err, test.inspect)
		d, err := dist.Open(dir, ort.Options{Provider: ort.CPU, Library: o.Library})
		if err != nil {
			t.Fatal(err)
		}
		_, err = d.Classify(o.Sample.X, o.Sample.Edges, nil)
		expect("classify", err, test.use)
		d.Close()
	}
	// A model that points elsewhere.
	if err := os.WriteFile(path, good, 0o644); err != nil {
		t.Fatal(err)
	}
	model := filepath.Join(dir, "classifier.onnx")
	text, err := os.ReadFile(model)
	if err != nil {
		t.Fatal(err)
	}
	var m onnxpb.ModelProto
	if err := proto.Unmarshal(text, &m); err != nil {
		t.Fatal(err)
	}
	for _, change := range []struct{ key, value, want string }{
		{"location", "../other.data", "no file in the model's folder"}, {"offset", "-8", `offset "-8"`}, {"length", "much", `length "much"`},
	} {
		bad := proto.Clone(&m).(*onnxpb.ModelProto)
		for _, i := range bad.Graph.Initializer {
			for _, e := range i.ExternalData {
				if e.Key == change.key {
					e.Value = change.value
				}
			}
		}
		data, err := onnx.Marshal(bad)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(model, data, 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := inspect.Read(model); err == nil || !strings.Contains(err.Error(), change.want) {
			t.Errorf("%s %q: error %v", change.key, change.value, err)
		}
	}
}

// TestExternalDataInPython loads such a model, elsewhere than in the working
// directory, in the onnx package and in onnxruntime, and compares with the test data.
func TestExternalDataInPython(t *testing.T) {
	python := cmp.Or(os.Getenv("GSRC_PYTHON"), "python3")
	if out, err := exec.Command(python, "-c", "import onnx, onnxruntime").CombinedOutput(); err != nil {
		t.Skipf("%s has no packages onnx and onnxruntime (GSRC_PYTHON names another Python): %v %s", python, err, onnxtest.LastLine(string(out)))
	}
	dir := filepath.Join(t.TempDir(), "dist")
	m, _, err := Build(t.Context(), dir, externalOptions(t))
	if err != nil {
		t.Fatal(err)
	}
	const program = `
import sys, numpy, onnx, onnxruntime
path, data, inputs = sys.argv[1], sys.argv[2], int(sys.argv[3])
onnx.checker.check_model(path, full_check=True)
session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
def read(kind, i):
    t = onnx.load_tensor(f"{data}/{kind}_{i}.pb")
    return t.name, onnx.numpy_helper.to_array(t)
logits = session.run(["logits"], dict(read("input", i) for i in range(inputs)))[0]
want = read("output", 0)[1]
print(numpy.abs(logits - want).max() <= 1e-5 + 1e-4 * numpy.abs(want).max())
`
	info := m.Models["classifier"]
	out, err := exec.CommandContext(t.Context(), python, "-c", program, filepath.Join(dir, info.File), filepath.Join(dir, info.TestData), fmt.Sprint(len(info.Inputs))).CombinedOutput()
	if err != nil || onnxtest.LastLine(string(out)) != "True" {
		t.Errorf("%v\n%s", err, out)
	}
}
