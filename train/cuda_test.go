package train

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gsrc-dev/gsrc/internal/cudatest"
	"github.com/gsrc-dev/gsrc/internal/mockdriver"
	"github.com/gsrc-dev/gsrc/runtime"
	"github.com/gsrc-dev/gsrc/runtime/cuda"
	"github.com/gsrc-dev/gsrc/runtime/cuda/driver"
	"github.com/gsrc-dev/gsrc/train/checkpoint"
)

// gpu opens the mock driver's GPU for a test.
func gpu(t *testing.T, o cuda.Options) *cuda.Device {
	t.Helper()
	d, err := cuda.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func closed(t *testing.T, d *cuda.Device) {
	t.Helper()
	if err := d.Close(); err != nil {
		t.Error(err)
	}
}

// losses reads the loss of every step that a run recorded.
func losses(t *testing.T, dir string) (out []float64) {
	t.Helper()
	f, err := os.Open(filepath.Join(dir, checkpoint.MetricsFile))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan(); {
		var line checkpoint.Record
		if err := json.Unmarshal(s.Bytes(), &line); err != nil {
			t.Fatal(err)
		}
		out = append(out, float64(line.Terms["loss"]))
	}
	return out
}

// everyStep is a run of few steps, the loss of each recorded: the emulator takes its
// time.
var everyStep = []string{"train.log_every=1", "train.eval_every=1", "train.epochs=8", "train.pretrain_steps=5", "train.joint_every=3", "train.refresh_every=4", "train.checkpoint_every=3"}

// Runs on the mock driver GPU have the losses of those on the CPU, step by step, leave
// nothing behind, and give the same bits every time.
func TestCUDARunsFollowTheCPU(t *testing.T) {
	ds := synthetic(t, 1)
	for _, c := range []struct {
		name, model, noBLAS string
	}{{"gcn", "gcn", ""}, {"mlp", "mlp", ""}, {"ecl-gsr", "ecl-gsr", ""}, {"gcn without cuBLAS", "gcn", "1"}} {
		t.Run(c.name, func(t *testing.T) {
			everyStep, most := everyStep, 1e-5
			if c.model == "ecl-gsr" {
				everyStep = append(everyStep[:len(everyStep):len(everyStep)], "model.edges.judge=evidence")
			}
			fake := cudatest.Either(t)
			if fake == nil { // a GPU has the time for 50 epochs
				everyStep = append(everyStep[:2:2], "train.epochs=50", "train.pretrain_steps=20")
				most = 1e-3
			}
			t.Setenv(cuda.NoBLAS, c.noBLAS)
			here, there, again := t.TempDir(), t.TempDir(), t.TempDir()
			run(t, c.model, ds, Options{Dir: here}, everyStep...)
			for _, dir := range []string{there, again} {
				d := gpu(t, cuda.Options{})
				o := Options{Dir: dir, Device: d}
				if c.model == "ecl-gsr" && fake != nil {
					o.Observer = countSteps(t, fake)
				}
				run(t, c.model, ds, o, everyStep...)
				now, peak := d.Held()
				if now != 0 || peak == 0 {
					t.Errorf("%d bytes held, %d at most", now, peak)
				}
				closed(t, d)
				if need := predicted(t, c.model, everyStep); need < peak*19/20 || need > peak*3/2 {
					t.Errorf("%d bytes were predicted, %d held", need, peak)
				}
			}
			sameRuns(t, contents(t, again), contents(t, there))
			want, got := losses(t, here), losses(t, there)
			if len(got) != len(want) || len(got) < 8 {
				t.Fatalf("%d losses, on the CPU %d", len(got), len(want))
			}
			if d := math.Abs(got[0]-want[0]) / math.Abs(want[0]); !(d <= 1e-5) {
				t.Errorf("the first loss differs by %g of itself", d)
			}
			worst := 0.0
			for i, w := range want {
				worst = max(worst, math.Abs(got[i]-w)/max(1, math.Abs(w)))
			}
			if !(worst <= most) {
				t.Errorf("losses differ by %g from the CPU's: %v, want %v", worst, got, want)
			}
			t.Logf("%d losses differ by %.2g at most", len(want), worst)
		})
	}
}

// countSteps holds contrastive steps that are replays, on anchors that are sampled, to
// what they may do: launch a graph that samples the blocks, one that computes,
// the two kernels that look at its results, Adam's and three that draw the next anchors;
// copy the step number to the device, and the sizes of fields and the terms of the loss
// from there, each with the word for faults.
func countSteps(t *testing.T, s *mockdriver.Library) Observer {
	was, replays := map[string]int64{}, 0
	t.Cleanup(func() {
		t.Logf("%d contrastive steps were replays alone", replays)
		if replays < 2 { // of 5: the first is queued, the second recorded
			t.Errorf("%d contrastive steps were replays alone", replays)
		}
	})
	return watch(func(e Event) {
		did := map[string]int64{}
		for _, name := range []string{"launches", "recordings", "replays", "uploads", "downloads", "pageable"} {
			n := s.Count(name)
			did[name], was[name] = n-was[name], n
		}
		if e.Phase != "pretrain" || did["replays"] != 2 || did["recordings"] > 0 {
			return
		}
		replays++
		saved := e.Step%3 == 1 // the step before is in a checkpoint, with all parameters
		if did["launches"] != 6 || did["uploads"] != 1 || did["downloads"] != 4 && !saved || did["pageable"] > 0 {
			t.Errorf("step %d did %v", e.Step, did)
		}
	})
}

// Steps on batches of graphs are replays on the mock driver GPU too, with the CPU's losses,
// within the memory that was predicted.
func TestCUDAReplaysBatchesOfGraphs(t *testing.T) {
	sets := []string{"train.log_every=1", "train.epochs=6", "train.pretrain_steps=8", "train.joint_every=3", "train.refresh_every=4", "train.checkpoint_every=0", "model.readout=mean"}
	// Adam's first steps make much of gradients that are nothing but rounding, so that the
	// second contrastive step is 6e-5 away, with padding and without.
	for model, most := range map[string]float64{"gcn": 1e-5, "ecl-gsr": 1e-3} {
		fake := cudatest.Either(t)
		if fake == nil {
			most = 1e-3
		}
		here, there := t.TempDir(), t.TempDir()
		trainGraphs(t, model, Options{Dir: here}, sets...)
		d := gpu(t, cuda.Options{})
		trainGraphs(t, model, Options{Dir: there, Device: d}, sets...)
		now, peak := d.Held()
		closed(t, d)
		if fake != nil {
			if n := fake.Count("replays"); n < 6*5 {
				t.Errorf("%s: %d replays in 6 epochs of 5 steps and 2 evaluations", model, n)
			}
		}
		want, got := losses(t, here), losses(t, there)
		if len(got) != len(want) {
			t.Fatalf("%s: %d losses, on the CPU %d", model, len(got), len(want))
		}
		for i, w := range want {
			if diff := math.Abs(got[i] - w); !(diff <= most*max(1, math.Abs(w))) || i == 0 && diff > 1e-5 {
				t.Errorf("%s: the loss of step %d is %g, on the CPU %g", model, i, got[i], w)
			}
		}
		tr := started(t, Job{Model: model, Task: Graphs(shapes(t, 70))}, graphConfig(t, model, sets...), Options{Device: cuda.Planner})
		f, err := tr.job.Task.Forecast(cuda.Planner, tr.prog.Module, tr.cfg, tr.split, 0)
		tr.close()
		if err != nil {
			t.Fatal(err)
		}
		if need := f.Device - deviceBytes; now != 0 || need < peak || need > 2*peak {
			t.Errorf("%s: %d bytes are predicted, %d were held, %d are", model, need, peak, now)
		}
	}
}

// predicted returns what a GPU is going to hold, without what is not counted in what
// a run holds.
func predicted(t *testing.T, model string, sets []string) int {
	t.Helper()
	return forecast(t, model, sets...).Device - deviceBytes
}

// forecast is that of a run on a GPU.
func forecast(t *testing.T, model string, sets ...string) *Forecast {
	t.Helper()
	tr := started(t, Job{Model: model, Task: Nodes(synthetic(t, 1))}, configure(t, model, sets...), Options{})
	defer tr.close()
	f, err := tr.job.Task.Forecast(cuda.Planner, tr.prog.Module, tr.cfg, tr.split, 0)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// A fault of the GPU ends the run with the error that it is. The last checkpoint
// stays good, and the run goes on from there on the CPU, or on a GPU.
func TestCUDAFaults(t *testing.T) {
	ds := synthetic(t, 1)
	for _, c := range []struct {
		fault string
		at    int64
		want  error
		words []string
	}{
		{"fail_alloc", 3, driver.ErrOutOfMemory, []string{"predicted to need", "train.anchors", "--device cpu"}},
		{"fail_launch", 1000, driver.ErrLaunch, nil},
		{"device_lost", 1000, driver.ErrDeviceLost, nil},
	} {
		t.Run(c.fault, func(t *testing.T) {
			s := cudatest.MockDriver(t)
			d := gpu(t, cuda.Options{})
			if err := s.Set(c.fault, c.at); err != nil {
				t.Fatal(err)
			}
			dir := t.TempDir()
			_, err := Train(context.Background(), Job{Model: "ecl-gsr", Task: Nodes(ds)}, configure(t, "ecl-gsr"), Options{Dir: dir, Device: d})
			if !errors.Is(err, c.want) {
				t.Fatalf("the run ended with %v, want %v", err, c.want)
			}
			for _, w := range c.words {
				if !strings.Contains(err.Error(), w) {
					t.Errorf("the error does not say %q: %v", w, err)
				}
			}
			var memory *runtime.MemoryError
			if errors.As(err, &memory) != (c.want == driver.ErrOutOfMemory) {
				t.Errorf("the error is %T", err)
			}
			_ = d.Close() // what is lost cannot be given back
			res := run(t, "ecl-gsr", ds, Options{Dir: dir, Resume: true})
			if res.BestEpoch == 0 {
				t.Error("the resumed run kept nothing")
			}
		})
	}
}

// What has no kernel ends the run before it has trained anything.
func TestCUDAWithoutKernels(t *testing.T) {
	cudatest.Either(t)
	d := gpu(t, cuda.Options{})
	dir := filepath.Join(t.TempDir(), "run")
	_, err := Train(t.Context(), Job{Model: "gen", Task: Nodes(synthetic(t, 1))}, configure(t, "gen", "train.pretrain_steps=0", "train.joint_every=0", "train.log_every=1"), Options{Dir: dir, Device: d})
	if err == nil || !strings.Contains(err.Error(), "edge_kth has no CUDA kernel") {
		t.Errorf("the run ended with %v", err)
	}
	if lines, err := os.ReadFile(filepath.Join(dir, checkpoint.MetricsFile)); err == nil && len(lines) > 0 {
		t.Errorf("it had trained:\n%s", lines)
	}
	closed(t, d)
}

// A run that began on one device ends on the other near where it would have ended.
func TestCUDAResumesAcross(t *testing.T) {
	ds := synthetic(t, 1)
	most := 1e-5
	if cudatest.Either(t) == nil {
		most = 1e-3
	}
	want := t.TempDir()
	run(t, "gcn", ds, Options{Dir: want}, everyStep...)
	for _, first := range []bool{true, false} {
		dir := t.TempDir()
		o := []Options{{Dir: dir}, {Dir: dir, Resume: true}}
		d := gpu(t, cuda.Options{})
		o[map[bool]int{true: 0, false: 1}[first]].Device = d
		ctx, cancel := context.WithCancel(context.Background())
		o[0].Observer = &stopAfter{5, cancel}
		if _, err := Train(ctx, Job{Model: "gcn", Task: Nodes(ds)}, configure(t, "gcn", everyStep...), o[0]); !errors.Is(err, ErrInterrupted) {
			t.Fatal(err)
		}
		run(t, "gcn", ds, o[1], everyStep...)
		closed(t, d)
		got := losses(t, dir)
		for i, w := range losses(t, want) {
			if !(math.Abs(got[i]-w) <= most) {
				t.Errorf("step %d: loss %g, want %g", i, got[i], w)
			}
		}
	}
}
