package train

import (
	"cmp"
	"context"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/gsrc-dev/gsrc/data"
	"github.com/gsrc-dev/gsrc/train/checkpoint"
)

// selfTrained returns the nodes that the last round of a run has added.
func selfTrained(t *testing.T, dir string) checkpoint.State {
	t.Helper()
	f, err := checkpoint.ReadFile(filepath.Join(dir, checkpoint.CheckpointFile))
	if err != nil {
		t.Fatal(err)
	}
	return f.State
}

// A round adds the nodes that the kept model is most confident of, of each class that many,
// with the predicted class: never a training node, whatever the labels of the others are.
func TestSelfTrainingAddsTheMostConfident(t *testing.T) {
	ds := synthetic(t, 1)
	split, err := ds.SplitFor(0)
	if err != nil {
		t.Fatal(err)
	}
	for _, model := range []string{"linear", "gcn", "ecl-gsr"} {
		once := run(t, model, ds, Options{}, "train.self_trained=6").Trained
		dir := t.TempDir()
		run(t, model, ds, Options{Dir: dir}, "train.self_trained=6", "train.self_training=1")
		k := ds.Classes
		var want [][2]int32
		for c := range int32(k) {
			var list []int32
			for v := range int32(ds.Graph.N) {
				p := once.Probabilities[int(v)*k:][:k]
				if !slices.Contains(split.Train, v) && p[c] == slices.Max(p) {
					list = append(list, v)
				}
			}
			slices.SortStableFunc(list, func(a, b int32) int {
				return cmp.Compare(once.Probabilities[int(b)*k+int(c)], once.Probabilities[int(a)*k+int(c)])
			})
			for _, v := range list[:min(6, len(list))] {
				want = append(want, [2]int32{v, c})
			}
		}
		if s := selfTrained(t, dir); !reflect.DeepEqual(s.SelfTrained, want) || s.Round != 1 || s.RoundFrom != 24 || s.Epoch != 48 {
			t.Errorf("%s: round %d from epoch %d to %d added %v, want %v", model, s.Round, s.RoundFrom, s.Epoch, s.SelfTrained, want)
		}
	}
}

// No label but those of training nodes is learned from, and those of validation nodes choose
// epochs and nothing else: with noise for test labels all bits are the same.
func TestSelfTrainingReadsNoTestLabel(t *testing.T) {
	ds := synthetic(t, 1)
	split, err := ds.SplitFor(0)
	if err != nil {
		t.Fatal(err)
	}
	noise := *ds
	noise.Labels = slices.Clone(ds.Labels)
	for _, v := range split.Test {
		noise.Labels[v] = (noise.Labels[v] + 1 + v%2) % int32(ds.Classes)
	}
	for _, c := range [][]string{
		{"linear", "model.linear.steps=3", "model.smooth.alpha=0.5"}, {"gcn", "model.class_weights=balanced"}, {"ecl-gsr"}, {"ecl-gsr", "candidates.structure=raw"},
	} {
		sets := append(c[1:], "train.self_training=2", "train.self_trained=5")
		var states [2]checkpoint.State
		var trained [2]*Model
		for i, ds := range []*data.Dataset{ds, &noise} {
			dir := t.TempDir()
			trained[i] = run(t, c[0], ds, Options{Dir: dir}, sets...).Trained
			states[i] = selfTrained(t, dir)
		}
		if !reflect.DeepEqual(states[0], states[1]) || !reflect.DeepEqual(trained[0].Params, trained[1].Params) || !reflect.DeepEqual(trained[0].Logits, trained[1].Logits) {
			t.Errorf("%v: other labels of test nodes make another model", c)
		}
		if n := len(states[0].SelfTrained); n == 0 || n > 10*ds.Classes {
			t.Errorf("%v: %d nodes added", c, n)
		}
	}
}

// Patience ends a round, not the rounds that follow.
func TestSelfTrainingWithPatience(t *testing.T) {
	dir := t.TempDir()
	run(t, "gcn", synthetic(t, 1), Options{Dir: dir}, "train.self_training=2", "train.self_trained=5", "train.patience=3", "train.epochs=60")
	if s := selfTrained(t, dir); s.Round != 2 || s.Epoch < s.RoundFrom+3 || s.Epoch >= 180 {
		t.Errorf("round %d from epoch %d to %d", s.Round, s.RoundFrom, s.Epoch)
	}
}

func TestSelfTrainingIsRefused(t *testing.T) {
	_, err := Train(context.Background(), Job{Model: "label-propagation", Task: Nodes(synthetic(t, 1))}, configure(t, "label-propagation", "train.self_training=1"), Options{})
	if err == nil || !strings.Contains(err.Error(), "train.self_training") {
		t.Errorf("label-propagation: %v", err)
	}
}
