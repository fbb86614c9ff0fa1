package gsrc

import (
	"context"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"

	"github.com/gsrc-dev/gsrc/data"
	"github.com/gsrc-dev/gsrc/runtime/ort"
	"github.com/gsrc-dev/gsrc/runtime/ort/orttest"
)

// resident trains and exports a small model of the synthetic graph, and opens it.
func resident(t *testing.T, model string, o ResidentOptions, set ...string) (r *Resident, dist string, ds *data.Dataset) {
	t.Helper()
	orttest.Need(t)
	dir := t.TempDir()
	set = append([]string{"train.epochs=2", "synthetic.nodes=120"}, set...)
	if model == "ecl-gsr" {
		set = append(set, "train.pretrain_steps=2", "train.joint_every=0", "deepwalk.width=0")
	}
	run, err := Train(t.Context(), TrainOptions{Model: model, Data: data.Synthetic, Out: filepath.Join(dir, "run"), Set: set})
	if err != nil {
		t.Fatal(err)
	}
	dist = filepath.Join(dir, "dist")
	if _, err := run.Build(t.Context(), dist, BuildOptions{Unverified: true}); err != nil {
		t.Fatal(err)
	}
	o.Provider, o.Load = ort.CPU, loadOptions(run.Trained.Config)
	r, err = OpenResident(t.Context(), dist, data.Synthetic, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	return r, dist, run.Data
}

// Versions that nobody reads are freed, and what is held does not grow with their
// number.
func TestOldVersionsAreFreed(t *testing.T) {
	r, _, _ := resident(t, "gcn", ResidentOptions{})
	exact := r.advance
	var live atomic.Int64
	work := 0
	r.advance = func(ctx context.Context, old, next *Snapshot, c *changes) error {
		live.Add(1)
		runtime.AddCleanup(next, func(*atomic.Int64) { live.Add(-1) }, &live)
		if work++; work%1000 == 1 { // the rest is about what is held, not about answers
			return exact(ctx, old, next, c)
		}
		n := next.Numbers() * len(r.p.manifest.Classes)
		next.logits, next.probabilities = make([]float32, n), make([]float32, n)
		return nil
	}
	heap := func() uint64 {
		runtime.GC()
		runtime.GC() // the cleanups of the first have run
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	var first uint64
	for i := range 10_000 {
		// An edge comes and goes, and features change: the graph stays as large.
		u := Update{Sources: []string{"3"}, Targets: []string{"7"}, ChangeNodes: []string{strconv.Itoa(i % 120)}, ChangeX: make([]float32, r.Snapshot().x.cols)}
		if i%2 == 1 {
			u.Sources, u.Targets, u.DeleteSources, u.DeleteTargets = nil, nil, u.Targets, u.Sources
		}
		u.ChangeX[0] = float32(i)
		if a, err := r.Update(t.Context(), u); err != nil || a.Version != int64(i+2) {
			t.Fatal(a, err)
		}
		if i == 100 {
			first = heap()
		}
	}
	last := heap()
	if n := live.Load(); n > 3 {
		t.Errorf("%d of 10,000 versions are held", n)
	}
	if float64(last) > 1.2*float64(first) {
		t.Errorf("the heap has %d bytes after 10,000 updates, %d after 100", last, first)
	}
	runtime.KeepAlive(r)
}

// answers are those of every node that is there, in the order of their numbers.
func answers(t *testing.T, s *Snapshot) []float32 {
	t.Helper()
	var nodes []int
	for v := range s.Numbers() {
		if s.Check(int64(v)) == nil {
			nodes = append(nodes, v)
		}
	}
	_, p, err := s.Answer(nodes)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// same holds the answers of a version against Predict on files.
func same(t *testing.T, s *Snapshot, dist, path string, o PredictOptions) {
	t.Helper()
	want, err := Predict(t.Context(), dist, path, "", o)
	if err != nil {
		t.Fatal(err)
	}
	got := answers(t, s)
	if len(got) != len(want.Probabilities) {
		t.Fatalf("%d probabilities, want %d", len(got), len(want.Probabilities))
	}
	if !s.r.subgraphs {
		if !slices.Equal(got, want.Probabilities) {
			t.Errorf("version %d differs from Predict", s.Version)
		}
		return
	}
	for i := range got {
		if d := got[i] - want.Probabilities[i]; !(d <= 1e-5 && d >= -1e-5) {
			t.Fatalf("version %d: probability %d is %g, want %g", s.Version, i, got[i], want.Probabilities[i])
		}
	}
}
