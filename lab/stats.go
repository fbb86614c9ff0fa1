// Package lab holds the statistics of many runs: means, and t-tests of paired and of
// independent samples.
package lab

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"
)

// Comparison is a paired two-sided t-test of the test accuracies of runs on the
// same data, seeds and splits, in percent.
type Comparison struct {
	Runs  int
	AMean float64
	BMean float64
	Diff  float64 // A − B
	SE    float64 // standard error of the difference
	Lo    float64 // 95 % confidence interval of the difference
	Hi    float64
	T     float64
	P     float64 // two-sided; 1 where all differences are 0
}

var errNotFinite = errors.New("a test of values of which one is not a finite number")

// Paired is a paired two-sided t-test of values that belong together by their
// place. It needs two pairs at least.
func Paired(xs, ys []float64) (*Comparison, error) {
	if len(xs) != len(ys) {
		return nil, fmt.Errorf("a paired test of %d values against %d: each needs a partner", len(xs), len(ys))
	}
	ds := make([]float64, len(xs))
	for i := range ds {
		ds[i] = xs[i] - ys[i]
	}
	n := float64(len(ds))
	if n < 2 {
		return nil, fmt.Errorf("a paired test needs two runs of each, there is one")
	}
	c := &Comparison{Runs: len(ds), AMean: stat.Mean(xs, nil), BMean: stat.Mean(ys, nil), P: 1}
	mean, std := stat.MeanStdDev(ds, nil)
	if math.IsNaN(std) {
		return nil, errNotFinite
	}
	t := distuv.StudentsT{Mu: 0, Sigma: 1, Nu: n - 1}
	se := std / math.Sqrt(n)
	half := t.Quantile(0.975) * se
	c.SE, c.Diff, c.Lo, c.Hi = se, mean, mean-half, mean+half
	switch {
	case se > 0:
		c.T = mean / se
		c.P = 2 * t.Survival(math.Abs(c.T))
	case mean != 0: // the same difference every time
		c.T, c.P = math.Copysign(math.MaxFloat64, mean), 0
	}
	return c, nil
}

// Overlapping returns p where the runs' splits share nodes, each having ratio test nodes for a
// training node, by the corrected resampled t-test (Nadeau and Bengio 2003).
func (c *Comparison) Overlapping(ratio float64) float64 {
	n := float64(c.Runs)
	t := distuv.StudentsT{Mu: 0, Sigma: 1, Nu: n - 1}
	return 2 * t.Survival(math.Abs(c.T)/math.Sqrt(1+n*ratio))
}

// Holm returns the p-values of a family of tests corrected by the method of Holm (1979):
// one below α means that the hypothesis is refused where the chance of refusing any true
// one is to be at most α.
func Holm(ps []float64) []float64 {
	order := make([]int, len(ps))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(ps[a], ps[b]) })
	out, top := make([]float64, len(ps)), 0.0
	for rank, i := range order {
		top = max(top, min(1, ps[i]*float64(len(ps)-rank)))
		out[i] = top
	}
	return out
}

// MeanStd returns the mean and the standard deviation of a sample (divisor n − 1):
// NaN without values, deviation 0 for one.
func MeanStd(x []float64) (mean, std float64) {
	if len(x) == 0 {
		return math.NaN(), math.NaN()
	}
	for _, v := range x {
		mean += v
	}
	if mean /= float64(len(x)); len(x) == 1 {
		return mean, 0
	}
	for _, v := range x {
		std += float64((v - mean) * (v - mean))
	}
	return mean, math.Sqrt(std / float64(len(x)-1))
}

// PlusMinus is the mean of n values with their deviation, which one value does not have.
func PlusMinus(format string, mean, std float64, n int) string {
	text := fmt.Sprintf(format, mean)
	if n > 1 {
		text += " ± " + fmt.Sprintf(format, std)
	}
	return text
}

// TTest is a two-sided t-test of whether two samples have one mean.
type TTest struct {
	T, DF, P float64
}

// Independent is the t-test of two independent samples, in Welch's form, which
// does not take their variances for equal. It needs two values of each.
func Independent(xs, ys []float64) (*TTest, error) {
	if len(xs) < 2 || len(ys) < 2 {
		return nil, fmt.Errorf("a test of two samples needs two values of each, there are %d and %d", len(xs), len(ys))
	}
	xm, xv := stat.MeanVariance(xs, nil)
	ym, yv := stat.MeanVariance(ys, nil)
	nx, ny := float64(len(xs)), float64(len(ys))
	a, b := xv/nx, yv/ny
	if math.IsNaN(a + b) {
		return nil, errNotFinite
	}
	r := &TTest{DF: nx + ny - 2, P: 1}
	switch {
	case a+b > 0:
		r.T = (xm - ym) / math.Sqrt(a+b)
		r.DF = (a + b) * (a + b) / (a*a/(nx-1) + b*b/(ny-1))
		r.P = 2 * distuv.StudentsT{Mu: 0, Sigma: 1, Nu: r.DF}.Survival(math.Abs(r.T))
	case xm != ym: // neither sample varies
		r.T, r.P = math.Copysign(math.MaxFloat64, xm-ym), 0
	}
	return r, nil
}
