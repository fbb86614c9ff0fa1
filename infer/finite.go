package infer

import (
	"fmt"

	"github.com/gsrc-dev/gsrc/data"
)

// FiniteError says that a model's answers are not finite numbers, so that there is no
// class to be told: features were too large for it, most likely.
type FiniteError struct {
	What string // whose answers, such as `node "17"`
	// Largest names the feature of the largest magnitude, which may be another node's;
	// empty if that is not known.
	Largest string
}

func (e *FiniteError) Error() string {
	text := fmt.Sprintf("the model's answer for %s is not finite", e.What)
	if e.Largest != "" {
		text += "; the largest feature is " + e.Largest + ": scale the features to the size that the model was trained on"
	}
	return text
}

// notFinite returns the first row of logits or probabilities that is not finite, −1 if
// there is none.
func notFinite(classes int, lists ...[]float32) int {
	first := -1
	for _, list := range lists {
		for i, v := range list {
			if v-v != 0 {
				if row := i / classes; first < 0 || row < first {
					first = row
				}
				break
			}
		}
	}
	return first
}

// largest describes the feature of the largest magnitude.
func largest(x *data.Features, name func(row int) string) string {
	top, row, col := x.Largest()
	if top == 0 {
		return ""
	}
	return fmt.Sprintf("%g, in column %d of %s", top, col, name(row))
}

// finite refuses a version that has an answer which is not finite, as far as answers are
// made ahead; those that are made later are held against what they follow from, see
// [incremental.later].
func (s *Snapshot) finite() error {
	if v := notFinite(len(s.r.p.manifest.Classes), s.logits, s.probabilities); v >= 0 {
		return s.notFinite(v)
	}
	return nil
}

func (s *Snapshot) notFinite(v int) error {
	var scratch []float32
	ds, number := s.dataset(&scratch)
	return &FiniteError{What: fmt.Sprintf("node %q", s.name(v)), Largest: largest(ds.X, func(row int) string {
		if number != nil {
			row = int(number[row])
		}
		return fmt.Sprintf("node %q", s.name(row))
	})}
}
