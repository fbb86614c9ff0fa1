package train

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"testing"

	"github.com/gsrc-dev/gsrc/data"
)

// smoothing are models that read known labels.
var smoothing = []struct {
	model string
	sets  []string
}{
	{"linear", []string{"model.smooth.alpha=0.8", "model.smooth.correct=0.6"}},
	{"linear", []string{"model.linear.steps=3", "model.smooth.correct=0.6", "model.smooth.steps=5"}},
	{"gcn", []string{"model.smooth.alpha=0.5"}},
	{"ecl-gsr", []string{"model.smooth.alpha=0.8", "model.smooth.correct=0.6"}},
	{"label-propagation", nil},
	{"gcn", []string{"model.known_labels=0.5"}},
	{"ecl-gsr", []string{"model.known_labels=0.5", "model.smooth.alpha=0.5"}},
}

// Labels of validation and test nodes reach neither weights nor predictions: with noise in
// their places, and one evaluation, so that there is nothing to choose, all bits are the
// same. Those of test nodes choose no epoch either. Labels of training nodes do count.
func TestKnownLabelsAreOfTraining(t *testing.T) {
	ds := synthetic(t, 1)
	split, err := ds.SplitFor(0)
	if err != nil {
		t.Fatal(err)
	}
	relabelled := func(parts ...[]int32) *data.Dataset {
		other := *ds
		other.Labels = slices.Clone(ds.Labels)
		for _, v := range slices.Concat(parts...) {
			other.Labels[v] = (other.Labels[v] + 1 + v%2) % int32(ds.Classes)
		}
		return &other
	}
	const once = "train.eval_every=24" // of as many epochs
	for _, c := range smoothing {
		t.Run(fmt.Sprint(c.model, c.sets), func(t *testing.T) {
			for _, x := range []struct {
				what   string
				ds     *data.Dataset
				sets   []string
				differ bool
			}{
				{"validation and test nodes", relabelled(split.Val, split.Test), []string{once}, false},
				{"test nodes", relabelled(split.Test), nil, false},
				{"training nodes", relabelled(split.Train[:5]), []string{once}, true},
			} {
				sets := slices.Concat(c.sets, x.sets)
				job := Options{}
				want, got := run(t, c.model, ds, job, sets...).Trained, run(t, c.model, x.ds, job, sets...).Trained
				if reflect.DeepEqual(got.Logits, want.Logits) == x.differ || !x.differ && !reflect.DeepEqual(got.Params, want.Params) {
					t.Errorf("with other labels of %s, weights are equal: %v, predictions: %v", x.what, reflect.DeepEqual(got.Params, want.Params), !x.differ)
				}
			}
		})
	}
}

// Labels that are known are read in evaluation alone: weights after that many epochs are
// those of a run without smoothing, whose predictions give the smoothed ones by the
// formulas of Huang et al. 2020.
func TestSmoothing(t *testing.T) {
	ds := synthetic(t, 1)
	split, err := ds.SplitFor(0)
	if err != nil {
		t.Fatal(err)
	}
	n, k := ds.Graph.N, ds.Classes
	plain := run(t, "linear", ds, Options{}, "train.eval_every=24").Trained
	for _, alphas := range [][2]float64{{0.8, 0}, {0, 0.6}, {0.8, 0.6}} {
		smoothed := run(t, "linear", ds, Options{}, "train.eval_every=24", fmt.Sprintf("model.smooth.alpha=%g", alphas[0]), fmt.Sprintf("model.smooth.correct=%g", alphas[1]), "model.smooth.steps=7").Trained
		if !reflect.DeepEqual(smoothed.Params, plain.Params) {
			t.Error("smoothing changes the weights")
		}
		degree := make([]float64, n)
		for _, e := range ds.Graph.Edges {
			degree[e[0]]++
			degree[e[1]]++
		}
		spread := func(r [][]float64, alpha float64) [][]float64 {
			h := r
			for range 7 {
				next := make([][]float64, n)
				for i := range next {
					next[i] = make([]float64, k)
					for c := range k {
						next[i][c] = (1 - alpha) * r[i][c]
					}
				}
				for _, e := range ds.Graph.Edges {
					a := alpha / math.Sqrt(degree[e[0]]*degree[e[1]])
					for c := range k {
						next[e[0]][c] += a * h[e[1]][c]
						next[e[1]][c] += a * h[e[0]][c]
					}
				}
				h = next
			}
			return h
		}
		size := func(r []float64) (s float64) {
			for _, v := range r {
				s += math.Abs(v)
			}
			return s
		}
		p, errors := make([][]float64, n), make([][]float64, n)
		for i := range n {
			p[i], errors[i] = make([]float64, k), make([]float64, k)
			for c := range k {
				p[i][c] = float64(plain.Probabilities[i*k+c])
			}
		}
		mean := 0.0
		for _, v := range split.Train {
			for c := range k {
				errors[v][c] = -p[v][c]
			}
			errors[v][ds.Labels[v]]++
			mean += size(errors[v]) / float64(len(split.Train))
		}
		if alphas[1] > 0 {
			for i, r := range spread(errors, alphas[1]) {
				for c := range k {
					p[i][c] += r[c] * mean / max(size(r), mean/1000)
				}
			}
		}
		if alphas[0] > 0 {
			for _, v := range split.Train {
				clear(p[v])
				p[v][ds.Labels[v]] = 1
			}
			p = spread(p, alphas[0])
		}
		for i := range n {
			sum := 0.0
			for c := range k {
				p[i][c] = max(p[i][c], 1e-9)
				sum += p[i][c]
			}
			for c := range k {
				if got, want := float64(smoothed.Probabilities[i*k+c]), p[i][c]/sum; !(math.Abs(got-want) <= 1e-5) {
					t.Fatalf("alpha %g, correct %g: node %d has class %d with probability %g, want %g", alphas[0], alphas[1], i, c, got, want)
				}
			}
		}
	}
}
