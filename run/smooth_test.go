package run

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/gsrc-dev/gsrc/data"
	"github.com/gsrc-dev/gsrc/infer"
)

// A run that reads known labels is found again, one without parameters too. Its export takes
// them as an input: predictions on the training graph are the run's, by the labels of the
// training nodes; on other data those that are there count, and are not judged.
func TestRunsThatReadLabels(t *testing.T) {
	for _, x := range [][]string{
		{"linear", "train.epochs=20", "model.smooth.correct=0.5", "model.smooth.alpha=0.5", "model.smooth.steps=3"},
		{"label-propagation", "model.smooth.steps=3"},
		{"sage", "train.epochs=20", "model.known_labels=0.5"},
		{"ecl-gsr", "train.epochs=4", "train.pretrain_steps=4", "model.known_labels=0.5", "model.edges.judge=embedding"},
		{"gcn", "train.epochs=20", "model.known_labels=0.5", "data.edges=cut:training"}, // which cuts none here
	} {
		t.Run(x[0], func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "run")
			small := append(x[1:], "synthetic.nodes=200", "synthetic.features=50")
			trained, err := Train(context.Background(), TrainOptions{Model: x[0], Data: data.Synthetic, Set: small, Out: dir})
			if err != nil {
				t.Fatal(err)
			}
			r, err := Open(dir)
			if err != nil {
				t.Fatal(err)
			}
			dist := filepath.Join(dir, "dist")
			built, err := r.Build(context.Background(), dist, BuildOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if smooths := x[0] == "linear" || x[0] == "label-propagation"; (built.Models["classifier"].Tolerance != nil) != smooths {
				t.Errorf("the bound of %s is %v", x[0], built.Models["classifier"].Bound())
			}
			load := LoadOptions(r.Trained.Config)
			load.Edges = "" // exports answer for the edges that they are given
			p, err := infer.Predict(context.Background(), dist, data.Synthetic, "", infer.PredictOptions{Load: load})
			if err != nil {
				t.Fatal(err)
			}
			for i, v := range trained.Trained.Probabilities {
				if got := p.Probabilities[i]; !(math.Abs(float64(got-v)) <= 1e-3) {
					t.Fatalf("node %d, class %d: probability %g, the run has %g", i/len(p.Classes), i%len(p.Classes), got, v)
				}
			}
			if want := len(trained.Trained.Split.Train); p.Known != want {
				t.Errorf("%d labels are known of %d training nodes", p.Known, want)
			}
			load.Seed++ // another graph
			p, err = infer.Predict(context.Background(), dist, data.Synthetic, "", infer.PredictOptions{Load: load})
			if err != nil || p.Report != nil {
				t.Errorf("another graph, all of whose labels are known: %v, judged by %+v", err, p.Report)
			}
			if _, err := infer.OpenGraph(context.Background(), dist, data.Synthetic, infer.GraphOptions{PredictOptions: infer.PredictOptions{Load: load}}); err == nil || !strings.Contains(err.Error(), "known labels") {
				t.Errorf("an online graph: %v", err)
			}
		})
	}
}

// The split of a run is the one that it was trained on: where it goes on, where it is judged and
// in its export, also if its seed would draw another.
func TestRunsKeepTheirSplit(t *testing.T) {
	o := TrainOptions{Model: "sage", Data: data.Synthetic, Out: filepath.Join(t.TempDir(), "run"), Set: []string{"train.epochs=5", "model.known_labels=0.5", "synthetic.nodes=60", "synthetic.features=20"}}
	s, err := Prepare(o)
	if err != nil {
		t.Fatal(err)
	}
	var split data.Split
	for v := range int32(60) {
		part := [...]*[]int32{&split.Train, &split.Val, &split.Test}[v%3]
		*part = append(*part, v)
	}
	s.Split = &split
	trained, err := s.Train(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	resumed, err := Resume(context.Background(), o.Out, ResumeOptions{})
	if err != nil || !reflect.DeepEqual(resumed.Result.Test, trained.Result.Test) || resumed.Result.Split != "given" {
		t.Errorf("resumed: %v; judged by %+v on the split %q, before that by %+v", err, resumed.Result.Test, resumed.Result.Split, trained.Result.Test)
	}
	r, err := Open(o.Out)
	if err != nil {
		t.Fatal(err)
	}
	_, p, judged, err := r.Classify(1)
	if err != nil || !slices.Equal(judged, split.Test) {
		t.Fatalf("judged on %v, %v", judged, err)
	}
	for i, v := range trained.Trained.Probabilities {
		if !(math.Abs(float64(p[i]-v)) <= 1e-5) {
			t.Fatalf("probability %d: %g, the run has %g", i, p[i], v)
		}
	}
	dist := filepath.Join(o.Out, "dist")
	if _, err := r.Build(context.Background(), dist, BuildOptions{Unverified: true}); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dist, infer.InfoFile))
	if err != nil {
		t.Fatal(err)
	}
	var info infer.Info
	if err := json.Unmarshal(text, &info); err != nil || !slices.Equal(info.Known, split.Train) {
		t.Errorf("the export knows the labels of %v (%v), the run had those of %v", info.Known, err, split.Train)
	}
}

// Smoothing asks how much edges weigh beside one another, and not in what unit; of directed edges those
// of nodes that only send count, too.
func TestSmoothingHasNoUnitOfWeights(t *testing.T) {
	tables := func(unit float64) string {
		dir := weightedTable(t, func(i int) float64 { return unit * uneven(i) })
		for name, text := range map[string]string{
			"nodes.csv": "sender,a,train,100,3\nlarge,b,train,120,4\n",
			"edges.csv": fmt.Sprintf("sender,n1,%g\nlarge,n1,%g\nlarge,n4,%g\n", 2*unit, 50*unit, 50*unit),
		} {
			f, err := os.OpenFile(filepath.Join(dir, name), os.O_APPEND|os.O_WRONLY, 0)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := f.WriteString(text); err != nil {
				t.Fatal(err)
			}
			if err := f.Close(); err != nil {
				t.Fatal(err)
			}
		}
		return dir
	}
	ones, small, large := tables(1), tables(1e-3), tables(1e3)
	for _, set := range [][]string{{"label-propagation"}, {"linear", "model.smooth.alpha=0.7", "model.smooth.correct=0.5"}} {
		for _, directed := range []string{"data.directed=false", "data.directed=true"} {
			options := append(set[1:], directed)
			want := trainOn(t, set[0], ones, options...).Trained.Probabilities
			for _, dir := range []string{small, large} {
				for i, p := range trainOn(t, set[0], dir, options...).Trained.Probabilities {
					if !(math.Abs(float64(p-want[i])) <= 1e-5) {
						t.Fatalf("%v %s: probability %d is %v in another unit, %v in the first", set, directed, i, p, want[i])
					}
				}
			}
		}
	}
}
