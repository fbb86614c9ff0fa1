package run

import (
	"testing"

	"github.com/gsrc-dev/gsrc/data"
	"github.com/gsrc-dev/gsrc/infer"
	"github.com/gsrc-dev/gsrc/internal/orttest"
	"github.com/gsrc-dev/gsrc/runtime/ort"
)

// The word synthetic is the graph that a model was trained on, and with a seed another of its kind.
func TestSyntheticIsThatOfTheTraining(t *testing.T) {
	lib := orttest.Need(t)
	_, dir, dist := trainedAndBuilt(t, &lib, TrainOptions{Model: "gcn", Data: data.Synthetic, Set: []string{"synthetic.nodes=90", "train.seed=3", "train.epochs=3"}})
	for _, model := range []string{dir, dist} {
		for seed, own := range map[uint64]bool{0: true, 3: true, 4: false} {
			p, err := Predict(t.Context(), model, data.Synthetic, "", infer.PredictOptions{Library: &lib, Provider: ort.CPU, Load: data.LoadOptions{Seed: seed}})
			if err != nil {
				t.Fatal(err)
			}
			if p.TrainingGraph != own || len(p.Predicted) != 90 {
				t.Errorf("%s, seed %d: %d nodes, of the training: %v", model, seed, len(p.Predicted), p.TrainingGraph)
			}
		}
	}
}
