package run

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/gsrc-dev/gsrc/data"
	"github.com/gsrc-dev/gsrc/infer"
)

// A negative number of threads is refused by whatever takes one.
func TestNegativeThreads(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	fresh, err := Train(t.Context(), TrainOptions{Model: "ecl-gsr", Data: data.Synthetic, Out: dir, Set: []string{"synthetic.nodes=80", "train.epochs=1", "train.pretrain_steps=1", "deepwalk.width=0"}})
	if err != nil {
		t.Fatal(err)
	}
	opened, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	o := infer.PredictOptions{Threads: -3}
	for what, do := range map[string]func(r *Run) error{
		"Build": func(r *Run) error {
			_, err := r.Build(t.Context(), filepath.Join(t.TempDir(), "dist"), BuildOptions{Threads: -3})
			return err
		},
		"Classify":   func(r *Run) error { _, _, _, err := r.Classify(-3); return err },
		"Run.Embed":  func(r *Run) error { _, _, err := r.Embed(-3); return err },
		"Run.Refine": func(r *Run) error { _, err := r.Refine(infer.RefineOptions{Predict: o}); return err },
		"Resume":     func(*Run) error { _, err := Resume(t.Context(), dir, ResumeOptions{Threads: -3}); return err },
		"Predict":    func(*Run) error { _, err := Predict(t.Context(), dir, "", "", o); return err },
		"Embed":      func(*Run) error { _, err := Embed(t.Context(), dir, "", o); return err },
		"Refine":     func(*Run) error { _, err := Refine(t.Context(), dir, infer.RefineOptions{Predict: o}); return err },
	} {
		for _, r := range []*Run{fresh, opened} {
			if err := do(r); err == nil || !strings.Contains(err.Error(), "-3 threads asked for: give 0") {
				t.Errorf("%s: %v", what, err)
			}
		}
	}
}
