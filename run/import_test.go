package run

import (
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gsrc-dev/gsrc/export/dist"
	"github.com/gsrc-dev/gsrc/infer"
	"github.com/gsrc-dev/gsrc/internal/orttest"
	"github.com/gsrc-dev/gsrc/internal/safetensors"
	"github.com/gsrc-dev/gsrc/runtime/ort"
)

var pygFixtures = filepath.Join("..", "models", "pyg", "testdata")

// importAll imports every model that make.py left in a folder, exports it, and holds
// the export against what the model computed in Python.
func importAll(t *testing.T, dir string) {
	text, err := os.ReadFile(filepath.Join(dir, "models.json"))
	if err != nil {
		t.Fatal(err)
	}
	var settings map[string][]string
	if err := json.Unmarshal(text, &settings); err != nil {
		t.Fatal(err)
	}
	if len(settings) < 15 {
		t.Fatalf("%s lists %d models", dir, len(settings))
	}
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		t.Run(name, func(t *testing.T) {
			out := t.TempDir()
			expect := filepath.Join(dir, name+".logits.safetensors")
			run, err := Import(t.Context(), ImportOptions{
				Weights: filepath.Join(dir, name+".safetensors"), Settings: settings[name], Expect: expect,
				Train: TrainOptions{Data: filepath.Join(dir, "graph.npz"), Out: filepath.Join(out, "run"), Set: []string{"data.directed=true"}},
				Log:   t.Logf,
			})
			if err != nil {
				t.Fatal(err)
			}
			want := logitsOf(t, expect, run.Data.Graph.N)
			near(t, "the run", run.Trained.Logits, want)
			if run, err = Open(run.Dir); err != nil {
				t.Fatal(err)
			}
			orttest.Need(t)
			// The check on other graphs takes long, so only some are checked.
			proven := slices.Contains([]string{"gcn_no_loops", "gat_residual", "sage_max"}, name)
			if _, err := run.Build(t.Context(), filepath.Join(out, "dist"), BuildOptions{Unverified: !proven}); err != nil {
				t.Fatal(err)
			}
			if err := run.LoadData(filepath.Join(dir, "graph.npz")); err != nil {
				t.Fatal(err)
			}
			dist, err := dist.Open(filepath.Join(out, "dist"), ort.Options{Provider: ort.CPU})
			if err != nil {
				t.Fatal(err)
			}
			defer dist.Close()
			got, err := dist.Classify(infer.Features(run.Data), infer.EdgeIndex(run.Data.Graph.Structure()), nil)
			if err != nil {
				t.Fatal(err)
			}
			near(t, "the export", got["logits"].F32, want)
		})
	}
}

func logitsOf(t *testing.T, path string, nodes int) []float32 {
	t.Helper()
	f, err := safetensors.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	x, err := safetensors.Get[float32](f, "logits", nodes, -1)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// near demands equality within 1e-5, relative to the largest value where that is
// above 1.
func near(t *testing.T, what string, got, want []float32) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s gives %d numbers, want %d", what, len(got), len(want))
	}
	scale, worst := float32(1), float32(0)
	for i := range want {
		scale, worst = max(scale, want[i], -want[i]), max(worst, got[i]-want[i], want[i]-got[i])
	}
	if !(worst <= 1e-5*scale) {
		t.Errorf("%s is %g away from PyG's own output, whose largest value is %g", what, worst, scale)
	}
}

// What PyG computed is in the repository, so this needs no Python.
func TestImportedModelsEqualPyG(t *testing.T) { importAll(t, pygFixtures) }

// The same with models and a graph made now, where there is a Python for it.
func TestImportedModelsEqualPyGNow(t *testing.T) {
	python := os.Getenv("PEERS_PYTHON")
	if python == "" {
		t.Skip("PEERS_PYTHON names no Python with torch, torch_geometric, numpy and safetensors")
	}
	dir := t.TempDir()
	c := exec.CommandContext(t.Context(), python, "-W", "ignore", filepath.Join(pygFixtures, "make.py"), "--out", dir, "--nodes", "400", "--features", "60", "--seed", "7")
	if text, err := c.CombinedOutput(); err != nil {
		if strings.Contains(string(text), "ModuleNotFoundError") {
			t.Skipf("%s lacks a package: %s", python, text)
		}
		t.Fatalf("%v\n%s", err, text)
	}
	importAll(t, dir)
}

func TestImportFaults(t *testing.T) {
	file := func(name string) string { return filepath.Join(pygFixtures, name+".safetensors") }
	write := func(tensors ...safetensors.Tensor) string {
		path := filepath.Join(t.TempDir(), "w.safetensors")
		f, err := os.Create(path)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if err := (&safetensors.File{Tensors: tensors}).Write(f); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for _, x := range []struct {
		name, weights string
		o             ImportOptions
		want          string
	}{
		{"another activation", file("gcn"), ImportOptions{Settings: []string{"activation=elu"}, Expect: filepath.Join(pygFixtures, "gcn.logits.safetensors")}, "does not compute what"},
		{"unknown setting", file("gcn"), ImportOptions{Settings: []string{"heads=2"}}, "there is no such setting"},
		{"no such layer", file("gcn"), ImportOptions{Settings: []string{"conv9.activation=elu"}}, `no layer "conv9"; there are conv1, conv2`},
		{"setting of another kind", file("gcn"), ImportOptions{Settings: []string{"conv1.aggr=max"}}, "conv1 is a GCNConv"},
		{"no value", file("gcn"), ImportOptions{Settings: []string{"activation"}}, "key=value"},
		{"order leaves out", file("gcn"), ImportOptions{Order: []string{"conv2"}}, `leaves out "conv1"`},
		{"wrong order", file("gcn"), ImportOptions{Order: []string{"conv2", "conv1"}}, "say the order of the layers"},
		{"two tensors nobody knows", write(safetensors.Tensor{Name: "conv1.lin.weight", Shape: []int{3, 5}, Data: make([]float32, 15)}, safetensors.Tensor{Name: "emb.table", Shape: []int{1}, Data: []float32{1}}), ImportOptions{}, `"emb.table"`},
		{"a layer nobody knows", write(safetensors.Tensor{Name: "norm1.weight", Shape: []int{3}, Data: make([]float32, 3)}), ImportOptions{}, `"norm1.weight"`},
		{"GATv2", write(safetensors.Tensor{Name: "c.att", Shape: []int{1, 1, 3}, Data: make([]float32, 3)}), ImportOptions{}, "GATv2Conv"},
		{"other widths", write(safetensors.Tensor{Name: "conv1.lin.weight", Shape: []int{3, 7}, Data: make([]float32, 21)}), ImportOptions{}, "graph has 5 features, and conv1 takes 7"},
		{"other classes", write(safetensors.Tensor{Name: "conv1.lin.weight", Shape: []int{4, 5}, Data: make([]float32, 20)}), ImportOptions{}, "3 classes, and conv1 gives 4"},
		{"which is first", write(safetensors.Tensor{Name: "a.lin.weight", Shape: []int{5, 5}, Data: make([]float32, 25)}, safetensors.Tensor{Name: "b.lin.weight", Shape: []int{3, 5}, Data: make([]float32, 15)}), ImportOptions{}, "do not say which layer runs first"},
		{"concat is open", write(safetensors.Tensor{Name: "c.lin.weight", Shape: []int{6, 5}, Data: make([]float32, 30)}, safetensors.Tensor{Name: "c.att_src", Shape: []int{1, 2, 3}, Data: make([]float32, 6)}, safetensors.Tensor{Name: "c.att_dst", Shape: []int{1, 2, 3}, Data: make([]float32, 6)}), ImportOptions{}, "set c.concat"},
		{"integers", write(safetensors.Tensor{Name: "conv1.lin.weight", Shape: []int{1}, Data: []int64{1}}), ImportOptions{}, "float32"},
		{"a model that refines", file("gcn"), ImportOptions{Train: TrainOptions{Model: "ecl-gsr"}}, "learns a graph"},
	} {
		t.Run(x.name, func(t *testing.T) {
			o := x.o
			o.Weights, o.Train.Data = x.weights, filepath.Join(pygFixtures, "graph.npz")
			o.Train.Set = []string{"data.directed=true"}
			o.Train.Out = filepath.Join(t.TempDir(), "run")
			_, err := Import(t.Context(), o)
			if err == nil || !strings.Contains(err.Error(), x.want) {
				t.Errorf("the error is %v, want one with %q", err, x.want)
			}
			if _, err := os.Stat(o.Train.Out); err == nil {
				t.Error("a run directory was left")
			}
		})
	}
}

// The weights of a run come back through a file.
func TestImportOwnWeights(t *testing.T) {
	dir := t.TempDir()
	o := TrainOptions{Model: "sage", Data: "synthetic", Out: filepath.Join(dir, "a"), Set: []string{"train.epochs=3", "synthetic.nodes=80"}}
	trained, err := Train(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	o.Out = filepath.Join(dir, "b")
	run, err := Import(t.Context(), ImportOptions{Weights: filepath.Join(dir, "a", "weights.safetensors"), Train: o})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(run.Trained.Logits, trained.Trained.Logits) {
		t.Error("the imported run computes other logits than the one that its weights are of")
	}
	o.Set = append(o.Set, "model.hidden=7")
	o.Out = filepath.Join(dir, "c")
	if _, err := Import(t.Context(), ImportOptions{Weights: filepath.Join(dir, "a", "weights.safetensors"), Train: o}); err == nil || !strings.Contains(err.Error(), "has the shape") {
		t.Errorf("weights of other widths give %v", err)
	}
}
