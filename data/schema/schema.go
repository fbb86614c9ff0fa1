// Package schema describes the columns of a table and how they become features: what kind
// each is, and the statistics by which it is prepared. A schema is fitted once, without
// labels, and belongs to the model from then on.
package schema

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/gsrc-dev/gsrc/internal/fmath"
)

// Kind is what the values of a column are.
type Kind string

const (
	// Number is centred by its median and divided by the distance of its quartiles.
	Number Kind = "number"
	// Boolean is 0 or 1.
	Boolean Kind = "boolean"
	// Category is one column for each of its values, 0 or 1, and one for all others.
	Category Kind = "category"
	// Time is seconds since 1970, UTC, prepared as a number, and where it is in a year, a
	// week and a day.
	Time Kind = "time"
	// Value is a number that stays as it is: of a bag of words or an embedding.
	Value Kind = "value"
	// Ignore is left out.
	Ignore Kind = "ignore"
)

// Kinds are all kinds.
var Kinds = []Kind{Number, Boolean, Category, Time, Value, Ignore}

// Clip bounds prepared numbers and times: -Clip to Clip.
const Clip = 5

// Version is that of the form in which schemas are written.
const Version = 1

// Periods are the lengths of the cycles of a time, in seconds.
var Periods = map[string]float64{"year": 31556952, "week": 604800, "day": 86400}

// Schema is the columns of a model's features. Its JSON form is stable.
type Schema struct {
	Version int `json:"version"`
	// Nodes is how many the statistics were fitted on: all nodes of the training data,
	// labelled or not.
	Nodes   int      `json:"nodes"`
	Columns []Column `json:"columns"`
	// LeftOut are columns of the training data that are no features, with the reason.
	LeftOut []LeftOut `json:"left_out,omitempty"`
	// Roles are the other columns, by what they are: id, label, split, source, target, weight.
	Roles map[string]string `json:"roles,omitempty"`
	// Merge says what weight edges had that were listed more than once.
	Merge string `json:"merge,omitempty"`
	// Gaps, of an export, are what cells of tables of text hold, in any case, where a value is missing.
	Gaps []string `json:"gaps,omitempty"`
}

// LeftOut is a column that is no feature.
type LeftOut struct {
	Name   string `json:"name"`
	Reason string `json:"reason"`
}

// Column is a column of the data and what it becomes.
type Column struct {
	Name string `json:"name"`
	Kind Kind   `json:"kind"`
	// Missing tells that the training data have gaps: features say where.
	Missing bool `json:"missing,omitempty"`
	// Center and Scale of a number or time: the median, and the distance between the
	// quartiles, or the standard deviation where that is 0.
	Center float64 `json:"center,omitempty"`
	Scale  float64 `json:"scale,omitempty"`
	// Fill takes the place of a gap in a boolean: what is most frequent.
	Fill float64 `json:"fill,omitempty"`
	// Categories are the values that have a feature of their own, ascending; the empty
	// text stands for a gap.
	Categories []string `json:"categories,omitempty"`
	// Cycles of a time: keys of Periods.
	Cycles []string `json:"cycles,omitempty"`
}

// Features names the features that a column becomes, in their order.
func (c *Column) Features() []string {
	list := []string{c.Name}
	if c.Kind == Category {
		list = list[:0]
		for _, v := range c.Categories {
			list = append(list, c.Name+"="+v)
		}
		return append(list, c.Name+" other")
	}
	if c.Missing {
		list = append(list, c.Name+" missing")
	}
	for _, p := range c.Cycles {
		list = append(list, c.Name+" "+p+" sin", c.Name+" "+p+" cos")
	}
	return list
}

// Width is the number of features that a column becomes.
func (c *Column) Width() int {
	if c.Kind == Category {
		return len(c.Categories) + 1
	}
	n := 1 + 2*len(c.Cycles)
	if c.Missing {
		n++
	}
	return n
}

// Width is the number of features.
func (s *Schema) Width() int {
	n := 0
	for i := range s.Columns {
		n += s.Columns[i].Width()
	}
	return n
}

// Features names all features, [Width].
func (s *Schema) Features() []string {
	var list []string
	for i := range s.Columns {
		list = append(list, s.Columns[i].Features()...)
	}
	return list
}

// Prepared reports whether any feature differs from its column.
func (s *Schema) Prepared() bool {
	return slices.ContainsFunc(s.Columns, func(c Column) bool { return c.Kind != Value })
}

// Check refuses what no fit gives.
func (s *Schema) Check() error {
	if s.Version != Version {
		return fmt.Errorf("version %d of a schema of columns; this gsrc reads %d", s.Version, Version)
	}
	seen := map[string]bool{}
	for _, c := range s.Columns {
		bad := func(what string) error { return fmt.Errorf("the column %q %s", c.Name, what) }
		switch {
		case c.Name == "" || seen[c.Name]:
			return bad("is there twice, or has no name")
		case !slices.Contains(Kinds, c.Kind) || c.Kind == Ignore:
			return bad(fmt.Sprintf("is of the kind %q", c.Kind))
		case !finite(c.Center) || !finite(c.Scale) || !finite(c.Fill) || (c.Kind == Number || c.Kind == Time) && c.Scale <= 0:
			return bad("has statistics that are not finite, or a scale of 0")
		case !slices.IsSorted(c.Categories) || len(slices.Compact(slices.Clone(c.Categories))) != len(c.Categories):
			return bad("has categories that are not in order")
		case slices.ContainsFunc(c.Cycles, func(p string) bool { return Periods[p] == 0 }):
			return bad("has a cycle that is none")
		}
		seen[c.Name] = true
	}
	return nil
}

func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

// Values are those of one column, one for each row.
type Values struct {
	// Numbers of any kind but Category: booleans are 0 and 1, times seconds, a gap is NaN.
	Numbers []float64
	// Texts[Codes[i]] is the category of row i, empty at a gap.
	Codes []int32
	Texts []string
}

// Fit sets the statistics of a column whose name and kind are set.
func (c *Column) Fit(v Values) {
	if c.Kind == Category {
		c.fitCategories(v)
		return
	}
	known := make([]float64, 0, len(v.Numbers))
	ones := 0
	for _, x := range v.Numbers {
		if !math.IsNaN(x) {
			known = append(known, x)
			if x == 1 {
				ones++
			}
		}
	}
	c.Missing = len(known) < len(v.Numbers)
	switch c.Kind {
	case Boolean:
		if 2*ones > len(known) {
			c.Fill = 1
		}
	case Number, Time:
		slices.Sort(known)
		c.Center, c.Scale = quantile(known, 0.5), quantile(known, 0.75)-quantile(known, 0.25)
		if !(c.Scale > 0) {
			c.Scale = deviation(known)
		}
		if !(c.Scale > 0) || !finite(c.Scale) {
			c.Scale = 1
		}
		if c.Kind == Time {
			c.Cycles = cycles(known)
		}
	}
}

// Bounds of what a category may be to have a feature of its own.
const (
	mostCategories = 64
	rarest         = 1000 // a share of the rows: 1 of so many
)

func (c *Column) fitCategories(v Values) {
	count := make([]int, len(v.Texts))
	for _, k := range v.Codes {
		count[k]++
	}
	order := make([]int, len(v.Texts))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Or(count[b]-count[a], cmp.Compare(v.Texts[a], v.Texts[b])) })
	c.Missing = false
	for _, i := range order {
		switch {
		case v.Texts[i] == "":
			if count[i] > 0 {
				c.Missing = true
				c.Categories = append(c.Categories, "")
			}
		case count[i]*rarest >= len(v.Codes) && len(c.Categories) < mostCategories:
			c.Categories = append(c.Categories, v.Texts[i])
		}
	}
	slices.Sort(c.Categories)
}

// RareShare is the largest share of the rows of its training that a value of a category can have had without a
// feature of its own: 0 where each value had one. nodes are the rows, 0 where that is not known.
func (c *Column) RareShare(nodes int) float64 {
	switch n := len(c.Categories); {
	case n >= mostCategories:
		return 1 / float64(n)
	case 0 < nodes && nodes <= rarest:
		return 0
	}
	return 1. / rarest
}

// quantile interpolates between the values of an ascending list; 0 if it is empty.
func quantile(sorted []float64, q float64) float64 {
	if len(sorted) == 0 {
		return 0
	}
	at := float64(q * float64(len(sorted)-1))
	i := min(int(at), len(sorted)-1)
	lo, hi := sorted[i], sorted[min(i+1, len(sorted)-1)]
	return lo + float64((hi-lo)*(at-float64(i)))
}

func deviation(list []float64) float64 {
	if len(list) == 0 {
		return 0
	}
	n, mean, sum := float64(len(list)), 0.0, 0.0
	for _, x := range list {
		mean += x / n
	}
	for _, x := range list {
		sum += float64((x-mean)*(x-mean)) / n
	}
	return math.Sqrt(sum)
}

// cycles are those that times, ascending, can show.
func cycles(sorted []float64) (list []string) {
	if len(sorted) == 0 {
		return nil
	}
	const day = 86400
	span := sorted[len(sorted)-1] - sorted[0]
	if span >= Periods["year"] {
		list = append(list, "year")
	}
	if span >= 14*day {
		list = append(list, "week")
	}
	if span >= 2*day && slices.ContainsFunc(sorted, func(x float64) bool { return math.Mod(x, day) != 0 }) {
		list = append(list, "day")
	}
	return list
}

// Codes returns the number of the feature that each text of v has among those of the
// column.
func (c *Column) Codes(v Values) []int32 {
	codes := make([]int32, len(v.Texts))
	for i, text := range v.Texts {
		k, ok := slices.BinarySearch(c.Categories, text)
		if !ok {
			k = len(c.Categories)
		}
		codes[i] = int32(k)
	}
	return codes
}

// Put writes the features of a value x of a column that is no Category, [Width]; x is NaN
// at a gap.
func (c *Column) Put(out []float32, x float64) {
	gap := math.IsNaN(x)
	at := 1
	if c.Missing {
		out[1] = 0
		if gap {
			out[1] = 1
		}
		at = 2
	}
	switch {
	case c.Kind == Value, c.Kind == Boolean && !gap:
		out[0] = float32(x)
	case c.Kind == Boolean:
		out[0] = float32(c.Fill)
	case gap:
		out[0] = 0
	default:
		out[0] = float32(min(max((x-c.Center)/c.Scale, -Clip), Clip))
	}
	for _, p := range c.Cycles {
		out[at], out[at+1] = 0, 0
		if !gap {
			turns := x / Periods[p]
			turns -= math.Floor(turns)
			out[at], out[at+1] = float32(fmath.CosTurns(turns-0.25)), float32(fmath.CosTurns(turns))
		}
		at += 2
	}
}

// About tells in a few words what the column is.
func (c *Column) About() string {
	text := string(c.Kind)
	switch c.Kind {
	case Number:
		text += fmt.Sprintf(", median %.6g, scale %.6g", c.Center, c.Scale)
	case Time:
		text += fmt.Sprintf(", median %s", time.Unix(int64(c.Center), 0).UTC().Format(time.DateOnly))
		if len(c.Cycles) > 0 {
			text += ", cycles of a " + strings.Join(c.Cycles, ", a ")
		}
	case Category:
		text += fmt.Sprintf(", %d values, and one for all others", len(c.Categories))
	}
	if c.Missing {
		text += ", with gaps"
	}
	return text
}

// Summary tells in a line how many columns of each kind there are, and of how many nodes.
func (s *Schema) Summary() string {
	count := map[Kind]int{}
	for _, c := range s.Columns {
		count[c.Kind]++
	}
	if !s.Prepared() {
		return fmt.Sprintf("%d columns, left as they are", len(s.Columns))
	}
	var parts []string
	for _, k := range Kinds {
		if n := count[k]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, k))
		}
	}
	return fmt.Sprintf("%d columns (%s) become %d features; statistics of all %d nodes", len(s.Columns), strings.Join(parts, ", "), s.Width(), s.Nodes)
}
