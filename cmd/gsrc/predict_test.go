package main

import (
	"strings"
	"testing"

	"github.com/gsrc-dev/gsrc"
	"github.com/gsrc-dev/gsrc/metrics"
)

// What is said of a collection is said of graphs.
func TestJudgedGraphs(t *testing.T) {
	var notes strings.Builder
	a := &app{stderr: &output{to: &notes}}
	a.judge(&gsrc.Prediction{Graphs: true, Unknown: 2, Report: &metrics.Report{Nodes: 7}})
	if text := notes.String(); !strings.Contains(text, "2 graphs have a label") || !strings.Contains(text, "7 labelled graphs: accuracy") {
		t.Error(text)
	}
}

// Training nodes are said to be among those judged where they are.
func TestJudgedTrainingNodes(t *testing.T) {
	for known, want := range []bool{true, false} {
		var notes strings.Builder
		a := &app{stderr: &output{to: &notes}}
		a.judge(&gsrc.Prediction{TrainingGraph: true, Known: known, Report: &metrics.Report{Nodes: 7}})
		if text := notes.String(); strings.Contains(text, "those of the training included") != want {
			t.Errorf("with %d known labels: %s", known, text)
		}
	}
}
