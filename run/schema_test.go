package run

import (
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/gsrc-dev/gsrc/data"
	"github.com/gsrc-dev/gsrc/infer"
)

// A schema.toml that is written after training leaves the run and its export what they were; one that
// was there is part of the data.
func TestSchemaAfterTraining(t *testing.T) {
	dir := weightedTable(t, uneven)
	train := func(set ...string) (*Run, string) {
		t.Helper()
		out := filepath.Join(t.TempDir(), "run")
		r, err := Train(t.Context(), TrainOptions{Model: "gcn", Data: dir, Out: out, Set: append(set, "train.epochs=1")})
		if err != nil {
			t.Fatal(err)
		}
		return r, out
	}
	read := func(out string) (*Run, error) {
		r, err := Open(out)
		if err != nil {
			t.Fatal(err)
		}
		return r, r.LoadData("")
	}
	plain, before := train("data.weights=ignore")
	cut, _ := train("data.edges=cut:training")
	_, corrupted := train("data.add_edges=0.1")
	_, rewired := train("data.edges=knn:3")
	dist, ofCut := filepath.Join(t.TempDir(), "dist"), filepath.Join(t.TempDir(), "dist")
	for dist, r := range map[string]*Run{dist: plain, ofCut: cut} {
		if _, err := r.Build(t.Context(), dist, BuildOptions{Unverified: true}); err != nil {
			t.Fatal(err)
		}
	}
	want, err := infer.Predict(t.Context(), ofCut, dir, "", infer.PredictOptions{})
	if err != nil {
		t.Fatal(err)
	}
	text, err := data.DescribeTables(dir, data.LoadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	schema := filepath.Join(dir, data.SchemaFile)
	write := func(text string) {
		if err := os.WriteFile(schema, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, text := range []string{text, strings.Replace(text, `"number"`, `"category"`, 1), "[edges]\nweight = \"\"\n"} {
		write(text)
		for _, out := range []string{before, corrupted, rewired} {
			if _, err := read(out); err != nil {
				t.Error(err)
			}
		}
		p, err := infer.Predict(t.Context(), dist, dir, "", infer.PredictOptions{})
		if err != nil || !p.TrainingGraph || !slices.Equal(p.Classes, []string{"a", "b"}) {
			t.Errorf("an export: %v, %+v", err, p)
		}
		if p, err = infer.Predict(t.Context(), ofCut, dir, "", infer.PredictOptions{}); err != nil || !reflect.DeepEqual(p, want) {
			t.Errorf("an export of a run with edges that are cut at training nodes: %v, %+v", err, p)
		}
	}
	_, later := train()
	if _, err := read(later); err != nil {
		t.Error(err)
	}
	write(text)
	if _, err := read(later); err == nil || !strings.Contains(err.Error(), data.SchemaFile) {
		t.Errorf("another schema.toml than in training: %v", err)
	}
}
