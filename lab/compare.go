// Package lab holds what is done with the results of many runs. It reads the
// lines that gsrc train --json prints.
package lab

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"math"

	"github.com/gsrc-dev/gsrc/train"
	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"
)

// ReadRuns reads the run lines of gsrc train --json; summary lines are passed
// over. name is the source, for errors.
func ReadRuns(name string, r io.Reader) ([]*train.Result, error) {
	var runs []*train.Result
	s := bufio.NewScanner(r)
	s.Buffer(nil, 1<<20)
	for line := 1; s.Scan(); line++ {
		if len(s.Bytes()) == 0 {
			continue
		}
		var kind struct {
			Summary bool `json:"summary"`
		}
		run := &train.Result{}
		if err := json.Unmarshal(s.Bytes(), &kind); err == nil && kind.Summary {
			continue
		}
		if err := json.Unmarshal(s.Bytes(), run); err != nil {
			return nil, fmt.Errorf("%s:%d: not a line of gsrc train --json: %w", name, line, err)
		}
		if run.Model == "" {
			return nil, fmt.Errorf("%s:%d: the line names no model; give the output of gsrc train --json", name, line)
		}
		runs = append(runs, run)
	}
	if err := s.Err(); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if len(runs) == 0 {
		return nil, fmt.Errorf("%s: there is no run in it; write it with gsrc train --runs R --json", name)
	}
	return runs, nil
}

// Comparison is a paired two-sided t-test of the test accuracies of runs on the
// same data, seeds and splits, in percent.
type Comparison struct {
	Runs  int     `json:"runs"`
	AMean float64 `json:"a_test_acc_mean"`
	AStd  float64 `json:"a_test_acc_std"`
	BMean float64 `json:"b_test_acc_mean"`
	BStd  float64 `json:"b_test_acc_std"`
	Diff  float64 `json:"diff_mean"` // A − B
	Lo    float64 `json:"diff_lo"`   // 95 % confidence interval of the difference
	Hi    float64 `json:"diff_hi"`
	T     float64 `json:"t"`
	P     float64 `json:"p"` // two-sided; 1 where all differences are 0
}

// Compare pairs the runs of a and b by data, seed and split. Runs without a
// partner, or without a test accuracy, are an error, as are fewer than two
// pairs.
func Compare(a, b []*train.Result) (*Comparison, error) {
	type key struct {
		data, split string
		seed        int
	}
	of := func(r *train.Result) key { return key{r.Data, r.Split, r.Seed} }
	partner := map[key]*train.Result{}
	for _, r := range b {
		if partner[of(r)] != nil {
			return nil, fmt.Errorf("the second runs hold seed %d on %s twice", r.Seed, r.Data)
		}
		partner[of(r)] = r
	}
	var xs, ys []float64
	for _, r := range a {
		p := partner[of(r)]
		if p == nil {
			return nil, fmt.Errorf("seed %d on %s (split %s) is only among the first runs (or twice there)", r.Seed, r.Data, r.Split)
		}
		delete(partner, of(r))
		if r.TestAcc == nil || p.TestAcc == nil {
			return nil, fmt.Errorf("seed %d on %s has no test accuracy", r.Seed, r.Data)
		}
		xs, ys = append(xs, *r.TestAcc), append(ys, *p.TestAcc)
	}
	if len(partner) > 0 {
		return nil, fmt.Errorf("%d of the second runs have no partner among the first", len(partner))
	}
	return Paired(xs, ys)
}

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
	c := &Comparison{Runs: len(ds), P: 1}
	c.AMean, c.AStd = stat.MeanStdDev(xs, nil)
	c.BMean, c.BStd = stat.MeanStdDev(ys, nil)
	mean, std := stat.MeanStdDev(ds, nil)
	t := distuv.StudentsT{Mu: 0, Sigma: 1, Nu: n - 1}
	se := std / math.Sqrt(n)
	half := t.Quantile(0.975) * se
	c.Diff, c.Lo, c.Hi = mean, mean-half, mean+half
	switch {
	case se > 0:
		c.T = mean / se
		c.P = 2 * t.Survival(math.Abs(c.T))
	case mean != 0: // the same difference every time
		c.T, c.P = math.Copysign(math.MaxFloat64, mean), 0
	}
	return c, nil
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
