package charts

import (
	"fmt"
	"slices"

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
	for _, t := range termNames {
		if t.term == term {
			return t.name
		}
	}
	return term
}

// termsOf returns the terms of some records, in the order of termNames.
func termsOf(records []checkpoint.Record) []string {
	seen := map[string]bool{}
	var terms []string
	for _, r := range records {
		for t := range r.Terms {
			if !seen[t] {
				seen[t] = true
				terms = append(terms, t)
			}
		}
	}
	return SortTerms(terms)
}

// SortTerms puts terms of the loss into the order of the charts, in place.
func SortTerms(terms []string) []string {
	rank := func(t string) int {
		for i, n := range termNames {
			if n.term == t {
				return i
			}
		}
		return len(termNames)
	}
	slices.SortFunc(terms, func(a, b string) int {
		if rank(a) != rank(b) {
			return rank(a) - rank(b)
		}
		return slices.Compare([]byte(a), []byte(b))
	})
	return terms
}

// along is a line of what a record holds over x; ok is false where it holds none.
func along(name string, records []checkpoint.Record, x func(*checkpoint.Record) int, y func(*checkpoint.Record) (v float64, ok bool)) Line {
	l := Line{Name: name, Plain: true}
	for i := range records {
		if v, ok := y(&records[i]); ok {
			l.Values = append(l.Values, Value{X: float64(x(&records[i])), Y: v})
		}
	}
	return l
}

func ofStep(r *checkpoint.Record) int  { return r.Step }
func ofEpoch(r *checkpoint.Record) int { return r.Epoch }

func ofTerm(term string) func(*checkpoint.Record) (float64, bool) {
	return func(r *checkpoint.Record) (float64, bool) { v, ok := r.Terms[term]; return float64(v), ok }
}

// measured is a figure that only some records have.
func measured(of func(*checkpoint.Record) *float64) func(*checkpoint.Record) (float64, bool) {
	return func(r *checkpoint.Record) (float64, bool) {
		if v := of(r); v != nil {
			return *v, true
		}
		return 0, false
	}
}

func where(records []checkpoint.Record, keep func(*checkpoint.Record) bool) []checkpoint.Record {
	var out []checkpoint.Record
	for i := range records {
		if keep(&records[i]) {
			out = append(out, records[i])
		}
	}
	return out
}

// contrastive draws the contrastive loss and its terms, a panel each: they differ
// too much in size for one axis. It returns nil where nothing was trained so.
func contrastive(records []checkpoint.Record) *Chart {
	pre := where(records, func(r *checkpoint.Record) bool { return r.Function == "pretrain" })
	joint := where(records, func(r *checkpoint.Record) bool { return r.Function == "joint" })
	if len(pre) == 0 {
		return nil
	}
	var panels []Panel
	for _, term := range termsOf(pre) {
		panel := Panel{X: "step of the run", Y: TermName(term), Lines: []Line{along("pre-training", pre, ofStep, ofTerm(term))}}
		if term == "loss" { // the joint loss has the classifier's in it
			term = "ecl"
		}
		steps := along("joint steps", joint, ofStep, ofTerm(term))
		steps.Plain = false
		if panel.Lines = append(panel.Lines, steps); len(joint) == 0 {
			panel.Lines = panel.Lines[:1]
		}
		panels = append(panels, panel)
	}
	return Lines("contrastive", "Contrastive training",
		"The loss that the encoder is trained on, and its terms before they are weighted. The step is that of the whole run: pre-training comes first, then the classifier's epochs, some of which train the encoder too (joint steps, points).", panels)
}

// supervised are the records of the classifier's epochs.
func supervised(records []checkpoint.Record) []checkpoint.Record {
	return where(records, func(r *checkpoint.Record) bool { return r.Epoch > 0 })
}

// losses draws what the classifier is trained on.
func losses(records []checkpoint.Record, res *train.Result) *Chart {
	epochs := supervised(records)
	if len(epochs) == 0 {
		return nil
	}
	panel := Panel{X: "epoch", Y: "loss (nats)", Mark: float64(res.BestEpoch)}
	// The loss of a joint step has the encoder's in it.
	own := where(epochs, func(r *checkpoint.Record) bool { return r.Function != "joint" })
	for _, term := range termsOf(own) {
		l := along(TermName(term), epochs, ofEpoch, ofTerm(term))
		if term == "loss" {
			l = along("training loss", own, ofEpoch, ofTerm(term))
		}
		panel.Lines = append(panel.Lines, l)
	}
	panel.Lines = append(panel.Lines, along("validation loss", epochs, ofEpoch, measured(func(r *checkpoint.Record) *float64 { return r.ValLoss })))
	panel.Range = func(lo, hi float64) (float64, float64) { return min(lo, 0), hi } // how near a loss has come to none is to be seen
	return Lines("loss", "Loss of the classifier", fmt.Sprintf("By epoch, in nats: the training loss with its terms, and the cross-entropy on the validation nodes. The grey line is the epoch that the run keeps, %d.", res.BestEpoch), []Panel{panel})
}

// accuracies draws how well the training and the validation nodes are classified.
func accuracies(records []checkpoint.Record, res *train.Result) *Chart {
	epochs := supervised(records)
	if len(epochs) == 0 {
		return nil
	}
	panel := Panel{X: "epoch", Y: "accuracy (%)", Mark: float64(res.BestEpoch), Lines: []Line{
		along("training", epochs, ofEpoch, measured(func(r *checkpoint.Record) *float64 { return r.TrainAcc })),
		along("validation", epochs, ofEpoch, measured(func(r *checkpoint.Record) *float64 { return r.ValAcc })),
	}}
	if res.TestAcc != nil {
		panel.Lines = append(panel.Lines, Line{Name: fmt.Sprintf("test: %.2f %%", *res.TestAcc), Points: true, Values: []Value{{X: float64(res.BestEpoch), Y: *res.TestAcc}}})
	}
	panel.Range = func(lo, hi float64) (float64, float64) {
		hi = min(100, hi+2)
		return max(0, min(lo-2, hi-20)), hi // a curve that hardly moves is to look so
	}
	return Lines("accuracy", "Accuracy", fmt.Sprintf("Share of the training and of the validation nodes that are classified right, by epoch. Test nodes are looked at once, at the kept epoch, %d (the grey line).", res.BestEpoch), []Panel{panel})
}
