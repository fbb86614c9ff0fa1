package export

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/gsrc-dev/gsrc/export/manifest"
	"github.com/gsrc-dev/gsrc/export/onnx"
	"github.com/gsrc-dev/gsrc/export/onnxpb"
	"github.com/gsrc-dev/gsrc/export/parity"
	"github.com/gsrc-dev/gsrc/internal/atomicfile"
	"github.com/gsrc-dev/gsrc/internal/onnxtest"
	"github.com/gsrc-dev/gsrc/internal/orttest"
	"github.com/gsrc-dev/gsrc/internal/seal"
	"github.com/gsrc-dev/gsrc/ir"
	"github.com/gsrc-dev/gsrc/runtime/ort"
	"google.golang.org/protobuf/proto"
)

// buildOptions exports a model of the zoo on a random graph.
func buildOptions(t testing.TB, model string) BuildOptions {
	t.Helper()
	m := onnxtest.Zoo()[model]
	lib := orttest.Need(t)
	g := onnxtest.Graphs()[6] // 200 nodes, 1500 edges, self-loops
	n := int64(g.N)
	x := ort.Float32s(onnxtest.RandomFloats("x", g.N*onnxtest.Features), n, onnxtest.Features)
	s := parity.ExampleInputs{X: x, Edges: g.EdgeIndex()}
	for _, fn := range m.Funcs {
		if fn.Arg("x_struct") != nil && s.Struct == nil {
			st := ort.Float32s(onnxtest.RandomFloats("x_struct", g.N*3), n, 3)
			s.Struct = &st
		}
	}
	if m.Func("score") != nil {
		refined := s.Edges
		w := onnxtest.RandomFloats("w", len(g.Src))
		for i := range w {
			w[i] = w[i]*0.4 + 0.5
		}
		weights := ort.Float32s(w, int64(len(w)))
		s.Refined, s.Weights = &refined, &weights
	}
	return BuildOptions{
		Module: m, Params: onnxtest.Params(m), Bounds: &manifest.Bounds{Lo: -0.25, Hi: 0.75}, Sample: s, Library: &lib,
		Model: strings.SplitN(model, "/", 2)[0], Dataset: "random", ConfigHash: "c0ffee", Version: "1.2.3",
		Classes: []string{"a", "b", "c", "d"}, Metrics: map[string]float64{"test_acc": 81.5},
		Files: map[string][]byte{"refined_edges.csv": []byte("source,target,probability,status\n")}, Log: t.Logf,
	}
}

// readTree reads every file below dir.
func readTree(t testing.TB, dir string) map[string][]byte {
	t.Helper()
	files := map[string][]byte{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		name, _ := filepath.Rel(dir, path)
		files[filepath.ToSlash(name)] = data
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

var tableNames = []string{onnx.InputDegree, onnx.InputOrder, onnx.InputOrderRows, onnx.InputSegments, onnx.InputSegmentRows, onnx.InputRest, onnx.InputRestore}

func TestBuild(t *testing.T) {
	tests := []struct {
		model    string
		lowering onnx.Lowering
		noWeight bool
		files    []string
		inputs   map[string][]string
	}{
		{"ecl-gsr/struct=3/l1", onnx.DegreeBuckets, false, []string{"encoder.onnx", "scorer.onnx", "classifier.onnx"}, map[string][]string{
			"encoder": {"x", "x_struct", "edge_index"}, "scorer": {"embedding", "pairs"}, "classifier": {"x", "edge_index", "edge_weight"}}},
		{"ecl-gsr/struct=0/l1", onnx.PrecomputedBuckets, false, []string{"encoder.onnx", "scorer.onnx", "classifier.onnx"}, map[string][]string{
			"encoder": slices.Concat([]string{"x", "edge_index"}, tableNames), "scorer": {"embedding", "pairs"},
			"classifier": slices.Concat([]string{"x", "edge_index", "edge_weight"}, tableNames)}},
		{"gcn/struct=0/l2", onnx.Auto, true, []string{"classifier.onnx"}, map[string][]string{"classifier": {"x", "edge_index"}}},
		{"ecl-gsr/struct=0/l1", onnx.Scatter, true, []string{"encoder.onnx", "scorer.onnx", "classifier.onnx"}, map[string][]string{
			"encoder": {"x", "edge_index"}, "scorer": {"embedding", "pairs"}, "classifier": {"x", "edge_index"}}},
		{"ecl-gsr/struct=0/l2", onnx.Dense, false, []string{"encoder.onnx", "scorer.onnx", "classifier.onnx"}, map[string][]string{
			"encoder": {"x", "adjacency"}, "scorer": {"embedding", "pairs"}, "classifier": {"x", "adjacency"}}},
		{"gcn/struct=0/l1", onnx.DegreeBuckets, false, []string{"classifier.onnx"}, map[string][]string{"classifier": {"x", "edge_index", "edge_weight"}}},
		{"mlp/struct=0/l1", onnx.Dense, false, []string{"classifier.onnx"}, map[string][]string{"classifier": {"x"}}},
	}
	for _, test := range tests {
		t.Run(test.model+"/"+string(test.lowering), func(t *testing.T) {
			o := buildOptions(t, test.model)
			o.Lowering, o.NoEdgeWeight = test.lowering, test.noWeight
			dir := filepath.Join(t.TempDir(), "dist")
			m, report, err := Build(t.Context(), dir, o)
			if err != nil {
				t.Fatal(err)
			}
			want := test.lowering
			if want == onnx.Auto {
				want = onnx.Scatter // few numbers travel along the edges of so small a graph
			}
			if m.Lowering != want {
				t.Errorf("the manifest says %s, want %s", m.Lowering, want)
			}
			files := readTree(t, dir)
			for _, name := range append(test.files, "manifest.json", "parity.json", "refined_edges.csv") {
				if _, ok := files[name]; !ok {
					t.Errorf("%s is missing; there are %v", name, slices.Sorted(maps.Keys(files)))
				}
			}
			for role, want := range test.inputs {
				var got []string
				for _, in := range m.Models[role].Inputs {
					got = append(got, in.Name)
				}
				if !slices.Equal(got, want) {
					t.Errorf("inputs of the %s are %v, want %v", role, got, want)
				}
			}
			if wantInductive := !strings.Contains(test.model, "struct=3"); m.Inductive != wantInductive {
				t.Errorf("inductive is %v", m.Inductive)
			}
			if len(report.Cases) < 8*len(test.files) {
				t.Errorf("%d comparisons, want 8 for each model", len(report.Cases))
			}
			again := filepath.Join(t.TempDir(), "dist")
			if _, _, err := Build(t.Context(), again, o); err != nil {
				t.Fatal(err)
			}
			for name, data := range readTree(t, again) {
				if !bytes.Equal(data, files[name]) {
					t.Errorf("%s differs between two builds", name)
				}
			}
			if _, report, err := parity.Verify(t.Context(), dir, parity.VerifyOptions{Provider: ort.CPU, Library: o.Library, Log: t.Logf}); err != nil || len(report.Cases) < len(test.files) {
				t.Errorf("verify: %v, report %+v", err, report)
			}
			read, err := manifest.Read(dir)
			if err != nil {
				t.Fatal(err)
			}
			if a, b := mustJSON(t, read), mustJSON(t, m); a != b {
				t.Errorf("the manifest reads back as\n%s\nwritten was\n%s", a, b)
			}
		})
	}
}

func mustJSON(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestModelFile checks what someone who deploys the file relies on.
func TestModelFile(t *testing.T) {
	o := buildOptions(t, "ecl-gsr/struct=0/l1")
	dir := filepath.Join(t.TempDir(), "dist")
	if _, _, err := Build(t.Context(), dir, o); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(dir, "classifier.onnx"))
	if err != nil {
		t.Fatal(err)
	}
	var m onnxpb.ModelProto
	if err := proto.Unmarshal(data, &m); err != nil {
		t.Fatal(err)
	}
	if m.IrVersion != 8 || len(m.OpsetImport) != 1 || m.OpsetImport[0].Version != 17 || m.OpsetImport[0].Domain != "" {
		t.Errorf("IR version %d, operator sets %v; want 8 and 17 alone", m.IrVersion, m.OpsetImport)
	}
	s := onnxtest.Open(t, data, 1)
	md := s.Metadata()
	for key, want := range map[string]string{
		"task": "node-classification", "lowering": "buckets", "class_labels": `["a","b","c","d"]`, "num_features": "6",
		"normalization": "rows by their l1 norm, inside the model", "self_loops": "dropped from the input, one a node added inside the model",
		"config_hash": "c0ffee", "dataset": "random", "metrics": `{"test_acc":81.5}`, "inductive": "true", "gsrc_version": "1.2.3",
	} {
		if md[key] != want {
			t.Errorf("metadata %s is %q, want %q", key, md[key], want)
		}
	}
	names := map[string]bool{}
	for _, n := range m.Graph.Node {
		if n.Name == "" || names[n.Name] {
			t.Errorf("node name %q is empty or used twice", n.Name)
		}
		names[n.Name] = true
		if n.OpType == "ScatterND" || n.OpType == "LpNormalization" {
			t.Errorf("node %s is %s, which is never emitted", n.Name, n.OpType)
		}
	}
	typed := map[string]bool{}
	for _, v := range slices.Concat(m.Graph.Input, m.Graph.Output, m.Graph.ValueInfo) {
		typed[v.Name] = true
	}
	for _, n := range m.Graph.Node {
		for _, out := range n.Output {
			if !typed[out] {
				t.Errorf("value %s has no type", out)
			}
		}
	}
	for _, v := range slices.Concat(m.Graph.Input, m.Graph.Output) {
		if v.DocString == "" {
			t.Errorf("%s has no doc string", v.Name)
		}
	}
	contents := map[string]string{}
	for _, p := range m.Graph.Initializer {
		key := mustJSON(t, []any{p.Dims, p.DataType, p.RawData})
		if other, ok := contents[key]; ok {
			t.Errorf("initialisers %s and %s have the same content", other, p.Name)
		}
		contents[key] = p.Name
	}
}

// TestBuildFindsViolations gives Build a forward pass that is wrong in one
// number, and expects to be told where.
func TestBuildFindsViolations(t *testing.T) {
	o := buildOptions(t, "gcn/struct=0/l1")
	right := onnx.Interpreter(o.Module, o.Params, nil)
	o.Forward = func(fn string, in map[string]ort.Tensor) (map[string]ort.Tensor, error) {
		out, err := right(fn, in)
		if err == nil && len(in["edge_index"].I64) == 0 {
			out["logits"].F32[3] += 0.01
		}
		return out, err
	}
	dir := filepath.Join(t.TempDir(), "dist")
	_, report, err := Build(t.Context(), dir, o)
	var parity *parity.Error
	if !errors.As(err, &parity) {
		t.Fatalf("error %v, want a ParityError", err)
	}
	if parity.Model != "classifier" || parity.Case != "no edges" || parity.Output != "logits" || parity.Index != 3 || parity.Runtime != "onnxruntime" {
		t.Errorf("the error points to %+v", parity)
	}
	if report == nil || len(report.Cases) == 0 {
		t.Error("the report is missing")
	}
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a failed build left %s", dir)
	}
	o.Forward = func(string, map[string]ort.Tensor) (map[string]ort.Tensor, error) {
		return nil, errors.New("no executor")
	}
	if _, _, err := Build(t.Context(), dir, o); err == nil || !strings.Contains(err.Error(), "no executor") {
		t.Errorf("error %v, want that of the forward pass", err)
	}
}

// Where the training's cosines are next to each other, their rounding is a large part of a
// probability: that much is allowed there, of probabilities alone, and nothing elsewhere.
func TestBuildNarrowBounds(t *testing.T) {
	for _, x := range []struct {
		hi     float32
		output string
		by     float32
		ok     bool
	}{{0.2001, "probability", 1e-3, true}, {0.2001, "probability", 1e-2, false}, {0.2001, "similarity", 1e-3, false}, {0.75, "probability", 1e-3, false}, {0.75, "probability", 0, true}} {
		o := buildOptions(t, "ecl-gsr/struct=0/l1")
		o.Bounds = &manifest.Bounds{Lo: 0.2, Hi: x.hi}
		right := onnx.Interpreter(o.Module, o.Params, map[string]float32{"lo": o.Bounds.Lo, "hi": o.Bounds.Hi})
		o.Forward = func(fn string, in map[string]ort.Tensor) (map[string]ort.Tensor, error) {
			out, err := right(fn, in)
			if fn == "score" && err == nil {
				out[x.output].F32[0] += x.by
			}
			return out, err
		}
		dir := filepath.Join(t.TempDir(), "dist")
		m, _, err := Build(t.Context(), dir, o)
		if (err == nil) != x.ok {
			t.Errorf("%+v: %v", x, err)
		}
		if err == nil {
			if (m.Models["scorer"].Bound().Edges > 0) != (x.hi < 0.75) || m.Models["encoder"].Tolerance != nil {
				t.Errorf("the manifest has the bounds %v", m.Models)
			}
			if _, _, err := parity.Verify(t.Context(), dir, parity.VerifyOptions{Provider: ort.CPU, Library: o.Library}); err != nil {
				t.Error(err)
			}
		}
	}
}

var checksumLine = regexp.MustCompile(`,\n  "checksum": "crc32c:[0-9a-f]{8}"`)

// reseal gives a changed manifest its right checksum.
func reseal(b []byte) []byte {
	b = checksumLine.ReplaceAll(b, []byte(",\n  \"checksum\": \""+seal.Blank+"\""))
	seal.Stamp(b)
	return b
}

func TestVerifyFindsChanges(t *testing.T) {
	o := buildOptions(t, "gcn/struct=0/l1")
	good := filepath.Join(t.TempDir(), "good")
	if _, _, err := Build(t.Context(), good, o); err != nil {
		t.Fatal(err)
	}
	rewrite := func(name string, f func([]byte) []byte) func(*testing.T, string) {
		return func(t *testing.T, dir string) {
			path := filepath.Join(dir, name)
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, f(data), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	flip := func(b []byte) []byte { b[len(b)/2] ^= 1; return b }
	cut := func(b []byte) []byte { return b[:len(b)/2] }
	replace := func(old, new string) func([]byte) []byte {
		return func(b []byte) []byte { return bytes.Replace(b, []byte(old), []byte(new), 1) }
	}
	sealed := func(old, new string) func([]byte) []byte {
		return func(b []byte) []byte {
			changed := replace(old, new)(b)
			if bytes.Equal(b, changed) {
				t.Errorf("the manifest does not hold %s", old)
			}
			return reseal(changed)
		}
	}
	tests := []struct {
		name   string
		change func(*testing.T, string)
		want   string
	}{
		{"model changed", rewrite("classifier.onnx", flip), "SHA-256"},
		{"model cut", rewrite("classifier.onnx", cut), "the manifest says"},
		{"test data changed", rewrite("test_data_set_0/classifier/output_0.pb", flip), "SHA-256"},
		{"file gone", func(t *testing.T, dir string) { os.Remove(filepath.Join(dir, "refined_edges.csv")) }, "missing"},
		{"manifest gone", func(t *testing.T, dir string) { os.Remove(filepath.Join(dir, "manifest.json")) }, "no export of gsrc"},
		{"manifest cut", rewrite("manifest.json", cut), "manifest.json"},
		{"manifest empty", rewrite("manifest.json", func([]byte) []byte { return nil }), "manifest.json"},
		{"manifest changed", rewrite("manifest.json", flip), "manifest.json: it does not fit its checksum"},
		{"manifest without checksum", rewrite("manifest.json", func(b []byte) []byte { return checksumLine.ReplaceAll(b, nil) }), "its checksum is gone"},
		{"manifest of the future", rewrite("manifest.json", sealed(`"schema_version": 2`, `"schema_version": 3`)), "schema version 3"},
		{"manifest points outside", rewrite("manifest.json", sealed(`"refined_edges.csv"`, `"../refined_edges.csv"`)), "outside the folder"},
		{"manifest names another model", rewrite("manifest.json", sealed(`"file": "classifier.onnx"`, `"file": "other.onnx"`)), "not in its list"},
		{"test data points outside", rewrite("manifest.json", sealed(`"test_data": "test`, `"test_data": "../test`)), "outside the folder"},
		// What follows has a right checksum, and is wrong.
		{"no features", rewrite("manifest.json", sealed(`"num_features": 6`, `"num_features": 0`)), "num_features is 0"},
		{"negative features", rewrite("manifest.json", sealed(`"num_features": 6`, `"num_features": -1`)), "num_features is -1"},
		{"too many features", rewrite("manifest.json", sealed(`"num_features": 6`, `"num_features": 1099511627776`)), "num_features is 1099511627776"},
		{"other features", rewrite("manifest.json", sealed(`"num_features": 6`, `"num_features": 8`)), "x has 6 columns"},
		{"negative hops", rewrite("manifest.json", sealed(`"hops": 2`, `"hops": -1`)), "hops of the classifier is -1"},
		{"other hops", rewrite("manifest.json", sealed(`"hops": 2`, `"hops": 1`)), "it says that hops is"},
		{"no hops", rewrite("manifest.json", sealed(`"hops": 2,`, ``)), "it says that hops is"},
		{"no models", rewrite("manifest.json", func(b []byte) []byte {
			return reseal(regexp.MustCompile(`(?s)"models": \{.*?\n  \}`).ReplaceAll(b, []byte(`"models": {}`)))
		}), "names no models"},
		{"classes exchanged", rewrite("manifest.json", func(b []byte) []byte {
			var m manifest.Manifest
			if err := json.Unmarshal(b, &m); err != nil {
				t.Fatal(err)
			}
			slices.Reverse(m.Classes)
			text, err := m.Marshal()
			if err != nil {
				t.Fatal(err)
			}
			return text
		}), "it says that the list of classes is"},
		{"a class less", rewrite("manifest.json", func(b []byte) []byte {
			return reseal(regexp.MustCompile(`(?s)"classes": \[\s*"[^"]*",`).ReplaceAll(b, []byte(`"classes": [`)))
		}), "logits has"},
		{"another type", rewrite("manifest.json", sealed(`"dtype": "float32"`, `"dtype": "float64"`)), "of the type \"float64\""},
		{"another input", rewrite("manifest.json", sealed(`"name": "edge_index"`, `"name": "edges"`)), "the manifest's input 1 is \"edges\""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "dist")
			if err := os.CopyFS(dir, os.DirFS(good)); err != nil {
				t.Fatal(err)
			}
			test.change(t, dir)
			_, _, err := parity.Verify(t.Context(), dir, parity.VerifyOptions{Provider: ort.CPU, Library: o.Library})
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want one with %q", err, test.want)
			}
		})
	}
}

// TestVerifyComparesOutputs exchanges the expected output for another one with
// a right checksum: the comparison has to find it.
func TestVerifyComparesOutputs(t *testing.T) {
	o := buildOptions(t, "gcn/struct=0/l1")
	dir := filepath.Join(t.TempDir(), "dist")
	if _, _, err := Build(t.Context(), dir, o); err != nil {
		t.Fatal(err)
	}
	name := "test_data_set_0/classifier/output_1.pb"
	path := filepath.Join(dir, name)
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	out, tensor, err := onnx.ParseTensor(path, content)
	if err != nil {
		t.Fatal(err)
	}
	tensor.F32[17] += 0.5
	p, err := onnx.TensorProto(out, tensor)
	if err != nil {
		t.Fatal(err)
	}
	data, err := proto.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	m, err := manifest.Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	m.Files[name] = manifest.NewFileInfo(data)
	text, err := m.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	for file, content := range map[string][]byte{path: data, filepath.Join(dir, manifest.FileName): text} {
		if err := os.WriteFile(file, content, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	_, _, err = parity.Verify(t.Context(), dir, parity.VerifyOptions{Provider: ort.CPU, Library: o.Library})
	var parity *parity.Error
	if !errors.As(err, &parity) || parity.Output != "probabilities" || parity.Index != 17 {
		t.Errorf("error %v, want a ParityError at position 17 of probabilities", err)
	}
}

func TestBuildReplacesOnlyExports(t *testing.T) {
	o := buildOptions(t, "mlp/struct=0/none")
	dir := filepath.Join(t.TempDir(), "dist")
	for range 2 { // the second replaces the first
		if _, _, err := Build(t.Context(), dir, o); err != nil {
			t.Fatal(err)
		}
	}
	entries, err := os.ReadDir(filepath.Dir(dir))
	if err != nil || len(entries) != 1 {
		t.Errorf("beside the export lie %v (%v)", entries, err)
	}
	other := t.TempDir()
	if err := os.WriteFile(filepath.Join(other, "thesis.tex"), []byte("precious"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, _, err := Build(t.Context(), other, o); err == nil || !strings.Contains(err.Error(), "not empty") {
		t.Errorf("error %v, want a refusal to replace a folder that is no export", err)
	}
	if data, err := os.ReadFile(filepath.Join(other, "thesis.tex")); err != nil || string(data) != "precious" {
		t.Errorf("a file of another kind of folder was touched: %q, %v", data, err)
	}
}

// TestFullDisk lets writing fail at every file in turn: the earlier export stays
// as it was, and nothing lies beside it.
func TestFullDisk(t *testing.T) {
	o := buildOptions(t, "mlp/struct=0/none")
	dir := filepath.Join(t.TempDir(), "dist")
	if _, _, err := Build(t.Context(), dir, o); err != nil {
		t.Fatal(err)
	}
	before := readTree(t, dir)
	files := map[string][]byte{"a": []byte("1"), "b/c": []byte("2"), "manifest.json": []byte("{}")}
	for fail := range len(files) {
		calls := 0
		err := atomicfile.WriteFolder(dir, files, CheckFolder, func(path string, data []byte) error {
			if calls++; calls > fail {
				return &fs.PathError{Op: "write", Path: path, Err: syscall.ENOSPC}
			}
			return atomicfile.WriteSynced(path, data)
		})
		if !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("error %v, want that the disk is full", err)
		}
		if !maps.EqualFunc(before, readTree(t, dir), bytes.Equal) {
			t.Error("the earlier export has changed")
		}
		if entries, err := os.ReadDir(filepath.Dir(dir)); err != nil || len(entries) != 1 {
			t.Errorf("beside the export lie %v (%v)", entries, err)
		}
	}
}

func TestBuildUnverified(t *testing.T) {
	o := buildOptions(t, "gcn/struct=0/l1")
	o.Unverified, o.Library = true, &ort.Library{Path: "/nowhere"}
	dir := filepath.Join(t.TempDir(), "dist")
	m, _, err := Build(t.Context(), dir, o)
	if err != nil {
		t.Fatal(err)
	}
	if m.Verified {
		t.Error("the manifest claims a parity check that did not run")
	}
}

func TestBuildErrors(t *testing.T) {
	bad := ort.Int64s([]int64{0, 900}, 2, 1)
	nan := float32(0)
	nan /= nan
	tests := []struct {
		name   string
		change func(*BuildOptions)
		want   string
	}{
		{"no module", func(o *BuildOptions) { o.Module = nil }, "no module"},
		{"lowering", func(o *BuildOptions) { o.Lowering = "magic" }, "unknown lowering"},
		{"external data", func(o *BuildOptions) { o.ExternalData = -5 }, "ExternalData is -5: give a size"},
		{"parameter missing", func(o *BuildOptions) { delete(o.Params, "classifier.0.weight") }, "$classifier.0.weight was not given"},
		{"parameter of another size", func(o *BuildOptions) { o.Params["classifier.0.bias"] = make([]float32, 2) }, "got 2 numbers"},
		{"parameter NaN", func(o *BuildOptions) { o.Params["classifier.0.bias"][1] = nan }, "is NaN at position 1"},
		{"no bounds", func(o *BuildOptions) { o.Bounds = nil }, "bounds"},
		{"no nodes", func(o *BuildOptions) { o.Sample.X = ort.Float32s(nil, 0, onnxtest.Features) }, "no nodes"},
		{"features of another type", func(o *BuildOptions) { o.Sample.X = ort.Int64s(make([]int64, 6), 1, 6) }, "want float32"},
		{"edge out of range", func(o *BuildOptions) { o.Sample.Edges = bad }, "outside the nodes"},
		{"edges of another shape", func(o *BuildOptions) { o.Sample.Edges = ort.Int64s([]int64{0, 1, 2}, 3, 1) }, "want int64 [2,E]"},
		{"weights of another length", func(o *BuildOptions) { w := ort.Float32s([]float32{1}, 1); o.Sample.Weights = &w }, "edge_weight"},
		{"file outside", func(o *BuildOptions) { o.Files = map[string][]byte{"../x": nil} }, "outside the folder"},
		{"nothing to export", func(o *BuildOptions) { o.Module = ir.NewModule("empty") }, "nothing to export"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			o := buildOptions(t, "ecl-gsr/struct=0/l1")
			test.change(&o)
			dir := filepath.Join(t.TempDir(), "dist")
			_, _, err := Build(context.Background(), dir, o)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want one with %q", err, test.want)
			}
			if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("a failed build left %s", dir)
			}
		})
	}
}
