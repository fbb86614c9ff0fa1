package train

import (
	"context"
	"runtime"
	"runtime/debug"
	"testing"
)

// After the first step a training step allocates nothing, on any thread.
func TestStepsAllocateNothing(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // a collection empties the scheduler's caches
	ds := synthetic(t, 1)
	for _, c := range []struct{ model, function string }{{"gcn", "train"}, {"mlp", "train"}, {"ecl-gsr", "pretrain"}, {"ecl-gsr", "fit"}, {"ecl-gsr", "joint"}} {
		tr, err := newTrainer(context.Background(), Task{Model: c.model, Data: ds}, configure(t, c.model, "train.threads=3"), Options{})
		if err != nil {
			t.Fatal(err)
		}
		p := &refining{trainer: tr}
		tr.edges = &edges{}
		if c.model == "ecl-gsr" {
			if err := p.refresh(); err != nil {
				t.Fatal(err)
			}
			if err := p.prepareBatches(); err != nil {
				t.Fatal(err)
			}
		}
		f, err := tr.function(c.function)
		if err != nil {
			t.Fatal(err)
		}
		step := func() {
			if c.function == "pretrain" || c.function == "joint" {
				if err := p.batches.bind(f, tr.state.step()); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := tr.step(f, tr.state.step()); err != nil {
				t.Fatal(err)
			}
			tr.state.Epoch++
		}
		for range 3 {
			step()
		}
		// Go's scheduler allocates a record for a goroutine that parks when its
		// caches hold none; a step that allocated would do so every time.
		fillWaiterCaches()
		least := ^uint64(0)
		for i := 0; i < 10 && least > 0; i++ {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			for range 100 {
				step()
			}
			runtime.ReadMemStats(&after)
			least = min(least, after.Mallocs-before.Mallocs)
		}
		if least != 0 {
			t.Errorf("%s @%s: 100 steps allocate %d times", c.model, c.function, least)
		}
		tr.close()
	}
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
