package auto

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

// Candidates are chosen by successive halving over resplits (Jamieson and Talwalkar 2016).
// The list of trainings is one sequence, which a limit only cuts off: what runs next depends
// on the scores of what ran before, and never on how much will.

// ladder is how many resplits candidates have run on at the end of each rung: in the first one
// simple candidates, in the second the others, then the better third of all, of these the
// better third, and so on.
type ladder []int

// newLadder is for resplits that have so many nodes to compare candidates on. Where these are few
// there is a further rung, until a thousand have been judged: what is left of the choice's noise is
// that of the nodes, and small graphs train quickly.
func newLadder(nodes int) ladder {
	l := ladder{2, 2, 5, 10}
	if more := min((1000+nodes-1)/nodes, 40); more > 10 {
		l = append(l, more)
	}
	return l
}

// restarts is how often the winner is trained on the given split at most, each time from other initial
// parameters: what it learns from few labels depends on them. On splits drawn anew with 1 % of the labels of Cora and
// Citeseer the best of four on validation nodes has 0.2 and 0.4 points more than their mean, of random propagation,
// self-trained, and 3.1 and 2.7 of sage; with 5 % 0.1 and 0.1, 0.7 and 0.4, with 10 % of Citeseer's −0.2 and 0.2.
const restarts = 4

// leastResplits is how many there must be for a candidate that is not simple to win.
const leastResplits = 5

// fit is a training: a candidate on a resplit, or, where that is -1, from another beginning on the given split.
type fit struct {
	c                *Candidate
	resplit, restart int
}

// entrants are the candidates of a rung, in the order of the list. They follow from scores
// of earlier rungs alone.
func (upTo ladder) entrants(list []*Candidate, rung int) []*Candidate {
	if rung < 2 {
		return slices.DeleteFunc(slices.Clone(list), func(c *Candidate) bool { return c.Simple != (rung == 0) })
	}
	need := upTo[rung-1]
	before := list
	if rung > 2 {
		before = upTo.entrants(list, rung-1)
	}
	in := slices.DeleteFunc(slices.Clone(before), func(c *Candidate) bool { return len(c.Scores) < need })
	order := ranked(in, need)
	keep := order[:min(len(order), max(2, (len(in)+2)/3))]
	for _, simple := range []bool{true, false} { // the best of each kind stays to compare with
		if i := slices.IndexFunc(order, func(c *Candidate) bool { return c.Simple == simple }); i >= len(keep) {
			keep = append(slices.Clone(keep), order[i])
		}
	}
	return slices.DeleteFunc(in, func(c *Candidate) bool { return !slices.Contains(keep, c) })
}

// fits are the trainings that a rung lacks: every candidate on a resplit before any on the
// next. Behind the last rung are the winner's restarts.
func (upTo ladder) fits(list []*Candidate, rung int) []fit {
	var out []fit
	if rung == len(upTo) {
		if winner, _ := upTo.choose(list); winner != nil {
			for k := len(winner.Restarts); k < restarts; k++ {
				out = append(out, fit{winner, -1, k})
			}
		}
		return out
	}
	in := upTo.entrants(list, rung)
	for r := range upTo[rung] {
		for _, c := range in {
			if c.Failed == "" && r >= len(c.Scores) {
				out = append(out, fit{c, r, 0})
			}
		}
	}
	return out
}

// ranked orders candidates by the mean of their first n scores, the best first, and equal
// ones by the list.
func ranked(in []*Candidate, n int) []*Candidate {
	out := slices.Clone(in)
	slices.SortStableFunc(out, func(a, b *Candidate) int {
		return cmp.Compare(mean(b.Scores[:n]), mean(a.Scores[:n]))
	})
	return out
}

// Choice is the outcome.
type Choice struct {
	Winner string `json:"winner"`
	// Text says why.
	Text     string `json:"text"`
	Resplits int    `json:"resplits"`          // by which it was chosen
	Restart  int    `json:"restart,omitempty"` // which beginning is kept: it is added to train.restart
	// NewNodes is whether an export of the winner classifies nodes that training has not seen.
	NewNodes bool `json:"new_nodes"`
}

// choose finds the winner of what has run so far, by the last rung that any training of
// has ended in, and the best of its restarts; nil where none has.
func (upTo ladder) choose(list []*Candidate) (*Candidate, *Choice) {
	winner, choice := upTo.compare(list)
	if winner != nil && len(winner.Restarts) > 0 {
		choice.Restart = slices.Index(winner.Restarts, slices.Max(winner.Restarts))
	}
	return winner, choice
}

func (upTo ladder) compare(list []*Candidate) (*Candidate, *Choice) {
	var pool []*Candidate
	simply := slices.ContainsFunc(list, func(c *Candidate) bool { return c.Simple && c.Failed == "" && len(c.Scores) > 0 })
	n := 0
	for rung := len(upTo) - 1; rung >= 0 && n == 0; rung-- {
		if rung == 1 && simply { // others than simple ones wait for more resplits
			continue
		}
		pool, n = nil, math.MaxInt
		least := 0
		if rung > 1 {
			least = upTo[rung-1]
		}
		begun := false
		for _, c := range upTo.entrants(list, rung) {
			if c.Failed == "" && len(c.Scores) > 0 {
				pool, n = append(pool, c), min(n, len(c.Scores))
				begun = begun || len(c.Scores) > least
			}
		}
		if !begun {
			n = 0
		}
	}
	if n == 0 {
		return nil, nil
	}
	var simple, other *Candidate
	for _, c := range ranked(pool, n) {
		switch {
		case c.Simple && simple == nil:
			simple = c
		case !c.Simple && other == nil:
			other = c
		}
	}
	if simple == nil {
		simple, other = other, nil
	}
	if other == nil {
		return simple, &Choice{Winner: simple.Name, Text: fmt.Sprintf("%s is the best of those that ran on %s", simple.Name, resplits(n)), Resplits: n}
	}
	if n < leastResplits {
		return simple, &Choice{Winner: simple.Name, Text: fmt.Sprintf("%s is the best simple candidate; others win by no fewer than %s", simple.Name, resplits(leastResplits)), Resplits: n}
	}
	diff := make([]float64, n)
	for i := range diff {
		diff[i] = other.Scores[i] - simple.Scores[i]
	}
	d, se := mean(diff), deviation(diff)/math.Sqrt(float64(n))
	winner, is := simple, "not more than"
	if d > se {
		winner, is = other, "more than"
	}
	return winner, &Choice{Winner: winner.Name, Resplits: n,
		Text: fmt.Sprintf("%s has %+.2f points against the best simple candidate, %s, over %s, %s one standard error (%.2f)", other.Name, rounded(d)+0, simple.Name, resplits(n), is, se)}
}

func resplits(n int) string {
	if n == 1 {
		return "1 resplit"
	}
	return fmt.Sprintf("%d resplits", n)
}

// mean and deviation (of the sample) add up in order, so that a choice is the same on every
// processor.
func mean(v []float64) float64 {
	sum := 0.0
	for _, x := range v {
		sum += x
	}
	return sum / float64(len(v))
}

func deviation(v []float64) float64 {
	m, sum := mean(v), 0.0
	for _, x := range v {
		sum += float64((x - m) * (x - m))
	}
	return math.Sqrt(sum / float64(len(v)-1))
}

// quantiles97 are those of Student's t for 0.975 by degrees of freedom, from 1.
var quantiles97 = [...]float64{12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262}

// interval is half of the 95 % interval of the mean of two values or more.
func interval(v []float64) float64 {
	nu := len(v) - 1
	const z = 1.959964
	const w = z * z
	f := float64(nu) // Cornish and Fisher's expansion, to 0.001 from ten on
	t := z + z*(w+1)/(4*f) + z*(5*w*w+16*w+3)/(96*f*f) + z*(3*w*w*w+19*w*w+17*w-15)/(384*f*f*f)
	if nu <= len(quantiles97) {
		t = quantiles97[nu-1]
	}
	return t * deviation(v) / math.Sqrt(float64(len(v)))
}
