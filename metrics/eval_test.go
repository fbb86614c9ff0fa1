package metrics

import (
	"cmp"
	"encoding/json"
	"math"
	"reflect"
	"slices"
	"testing"

	"github.com/gsrc-dev/gsrc/rng"
	"pgregory.net/rapid"
)

func near(t *testing.T, what string, got, want float64) {
	t.Helper()
	if !(math.Abs(got-want) <= 1e-9*math.Max(1, math.Abs(want))) {
		t.Errorf("%s is %v, want %v", what, got, want)
	}
}

// Six nodes of four classes, the last of which has none of them; node 5 is not
// asked for. The numbers are worked out by hand.
func TestEvaluate(t *testing.T) {
	probs := []float32{
		0.75, 0.25, 0, 0,
		0.5, 0.25, 0.25, 0,
		0.25, 0.5, 0.25, 0,
		0.25, 0.25, 0.5, 0,
		0, 1, 0, 0,
		0, 0, 0, 1,
	}
	labels := []int32{0, 0, 1, 1, 2, -1}
	predicted := Argmax(probs, 4)
	if want := []int32{0, 0, 1, 2, 1, 3}; !reflect.DeepEqual(predicted, want) {
		t.Fatalf("predicted %v, want %v", predicted, want)
	}
	r := Evaluate(predicted, probs, 4, labels, []int32{0, 1, 2, 3, 4})
	if r.Nodes != 5 {
		t.Errorf("%d nodes", r.Nodes)
	}
	near(t, "accuracy", r.Accuracy, 60)
	// F1: class 0 has 2·2/(2+2) = 1, class 1 2·1/(2+2) = 1/2, class 2 0/(1+1) = 0;
	// class 3 is neither a label nor a prediction here.
	near(t, "macro-F1", r.MacroF1, 100*1.5/3)
	// AUC: class 0 ranks both of its nodes above the others: 1. Class 1: 1/2 and 1/4
	// against 1/4, 1/4, 1: of 6 pairs 2 are won and 2 are tied: 1/2. Class 2: 0
	// against 0, 1/4, 1/4, 1/2: one tie of four: 1/8.
	if r.AUC == nil {
		t.Fatal("there is no AUC")
	}
	near(t, "AUC", *r.AUC, 100*(1+0.5+0.125)/3)
	if !reflect.DeepEqual(r.AUCLeftOut, []int{3}) {
		t.Errorf("AUC leaves out %v, want class 3", r.AUCLeftOut)
	}
	// Confidences 3/4 (right), 1/2 (right), 1/2 (right), 1/2 (wrong), 1 (wrong).
	near(t, "ECE", r.ECE, (0.25+0.5+1)/5)
	near(t, "Brier score", r.Brier, (0.125+0.375+0.375+(0.0625+0.5625+0.25)+2)/5)
	near(t, "NLL", r.NLL, -(math.Log(0.75)+math.Log(0.5)+math.Log(0.5)+math.Log(0.25)+math.Log(0x1p-126))/5)
	if want := [][]int{{2, 0, 0, 0}, {0, 1, 1, 0}, {0, 1, 0, 0}, {0, 0, 0, 0}}; !reflect.DeepEqual(r.Confusion, want) {
		t.Errorf("confusion %v, want %v", r.Confusion, want)
	}
	near(t, "MacroF1", MacroF1(predicted, 4, labels, []int32{0, 1, 2, 3, 4}), r.MacroF1)
}

func TestEvaluateDegenerate(t *testing.T) {
	probs, labels := []float32{0.5, 0.5, 0.25, 0.75}, []int32{0, 0}
	if r := Evaluate([]int32{0, 1}, probs, 2, labels, nil); r != nil {
		t.Errorf("a report of no nodes: %+v", r)
	}
	r := Evaluate([]int32{0, 1}, probs, 2, labels, []int32{0, 1})
	if r.AUC != nil || !reflect.DeepEqual(r.AUCLeftOut, []int{0, 1}) {
		t.Errorf("one class has the AUC %v, left out %v", r.AUC, r.AUCLeftOut)
	}
	if _, err := json.Marshal(r); err != nil {
		t.Error(err)
	}
	many := MaxConfusion + 1
	wide := make([]float32, many)
	wide[7] = 1
	if r := Evaluate([]int32{7}, wide, many, []int32{7}, []int32{0}); r.Confusion != nil || r.Accuracy != 100 || r.MacroF1 != 100 {
		t.Errorf("%d classes: %+v", many, r)
	}
}

// The AUC of a class is the share of pairs of a node of the class and another one
// that its probability ranks rightly, ties counted half.
func TestAUCIsTheShareOfPairs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n, classes := rapid.IntRange(2, 30).Draw(t, "nodes"), rapid.IntRange(2, 4).Draw(t, "classes")
		s := rng.New(rapid.Uint64().Draw(t, "seed"), "test")
		probs, labels, nodes := make([]float32, n*classes), make([]int32, n), make([]int32, n)
		for i := range probs {
			probs[i] = float32(s.Intn(uint64(i), 5)) / 5
		}
		for v := range labels {
			labels[v], nodes[v] = int32(s.Sub("labels").Intn(uint64(v), classes)), int32(v)
		}
		want, judged := 0.0, 0
		for c := range classes {
			won, pairs := 0.0, 0
			for a := range n {
				for b := range n {
					if int(labels[a]) != c || int(labels[b]) == c {
						continue
					}
					pairs++
					switch p, q := probs[a*classes+c], probs[b*classes+c]; {
					case p > q:
						won++
					case p == q:
						won += 0.5
					}
				}
			}
			if pairs > 0 {
				want += won / float64(pairs)
				judged++
			}
		}
		got, left := AUC(probs, classes, labels, nodes)
		if judged == 0 {
			if !math.IsNaN(got) {
				t.Fatalf("AUC %v of one class", got)
			}
			return
		}
		if !(math.Abs(got-100*want/float64(judged)) <= 1e-9) || len(left) != classes-judged {
			t.Fatalf("AUC %v without %v, want %v of %d classes", got, left, 100*want/float64(judged), judged)
		}
	})
}

// Probabilities by bin, worked out by hand.
func TestReliability(t *testing.T) {
	bins := Reliability([]float32{0, 0.5, 0.25, 0.75, 1}, []bool{true, false, true, true, true}, 4)
	want := []Bin{{2, 0.25, 2}, {1, 0.5, 0}, {1, 0.75, 1}, {1, 1, 1}}
	if !reflect.DeepEqual(bins, want) {
		t.Errorf("bins %v, want %v", bins, want)
	}
	near(t, "calibration error", CalibrationError(bins), (1.75+0.5+0.25)/5)
}

// TestAscending holds the order of AUC's keys to that of cmp.Compare.
func TestAscending(t *testing.T) {
	list := []float32{float32(math.NaN()), float32(math.Inf(-1)), -math.MaxFloat32, -1, -math.SmallestNonzeroFloat32, float32(math.Copysign(0, -1)), 0, math.SmallestNonzeroFloat32, 0.5, 1, float32(math.Inf(1))}
	for _, a := range list {
		for _, b := range list {
			if got, want := cmp.Compare(ascending(a), ascending(b)), cmp.Compare(a, b); got != want {
				t.Errorf("%v and %v compare as %d, want %d", a, b, got, want)
			}
		}
	}
}

// What is NaN is no prediction, and no figure is made of it.
func TestNaN(t *testing.T) {
	nan := float32(math.NaN())
	p := []float32{.9, .1, nan, .5, .5, nan, .2, .8}
	labels, nodes := []int32{0, 0, 1, 1}, []int32{0, 1, 2, 3}
	predicted := Argmax(p, 2)
	if !slices.Equal(predicted, []int32{0, -1, -1, 1}) {
		t.Errorf("predictions %v", predicted)
	}
	r := Evaluate(predicted, p, 2, labels, nodes)
	for _, x := range []float64{r.Accuracy, r.MacroF1, r.ECE, r.Brier, r.NLL} {
		if !math.IsNaN(x) || r.AUC != nil {
			t.Fatalf("%+v", r)
		}
	}
	if r := Evaluate(predicted, p, 2, labels, []int32{0, 3}); r.Accuracy != 100 || r.AUC == nil || *r.AUC != 100 {
		t.Errorf("of others: %+v", r)
	}
	if auc, _ := AUC(p, 2, labels, nodes); !math.IsNaN(auc) {
		t.Errorf("AUC %v", auc)
	}
	if f := MacroF1(predicted, 2, labels, nodes); math.Abs(f-200./3) > 1e-9 {
		t.Errorf("macro-F1 %v", f)
	}
	for _, bad := range []float32{nan, float32(math.Inf(1)), float32(math.Inf(-1))} {
		if x := FitTemperature([]float32{1, 2, bad, 1}, 2, labels, []int32{0, 1}); !math.IsNaN(x) {
			t.Errorf("temperature %v of a logit %v", x, bad)
		}
	}
}
