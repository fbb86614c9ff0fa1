package train

import (
	"runtime"
	"runtime/debug"
	"testing"

	"github.com/gsrc-dev/gsrc/config"
)

// After the first step a training step allocates nothing, on any thread.
func TestStepsAllocateNothing(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // a collection empties the scheduler's caches
	ds := synthetic(t, 1)
	for _, c := range []struct{ model, function string }{{"gcn", "train"}, {"mlp", "train"}, {"grand", "train"}, {"acm", "train"}, {"gcnii", "train"}, {"sage", "train"}, {"gin", "train"}, {"linear", "train"}, {"gat", "train"}, {"ecl-gsr", "pretrain"}, {"ecl-gsr", "fit"}, {"ecl-gsr", "joint"}} {
		tr := started(t, Job{Model: c.model, Task: Nodes(ds)}, configure(t, c.model, "train.threads=3"), Options{})
		p := tr.steps.(*nodeSteps)
		if c.model == "ecl-gsr" {
			if err := p.begin(); err != nil {
				t.Fatal(err)
			}
			if err := (algorithm1{tr, p}).refresh(); err != nil {
				t.Fatal(err)
			}
			if err := p.prepareBatches(); err != nil {
				t.Fatal(err)
			}
		}
		f, err := tr.prog.function(c.function)
		if err != nil {
			t.Fatal(err)
		}
		step := func() {
			if c.function == "pretrain" || c.function == "joint" {
				if err := p.batches.bind(f, tr.state.Step()); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := tr.step(f, tr.state.Step()); err != nil {
				t.Fatal(err)
			}
			tr.state.Epoch++
		}
		for range 3 {
			step()
		}
		if n := allocations(100, step); n != 0 {
			t.Errorf("%s @%s: 100 steps allocate %d times", c.model, c.function, n)
		}
		tr.close()
	}
}

// Nor do steps of learners that move the graph itself.
func TestJointStepsAllocateNothing(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	for _, model := range []string{"lds", "prognn"} {
		tr := started(t, Job{Model: model, Task: Nodes(synthetic(t, 1))}, configure(t, model, "train.joint_every=1", "train.pretrain_steps=0", "train.refresh_every=0", "candidates.k=6", "train.threads=3", "model.lds.restart=3"), Options{})
		step := func() {
			if _, _, err := (algorithm1{tr, tr.steps.(refiner)}).epoch(tr.state.Epoch); err != nil {
				t.Fatal(err)
			}
			tr.state.Epoch++
		}
		for range 5 {
			step()
		}
		if n := allocations(20, step); n != 0 {
			t.Errorf("%s: 20 steps allocate %d times", model, n)
		}
		tr.close()
	}
}

// Resampling the graph in every step allocates nothing either: new candidates
// and their probabilities, batches of edges with their subgraphs. Sizes differ
// from step to step, so memory may grow for a while.
func TestResamplingAllocatesNothing(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	ds := synthetic(t, 1)
	for _, c := range []struct {
		name string
		sets []string
	}{
		{"probabilities", []string{"train.refresh_every=0"}},
		{"candidates", []string{"train.refresh_every=1"}},
		{"candidates judged by evidence", []string{"train.refresh_every=1", "model.edges.judge=evidence"}},
		{"mutual candidates", []string{"train.refresh_every=1", "candidates.mutual=true"}},
		{"judged edges", []string{"train.refresh_every=0", "train.sampler=edges", "train.batch_edges=16", "model.edges.judge=evidence"}},
		{"edges", []string{"train.refresh_every=0", "train.sampler=edges", "train.batch_edges=16"}},
		{"fan-out", []string{"train.refresh_every=0", "train.sampler=edges", "train.batch_edges=16", "train.fanout=2"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			tr := started(t, Job{Model: "ecl-gsr", Task: Nodes(ds)}, configure(t, "ecl-gsr", append(c.sets, "train.joint_every=1", "train.threads=3")...), Options{})
			defer tr.close()
			p := tr.steps.(*nodeSteps)
			if err := p.begin(); err != nil {
				t.Fatal(err)
			}
			if err := p.prepareBatches(); err != nil {
				t.Fatal(err)
			}
			pretrain, err := tr.prog.function("pretrain")
			if err != nil {
				t.Fatal(err)
			}
			step := func() {
				if _, err := p.contrast(pretrain); err != nil {
					t.Fatal(err)
				}
				if _, _, err := (algorithm1{tr, p}).epoch(tr.state.Epoch); err != nil {
					t.Fatal(err)
				}
				tr.state.Epoch++
			}
			for range 20 {
				step()
			}
			if n := allocations(20, step); n != 0 {
				t.Errorf("20 steps allocate %d times", n)
			}
		})
	}
}

// BenchmarkResample times the parts of an epoch of Cora that follows a step of
// the encoder: new candidates, their probabilities, and a step of the classifier
// on a fresh sample of them.
func BenchmarkResample(b *testing.B) {
	cfg, err := config.Load("ecl-gsr", "cora", "", []string{"deepwalk.width=0"})
	if err != nil {
		b.Fatal(err)
	}
	tr := started(b, Job{Model: "ecl-gsr", Task: Nodes(dataset(b, "planetoid/cora"))}, cfg, Options{})
	defer tr.close()
	p := algorithm1{tr, tr.steps.(refiner)}
	if err := p.refresh(); err != nil {
		b.Fatal(err)
	}
	fit, err := tr.prog.function("fit")
	if err != nil {
		b.Fatal(err)
	}
	for _, part := range []struct {
		name string
		f    func() error
	}{
		{"candidates", func() error {
			tr.prog.outdate(nil)
			return p.choose()
		}},
		{"probabilities", func() error {
			tr.prog.outdate(nil)
			tr.edges.fresh = false
			return p.refresh()
		}},
		{"fit", func() error {
			_, err := tr.step(fit, tr.state.Step())
			return err
		}},
	} {
		b.Run(part.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := part.f(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// allocations returns the least number of allocations of count steps in a few
// tries. Go's scheduler allocates a record for a goroutine that parks when its
// caches hold none; a step that allocated would do so every time.
func allocations(count int, step func()) uint64 {
	fillWaiterCaches()
	least := ^uint64(0)
	for i := 0; i < 10 && least > 0; i++ {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for range count {
			step()
		}
		runtime.ReadMemStats(&after)
		least = min(least, after.Mallocs-before.Mallocs)
	}
	return least
}

// fillWaiterCaches parks many goroutines at once and lets them go, so that the
// scheduler keeps more waiting records than its processors can hoard.
func fillWaiterCaches() {
	const hoard = 128 // records a processor keeps to itself
	gate, done := make(chan struct{}), make(chan struct{})
	parked := 4 * hoard * runtime.GOMAXPROCS(0)
	for range parked {
		go func() {
			<-gate
			done <- struct{}{}
		}()
	}
	runtime.Gosched()
	close(gate)
	for range parked {
		<-done
	}
}
