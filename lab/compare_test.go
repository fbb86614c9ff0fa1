package lab

import (
	"fmt"
	"math"
	"strings"
	"testing"
)

// lines makes the output of gsrc train --json with these test accuracies.
func lines(acc ...float64) string {
	var b strings.Builder
	for seed, a := range acc {
		fmt.Fprintf(&b, `{"model":"m","data":"d","seed":%d,"split":"public","test_acc":%g,"val_acc":1}`+"\n", seed, a)
	}
	b.WriteString(`{"summary":true,"runs":2,"test_acc_mean":1}` + "\n")
	return b.String()
}

func TestCompare(t *testing.T) {
	read := func(s string) *Comparison {
		a, err := ReadRuns("a", strings.NewReader(lines(30.0, 31.4, 29.8, 33.2, 30.9)))
		if err != nil {
			t.Fatal(err)
		}
		b, err := ReadRuns("b", strings.NewReader(s))
		if err != nil {
			t.Fatal(err)
		}
		c, err := Compare(a, b)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	// Differences 1, 1.4, -0.2, 2.2, 0.9: mean 1.06, standard deviation 0.870632, t = 1.06/(0.870632/√5).
	c := read(lines(29.0, 30.0, 30.0, 31.0, 30.0))
	for what, pair := range map[string][2]float64{
		"mean": {c.Diff, 1.06}, "t": {c.T, 2.722437}, "p": {c.P, 0.052876}, "lo": {c.Lo, -0.021032}, "hi": {c.Hi, 2.141032}, "a": {c.AMean, 31.06}, "b": {c.BMean, 30},
	} {
		if math.Abs(pair[0]-pair[1]) > 1e-3 {
			t.Errorf("%s = %.6f, want %.6f", what, pair[0], pair[1])
		}
	}
	if same := read(lines(30.0, 31.4, 29.8, 33.2, 30.9)); same.P != 1 || same.Diff != 0 {
		t.Errorf("equal runs: p = %g, difference %g", same.P, same.Diff)
	}
}

func TestCompareErrors(t *testing.T) {
	for _, c := range []struct{ name, a, b, want string }{
		{"no lines", "", lines(1, 2), "no run in it"},
		{"no json", "acc 81\n", lines(1, 2), "a:1: not a line"},
		{"another json", "{}\n", lines(1, 2), "a:1: the line names no model"},
		{"too few", lines(1), lines(2), "needs two runs"},
		{"unpaired", lines(1, 2, 3), lines(1, 2), "only among the first"},
		{"unpaired second", lines(1, 2), lines(1, 2, 3), "have no partner"},
		{"twice", lines(1, 2), lines(1, 2) + lines(1, 2), "twice"},
		{"no test", strings.ReplaceAll(lines(1, 2), `"test_acc":1`, `"test_acc":null`), lines(1, 2), "no test accuracy"},
	} {
		a, err := ReadRuns("a", strings.NewReader(c.a))
		if err == nil {
			b, _ := ReadRuns("b", strings.NewReader(c.b))
			_, err = Compare(a, b)
		}
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", c.name, err, c.want)
		}
	}
}

func TestIndependent(t *testing.T) {
	// Means 31.06 and 30, variances 1.848 and 0.5; p by integrating the density.
	got, err := Independent([]float64{30.0, 31.4, 29.8, 33.2, 30.9}, []float64{29, 30, 30, 31, 30})
	if err != nil {
		t.Fatal(err)
	}
	for what, pair := range map[string][2]float64{"t": {got.T, 1.543544}, "df": {got.DF, 6.007475}, "p": {got.P, 0.173584}} {
		if math.Abs(pair[0]-pair[1]) > 1e-5 {
			t.Errorf("%s = %.6f, want %.6f", what, pair[0], pair[1])
		}
	}
	if same, err := Independent([]float64{1, 1}, []float64{1, 1, 1}); err != nil || same.P != 1 || same.T != 0 {
		t.Errorf("samples that do not vary: %+v, %v", same, err)
	}
	if _, err := Independent([]float64{1}, []float64{1, 2}); err == nil || !strings.Contains(err.Error(), "two values of each") {
		t.Errorf("one value: %v", err)
	}
	if _, err := Paired([]float64{1, 2}, []float64{1}); err == nil || !strings.Contains(err.Error(), "partner") {
		t.Errorf("pairs without a partner: %v", err)
	}
}
