package train

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/gsrc-dev/gsrc/graph"
	"github.com/gsrc-dev/gsrc/internal/cudatest"
	"github.com/gsrc-dev/gsrc/runtime"
	"github.com/gsrc-dev/gsrc/runtime/cuda"
	"github.com/gsrc-dev/gsrc/runtime/cuda/driver"
)

// searcher is a GPU that shows its searches.
type searcher struct {
	*cuda.Device
	exported []*runtime.Buffer
	before   func()
	chosen   func(c *runtime.Candidates, emb *runtime.Buffer, o runtime.CandidateOptions)
}

func (s *searcher) Export(b *runtime.Buffer) (*runtime.Buffer, error) {
	s.exported = append(s.exported, b)
	return s.Device.Export(b)
}

func (s *searcher) Candidates(c *runtime.Candidates, emb *runtime.Buffer, o runtime.CandidateOptions) error {
	if s.before != nil {
		s.before()
	}
	if err := s.Device.Candidates(c, emb, o); err != nil || s.chosen == nil {
		return err
	}
	s.chosen(c, emb, o)
	return nil
}

// An exact search is the device's, and so is the choice of candidates, for which the
// embedding stays there; the host chooses where it judges edges, and searches where the
// search is approximate.
func TestCUDASearchesThere(t *testing.T) {
	ds := synthetic(t, 1)
	for _, c := range []struct {
		index, judge string
		exact        bool // searched on the device
		there        bool // and chosen there
	}{{"auto", "embedding", true, true}, {"exact", "embedding", true, true}, {"approximate", "embedding", false, false}, {"auto", "evidence", true, false}} {
		cudatest.Either(t)
		d := &searcher{Device: gpu(t, cuda.Options{})}
		choices := 0
		d.chosen = func(got *runtime.Candidates, emb *runtime.Buffer, o runtime.CandidateOptions) {
			choices++
			if want := configure(t, "ecl-gsr").Candidates.K; o.K != want {
				t.Errorf("%v: the %d nearest were searched, want %d", c, o.K, want)
			}
			if there := got.Graph.OnDevice(); there != c.there {
				t.Errorf("%v: chosen on the device: %v", c, there)
			}
			if !c.exact {
				return
			}
			if slices.Contains(d.exported, emb) {
				t.Errorf("%v: the embedding was copied to the host", c)
			}
			h, err := d.Device.Export(emb)
			if err != nil {
				t.Fatal(err)
			}
			n, f := h.Dims[0], h.Dims[1]
			idx := make([]int32, n*o.K)
			if err := d.Nearest(idx, nil, emb, o.K); err != nil {
				t.Fatal(err)
			}
			here, sim := graph.KNN(nil, h.F32, n, f, o.K)
			for i, j := range idx {
				if j < 0 || here[i] < 0 {
					if j != here[i] {
						t.Errorf("%v: place %d has %d, on the host %d", c, i, j, here[i])
					}
					continue
				}
				if near := cosine(h.F32[i/o.K*f:(i/o.K+1)*f], h.F32[int(j)*f:(int(j)+1)*f]); !(math.Abs(near-float64(sim[i])) <= 1e-5) {
					t.Errorf("%v: place %d has %d at %v, on the host %d at %v", c, i, j, near, here[i], sim[i])
				}
			}
			want, err := graph.NewCandidates(ds.Graph.Undirected(), idx, o.K, o.Mutual)
			if err != nil {
				t.Fatal(err)
			}
			host, err := got.Host()
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(host.Edges, want.Edges) || !slices.Equal(host.Existing, want.Existing) {
				t.Errorf("%v: %d candidates, on the host %d, or others", c, len(host.Edges), len(want.Edges))
			}
		}
		run(t, "ecl-gsr", ds, Options{Dir: t.TempDir(), Device: d}, "train.epochs=6", "train.refresh_every=2", "train.joint_every=2", "train.pretrain_steps=2", "candidates.index="+c.index, "model.edges.judge="+c.judge)
		if choices != 3 {
			t.Errorf("%v: candidates were chosen %d times", c, choices)
		}
		closed(t, d.Device)
	}
}

func cosine(x, y []float32) float64 {
	var xx, yy, xy float64
	for i := range x {
		a, b := float64(x[i]), float64(y[i])
		xx, yy, xy = xx+a*a, yy+b*b, xy+a*b
	}
	return xy / math.Sqrt(xx*yy)
}

// A fault in a search ends the run with its error, and the run goes on on the CPU.
func TestCUDASearchFaults(t *testing.T) {
	ds := synthetic(t, 1)
	for _, c := range []struct {
		fault string
		want  error
		words []string
	}{
		{"fail_alloc", driver.ErrOutOfMemory, []string{"predicted to need", "--device cpu"}},
		{"fail_launch", driver.ErrLaunch, nil},
		{"device_lost", driver.ErrDeviceLost, nil},
	} {
		s := cudatest.MockDriver(t)
		d := &searcher{Device: gpu(t, cuda.Options{}), before: func() {
			if err := s.Set(c.fault, 1); err != nil {
				t.Error(err)
			}
		}}
		dir := t.TempDir()
		_, err := Train(context.Background(), Job{Model: "ecl-gsr", Task: Nodes(ds)}, configure(t, "ecl-gsr", everyStep...), Options{Dir: dir, Device: d})
		if !errors.Is(err, c.want) {
			t.Fatalf("the run ended with %v, want %v", err, c.want)
		}
		for _, w := range append(c.words, "nearest of 150") {
			if !strings.Contains(err.Error(), w) {
				t.Errorf("the error does not say %q: %v", w, err)
			}
		}
		_ = d.Close() // what is lost cannot be given back
		if res := run(t, "ecl-gsr", ds, Options{Dir: dir, Resume: true}, everyStep...); res.BestEpoch == 0 {
			t.Error("the resumed run kept nothing")
		}
	}
}

// What a search takes is predicted where the device searches, behind pre-training.
func TestSearchIsPredicted(t *testing.T) {
	need := func(sets ...string) (all, search int) {
		t.Helper()
		f := forecast(t, "ecl-gsr", sets...)
		for _, p := range f.Parts {
			if p.Name == "search for candidates" {
				search = p.Bytes
			}
		}
		return f.Device, search
	}
	exact, search := need("train.pretrain_steps=0")
	host, none := need("train.pretrain_steps=0", "candidates.index=approximate")
	if none != 0 || search == 0 || exact-host != search {
		t.Errorf("%d bytes with a search of %d on the device, %d with %d on the host", exact, search, host, none)
	}
	if _, none := need("candidates.structure=raw"); none != 0 {
		t.Errorf("a search of %d bytes where nothing is searched", none)
	}
}

// A graph without edges, of which no new ones are searched, has no candidates: a run on
// the GPU goes on as one on the CPU does.
func TestCUDAWithoutCandidates(t *testing.T) {
	ds := synthetic(t, 1)
	ds.Graph = &graph.Graph{N: ds.Graph.N}
	most := 1e-5
	if cudatest.Either(t) == nil {
		most = 1e-3
	}
	here, there := t.TempDir(), t.TempDir()
	few := []string{"train.epochs=4", "train.refresh_every=2", "train.joint_every=2", "train.pretrain_steps=1", "train.log_every=1", "train.eval_every=1", "candidates.k=0"}
	run(t, "ecl-gsr", ds, Options{Dir: here}, few...)
	d := gpu(t, cuda.Options{})
	run(t, "ecl-gsr", ds, Options{Dir: there, Device: d}, few...)
	closed(t, d)
	want, got := losses(t, here), losses(t, there)
	for i, w := range want {
		if !(math.Abs(got[i]-w) <= most) {
			t.Errorf("step %d: loss %g, on the CPU %g", i, got[i], w)
		}
	}
}
