package infer

import (
	"encoding/csv"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gsrc-dev/gsrc/data"
	"github.com/gsrc-dev/gsrc/data/company"
	"github.com/gsrc-dev/gsrc/export"
	"github.com/gsrc-dev/gsrc/export/manifest"
	"github.com/gsrc-dev/gsrc/internal/orttest"
	"github.com/gsrc-dev/gsrc/runtime/ort"
)

// An export finds the columns of tables by their names, whatever their order, and says
// what it lacks and what it does not know.
func TestColumnsByName(t *testing.T) {
	lib := orttest.Need(t)
	dir := t.TempDir()
	path := filepath.Join(dir, "company")
	if err := company.Write(path, company.Options{Nodes: 300, Edges: 1800, Seed: 5}); err != nil {
		t.Fatal(err)
	}
	x := Train(t, filepath.Join(dir, "run"), "gcn", path, export.BuildOptions{}, "train.epochs=2", "data.label=churned", "data.weight=amount", "data.merge=sum", "data.split=random:0.5,0.25,0.25")
	m, err := manifest.Read(x.Dist)
	if err != nil || m.Columns == nil || m.Columns.Width() != m.NumFeatures || m.Columns.Roles["label"] != "churned" {
		t.Fatalf("%+v %v", m.Columns, err)
	}
	f, err := os.Open(filepath.Join(path, "nodes.csv"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	// other returns the same graph, with columns in another order and changed by edit.
	other := func(edit func(row []string, header bool) []string) string {
		var b strings.Builder
		w := csv.NewWriter(&b)
		for i, row := range rows {
			row = slices.Clone(row)
			slices.Reverse(row)
			if err := w.Write(edit(row, i == 0)); err != nil {
				t.Fatal(err)
			}
		}
		w.Flush()
		to := t.TempDir()
		edges, err := os.ReadFile(filepath.Join(path, "edges.csv"))
		if err == nil {
			err = os.WriteFile(filepath.Join(to, "edges.csv"), edges, 0o644)
		}
		if err == nil {
			err = os.WriteFile(filepath.Join(to, "nodes.csv"), []byte(b.String()), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
		return to
	}
	said := ""
	o := PredictOptions{Provider: ort.CPU, Library: &lib, Log: func(format string, args ...any) { said += strings.TrimSpace(format) + " " + joined(args) + "\n" }}
	want, err := Predict(t.Context(), x.Dist, path, "", o)
	if err != nil {
		t.Fatal(err)
	}
	for merge, same := range map[string]bool{data.MergeSum: true, data.MergeFirst: false} { // edges are merged as in the training
		o := o
		o.Load.Tables.Merge = merge
		if p, err := Predict(t.Context(), x.Dist, path, "", o); err != nil || slices.Equal(p.Probabilities, want.Probabilities) != same {
			t.Errorf("merging by %s: %v, the same is %v", merge, err, !same)
		}
	}
	reversed := other(func(row []string, header bool) []string {
		if header {
			return append(row, "mood")
		}
		return append(row, "good")
	})
	have, err := Predict(t.Context(), x.Dist, reversed, "", o)
	if err != nil || !slices.Equal(have.Probabilities, want.Probabilities) || have.Report == nil {
		t.Errorf("columns in another order give other answers: %v", err)
	}
	if !strings.Contains(said, `does not know the column "mood"`) {
		t.Errorf("said %s", said)
	}
	if strings.Contains(said, "reads weights of edges") {
		t.Errorf("said %s", said)
	}
	unweighed := other(func(row []string, _ bool) []string { return row })
	edges, err := os.ReadFile(filepath.Join(path, "edges.csv"))
	if err == nil {
		err = os.WriteFile(filepath.Join(unweighed, "edges.csv"), []byte(strings.Replace(string(edges), "amount", "price", 1)), 0o644)
	}
	if err == nil {
		_, err = Predict(t.Context(), x.Dist, unweighed, "", o)
	}
	if err != nil || !strings.Contains(said, "the model reads weights of edges, and %s has none: every edge weighs 1") {
		t.Errorf("without weights: %v, said %s", err, said)
	}
	g, err := OpenGraph(t.Context(), x.Dist, reversed, GraphOptions{PredictOptions: o, ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	g.Close()
	for _, c := range []struct {
		edit func(row []string, header bool) []string
		want string
	}{
		{func(row []string, header bool) []string { // income is called otherwise
			if header {
				row[slices.Index(row, "income")] = "salary"
			}
			return row
		}, `lacks the column "income"`},
		{func(row []string, header bool) []string { // ages are texts
			if !header {
				row[len(row)-3] = "old"
			}
			return row
		}, `the column "age" of node "C000000" is not a number, which the model was trained on`},
	} {
		bad := other(c.edit)
		_, predict := Predict(t.Context(), x.Dist, bad, "", o)
		_, neighbors := Neighbors(t.Context(), x.Dist, bad, []string{"C000001"}, o)
		_, serve := OpenGraph(t.Context(), x.Dist, bad, GraphOptions{PredictOptions: o})
		for what, err := range map[string]error{"predict": predict, "neighbors": neighbors, "serve": serve} {
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: %v, want %s", what, err, c.want)
			}
		}
	}
}

func joined(args []any) string {
	var b strings.Builder
	for _, a := range args {
		if s, ok := a.(string); ok {
			b.WriteString(s + " ")
		}
	}
	return b.String()
}
