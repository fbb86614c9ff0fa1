package run

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gsrc-dev/gsrc/data"
	"github.com/gsrc-dev/gsrc/export"
	"github.com/gsrc-dev/gsrc/export/onnx"
	"github.com/gsrc-dev/gsrc/infer"
	"github.com/gsrc-dev/gsrc/internal/orttest"
	"github.com/gsrc-dev/gsrc/models"
)

// The classifier behind the preparation of columns is one file, which Build has compared
// with the two files that it is made of; where it cannot be, the error says why.
func TestBuildWithColumns(t *testing.T) {
	lib := orttest.Need(t)
	trained := func(name, dataPath string, set ...string) *Run {
		r, err := Train(t.Context(), TrainOptions{Model: "gcn", Data: dataPath, Out: filepath.Join(t.TempDir(), name), Set: append(set, "train.epochs=1", "data.split=random:0.5,0.25,0.25")})
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	table := func(column string) string {
		var nodes, edges strings.Builder
		fmt.Fprintf(&nodes, "id,label,%s,city\n", column)
		edges.WriteString("source,target\n")
		for i := range 40 {
			fmt.Fprintf(&nodes, "n%d,%s,%d,%s\n", i, [...]string{"a", "b"}[i%2], 100+i*i%37, [...]string{"Oslo", "Rome", ""}[i%3])
			fmt.Fprintf(&edges, "n%d,n%d\n", i, (i+1)%40)
		}
		dir := t.TempDir()
		for name, text := range map[string]string{"nodes.csv": nodes.String(), "edges.csv": edges.String()} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		return dir
	}
	r := trained("run", table("size"), "model.hidden=512")
	dist := filepath.Join(t.TempDir(), "dist")
	said := ""
	m, err := r.Build(t.Context(), dist, BuildOptions{WithColumns: true, Library: &lib, Log: func(format string, args ...any) { said += fmt.Sprintf(format, args...) + "\n" }})
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(said, "classifier_with_columns.onnx gives what preprocess.onnx and classifier.onnx do") {
		t.Errorf("said %s", said)
	}
	if !slices.Equal(m.Columns.Gaps, data.Gaps) {
		t.Errorf("gaps are %q by the manifest", m.Columns.Gaps)
	}
	for _, name := range []string{export.PreprocessFile, export.WithColumnsFile} {
		if m.Files[name].Bytes == 0 {
			t.Errorf("the manifest does not list %s", name)
		}
	}
	known := trained("known", table("size"), "model.known_labels=0.5")
	if _, err := known.Build(t.Context(), filepath.Join(t.TempDir(), "dist"), BuildOptions{WithColumns: true, Library: &lib}); err != nil {
		t.Errorf("a model that reads known labels: %v", err)
	}
	for want, c := range map[string]struct {
		r *Run
		o BuildOptions
	}{
		"lowering degree-buckets or scatter": {r, BuildOptions{Lowering: onnx.PrecomputedBuckets}},
		"CSR":                                {r, BuildOptions{SparseX: true}},
		"--external-data none":               {r, BuildOptions{ExternalData: 1}},
		"no columns that are prepared":       {trained("other", data.Synthetic, "synthetic.nodes=100"), BuildOptions{}},
		`"edge_index" has the name`:          {trained("edge_index", table("edge_index")), BuildOptions{}},
		`"x" has the name`:                   {trained("x", table("x")), BuildOptions{}},
	} {
		c.o.WithColumns, c.o.Library = true, &lib
		if _, err := c.r.Build(t.Context(), filepath.Join(t.TempDir(), "dist"), c.o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// A run takes the columns of tables by their names, as an export does.
func TestColumnsOfARunByName(t *testing.T) {
	dir := weightedTable(t, uneven)
	out := filepath.Join(t.TempDir(), "run")
	if _, err := Train(t.Context(), TrainOptions{Model: "gcn", Data: dir, Out: out, Set: []string{"train.epochs=3", "data.prepare=false", "data.weights=ignore"}}); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "nodes.csv"))
	if err != nil {
		t.Fatal(err)
	}
	predicted := func(change func(row []string)) (*infer.Prediction, error) {
		other, lines := weightedTable(t, uneven), strings.Split(string(text), "\n")
		for i, line := range lines[:len(lines)-1] {
			row := strings.Split(line, ",")
			change(row)
			lines[i] = strings.Join(row, ",")
		}
		if err := os.WriteFile(filepath.Join(other, "nodes.csv"), []byte(strings.Join(lines, "\n")), 0o644); err != nil {
			t.Fatal(err)
		}
		return Predict(t.Context(), out, other, "", infer.PredictOptions{})
	}
	want, err := predicted(func([]string) {})
	if err != nil {
		t.Fatal(err)
	}
	if p, err := predicted(func(row []string) { row[3], row[4] = row[4], row[3] }); err != nil || p.TrainingGraph || !sameBits(p.Probabilities, want.Probabilities) {
		t.Errorf("columns in another order give other answers: %v", err)
	}
	if _, err := predicted(func(row []string) { row[4] = strings.Replace(row[4], "depth", "deep", 1) }); err == nil || !strings.Contains(err.Error(), `lacks the column "depth"`) {
		t.Errorf("a column of another name: %v", err)
	}
}

// Tables whose columns are prepared have defaults of their own, which options override; others
// have the general ones.
func TestDefaultsOfTables(t *testing.T) {
	dir := weightedTable(t, uneven)
	for _, x := range []struct {
		model  string
		set    []string
		norm   string
		layers int
		net    string
	}{
		{"gcn", nil, "none", 3, "gcn"},
		{"gcn", []string{"model.norm=l2"}, "l2", 3, "gcn"},
		{"ecl-gsr", nil, "none", 3, "sage"},
		{"gcn", []string{"data.prepare=false"}, "l2", 2, "gcn"},
	} {
		o := TrainOptions{Model: x.model, Data: dir, Set: x.set}
		s, err := Prepare(o)
		if err != nil {
			t.Fatal(err)
		}
		again, err := PrepareNodes(o, s.Data)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range []models.Options{s.Config.Model, again.Config.Model} {
			if m.Norm != x.norm || m.Layers != x.layers || m.Classifier != x.net {
				t.Errorf("%s %v: norm %s, %d layers, classifier %s", x.model, x.set, m.Norm, m.Layers, m.Classifier)
			}
		}
	}
}
