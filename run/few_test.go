package run

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
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
		{"ecl-gsr", "random:0.09,0.2,0.2", nil, 0}, // 108 of 4 classes
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

	// 8 of 60 nodes are few for two classes, and no tenth.
	folder := t.TempDir()
	nodes, edges := "id,a,b,label,split\n", "source,target\n"
	for i := range 60 {
		nodes += fmt.Sprintf("%d,%d,%d,%d,%s\n", i, i%3, i%5, i%2, []string{"train", "val", "test"}[min(i/8, 2)])
		edges += fmt.Sprintf("%d,%d\n", i, (i+2)%60)
	}
	for name, text := range map[string]string{"nodes.csv": nodes, "edges.csv": edges} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	s, err := Prepare(TrainOptions{Model: "ecl-gsr", Data: folder, Set: []string{"data.prepare=false"}})
	if err != nil || s.Config.Train.SelfTraining != 0 {
		t.Errorf("%v; %d rounds of self-training where an eighth of the nodes are labelled", err, s.Config.Train.SelfTraining)
	}
}
