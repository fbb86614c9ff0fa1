package compiler

import (
	"strings"
	"testing"

	"github.com/gsrc-dev/gsrc/ir"
	"github.com/gsrc-dev/gsrc/models"
	"github.com/gsrc-dev/gsrc/passes"
)

func small() models.Options {
	o := models.Default()
	o.Features, o.Classes, o.Hidden = 5, 3, 4
	o.Encoder.Hidden, o.Encoder.Projection = 3, 3
	o.ECL.Steps = 2
	return o
}

func TestNoModule(t *testing.T) {
	if _, err := Compile(nil, Options{}); err == nil || !strings.Contains(err.Error(), "no module") {
		t.Errorf("%v", err)
	}
}

// Every model compiles for both targets, verified after every pass, and its
// text reads back to itself before and after.
func TestModelsCompile(t *testing.T) {
	wide := small()
	wide.StructWidth, wide.Views.Blur = 2, 0.1
	random := small()
	random.Classifier = "propagation"
	for _, model := range models.All {
		for name, o := range map[string]models.Options{"small": small(), "struct": wide, "propagation": random} {
			for _, target := range []Target{Training, Inference} {
				m := model.Build(o)
				p, err := Compile(m, Options{Target: target, Verify: true, Data: passes.DataInfo{SparseArgs: []string{"x"}}})
				if err != nil {
					t.Fatalf("%s (%s): %v", model.Name, name, err)
				}
				for _, m := range []*ir.Module{m, p.Module} {
					again, err := ir.Parse(model.Name, m.String())
					if err != nil {
						t.Fatalf("%s (%s): %v\n%s", model.Name, name, err, m)
					}
					if again.String() != m.String() {
						t.Errorf("%s (%s) does not read back to itself", model.Name, name)
					}
				}
				if name == "small" && target == Training {
					t.Logf("%s\n%s", model.Name, p.StatsTable())
				}
			}
		}
	}
}
