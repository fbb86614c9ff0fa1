package auto

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/gsrc-dev/gsrc/train/checkpoint"
)

// File is what [Train] leaves in the run directory: a [Report].
const File = checkpoint.AutoFile

// Report is auto.json: what was looked at, what was tried, and what came of it. Two runs with
// the same data, options, seed and number of trials leave the same bytes.
type Report struct {
	SchemaVersion int    `json:"schema_version"`
	Version       string `json:"version"`
	Status        string `json:"status"` // choosing, training or done
	Data          struct {
		Name     string `json:"name"`
		Source   string `json:"source"`
		Checksum string `json:"checksum"`
	} `json:"data"`
	Seed   int      `json:"seed"`
	Config string   `json:"config,omitempty"` // file of options
	Set    []string `json:"set"`
	// Limit is what a run that has not ended was given.
	Limit *Limit `json:"limit,omitempty"`

	Seen       Seen         `json:"seen"`
	Candidates []*Candidate `json:"candidates"` // in the order in which they run
	// Trials is how many trainings the choice rests on. With as many as --trials it is made
	// again, also where --minutes had cut it off; Complete is whether nothing was.
	Trials   int     `json:"trials"`
	Complete bool    `json:"complete"`
	Choice   *Choice `json:"choice,omitempty"`
	// Refinement is null where the graph cannot be refined, or no such candidate has run.
	Refinement *Refinement `json:"refinement,omitempty"`
}

// Limit is how much may run.
type Limit struct {
	Trials  int     `json:"trials,omitempty"`
	Minutes float64 `json:"minutes,omitempty"`
	// Seconds that have gone into the run so far, and that the slowest trainings took of a
	// simple candidate and of any.
	Seconds float64 `json:"seconds"`
	Simple  float64 `json:"slowest_simple"`
	Slowest float64 `json:"slowest"`
}

// Refinement holds a classifier on the refined graph against the same one on the graph as it
// is, both trained with the given split, on nodes that took no part in any choice.
type Refinement struct {
	Candidate string `json:"candidate"`
	// Points that refinement brings, and half of their 95 % interval over the nodes.
	Points float64 `json:"points"`
	Half   float64 `json:"half_interval"`
	Nodes  int     `json:"nodes"`
	Text   string  `json:"text"`
}

// compare judges two models by the nodes that each classifies correctly.
func (r *Refinement) compare(on, asIs []bool, winner *Candidate) {
	d := make([]float64, len(on))
	for i := range d {
		if on[i] {
			d[i] += 100
		}
		if asIs[i] {
			d[i] -= 100
		}
	}
	r.Nodes, r.Points, r.Half = len(d), rounded(mean(d)), 0
	if len(d) > 1 {
		r.Half = rounded(1.96 * deviation(d) / math.Sqrt(float64(len(d))))
	}
	brings := fmt.Sprintf("%+.1f ± %.1f points over the same classifier on your graph (%s; %d nodes that did not choose)", r.Points, r.Half, r.Candidate, r.Nodes)
	sure := r.Points > r.Half
	switch {
	case winner.Structure == refined && sure:
		r.Text = "refinement brings " + brings
	case winner.Structure == refined:
		r.Text = "refinement was chosen on validation nodes, and brings no more than chance explains: " + brings
	case sure:
		r.Text = fmt.Sprintf("refinement brings %s, and %s is better still", brings, winner.Name)
	case winner.Structure == rewired:
		r.Text = fmt.Sprintf("%s reads your edges as their features change them; refinement brings %s", winner.Name, brings)
	case winner.Structure != raw:
		r.Text = fmt.Sprintf("%s reads none of your edges; refinement brings %s", winner.Name, brings)
	default:
		r.Text = "your graph is better left as it is: refinement brings " + brings
	}
}

// Leaderboard is the list of candidates, those with the most resplits and the best mean first.
func (r *Report) Leaderboard() string {
	order := slices.Clone(r.Candidates)
	slices.SortStableFunc(order, func(a, b *Candidate) int {
		return cmp.Or(len(b.Scores)-len(a.Scores), cmp.Compare(mean(b.Scores), mean(a.Scores)))
	})
	var b strings.Builder
	for _, c := range order {
		mark, score := " ", ""
		if r.Choice != nil && c.Name == r.Choice.Winner {
			mark = "*"
		}
		switch n := len(c.Scores); {
		case n > 1:
			score = fmt.Sprintf("%6.2f ± %5.2f %%", mean(c.Scores), interval(c.Scores))
		case n == 1:
			score = fmt.Sprintf("%6.2f %%", c.Scores[0])
		}
		more := resplits(len(c.Scores))
		if c.Failed != "" {
			more += ", failed: " + c.Failed
		}
		fmt.Fprintf(&b, "%s %-42s %-17s %s\n", mark, c.Name, score, more)
	}
	return b.String()
}
