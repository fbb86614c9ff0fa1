package run

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gsrc-dev/gsrc/data"
	"github.com/gsrc-dev/gsrc/data/store"
	"github.com/gsrc-dev/gsrc/graph"
	"github.com/gsrc-dev/gsrc/infer"
	"github.com/gsrc-dev/gsrc/internal/budget"
	"github.com/gsrc-dev/gsrc/internal/orttest"
	"github.com/gsrc-dev/gsrc/models"
	"github.com/gsrc-dev/gsrc/runtime/ort"
)

// planted writes a graph store.
func planted(t *testing.T, name string, nodes int64, seed uint64) string {
	t.Helper()
	return plantedEdges(t, name, nodes, 4*nodes, seed)
}

func plantedEdges(t *testing.T, name string, nodes, edges int64, seed uint64) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), name)
	o := store.Planted{Nodes: nodes, Edges: edges, Classes: 3, Community: 50, Homophily: 0.8, Locality: 0.5, Features: 16, Signal: 0.3, Train: 100, Val: 100, Wrong: 0.05, Seed: seed}
	if err := store.Generate(dir, o, store.Options{}); err != nil {
		t.Fatal(err)
	}
	return dir
}

func sameBits(a, b []float32) bool {
	return len(a) > 0 && slices.EqualFunc(a, b, func(a, b float32) bool { return math.Float32bits(a) == math.Float32bits(b) })
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

// A run classifies its training graph over chunks, of whatever size, with the bits of the
// training's evaluation.
func TestPredictWithARun(t *testing.T) {
	path := planted(t, "graph", 1500, 1)
	other := planted(t, "other", 900, 2)
	for model, set := range map[string][]string{
		"sage": {"train.sampler=neighbors", "train.fanouts=5,5", "train.batch_nodes=50"}, "gcn": nil, "gat": nil, "gcnii": nil,
		"ecl-gsr": {"model.edges.judge=embedding", "candidates.similarity=embedding", "candidates.two_step=0", "train.pretrain_steps=5"},
	} {
		out := filepath.Join(t.TempDir(), "run")
		r, err := Train(context.Background(), TrainOptions{Model: model, Data: path, Out: out, Set: append(set, "train.epochs=3")})
		if err != nil {
			t.Fatal(err)
		}
		o := infer.PredictOptions{}
		opened, err := Open(out)
		if err != nil {
			t.Fatal(err)
		}
		var all []float32
		for _, room := range []int{0, 1 << 14, 1 << 18} {
			err := opened.use(t.Context(), "", &o, nil, nil, func(a *application) error {
				a.room = room
				p, err := a.predict(nil)
				if err != nil {
					return err
				}
				if all == nil {
					all = slices.Clone(p.Probabilities)
				}
				if r.Result.Calibration == nil && !sameBits(p.Probabilities, r.Trained.Probabilities) || !sameBits(p.Probabilities, all) {
					t.Errorf("%s, chunks of %d bytes: the probabilities are not those of the training", model, room)
				}
				if !p.TrainingGraph || p.Report == nil || p.Report.Nodes != 1500 {
					t.Errorf("%s: %+v", model, p.Report)
				}
				return nil
			})
			if err != nil {
				t.Fatalf("%s: %v", model, err)
			}
		}
		if _, err := Predict(t.Context(), out, other, "", infer.PredictOptions{Load: data.LoadOptions{Directed: true}}); err == nil || !strings.Contains(err.Error(), "leave it out") {
			t.Errorf("%s, with --directed: %v", model, err)
		}
		file := filepath.Join(t.TempDir(), "out.csv")
		p, err := Predict(context.Background(), out, other, file, infer.PredictOptions{Nodes: []string{"3", "8"}})
		if err != nil || p.TrainingGraph || len(p.Predicted) != 900 || p.Report.Nodes != 2 {
			t.Fatalf("%s on another graph: %+v, %v", model, p, err)
		}
		text, err := os.ReadFile(file)
		if err != nil || strings.Count(string(text), "\n") != 3 {
			t.Errorf("%s: %q, %v", model, text, err)
		}
		if model == "ecl-gsr" {
			e, err := Embed(context.Background(), out, "", o)
			if err != nil || !sameBits(e.Values, r.Trained.Embedding) {
				t.Errorf("the embedding is not the training's: %v", err)
			}
			g, err := Refine(context.Background(), out, infer.RefineOptions{Data: other})
			if err != nil || g.N != 900 || g.Summary.New == 0 || g.Summary.Kept == 0 {
				t.Errorf("another graph, refined: %+v, %v", g, err)
			}
			asked := &lasting{t.Context(), 1 << 30}
			if _, err := Refine(asked, out, infer.RefineOptions{Data: other, Predict: infer.PredictOptions{Threads: 1}}); err != nil {
				t.Fatal(err)
			}
			for n, left := 1<<30-asked.left, 0; left < n; left += 1 + n/10 { // the search included
				ctx := &lasting{t.Context(), left}
				if _, err := Refine(ctx, out, infer.RefineOptions{Data: other, Predict: infer.PredictOptions{Threads: 1}}); err != context.Canceled || ctx.left < -2 {
					t.Errorf("asked %d times more after it was interrupted, refining another graph ends with the error %v", -ctx.left, err)
				}
			}
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := Predict(ctx, out, other, "", o); !IsInterrupted(ctx, err) {
			t.Errorf("%s: interrupted, the error is %v", model, err)
		}
		var exceeded *budget.ExceededError
		if _, err := Predict(context.Background(), out, other, "", infer.PredictOptions{Load: data.LoadOptions{MaxBytes: 33 << 20}}); !errors.As(err, &exceeded) {
			t.Errorf("%s: with 33 MiB the error is %v", model, err)
		}
	}
}

// A run whose training data were changed in reading answers for them alike whether they are given or not.
func TestChangedTrainingData(t *testing.T) {
	path := planted(t, "graph", 300, 1)
	damage := []string{"data.add_edges=0.3", "data.remove_edges=0.3"}
	for name, set := range map[string][]string{"gcn": damage, "gcnii": {"data.edges=cut:training"}, "ecl-gsr": append([]string{"train.pretrain_steps=3"}, damage...)} {
		out := filepath.Join(t.TempDir(), "run")
		if _, err := Train(t.Context(), TrainOptions{Model: name, Data: path, Out: out, Set: append(set, "train.epochs=3")}); err != nil {
			t.Fatal(err)
		}
		var notes strings.Builder
		o := infer.PredictOptions{Log: func(format string, args ...any) { fmt.Fprintf(&notes, format+"\n", args...) }}
		want, err := Predict(t.Context(), out, "", "", o)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(notes.String(), "the same is done here") {
			t.Errorf("%s, no data given: %s", name, &notes)
		}
		p, err := Predict(t.Context(), out, path, "", o)
		if err != nil || !p.TrainingGraph || p.Edges != want.Edges || !sameBits(p.Probabilities, want.Probabilities) {
			t.Errorf("%s: other answers for the training data: %v", name, err)
		}
		if strings.Contains(notes.String(), "the same is done here") != (name != "gcnii") {
			t.Errorf("%s: notes are %s", name, &notes)
		}
		if name != "ecl-gsr" {
			continue
		}
		a, err := Refine(t.Context(), out, infer.RefineOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if b, err := Refine(t.Context(), out, infer.RefineOptions{Data: path}); err != nil || !slices.Equal(b.Edges, a.Edges) {
			t.Errorf("the training data are refined to another graph: %v", err)
		}
		e, err := Embed(t.Context(), out, "", o)
		if err != nil {
			t.Fatal(err)
		}
		if f, err := Embed(t.Context(), out, path, o); err != nil || !sameBits(e.Values, f.Values) {
			t.Errorf("the embedding of the training data is another: %v", err)
		}
	}
}

// A run that cannot be used in parts classifies its training graph as a whole, as an export would,
// and says of others why it cannot.
func TestPredictAsAWhole(t *testing.T) {
	path, other := weightedTable(t, uneven), weightedTable(t, func(int) float64 { return 1 })
	alone := 4 // the last ones, whose exports would not do it either
	sets := [][]string{{"gcn"}, {"sage", "model.known_labels=0.5"}, {"label-propagation"}, {"ecl-gsr", "train.pretrain_steps=3"},
		{"gcn", "data.edges=knn:3"}, {"stable", "data.weights=ignore"}, {"gcn", "data.node_features=roles"}, {"lds", "data.weights=ignore"}}
	for i, set := range sets {
		out := filepath.Join(t.TempDir(), "run")
		r, err := Train(t.Context(), TrainOptions{Model: set[0], Data: path, Out: out, Set: append(set[1:], "train.epochs=3")})
		if err != nil {
			t.Fatalf("%q: %v", set, err)
		}
		_, want, err := r.calibrated(0)
		if err != nil {
			t.Fatal(err)
		}
		judged := 80
		if r.Trained.Module.Func("classify").Arg(models.KnownLabels) != nil {
			judged -= len(r.Trained.Split.Train)
		}
		file := filepath.Join(t.TempDir(), "out.csv")
		p, err := Predict(t.Context(), out, "", file, infer.PredictOptions{})
		if err != nil || p.Report.Nodes != judged || p.Known != 80-judged || !p.TrainingGraph {
			t.Fatalf("%q: %+v, %v", set, p, err)
		}
		alike(t, set[0], p.Probabilities, want)
		if p, err = Predict(t.Context(), out, path, file, infer.PredictOptions{Nodes: []string{"n2"}}); err != nil || p.Report.Nodes != 1 {
			t.Errorf("%q, a node: %+v, %v", set, p, err)
		}
		if text, err := os.ReadFile(file); err != nil || strings.Count(string(text), "\n") != 2 {
			t.Errorf("%q: %q, %v", set, text, err)
		}
		_, err = Predict(t.Context(), out, other, "", infer.PredictOptions{})
		if err == nil || !strings.Contains(err.Error(), "takes that graph alone: ") || strings.Contains(err.Error(), "or make an export") != (i < len(sets)-alone) {
			t.Errorf("%q on another graph: %v", set, err)
		}
		gone := path + "-moved"
		if err := os.Rename(path, gone); err != nil {
			t.Fatal(err)
		}
		opened, err := Open(out)
		if err != nil {
			t.Fatal(err)
		}
		_, predict := Predict(t.Context(), out, "", "", infer.PredictOptions{})
		_, build := opened.Build(t.Context(), t.TempDir(), BuildOptions{})
		errs := []error{predict, build}
		if r.Trained.Refined != nil {
			_, refine := Refine(t.Context(), out, infer.RefineOptions{})
			errs = append(errs, refine)
		}
		for _, err := range errs {
			if err == nil || !strings.HasSuffix(err.Error(), "where nothing is now: say where they are with --data PATH") {
				t.Errorf("%q without its data: %v", set, err)
			}
		}
		if err := os.Rename(gone, path); err != nil {
			t.Fatal(err)
		}
	}
}

// By evidence a run refines its training graph over chunks, of whatever size, to the bits of the
// training, and others as an export does.
func TestRefineByEvidence(t *testing.T) {
	path, other := planted(t, "graph", 1500, 1), planted(t, "other", 700, 2)
	for _, set := range [][]string{nil, {"candidates.similarity=evidence+embedding", "candidates.mutual=true", "train.pretrain_steps=3", "model.edges.labels=true"}, {"train.pretrain_steps=2"}} {
		dense := len(set) == 1 // the source spectrum, too
		if dense {
			path, other = plantedEdges(t, "dense", 800, 40*800, 3), plantedEdges(t, "other", 700, 20*700, 4)
		}
		out := filepath.Join(t.TempDir(), "run")
		trained, err := Train(context.Background(), TrainOptions{Model: "ecl-gsr", Data: path, Out: out, Set: append(set, "train.epochs=2", "train.joint_every=0")})
		if err != nil {
			t.Fatal(err)
		}
		want := trained.Trained.Refined
		if got := trained.Trained.Params[models.EvidenceSpectrum] != nil; got != dense {
			t.Fatalf("%v: that the spectrum is read is %v", set, got)
		}
		r, err := Open(out)
		if err != nil {
			t.Fatal(err)
		}
		for _, room := range []int{0, 1 << 16} {
			if err := r.use(t.Context(), "", &infer.PredictOptions{}, nil, nil, func(a *application) error {
				a.room, a.trained = room, false
				got, err := a.refine()
				if err != nil {
					return err
				}
				if !slices.Equal(got.Candidates.Edges, want.Candidates.Edges) || !slices.Equal(got.Candidates.Existing, want.Candidates.Existing) || !sameBits(got.Probability, want.Probability) {
					t.Errorf("%v, chunks of %d bytes: the refined graph is not the training's", set, room)
				}
				h, err := a.embed()
				if err == nil && !sameBits(h.F32, trained.Trained.Embedding) {
					t.Errorf("%v, chunks of %d bytes: the embedding is not the training's", set, room)
				}
				return err
			}); err != nil {
				t.Fatalf("%v: %v", set, err)
			}
		}
		g, err := Refine(context.Background(), out, infer.RefineOptions{})
		if err != nil || g.Summary.Kept+g.Summary.New != want.NumEdges() || len(g.Evidence) == 0 {
			t.Errorf("the training graph, refined: %+v, %v", g, err)
		}
		half, files := 0.5, [2]bytes.Buffer{}
		for _, format := range infer.GraphFormats {
			for i := range files {
				g, err := Refine(context.Background(), out, infer.RefineOptions{Threshold: &half, KeepRemoved: true, Streamed: i == 1})
				if err != nil || (g.Edges == nil) != (i == 1) {
					t.Fatalf("%d rows: %v", len(g.Edges), err)
				}
				files[i].Reset()
				if err := g.Write(&files[i], format); err != nil {
					t.Fatal(err)
				}
			}
			if files[0].Len() == 0 || !bytes.Equal(files[0].Bytes(), files[1].Bytes()) {
				t.Errorf("%s: streamed rows are others", format)
			}
		}
		for _, gate := range []float32{0, 0.7} {
			r.Trained.Params[models.EvidenceGate][0] = gate
			if err := r.use(t.Context(), other, &infer.PredictOptions{}, nil, nil, func(a *application) error {
				x, err := a.refine()
				if err == nil {
					x, err = a.explained(x)
				}
				if err != nil {
					return err
				}
				f, err := newForward(exported(r.Trained, a.ds), r.Trained.Params, nil, 1)
				if err != nil {
					return err
				}
				defer f.Close()
				score := infer.Scorer(func(features, index, pairs ort.Tensor, _ *ort.Tensor) (map[string]ort.Tensor, error) {
					return f.Run("score", map[string]ort.Tensor{"x": features, "edge_index": index, "pairs": pairs})
				})
				p, sources, err := score.Candidates(infer.Features(a.ds), a.ds.Graph, x.Candidates, &infer.Info{})
				if err != nil {
					return err
				}
				near := func(name string, a, b []float32) {
					for i := range b {
						if len(a) != len(b) || !(math.Abs(float64(a[i]-b[i])) <= 1e-5*math.Max(1, math.Abs(float64(b[i])))) {
							t.Fatalf("gate %v, candidate %v: %s is %v, of the whole graph at once %v", gate, x.Candidates.Edges[i], name, a[i], b[i])
						}
					}
				}
				near("probability", x.Probability, p)
				for k, by := range sources {
					if by.Source != x.Evidence[k].Source {
						t.Errorf("sources are %s and %s", by.Source, x.Evidence[k].Source)
					}
					near(by.Source, x.Evidence[k].Values, by.Values)
				}
				return nil
			}); err != nil {
				t.Fatalf("%v: %v", set, err)
			}
		}
		p, err := Predict(context.Background(), out, other, "", infer.PredictOptions{})
		if err != nil || len(p.Predicted) != 700 {
			t.Errorf("predictions on another graph: %v", err)
		}
		if e, err := Embed(context.Background(), out, other, infer.PredictOptions{}); err != nil || len(e.Values) != 700*e.Width {
			t.Errorf("embedding of another graph: %v", err)
		}
	}
}

// Learners whose candidates have weights beside one another refine their training graph to the
// training's bits, and others too; those with a weight of its own for each edge do not.
func TestRefineTogether(t *testing.T) {
	orttest.Need(t)
	path, other := planted(t, "graph", 600, 1), planted(t, "other", 400, 2)
	for model, set := range map[string][]string{
		"idgl":    {"candidates.k=6", "model.idgl.steps=3", "model.idgl.epsilon=0.1"},
		"sublime": {"model.encoder.kind=mlp", "train.pretrain_steps=3", "model.sublime.k=4", "candidates.k=6"},
	} {
		out := filepath.Join(t.TempDir(), "run")
		trained, err := Train(t.Context(), TrainOptions{Model: model, Data: path, Out: out, Set: append(set, "train.epochs=3")})
		if err != nil {
			t.Fatal(err)
		}
		r, err := Open(out)
		if err != nil {
			t.Fatal(err)
		}
		want := trained.Trained.Refined
		for _, room := range []int{0, 1 << 17} {
			if err := r.use(t.Context(), "", &infer.PredictOptions{}, nil, nil, func(a *application) error {
				a.room, a.trained = room, false
				got, err := a.refine()
				if err == nil && (!slices.Equal(got.Candidates.Edges, want.Candidates.Edges) || !sameBits(got.Probability, want.Probability)) {
					t.Errorf("%s, chunks of %d bytes: the refined graph is not the training's", model, room)
				}
				return err
			}); err != nil {
				t.Fatalf("%s: %v", model, err)
			}
		}
		g, err := Refine(t.Context(), out, infer.RefineOptions{Data: other})
		if err != nil || g.N != 400 || g.Summary.New == 0 || g.Summary.Kept == 0 {
			t.Errorf("%s refines another graph as %+v, %v", model, g, err)
		}
		dist := filepath.Join(t.TempDir(), "dist")
		if _, err := r.Build(t.Context(), dist, BuildOptions{Unverified: true}); err != nil {
			t.Fatal(err)
		}
		e, err := Refine(t.Context(), dist, infer.RefineOptions{Data: other, KeepRemoved: true})
		if err != nil {
			t.Fatalf("%s, exported: %v", model, err)
		}
		if g, err = Refine(t.Context(), out, infer.RefineOptions{Data: other, KeepRemoved: true}); err != nil || len(e.Edges) != len(g.Edges) {
			t.Fatalf("%s: %d edges by the export, %d by the run, %v", model, len(e.Edges), len(g.Edges), err)
		}
		for i, edge := range g.Edges {
			x := e.Edges[i]
			off := math.Abs(float64(x.Probability - edge.Probability))
			if edge.Status == graph.StatusRemoved {
				off -= 1e-3 // the pipeline tells no more than that it is below the threshold
			}
			if x.Source != edge.Source || x.Target != edge.Target || x.Status != edge.Status || !(off <= 1e-5) {
				t.Errorf("%s: edge %d is %+v by the export, %+v by the run", model, i, x, edge)
			}
		}
		if d, err := r.Deploy(); err != nil || d.Refines() != nil || d.InParts() == nil {
			t.Errorf("%s: %v; on several machines it refines as if edges were weighed apart", model, err)
		}
	}
	out := filepath.Join(t.TempDir(), "run")
	if _, err := Train(t.Context(), TrainOptions{Model: "prognn", Data: path, Out: out, Set: []string{"train.epochs=2"}}); err != nil {
		t.Fatal(err)
	}
	r, err := Open(out)
	if err != nil {
		t.Fatal(err)
	}
	dist := filepath.Join(t.TempDir(), "dist")
	if _, err := r.Build(t.Context(), dist, BuildOptions{Unverified: true}); err != nil {
		t.Fatal(err)
	}
	for dir, want := range map[string]string{out: "one by one, and cannot refine another; these can, but for model.encoder.kind=fgp: ecl-gsr, grcn, sublime, idgl", dist: "refines no graph but that of its training"} {
		if _, err := Predict(t.Context(), dir, other, "", infer.PredictOptions{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("prognn on another graph: %v", err)
		}
	}
}

// Interrupted, a run that takes its training graph alone ends, too, and writes nothing.
func TestInterruptedAsAWhole(t *testing.T) {
	dir, out := labelledFrom1(t, 300), filepath.Join(t.TempDir(), "run")
	set := []string{"train.epochs=2", "train.pretrain_steps=2", "data.split=random:0.4,0.3,0.3", "model.known_labels=0.5"}
	if _, err := Train(t.Context(), TrainOptions{Model: "ecl-gsr", Data: dir, Out: out, Set: set}); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "p.csv")
	o := infer.PredictOptions{Threads: 1}
	for name, do := range map[string]func(context.Context) error{
		"predict": func(ctx context.Context) error { _, err := Predict(ctx, out, "", file, o); return err },
		"refine": func(ctx context.Context) error {
			_, err := Refine(ctx, out, infer.RefineOptions{Predict: o})
			return err
		},
		"embed": func(ctx context.Context) error { _, err := Embed(ctx, out, "", o); return err },
	} {
		asked := &lasting{t.Context(), 1 << 30}
		if err := do(asked); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		os.Remove(file)
		n := 1<<30 - asked.left
		if n < 3 { // kernels ask, too, not only what is before them
			t.Errorf("%s asked %d times", name, n)
		}
		for left := 0; left < n; left += 1 + n/4 {
			if err := do(&lasting{t.Context(), left}); !errors.Is(err, context.Canceled) {
				t.Errorf("%s, asked %d of %d times: %v", name, left, n, err)
			}
		}
		if _, err := os.Stat(file); err == nil {
			t.Errorf("%s wrote a file", name)
		}
	}
}
