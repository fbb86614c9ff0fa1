package train

import (
	"fmt"
	goruntime "runtime"
	"runtime/debug"
	"runtime/metrics"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gsrc-dev/gsrc/config"
	"github.com/gsrc-dev/gsrc/data"
)

// heap returns the bytes in use.
func heap() int {
	var m goruntime.MemStats
	goruntime.GC()
	goruntime.GC()
	goruntime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}

// generatedGraph is a graph of so many nodes and features.
func generatedGraph(t *testing.T, nodes, features int) *data.Dataset {
	t.Helper()
	cfg, err := config.Load("gcn", "synthetic", "", []string{fmt.Sprintf("synthetic.nodes=%d", nodes), fmt.Sprintf("synthetic.features=%d", features), "synthetic.classes=4"})
	if err != nil {
		t.Fatal(err)
	}
	o := cfg.Synthetic.CSBM(1)
	ds, err := data.Load(data.Synthetic, data.LoadOptions{Seed: 1, Synthetic: &o, Split: "random:0.2,0.3,0.5"})
	if err != nil {
		t.Fatal(err)
	}
	return ds
}

// The forecast of a run's memory is never below what its steps are found to
// hold, and at most 15 % above: the growth of the heap from before the run until
// after steps of every function.
func TestForecastHolds(t *testing.T) {
	generated := func(nodes int) *data.Dataset { return generatedGraph(t, nodes, 600) }
	for _, c := range []struct {
		name  string
		load  func(t *testing.T) *data.Dataset
		model string
		sets  []string
	}{
		{"gcn", func(*testing.T) *data.Dataset { return generated(2000) }, "gcn", nil},
		{"mlp", func(*testing.T) *data.Dataset { return generated(2000) }, "mlp", nil},
		{"linear, smoothed", func(*testing.T) *data.Dataset { return generated(2000) }, "linear", []string{"model.linear.steps=4", "model.smooth.alpha=0.8", "model.smooth.correct=0.5"}},
		{"gcn, self-trained", func(*testing.T) *data.Dataset { return generated(2000) }, "gcn", []string{"train.self_training=1"}},
		{"ecl-gsr", func(*testing.T) *data.Dataset { return generated(2000) }, "ecl-gsr", nil},
		{"ecl-gsr, weights", func(*testing.T) *data.Dataset { return weigh(generated(2000)) }, "ecl-gsr", nil},
		{"ecl-gsr, evidence and weights", func(*testing.T) *data.Dataset { return weigh(generated(2000)) }, "ecl-gsr", []string{"model.edges.judge=evidence"}},
		{"ecl-gsr, few anchors", func(*testing.T) *data.Dataset { return generated(2000) }, "ecl-gsr", []string{"train.anchors=100"}},
		{"ecl-gsr, structure", func(*testing.T) *data.Dataset { return generated(1000) }, "ecl-gsr", []string{"train.anchors=200", "deepwalk.width=64", "deepwalk.walks=2", "model.views.blur=0.03"}},
		{"ecl-gsr, edges judged by evidence", func(*testing.T) *data.Dataset { return generated(2000) }, "ecl-gsr", []string{"model.edges.judge=evidence"}},
		{"ecl-gsr, evidence and two steps", func(*testing.T) *data.Dataset { return generated(2000) }, "ecl-gsr", []string{"model.edges.judge=evidence", "candidates.similarity=evidence", "candidates.k=5", "candidates.two_step=10"}},
		{"ecl-gsr, evidence of many edges", func(*testing.T) *data.Dataset { return dense(1000, 10) }, "ecl-gsr", []string{"model.edges.judge=evidence"}},
		{"ecl-gsr, evidence for seed edges", func(*testing.T) *data.Dataset { return generated(2000) }, "ecl-gsr", []string{"model.edges.judge=evidence", "train.sampler=edges"}},
		{"ecl-gsr, evidence for all nodes", func(*testing.T) *data.Dataset { return generated(700) }, "ecl-gsr", []string{"model.edges.judge=evidence", "train.anchors=0", "model.views.blur=0.03"}},
		{"cora, evidence", func(t *testing.T) *data.Dataset { return dataset(t, "planetoid/cora") }, "ecl-gsr", []string{"model.edges.judge=evidence", "candidates.similarity=evidence", "candidates.k=5", "candidates.two_step=10"}},
		{"ecl-gsr, seed edges", func(*testing.T) *data.Dataset { return generated(2000) }, "ecl-gsr", []string{"train.sampler=edges"}},
		{"ecl-gsr, acm", func(*testing.T) *data.Dataset { return generated(2000) }, "ecl-gsr", []string{"model.classifier=acm", "model.edges.samples=1", "model.norm=l2", "model.decay_first=false"}},
		{"ecl-gsr, one layer", func(*testing.T) *data.Dataset { return generated(2000) }, "ecl-gsr", []string{"model.layers=1"}},
		{"ecl-gsr, all nodes", func(*testing.T) *data.Dataset { return generated(700) }, "ecl-gsr", []string{"train.anchors=0", "model.views.blur=0.03"}},
		{"lds, all pairs", func(*testing.T) *data.Dataset { return generated(700) }, "lds", []string{"candidates.k=699", "model.lds.steps=2"}},
		{"prognn, all pairs", func(*testing.T) *data.Dataset { return generated(700) }, "prognn", []string{"candidates.k=699", "model.prognn.nuclear=1.5"}},
		{"idgl", func(*testing.T) *data.Dataset { return generated(700) }, "idgl", nil},
		{"cora", func(t *testing.T) *data.Dataset { return dataset(t, "planetoid/cora") }, "ecl-gsr", nil},
		{"cora, gcn", func(t *testing.T) *data.Dataset { return dataset(t, "planetoid/cora") }, "gcn", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			if testing.Short() {
				t.Skip("takes seconds")
			}
			ds := c.load(t)
			cfg, err := config.Load(c.model, ds.Name, "", append([]string{"train.threads=2", "train.joint_every=3", "model.edges.judge=embedding"}, c.sets...))
			if err != nil {
				t.Fatal(err)
			}
			before := heap()
			tr := started(t, Job{Model: c.model, Task: Nodes(ds)}, cfg, Options{})
			defer tr.close()
			f, own := forecastOf(t, tr)
			held := measure(t, tr) - before + own
			t.Logf("predicted %.2f MiB in phase %s, measured %.2f: ratio %.3f", mib(f.Peak), f.Phase, mib(held), float64(f.Peak)/float64(held))
			for _, p := range f.Parts {
				t.Logf("  %-40s %8.2f MiB", p.Name, mib(p.Bytes))
			}
			for _, x := range f.Functions {
				t.Logf("  @%-39s %8.2f MiB, set-up %.2f, blocks %.2f, alive %.2f, unshared %.2f", x.Name, mib(x.Arena), mib(x.Setup), mib(x.Blocks), mib(x.Live), mib(x.Unshared))
			}
			if f.Peak < held {
				t.Errorf("%d bytes are predicted, %d are held", f.Peak, held)
			}
			most := 115
			if slices.Contains(c.sets, "model.edges.judge=evidence") && searchesAgain(cfg) {
				most = 125 // an attacked graph would hold more while the classifier is trained
			}
			if 100*f.Peak > most*held {
				t.Errorf("%d bytes are predicted, only %d are held", f.Peak, held)
			}
		})
	}
}

// Where functions are given back, the forecast is of what is held together, and not below what a
// run holds at any time but for its garbage.
func TestForecastOfPhases(t *testing.T) {
	defer func(n int) { large = n }(large)
	large = 0
	ds := generatedGraph(t, 4000, 24)
	for _, c := range []struct {
		phase string
		sets  []string
	}{
		{"evidence", nil},
		{"candidates", []string{"model.encoder.hidden=600", "model.classifier=linear"}},
		{"train", []string{"model.hidden=512"}},
		{"end", []string{"model.encoder.hidden=700", "candidates.similarity=embedding"}},
		{"joint", []string{"model.encoder.hidden=300", "train.joint_every=1"}},
	} {
		cfg, err := config.Load("ecl-gsr", ds.Name, "", append([]string{"train.threads=2", "train.epochs=2", "train.pretrain_steps=0", "train.joint_every=0", "model.edges.judge=evidence", "candidates.similarity=evidence"}, c.sets...))
		if err != nil {
			t.Fatal(err)
		}
		before := heap()
		tr := started(t, Job{Model: "ecl-gsr", Task: Nodes(ds)}, cfg, Options{})
		f, own := forecastOf(t, tr)
		memory := int64(0)
		if cfg.Train.JointEvery > 0 { // too little for all functions at once
			memory = int64(f.Peak - 1)
			if f, err = tr.job.Task.Forecast(nil, tr.prog.Module, cfg, tr.split, memory); err != nil {
				t.Fatal(err)
			}
		}
		tr.close()
		held := mostHeld(t, func() error {
			_, err := Train(t.Context(), Job{Model: "ecl-gsr", Task: Nodes(ds)}, cfg, Options{Memory: memory})
			return err
		}) - before + own
		bound := 1.15
		if c.phase == "evidence" {
			bound = 1.6 // an attacked graph would hold more
		}
		checkForecast(t, c.sets, f, c.phase, held, 1/1.07, bound)
	}
}

// checkForecast holds a forecast to its phase, and its ratio to what was held to bounds.
func checkForecast(t *testing.T, sets []string, f *Forecast, phase string, held int, least, most float64) {
	t.Helper()
	ratio := float64(f.Peak) / float64(held)
	t.Logf("%v: predicted %.2f MiB in phase %s, held %.2f with garbage: ratio %.3f", sets, mib(f.Peak), f.Phase, mib(held), ratio)
	if f.Phase != phase {
		t.Errorf("%v: the forecast is of phase %s, want %s", sets, f.Phase, phase)
	}
	if ratio < least || ratio > most {
		t.Errorf("%v: %d bytes are predicted, %d are held with a twentieth of garbage and what comes on top while it is collected", sets, f.Peak, held)
	}
}

// mostHeld returns the largest heap in use while something runs, with a twentieth of garbage.
func mostHeld(t *testing.T, do func() error) (most int) {
	t.Helper()
	end := make(chan bool)
	percent := debug.SetGCPercent(5)
	go func() {
		sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
		for tick := time.NewTicker(time.Millisecond); ; {
			select {
			case <-end:
				tick.Stop()
				end <- true
				return
			case <-tick.C:
				metrics.Read(sample)
				most = max(most, int(sample[0].Value.Uint64()))
			}
		}
	}()
	err := do()
	end <- true
	<-end
	debug.SetGCPercent(percent)
	if err != nil {
		t.Fatal(err)
	}
	return most
}

// The same on sampled batches, in the least memory that is forecast.
func TestForecastOfSampledPhases(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	defer func(n int) { large = n }(large)
	large = 0
	ds := generatedGraph(t, 8000, 24)
	for _, c := range []struct {
		phase string
		sets  []string
	}{
		{"train", []string{"train.batch_nodes=1000", "model.hidden=512"}},
		{"train", []string{"train.batch_nodes=1000", "model.hidden=256", "model.classifier=acm"}},
		{"train", []string{"train.batch_nodes=1000", "model.hidden=64", "model.classifier=gat"}},
		{"joint", []string{"train.batch_nodes=600", "train.joint_every=2", "train.refresh_every=3", "model.encoder.hidden=256"}},
		{"pretrain", []string{"train.batch_nodes=100", "train.anchors=1200", "train.pretrain_steps=3", "train.refresh_every=1", "model.encoder.hidden=384"}},
	} {
		cfg, err := config.Load("ecl-gsr", ds.Name, "", append([]string{"train.threads=2", "train.epochs=4", "train.pretrain_steps=0", "train.joint_every=0", "model.edges.judge=evidence", "train.sampler=neighbors", "train.fanouts=10,10"}, c.sets...))
		if err != nil {
			t.Fatal(err)
		}
		before := heap()
		tr := started(t, Job{Model: "ecl-gsr", Task: Nodes(ds)}, cfg, Options{})
		_, own := forecastOf(t, tr)
		f, err := Nodes(ds).Forecast(nil, tr.prog.Module, tr.cfg, tr.split, 1)
		tr.close()
		if err != nil {
			t.Fatal(err)
		}
		held := mostHeld(t, func() error {
			_, err := Train(t.Context(), Job{Model: "ecl-gsr", Task: Nodes(ds)}, cfg, Options{Memory: int64(f.Peak)})
			return err
		}) - before + own
		least := 1 / 1.07
		if c.phase == "train" {
			least = 1 / 1.12 // chunks of wide layers leave garbage of some MiB
		}
		checkForecast(t, c.sets, f, c.phase, held, least, 1.3)
	}
}

func mib(n int) float64 { return float64(n) / (1 << 20) }

// Only functions that training runs are forecast.
func TestForecastFunctions(t *testing.T) {
	ds := synthetic(t, 1)
	for _, c := range []struct {
		model string
		sets  []string
		want  string
	}{
		{"gcn", nil, "train classify"},
		{"ecl-gsr", []string{"model.edges.judge=evidence"}, "pretrain fit joint encode probability refine classify existing missing"},
		{"ecl-gsr", []string{"model.edges.judge=embedding"}, "pretrain fit joint encode probability refine classify"},
		{"ecl-gsr", []string{"model.edges.judge=embedding", "train.joint_every=0", "train.pretrain_steps=0"}, "fit encode probability refine classify"},
		{"ecl-gsr", []string{"candidates.structure=raw"}, "fit refine classify"},
		{"ecl-gsr", []string{"model.edges.judge=embedding", "train.sampler=edges"}, "pretrain fit joint encode probability refine classify"},
	} {
		cfg := configure(t, c.model, c.sets...)
		tr := started(t, Job{Model: c.model, Task: Nodes(ds)}, cfg, Options{})
		defer tr.close()
		f, _ := forecastOf(t, tr)
		var names []string
		for _, x := range f.Functions {
			names = append(names, x.Name)
		}
		if got := strings.Join(names, " "); got != c.want {
			t.Errorf("%s %v: forecast of %s, want %s", c.model, c.sets, got, c.want)
		}
		if !strings.Contains(f.Table(), "peak of the training steps") || f.Peak == 0 {
			t.Errorf("%s %v: no peak in\n%s", c.model, c.sets, f.Table())
		}
	}
}

// measure runs steps of every phase and returns the largest heap in use after one.
func measure(t *testing.T, tr *trainer) int {
	t.Helper()
	most := 0
	look := func() { most = max(most, heap()) }
	steps := func(f *function, before func() error) {
		for range 6 {
			if before != nil {
				if err := before(); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := tr.step(f, tr.state.Step()); err != nil {
				t.Fatal(err)
			}
			tr.state.Epoch++
		}
	}
	if more := mostTrained(tr.cfg, tr.split, tr.info.Nodes, tr.info.Classes)[len(tr.split.Train):]; len(more) > 0 {
		var added [][2]int32
		for _, v := range more {
			added = append(added, [2]int32{v, 0})
		}
		if err := tr.steps.learn(added); err != nil {
			t.Fatal(err)
		}
	}
	if tr.prog.Func("fit") == nil {
		f, err := tr.prog.function("train")
		if err != nil {
			t.Fatal(err)
		}
		steps(f, nil)
		if _, _, err := tr.steps.(*nodeSteps).classify(); err != nil {
			t.Fatal(err)
		}
		look()
		return most
	}
	p := tr.steps.(*nodeSteps)
	if tr.prog.Func("pretrain") == nil {
		for epoch := range 6 {
			if _, _, err := (algorithm1{tr, p}).epoch(epoch); err != nil {
				t.Fatal(err)
			}
			tr.state.Epoch++
			if err := (algorithm1{tr, p}).refresh(); err != nil {
				t.Fatal(err)
			}
			if _, err := p.evaluate(); err != nil {
				t.Fatal(err)
			}
			if err := p.fetch(); err != nil {
				t.Fatal(err)
			}
			tr.best = tr.edges.kept(tr.best)
			look()
		}
		return most
	}
	if err := p.begin(); err != nil {
		t.Fatal(err)
	}
	if err := p.prepareBatches(); err != nil {
		t.Fatal(err)
	}
	f, err := tr.prog.function("pretrain")
	if err != nil {
		t.Fatal(err)
	}
	steps(f, func() error { return p.batches.bind(f, tr.state.Step()) })
	look()
	f = nil
	tr.prog.drop("pretrain")
	for epoch := range 2 * tr.cfg.Train.JointEvery {
		if _, _, err := (algorithm1{tr, p}).epoch(epoch); err != nil {
			t.Fatal(err)
		}
		tr.state.Epoch++
		if err := (algorithm1{tr, p}).refresh(); err != nil {
			t.Fatal(err)
		}
		if _, err := p.evaluate(); err != nil {
			t.Fatal(err)
		}
	}
	look()
	return most
}
