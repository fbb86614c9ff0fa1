package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gsrc-dev/gsrc"
	"github.com/gsrc-dev/gsrc/train"
)

// What calibrates a model of graphs is graphs.
func TestCalibratedOnGraphs(t *testing.T) {
	text := "24\n"
	for g := range 24 {
		text += fmt.Sprintf("2 %d\n%d 1 1\n0 1 0\n", g%2, g%2)
	}
	path := filepath.Join(t.TempDir(), "pairs.txt")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	r, err := gsrc.Train(t.Context(), gsrc.TrainOptions{Model: "gcn", Data: path, Set: []string{"train.epochs=1"}})
	if err != nil {
		t.Fatal(err)
	}
	r.Result.Calibration = &train.Calibration{Temperature: 1, Fitted: 72}
	var out, notes strings.Builder
	a := &app{stdout: &output{to: &out}, stderr: &output{to: &notes}}
	if err := a.report(r, &trainFlags{}); err != nil || !strings.Contains(out.String(), "fitted on 72 validation graphs") {
		t.Errorf("%v, %s", err, out.String())
	}
}
