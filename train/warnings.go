package train

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/gsrc-dev/gsrc/data"
	"github.com/gsrc-dev/gsrc/internal/seal"
	"github.com/gsrc-dev/gsrc/ir"
	"github.com/gsrc-dev/gsrc/metrics"
	"github.com/gsrc-dev/gsrc/models"
	"github.com/gsrc-dev/gsrc/passes"
)

// Scale is what a result is held against: what is reached with less. Figures are in percent,
// of the test nodes, or of the validation nodes where the split has no test nodes.
type Scale struct {
	// Majority is the accuracy of always answering MajorityClass, the most frequent class
	// of the training nodes, or of the validation nodes among equal ones.
	Majority      float64 `json:"majority_acc"`
	MajorityClass int     `json:"majority_class"`
	// NoEdges is an mlp with the same options, which reads no edges, and RawGraph the
	// classifier on the graph as it was; null where they were not trained.
	NoEdges  *Baseline `json:"no_edges,omitempty"`
	RawGraph *Baseline `json:"raw_graph,omitempty"`
}

// Baseline is another model on the same data and split.
type Baseline struct {
	Model    string   `json:"model"`
	Accuracy float64  `json:"acc"`
	MacroF1  float64  `json:"macro_f1"`
	AUC      *float64 `json:"auc"` // null where the nodes are of one class
	// Undirected tells that it read edges without the directions that they have in the data.
	Undirected bool `json:"undirected,omitempty"`
}

// Where says of the graph that a baseline read what it was without.
func (b *Baseline) Where() string {
	if b.Undirected {
		return ", without directions,"
	}
	return ""
}

// Baseline returns the figures of a result as those of a model to compare with.
func (r *Result) Baseline() *Baseline {
	e := r.judged()
	return &Baseline{Model: r.Model, Accuracy: e.Accuracy, MacroF1: e.MacroF1, AUC: e.AUC}
}

// Against enters baselines, and warns where the model is no better than the one without edges,
// or worse than on the graph as it was.
func (r *Result) Against(noEdges, rawGraph *Baseline) {
	r.Scale.NoEdges, r.Scale.RawGraph = noEdges, rawGraph
	e := r.judged()
	against := func(b *Baseline) (what string, own, theirs, spread float64) {
		if len(e.Confusion) == 2 && e.AUC != nil && b.AUC != nil { // however rare the one class is
			_, n, m := rarer(e)
			return "AUC", *e.AUC, *b.AUC, spreadOfAUC(*e.AUC, n, m)
		}
		return "accuracy", e.Accuracy, b.Accuracy, math.Sqrt(e.Accuracy * (100 - e.Accuracy) / float64(e.Nodes))
	}
	warn := func(text string, args ...any) { r.Warnings = append(r.Warnings, fmt.Sprintf(text, args...)) }
	if b := noEdges; b != nil && e.Nodes >= fewNodes {
		switch what, own, without, spread := against(b); {
		case own < without+hardlyBetter && (own < without-spread || spread <= hardlyBetter):
			warn("the edges add nothing here: without them %s has %s %.1f %%, this model %.1f %%", b.Model, what, without, own)
		case own < without+hardlyBetter:
			warn("the edges add nothing that shows here: without them %s has %s %.1f %%, this model %.1f %%, and a standard error is %.1f points", b.Model, what, without, own, spread)
		}
	}
	if b := rawGraph; b != nil && e.Nodes >= fewNodes {
		if what, own, raw, spread := against(b); own < raw-max(hardlyBetter, spread) {
			warn("refinement loses here: the same classifier on the graph as it is%s has %s %.1f %%, this model %.1f %%", b.Where(), what, raw, own)
		}
	}
}

// rarer is the class of two that fewer of the judged nodes have, with how many have it and the other.
func rarer(e *metrics.Report) (class int, n, m float64) {
	var of [2]float64
	for c, row := range e.Confusion {
		for _, k := range row {
			of[c] += float64(k)
		}
	}
	if of[1] <= of[0] {
		class = 1
	}
	return class, of[class], of[1-class]
}

// spreadOfAUC is the standard error in percent of an AUC in percent, of two classes of n and m nodes (Hanley and
// McNeil 1982), 0 where one has none.
func spreadOfAUC(auc, n, m float64) float64 {
	if n*m == 0 {
		return 0
	}
	a := auc / 100
	square := float64(a * a)
	one, two := a/(2-a)-square, float64(2*square)/(1+a)-square
	return 100 * math.Sqrt((a-square+float64((n-1)*one)+float64((m-1)*two))/(n*m))
}

// WriteResult puts a result in the place of the one that a finished run has, in run.json.
func WriteResult(dir string, res *Result) error {
	info, err := ReadInfo(dir)
	if err != nil {
		return err
	}
	info.Result, info.Checksum = res, seal.Blank
	return info.write(dir, nil)
}

// directions says what a run does with edges that have a direction, where that is not to classify by it.
func directions(t *trainer) (list []string) {
	readsGraph := func(f *ir.Func) bool { return f != nil && f.Uses()[f.Arg("g")] > 0 }
	reads := slices.ContainsFunc(runs(t.prog.Module, t.cfg), func(x running) bool {
		f := t.prog.Func(x.name)
		return (readsGraph(f) || readsGraph(t.prog.Func(f.Attrs.Str(passes.Setup)))) && (t.edges == nil || x.name != "classify")
	})
	others := strings.Join(models.Directional(t.prog.takes("batch")), ", ")
	switch {
	case !reads:
		list = append(list, fmt.Sprintf("--directed has no effect: nothing in a run of %s with these options reads the direction of edges; models that do: %s", t.job.Model, others))
	case t.edges != nil && t.module.Func("classify") != nil:
		list = append(list, fmt.Sprintf("the classifier of %s reads the refined graph, which has no directions: --directed reaches the encoder alone; models that classify by directions: %s", t.job.Model, others))
	}
	if t.module.Func(models.EncodeJudging) != nil && !t.edges.fixed {
		list = append(list, "edges are judged by evidence, which takes the graph as undirected, and gsrc build exports no such model of a directed graph: to export it leave --directed out, or set model.edges.judge=embedding")
	}
	return list
}

// List adds a file to those whose checksums the run.json of a finished run has.
func List(dir, name string) error {
	info, err := ReadInfo(dir)
	if err != nil {
		return err
	}
	info.Checksum = seal.Blank
	return info.write(dir, []string{name})
}

// judged is the report on the test nodes, or on the validation nodes where there are none.
func (r *Result) judged() *metrics.Report {
	if r.Test != nil {
		return r.Test
	}
	return r.Val
}

// verdict looks at a result.
type verdict struct {
	info  *TaskInfo
	split data.Split
	// balanced tells that every class counts alike in training already, and selected that
	// the kept epoch is the best for all classes; both are set where nothing trains.
	balanced, selected bool
	last               float64   // validation accuracy when training ended
	restart            int       // train.restart
	room               []float32 // [N, classes] for tempered probabilities; nil is memory of their own
}

// advice says what helps rare classes that was not done.
func (t *verdict) advice() string {
	switch {
	case !t.balanced && !t.selected:
		return "; --set model.class_weights=balanced counts every class alike, and train.select=macro_f1 keeps the epoch that is best for all"
	case !t.balanced:
		return "; --set model.class_weights=balanced counts every class alike"
	case !t.selected:
		return "; --set train.select=macro_f1 keeps the epoch that is best for all classes"
	}
	return ""
}

// trained counts the training nodes of each class.
func (t *verdict) trained() []int { return t.split.ClassCounts(t.info.Labels, t.info.Classes) }

// majority returns the most frequent class of the training nodes, of equal ones the most
// frequent of the validation nodes, since training nodes may have been drawn class by class,
// and its share of the judged nodes in percent.
func (t *verdict) majority(judged []int32) (class int, acc float64) {
	train, val := t.trained(), data.Split{Train: t.split.Val}.ClassCounts(t.info.Labels, t.info.Classes)
	for c := range train {
		if cmp.Or(cmp.Compare(train[c], train[class]), cmp.Compare(val[c], val[class])) > 0 {
			class = c
		}
	}
	hits := data.Split{Train: judged}.ClassCounts(t.info.Labels, t.info.Classes)[class]
	return class, 100 * float64(hits) / float64(len(judged))
}

// Bounds of what is said of a result.
const (
	fewNodes     = 50   // with fewer, shares are not compared
	fewOfClass   = 5    // with fewer, a class may well be missed, and an AUC be chance
	farBelow     = 15.  // points of macro-F1 below accuracy
	nearChance   = 55.  // AUC below this, or within two standard errors of 50
	farApart     = 5.   // points between validation and test, and three standard errors
	mostDoubted  = 0.5  // share of the edges
	hardlyBetter = 0.5  // points, and a standard error
	mostLeft     = 0.75 // of the kept epoch's validation accuracy
)

// warnings says in a sentence each what a reader of the result would want to know first.
// predicted are the classes of all nodes, judged those that res.judged is of.
func (t *verdict) warnings(res *Result, predicted, judged []int32) (list []string) {
	say := func(format string, args ...any) { list = append(list, fmt.Sprintf(format, args...)) }
	r, part := res.judged(), "test"
	if res.Test == nil {
		part = "validation"
	}
	of := fmt.Sprintf("%s %ss", part, t.info.Item)
	missing := neverPredicted(predicted, t.info.Labels, judged, t.info.Classes)
	count := t.trained()
	for _, seen := range []bool{true, false} {
		classes := slices.DeleteFunc(slices.Clone(missing), func(x unpredicted) bool { return (count[x.class] > 0) != seen })
		if len(classes) == 0 {
			continue
		}
		nodes, them, advice := 0, "it", t.advice()
		for _, x := range classes {
			nodes += x.nodes
		}
		if len(classes) > 1 {
			them = "them"
		}
		if !seen {
			advice = fmt.Sprintf(", and no training %s has; a split with %ss of every class, such as --split per-class:20,500,rest, trains on %s", t.info.Item, t.info.Item, them)
		}
		say("%s, though %d of the %s have %s%s", t.neverPredictedText(classes), nodes, of, them, advice)
	}
	if r.Nodes >= fewNodes {
		switch s := res.Scale; {
		case r.Accuracy <= s.Majority && t.info.Classes > 1 && s.Majority < 100:
			say("the accuracy of %.2f %% is no better than that of always answering %s, %.2f %%", r.Accuracy, t.info.ClassName(s.MajorityClass), s.Majority)
		case len(missing) == 0 && r.Accuracy-r.MacroF1 >= farBelow && missesRare(predicted, t.info.Labels, judged, t.info.Classes):
			say("macro-F1 is %.1f points below accuracy: rare classes are hardly recognised%s", r.Accuracy-r.MacroF1, t.advice())
		}
		if r.AUC != nil {
			least, text := nearChance, "the model hardly tells the classes apart"
			if len(r.Confusion) == 2 {
				class, n, m := rarer(r)
				if n > 0 && n < fewOfClass {
					least = 0
					say("the AUC of %.1f %% rests on %.0f of the %s, all that are of class %s: it says little", *r.AUC, n, of, t.info.ClassName(class))
				} else if wide := 2 * spreadOfAUC(50, n, m); 50+wide > least {
					least, text = 50+wide, fmt.Sprintf("only %.0f of the %s are of class %s, with which two standard errors are %.1f points", n, of, t.info.ClassName(class), wide)
				}
			}
			if *r.AUC < least {
				say("AUC is %.1f %%, and 50 %% is chance: %s", *r.AUC, text)
			}
		}
	}
	if v, e := res.Val, res.Test; v != nil && e != nil && min(v.Nodes, e.Nodes) >= fewNodes {
		n, m := float64(v.Nodes), float64(e.Nodes)
		p := (float64(v.Accuracy*n) + float64(e.Accuracy*m)) / (n + m)
		spread := math.Sqrt(p * (100 - p) * (1/n + 1/m))
		if d := math.Abs(v.Accuracy - e.Accuracy); d > max(farApart, 3*spread) {
			say("validation accuracy is %.1f %% and test accuracy %.1f %%, further apart than chance explains: the two parts of the split differ in kind", v.Accuracy, e.Accuracy)
		}
	}
	if v := res.Val; v != nil && v.Nodes >= fewNodes && t.last < mostLeft*v.Accuracy {
		say("validation accuracy fell from %.1f %% at epoch %d, which is kept, to %.1f %% when training ended: it went astray; --set train.restart=%d begins from other parameters", v.Accuracy, res.BestEpoch, t.last, t.restart+1)
	}
	if res.NullFraction != nil && *res.NullFraction > mostDoubted {
		say("%.0f %% of the edges are doubted: the graph may not go with these features or labels", 100**res.NullFraction)
	}
	return list
}

// unpredicted is a class that is never predicted, and how many judged nodes have it.
type unpredicted struct{ class, nodes int }

// neverPredicted finds the classes that several judged nodes have and none is predicted to
// be of.
func neverPredicted(predicted, labels, judged []int32, classes int) (out []unpredicted) {
	counts := metrics.Count(predicted, classes, labels, judged)
	for c, n := range counts.Labelled {
		if n >= fewOfClass && counts.Chosen[c] == 0 {
			out = append(out, unpredicted{c, n})
		}
	}
	return out
}

// missesRare reports whether the nodes of a class that has at most half as many of the judged ones as the largest
// are right less often than all by farBelow.
func missesRare(predicted, labels, judged []int32, classes int) bool {
	counts := metrics.Count(predicted, classes, labels, judged)
	accuracy, most := 100*float64(counts.AllRight)/float64(len(judged)), slices.Max(counts.Labelled)
	for c, n := range counts.Labelled {
		if n > 0 && 2*n <= most && 100*float64(counts.Right[c])/float64(n) <= accuracy-farBelow {
			return true
		}
	}
	return false
}

func (t *verdict) neverPredictedText(missing []unpredicted) string {
	const most = 5
	var names []string
	for _, x := range missing[:min(most, len(missing))] {
		names = append(names, t.info.ClassName(x.class))
	}
	text := strings.Join(names, ", ")
	if n := len(missing); n > most {
		text += fmt.Sprintf(" and %d more", n-most)
	}
	if len(missing) > 1 {
		return "the classes " + text + " are never predicted"
	}
	return "the class " + text + " is never predicted"
}
