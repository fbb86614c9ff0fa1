package models

import (
	"math"
	"testing"

	"github.com/gsrc-dev/gsrc/ir"
)

func TestTemper(t *testing.T) {
	for i := range All {
		o := Default()
		o.Features, o.Classes = 4, 3
		m, err := All[i].Program(o, false)
		if err != nil {
			t.Fatal(err)
		}
		before := m.String()
		if !CanTemper(m) {
			t.Errorf("%s: the probabilities are not the softmax of the logits", All[i].Name)
			continue
		}
		warm := Temper(m, 2)
		if err := ir.Verify(warm); err != nil {
			t.Errorf("%s: %v", All[i].Name, err)
		}
		if m.String() != before || warm.String() == before {
			t.Errorf("%s: Temper changed its argument, or nothing", All[i].Name)
		}
	}
	m := &ir.Module{Name: "m"}
	b := m.NewFunc("classify")
	logits := b.Arg("logits", ir.T(ir.F32, "N", ir.D(2)))
	returnPrediction(b, logits)
	warm := Temper(m, 0.5)
	got, err := ir.Interpret(warm, "classify", []ir.Val{{T: &ir.Tensor{Shape: []int{1, 2}, Data: []float64{1, 0}}}}, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if want := 1 / (1 + math.Exp(-2)); got[0].T.Data[0] != 1 || !(math.Abs(got[1].T.Data[0]-want) <= 1e-12) {
		t.Errorf("logits %v, probabilities %v, want %v", got[0].T.Data, got[1].T.Data, want)
	}
	if CanTemper(&ir.Module{}) {
		t.Error("a module without @classify can be tempered")
	}
}
