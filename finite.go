package gsrc

import (
	"context"
	"fmt"
	"math"
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

// largest describes the feature of the largest magnitude.
func largest(x *data.Features, name func(row int) string) string {
	list := x.Dense
	if x.IsSparse() {
		list = x.Val
	}
	at, top := -1, 0.0
	for i, v := range list {
		if a := math.Abs(float64(v)); a > top {
			at, top = i, a
		}
	}
	if at < 0 {
		return ""
	}
	row, col := 0, 0
	if x.IsSparse() {
		for int(x.RowPtr[row+1]) <= at {
			row++
		}
		col = int(x.Col[at])
	} else {
		row, col = at/x.Cols, at%x.Cols
	}
	return fmt.Sprintf("%g, in column %d of %s", list[at], col, name(row))
}

// finite refuses a version that has an answer which is not finite. c is what it has
// changed, nil for the first version.
func (s *Snapshot) finite(ctx context.Context, old *Snapshot, c *changes) error {
	if v := notFinite(len(s.r.p.manifest.Classes), s.logits, s.probabilities); v >= 0 {
		return s.notFinite(v)
	}
	if !s.r.subgraphs {
		return nil
	}
	s.logits, s.probabilities = nil, nil
	if old == nil {
		return nil
	}
	const atOnce = 1024
	list := affected(old, s, c)
	for len(list) > 0 {
		if err := ctx.Err(); err != nil {
			return err
		}
		n := min(atOnce, len(list))
		if _, _, err := s.Answer(list[:n]); err != nil {
			return err
		}
		list = list[n:]
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

// affected are the nodes of a version whose answers may be others than before, where
// these come from sub-graphs: those within the classifier's reach of new features and of
// entries that the graph it reads did not have.
func affected(old, s *Snapshot, c *changes) []int {
	seen := make([]bool, s.Numbers())
	var list []int
	add := func(v int) {
		if !seen[v] && !s.deleted.has(v) {
			seen[v] = true
			list = append(list, v)
		}
	}
	for _, v := range c.nodes {
		add(int(v))
	}
	for v := range s.Numbers() {
		if v >= old.Numbers() || !sameEntries(old, s, v) {
			add(v)
		}
	}
	done := 0
	for range *s.r.hops {
		end := len(list)
		for _, v := range list[done:end] {
			for e := s.structure.Out.RowPtr[v]; e < s.structure.Out.RowPtr[v+1]; e++ {
				add(int(s.structure.Out.Col[e]))
			}
		}
		done = end
	}
	return list
}

// sameEntries tells whether as much comes to a node in both versions, from the same
// nodes.
func sameEntries(a, b *Snapshot, v int) bool {
	in := func(s *Snapshot) (col []int32, w []float32) {
		lo, hi := s.structure.In.RowPtr[v], s.structure.In.RowPtr[v+1]
		return s.structure.In.Col[lo:hi], s.weights[lo:hi]
	}
	aCol, aW := in(a)
	bCol, bW := in(b)
	return slices.Equal(aCol, bCol) && slices.Equal(aW, bW)
}
