package train

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/gsrc-dev/gsrc/internal/fakedevice"
)

// remote returns a device with a memory of its own, which must be empty at the end.
func remote(t *testing.T) *fakedevice.Device {
	t.Helper()
	d, err := fakedevice.New()
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
	{"linear", []string{"train.self_training=2", "train.self_trained=4", "model.linear.steps=2", "model.known_labels=0.5"}},
	{"ecl-gsr", nil},
	{"ecl-gsr", []string{"train.sampler=edges", "train.batch_edges=16"}},
	{"ecl-gsr", []string{"train.refresh_every=2", "candidates.mutual=true"}},
	{"ecl-gsr", []string{"model.edges.judge=evidence", "train.refresh_every=2"}},
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

// Steps on sampled anchors have blocks of their own sizes. Padded, they are
// replayed from few recordings; a replayed step brings the step number to the device and
// nothing else, and reads the fields' sizes and what Finite reports; and losses are the
// CPU's.
func TestDeviceReplaysSampledAnchors(t *testing.T) {
	ds := synthetic(t, 1)
	for _, layers := range []int{2, 3} { // with 3, rows of a field are multiplied by trained weights
		sets := []string{"train.log_every=1", "train.pretrain_steps=30", "train.epochs=8", "train.joint_every=2", "train.anchors=12", "train.checkpoint_every=0", fmt.Sprintf("model.encoder.layers=%d", layers)}
		here, there, again := t.TempDir(), t.TempDir(), t.TempDir()
		run(t, "ecl-gsr", ds, Options{Dir: here}, sets...)
		for _, dir := range []string{there, again} {
			d := remote(t)
			d.Pad = true
			var did map[string]int
			replayed := 0
			d.Fail = func(what string) error { did[what]++; return nil }
			steps := watch(func(e Event) {
				if e.Phase == "pretrain" && did["launch"] == 1 { // of Adam
					replayed++
					if did["upload"] > 1 || did["download"] > 2 {
						t.Errorf("%d layers: the replayed step %d did %v, want 2 downloads and an upload at most", layers, e.Step, did)
					}
				}
				did = map[string]int{}
			})
			did = map[string]int{}
			run(t, "ecl-gsr", ds, Options{Dir: dir, Device: d, Observer: steps}, sets...)
			if replayed < 20 {
				t.Errorf("%d layers: %d of 30 steps are replays", layers, replayed)
			}
			if now, _ := d.Held(); now != 0 {
				t.Errorf("%d layers: %d bytes are still held", layers, now)
			}
		}
		sameRuns(t, contents(t, again), contents(t, there))
		nearLosses(t, fmt.Sprint(layers, " layers"), there, here, 38)
	}
}

// Batches of graphs have sizes of their own as well. Padded, steps on them are replayed,
// evaluations too; a replayed step brings the step number and its batch to the device
// and nothing else; and losses are the CPU's.
func TestDeviceReplaysBatchesOfGraphs(t *testing.T) {
	sets := []string{"train.log_every=1", "train.checkpoint_every=0", "train.pretrain_steps=30", "train.epochs=16", "train.refresh_every=8", "model.readout=mean"}
	for _, model := range []string{"gcn", "ecl-gsr"} {
		here, there, again := t.TempDir(), t.TempDir(), t.TempDir()
		trainGraphs(t, model, Options{Dir: here}, sets...)
		for _, dir := range []string{there, again} {
			d := remote(t)
			d.Pad = true
			did := map[string]int{}
			steps, replays := 0, 0
			d.Fail = func(what string) error { did[what]++; return nil }
			// The step number, x, g and batch, and which nodes are present.
			const most = 1 + 4
			trainGraphs(t, model, Options{Dir: dir, Device: d, Observer: watch(func(e Event) {
				if e.Phase == "pretrain" && did["replay"] > 0 && did["record"] == 0 && e.Step > 1 {
					replays++
					if did["launch"] > 1 || did["upload"] > most || did["download"] > 1 {
						t.Errorf("%s: the replayed step %d did %v, want a launch, of Adam, a download, and %d uploads at most", model, e.Step, did, most)
					}
				}
				steps++
				did = map[string]int{}
			})}, sets...)
			t.Logf("%s: %d replays, %d operations queued one by one; %d contrastive steps were replays alone", model, d.Replays, d.Runs, replays)
			if model != "gcn" && replays < 15 {
				t.Errorf("%s: %d of 30 contrastive steps are replays", model, replays)
			}
			if min := 16 * 5; d.Replays < min {
				t.Errorf("%s: %d replays in %d epochs of 5 steps and 2 evaluations", model, d.Replays, 16)
			}
			if now, _ := d.Held(); now != 0 {
				t.Errorf("%s: %d bytes are still held", model, now)
			}
		}
		sameRuns(t, contents(t, again), contents(t, there))
		nearLosses(t, model, there, here, 16)
	}
}

// nearLosses holds the losses of a run, least at least, to those of one on the CPU.
func nearLosses(t *testing.T, what, there, here string, least int) {
	t.Helper()
	want, got := losses(t, here), losses(t, there)
	if len(got) != len(want) || len(got) < least {
		t.Fatalf("%s: %d losses, on the CPU %d", what, len(got), len(want))
	}
	for i, w := range want {
		if d := math.Abs(got[i] - w); !(d <= 1e-5*max(1, math.Abs(w))) {
			t.Errorf("%s: the loss of step %d is %g, on the CPU %g", what, i, got[i], w)
		}
	}
}

// The sizes that a batch is padded to are its own, not those of batches before it: a
// stopped run goes on to the same bits.
func TestDeviceResumesOnPaddedBatches(t *testing.T) {
	padding := func() *fakedevice.Device {
		d := remote(t)
		d.Pad = true
		return d
	}
	for model, after := range map[string]int{"gcn": 4, "ecl-gsr": 17} {
		want, dir := t.TempDir(), t.TempDir()
		trainGraphs(t, model, Options{Dir: want, Device: padding()})
		ctx, cancel := context.WithCancel(context.Background())
		_, err := Train(ctx, Job{Model: model, Task: Graphs(shapes(t, 70))}, graphConfig(t, model), Options{Dir: dir, Device: padding(), Observer: &stopAfter{after, cancel}})
		if !errors.Is(err, ErrInterrupted) {
			t.Fatalf("%s: %v", model, err)
		}
		trainGraphs(t, model, Options{Dir: dir, Resume: true, Device: padding()})
		sameRuns(t, contents(t, dir), contents(t, want))
	}
}

// watch is an observer that is a function.
type watch func(Event)

func (w watch) Observe(e Event) { w(e) }

// Collections of graphs, whose batches differ in size, as well.
func TestDeviceRunsOnGraphs(t *testing.T) {
	for _, model := range []string{"gin", "ecl-gsr", "padded gin", "padded ecl-gsr"} {
		d := remote(t)
		model, d.Pad = strings.CutPrefix(model, "padded ") // and whether it was there
		here, there := t.TempDir(), t.TempDir()
		trainGraphs(t, model, Options{Dir: here})
		trainGraphs(t, model, Options{Dir: there, Device: d})
		if !d.Pad {
			sameRuns(t, contents(t, there), contents(t, here))
		}

		// The forecast of the device's memory is not below what was held there.
		tr := started(t, Job{Model: model, Task: Graphs(shapes(t, 70))}, graphConfig(t, model), Options{Device: d})
		f, err := tr.job.Task.Forecast(d, tr.prog.Module, tr.cfg, tr.split, 0)
		tr.close()
		if err != nil {
			t.Fatal(err)
		}
		_, peak := d.Held()
		t.Logf("%s: %d bytes are predicted, %d were held", model, f.Device-deviceBytes, peak)
		if need := f.Device - deviceBytes; need < peak || need > 2*peak {
			t.Errorf("%s: %d bytes are predicted, %d were held", model, need, peak)
		}
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
				_, err := Train(ctx, Job{Model: model, Task: Nodes(ds)}, configure(t, model), o[0])
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
			_, err := Train(context.Background(), Job{Model: "ecl-gsr", Task: Nodes(ds)}, configure(t, "ecl-gsr"), Options{Dir: dir, Device: d})
			if !errors.Is(err, lost) {
				t.Fatalf("%s %d of %d failed, and the run ended with %v", what, at, count, err)
			}
			run(t, "ecl-gsr", ds, Options{Dir: dir, Resume: true})
			sameRuns(t, contents(t, dir), contents(t, want))
		}
	}
}
