package run

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gsrc-dev/gsrc/infer"
	"github.com/gsrc-dev/gsrc/internal/orttest"
)

// unlabelledTable is a table of 90 nodes in three groups, without labels.
func unlabelledTable(t *testing.T) string {
	t.Helper()
	nodes, edges := "id,size,depth,kind\n", "source,target\n"
	for i := range 90 {
		nodes += fmt.Sprintf("n%d,%d,%d,%s\n", i, 100*(i%3)+i*i%37, i*7%11, [...]string{"x", "y", "z"}[i%3])
		edges += fmt.Sprintf("n%d,n%d\nn%d,n%d\n", i, (i+3)%90, i, (i*5+1)%90)
	}
	dir := t.TempDir()
	for name, text := range map[string]string{"nodes.csv": nodes, "edges.csv": edges} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// Without labels ecl-gsr trains its encoder and refines the graph, and what needs classes
// says so.
func TestTrainWithoutLabels(t *testing.T) {
	dir := unlabelledTable(t)
	for _, judge := range []string{"embedding", "evidence"} {
		o := TrainOptions{Model: "ecl-gsr", Data: dir, Out: filepath.Join(t.TempDir(), "run"), Baselines: OwnTables,
			Set: []string{"train.pretrain_steps=5", "train.anchors=30", "model.edges.judge=" + judge}}
		r, err := Train(t.Context(), o)
		if err != nil {
			t.Fatalf("%s: %v", judge, err)
		}
		if r.Result.Val != nil || r.Result.TestAcc != nil || r.Result.Split != "none" || r.Result.EdgesAfter == nil || r.Result.Scale != nil || r.Trained.Module.Func("classify") != nil {
			t.Errorf("%s: %+v", judge, r.Result)
		}
		info, err := os.ReadFile(filepath.Join(o.Out, "run.json"))
		if shown, jsonErr := json.Marshal(r.Result.JSON()); err != nil || jsonErr != nil || !strings.Contains(string(shown), `"val_acc":null`) || strings.Count(string(shown), `"val_acc"`) != 1 || !strings.Contains(string(info), `"val_acc": null`) {
			t.Errorf("%s: %v, %v: the result is %s, and run.json %s", judge, err, jsonErr, shown, info)
		}
		again, err := Resume(t.Context(), o.Out, ResumeOptions{})
		if err != nil || again.Result.Hash != r.Result.Hash {
			t.Fatalf("%s: resumed, %v", judge, err)
		}
		opened, err := Open(o.Out)
		if err != nil {
			t.Fatal(err)
		}
		g, err := opened.Refine(infer.RefineOptions{})
		if err != nil || len(g.Edges) == 0 || g.Summary.Before.Homophily != nil {
			t.Errorf("%s: refined to %+v, %v", judge, g, err)
		}
		e, err := Embed(t.Context(), o.Out, "", infer.PredictOptions{})
		if err != nil || len(e.Values) != 90*e.Width || e.IDs[3] != "n3" {
			t.Errorf("%s: embedded as %+v, %v", judge, e, err)
		}
		if judge != "embedding" {
			continue
		}
		lib := orttest.Need(t)
		dist := filepath.Join(t.TempDir(), "dist")
		m, err := opened.Build(t.Context(), dist, BuildOptions{Library: &lib})
		if err != nil || len(m.Models) != 2 || len(m.Classes) != 0 {
			t.Fatalf("the export has %+v, %v", m, err)
		}
		if _, err := infer.Refine(t.Context(), dist, infer.RefineOptions{Data: dir, Predict: infer.PredictOptions{Library: &lib}}); err != nil {
			t.Error(err)
		}
		if _, err := infer.Predict(t.Context(), dist, dir, "", infer.PredictOptions{Library: &lib}); err == nil || !strings.Contains(err.Error(), "has no classifier, since the model was trained without labels") {
			t.Errorf("classified without a classifier: %v", err)
		}
	}
	for model, set := range map[string][]string{"gcn": nil, "mlp": nil, "ecl-gsr": {"candidates.structure=raw"}, "sublime": {"model.edges.same_class=true"}} {
		if _, err := Train(t.Context(), TrainOptions{Model: model, Data: dir, Set: set}); err == nil || !strings.Contains(err.Error(), "labels") {
			t.Errorf("%s %v without labels: %v", model, set, err)
		}
	}
}
