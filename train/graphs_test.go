package train

import (
	"context"
	"errors"
	"math"
	"path/filepath"
	"reflect"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/gsrc-dev/gsrc/config"
	"github.com/gsrc-dev/gsrc/data"
	"github.com/gsrc-dev/gsrc/graph"
	"github.com/gsrc-dev/gsrc/models"
)

// shapes is a collection of rings and of stars, with a random number of nodes:
// without messages between neighbours a degree-blind model cannot tell them apart.
func shapes(t testing.TB, count int) *data.Collection {
	t.Helper()
	c := &data.Collection{Name: "shapes", Source: "test", Format: "test", Offset: []int32{0}, Classes: 2, FeatureNames: []string{"odd", "one"}, Checksum: "shapes"}
	x := &data.Features{Cols: 2}
	for i := range count {
		n := int32(4 + i*7%9)
		g := &graph.Graph{N: int(n)}
		for v := int32(1); v < n; v++ {
			if i%2 == 0 {
				g.Edges = append(g.Edges, [2]int32{v - 1, v})
			} else {
				g.Edges = append(g.Edges, [2]int32{0, v})
			}
		}
		for v := range n {
			x.Dense = append(x.Dense, float32(v%2), 1)
		}
		c.Graphs, c.Labels = append(c.Graphs, g), append(c.Labels, int32(i%2))
		c.Offset = append(c.Offset, c.Offset[i]+n)
	}
	x.Rows = c.Nodes()
	c.X = x
	if err := c.Check(); err != nil {
		t.Fatal(err)
	}
	return c
}

func graphConfig(t testing.TB, model string, sets ...string) *config.Config {
	t.Helper()
	cfg, err := config.LoadGraphs(model, "shapes", "", append([]string{
		"model.hidden=8", "model.layers=2", "train.epochs=8", "train.batch_graphs=12", "train.checkpoint_every=3", "train.threads=2",
		"model.encoder.hidden=8", "model.encoder.projection=6", "model.ecl.sgld_steps=2", "train.pretrain_steps=14", "train.joint_every=3", "train.refresh_every=4"}, sets...))
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

func trainGraphs(t testing.TB, model string, opts Options, sets ...string) *Result {
	t.Helper()
	res, err := Train(context.Background(), Job{Model: model, Task: Graphs(shapes(t, 70))}, graphConfig(t, model, sets...), opts)
	if err != nil {
		t.Fatalf("%s %v: %v", model, sets, err)
	}
	return res
}

// Every model of graphs learns what a ring is, with each readout; what reads no
// neighbours does not learn it from these features.
func TestTrainGraphs(t *testing.T) {
	c := shapes(t, 70)
	for _, m := range models.All {
		if m.Graphs == nil {
			continue
		}
		for _, readout := range []string{"sum", "mean", "max"} {
			res := trainGraphs(t, m.Name, Options{}, "model.readout="+readout, "train.epochs=25")
			if m.Name != "mlp" && *res.TestAcc < 99 {
				t.Errorf("%s with %s: test accuracy %.1f", m.Name, readout, *res.TestAcc)
			}
			if len(res.TestCurve) != 25 || res.TestCurve[res.BestEpoch-1] != *res.TestAcc {
				t.Errorf("%s: the curve %v does not have %.1f at epoch %d", m.Name, res.TestCurve, *res.TestAcc, res.BestEpoch)
			}
			if res.Split != "fold 0" || res.EdgesBefore != c.NumEdges() || len(res.Trained.Logits) != 2*len(c.Graphs) {
				t.Errorf("%s: split %q, %d edges, %d logits", m.Name, res.Split, res.EdgesBefore, len(res.Trained.Logits))
			}
			for g := range c.Graphs {
				p := res.Trained.Probabilities[2*g:]
				if !(math.Abs(float64(p[0]+p[1])-1) <= 1e-6) {
					t.Fatalf("%s: the probabilities of graph %d are %v", m.Name, g, p[:2])
				}
			}
		}
	}
}

// The same seed gives the same bits for any number of threads, another seed
// another fold.
func TestGraphsAreDeterministic(t *testing.T) {
	for _, model := range []string{"gcn", "ecl-gsr"} {
		a, b := trainGraphs(t, model, Options{}, "train.threads=1"), trainGraphs(t, model, Options{}, "train.threads=3")
		if !reflect.DeepEqual(a.Trained.Params, b.Trained.Params) || !reflect.DeepEqual(a.Trained.Logits, b.Trained.Logits) || !reflect.DeepEqual(a.TestCurve, b.TestCurve) ||
			!reflect.DeepEqual(a.Trained.Refined, b.Trained.Refined) {
			t.Errorf("%s: one and three threads give different results", model)
		}
		if c := trainGraphs(t, model, Options{}, "train.seed=13"); c.Split != "fold 3 of partition 1" || reflect.DeepEqual(a.Trained.Params, c.Trained.Params) {
			t.Errorf("%s: seed 13 trains on split %q", model, c.Split)
		}
	}
}

// An interrupted run of graphs ends as an undisturbed one, its test curve and its
// candidates included.
func TestGraphsResume(t *testing.T) {
	c := shapes(t, 70)
	for _, test := range []struct {
		model string
		stops []int // events before each interruption
	}{{"gcn", []int{2, 3}}, {"ecl-gsr", []int{5, 12, 3}}} {
		cfg := graphConfig(t, test.model, "train.halve_lr_every=3")
		task := Job{Model: test.model, Task: Graphs(c)}
		whole := t.TempDir()
		want, err := Train(context.Background(), task, cfg, Options{Dir: whole})
		if err != nil {
			t.Fatal(err)
		}
		dir := filepath.Join(t.TempDir(), "run")
		for i, n := range test.stops {
			ctx, cancel := context.WithCancel(context.Background())
			if _, err := Train(ctx, task, cfg, Options{Dir: dir, Resume: i > 0, Observer: &stopAt{events: n, cancel: cancel}}); !errors.Is(err, ErrInterrupted) {
				t.Fatalf("%s: interruption %d: %v", test.model, i, err)
			}
		}
		got, err := Train(context.Background(), task, cfg, Options{Dir: dir, Resume: true})
		if err != nil {
			t.Fatal(err)
		}
		sameRuns(t, contents(t, dir), contents(t, whole))
		if !reflect.DeepEqual(got.Trained.Params, want.Trained.Params) || !reflect.DeepEqual(got.TestCurve, want.TestCurve) {
			t.Errorf("%s: the resumed run differs", test.model)
		}
		loaded, info, err := Load(dir)
		if err != nil {
			t.Fatal(err)
		}
		if info.Data.Graphs != 70 || !reflect.DeepEqual(loaded.Params, want.Trained.Params) {
			t.Errorf("%s: the directory has %d graphs", test.model, info.Data.Graphs)
		}
		if r := want.Trained.Refined; r != nil && (!reflect.DeepEqual(loaded.Refined.Probability, r.Probability) || !reflect.DeepEqual(loaded.Refined.Graph(), r.Graph())) {
			t.Errorf("%s: the directory has other refined graphs", test.model)
		}
	}
}

// Once the largest batches were seen, a step allocates nothing, whatever its batch.
func TestGraphStepsAllocateNothing(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	tr := started(t, Job{Model: "gcn", Task: Graphs(shapes(t, 70))}, graphConfig(t, "gcn"), Options{})
	defer tr.close()
	p := tr.steps
	f, err := tr.prog.function("train")
	if err != nil {
		t.Fatal(err)
	}
	if err := p.reserve("train"); err != nil {
		t.Fatal(err)
	}
	epoch := 0
	step := func() {
		if _, err := p.epoch(f, epoch); err != nil {
			t.Fatal(err)
		}
		epoch++
	}
	step()
	if n := allocations(10, step); n > 10 { // the stream's name is hashed once an epoch
		t.Errorf("10 epochs allocate %d times", n)
	}
}

// Learning rates halve; what batch normalisation has seen is kept.
func TestSchedule(t *testing.T) {
	tr := started(t, Job{Model: "gcn", Task: Graphs(shapes(t, 70))}, graphConfig(t, "gcn", "train.lr=0.5", "train.halve_lr_every=3"), Options{})
	defer tr.close()
	for epoch, want := range []float64{0.5, 0.5, 0.5, 0.25, 0.25, 0.25, 0.125} {
		if tr.optim.Halve(epoch, tr.cfg.Train.HalveLREvery); tr.optim.Groups["classifier"].LR != want {
			t.Errorf("epoch %d has the learning rate %v, want %v", epoch, tr.optim.Groups["classifier"].LR, want)
		}
	}
	res := trainGraphs(t, "gcn", Options{})
	mean := res.Trained.Params["classifier.1.norm.mean"]
	if len(mean) != 8 || reflect.DeepEqual(mean, make([]float32, 8)) {
		t.Errorf("the running mean is %v", mean)
	}
}

// A program for nodes does not train on graphs, nor the other way round.
func TestKindsOfData(t *testing.T) {
	c, ds := shapes(t, 70), synthetic(t, 1)
	cfg := graphConfig(t, "gcn")
	ofNodes, err := Nodes(ds).Module("gcn", cfg)
	if err != nil {
		t.Fatal(err)
	}
	ofGraphs, err := Graphs(c).Module("gcn", cfg)
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		job  Job
		want string
	}{
		{Job{Module: ofNodes, Task: Graphs(c)}, "classifies nodes, and the data are a collection of graphs"},
		{Job{Module: ofGraphs, Task: Nodes(ds)}, "classifies graphs in batches, and the data are one graph"},
		{Job{Model: "grand", Task: Graphs(c)}, "grand classifies nodes, and shapes is a collection of graphs"},
		{Job{Model: "gcn", Task: Graphs(shapes(t, 9))}, "has 9 graphs with a class; for 10 folds with validation graphs, 12 or more are needed"},
	} {
		if _, err := Train(context.Background(), test.job, cfg, Options{}); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("error %v, want %q", err, test.want)
		}
	}
	cfg.Model.Edges.SameClass = true
	if _, err := Graphs(c).Module("ecl-gsr", cfg); err == nil || !strings.Contains(err.Error(), "whose nodes have no classes") {
		t.Errorf("edges between nodes of one class of graphs: %v", err)
	}
}
