package train

import (
	"context"
	"math"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/gsrc-dev/gsrc/config"
	"github.com/gsrc-dev/gsrc/data"
	"github.com/gsrc-dev/gsrc/data/store"
)

// On all neighbours, in one batch, a step is that of the whole graph but for rounding.
func TestAllNeighborsAreTheWholeGraph(t *testing.T) {
	ds := synthetic(t, 3)
	for _, model := range []string{"sage", "gcn", "gin", "gat", "gcnii", "acm"} {
		plain := []string{"train.epochs=3", "model.dropout=0", "model.input_dropout=0", "model.gat.attention_dropout=0"}
		want := run(t, model, ds, Options{}, plain...)
		got := run(t, model, ds, Options{}, append(plain, "train.sampler=neighbors")...)
		tr := started(t, Job{Model: model, Task: Nodes(ds)}, configure(t, model, append(plain, "train.sampler=neighbors")...), Options{})
		if n := tr.steps.(*nodeSteps).sampled.hops; n < 2 {
			t.Errorf("%s: a step is divided by %d hops", model, n)
		}
		tr.close()
		for name, w := range want.Trained.Params {
			for i, v := range got.Trained.Params[name] {
				if math.Abs(float64(v-w[i])) > 2e-4 {
					t.Fatalf("%s: parameter %s is %v, on the whole graph %v", model, name, v, w[i])
				}
			}
		}
	}
}

// Batches with drawn neighbours give the same bits for any number of threads, from memory
// and from a store, and after an interruption.
func TestNeighborsDeterminism(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	if err := data.Convert(data.Synthetic, dir, data.ConvertOptions{Load: data.LoadOptions{Seed: 2}}); err != nil {
		t.Fatal(err)
	}
	stored, err := data.Load(dir, data.LoadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	memory, err := data.Load(data.Synthetic, data.LoadOptions{Seed: 2})
	if err != nil {
		t.Fatal(err)
	}
	sets := []string{"train.sampler=neighbors", "train.fanouts=4,3", "train.batch_nodes=16", "train.epochs=6"}
	want := run(t, "sage", memory, Options{}, append(sets, "train.threads=1")...)
	for name, ds := range map[string]*data.Dataset{"memory": memory, "a store": stored} {
		got := run(t, "sage", ds, Options{}, append(sets, "train.threads=3")...)
		if !reflect.DeepEqual(got.Trained.Params, want.Trained.Params) || !reflect.DeepEqual(got.Trained.Logits, want.Trained.Logits) {
			t.Errorf("from %s the result is another one", name)
		}
	}
	if got := run(t, "sage", memory, Options{}, append(sets, "train.seed=1")...); reflect.DeepEqual(got.Trained.Params, want.Trained.Params) {
		t.Error("another seed gives the same parameters")
	}

	ctx, cancel := context.WithCancel(context.Background())
	at := filepath.Join(t.TempDir(), "run")
	cfg := configure(t, "sage", append(sets, "train.threads=2")...)
	job := Job{Model: "sage", Task: Nodes(stored)}
	if _, err := Train(ctx, job, cfg, Options{Dir: at, Observer: watch(func(e Event) {
		if e.Step == 3 {
			cancel()
		}
	})}); err == nil || !strings.Contains(err.Error(), "interrupted") {
		t.Fatalf("the error is %v", err)
	}
	res, err := Train(context.Background(), job, cfg, Options{Dir: at, Resume: true})
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(res.Trained.Params, want.Trained.Params) {
		t.Error("the run that was resumed ends elsewhere")
	}
}

func TestNeighborsRefuse(t *testing.T) {
	ds := synthetic(t, 1)
	for _, c := range []struct{ model, set, words string }{
		{"ecl-gsr", "train.fanouts=5,5", "learns edges"},
		{"sage", "train.fanouts=5", "sage reads neighbours 2 steps away"},
		{"sage", "train.fanouts=5,x", "a number for each layer"},
	} {
		cfg, err := config.Load(c.model, data.Synthetic, "", []string{"train.sampler=neighbors", c.set})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Train(context.Background(), Job{Model: c.model, Task: Nodes(ds)}, cfg, Options{}); err == nil || !strings.Contains(err.Error(), c.words) {
			t.Errorf("%s with %s: the error is %v", c.model, c.set, err)
		}
	}
}

// What a model learns from drawn neighbours is as good on the whole graph.
func TestNeighborsLearn(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	o := store.Planted{Nodes: 3000, Edges: 20000, Classes: 4, Community: 50, Homophily: 0.8, Locality: 0.5, Features: 16, Signal: 0.3, Train: 300, Val: 200}
	if err := store.Generate(dir, o, store.Options{}); err != nil {
		t.Fatal(err)
	}
	ds, err := data.Load(dir, data.LoadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, model := range []string{"sage", "gcn", "gin"} {
		whole := run(t, model, ds, Options{}, "train.epochs=40")
		drawn := run(t, model, ds, Options{}, "train.epochs=20", "train.sampler=neighbors", "train.fanouts=10,10", "train.batch_nodes=100")
		if *drawn.TestAcc < *whole.TestAcc-4 {
			t.Errorf("%s: test accuracy %.1f, on the whole graph %.1f", model, *drawn.TestAcc, *whole.TestAcc)
		}
	}
}
