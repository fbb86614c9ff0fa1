package train

import (
	"context"
	"errors"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/gsrc-dev/gsrc/config"
	"github.com/gsrc-dev/gsrc/data"
	"github.com/gsrc-dev/gsrc/data/store"
	"github.com/gsrc-dev/gsrc/internal/budget"
	"github.com/gsrc-dev/gsrc/models"
	"github.com/gsrc-dev/gsrc/train/checkpoint"
)

// Over chunks of nodes, of whatever size, every model that is trained with labels gives the bits
// that it gives on the whole graph.
func TestChunkedEvaluation(t *testing.T) {
	options := map[string][]string{
		"gat":    {"model.gat.heads=3"},
		"linear": {"model.linear.steps=3"},
		"gcn":    {"model.smooth.alpha=0.5", "model.smooth.steps=3"},
	}
	compared := 0
	for _, m := range models.All {
		if m.Build == nil || m.Build(models.Default()).Func("train") == nil {
			continue
		}
		for _, kind := range []string{"sparse", "dense", "weighted"} {
			ds := synthetic(t, 4)
			switch kind {
			case "dense":
				ds.X = ds.X.ToDense()
			case "weighted":
				if slices.Contains([]string{"gat", "mlp"}, m.Name) {
					continue
				}
				for i := range ds.Graph.Edges {
					ds.Graph.Weights = append(ds.Graph.Weights, 0.5+float32(i%7))
				}
			}
			job := Job{Model: m.Name, Task: Nodes(ds)}
			tr := started(t, job, configure(t, m.Name, slices.Concat(options[m.Name])...), Options{})
			s := tr.steps.(*nodeSteps)
			f, err := s.function("train")
			if err != nil {
				t.Fatal(err)
			}
			for epoch := range 2 {
				if _, err := s.epoch(f, epoch); err != nil {
					t.Fatal(err)
				}
			}
			want, err := s.evaluate()
			if err != nil {
				t.Fatal(err)
			}
			logits, probs, err := s.classify()
			if err != nil {
				t.Fatal(err)
			}
			compared++
			wantLogits, wantProbs := slices.Clone(logits.F32), slices.Clone(probs.F32)
			rooms := []int{20000}
			if m.Name == "gat" {
				rooms = []int{1, 20000, 1 << 30} // 1 is a node at a time
			}
			for _, room := range rooms {
				tr.chunk = room
				logits, probs, err := s.classify()
				if err != nil {
					t.Fatalf("%s, %s: %v", m.Name, kind, err)
				}
				for what, x := range map[string][2][]float32{"logits": {logits.F32, wantLogits}, "probabilities": {probs.F32, wantProbs}} {
					if !slices.EqualFunc(x[0], x[1], func(a, b float32) bool { return math.Float32bits(a) == math.Float32bits(b) }) {
						t.Errorf("%s, %s, chunks of %d bytes: the %s are others than on the whole graph", m.Name, kind, room, what)
					}
				}
				if got, err := s.evaluate(); err != nil || got != want {
					t.Errorf("%s, %s, chunks of %d bytes: the score is %v, on the whole graph %v, %v", m.Name, kind, room, got, want, err)
				}
			}
			tr.close()
		}
	}
	if compared < 22 {
		t.Errorf("only %d evaluations are compared", compared)
	}
}

// lasting is a context that is cancelled when its error has been asked for so many times.
type lasting struct {
	context.Context
	left int
}

func (c *lasting) Err() error {
	if c.left--; c.left < 0 {
		return context.Canceled
	}
	return nil
}

// An evaluation over chunks that is interrupted ends at the next chunk, as what a step reads of all nodes, the choice
// of candidates and what fits evidence do, and is made again when the run goes on, wherever it was.
func TestChunkedInterrupted(t *testing.T) {
	t.Run("sage", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "store")
		o := store.Planted{Nodes: 40000, Edges: 80000, Classes: 4, Community: 50, Homophily: 0.8, Locality: 0.5, Features: 16, Signal: 0.3, Train: 100, Val: 100}
		if err := store.Generate(path, o, store.Options{}); err != nil {
			t.Fatal(err)
		}
		ds, err := data.Load(path, data.LoadOptions{})
		if err != nil {
			t.Fatal(err)
		}
		job := Job{Model: "sage", Task: Nodes(ds)}
		cfg := configure(t, "sage", "train.epochs=3", "train.eval_every=2", "train.sampler=neighbors", "train.fanouts=5,5", "train.batch_nodes=100", "model.hidden=64")
		tr := started(t, job, cfg, Options{})
		whole, err := tr.job.Task.Forecast(nil, tr.prog.Module, tr.cfg, tr.split, 0)
		tr.close()
		if err != nil {
			t.Fatal(err)
		}
		checkInterrupted(t, job, cfg, Options{Memory: int64(whole.Peak) * 2 / 3}, 3, map[string]int{"evaluation": 2, "last evaluation": 2})
	})
	t.Run("ecl-gsr", func(t *testing.T) {
		cfg := configure(t, "ecl-gsr", "train.threads=1", "train.epochs=3", "train.eval_every=2", "train.sampler=neighbors", "train.fanouts=4,4", "train.batch_nodes=64", "train.anchors=32", "train.pretrain_steps=2",
			"train.joint_every=2", "train.refresh_every=1", "candidates.similarity=embedding", "model.classifier=gcn")
		checkInterrupted(t, Job{Model: "ecl-gsr", Task: Nodes(synthetic(t, 4))}, cfg, Options{}, 10, map[string]int{"evaluation": 1, "last evaluation": 1, "step": 5})
	})
	t.Run("evidence", func(t *testing.T) {
		cfg := configure(t, "ecl-gsr", "train.threads=1", "train.epochs=3", "train.sampler=neighbors", "train.fanouts=4,4", "train.batch_nodes=64", "train.pretrain_steps=0",
			"train.joint_every=0", "model.classifier=gcn", "model.edges.judge=evidence")
		checkInterrupted(t, Job{Model: "ecl-gsr", Task: Nodes(synthetic(t, 4))}, cfg, Options{}, 2401, map[string]int{"evidence": 3})
	})
}

func checkInterrupted(t *testing.T, job Job, cfg *config.Config, opts Options, every int, least map[string]int) {
	t.Helper()
	opts.Dir = filepath.Join(t.TempDir(), "run")
	undisturbed := &lasting{context.Background(), 1 << 30}
	want, err := Train(undisturbed, job, cfg, opts)
	if err != nil {
		t.Fatal(err)
	}
	lines, err := os.ReadFile(filepath.Join(opts.Dir, checkpoint.MetricsFile))
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]int{}
	for left := 1; left < 1<<30-undisturbed.left; left += every {
		opts.Dir, opts.Resume = filepath.Join(t.TempDir(), "run"), false
		ctx := &lasting{context.Background(), left}
		_, err := Train(ctx, job, cfg, opts)
		if !errors.Is(err, ErrInterrupted) || ctx.left < -4 {
			t.Fatalf("after being asked %d times: %v, asked %d times more", left, err, -ctx.left)
		}
		f, err := checkpoint.ReadFile(filepath.Join(opts.Dir, checkpoint.CheckpointFile))
		if err != nil {
			t.Fatal(err)
		}
		switch {
		case f.Due != nil:
			found["evaluation"]++
		case f.Epoch == 3:
			found["last evaluation"]++
		case f.Phase == "evidence":
			found["evidence"]++
		case f.Pretrained == cfg.Train.PretrainSteps:
			found["step"]++
		}
		opts.Resume = true
		got, err := Train(context.Background(), job, cfg, opts)
		if err != nil {
			t.Fatal(err)
		}
		again, err := os.ReadFile(filepath.Join(opts.Dir, checkpoint.MetricsFile))
		if err != nil {
			t.Fatal(err)
		}
		if got.Hash != want.Hash || !reflect.DeepEqual(got.Trained.Logits, want.Trained.Logits) || !slices.Equal(withoutTimes(lines), withoutTimes(again)) {
			t.Errorf("interrupted after %d questions and resumed, the run has another result", left)
		}
	}
	for where, n := range least {
		if found[where] < n {
			t.Errorf("runs were interrupted in %v, want %d in %s", found, n, where)
		}
	}
}

func withoutTimes(metrics []byte) (lines []string) {
	for line := range strings.Lines(string(metrics)) {
		before, _, _ := strings.Cut(line, `"time":`)
		lines = append(lines, before)
	}
	return lines
}

// Where the values of all nodes would exceed the limit, a run on batches is evaluated over
// chunks, which it says, and ends with the same bits.
func TestChunkedBelowALimit(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	o := store.Planted{Nodes: 40000, Edges: 80000, Classes: 4, Community: 50, Homophily: 0.8, Locality: 0.5, Features: 16, Signal: 0.3, Train: 300, Val: 200}
	if err := store.Generate(dir, o, store.Options{}); err != nil {
		t.Fatal(err)
	}
	ds, err := data.Load(dir, data.LoadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	sets := []string{"train.epochs=2", "train.sampler=neighbors", "train.fanouts=5,5", "train.batch_nodes=100", "model.hidden=64"}
	tr := started(t, Job{Model: "sage", Task: Nodes(ds)}, configure(t, "sage", sets...), Options{})
	defer tr.close()
	whole, err := Nodes(ds).Forecast(nil, tr.prog.Module, tr.cfg, tr.split, 0)
	if err != nil {
		t.Fatal(err)
	}
	said := ""
	want := run(t, "sage", ds, Options{}, sets...)
	got := run(t, "sage", ds, Options{Memory: int64(whole.Peak) * 2 / 3, Note: func(text string) { said += text }}, sets...)
	if !strings.Contains(said, "over chunks of nodes") {
		t.Errorf("of a limit of %d bytes below the forecast of %d it says %q", whole.Peak*2/3, whole.Peak, said)
	}
	if !reflect.DeepEqual(got.Trained.Logits, want.Trained.Logits) || *got.TestAcc != *want.TestAcc || got.Hash != want.Hash {
		t.Error("the result is another one")
	}
	least, err := Nodes(ds).Forecast(nil, tr.prog.Module, tr.cfg, tr.split, 1)
	if err != nil {
		t.Fatal(err)
	}
	var exceeded *budget.ExceededError
	if _, err := Train(context.Background(), Job{Model: "sage", Task: Nodes(ds)}, tr.cfg, Options{Memory: int64(least.Peak) - 1}); !errors.As(err, &exceeded) || exceeded.Need != int64(least.Peak) {
		t.Errorf("below the least of %d bytes the error is %v", least.Peak, err)
	}
}
