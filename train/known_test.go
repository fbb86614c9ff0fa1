package train

import (
	"slices"
	"strings"
	"testing"

	"github.com/gsrc-dev/gsrc/graph"
	"github.com/gsrc-dev/gsrc/models"
)

// What a training step learns of a node does not depend on the node's own label in the input:
// without edges other labels there change neither loss nor gradients of any step, with edges
// they do.
func TestNoNodeIsGivenItsOwnLabel(t *testing.T) {
	ds := synthetic(t, 1)
	alone := *ds
	alone.Graph = &graph.Graph{N: ds.Graph.N}
	for _, c := range [][]string{
		{"gcn", "model.known_labels=0.5"}, {"sage", "model.known_labels=0.3", "model.class_weights=balanced"}, {"linear", "model.linear.steps=3", "model.known_labels=0.6"},
		{"ecl-gsr", "candidates.structure=raw", "model.known_labels=0.5", "model.edges.consistency=0"}, // consistency is of all nodes, and reads no target
	} {
		for _, edges := range []bool{false, true} {
			data := &alone
			if edges {
				data = ds
			}
			tr := started(t, Job{Model: c[0], Task: Nodes(data)}, configure(t, c[0], c[1:]...), Options{})
			if tr.edges != nil {
				if err := (algorithm1{tr, tr.steps.(refiner)}).refresh(); err != nil {
					t.Fatal(err)
				}
			}
			f, err := tr.prog.function(map[bool]string{true: "fit", false: "train"}[tr.edges != nil])
			if err != nil {
				t.Fatal(err)
			}
			known := tr.prog.inputs[models.KnownLabels]
			given := slices.Clone(known.F32)
			changed := 0
			for step := range uint64(6) {
				var results [2][]float32
				for i := range results {
					copy(known.F32, given)
					if i == 1 { // another class for every training node
						for _, v := range tr.split.Train {
							row := known.F32[int(v)*ds.Classes:][:ds.Classes]
							row = append(slices.Clone(row[1:]), row[0])
							copy(known.F32[int(v)*ds.Classes:], row)
						}
					}
					if err := tr.prog.bind(models.KnownLabels, known); err != nil {
						t.Fatal(err)
					}
					if err := f.Run(step); err != nil {
						t.Fatal(err)
					}
					for _, name := range f.Outputs() {
						if name == "loss" || strings.HasPrefix(name, gradPrefix) {
							b, err := f.Read(name)
							if err != nil {
								t.Fatal(err)
							}
							results[i] = append(results[i], b.F32...)
						}
					}
				}
				if !slices.Equal(results[0], results[1]) {
					changed++
				}
			}
			if edges != (changed > 0) {
				t.Errorf("%v, edges %v: other labels as input change %d of 6 steps", c, edges, changed)
			}
			tr.close()
		}
	}
}
