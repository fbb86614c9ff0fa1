package run

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gsrc-dev/gsrc/data"
	"github.com/gsrc-dev/gsrc/export/dist"
	"github.com/gsrc-dev/gsrc/infer"
	"github.com/gsrc-dev/gsrc/internal/orttest"
	"github.com/gsrc-dev/gsrc/internal/safetensors"
	"github.com/gsrc-dev/gsrc/runtime/ort"
)

// weightedTable is a ring of 80 nodes with chords, whose edges have weights of the given size.
func weightedTable(t *testing.T, weight func(i int) float64) string {
	t.Helper()
	nodes, edges := "id,label,split,size,depth\n", "source,target,weight\n"
	for i := range 80 {
		nodes += fmt.Sprintf("n%d,%s,%s,%d,%d\n", i, [...]string{"a", "b"}[i/3%2], [...]string{"train", "val", "test"}[i%3], 100+i*i%37, i*7%11)
		edges += fmt.Sprintf("n%d,n%d,%g\n", i, (i+1)%80, weight(2*i))
		edges += fmt.Sprintf("n%d,n%d,%g\n", i, (i*3+5)%80, weight(2*i+1))
	}
	dir := t.TempDir()
	for name, text := range map[string]string{"nodes.csv": nodes, "edges.csv": edges} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func uneven(i int) float64 { return 0.05 + float64(i*i%23)/4 }

func trainOn(t *testing.T, model, dir string, set ...string) *Run {
	t.Helper()
	r, err := Train(t.Context(), TrainOptions{Model: model, Data: dir, Set: append([]string{"train.epochs=3"}, set...)})
	if err != nil {
		t.Fatalf("%s %v: %v", model, set, err)
	}
	return r
}

func TestEdgeWeightsCount(t *testing.T) {
	dir, ones := weightedTable(t, uneven), weightedTable(t, func(int) float64 { return 1 })
	scaled := weightedTable(t, func(i int) float64 { return uneven(i) / 1024 })
	for _, model := range []string{"gcn", "sage", "gin", "gcnii", "grand", "acm", "linear"} {
		steps := "model.linear.steps=2"
		r := trainOn(t, model, dir, steps)
		plain, ignored, logs := trainOn(t, model, ones, steps), trainOn(t, model, dir, steps, "data.weights=ignore"), trainOn(t, model, dir, steps, "data.weights=log1p")
		if r.Result.Hash == ignored.Result.Hash || r.Result.Hash == logs.Result.Hash {
			t.Errorf("%s: weights change nothing", model)
		}
		for i, want := range plain.Trained.Logits {
			if got := ignored.Trained.Logits[i]; !(math.Abs(float64(got-want)) <= 1e-4) {
				t.Fatalf("%s: with weights that are ignored a logit is %v, with ones %v", model, got, want)
			}
		}
		// A mean does not ask how large weights are together.
		small := trainOn(t, model, scaled, steps)
		differ := 0.0
		for i, want := range r.Trained.Logits {
			differ = max(differ, math.Abs(float64(small.Trained.Logits[i]-want)))
		}
		if (differ < 1e-4) != (model == "sage") {
			t.Errorf("%s: weights of a 1024th change logits by %v", model, differ)
		}
	}
	for _, model := range []string{"mlp", "label-propagation"} { // these read no edges here
		if a, b := trainOn(t, model, dir, "model.smooth.alpha=0", "model.smooth.correct=0"), trainOn(t, model, ones, "model.smooth.alpha=0", "model.smooth.correct=0"); a.Result.Hash != b.Result.Hash {
			t.Errorf("%s: weights of edges change the run", model)
		}
	}
	_, err := Train(t.Context(), TrainOptions{Model: "gat", Data: dir})
	if err == nil || !strings.Contains(err.Error(), "gat has no place for weights") {
		t.Errorf("gat on weighted edges: %v", err)
	}
	// Weights that are all equal tell no edge from another.
	equal := weightedTable(t, func(int) float64 { return 2 })
	if a, b := trainOn(t, "gat", equal), trainOn(t, "gat", dir, "data.weights=ignore"); a.Trained.Module.String() != b.Trained.Module.String() || !slices.Equal(a.Trained.Logits, b.Trained.Logits) {
		t.Error("gat on equal weights is another than on none")
	}
	for model, set := range map[string][]string{"grcn": nil, "stable": nil, "sublime": nil, "gen": nil, "prognn": nil, "lds": nil, "idgl": nil, "ecl-gsr": {"model.encoder.kind=gat"}} {
		if _, err := Train(t.Context(), TrainOptions{Model: model, Data: dir, Set: set}); err == nil || !strings.Contains(err.Error(), "no place for weights") {
			t.Errorf("%s %v on weighted edges: %v", model, set, err)
		}
	}
}

// A state dict of GCNConv gives PyTorch Geometric's logits on weighted edges: gcn_norm with
// a self-loop of weight 1 at each node.
func TestImportWithEdgeWeights(t *testing.T) {
	dir := weightedTable(t, uneven)
	w := []float32{0.5, -1, 2, 0.25}
	path := filepath.Join(t.TempDir(), "gcn.safetensors")
	f := safetensors.File{Tensors: []safetensors.Tensor{{Name: "conv1.lin.weight", Shape: []int{2, 2}, Data: w}, {Name: "conv1.bias", Shape: []int{2}, Data: []float32{0.1, -0.2}}}}
	out, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Write(out); err != nil {
		t.Fatal(err)
	}
	out.Close()
	said := ""
	o := ImportOptions{Weights: path, Train: TrainOptions{Data: dir, Set: []string{"data.prepare=false"}}, Log: func(format string, args ...any) { said += fmt.Sprintf(format, args...) }}
	r, err := Import(t.Context(), o)
	if err != nil || strings.Contains(said, "--no-prepare") {
		t.Fatal(err, said)
	}
	raw := safetensors.File{Tensors: []safetensors.Tensor{{Name: "logits", Shape: []int{80, 2}, Data: r.Trained.Logits}}}
	expect := filepath.Join(t.TempDir(), "logits.safetensors")
	if out, err = os.Create(expect); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(raw.Write(out), out.Close()); err != nil {
		t.Fatal(err)
	}
	o.Train.Set = nil // the columns are prepared
	if _, err := Import(t.Context(), o); err != nil || !strings.Contains(said, "--no-prepare") {
		t.Errorf("weights on prepared columns: %v, said %s", err, said)
	}
	o.Expect = expect
	if _, err := Import(t.Context(), o); err == nil || !strings.Contains(err.Error(), "--no-prepare") {
		t.Errorf("logits of columns as they are: %v", err)
	}
	g, x := r.Data.Graph, r.Data.X.ToDense().Dense
	degree := slices.Repeat([]float64{1}, g.N)
	for i, e := range g.Edges {
		degree[e[0]] += float64(g.Weights[i])
		degree[e[1]] += float64(g.Weights[i])
	}
	want := make([]float64, 2*g.N)
	add := func(to, from int32, weight float64) {
		for c := range 2 {
			h := float64(x[2*from])*float64(w[2*c]) + float64(x[2*from+1])*float64(w[2*c+1])
			want[2*int(to)+c] += weight / math.Sqrt(degree[to]*degree[from]) * h
		}
	}
	for v := range int32(g.N) {
		want[2*v] += 0.1
		want[2*v+1] -= 0.2
		add(v, v, 1)
	}
	for i, e := range g.Edges {
		add(e[0], e[1], float64(g.Weights[i]))
		add(e[1], e[0], float64(g.Weights[i]))
	}
	for i, v := range want {
		if got := float64(r.Trained.Logits[i]); !(math.Abs(got-v) <= 1e-5*math.Max(1, math.Abs(v))) {
			t.Fatalf("logit %d is %v, want %v", i, got, v)
		}
	}
}

// PyTorch Geometric keeps the weights of self-loops that the edges have, and adds loops of
// weight 1 (or 2, or none) to the other nodes: logits of the import, and of an export on
// edge_index as PyTorch Geometric takes it.
func TestImportWithWeightedSelfLoops(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(pygFixtures, "weighted.json"))
	if err != nil {
		t.Fatal(err)
	}
	var settings map[string][]string
	if err := json.Unmarshal(text, &settings); err != nil || len(settings) < 4 {
		t.Fatalf("%d models, %v", len(settings), err)
	}
	data := filepath.Join(pygFixtures, "weighted.npz")
	for name, said := range settings {
		t.Run(name, func(t *testing.T) {
			expect := filepath.Join(pygFixtures, name+".logits.safetensors")
			r, err := Import(t.Context(), ImportOptions{Weights: filepath.Join(pygFixtures, name+".safetensors"), Settings: said, Expect: expect,
				Train: TrainOptions{Data: data, Set: []string{"data.split=random:0.5,0.2,0.3"}}})
			if err != nil {
				t.Fatal(err)
			}
			want := logitsOf(t, expect, r.Data.Graph.N)
			near(t, "the run", r.Trained.Logits, want)
			lib, dir := orttest.Need(t), filepath.Join(t.TempDir(), "dist")
			if _, err := r.Build(t.Context(), dir, BuildOptions{Library: &lib}); err != nil {
				t.Fatal(err)
			}
			d, err := dist.Open(dir, ort.Options{Provider: ort.CPU, Library: &lib})
			if err != nil {
				t.Fatal(err)
			}
			defer d.Close()
			st := r.Data.Graph.Structure()
			index, weights := infer.WithLoops(infer.EdgeIndex(st), ort.Float32s(st.Spread(nil, r.Data.Graph.Weights), int64(st.E)), r.Data.Loops)
			got, err := d.Classify(infer.Features(r.Data), index, &weights)
			if err != nil {
				t.Fatal(err)
			}
			near(t, "the export", got["logits"].F32, want)
			p, err := infer.Predict(t.Context(), dir, data, "", infer.PredictOptions{Library: &lib})
			if err != nil {
				t.Fatal(err)
			}
			near(t, "gsrc predict", p.Probabilities, r.Trained.Probabilities)
			if _, err := infer.Neighbors(t.Context(), dir, data, []string{"0"}, infer.PredictOptions{Library: &lib}); err == nil || !strings.Contains(err.Error(), "weights of self-loops") {
				t.Errorf("a part of the graph: %v", err)
			}
		})
	}
}

// An export reads the weights and the directions of edges as the training did.
func TestExportReadsEdges(t *testing.T) {
	lib := orttest.Need(t)
	dir := weightedTable(t, uneven)
	for _, x := range []struct {
		model string
		set   []string
	}{{"gcn", nil}, {"sage", []string{"data.weights=log1p"}}, {"gcn", []string{"data.directed=true"}}} {
		r := trainOn(t, x.model, dir, x.set...)
		out := filepath.Join(t.TempDir(), "dist")
		if _, err := r.Build(t.Context(), out, BuildOptions{Library: &lib}); err != nil {
			t.Fatal(err)
		}
		p, err := infer.Predict(t.Context(), out, dir, "", infer.PredictOptions{Library: &lib})
		if err != nil {
			t.Fatal(err)
		}
		for i, want := range r.Trained.Probabilities {
			if got := p.Probabilities[i]; !(math.Abs(float64(got-want)) <= 1e-4) {
				t.Fatalf("%s: probability %d is %v, want %v", x.model, i, got, want)
			}
		}
		o := infer.PredictOptions{Library: &lib, Load: data.LoadOptions{Directed: true}}
		_, predicted := infer.Predict(t.Context(), out, dir, "", o)
		g, opened := infer.OpenGraph(t.Context(), out, dir, infer.GraphOptions{PredictOptions: o})
		if opened == nil {
			defer g.Close()
		}
		for _, err := range []error{predicted, opened} {
			if refused := err != nil && strings.Contains(err.Error(), "without a direction"); refused == slices.Contains(x.set, "data.directed=true") {
				t.Errorf("%s %v, with --directed: %v", x.model, x.set, err)
			}
		}
		if _, err := r.Build(t.Context(), out, BuildOptions{Library: &lib, NoEdgeWeight: true}); err == nil || !strings.Contains(err.Error(), "trained with the weights") {
			t.Errorf("--no-edge-weight: %v", err)
		}
	}
}

// What cannot be used on another graph as it is, but as an export, says so whatever is asked of it.
func TestRunsOfTablesPointToExports(t *testing.T) {
	dir, other := filepath.Join(t.TempDir(), "run"), weightedTable(t, uneven)
	if _, err := Train(t.Context(), TrainOptions{Model: "ecl-gsr", Data: weightedTable(t, func(int) float64 { return 1 }), Out: dir, Set: []string{"train.epochs=1", "train.pretrain_steps=2"}}); err != nil {
		t.Fatal(err)
	}
	for name, use := range map[string]func() error{
		"predict": func() error { _, err := Predict(t.Context(), dir, other, "", infer.PredictOptions{}); return err },
		"embed":   func() error { _, err := Embed(t.Context(), dir, other, infer.PredictOptions{}); return err },
		"refine": func() error {
			_, err := Refine(t.Context(), dir, infer.RefineOptions{Data: other})
			return err
		},
	} {
		if err := use(); err == nil || !strings.Contains(err.Error(), "that gsrc prepares") || !strings.Contains(err.Error(), "gsrc build "+dir+" --out DIR") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
