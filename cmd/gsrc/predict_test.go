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

// No label is said to be a class of the model only where all of them were looked at.
func TestNoLabelIsAClass(t *testing.T) {
	for _, x := range []struct {
		p    gsrc.Prediction
		want bool
	}{
		{gsrc.Prediction{Unknown: 3}, true},
		{gsrc.Prediction{Unknown: 3, Known: 5}, false},
		{gsrc.Prediction{Unknown: 1, Selected: []int{4}}, false},
		{gsrc.Prediction{Unknown: 3, Report: &metrics.Report{Nodes: 7}}, false},
	} {
		var notes strings.Builder
		a := &app{stderr: &output{to: &notes}}
		a.judge(&x.p)
		if text := notes.String(); strings.Contains(text, "no label is a class") != x.want || !strings.Contains(text, "not judged") {
			t.Errorf("%+v: %s", x.p, text)
		}
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
