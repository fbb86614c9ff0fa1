package run

import (
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gsrc-dev/gsrc/infer"
	"github.com/gsrc-dev/gsrc/internal/orttest"
)

// The encoder of an export gives the nodes of the training graph the embedding of the run.
func TestEmbed(t *testing.T) {
	lib := orttest.Need(t)
	for _, x := range []struct {
		name string
		set  []string
	}{
		{"embedding", []string{"model.edges.judge=embedding"}},
		{"evidence", []string{"model.edges.judge=evidence"}},
		{"structure", []string{"model.edges.judge=embedding", "deepwalk.width=4"}},
	} {
		dir := t.TempDir()
		run, dist := filepath.Join(dir, "run"), filepath.Join(dir, "dist")
		set := append([]string{"synthetic.nodes=120", "train.epochs=1", "train.pretrain_steps=2", "train.anchors=40"}, x.set...)
		r, err := Train(t.Context(), TrainOptions{Model: "ecl-gsr", Data: "synthetic", Out: run, Set: set})
		if err != nil {
			t.Fatalf("%s: %v", x.name, err)
		}
		if _, err := r.Build(t.Context(), dist, BuildOptions{Unverified: true, Library: &lib}); err != nil {
			t.Fatalf("%s: %v", x.name, err)
		}
		o := infer.PredictOptions{Library: &lib, Load: LoadOptions(r.Trained.Config)}
		of, err := Embed(t.Context(), run, "", o)
		if err != nil {
			t.Fatalf("%s: %v", x.name, err)
		}
		by, err := Embed(t.Context(), dist, "synthetic", o)
		if err != nil {
			t.Fatalf("%s: %v", x.name, err)
		}
		if of.Width != by.Width || len(of.Values) != 120*of.Width || len(by.Values) != len(of.Values) {
			t.Fatalf("%s: %d and %d numbers of width %d and %d", x.name, len(of.Values), len(by.Values), of.Width, by.Width)
		}
		for i, want := range of.Values {
			if !(math.Abs(float64(by.Values[i]-want)) <= 1e-5+1e-4*math.Abs(float64(want))) {
				t.Fatalf("%s: element %d is %v by the export, %v by the run", x.name, i, by.Values[i], want)
			}
		}
		for dir, all := range map[string]*infer.Embedding{run: of, dist: by} {
			some := o
			some.Nodes = []string{"7", "3"}
			e, err := Embed(t.Context(), dir, "synthetic", some)
			if err != nil || !slices.Equal(e.Values, append(slices.Clone(all.Values[7*e.Width:8*e.Width]), all.Values[3*e.Width:4*e.Width]...)) {
				t.Fatalf("%s: nodes 7 and 3 are %+v, %v", x.name, e, err)
			}
			path := filepath.Join(t.TempDir(), "some.csv")
			if err := e.WriteFile(path); err != nil {
				t.Fatal(err)
			}
			if text, err := os.ReadFile(path); err != nil || strings.Count(string(text), "\n") != 3 || !strings.Contains(string(text), "\n7,") || !strings.Contains(string(text), "\n3,") {
				t.Errorf("%s: nodes 7 and 3 are written as %q, %v", x.name, text, err)
			}
			some.Nodes = []string{"120"}
			if _, err := Embed(t.Context(), dir, "synthetic", some); err == nil || !strings.Contains(err.Error(), `has no node "120"`) {
				t.Errorf("%s: a node that is not there: %v", x.name, err)
			}
		}
		for _, name := range []string{"e.csv", "e.npz", "e.parquet"} {
			path := filepath.Join(dir, name)
			if err := of.WriteFile(path); err != nil {
				t.Fatal(err)
			}
			if info, err := os.Stat(path); err != nil || info.Size() < int64(len(of.Values)) {
				t.Errorf("%s: %v, %v", name, info, err)
			}
		}
		if text, err := os.ReadFile(filepath.Join(dir, "e.csv")); err != nil || !strings.HasPrefix(string(text), "id,e0,e1,") || strings.Count(string(text), "\n") != 121 {
			t.Errorf("the table is %.40q, %v", text, err)
		}
	}
	plain := filepath.Join(t.TempDir(), "run")
	if _, err := Train(t.Context(), TrainOptions{Model: "gcn", Data: "synthetic", Out: plain, Set: []string{"synthetic.nodes=60", "train.epochs=1"}}); err != nil {
		t.Fatal(err)
	}
	if _, err := Embed(t.Context(), plain, "", infer.PredictOptions{}); err == nil || !strings.Contains(err.Error(), "no encoder") {
		t.Errorf("a gcn is embedded: %v", err)
	}
	for _, model := range []string{"gcn", "lds", "idgl"} { // the last two refine without one
		run, dist := filepath.Join(t.TempDir(), "run"), filepath.Join(t.TempDir(), "dist")
		r, err := Train(t.Context(), TrainOptions{Model: model, Data: "synthetic", Out: run, Set: []string{"synthetic.nodes=60", "train.epochs=1"}})
		if err == nil {
			_, err = r.Build(t.Context(), dist, BuildOptions{Unverified: true, Library: &lib})
		}
		if err != nil {
			t.Fatalf("%s: %v", model, err)
		}
		for _, dir := range []string{run, dist} {
			if _, err := Embed(t.Context(), dir, "synthetic", infer.PredictOptions{Library: &lib}); err == nil || !strings.HasSuffix(err.Error(), "has no encoder that was trained; ecl-gsr trains one") || !strings.Contains(err.Error(), model+" in "+dir) {
				t.Errorf("%s embeds nodes: %v", dir, err)
			}
		}
	}
}
