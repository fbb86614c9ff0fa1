package train

import (
	"fmt"
	"slices"

	"github.com/gsrc-dev/gsrc/ir"
)

// SetupError is the error of a model that cannot be trained on the data with the options, found before its
// first step.
type SetupError struct{ Err error }

func (e *SetupError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *SetupError) Unwrap() error { return e.Err }

// NonFiniteError says that a loss or a gradient became NaN or infinite. The
// parameters are those before the step, and the last checkpoint stays.
type NonFiniteError struct {
	Phase string
	Step  int     // of the run, from 0
	Term  string  // which term of the loss, or which gradient
	Value float32 // NaN or infinite; 0 where Term is of many numbers
	// Advice is what to try.
	Advice string
	// Dir is the run directory with the last good checkpoint, or empty.
	Dir string
}

func (e *NonFiniteError) Error() string {
	text := fmt.Sprintf("step %d of phase %s: %s is not finite", e.Step, e.Phase, e.Term)
	if e.Value-e.Value != 0 {
		text = fmt.Sprintf("step %d of phase %s: %s is %v", e.Step, e.Phase, e.Term, e.Value)
	}
	text += "; " + e.Advice
	if e.Dir != "" {
		text += fmt.Sprintf(" (the last good checkpoint stays in %s)", e.Dir)
	}
	return text
}

// advice says what to try where a term diverges.
var advice = map[string]string{
	"disc":        "raise model.ecl.tau or lower train.encoder_lr",
	"gen":         "lower model.ecl.alpha, model.ecl.sgld_step or train.encoder_lr",
	"reg":         "lower model.ecl.beta, take model.ecl.reg = mean, or lower train.encoder_lr",
	"xent":        "lower train.lr or raise model.weight_decay",
	"consistency": "lower model.edges.consistency or train.lr",
}

func (t *trainer) nonFinite(f *function, step int, name string) error {
	e := &NonFiniteError{Phase: t.state.Phase, Step: step, Term: name, Advice: advice[name], Dir: t.opts.Dir}
	if features := t.largeFeatures(); features != "" {
		e.Advice = features
	}
	if step == 0 && (e.Advice == "" || name == "xent") {
		e.Advice = "no step was made before, so that no learning rate is the cause: look at the features, the weights of edges and, where it is your own, the program"
	}
	if e.Advice == "" {
		e.Advice = "lower train.lr"
		if slices.ContainsFunc(f.updates, func(u update) bool { return u.group.Name == "encoder" }) {
			e.Advice = "lower train.encoder_lr, or raise model.ecl.tau"
		}
	}
	for _, x := range f.terms {
		if x.name == name {
			e.Value = x.value
		}
	}
	return e
}

// largeFeature is beyond what a model computes with as it is: what follows from it, and
// not the learning rate, is where numbers leave float32.
const largeFeature = 1e6

// largeFeatures returns advice about features that the model reads without normalising
// their rows, "" where these are not large or the model reads none so.
func (t *trainer) largeFeatures() string {
	top, row, _ := t.info.Features.Largest()
	if top < largeFeature || !readsRaw(t.module) {
		return ""
	}
	advice := fmt.Sprintf("the features reach %.3g (node %s), and no learning rate helps with that: divide them by such a number", top, t.info.itemName(row))
	if t.cfg.Model.Norm == "none" {
		advice += ", or set model.norm = l1 or l2"
	}
	return advice
}

// readsRaw reports whether features are read by anything but the normalisation of their rows.
func readsRaw(m *ir.Module) bool {
	return slices.ContainsFunc(m.Funcs, func(f *ir.Func) bool {
		x := f.Arg("x")
		return x != nil && slices.ContainsFunc(f.Body, func(op *ir.Op) bool {
			return slices.Contains(op.Operands, x) && op.Name() != "l1_normalize" && op.Name() != "l2_normalize"
		})
	})
}
