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
		Files    string `json:"files,omitempty"` // before edges were changed in reading; empty in reports of earlier versions
	} `json:"data"`
	Seed   int    `json:"seed"`
	Config string `json:"config,omitempty"` // file of options
	// FromConfig are the options that the file had when the run began, over which those of candidates
	// and Set go; null where there is no file, and in reports of earlier versions.
	FromConfig []string `json:"from_config,omitzero"`
	Set        []string `json:"set"`
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
	// Seal has the checksum of the file; earlier versions wrote none.
	Seal struct {
		Checksum string `json:"checksum"`
	} `json:"seal,omitzero"`
}

// Limit is how much may run, and on what.
type Limit struct {
	Trials  int     `json:"trials,omitempty"`
	Minutes float64 `json:"minutes,omitempty"`
	Threads int     `json:"threads,omitempty"`
	Device  string  `json:"device,omitempty"`
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
	// Points of accuracy that refinement brings, whatever measure candidates are compared by, and half of their 95 % interval over the nodes.
	Points float64 `json:"points"`
	Half   float64 `json:"half_interval"`
	Nodes  int     `json:"nodes"`
	Text   string  `json:"text"`
	// Undirected tells that both read edges without the directions that they have in the data.
	Undirected bool `json:"undirected,omitempty"`
}

// against is how many points more one of two models has on nodes of which each classifies these
// correctly, and half of the 95 % interval of that.
func against(one, other []bool) (points, half float64) {
	d := make([]float64, len(one))
	for i := range d {
		if one[i] {
			d[i] += 100
		}
		if other[i] {
			d[i] -= 100
		}
	}
	if len(d) > 1 {
		half = rounded(1.96 * deviation(d) / math.Sqrt(float64(len(d))))
	}
	return rounded(mean(d)), half
}

// compare judges refinement, and the winner, by the nodes that each model classifies correctly.
func (r *Refinement) compare(on, asIs, chosen []bool, winner *Candidate) {
	r.Nodes = len(on)
	r.Points, r.Half = against(on, asIs)
	without := ""
	if r.Undirected {
		without = ", without directions"
	}
	brings := fmt.Sprintf("refinement brings %+.1f ± %.1f points of accuracy over the same classifier on your graph%s (%s; %d nodes that did not choose)", r.Points, r.Half, without, r.Candidate, r.Nodes)
	sure, worse := r.Points > r.Half, r.Points < -r.Half
	if !sure && !worse {
		brings += ", no more than chance"
	}
	switch {
	case winner.Structure == refined && sure:
		r.Text = brings
	case winner.Structure == refined:
		r.Text = "refinement was chosen on validation nodes, and gains nothing on others: " + brings
	case sure:
		points, half := against(chosen, on)
		r.Text = fmt.Sprintf("%s; %s, which was chosen, has %+.1f ± %.1f points against it there", brings, winner.Name, points, half)
	case winner.Structure == rewired:
		r.Text = fmt.Sprintf("%s reads your edges as their features change them; %s", winner.Name, brings)
	case winner.Structure != raw:
		r.Text = fmt.Sprintf("%s reads none of your edges; %s", winner.Name, brings)
	case worse:
		r.Text = "your graph is better left as it is: " + brings
	default:
		r.Text = brings + ": your graph may as well be left as it is"
	}
}

// changed says what keeps a search from going on with the scores of an earlier part; it is empty where nothing does.
func (r *Report) changed(earlier *Report) string {
	same := func(a, b *Candidate) bool { return a.Name == b.Name && slices.Equal(a.Set, b.Set) }
	switch {
	case r.Data.Checksum != earlier.Data.Checksum:
		return fmt.Sprintf("%s is not what the search began with (its checksum is %.12s…, that was %.12s…)", r.Data.Source, r.Data.Checksum, earlier.Data.Checksum)
	case r.Seed != earlier.Seed:
		return fmt.Sprintf("the seed is %d, and was %d", r.Seed, earlier.Seed)
	case slices.EqualFunc(r.Candidates, earlier.Candidates, same):
		return ""
	case r.Version != earlier.Version:
		return fmt.Sprintf("gsrc %s has other candidates than %s, which began the search and alone goes on with it", r.Version, earlier.Version)
	}
	return "the options have changed, and with them the candidates"
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
