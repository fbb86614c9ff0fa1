package run

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
)

// A run that reads known labels is found again, one without parameters too, and is not
// exported without them.
func TestSmoothedRuns(t *testing.T) {
	for model, set := range map[string][]string{"linear": {"train.epochs=2", "model.smooth.correct=0.5"}, "label-propagation": nil, "sage": {"train.epochs=2", "model.known_labels=0.5"}} {
		dir := filepath.Join(t.TempDir(), "run")
		if _, err := Train(context.Background(), TrainOptions{Model: model, Data: "synthetic", Set: set, Out: dir}); err != nil {
			t.Fatal(err)
		}
		r, err := Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := r.Build(context.Background(), filepath.Join(dir, "dist"), BuildOptions{}); err == nil || !strings.Contains(err.Error(), "model.smooth.alpha=0") {
			t.Errorf("%s: an export ends with the error %v", model, err)
		}
	}
}
