package train

import (
	"context"
	"errors"
	goruntime "runtime"
	"strings"
	"testing"

	"github.com/gsrc-dev/gsrc/config"
	"github.com/gsrc-dev/gsrc/data"
	"github.com/gsrc-dev/gsrc/internal/budget"
)

// What would take more memory than a run may is refused before it is allocated, and runs
// that fit are not.
func TestRunsOverTheLimitAreRefused(t *testing.T) {
	wide := &data.Features{Rows: 6, Cols: 1 << 24, RowPtr: []int32{0, 1, 1, 1, 1, 1, 1}, Col: []int32{5}, Val: []float32{1}}
	for _, c := range []struct {
		model, set string
		wide       bool
		want       string
	}{
		{"ecl-gsr", "model.encoder.hidden=1000001", false, "parameters"},
		{"gcn", "model.hidden=2147483647", false, "@train"},
		{"gat", "model.gat.heads=100000", false, "@train"},
		{"gcn", "", true, "parameters"},
		{"ecl-gsr", "deepwalk.width=1000000", false, "DeepWalk"},
	} {
		ds, err := data.Load(data.Synthetic, data.LoadOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if c.wide {
			ds.X = wide
			ds.Graph.N, ds.Graph.Edges, ds.Labels = 6, [][2]int32{{0, 1}}, []int32{0, 1, 2, 3, 0, 1}
			ds.SplitSpec, ds.Splits = nil, []data.Split{{Train: []int32{0, 1, 2, 3}, Val: []int32{4}, Test: []int32{5}}}
		}
		var sets []string
		if c.set != "" {
			sets = []string{c.set}
		}
		cfg, err := config.Load(c.model, data.Synthetic, "", sets)
		if err != nil {
			t.Fatal(err)
		}
		took := allocated(func() {
			_, err = Train(context.Background(), Job{Model: c.model, Task: Nodes(ds)}, cfg, Options{Memory: 64 << 20})
		})
		var exceeded *budget.ExceededError
		if !errors.As(err, &exceeded) || !strings.Contains(err.Error(), "--memory") || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s %s: %v", c.model, c.set, err)
		}
		if took > 64<<20 {
			t.Errorf("%s %s: %d bytes were allocated before it was refused", c.model, c.set, took)
		}
	}
}

// allocated returns the bytes that f allocates.
func allocated(f func()) uint64 {
	var a, b goruntime.MemStats
	goruntime.ReadMemStats(&a)
	f()
	goruntime.ReadMemStats(&b)
	return b.TotalAlloc - a.TotalAlloc
}

// What a run is taken to need at least is no more than its forecast.
func TestLeastMemoryIsBelowTheForecast(t *testing.T) {
	for _, sets := range [][]string{
		{"gcn"}, {"gcn", "synthetic.nodes=60", "synthetic.features=8"}, {"gcnii"}, {"mlp", "model.hidden=200"}, {"gat"}, {"acm"}, {"grand"}, {"sage"}, {"linear", "model.linear.steps=4", "model.smooth.alpha=0.8", "model.smooth.correct=0.5"}, {"label-propagation"}, {"gcn", "train.self_training=3"},
		{"ecl-gsr"}, {"ecl-gsr", "train.anchors=100"}, {"ecl-gsr", "train.sampler=edges"}, {"ecl-gsr", "train.anchors=0", "model.views.blur=0.03"},
		{"ecl-gsr", "candidates.structure=raw"}, {"ecl-gsr", "model.edges.judge=evidence", "candidates.k=40"},
	} {
		cfg, err := config.Load(sets[0], data.Synthetic, "", append([]string{"synthetic.nodes=300"}, sets[1:]...))
		if err != nil {
			t.Fatal(err)
		}
		o := cfg.Synthetic.CSBM(1)
		ds, err := data.Load(data.Synthetic, data.LoadOptions{Seed: 1, Synthetic: &o})
		if err != nil {
			t.Fatal(err)
		}
		tr := started(t, Job{Model: sets[0], Task: Nodes(ds)}, cfg, Options{})
		least, _ := tr.leastMemory()
		f, err := tr.job.Task.Forecast(nil, tr.prog.Module, cfg, tr.split, 0)
		tr.close()
		if err != nil {
			t.Fatal(err)
		}
		if int64(f.Peak) < least {
			t.Errorf("%v: a forecast of %d bytes, and %d are the least", sets, f.Peak, least)
		}
	}
}

// A process's limit leaves room for what comes beside a run: what is accepted, and that, are at
// most a tenth above it. The limit that a refusal names is accepted.
func TestLimitOfTheProcess(t *testing.T) {
	defer budget.Set(0)
	ds := generatedGraph(t, 2000, 100)
	cfg := configure(t, "gcn")
	tr := started(t, Job{Model: "gcn", Task: Nodes(ds)}, cfg, Options{})
	defer tr.close()
	f, _ := forecastOf(t, tr)
	least := (int64(f.Peak) + besideRun) * 10 / 11
	budget.Set(least - 100)
	var exceeded *budget.ExceededError
	if err := tr.checkMemory(); !errors.As(err, &exceeded) {
		t.Fatalf("a forecast of %d bytes is accepted in a process of %d: %v", f.Peak, least-100, err)
	}
	if exceeded.Need < least || exceeded.Need > least+100 {
		t.Errorf("a refusal asks for %d bytes, want %d", exceeded.Need, least)
	}
	budget.Set(exceeded.Need)
	if err := tr.checkMemory(); err != nil {
		t.Errorf("what a refusal asks for is refused: %v", err)
	}
	tr.opts.Memory = int64(f.Peak) // what a caller gives a run is its own
	if err := tr.checkMemory(); err != nil {
		t.Error(err)
	}
}

// A refusal for what is a part of what a run takes says so, and each says what to do.
func TestRefusalsSayWhatIsAtLeast(t *testing.T) {
	defer budget.Set(0)
	ds := generatedGraph(t, 2000, 100)
	for _, c := range []struct {
		model, set string
		limit      int64
		want       string
	}{
		{"stable", "model.encoder.hidden=1024", 26 << 20, "training stable takes at least "},
		{"ecl-gsr", "candidates.two_step=10", 30 << 20, "training ecl-gsr, without candidates two steps away, takes at least "},
		{"prognn", "candidates.k=1999", 60 << 20, "the graph of candidate edges takes "},
		{"idgl", "candidates.k=10", 40 << 20, "training idgl takes "},
	} {
		budget.Set(0)
		tr := started(t, Job{Model: c.model, Task: Nodes(ds)}, configure(t, c.model, c.set), Options{})
		budget.Set(c.limit)
		err := tr.checkMemory()
		tr.close()
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.HasSuffix(err.Error(), "or raise the limit with --memory") || !strings.Contains(err.Error(), "; lower ") {
			t.Errorf("%s of %d bytes: %v, want %q", c.model, c.limit, err, c.want)
		}
	}
}
