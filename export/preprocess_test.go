package export

import (
	"cmp"
	"encoding/binary"
	"encoding/csv"
	"encoding/json"
	"errors"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gsrc-dev/gsrc/data"
	"github.com/gsrc-dev/gsrc/data/company"
	"github.com/gsrc-dev/gsrc/data/schema"
	"github.com/gsrc-dev/gsrc/export/onnx"
	"github.com/gsrc-dev/gsrc/internal/orttest"
	"github.com/gsrc-dev/gsrc/runtime/ort"
)

// preprocessed generates a company's table, and returns its folder, its data set, and the
// model of its columns, which is in preprocess.onnx of the folder and was checked.
func preprocessed(t *testing.T, rows int) (dir string, ds *data.Dataset) {
	t.Helper()
	dir = t.TempDir()
	if err := company.Write(dir, company.Options{Nodes: rows, Edges: 10, Seed: 3}); err != nil {
		t.Fatal(err)
	}
	ds, err := data.Load(dir, data.LoadOptions{Tables: data.Tables{Label: "churned"}})
	if err != nil {
		t.Fatal(err)
	}
	lib, files := orttest.Need(t), map[string][]byte{}
	said := ""
	o := &BuildOptions{Columns: ds.Columns, Library: &lib, Log: func(format string, args ...any) { said += format }}
	if err := o.addPreprocess(t.Context(), nil, files); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(said, "prepares") {
		t.Errorf("it was not checked: %q", said)
	}
	if err := os.WriteFile(filepath.Join(dir, PreprocessFile), files[PreprocessFile], 0o644); err != nil {
		t.Fatal(err)
	}
	return dir, ds
}

// Columns of any magnitude are prepared as the training has them.
func TestPreprocessMagnitudes(t *testing.T) {
	lib, s := orttest.Need(t), &schema.Schema{Version: schema.Version}
	for i, v := range []float64{1, 1e-12, 1e-30, 1e-40, 3e-44, 1e-45, 1e-46, 1e-50, 1e-100, 1e-300, 3e-310, 1e50, 1e149} {
		s.Columns = append(s.Columns, schema.Column{Name: strconv.Itoa(i), Kind: schema.Number, Missing: i%2 == 0, Center: 0.3 * v, Scale: v})
	}
	o := &BuildOptions{Columns: s, Library: &lib, Log: func(string, ...any) {}}
	if err := o.addPreprocess(t.Context(), nil, map[string][]byte{}); err != nil {
		t.Error(err)
	}
}

// The file makes of the cells of a table what the training has read.
func TestPreprocess(t *testing.T) {
	dir, ds := preprocessed(t, 1000)
	f, err := os.Open(filepath.Join(dir, "nodes.csv"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	inputs, n := map[string]ort.Tensor{}, len(rows)-1
	for _, c := range ds.Columns.Columns {
		at := 0
		for rows[0][at] != c.Name {
			at++
		}
		texts, numbers := make([]string, n), make([]float64, n)
		for i, row := range rows[1:] {
			texts[i] = row[at]
			switch s := row[at]; {
			case s == "" || c.Kind == schema.Category:
				numbers[i] = math.NaN()
			case c.Kind == schema.Boolean:
				if s == "true" {
					numbers[i] = 1
				}
			case c.Kind == schema.Time:
				at, err := time.Parse(time.DateTime, s)
				if len(s) == len(time.DateOnly) {
					at, err = time.Parse(time.DateOnly, s)
				}
				if err != nil {
					t.Fatal(err)
				}
				numbers[i] = float64(at.Unix())
			default:
				if numbers[i], err = strconv.ParseFloat(s, 64); err != nil {
					t.Fatal(err)
				}
			}
		}
		if inputs[c.Name] = ort.Float64s(numbers, int64(n)); c.Kind == schema.Category {
			inputs[c.Name] = ort.Strings(texts, int64(n))
		}
	}
	lib := orttest.Need(t)
	s, err := ort.Open(filepath.Join(dir, PreprocessFile), ort.Options{Provider: ort.CPU, Library: &lib})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	out, err := s.Run(inputs)
	if err != nil {
		t.Fatal(err)
	}
	have, want := out["x"], ds.X.ToDense()
	if len(have.Shape) != 2 || have.Shape[1] != int64(want.Cols) || len(have.F32) != len(want.Dense) {
		t.Fatalf("features of shape %v, want [%d,%d]", have.Shape, want.Rows, want.Cols)
	}
	for i, v := range want.Dense {
		if !(math.Abs(float64(v-have.F32[i])) <= 1e-5) {
			t.Fatalf("row %d, %s: %v, want %v", i/want.Cols, ds.Columns.Features()[i%want.Cols], have.F32[i], v)
		}
	}
	inputs["age"].F64[0] = math.Inf(1)
	if out, err = s.Run(inputs); err != nil || out["x"].F32[0] != schema.Clip {
		t.Errorf("an infinite age gives %v, %v", out["x"].F32[0], err)
	}
}

func TestPreprocessNames(t *testing.T) {
	column := func(names ...string) *schema.Schema {
		s := &schema.Schema{Version: schema.Version}
		for _, n := range names {
			s.Columns = append(s.Columns, schema.Column{Name: n, Kind: schema.Number, Scale: 1})
		}
		return s
	}
	for _, c := range []struct {
		names  []string
		output string
	}{{[]string{"a b", "é"}, "x"}, {[]string{"x", "y"}, "x_prepared"}, {[]string{"x", "x_prepared"}, ""}} {
		if _, output, err := onnx.Preprocess(column(c.names...), onnx.ModelOptions{}); output != c.output || (err == nil) != (c.output != "") {
			t.Errorf("%q: output %q, %v", c.names, output, err)
		}
	}
	// No values that are frequent enough, constants, and columns that stay as they are.
	lib, files := orttest.Need(t), map[string][]byte{}
	odd := &schema.Schema{Version: schema.Version, Columns: []schema.Column{{Name: "rare", Kind: schema.Category}, {Name: "v", Kind: schema.Value},
		{Name: "flag", Kind: schema.Boolean, Fill: 1, Missing: true}, {Name: "at", Kind: schema.Time, Center: 1.6e9, Scale: 3600, Cycles: []string{"day"}}}}
	if err := (&BuildOptions{Columns: odd, Library: &lib, Log: t.Logf}).addPreprocess(t.Context(), nil, files); err != nil || files[PreprocessFile] == nil {
		t.Error(err)
	}
	// Nothing is written where nothing is prepared.
	for _, s := range []*schema.Schema{nil, {Version: schema.Version, Columns: odd.Columns[1:2]}} {
		files := map[string][]byte{}
		if err := (&BuildOptions{Columns: s}).addPreprocess(t.Context(), nil, files); err != nil || len(files) != 0 {
			t.Errorf("%v: %v", files, err)
		}
	}
}

// The preparation is scikit-learn's: robust scaling, imputation, one-hot columns.
func TestPreprocessAsScikitLearn(t *testing.T) {
	python := cmp.Or(os.Getenv("GSRC_PYTHON"), "python3")
	if out, err := exec.Command(python, "-c", "import sklearn, onnxruntime").CombinedOutput(); err != nil {
		t.Skipf("%s has no sklearn and onnxruntime (GSRC_PYTHON names another Python): %v %s", python, err, out)
	}
	dir, ds := preprocessed(t, 100_000)
	text, err := json.Marshal(ds.Columns)
	if err != nil {
		t.Fatal(err)
	}
	x := ds.X.ToDense().Dense
	raw := make([]byte, 0, 4*len(x))
	for _, v := range x {
		raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(v))
	}
	if err := errors.Join(os.WriteFile(filepath.Join(dir, "columns.json"), text, 0o644), os.WriteFile(filepath.Join(dir, "x.f32"), raw, 0o644)); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(python, filepath.Join("testdata", "columns.py"), dir).CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	t.Logf("%s", out)
}
