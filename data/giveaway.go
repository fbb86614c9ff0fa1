package data

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/gsrc-dev/gsrc/data/schema"
)

// Bounds of the search for columns that give the label away.
const (
	givenAway   = 0.95 // of the nodes that the most frequent class is wrong for, how many such a column gets right
	fewestOther = 5    // of these nodes
	valueBins   = 64   // most bins of a number that hold as many nodes each
	cutDepth    = 6    // of a tree of further bins
	perBin      = 5    // training nodes of a bin of either, at least
)

// giveaways reports columns of a table that predict the label nearly alone. Each is a table
// from value, or bin of values, to the most frequent class among training nodes, judged on
// validation nodes.
func (d *Dataset) giveaways(s Split) (lines []string) {
	if d.Columns == nil || len(s.Train) == 0 {
		return nil
	}
	counts := s.ClassCounts(d.Labels, d.Classes)
	most := slices.Index(counts, slices.Max(counts))
	others := len(s.Val) - Split{Train: s.Val}.ClassCounts(d.Labels, d.Classes)[most]
	if others < fewestOther {
		return nil
	}
	at := 0
	for i := range d.Columns.Columns {
		c := &d.Columns.Columns[i]
		group, groups := d.grouping(c, at, s.Train)
		at += c.Width()
		votes := make([]int, groups*d.Classes)
		for _, v := range s.Train {
			votes[group(v)*d.Classes+int(d.Labels[v])]++
		}
		answers := make([]int, groups)
		for g := range answers {
			n := votes[g*d.Classes:][:d.Classes]
			if answers[g] = slices.Index(n, slices.Max(n)); n[answers[g]] == 0 {
				answers[g] = most
			}
		}
		wrong := 0
		for _, v := range s.Val {
			if answers[group(v)] != int(d.Labels[v]) {
				wrong++
			}
		}
		if float64(wrong) <= (1-givenAway)*float64(others) {
			lines = append(lines, fmt.Sprintf("the column %s gives the label away: it alone is right about %.1f %% of the validation nodes; if it is not known when predictions are made, leave it out with --ignore",
				quote(c.Name), 100-100*float64(wrong)/float64(len(s.Val))))
		}
	}
	return lines
}

// ClassCounts counts the training nodes of each class.
func (s Split) ClassCounts(labels []int32, classes int) []int {
	n := make([]int, classes)
	for _, v := range s.Train {
		n[labels[v]]++
	}
	return n
}

// grouping returns what tells the values of a column apart, whose features begin at feature
// at, as one of a number of groups: its category, or a bin of its numbers; gaps are a group.
func (d *Dataset) grouping(c *schema.Column, at int, train []int32) (group func(v int32) int, groups int) {
	if c.Kind == schema.Category {
		width := c.Width()
		return func(v int32) int {
			for j := range width {
				if d.X.at(v, at+j) != 0 {
					return j
				}
			}
			return width
		}, width + 1
	}
	gap := func(v int32) bool { return c.Missing && d.X.at(v, at+1) != 0 }
	values := make(classedValues, 0, len(train))
	for _, v := range train {
		if !gap(v) {
			values = append(values, classedValue{d.X.at(v, at), d.Labels[v]})
		}
	}
	slices.SortFunc(values, func(a, b classedValue) int { return cmp.Compare(a.x, b.x) })
	bounds := values.bounds(d.Classes)
	return func(v int32) int {
		if gap(v) {
			return len(bounds) + 1
		}
		k, found := slices.BinarySearch(bounds, d.X.at(v, at))
		if found {
			k++
		}
		return k
	}, len(bounds) + 2
}

// classedValue is a number of a training node, with the node's class.
type classedValue struct {
	x     float32
	class int32
}

// classedValues are the values of a column, ascending.
type classedValues []classedValue

// bounds of bins: between any two values where there are few, or else between bins of as many
// nodes, and where classes change, however rare they are.
func (l classedValues) bounds(classes int) (list []float32) {
	n := len(l)
	for i := 1; i < n; i++ {
		if l[i-1].x < l[i].x {
			list = append(list, l.between(i))
		}
	}
	if bins := max(2, min(valueBins, n/perBin)); len(list) >= bins {
		list = l.cuts(list[:0], classes, cutDepth)
		for k := 1; k < bins; k++ {
			i, _ := slices.BinarySearchFunc(l, l[k*n/bins].x, func(v classedValue, x float32) int { return cmp.Compare(v.x, x) })
			if i > 0 {
				list = append(list, l.between(i))
			}
		}
		slices.Sort(list)
	}
	return slices.Compact(list)
}

// between is the middle of two neighbouring values, above the lower.
func (l classedValues) between(i int) float32 {
	a, b := l[i-1].x, l[i].x
	if m := float32(a/2) + float32(b/2); m > a {
		return m
	}
	return b
}

// cuts appends to list where values are divided, and both parts again, so that the parts are of
// one class as far as possible, by Gini's index.
func (l classedValues) cuts(list []float32, classes, depth int) []float32 {
	n := len(l)
	if depth == 0 || n < 2*perBin {
		return list
	}
	below, above := make([]int, classes), make([]int, classes)
	for _, v := range l {
		above[v.class]++
	}
	low, high := 0, 0 // sums of squares of what is in below and above
	for _, k := range above {
		high += k * k
	}
	best, at := float64(high)/float64(n), 0
	for i := 1; i <= n-perBin; i++ {
		c := l[i-1].class
		low += 2*below[c] + 1
		high -= 2*above[c] - 1
		below[c]++
		above[c]--
		if i < perBin || l[i-1].x == l[i].x {
			continue
		}
		if pure := float64(low)/float64(i) + float64(high)/float64(n-i); pure > best {
			best, at = pure, i
		}
	}
	if at == 0 {
		return list
	}
	list = l[:at].cuts(append(list, l.between(at)), classes, depth-1)
	return l[at:].cuts(list, classes, depth-1)
}

// at returns an element.
func (f *Features) at(row int32, col int) float32 {
	if !f.IsSparse() {
		return f.Dense[int(row)*f.Cols+col]
	}
	lo := f.RowPtr[row]
	if k, ok := slices.BinarySearch(f.Col[lo:f.RowPtr[row+1]], int32(col)); ok {
		return f.Val[lo+int32(k)]
	}
	return 0
}
