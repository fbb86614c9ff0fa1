package run

import (
	"encoding/json"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gsrc-dev/gsrc/internal/datatest"
)

// losses reads what a run's log says of each step, without times.
func losses(t *testing.T, dir string) (list []map[string]float64) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, "metrics.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		var step struct {
			Terms   map[string]float64 `json:"terms"`
			ValAcc  float64            `json:"val_acc"`
			ValLoss float64            `json:"val_loss"`
		}
		if err := json.Unmarshal([]byte(line), &step); err != nil {
			t.Fatal(err)
		}
		step.Terms["val_acc"], step.Terms["val_loss"] = step.ValAcc, step.ValLoss
		list = append(list, step.Terms)
	}
	return list
}

// Options of the API that there are not are refused before anything is read.
func TestOptionsThatThereAreNot(t *testing.T) {
	for want, o := range map[string]TrainOptions{`no executor "fast"`: {Executor: "fast"}, `no baselines "foo"`: {Baselines: "foo"}, "memory is -4 bytes": {Memory: -4}} {
		o.Model, o.Data = "gcn", "nowhere"
		var fault *OptionError
		if _, err := Prepare(o); !errors.As(err, &fault) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// TestTapeExecutor trains on gorgonia's TapeMachine: the losses are those of the arena
// executor and the same epoch is kept. On Cora where GSRC_DATA has it; EXECUTOR_EPOCHS
// makes the runs as long as one likes.
func TestTapeExecutor(t *testing.T) {
	source, epochs := "synthetic", "4"
	if path, ok := datatest.Find("planetoid/cora"); ok {
		source = path
	}
	if n := os.Getenv("EXECUTOR_EPOCHS"); n != "" {
		epochs = n
	}
	for model, set := range map[string][]string{"gcn": nil, "ecl-gsr": {"train.pretrain_steps=3", "train.anchors=64"}} {
		o := TrainOptions{Model: model, Data: source, Set: append(set, "train.epochs="+epochs)}
		var kept []int
		var steps [][]map[string]float64
		for _, executor := range []Executor{ArenaExecutor, TapeExecutor} {
			o.Executor, o.Out = executor, filepath.Join(t.TempDir(), string(executor))
			r, err := Train(t.Context(), o)
			if err != nil {
				t.Fatal(err)
			}
			kept, steps = append(kept, r.Result.BestEpoch), append(steps, losses(t, o.Out))
		}
		if kept[0] != kept[1] || len(steps[0]) != len(steps[1]) || len(steps[0]) < 4 {
			t.Errorf("%s: epochs %v are kept of %d and %d steps", model, kept, len(steps[0]), len(steps[1]))
			continue
		}
		for i, want := range steps[0] {
			for name, loss := range want {
				if got := steps[1][i][name]; !(math.Abs(got-loss) <= 1e-5) {
					t.Errorf("%s: step %d: %s is %v on the tape, %v in the arena", model, i, name, got, loss)
				}
			}
		}
	}
	if _, err := Train(t.Context(), TrainOptions{Model: "gcn", Data: source, Executor: "vm"}); err == nil || !strings.Contains(err.Error(), "choose arena or tape") {
		t.Errorf("an executor that there is not: %v", err)
	}
}
