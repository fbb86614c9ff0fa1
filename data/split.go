package data

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/gsrc-dev/gsrc/rng"
)

// Split says which nodes a model is trained, chosen and judged on: three lists
// of node numbers, ascending, disjoint, of labelled nodes only.
type Split struct {
	Train, Val, Test []int32
	// Outer are nodes whose labels decide how the model is trained on those of Train, nil
	// where the model has no use for them.
	Outer []int32
}

// Halved returns the split with every second validation node in Outer.
func (s Split) Halved() Split {
	var kept []int32
	s.Outer = nil
	for i, v := range s.Val {
		if i%2 == 1 {
			s.Outer = append(s.Outer, v)
		} else {
			kept = append(kept, v)
		}
	}
	s.Val = kept
	return s
}

// SplitSpec asks for splits to be drawn. The zero value asks for none.
type SplitSpec struct {
	// PerClass trains on Train nodes of each class, as Planetoid's public
	// splits do. Then Val and Test nodes are drawn from the rest; Test -1 takes
	// all that is left.
	PerClass         bool
	Train, Val, Test int

	// Fractions are the shares of the labelled nodes for training, validation
	// and test, where PerClass is false.
	Fractions [3]float64

	// Ratio, if not 0, is the share of the labelled nodes to train on. They are
	// drawn in proportion to the classes, at least one of each, from the nodes that
	// are neither validation nor test nodes of the split that comes with the data;
	// those two parts stay.
	Ratio float64

	// Time, if not empty, is the column of a table of nodes that has times: the earliest
	// share Fractions[0] of the labelled nodes are trained on, the next Fractions[1] are for
	// validation, and the latest are for test. Fractions has these two.
	Time string

	// Column, if not empty, is the column of a table of nodes that has the split: nothing
	// is drawn.
	Column string
}

// ParseSplit reads "per-class:TRAIN,VAL,TEST" (TEST may be "rest"),
// "random:TRAIN,VAL,TEST" with fractions that add up to at most 1, or
// "ratio:TRAIN", "time:COLUMN,TRAIN,VAL" with the fractions of the earliest nodes and of
// those after them, or "column:NAME" or just the name of a column. The empty text gives nil.
func ParseSplit(text string) (*SplitSpec, error) {
	if text == "" {
		return nil, nil
	}
	s := &SplitSpec{}
	if err := s.parse(text); err != nil {
		return nil, fmt.Errorf("split %s: %w; write for example per-class:20,500,1000, random:0.6,0.2,0.2 or ratio:0.05", quote(text), err)
	}
	return s, nil
}

func (s *SplitSpec) parse(text string) (err error) {
	kind, rest, ok := strings.Cut(text, ":")
	parts := strings.Split(rest, ",")
	switch {
	case kind == "column" && rest != "":
		s.Column = rest
		return nil
	case !ok && !slices.Contains([]string{"per-class", "random", "ratio", "column", "time"}, kind):
		s.Column = text
		return nil
	case ok && kind == "ratio":
		if s.Ratio, err = strconv.ParseFloat(strings.TrimSpace(rest), 64); err != nil || !(s.Ratio > 0 && s.Ratio < 1) {
			return fmt.Errorf("%s is not a share of the nodes to train on", quote(rest))
		}
		return nil
	case ok && kind == "time":
		last := len(parts) - 2
		if last < 1 {
			return errors.New("expected time:COLUMN,TRAIN,VAL")
		}
		s.Time = strings.Join(parts[:last], ",")
		return s.parseFractions(parts[last:], 2)
	case !ok || len(parts) != 3:
		return errors.New("expected a kind, a colon and three numbers")
	case kind == "random":
		return s.parseFractions(parts, 1)
	case kind != "per-class":
		return fmt.Errorf("%s is not a kind of split", quote(kind))
	}
	s.PerClass = true
	for i, p := range []*int{&s.Train, &s.Val, &s.Test} {
		word := strings.TrimSpace(parts[i])
		if i == 2 && word == "rest" {
			s.Test = -1
			break
		}
		n, err := strconv.ParseInt(word, 10, 32)
		if err != nil || n < 0 || (i == 0 && n == 0) {
			return fmt.Errorf("%s is not a number of nodes", quote(word))
		}
		*p = int(n)
	}
	return nil
}

// parseFractions reads those of the nodes, of which some at the beginning may not be 0.
func (s *SplitSpec) parseFractions(words []string, some int) error {
	sum := 0.0
	for i, word := range words {
		v, err := strconv.ParseFloat(strings.TrimSpace(word), 64)
		if err != nil || !(v >= 0 && v <= 1) || i < some && v == 0 {
			return fmt.Errorf("%s is not a fraction of the nodes", quote(word))
		}
		s.Fractions[i] = v
		sum += v
	}
	if sum > 1+1e-9 {
		return fmt.Errorf("the fractions add up to %g, more than all nodes", sum)
	}
	return nil
}

// String writes the specification as ParseSplit reads it.
func (s *SplitSpec) String() string {
	switch {
	case s == nil:
		return ""
	case s.Column != "":
		return "column:" + s.Column
	case s.Time != "":
		return fmt.Sprintf("time:%s,%g,%g", s.Time, s.Fractions[0], s.Fractions[1])
	case s.Ratio > 0:
		return fmt.Sprintf("ratio:%g", s.Ratio)
	case s.PerClass && s.Test < 0:
		return fmt.Sprintf("per-class:%d,%d,rest", s.Train, s.Val)
	case s.PerClass:
		return fmt.Sprintf("per-class:%d,%d,%d", s.Train, s.Val, s.Test)
	}
	return fmt.Sprintf("random:%g,%g,%g", s.Fractions[0], s.Fractions[1], s.Fractions[2])
}

// Draw draws a split of the labelled nodes (labels ≥ 0, below classes). The
// same labels and seed give the same split. One with a Ratio keeps parts of a
// split that is given: [Dataset.SplitFor] draws it.
func (s *SplitSpec) Draw(labels []int32, classes int, seed uint64) (Split, error) {
	return s.draw(labels, classes, nil, seed)
}

// draw is Draw where classes have names, nil if they have none.
func (s *SplitSpec) draw(labels []int32, classes int, names []string, seed uint64) (Split, error) {
	if s.Column != "" {
		return Split{}, fmt.Errorf("the split is in the column %s, which is read with the table of nodes", quote(s.Column))
	}
	if s.Time != "" {
		return Split{}, fmt.Errorf("the split goes by the column %s, which is read with the table of nodes", quote(s.Time))
	}
	if s.Ratio > 0 {
		return s.drawTraining(Split{}, labels, classes, seed)
	}
	stream := rng.New(seed, "data.split")
	if !s.PerClass {
		nodes := labelled(labels)
		shuffle(nodes, stream)
		n := float64(len(nodes))
		a := int(math.Round(n * s.Fractions[0]))
		b := int(math.Round(n * (s.Fractions[0] + s.Fractions[1])))
		c := int(math.Round(n * min(1, s.Fractions[0]+s.Fractions[1]+s.Fractions[2])))
		out := Split{Train: nodes[:a], Val: nodes[a:b], Test: nodes[b:c]}
		if i := out.lacks(s.Fractions); i >= 0 {
			return Split{}, fmt.Errorf("split %s of %d labelled nodes leaves the %s part empty", s, len(nodes), partNames[i])
		}
		return out.sorted(), nil
	}
	var out Split
	var rest []int32
	for c, nodes := range byClass(labelled(labels), labels, classes) {
		if len(nodes) < s.Train {
			return Split{}, fmt.Errorf("split %s: class %s has %d labelled nodes; ask for fewer, or use random:0.6,0.2,0.2", s, className(names, c), len(nodes))
		}
		shuffle(nodes, stream.Sub("class").At(uint64(c)))
		out.Train = append(out.Train, nodes[:s.Train]...)
		rest = append(rest, nodes[s.Train:]...)
	}
	slices.Sort(rest)
	shuffle(rest, stream.Sub("rest"))
	test := s.Test
	if test < 0 {
		test = max(0, len(rest)-s.Val)
	}
	if s.Val+test > len(rest) {
		return Split{}, fmt.Errorf("split %s needs %d nodes beside the training nodes; %d labelled ones are left", s, s.Val+test, len(rest))
	}
	out.Val, out.Test = rest[:s.Val], rest[s.Val:s.Val+test]
	return out.sorted(), nil
}

// byTime splits the labelled nodes whose time is known by their times. Nodes of one time are
// in one part, the earlier one.
func (s *SplitSpec) byTime(labels []int32, times []float64) (Split, error) {
	nodes := slices.DeleteFunc(labelled(labels), func(v int32) bool { return math.IsNaN(times[v]) })
	slices.SortStableFunc(nodes, func(a, b int32) int { return cmp.Compare(times[a], times[b]) })
	cut := func(share float64) int {
		i := min(len(nodes), int(math.Round(float64(len(nodes))*min(1, share))))
		for i > 0 && i < len(nodes) && times[nodes[i]] == times[nodes[i-1]] {
			i++
		}
		return i
	}
	a, b := cut(s.Fractions[0]), cut(s.Fractions[0]+s.Fractions[1])
	out := Split{Train: nodes[:a:a], Val: nodes[a:b:b], Test: nodes[b:]}
	shares := [3]float64{s.Fractions[0], s.Fractions[1], 1 - s.Fractions[0] - s.Fractions[1]}
	if i := out.lacks(shares); i >= 0 {
		return Split{}, fmt.Errorf("split %s of %d labelled nodes with a time leaves the %s part empty; nodes of one time stay together", s, len(nodes), partNames[i])
	}
	return out.sorted(), nil
}

// drawTraining draws the training nodes of a split with a Ratio; fixed has its
// other parts.
func (s *SplitSpec) drawTraining(fixed Split, labels []int32, classes int, seed uint64) (Split, error) {
	left := slices.Clone(labels)
	for _, v := range slices.Concat(fixed.Val, fixed.Test) {
		left[v] = -1
	}
	known, free := len(labelled(labels)), labelled(left)
	groups, counts, present := byClass(free, labels, classes), make([]int, classes), 0
	for c, nodes := range groups {
		counts[c] = min(1, len(nodes))
		present += counts[c]
	}
	total := int(math.Round(s.Ratio * float64(known)))
	switch {
	case total > len(free):
		return Split{}, fmt.Errorf("split %s asks for %d of the %d labelled nodes; %d are neither validation nor test nodes", s, total, known, len(free))
	case total < present:
		return Split{}, fmt.Errorf("split %s asks for %d of the %d labelled nodes, fewer than one of each of the %d classes", s, total, known, present)
	}
	// Every class has one; each further one goes to the class that is furthest
	// below its share, the first of equal ones.
	for range total - present {
		most, at := math.Inf(-1), 0
		for c, nodes := range groups {
			if missing := float64(total)*float64(len(nodes))/float64(len(free)) - float64(counts[c]); missing > most && counts[c] < len(nodes) {
				most, at = missing, c
			}
		}
		counts[at]++
	}
	stream := rng.New(seed, "data.split").Sub("ratio")
	out := Split{Val: fixed.Val, Test: fixed.Test}
	for c, nodes := range groups {
		shuffle(nodes, stream.At(uint64(c)))
		out.Train = append(out.Train, nodes[:counts[c]]...)
	}
	return out.sorted(), nil
}

var partNames = [3]string{"train", "val", "test"}

// parts are the lists of nodes, in the order of partNames.
func (s *Split) parts() [3]*[]int32 { return [3]*[]int32{&s.Train, &s.Val, &s.Test} }

// lacks returns the first part that is empty although a share of the nodes is asked for it, -1 if
// there is none.
func (s *Split) lacks(shares [3]float64) int {
	for i, p := range s.parts() {
		if len(*p) == 0 && shares[i] > 1e-9 {
			return i
		}
	}
	return -1
}

// labelled returns the nodes or graphs whose class is known.
func labelled(labels []int32) []int32 {
	var out []int32
	for v, c := range labels {
		if c >= 0 {
			out = append(out, int32(v))
		}
	}
	return out
}

// byClass returns those of labelled nodes or graphs that are of each class.
func byClass(nodes, labels []int32, classes int) [][]int32 {
	out := make([][]int32, classes)
	for _, v := range nodes {
		if c := int(labels[v]); c < classes {
			out[c] = append(out[c], v)
		}
	}
	return out
}

func shuffle(nodes []int32, s rng.Stream) {
	old := slices.Clone(nodes)
	for i, j := range s.Perm(len(nodes)) {
		nodes[i] = old[j]
	}
}

// sorted returns the split with its lists copied and sorted.
func (s Split) sorted() Split {
	for _, p := range s.parts() {
		*p = slices.Clone(*p)
		slices.Sort(*p)
	}
	return s
}

// check verifies that a split's lists are ascending, disjoint and of labelled
// nodes.
func (s Split) check(labels []int32) error {
	part := make([]int8, len(labels))
	for i, p := range s.parts() {
		nodes := *p
		for k, v := range nodes {
			switch {
			case v < 0 || int(v) >= len(labels):
				return fmt.Errorf("the %s split has node %d, nodes are numbered 0 to %d", partNames[i], v, len(labels)-1)
			case labels[v] < 0:
				return fmt.Errorf("the %s split has node %d, which has no label", partNames[i], v)
			case part[v] != 0:
				return fmt.Errorf("node %d is in both the %s and the %s split", v, partNames[part[v]-1], partNames[i])
			case k > 0 && nodes[k-1] >= v:
				return fmt.Errorf("the %s split is not in ascending order at node %d", partNames[i], v)
			}
			part[v] = int8(i + 1)
		}
	}
	return nil
}
