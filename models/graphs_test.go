package models

import (
	"slices"
	"strings"
	"testing"

	"github.com/gsrc-dev/gsrc/ir"
)

// ECL-GSR of graphs has the functions that training and export look for, with every
// classifier and encoder, and one batch is its samples.
func TestGraphsOfECL(t *testing.T) {
	m, err := Lookup("ecl-gsr")
	if err != nil {
		t.Fatal(err)
	}
	o := small()
	for _, o.Classifier = range GraphClassifiers() {
		for _, o.Encoder.Kind = range Encoders() {
			program := m.Graphs(o)
			if err := ir.Verify(program); err != nil {
				t.Fatalf("%s on %s: %v", o.Classifier, o.Encoder.Kind, err)
			}
			var got []string
			for _, f := range program.Funcs {
				got = append(got, f.Name)
				if f.Arg("anchors") != nil || f.Arg("train_idx") != nil {
					t.Errorf("@%s is for nodes", f.Name)
				}
			}
			if want := "energy pretrain joint fit encode refine score classify"; strings.Join(got, " ") != want {
				t.Errorf("functions %v, want %s", got, want)
			}
		}
	}
	if want := []string{"gcn", "mlp", "gat", "sage", "gin"}; !slices.Equal(GraphClassifiers(), want) {
		t.Errorf("graphs are classified by %v, want %v", GraphClassifiers(), want)
	}
}

// Each running statistic moves once a step, by the mean over the samples.
func TestStatisticsOfSamples(t *testing.T) {
	o := small()
	o.Classifier, o.Layers = "gin", 2
	for _, o.Edges.Samples = range []int{1, 3} {
		f := eclGSRGraphs(o).Func("fit")
		count := 0
		for _, r := range f.Results {
			if strings.HasPrefix(r.Name, RunningPrefix) {
				count++
			}
		}
		if count != 2*2*o.Layers { // mean and variance, of the inner and the outer normalisation
			t.Errorf("%d samples: %d running statistics, want %d", o.Edges.Samples, count, 4*o.Layers)
		}
	}
}

func TestClassWeightsOfGraphs(t *testing.T) {
	o := small()
	o.Classifier = "gin"
	for name, build := range map[string]func(Options) *ir.Module{"gin": graphModel(architecture("gin")), "ecl-gsr": eclGSRGraphs} {
		o.ClassWeights = "none"
		if text := build(o).String(); strings.Contains(text, "%targets") {
			t.Errorf("%s has targets", name)
		}
		o.ClassWeights = "balanced"
		if text := build(o).String(); !strings.Contains(text, "%targets") || strings.Contains(text, "%labels") {
			t.Errorf("%s with balanced classes has no targets", name)
		}
	}
}
