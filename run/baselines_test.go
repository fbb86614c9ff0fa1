package run

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gsrc-dev/gsrc/data/company"
	"github.com/gsrc-dev/gsrc/train"
)

// Where edges join nodes at random, a run says that they add nothing; the weights are those
// of a run without baselines.
func TestBaselinesTellOfUselessEdges(t *testing.T) {
	dir := t.TempDir()
	if err := company.Write(dir, company.Options{Nodes: 3000, Edges: 12000, Useless: true}); err != nil {
		t.Fatal(err)
	}
	o := TrainOptions{Model: "gcn", Data: dir, Out: filepath.Join(t.TempDir(), "run"), Set: []string{"data.label=churned", "data.split=random:0.6,0.2,0.2", "train.epochs=60"}, Baselines: OwnTables}
	r, err := Train(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	s := r.Result.Scale
	if s.NoEdges == nil || s.NoEdges.Model != "mlp" || s.NoEdges.AUC == nil || s.RawGraph != nil {
		t.Fatalf("the scale is %+v", s)
	}
	if !slices.ContainsFunc(r.Result.Warnings, func(w string) bool { return strings.HasPrefix(w, "the edges add nothing") }) {
		t.Errorf("the warnings are %q; without edges %+v, with them %v", r.Result.Warnings, s.NoEdges, *r.Result.Test.AUC)
	}
	text, err := os.ReadFile(filepath.Join(o.Out, "run.json"))
	if err != nil {
		t.Fatal(err)
	}
	var info struct {
		Result struct {
			Scale    struct{ No_edges struct{ Acc float64 } }
			Warnings []string
		}
	}
	if err := json.Unmarshal(text, &info); err != nil || info.Result.Scale.No_edges.Acc != s.NoEdges.Accuracy || len(info.Result.Warnings) != len(r.Result.Warnings) {
		t.Errorf("run.json has %+v, %v", info, err)
	}
	o.Baselines, o.Out = NoBaselines, ""
	alone, err := Train(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	if alone.Result.Hash != r.Result.Hash || alone.Result.Scale.NoEdges != nil {
		t.Errorf("the hash is %s without baselines and %s with them", alone.Result.Hash, r.Result.Hash)
	}
}

func TestBaselinesOfRefinedGraphs(t *testing.T) {
	s := []string{"synthetic.nodes=200", "train.epochs=5", "train.pretrain_steps=2", "train.anchors=50"}
	for baselines, want := range map[Baselines]bool{AllBaselines: true, OwnTables: false, "": false} {
		r, err := Train(context.Background(), TrainOptions{Model: "ecl-gsr", Data: "synthetic", Set: s, Baselines: baselines})
		if err != nil {
			t.Fatal(err)
		}
		if got := r.Result.Scale; (got.NoEdges != nil) != want || (got.RawGraph != nil) != want || want && got.RawGraph.Model != "ecl-gsr" {
			t.Errorf("%q: %+v", baselines, got)
		}
	}
}

// What becomes of the directions of edges is said before training, and of a baseline that reads none.
func TestDirectionsThatAreNotRead(t *testing.T) {
	dir := plantedTable(t, nil)
	for model, c := range map[string]struct {
		set  []string
		want string
	}{
		"idgl": {nil, "--directed has no effect"}, "mlp": {nil, "--directed has no effect"}, "linear": {[]string{"model.linear.steps=2"}, ""}, "label-propagation": {}, "sage": {},
		"grcn":    {nil, "--directed reaches the encoder alone; models that classify by directions: gcn, "},
		"ecl-gsr": {[]string{"candidates.structure=raw"}, "--directed has no effect"},
	} {
		for _, directed := range []bool{false, true} {
			var said []string
			set := append(c.set, "train.epochs=2", fmt.Sprintf("data.directed=%v", directed))
			r, err := Train(t.Context(), TrainOptions{Model: model, Data: dir, Set: set, Baselines: OwnTables, Warn: func(w string) { said = append(said, w) }})
			if err != nil {
				t.Fatal(err)
			}
			want := ""
			if directed {
				want = c.want
			}
			if text := strings.Join(said, "\n"); !strings.Contains(text, want) || (want == "") == strings.Contains(text, "--directed") {
				t.Errorf("%s, directed %v: the warnings are %q, want %q", model, directed, said, want)
			}
			if b := r.Result.Scale.RawGraph; b != nil && (b.Undirected != directed || (b.Where() != "") != directed) {
				t.Errorf("%s, directed %v: the baseline is %+v", model, directed, b)
			}
		}
	}
}

// A model that classifies by its embedding has no classifier to train on the graph as it is.
func TestBaselinesOfEmbeddings(t *testing.T) {
	o := TrainOptions{Model: "stable", Data: "synthetic", Set: []string{"synthetic.nodes=200", "train.epochs=2", "train.pretrain_steps=2", "model.encoder.hidden=8"}, Baselines: AllBaselines}
	r, err := Train(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	if s := r.Result.Scale; s.NoEdges == nil || s.RawGraph != nil {
		t.Errorf("the scale is %+v", s)
	}
}

// The network without edges has no layers to draw neighbours for.
func TestBaselinesOfSampledBatches(t *testing.T) {
	o := TrainOptions{Model: "sage", Data: "synthetic", Set: []string{"synthetic.nodes=200", "train.epochs=2", "train.sampler=neighbors", "train.fanouts=3,2", "train.batch_nodes=20"}, Baselines: AllBaselines}
	if r, err := Train(context.Background(), o); err != nil || r.Result.Scale.NoEdges == nil {
		t.Errorf("%+v, %v", r, err)
	}
}

// The network without edges is there whatever the model reads beside the features.
func TestBaselinesOfOptionsWithoutEdges(t *testing.T) {
	for model, set := range map[string][]string{"sage": {"model.known_labels=0.5"}, "ecl-gsr": {"model.encoder.cut=0.5", "train.pretrain_steps=2"}} {
		o := TrainOptions{Model: model, Data: "synthetic", Set: append([]string{"synthetic.nodes=200", "train.epochs=2"}, set...), Baselines: AllBaselines}
		if r, err := Train(context.Background(), o); err != nil || r.Result.Scale.NoEdges == nil {
			t.Errorf("%s %v: %+v, %v", model, set, r, err)
		}
	}
}

// stopping cancels a run when a phase begins.
type stopping struct {
	phase  string
	cancel func()
}

func (s stopping) Observe(e train.Event) {
	if e.Phase == s.phase {
		s.cancel()
	}
}

// What a run has led to is not lost with a baseline.
func TestBaselineFails(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	o := TrainOptions{Model: "gcn", Data: "synthetic", Set: []string{"synthetic.nodes=200", "train.epochs=3"}, Baselines: AllBaselines, Observer: stopping{"no edges", cancel}}
	r, err := Train(ctx, o)
	if r == nil || r.Result.TestAcc == nil || !errors.Is(err, train.ErrInterrupted) || !strings.Contains(err.Error(), "its baseline, mlp (no edges)") {
		t.Errorf("a run whose baseline is stopped gives %+v, %v", r, err)
	}
	ctx, cancel = context.WithCancel(context.Background())
	o.Observer = stopping{"no edges", cancel}
	reported := 0
	_, err = TrainRuns(ctx, o, 2, func(*Run) error { reported++; return nil })
	if reported != 1 || !errors.Is(err, train.ErrInterrupted) {
		t.Errorf("of two runs, a baseline of the first of which is stopped, %d are reported, with %v", reported, err)
	}
}

// A run that was interrupted trains the baselines that it began with, as one in a go does.
func TestResumedBaselines(t *testing.T) {
	for _, b := range []Baselines{AllBaselines, NoBaselines} {
		ctx, stop := context.WithCancel(t.Context())
		o := TrainOptions{Model: "gcn", Data: "synthetic", Out: filepath.Join(t.TempDir(), "run"), Set: []string{"synthetic.nodes=200", "train.epochs=20"}, Baselines: b, Observer: stopping{"train", stop}}
		if _, err := Train(ctx, o); !errors.Is(err, train.ErrInterrupted) {
			t.Fatalf("the run was not interrupted: %v", err)
		}
		r, err := Resume(t.Context(), o.Out, ResumeOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if with := r.Result.Scale.NoEdges != nil; with != (b == AllBaselines) {
			t.Errorf("begun with baselines %s, it has a model without edges: %v", b, with)
		}
	}
}

// smallCollection writes a TU data set of 20 graphs.
func smallCollection(t *testing.T) (dir string) {
	t.Helper()
	var edges, graphOf, nodes, labels strings.Builder
	for g := range 20 {
		fmt.Fprintf(&edges, "%d, %d\n%[2]d, %[1]d\n", 3*g+1, 3*g+2)
		fmt.Fprintf(&graphOf, "%d\n%[1]d\n%[1]d\n", g+1)
		fmt.Fprintf(&nodes, "%d\n0\n1\n", g%2)
		fmt.Fprintf(&labels, "%d\n", g%2)
	}
	dir = filepath.Join(t.TempDir(), "DS")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"A": edges.String(), "graph_indicator": graphOf.String(), "node_labels": nodes.String(), "graph_labels": labels.String()} {
		if err := os.WriteFile(filepath.Join(dir, "DS_"+name+".txt"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// Graphs of a collection have a model without edges beside theirs, too.
func TestBaselinesOfCollections(t *testing.T) {
	r, err := Train(t.Context(), TrainOptions{Model: "gin", Data: smallCollection(t), Set: []string{"train.epochs=3"}, Baselines: AllBaselines})
	if err != nil {
		t.Fatal(err)
	}
	if r.Result.Scale.NoEdges == nil {
		t.Error("there is no model without edges")
	}
}
