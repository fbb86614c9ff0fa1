package infer

import (
	"fmt"
	"slices"

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

// tooLarge returns the first row whose squared norm is not finite in float32: cosines with
// it are no numbers. −1 if there is none.
func tooLarge(width int, x []float32) int {
	for i := 0; i < len(x); i += width {
		sum := float32(0)
		for _, v := range x[i : i+width] {
			sum += float32(v * v)
		}
		if sum-sum != 0 {
			return i / width
		}
	}
	return -1
}

const tooLargeText = "are too large: the sum of their squares is no float32; scale the features to the size that the model was trained on"

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
	ds, rows := s.dataset(&scratch)
	old := s.r.current.Load() // the version before, where s is being made
	node := func(v int) string {
		text := fmt.Sprintf("node %q", s.name(v))
		if old != nil && old.Version < s.Version && v < old.rows() && slices.Equal(old.x.row(v), s.x.row(v)) {
			text += " (whose features the update leaves as they are)"
		}
		return text
	}
	return &FiniteError{What: node(v), Largest: largest(ds.X, func(row int) string {
		if rows != nil {
			row = int(rows[row])
		}
		return node(row)
	})}
}
