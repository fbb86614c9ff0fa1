package run

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gsrc-dev/gsrc/infer"
	"github.com/gsrc-dev/gsrc/internal/orttest"
)

// A table of ids and labels is enough: places in the graph tell two communities apart, and an
// export answers for the graph that it was trained on and refuses another one.
func TestNodesWithoutFeatures(t *testing.T) {
	dir := func(chord int) string {
		nodes, edges := "id,label\n", "source,target\n"
		for v := range 80 {
			side := v / 40
			nodes += fmt.Sprintf("n%d,%c\n", v, 'a'+rune(side))
			for k := 1; k <= 3; k++ {
				edges += fmt.Sprintf("n%d,n%d\n", v, 40*side+(v+k*chord)%40)
			}
		}
		edges += "n0,n40\n"
		dir := t.TempDir()
		for name, text := range map[string]string{"nodes.csv": nodes, "edges.csv": edges} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		return dir
	}
	data, set := dir(1), []string{"data.split=random:0.3,0.3,0.4", "train.epochs=100"}
	in := filepath.Join(t.TempDir(), "run")
	r, err := Train(t.Context(), TrainOptions{Model: "gcn", Data: data, Out: in, Set: set})
	if err != nil {
		t.Fatal(err)
	}
	if p, err := Predict(t.Context(), in, data, "", infer.PredictOptions{}); err != nil || !p.TrainingGraph {
		t.Errorf("the run on its graph: %+v, %v", p, err)
	}
	if _, err := Predict(t.Context(), in, dir(3), "", infer.PredictOptions{}); err == nil || !strings.Contains(err.Error(), "places in it mean nothing") {
		t.Errorf("the run on another graph: %v", err)
	}
	if *r.Result.TestAcc < 90 {
		t.Errorf("test accuracy is %v %%", *r.Result.TestAcc)
	}
	lib := orttest.Need(t)
	dist := filepath.Join(t.TempDir(), "dist")
	if _, err := r.Build(t.Context(), dist, BuildOptions{Library: &lib}); err != nil {
		t.Fatal(err)
	}
	p, err := infer.Predict(t.Context(), dist, data, "", infer.PredictOptions{Library: &lib})
	if err != nil {
		t.Fatal(err)
	}
	if p.Report == nil || p.Report.Accuracy < 90 {
		t.Errorf("the export's report is %+v", p.Report)
	}
	kinds, labelled := "id,kind\n", "id,kind,label\n"
	for v := range 80 {
		kind := fmt.Sprintf("n%d,%c", v, 'p'+rune(v%3))
		kinds, labelled = kinds+kind+"\n", labelled+fmt.Sprintf("%s,%c\n", kind, 'a'+rune(v/40))
	}
	described := dir(1) // with columns that are no numbers
	if err := os.WriteFile(filepath.Join(described, "nodes.csv"), []byte(kinds), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, other := range []string{dir(3), described} {
		if _, err := infer.Predict(t.Context(), dist, other, "", infer.PredictOptions{Library: &lib}); err == nil || !strings.Contains(err.Error(), "by their places in") {
			t.Errorf("on another graph: %v", err)
		}
	}

	// Columns that say nothing give way to places or roles where that is asked for.
	if err := os.WriteFile(filepath.Join(described, "nodes.csv"), []byte(labelled), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, as := range []string{"places", "roles"} {
		out := filepath.Join(t.TempDir(), "run")
		places, err := Train(t.Context(), TrainOptions{Model: "gcn", Data: described, Out: out, Set: append([]string{"data.node_features=" + as}, set...)})
		if err != nil {
			t.Fatal(err)
		}
		if as == "places" && *places.Result.TestAcc != *r.Result.TestAcc {
			t.Errorf("test accuracy is %v %% by places, %v %% without columns", *places.Result.TestAcc, *r.Result.TestAcc)
		}
		byRun, err := Predict(t.Context(), out, "", "", infer.PredictOptions{})
		if err != nil {
			t.Fatal(err)
		}
		dist = filepath.Join(t.TempDir(), "dist")
		if _, err := places.Build(t.Context(), dist, BuildOptions{Library: &lib}); err != nil {
			t.Fatal(err)
		}
		byExport, err := infer.Predict(t.Context(), dist, described, "", infer.PredictOptions{Library: &lib})
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(byRun.Predicted, byExport.Predicted) {
			t.Errorf("%s: a run predicts %v, its export %v", as, byRun.Predicted, byExport.Predicted)
		}
	}
}
