package runtime

import (
	"math/bits"
	"slices"

	"github.com/gsrc-dev/gsrc/ir"
)

// roundUp returns the next of steps evenly spaced sizes in each octave, multiples
// of least.
func roundUp(n, steps, least int) int {
	if n == 0 {
		return 0
	}
	unit := max(least, 1<<bits.Len(uint(n-1))/(2*steps))
	return (n + unit - 1) / unit * unit
}

// PaddedRows is the number of rows that blocks and batches of n rows are padded to:
// each costs work in every layer, so at most an eighth is added to many.
func PaddedRows(n int) int { return roundUp(n, 8, 64) }

// PaddedEntries is the number of entries that n are padded to: only their weights are
// computed, so at most a half is added to many.
func PaddedEntries(n int) int { return roundUp(n, 2, 256) }

// paddable reports whether the program computes the same where rows and entries are
// appended to its blocks, and everything that such rows reach stays finite:
// see [ir.Padding].
func (p *program) paddable() bool {
	grows := map[ir.Dim]bool{} // sizes that are rounded up; the samples' own number is exact
	for t := range p.foundSizes() {
		grows[ir.Dim(p.sym.names[t])] = true
	}
	a := ir.Padding{Grows: func(d ir.Dim) bool { return grows[d] }, Of: map[*ir.Value]ir.PadValue{}}
	for _, o := range p.ops {
		if !a.Visit(o.Op) {
			return false
		}
	}
	for _, v := range a.Of {
		if v.Kind == ir.PadUnknown {
			return false
		}
	}
	return !slices.ContainsFunc(p.fn.Results, func(r ir.Result) bool { return a.Long(r.Value) })
}
