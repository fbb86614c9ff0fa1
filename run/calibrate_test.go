package run

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/gsrc-dev/gsrc/metrics"
	"github.com/gsrc-dev/gsrc/runtime/ort"
)

// What is exported divides logits by the temperature, unless it is asked not to.
func TestBuildIsCalibrated(t *testing.T) {
	for _, model := range []string{"gcn", "ecl-gsr"} {
		r, err := Train(t.Context(), TrainOptions{Model: model, Data: "synthetic", Set: []string{"synthetic.nodes=600", "data.split=random:0.3,0.3,0.4", "train.epochs=60", "train.pretrain_steps=2", "train.anchors=50"}})
		if err != nil {
			t.Fatal(err)
		}
		c := r.Result.Calibration
		if c == nil || c.Fitted != 180 || c.Measured != 240 || c.Before != r.Result.Test.ECE || c.After > c.Before || c.NLLAfter > c.NLLBefore {
			t.Fatalf("%s: %+v; the test nodes have %+v", model, c, r.Result.Test)
		}
		for _, uncalibrated := range []bool{false, true} {
			b, constants, err := r.exportOptions(BuildOptions{Uncalibrated: uncalibrated})
			if err != nil {
				t.Fatal(err)
			}
			if (b.Temperature == c.Temperature) == uncalibrated || (b.Metrics["calibration_error"] == c.After) == uncalibrated {
				t.Errorf("%s, uncalibrated %v: temperature %v, %v", model, uncalibrated, b.Temperature, b.Metrics)
			}
			f, err := newForward(b.Module, b.Params, constants, 1)
			if err != nil {
				t.Fatal(err)
			}
			inputs := map[string]ort.Tensor{"x": b.Sample.X, "edge_index": b.Sample.Edges}
			if b.Sample.Refined != nil {
				inputs["edge_index"], inputs["edge_weight"] = *b.Sample.Refined, *b.Sample.Weights
			}
			out, err := f.Run("classify", inputs)
			f.Close()
			if err != nil {
				t.Fatal(err)
			}
			want, got := metrics.Tempered(r.Trained.Logits, r.Data.Classes, c.Temperature), out["probabilities"].F32
			if uncalibrated {
				want = r.Trained.Probabilities
			}
			for i := range want {
				if !(math.Abs(float64(want[i]-got[i])) <= 1e-5) || !(math.Abs(float64(out["logits"].F32[i]-r.Trained.Logits[i])) <= 1e-4) {
					t.Fatalf("%s, uncalibrated %v: element %d is %v, want %v", model, uncalibrated, i, got[i], want[i])
				}
			}
		}
	}
	// Too few validation nodes say nothing.
	r, err := Train(t.Context(), TrainOptions{Model: "gcn", Data: "synthetic", Set: []string{"synthetic.nodes=400", "data.split=random:0.3,0.1,0.6", "train.epochs=2"}})
	if err != nil || r.Result.Calibration != nil {
		t.Errorf("40 validation nodes give %+v, %v", r.Result.Calibration, err)
	}
}

func TestClassWeightsAreGuessed(t *testing.T) {
	for _, x := range []struct {
		rare string
		set  []string
		want string
		said bool
	}{
		{"3", nil, "balanced", true},
		{"3", []string{"model.class_weights=none"}, "none", false},
		{"50", nil, "none", false},
	} {
		var notes []string
		s, err := Prepare(TrainOptions{Model: "gcn", Data: unevenTable(t, x.rare), Set: append(x.set, "data.split=random:0.5,0.2,0.3"), Note: func(text string) { notes = append(notes, text) }})
		if err != nil {
			t.Fatal(err)
		}
		said := false
		for _, n := range notes {
			said = said || n == `classes are of very different sizes ("b": 3 nodes, "a": 97): every class counts alike in training; --set model.class_weights=none says otherwise`
		}
		if got := s.Config.Model.ClassWeights; got != x.want || said != x.said {
			t.Errorf("%s of 100, %v: %s, said %q", x.rare, x.set, got, notes)
		}
	}
}

// Tables of ids and labels alone, too.
func TestClassWeightsAreGuessedWithoutFeatures(t *testing.T) {
	dir := unevenTable(t, "3")
	nodes, err := os.ReadFile(filepath.Join(dir, "nodes.csv"))
	if err != nil {
		t.Fatal(err)
	}
	bare := regexp.MustCompile(`(?m),[^,]*$`).ReplaceAll(nodes, nil)
	if err := os.WriteFile(filepath.Join(dir, "nodes.csv"), bare, 0o644); err != nil {
		t.Fatal(err)
	}
	s, err := Prepare(TrainOptions{Model: "gcn", Data: dir, Set: []string{"data.split=random:0.5,0.2,0.3"}})
	if err != nil || s.Config.Model.ClassWeights != "balanced" {
		t.Errorf("class weights %+v, %v", s, err)
	}
}

// Nothing is said of class weights, nor of the epoch to keep, where nothing trains.
func TestNoAdviceWhereNothingTrains(t *testing.T) {
	dir, edges := unevenTable(t, "9"), "source,target\n"
	for i := range 300 { // hardly any join two of the rare class
		edges += fmt.Sprintf("n%d,n%d\n", i%100, (i+[]int{13, 29, 47}[i/100])%100)
	}
	if err := os.WriteFile(filepath.Join(dir, "edges.csv"), []byte(edges), 0o644); err != nil {
		t.Fatal(err)
	}
	var notes []string
	r, err := Train(t.Context(), TrainOptions{Model: "label-propagation", Data: dir, Set: []string{"data.split=random:0.2,0.1,0.7"}, Note: func(text string) { notes = append(notes, text) }})
	if err != nil {
		t.Fatal(err)
	}
	said := strings.Join(append(notes, r.Result.Warnings...), "\n")
	if w := r.Trained.Config.Model.ClassWeights; w != "balanced" { // of what is trained beside it
		t.Errorf("the class weights are %s", w)
	}
	if !strings.Contains(said, "never predicted") || strings.Contains(said, "counts alike") || strings.Contains(said, "train.select") {
		t.Errorf("said %q", said)
	}
}

// unevenTable is a table of 100 nodes of which that many are of class b.
func unevenTable(t *testing.T, rare string) string {
	t.Helper()
	n, err := strconv.Atoi(rare)
	if err != nil {
		t.Fatal(err)
	}
	nodes, edges := "id,label,size\n", "source,target\n"
	for i := range 100 {
		label := "a"
		if i < n {
			label = "b"
		}
		nodes += fmt.Sprintf("n%d,%s,%d\n", i, label, 100+i*i%37)
		edges += fmt.Sprintf("n%d,n%d\n", i, (i+1)%100)
	}
	dir := t.TempDir()
	for name, text := range map[string]string{"nodes.csv": nodes, "edges.csv": edges} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}
