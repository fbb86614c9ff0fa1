package train

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/gsrc-dev/gsrc/data"
)

// scaled returns the data with all features times a number, and more of some nodes.
func scaled(t *testing.T, by float64, more map[int]float64) *data.Dataset {
	t.Helper()
	ds := *synthetic(t, 1)
	x := *ds.X
	multiply := func(row int, v float32) float32 {
		f := by
		if m, ok := more[row]; ok {
			f *= m
		}
		return float32(float64(v) * f)
	}
	if x.IsSparse() {
		x.Val = append([]float32(nil), x.Val...)
		for r := range x.Rows {
			for e := x.RowPtr[r]; e < x.RowPtr[r+1]; e++ {
				x.Val[e] = multiply(r, x.Val[e])
			}
		}
	} else {
		x.Dense = append([]float32(nil), x.Dense...)
		for i, v := range x.Dense {
			x.Dense[i] = multiply(i/x.Cols, v)
		}
	}
	ds.X = &x
	return &ds
}

// Under row normalisation the unit of the features does not matter.
func TestUnitOfFeatures(t *testing.T) {
	acc := func(model string, by float64) float64 {
		sets := []string{"train.epochs=40", "model.norm=l2"}
		if model == "gcn" {
			sets[1] = "model.norm=l1"
		}
		if model == "ecl-gsr" {
			sets = append(sets, "train.pretrain_steps=10")
		}
		res, err := Train(context.Background(), Job{Model: model, Task: Nodes(scaled(t, by, nil))}, configure(t, model, sets...), Options{})
		if err != nil {
			t.Fatal(err)
		}
		return *res.TestAcc
	}
	for _, model := range []string{"gcn", "ecl-gsr"} {
		want := acc(model, 1)
		for _, by := range []float64{1e20, 1e-18, 1e37, 1e-36} {
			if got := acc(model, by); !(math.Abs(got-want) <= 4) {
				t.Errorf("%s: features times %g give %.1f %%, as they are %.1f %%", model, by, got, want)
			}
		}
	}
}

// Where features that are not normalised are the cause, the advice is about them.
func TestNonFiniteFeatures(t *testing.T) {
	top, row, _ := synthetic(t, 1).X.Largest()
	ds := scaled(t, 3e38/float64(top), nil)
	_, err := Train(context.Background(), Job{Model: "gcn", Task: Nodes(ds)}, configure(t, "gcn", "model.norm=none", "model.input_dropout=0"), Options{})
	var nf *NonFiniteError
	if !errors.As(err, &nf) {
		t.Fatalf("error %v, want a NonFiniteError", err)
	}
	if text := err.Error(); strings.Contains(text, "train.lr") || !strings.Contains(text, "the features reach") || !strings.Contains(text, "(node "+ds.NodeID(row)+")") || !strings.Contains(text, "model.norm") {
		t.Errorf("error %v", err)
	}
}

// What is no error and seldom meant is said once, when a run begins.
func TestWarn(t *testing.T) {
	ds := scaled(t, 1, map[int]float64{3: 0, 4: 1e-60})
	if ds.X.IsSparse() {
		x := *ds.X
		x.RowPtr, x.Col, x.Val = nil, nil, nil
		x.Dense = make([]float32, x.Rows*x.Cols)
		for r := range x.Rows {
			for e := ds.X.RowPtr[r]; e < ds.X.RowPtr[r+1]; e++ {
				x.Dense[r*x.Cols+int(ds.X.Col[e])] = ds.X.Val[e]
			}
		}
		ds.X = &x
	}
	s, err := ds.SplitFor(0)
	if err != nil {
		t.Fatal(err)
	}
	var train []int32
	for _, i := range s.Train {
		if ds.Labels[i] != 1 {
			train = append(train, i)
		}
	}
	s.Train = train
	ds.ClassNames = make([]string, ds.Classes)
	for c := range ds.ClassNames {
		ds.ClassNames[c] = "class-" + string(rune('a'+c))
	}
	var said []string
	_, err = Train(context.Background(), Job{Model: "gcn", Task: Nodes(ds), Split: &s}, configure(t, "gcn", "train.epochs=1"), Options{Warn: func(text string) { said = append(said, text) }})
	if err != nil {
		t.Fatal(err)
	}
	if len(said) != 2 || !strings.Contains(said[0], "no training node is of class class-b;") || !strings.Contains(said[1], "2 of ") {
		t.Errorf("said %q", said)
	}
}
