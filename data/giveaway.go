package data

import (
	"fmt"
	"slices"

	"github.com/gsrc-dev/gsrc/data/schema"
)

// Bounds of the search for columns that give the label away.
const (
	givenAway   = 0.95 // of the nodes that the most frequent class is wrong for, how many such a column gets right
	fewestOther = 5    // of these nodes
	valueBins   = 64   // most bins of a number
	perBin      = 5    // training nodes of a bin, at least
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
	others := 0
	for _, v := range s.Val {
		if int(d.Labels[v]) != most {
			others++
		}
	}
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
	values := make([]float32, len(train))
	for i, v := range train {
		values[i] = d.X.at(v, at)
	}
	slices.Sort(values)
	bounds := slices.Compact(slices.Clone(values))
	if bins := max(2, min(valueBins, len(values)/perBin)); len(bounds) > bins {
		bounds = bounds[:0]
		for i := range bins {
			bounds = append(bounds, values[i*len(values)/bins])
		}
		bounds = slices.Compact(bounds)
	}
	return func(v int32) int {
		if c.Missing && d.X.at(v, at+1) != 0 {
			return len(bounds) + 1
		}
		k, found := slices.BinarySearch(bounds, d.X.at(v, at))
		if found {
			k++
		}
		return k
	}, len(bounds) + 2
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
