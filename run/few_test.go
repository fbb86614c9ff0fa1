package run

import (
	"testing"

	"github.com/gsrc-dev/gsrc/data"
	"github.com/gsrc-dev/gsrc/graph"
)

// Where labels are few ecl-gsr has defaults of its own, whatever data set's it is, and the
// options override them; where they are not, or there are no other nodes to learn from, nothing changes.
func TestFewLabels(t *testing.T) {
	for _, c := range []struct {
		model, split string
		set          []string
		rounds       int
	}{
		{"ecl-gsr", "per-class:5,100,100", nil, 3},
		{"ecl-gsr", "per-class:5,100,100", []string{"train.self_training=1"}, 1},
		{"ecl-gsr", "per-class:20,100,100", nil, 0},
		{"ecl-gsr", "random:0.09,0.2,0.2", nil, 0},                            // 108 of 4 classes
		{"ecl-gsr", "per-class:10,40,40", []string{"synthetic.nodes=200"}, 0}, // 40 are few for four classes, and no tenth
		{"gcn", "per-class:5,100,100", nil, 0},
	} {
		s, err := Prepare(TrainOptions{Model: c.model, Data: "synthetic", Set: append([]string{"data.split=" + c.split}, c.set...)})
		if err != nil {
			t.Fatal(err)
		}
		if got := s.Config.Train.SelfTraining; got != c.rounds {
			t.Errorf("%s, %s: %d rounds of self-training, want %d", c.model, c.split, got, c.rounds)
		}
		if unread, err := s.Unread(); err != nil || len(unread) > 0 {
			t.Errorf("%s, %s: %v unread, %v", c.model, c.split, unread, err)
		}
	}
}

// A tenth of the nodes, drawn anew for the split that comes with the data, is few whatever the
// number of classes; other splits with as many nodes are not.
func TestFewLabelsByShare(t *testing.T) {
	for _, c := range []struct {
		split string
		few   bool
	}{{"", false}, {"ratio:0.01", true}, {"ratio:0.1", true}, {"ratio:0.11", false}, {"random:0.1,0.2,0.2", false}, {"per-class:19,20,20", true}} {
		spec, err := data.ParseSplit(c.split)
		if err != nil {
			t.Fatal(err)
		}
		ds := &data.Dataset{Graph: &graph.Graph{N: 600}, Classes: 2, Labels: make([]int32, 600), SplitSpec: spec}
		for i := range ds.Labels {
			ds.Labels[i] = int32(i % 2)
		}
		ds.Splits = []data.Split{{Train: make([]int32, 60), Val: []int32{60}, Test: []int32{61}}}
		if got := fewLabels(ds); got != c.few {
			t.Errorf("%q: few is %v", c.split, got)
		}
	}
}
