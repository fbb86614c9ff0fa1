package train

import (
	"context"
	"errors"
	"testing"

	"github.com/gsrc-dev/gsrc/runtime/remotetest"
)

// remote returns a device with a memory of its own, which must be empty at the end.
func remote(t *testing.T) *remotetest.Device {
	t.Helper()
	d, err := remotetest.New()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
		if n := d.Leaks(); n != 0 {
			t.Errorf("%d bytes were left on the device", n)
		}
	})
	return d
}

// deviceRuns are runs that between them bind and resample everything that can be.
var deviceRuns = []struct {
	model string
	sets  []string
}{
	{"gcn", nil}, {"mlp", nil}, {"sage", nil}, {"acm", nil},
	{"ecl-gsr", nil},
	{"ecl-gsr", []string{"train.sampler=edges", "train.batch_edges=16"}},
	{"ecl-gsr", []string{"model.edges.judge=attributes", "train.refresh_every=2", "candidates.mutual=true"}},
	{"ecl-gsr", []string{"candidates.structure=raw"}},
}

// A whole run on a device whose memory is not the host's leaves what it leaves on
// the CPU, byte for byte.
func TestDeviceRunsEqualTheCPU(t *testing.T) {
	ds := synthetic(t, 1)
	for _, c := range deviceRuns {
		d := remote(t)
		here, there := t.TempDir(), t.TempDir()
		run(t, c.model, ds, Options{Dir: here}, c.sets...)
		run(t, c.model, ds, Options{Dir: there, Device: d}, c.sets...)
		sameRuns(t, contents(t, there), contents(t, here))
		if d.Replays == 0 || d.Runs == 0 {
			t.Errorf("%s %v: %d recordings were replayed, %d operations queued one by one", c.model, c.sets, d.Replays, d.Runs)
		}
		if now, peak := d.Held(); now != 0 || peak == 0 {
			t.Errorf("%s %v: %d bytes held, %d at most", c.model, c.sets, now, peak)
		}
	}
}

// Collections of graphs, whose batches differ in size, as well.
func TestDeviceRunsOnGraphs(t *testing.T) {
	for _, model := range []string{"gin", "ecl-gsr"} {
		d := remote(t)
		here, there := t.TempDir(), t.TempDir()
		trainGraphs(t, model, Options{Dir: here})
		trainGraphs(t, model, Options{Dir: there, Device: d})
		sameRuns(t, contents(t, there), contents(t, here))
	}
}

// stopAfter cancels a run behind its nth event.
type stopAfter struct {
	n      int
	cancel context.CancelFunc
}

func (s *stopAfter) Observe(Event) {
	if s.n--; s.n == 0 {
		s.cancel()
	}
}

// A run that is stopped on one device goes on on the other as if nothing had been.
func TestDeviceResumesAcross(t *testing.T) {
	ds := synthetic(t, 1)
	for _, model := range []string{"gcn", "ecl-gsr"} {
		want := t.TempDir()
		run(t, model, ds, Options{Dir: want})
		for _, first := range []string{"cpu", "device"} {
			for _, after := range []int{5, 27} {
				if model == "gcn" && after > 20 {
					continue
				}
				dir := t.TempDir()
				o := []Options{{Dir: dir}, {Dir: dir, Resume: true}}
				if first == "cpu" {
					o[1].Device = remote(t)
				} else {
					o[0].Device = remote(t)
				}
				ctx, cancel := context.WithCancel(context.Background())
				o[0].Observer = &stopAfter{after, cancel}
				_, err := Train(ctx, Task{Model: model, Data: ds}, configure(t, model), o[0])
				if !errors.Is(err, ErrInterrupted) {
					t.Fatalf("%s: %v", model, err)
				}
				run(t, model, ds, o[1])
				sameRuns(t, contents(t, dir), contents(t, want))
			}
		}
	}
}

// A device that fails ends the run with its error. The checkpoint before stays
// good, and the run goes on elsewhere to the same end.
func TestDeviceFailures(t *testing.T) {
	ds := synthetic(t, 1)
	want := t.TempDir()
	run(t, "ecl-gsr", ds, Options{Dir: want})
	lost := errors.New("the device fell off the bus")
	for _, what := range []string{"alloc", "upload", "download", "launch", "record", "replay"} {
		count := 0
		counting := remote(t)
		counting.Fail = func(x string) error {
			if x == what {
				count++
			}
			return nil
		}
		run(t, "ecl-gsr", ds, Options{Device: counting})
		if count == 0 {
			t.Fatalf("the device was never asked for %s", what)
		}
		for _, at := range []int{1, count * 2 / 3} {
			d := remote(t)
			left := at
			d.Fail = func(x string) error {
				if x == what {
					left--
				}
				if left <= 0 { // from then on nothing works
					return lost
				}
				return nil
			}
			dir := t.TempDir()
			_, err := Train(context.Background(), Task{Model: "ecl-gsr", Data: ds}, configure(t, "ecl-gsr"), Options{Dir: dir, Device: d})
			if !errors.Is(err, lost) {
				t.Fatalf("%s %d of %d failed, and the run ended with %v", what, at, count, err)
			}
			run(t, "ecl-gsr", ds, Options{Dir: dir, Resume: true})
			sameRuns(t, contents(t, dir), contents(t, want))
		}
	}
}
