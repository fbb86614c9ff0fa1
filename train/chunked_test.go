package train

import (
	"context"
	"errors"
	"math"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/gsrc-dev/gsrc/data"
	"github.com/gsrc-dev/gsrc/data/store"
	"github.com/gsrc-dev/gsrc/internal/budget"
	"github.com/gsrc-dev/gsrc/models"
)

// Over chunks of nodes, of whatever size, every model that is trained with labels gives the bits
// that it gives on the whole graph.
func TestChunkedEvaluation(t *testing.T) {
	options := map[string][]string{
		"gat":    {"model.gat.heads=3"},
		"linear": {"model.linear.steps=3"},
		"gcn":    {"model.smooth.alpha=0.5", "model.smooth.steps=3"},
	}
	compared := 0
	for _, m := range models.All {
		if m.Build == nil || m.Build(models.Default()).Func("train") == nil {
			continue
		}
		for _, kind := range []string{"sparse", "dense", "weighted"} {
			ds := synthetic(t, 4)
			switch kind {
			case "dense":
				ds.X = ds.X.ToDense()
			case "weighted":
				if slices.Contains([]string{"gat", "mlp"}, m.Name) {
					continue
				}
				for i := range ds.Graph.Edges {
					ds.Graph.Weights = append(ds.Graph.Weights, 0.5+float32(i%7))
				}
			}
			job := Job{Model: m.Name, Task: Nodes(ds)}
			tr := started(t, job, configure(t, m.Name, slices.Concat(options[m.Name])...), Options{})
			s := tr.steps.(*nodeSteps)
			f, err := s.function("train")
			if err != nil {
				t.Fatal(err)
			}
			for epoch := range 2 {
				if _, err := s.epoch(f, epoch); err != nil {
					t.Fatal(err)
				}
			}
			want, err := s.evaluate()
			if err != nil {
				t.Fatal(err)
			}
			logits, probs, err := s.classify(tr.prog.inputs["g"], tr.prog.inputs["w"], true)
			if err != nil {
				t.Fatal(err)
			}
			compared++
			wantLogits, wantProbs := slices.Clone(logits.F32), slices.Clone(probs.F32)
			rooms := []int{20000}
			if m.Name == "gat" {
				rooms = []int{1, 20000, 1 << 30} // 1 is a node at a time
			}
			for _, room := range rooms {
				tr.chunk = room
				logits, probs, err := s.classify(nil, nil, true)
				if err != nil {
					t.Fatalf("%s, %s: %v", m.Name, kind, err)
				}
				for what, x := range map[string][2][]float32{"logits": {logits.F32, wantLogits}, "probabilities": {probs.F32, wantProbs}} {
					if !slices.EqualFunc(x[0], x[1], func(a, b float32) bool { return math.Float32bits(a) == math.Float32bits(b) }) {
						t.Errorf("%s, %s, chunks of %d bytes: the %s are others than on the whole graph", m.Name, kind, room, what)
					}
				}
				if got, err := s.evaluate(); err != nil || got != want {
					t.Errorf("%s, %s, chunks of %d bytes: the score is %v, on the whole graph %v, %v", m.Name, kind, room, got, want, err)
				}
			}
			tr.close()
		}
	}
	if compared < 22 {
		t.Errorf("only %d evaluations are compared", compared)
	}
}

// Where the values of all nodes would exceed the limit, a run on batches is evaluated over
// chunks, which it says, and ends with the same bits.
func TestChunkedBelowALimit(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	o := store.Planted{Nodes: 40000, Edges: 80000, Classes: 4, Community: 50, Homophily: 0.8, Locality: 0.5, Features: 16, Signal: 0.3, Train: 300, Val: 200}
	if err := store.Generate(dir, o, store.Options{}); err != nil {
		t.Fatal(err)
	}
	ds, err := data.Load(dir, data.LoadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	sets := []string{"train.epochs=2", "train.sampler=neighbors", "train.fanouts=5,5", "train.batch_nodes=100", "model.hidden=64"}
	tr := started(t, Job{Model: "sage", Task: Nodes(ds)}, configure(t, "sage", sets...), Options{})
	defer tr.close()
	whole, err := Nodes(ds).Forecast(nil, tr.prog.Module, tr.cfg, tr.split, 0)
	if err != nil {
		t.Fatal(err)
	}
	said := ""
	want := run(t, "sage", ds, Options{}, sets...)
	got := run(t, "sage", ds, Options{Memory: int64(whole.Peak) * 2 / 3, Note: func(text string) { said += text }}, sets...)
	if !strings.Contains(said, "over chunks of nodes") {
		t.Errorf("of a limit of %d bytes below the forecast of %d it says %q", whole.Peak*2/3, whole.Peak, said)
	}
	if !reflect.DeepEqual(got.Trained.Logits, want.Trained.Logits) || *got.TestAcc != *want.TestAcc || got.Hash != want.Hash {
		t.Error("the result is another one")
	}
	least, err := Nodes(ds).Forecast(nil, tr.prog.Module, tr.cfg, tr.split, 1)
	if err != nil {
		t.Fatal(err)
	}
	var exceeded *budget.ExceededError
	if _, err := Train(context.Background(), Job{Model: "sage", Task: Nodes(ds)}, tr.cfg, Options{Memory: int64(least.Peak) - 1}); !errors.As(err, &exceeded) || exceeded.Need != int64(least.Peak) {
		t.Errorf("below the least of %d bytes the error is %v", least.Peak, err)
	}
}
