package run

import "testing"

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
