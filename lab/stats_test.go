package lab

import (
	"math"
	"strings"
	"testing"
)

func TestPaired(t *testing.T) {
	// Differences 1, 1.4, -0.2, 2.2, 0.9: mean 1.06, standard deviation 0.870632, t = 1.06/(0.870632/√5).
	a := []float64{30, 31.4, 29.8, 33.2, 30.9}
	c, err := Paired(a, []float64{29, 30, 30, 31, 30})
	if err != nil {
		t.Fatal(err)
	}
	for what, pair := range map[string][2]float64{
		"mean": {c.Diff, 1.06}, "t": {c.T, 2.722437}, "p": {c.P, 0.052876}, "lo": {c.Lo, -0.021032}, "hi": {c.Hi, 2.141032}, "a": {c.AMean, 31.06}, "b": {c.BMean, 30},
	} {
		if !(math.Abs(pair[0]-pair[1]) <= 1e-3) {
			t.Errorf("%s = %.6f, want %.6f", what, pair[0], pair[1])
		}
	}
	if same, err := Paired(a, a); err != nil || same.P != 1 || same.Diff != 0 {
		t.Errorf("equal samples: %+v, %v", same, err)
	}
	if c, err := Paired([]float64{2, 1}, []float64{1, 2}); err != nil || c.Diff != 0 || c.SE != 1 {
		t.Errorf("differences that cancel: %+v, %v", c, err)
	}
	if _, err := Paired([]float64{1}, []float64{2}); err == nil || !strings.Contains(err.Error(), "needs two runs") {
		t.Errorf("one pair: %v", err)
	}
}

func TestOfNoNumber(t *testing.T) {
	for _, x := range []float64{math.NaN(), math.Inf(1)} {
		if c, err := Paired([]float64{x, 2, 3}, []float64{1, 2, 4}); err == nil {
			t.Errorf("of %v: %+v", x, c)
		}
		if c, err := Independent([]float64{x, 2, 3}, []float64{1, 2, 4}); err == nil {
			t.Errorf("of %v: %+v", x, c)
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
		if !(math.Abs(pair[0]-pair[1]) <= 1e-5) {
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

// The values are those of R's p.adjust(c(0.01, 0.04, 0.03, 0.005, 0.9), "holm").
func TestHolm(t *testing.T) {
	for i, want := range []float64{0.04, 0.09, 0.09, 0.025, 0.9} {
		if got := Holm([]float64{0.01, 0.04, 0.03, 0.005, 0.9})[i]; !(math.Abs(got-want) <= 1e-12) {
			t.Errorf("p %d is %v, want %v", i, got, want)
		}
	}
}

func TestOverlapping(t *testing.T) {
	c, err := Paired([]float64{1, 2, 3, 5}, []float64{0, 0, 1, 1})
	if err != nil {
		t.Fatal(err)
	}
	// By hand: differences 1, 2, 2, 4 have mean 2.25 and variance 19/12, so that t is
	// 2.25 / sqrt((1/4 + 1/2) 19/12) = 2.0647, of three degrees of freedom.
	if p := c.Overlapping(0.5); !(math.Abs(p-0.13093) <= 1e-4) {
		t.Errorf("p = %v", p)
	}
	if p := c.Overlapping(0); !(math.Abs(p-c.P) <= 1e-12) {
		t.Errorf("without overlap p = %v, not %v", p, c.P)
	}
}
