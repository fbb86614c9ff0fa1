package charts

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/gsrc-dev/gsrc"
	"github.com/gsrc-dev/gsrc/train"
	"github.com/gsrc-dev/gsrc/train/checkpoint"
)

// termNames are those of the zoo's models, in the order of the charts. Another
// program's terms follow under their own names.
var termNames = []struct{ term, name string }{
	{"loss", "loss"}, {"ecl", "contrastive loss"},
	{"disc", "discriminative term"}, {"gen", "generative term"}, {"reg", "regulariser"},
	{"xent", "cross-entropy"}, {"consistency", "consistency term"},
}

// TermName is how charts call a term of the loss.
func TermName(term string) string {
	if i := termRank(term); i < len(termNames) {
		return termNames[i].name
	}
	return term
}

// termsOf returns the terms of some records, in the order of termNames.
func termsOf(records []checkpoint.Record) []string {
	seen := map[string]float32{}
	for _, r := range records {
		maps.Copy(seen, r.Terms)
	}
	return SortTerms(slices.Collect(maps.Keys(seen)))
}

// SortTerms puts terms of the loss into the order of the charts, in place.
func SortTerms(terms []string) []string {
	slices.SortFunc(terms, func(a, b string) int { return cmp.Or(termRank(a)-termRank(b), cmp.Compare(a, b)) })
	return terms
}

// termRank is the place of a term among termNames, which other terms come behind.
func termRank(term string) int {
	for i, n := range termNames {
		if n.term == term {
			return i
		}
	}
	return len(termNames)
}

// along is a line of what records hold over x.
func along(name string, records []checkpoint.Record, x func(checkpoint.Record) int, y func(checkpoint.Record) *float64) Line {
	l := Line{Name: name, Plain: true}
	for _, r := range records {
		if v := y(r); v != nil {
			l.Values = append(l.Values, Value{X: float64(x(r)), Y: *v})
		}
	}
	return l
}

func ofStep(r checkpoint.Record) int  { return r.Step }
func ofEpoch(r checkpoint.Record) int { return r.Epoch }

func ofTerm(term string) func(checkpoint.Record) *float64 {
	return func(r checkpoint.Record) *float64 {
		if v, ok := r.Terms[term]; ok {
			return new(float64(v))
		}
		return nil
	}
}

func without(records []checkpoint.Record, drop func(checkpoint.Record) bool) []checkpoint.Record {
	return slices.DeleteFunc(slices.Clone(records), drop)
}

// contrastive draws the contrastive loss and its terms, a panel each: they differ
// too much in size for one axis. It returns nil where nothing was trained so.
func contrastive(records []checkpoint.Record) *Chart {
	pre := without(records, func(r checkpoint.Record) bool { return r.Function != "pretrain" })
	joint := without(records, func(r checkpoint.Record) bool { return r.Function != "joint" })
	if len(pre) == 0 {
		return nil
	}
	var panels []Panel
	for _, term := range termsOf(pre) {
		panel := Panel{X: "step of the run", Y: TermName(term), Lines: []Line{along("pre-training", pre, ofStep, ofTerm(term))}}
		if term == "loss" { // the joint loss has the classifier's in it
			term = "ecl"
		}
		if len(joint) > 0 {
			steps := along("joint steps", joint, ofStep, ofTerm(term))
			steps.Plain = false
			panel.Lines = append(panel.Lines, steps)
		}
		panels = append(panels, panel)
	}
	return Lines("contrastive", "Contrastive training",
		"The loss that the encoder is trained on, and its terms before they are weighted. The step is that of the whole run: pre-training comes first, then the classifier's epochs, some of which train the encoder too (joint steps, points).", panels)
}

func supervised(records []checkpoint.Record) []checkpoint.Record {
	return without(records, func(r checkpoint.Record) bool { return r.Epoch == 0 })
}

// item is what is classified, and by what the epoch was chosen that is kept.
type item struct{ name, measure string }

func itemOf(run *gsrc.Run) item {
	x := item{"node", strings.ReplaceAll(run.Trained.Config.Train.Select, "_", "-")}
	if x.measure == "auc" {
		x.measure = "AUC"
	}
	if run.Graphs != nil {
		x.name = "graph"
	}
	return x
}

// losses draws what the classifier is trained on.
func losses(records []checkpoint.Record, res *train.Result, of item) *Chart {
	epochs := supervised(records)
	if len(epochs) == 0 {
		return nil
	}
	panel := Panel{X: "epoch", Y: "loss (nats)", Mark: float64(res.BestEpoch)}
	// The loss of a joint step has the encoder's in it.
	own := without(epochs, func(r checkpoint.Record) bool { return r.Function == "joint" })
	for _, term := range termsOf(own) {
		l := along(TermName(term), epochs, ofEpoch, ofTerm(term))
		if term == "loss" {
			l = along("training loss", own, ofEpoch, ofTerm(term))
		}
		panel.Lines = append(panel.Lines, l)
	}
	panel.Lines = append(panel.Lines, along("validation loss", epochs, ofEpoch, func(r checkpoint.Record) *float64 { return r.ValLoss }))
	panel.Range = func(lo, hi float64) (float64, float64) { return min(lo, 0), hi } // how near a loss has come to none is to be seen
	return Lines("loss", "Loss of the classifier", fmt.Sprintf("By epoch, in nats: the training loss with its terms, and the cross-entropy on the validation %ss. The grey line is the epoch that the run keeps, %d, the best in %s on these.", of.name, res.BestEpoch, of.measure), []Panel{panel})
}

// accuracies draws how well the training and the validation nodes are classified; training graphs of a collection are not
// evaluated.
func accuracies(records []checkpoint.Record, res *train.Result, of item) *Chart {
	epochs := supervised(records)
	if len(epochs) == 0 {
		return nil
	}
	panel := Panel{X: "epoch", Y: "accuracy (%)", Mark: float64(res.BestEpoch), Lines: []Line{
		along("training", epochs, ofEpoch, func(r checkpoint.Record) *float64 { return r.TrainAcc }),
		along("validation", epochs, ofEpoch, func(r checkpoint.Record) *float64 { return r.ValAcc }),
	}}
	if res.TestAcc != nil {
		panel.Lines = append(panel.Lines, Line{Name: fmt.Sprintf("test: %.2f %%", *res.TestAcc), Points: true, Values: []Value{{X: float64(res.BestEpoch), Y: *res.TestAcc}}})
	}
	panel.Range = func(lo, hi float64) (float64, float64) {
		hi = min(100, hi+2)
		return max(0, min(lo-2, hi-20)), hi // a curve that hardly moves is to look so
	}
	parts, test := "training and of the validation", fmt.Sprintf("Test %ss are looked at once, at", of.name)
	if !panel.Lines[0].finite() {
		parts = "validation"
	}
	if len(res.TestCurve) > 0 {
		test = fmt.Sprintf("Test %ss are classified at each evaluation, for the curve of GIN's protocol (test_curve in run.json), by which nothing else is chosen; drawn is their accuracy at", of.name)
	}
	return Lines("accuracy", "Accuracy", fmt.Sprintf("Share of the %s %[2]ss that are classified right, by epoch. %[3]s the kept epoch, %[4]d (the grey line), which is the best in %[5]s on validation %[2]ss.", parts, of.name, test, res.BestEpoch, of.measure), []Panel{panel})
}
