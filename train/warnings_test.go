package train

import (
	"slices"
	"strings"
	"testing"

	"github.com/gsrc-dev/gsrc/data"
	"github.com/gsrc-dev/gsrc/metrics"
)

func TestWarnings(t *testing.T) {
	const n = 200
	labels := make([]int32, n)
	for i := range labels {
		if i%10 == 0 {
			labels[i] = 1
		}
	}
	auc := func(v float64) *float64 { return &v }
	report := func(acc, f1, auc float64) *metrics.Report {
		return &metrics.Report{Nodes: 100, Accuracy: acc, MacroF1: f1, AUC: &auc, Confusion: make([][]int, 2)}
	}
	few := func(auc float64) *metrics.Report { // 8 of 1000 nodes are of the class "left"
		r := report(95, 90, auc)
		r.Nodes, r.Confusion = 1000, [][]int{{990, 2}, {6, 2}}
		return r
	}
	sound, all := labels, make([]int32, n)
	found := make([]int32, n) // of ten rare test nodes two are found
	found[0], found[10] = 1, 1
	for _, x := range []struct {
		what      string
		predicted []int32
		res       Result
		want      []string // beginnings, in order
	}{
		{"sound", sound, Result{Val: report(95, 90, 97), Test: report(96, 91, 97)}, nil},
		{"one class", all, Result{Val: report(90, 47, 70), Test: report(90, 47, 70)},
			[]string{`the class "left" is never predicted, though 10 of the test nodes have it`, `the accuracy of 90.00 % is no better than that of always answering "stayed", 90.00 %`}},
		{"classes of which no node is judged", sound, Result{Val: report(92, 70, 80), Test: report(92, 70, 80)}, nil},
		{"rare classes", found, Result{Val: report(92, 70, 80), Test: report(92, 70, 80)}, []string{"macro-F1 is 22.0 points below"}},
		{"chance", sound, Result{Val: report(91, 80, 51), Test: report(91, 80, 51)}, []string{"AUC is 51.0 %"}},
		{"few of a class", sound, Result{Test: few(60.6)}, []string{`AUC is 60.6 %, and 50 % is chance: only 8 of the test nodes are of class "left", with which two standard errors are 20.5 points`}},
		{"four of a class", sound, Result{Test: &metrics.Report{Nodes: 104, Accuracy: 99, MacroF1: 99, AUC: auc(100), Confusion: [][]int{{100, 0}, {1, 3}}}},
			[]string{`the AUC of 100.0 % rests on 4 of the test nodes, all that are of class "left": it says little`}},
		{"enough of a class", sound, Result{Test: few(71)}, nil},
		{"a difference of few", sound, Result{Test: few(80), Scale: &Scale{NoEdges: &Baseline{Model: "mlp", AUC: auc(82)}, RawGraph: &Baseline{Model: "gcn", AUC: auc(84)}}},
			[]string{"the edges add nothing that shows here: without them mlp has AUC 82.0 %, this model 80.0 %, and a standard error is 9.4 points"}},
		{"a loss of few", sound, Result{Test: few(80), Scale: &Scale{NoEdges: &Baseline{Model: "mlp", AUC: auc(91)}, RawGraph: &Baseline{Model: "gcn", AUC: auc(91)}}},
			[]string{"the edges add nothing here", "refinement loses here"}},
		{"apart", sound, Result{Val: report(99, 95, 97), Test: report(91, 90, 97)}, nil}, // 8 points of 100 nodes each are within three standard errors
		{"far apart", sound, Result{Val: report(100, 100, 100), Test: report(91, 90, 97)}, []string{"validation accuracy is 100.0 % and test accuracy 91.0 %"}},
		{"astray", sound, Result{Val: report(93, 90, 97), Test: report(92, 90, 97), BestEpoch: 7}, []string{"validation accuracy fell from 93.0 % at epoch 7, which is kept, to 69.0 % when training ended: it went astray; --set train.restart=3 begins"}},
		{"doubted", sound, Result{Val: report(95, 90, 97), Test: report(95, 90, 97), NullFraction: auc(0.6)}, []string{"60 % of the edges are doubted"}},
		{"useless edges", sound, Result{Val: report(95, 90, 80), Test: report(95, 90, 80), Scale: &Scale{NoEdges: &Baseline{Model: "mlp", Accuracy: 94, AUC: auc(79.8)}}},
			[]string{"the edges add nothing here: without them mlp has AUC 79.8 %, this model 80.0 %"}},
		{"useful edges", sound, Result{Val: report(95, 90, 80), Test: report(95, 90, 80), Scale: &Scale{NoEdges: &Baseline{Model: "mlp", Accuracy: 96, AUC: auc(79)}}}, nil},
		{"refinement that loses", sound, Result{Val: report(95, 90, 80), Test: report(95, 90, 80), Scale: &Scale{RawGraph: &Baseline{Model: "ecl-gsr", Accuracy: 94, AUC: auc(81)}}},
			[]string{"refinement loses here: the same classifier on the graph as it is has AUC 81.0 %, this model 80.0 %"}},
		{"refinement that holds", sound, Result{Val: report(95, 90, 80), Test: report(95, 90, 80), Scale: &Scale{RawGraph: &Baseline{Model: "ecl-gsr", Accuracy: 96, AUC: auc(80.4)}}}, nil},
	} {
		tr := &verdict{info: &TaskInfo{Labels: labels, About: About{Classes: 2, ClassNames: []string{"stayed", "left"}}, Item: "node"}, last: 75}
		if x.what == "astray" {
			tr.last, tr.restart = 69, 2
		}
		for i := range n {
			if i < n/2 {
				tr.split.Test = append(tr.split.Test, int32(i))
			} else {
				tr.split.Train = append(tr.split.Train, int32(i))
			}
		}
		res := x.res
		if res.Scale == nil {
			res.Scale = &Scale{}
		}
		noEdges, rawGraph := res.Scale.NoEdges, res.Scale.RawGraph
		res.Scale.MajorityClass, res.Scale.Majority = tr.majority(tr.split.Test)
		res.Warnings = tr.warnings(&res, x.predicted, tr.split.Test)
		res.Against(noEdges, rawGraph)
		got := res.Warnings
		if len(got) != len(x.want) || !slices.EqualFunc(got, x.want, strings.HasPrefix) {
			t.Errorf("%s: %q, want %q", x.what, got, x.want)
		}
	}
}

// A class is called rare that has half as many nodes as another, and missed where its nodes are.
func TestMissesRare(t *testing.T) {
	labels := slices.Concat(slices.Repeat([]int32{0}, 30), slices.Repeat([]int32{1}, 30), slices.Repeat([]int32{2}, 10))
	var judged []int32
	for v := range labels {
		judged = append(judged, int32(v))
	}
	predict := func(from, to int, class int32) []int32 {
		p := slices.Clone(labels)
		for v := from; v < to; v++ {
			p[v] = class
		}
		return p
	}
	for _, x := range []struct {
		what      string
		predicted []int32
		want      bool
	}{
		{"all right", labels, false},
		{"a frequent class is missed", predict(30, 58, 0), false},
		{"a class that no node has is predicted", predict(0, 12, 3), false},
		{"the rare class is missed", predict(60, 68, 0), true},
	} {
		if got := missesRare(x.predicted, labels, judged, 4); got != x.want {
			t.Errorf("%s: %t", x.what, got)
		}
	}
}

// A run says what its figures are held against.
func TestResultHasScale(t *testing.T) {
	ds := synthetic(t, 1)
	res := run(t, "gcn", ds, Options{}, "train.epochs=3")
	if res.Scale.Majority <= 0 || res.Scale.Majority >= 100 {
		t.Errorf("%+v", res.Scale)
	}
	split := data.Split{Train: []int32{0}, Val: []int32{1}}
	tr := &verdict{info: &TaskInfo{Labels: []int32{2, 2}, About: About{Classes: 3}}, split: split}
	if class, acc := tr.majority(split.Val); class != 2 || acc != 100 {
		t.Errorf("the majority is class %d with %v %%", class, acc)
	}
}

// Of classes that as many training nodes have, validation nodes tell which is frequent.
func TestMajorityOfBalancedTraining(t *testing.T) {
	tr := &verdict{info: &TaskInfo{Labels: []int32{0, 1, 2, 0, 1, 1, 2, 2, 2, 1}, About: About{Classes: 3}}, split: data.Split{Train: []int32{0, 1, 3, 4, 6}, Val: []int32{2, 5, 7}}}
	if class, acc := tr.majority([]int32{8, 9}); class != 1 || acc != 50 {
		t.Errorf("the majority is class %d with %v %%", class, acc)
	}
}

// Classes that no training node has are told from others: another split helps, and no weights do.
func TestAdviceForUnseenClasses(t *testing.T) {
	labels := slices.Concat(slices.Repeat([]int32{0}, 9), slices.Repeat([]int32{1}, 9), slices.Repeat([]int32{2}, 9))
	tr := &verdict{info: &TaskInfo{Labels: labels, About: About{Classes: 3}, Item: "node"}, split: data.Split{Train: []int32{0, 9}}}
	test := []int32{1, 2, 3, 10, 11, 12, 13, 14, 15, 18, 19, 20, 21, 22, 23, 24}
	got := tr.warnings(&Result{Test: &metrics.Report{Nodes: 16}}, make([]int32, 27), test)
	want := []string{
		"the class 1 is never predicted, though 6 of the test nodes have it; --set model.class_weights=balanced",
		"the class 2 is never predicted, though 7 of the test nodes have it, and no training node has; a split with nodes of every class, such as --split per-class:20,500,rest, trains on it",
	}
	if !slices.EqualFunc(got, want, strings.HasPrefix) {
		t.Errorf("%q, want %q", got, want)
	}
}

// What was done already is not proposed.
func TestAdviceForRareClasses(t *testing.T) {
	for _, v := range []verdict{{}, {balanced: true}, {selected: true}, {balanced: true, selected: true}} {
		text := v.advice()
		if strings.Contains(text, "class_weights") == v.balanced || strings.Contains(text, "macro_f1") == v.selected {
			t.Errorf("%+v: %q", v, text)
		}
	}
}

// A run whose accuracy falls says so, and another does not.
func TestAstray(t *testing.T) {
	ds := synthetic(t, 1, "synthetic.nodes=300")
	for lr, astray := range map[string]bool{"train.lr=0.01": false, "train.lr=2": true} {
		warned := strings.Join(run(t, "gcn", ds, Options{}, "train.epochs=60", lr).Warnings, "\n")
		if strings.Contains(warned, "went astray; --set train.restart=1 begins") != astray {
			t.Errorf("%s: warned %q", lr, warned)
		}
	}
}

// Another beginning has other parameters on the same split.
func TestRestart(t *testing.T) {
	ds := synthetic(t, 1)
	first, again := run(t, "gcn", ds, Options{}), run(t, "gcn", ds, Options{}, "train.restart=1")
	if !slices.Equal(first.Trained.Split.Train, again.Trained.Split.Train) || !slices.Equal(first.Trained.Split.Val, again.Trained.Split.Val) {
		t.Error("another split")
	}
	if first.Hash == again.Hash {
		t.Error("the same parameters")
	}
}
