package sweep

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/gsrc-dev/gsrc"
	"github.com/gsrc-dev/gsrc/config"
	"github.com/gsrc-dev/gsrc/lab"
	"github.com/gsrc-dev/gsrc/rng"
)

// Search looks for the setting of a model that is the best on a data set's validation
// nodes: in what train.select keeps epochs by, which is accuracy unless the data's defaults
// or the trials set it. Test accuracies take no part in it.
//
// Half of the trials are drawn from the space, the first being the defaults. All
// run with the seeds of the first rung; the best third of them with those of the
// second rung too, and so on: successive halving (Jamieson and Talwalkar, 2016) with
// seeds as the budget. The other half is drawn near the best of the first, and
// goes the same way. The last rung has the best of both halves, and the defaults.
//
// Of the trials on the last rung that with the best mean wins; the defaults win
// where it is better than they are by less than one standard error of the paired
// differences. Equal means are ordered by the memory that training takes, then
// by the order of the trials.
//
// Every draw is from a stream of the seed, the trial and the option, so that a
// search gives the same for any number of workers, and one that was stopped goes
// on with the store's records.
type Search struct {
	Model, Data string
	Set         []string // options of all trials, as key=value; the search leaves them alone
	Space       *Space   // nil is DefaultSpace of the model
	Trials      int      // at least 1
	Seed        uint64   // of the draws, not of the runs
	// Rungs is how many seeds a trial has had after each rung, in rising order;
	// empty is DefaultRungs(10).
	Rungs []int
	// Runner runs the trials; nil is &Runner{}. Its Shard must be the whole.
	Runner *Runner
	// Stage, if not nil, is called when a rung begins.
	Stage func(text string)
	// Warn, if not nil, gets a sentence for each option of Set and Space, but not of a
	// built-in space, that has no effect in any setting.
	Warn func(text string)
}

// DefaultRungs are those of a search that judges the last trials with that many
// seeds: 1, 3 and that.
func DefaultRungs(seeds int) []int {
	var rungs []int
	for _, n := range []int{1, 3} {
		if n < seeds {
			rungs = append(rungs, n)
		}
	}
	return append(rungs, seeds)
}

// keepOf: one of this many trials reaches the next rung.
const keepOf = 3

// Trial is one setting of a search.
type Trial struct {
	Number  int      // from 0; 0 has the defaults
	Set     []string // what the space decides, as key=value
	Records []*Record

	at point
	// measure is train.select of all trials; where they differ, accuracy.
	measure string
}

// Failed reports whether a run of the trial did.
func (t *Trial) Failed() bool {
	return slices.ContainsFunc(t.Records, func(r *Record) bool { return r.Failed() })
}

// Val are the validation accuracies so far, in the order of seeds, in percent.
func (t *Trial) Val() []float64 {
	var v []float64
	for _, r := range t.Records {
		if r.Failed() {
			return nil
		}
		v = append(v, r.Result.ValAcc)
	}
	return v
}

// scores are what trials are compared by so far, in the order of seeds, higher being
// better: validation accuracy or macro-F1 in percent, AUC in percent, or loss in nats
// with its sign changed.
func (t *Trial) scores() []float64 {
	v := t.Val()
	for i := range v {
		switch r := t.Records[i].Result.Val; {
		case t.measure == "loss":
			v[i] = -r.NLL
		case t.measure == "macro_f1":
			v[i] = r.MacroF1
		case t.measure == "auc" && r.AUC != nil: // there is one: training refuses to select by it otherwise
			v[i] = *r.AUC
		}
	}
	return v
}

// mean is the mean of scores; -Inf for a trial that failed or has not run.
func (t *Trial) mean() float64 {
	v := t.scores()
	if len(v) == 0 {
		return math.Inf(-1)
	}
	mean, _ := lab.MeanStd(v)
	return mean
}

// Study is the outcome of a search.
type Study struct {
	Search   *Search
	Best     *Trial
	Defaults *Trial
	Trials   []*Trial // that had a run, by number
	Seeds    int      // that the best trial was judged with
	Runs     int      // different trainings, those of the store included
	// Config is the complete configuration of the best trial, at the first seed.
	Config  *config.Config
	Dataset string // short name of the data set
	// Complete is false where the search was stopped before its last rung.
	Complete bool
}

// Run searches. Where ctx ends, the error is one that gsrc.IsInterrupted knows, and
// the outcome is that of the trials so far; nil where there is none yet.
func (s *Search) Run(ctx context.Context) (*Study, error) {
	x, err := s.begin()
	if err != nil {
		return nil, err
	}
	err = x.search(ctx)
	if err != nil && !gsrc.IsInterrupted(ctx, err) {
		return nil, err
	}
	found, ferr := x.outcome(err == nil)
	return found, errors.Join(err, ferr)
}

type search struct {
	*Search
	base   *gsrc.Setup // the defaults, with Set
	space  *Space
	runner *Runner
	draws  rng.Stream
	trials []*Trial

	measure string // see Trial
}

func (s *Search) begin() (*search, error) {
	x := &search{Search: s, space: s.Space, runner: s.Runner, draws: rng.New(s.Seed, "tune")}
	if s.Trials < 1 {
		return nil, fmt.Errorf("a search needs a trial at least, got %d", s.Trials)
	}
	if len(s.Rungs) == 0 {
		s.Rungs = DefaultRungs(10)
	}
	for i, n := range s.Rungs {
		if n < 1 || i > 0 && n <= s.Rungs[i-1] {
			return nil, fmt.Errorf("rungs are numbers of seeds from 1, each greater than the one before; got %v", s.Rungs)
		}
	}
	if x.runner == nil {
		x.runner = &Runner{}
	}
	if x.runner.Shard.Count > 1 {
		return nil, errors.New("a search cannot be divided into shards: what it tries next depends on all that came before")
	}
	var err error
	if x.base, err = (Job{Model: s.Model, Data: s.Data, Set: s.Set}).prepare(&x.runner.cache, nil); err != nil {
		return nil, err
	}
	if x.space == nil {
		if x.space, err = DefaultSpace(s.Model, x.base.Graphs != nil); err != nil {
			return nil, err
		}
	}
	var fixed []string
	for _, set := range s.Set {
		key, _ := splitOption(set)
		fixed = append(fixed, key)
	}
	if x.space = x.space.Without(fixed); len(x.space.ranges) == 0 {
		return nil, errors.New("nothing is left to search for: every option of the space is set")
	}
	if s.Space != nil {
		for _, r := range x.space.ranges {
			fixed = append(fixed, r.key)
		}
	}
	x.warnUnread(fixed)
	x.measure = "accuracy"
	if !slices.ContainsFunc(x.space.ranges, func(r valueRange) bool { return r.key == selectKey }) {
		x.measure = x.base.Config.Train.Select
	}
	return x, nil
}

// warnUnread reports those of some options that no setting reads, of as many as are drawn
// for a trial: what reads an option may be decided by another.
func (x *search) warnUnread(keys []string) {
	unread, known := map[string]string{}, map[string]bool{}
	for i := 0; x.Warn != nil && i < attempts && len(known) < len(keys); i++ {
		set := x.space.settings(x.space.random(x.draws.Sub("unread").At(uint64(i))), x.base.Config)
		texts := map[string]string{}
		s, err := Job{Model: x.Model, Data: x.Data, Set: slices.Concat(x.Set, set)}.prepare(&x.runner.cache, func(text string) {
			key, _, _ := strings.Cut(text, " ")
			texts[key] = text
		})
		if err != nil { // the trial that is so says it
			continue
		}
		for _, key := range keys {
			ranged := x.space.of(key) != nil
			if text, ok := texts[key]; ok {
				unread[key] = text
			} else if !ranged || s.Config.Value(key) != x.base.Config.Value(key) {
				known[key] = true
			}
		}
	}
	for _, key := range keys {
		if !known[key] && unread[key] != "" {
			x.Warn(unread[key])
		}
	}
}

// selectKey is the option that says what epochs are kept by.
const selectKey = "train.select"

func (x *search) search(ctx context.Context) error {
	half := (x.Trials + 1) / 2
	defaults := &Trial{at: point{}, measure: x.measure}
	for _, r := range x.space.ranges {
		if u, ok := r.unit(x.base.Config.Value(r.key)); ok {
			defaults.at[r.key] = u
		}
	}
	x.trials = append(x.trials, defaults)
	for i := 1; i < half; i++ {
		x.add(x.draws.Sub("random").At(uint64(i)), x.space.random)
	}
	last := len(x.Rungs) - 1
	survivors, err := x.climb(ctx, x.trials, "drawn from the space", 0, max(1, last))
	if err != nil {
		return err
	}
	// The second half is drawn near the best third of those that came furthest.
	parents := survivors[:(len(survivors)+keepOf-1)/keepOf]
	for i := half; i < x.Trials; i++ {
		x.add(x.draws.Sub("near").At(uint64(i)), func(st rng.Stream) point {
			return x.space.near(st, parents[st.Sub("parent").Intn(0, len(parents))].at)
		})
	}
	if x.Trials > half {
		more, err := x.climb(ctx, x.trials[half:], "near the best", 0, max(1, last))
		if err != nil {
			return err
		}
		survivors = append(survivors, more...)
	}
	if last == 0 {
		return nil
	}
	if !slices.Contains(survivors, defaults) {
		survivors = append(survivors, defaults)
	}
	// As many as a third of all at each rung would leave.
	finalists := ranked(survivors)
	finalists = finalists[:min(len(finalists), max(2, shareOf(x.Trials, last)))]
	if !slices.Contains(finalists, defaults) {
		finalists = append(finalists, defaults)
	}
	_, err = x.climb(ctx, finalists, "the best, and the defaults", last, last+1)
	return err
}

// shareOf is how many of n trials reach a rung.
func shareOf(n, rung int) int {
	for range rung {
		n = (n + keepOf - 1) / keepOf
	}
	return n
}

// attempts is how often a trial is drawn until it is one that has not been tried.
const attempts = 16

func (x *search) add(st rng.Stream, draw func(rng.Stream) point) {
	t := &Trial{Number: len(x.trials), measure: x.measure}
	for i := range attempts {
		t.at = draw(st.At(uint64(i)))
		t.Set = x.space.settings(t.at, x.base.Config)
		if !slices.ContainsFunc(x.trials, func(o *Trial) bool { return slices.Equal(o.Set, t.Set) }) {
			break
		}
	}
	x.trials = append(x.trials, t)
}

// climb runs trials on the rungs from to until-1, fewer on each, and returns those
// of the last one, the best first.
func (x *search) climb(ctx context.Context, trials []*Trial, what string, from, until int) ([]*Trial, error) {
	for rung := from; rung < until; rung++ {
		if rung > from {
			trials = trials[:shareOf(len(trials), 1)]
		}
		if x.Stage != nil {
			seeds := "seed 0"
			if n := x.Rungs[rung]; n > 1 {
				seeds = fmt.Sprintf("seeds 0 to %d", n-1)
			}
			x.Stage(fmt.Sprintf("%s: %d trials with %s", what, len(trials), seeds))
		}
		if err := x.run(ctx, trials, x.Rungs[rung]); err != nil {
			return nil, err
		}
		trials = ranked(trials)
	}
	return trials, nil
}

// ranked orders trials by what came of them, the best first.
func ranked(trials []*Trial) []*Trial {
	out := slices.Clone(trials)
	slices.SortFunc(out, better)
	return out
}

// better orders two trials that were judged with the same seeds: by mean, then by
// memory, then by number.
func better(a, b *Trial) int {
	memory := func(t *Trial) int64 {
		if len(t.Records) == 0 {
			return math.MaxInt64
		}
		return t.Records[0].PeakBytes
	}
	return cmp.Or(cmp.Compare(b.mean(), a.mean()), cmp.Compare(memory(a), memory(b)), cmp.Compare(a.Number, b.Number))
}

// run gives trials their records up to a number of seeds.
func (x *search) run(ctx context.Context, trials []*Trial, seeds int) error {
	var jobs []Job
	var of []*Trial
	for _, t := range trials {
		if t.Failed() {
			continue
		}
		for seed := len(t.Records); seed < seeds; seed++ {
			jobs = append(jobs, Job{Model: x.Model, Data: x.Data, Set: slices.Concat(x.Set, t.Set), Seed: seed})
			of = append(of, t)
		}
	}
	records, err := x.runner.Run(ctx, jobs)
	for i, r := range records {
		// After an interrupt a record may be missing; those after it wait.
		if t := of[i]; r != nil && len(t.Records) == jobs[i].Seed {
			t.Records = append(t.Records, r)
		}
	}
	return err
}

// outcome chooses the winner of the trials with the most seeds.
func (x *search) outcome(complete bool) (*Study, error) {
	f := &Study{Search: x.Search, Dataset: x.base.DataName(), Complete: complete}
	f.Trials = slices.DeleteFunc(slices.Clone(x.trials), func(t *Trial) bool { return len(t.Records) == 0 })
	runs := map[string]bool{}
	for _, t := range x.trials {
		for _, r := range t.Records {
			runs[r.Key] = true
		}
		f.Seeds = max(f.Seeds, len(t.Val()))
	}
	f.Runs = len(runs)
	last := slices.DeleteFunc(slices.Clone(x.trials), func(t *Trial) bool { return len(t.Val()) < f.Seeds })
	if f.Seeds == 0 {
		if complete {
			return nil, fmt.Errorf("all %d trials failed; the first: %s", len(x.trials), x.trials[0].Records[0].Error)
		}
		return nil, nil
	}
	f.Best, f.Defaults = ranked(last)[0], x.trials[0]
	if slices.Contains(last, f.Defaults) && withinNoise(f.Best.scores(), f.Defaults.scores()) {
		f.Best = f.Defaults
	}
	s, err := Job{Model: x.Model, Data: x.Data, Set: slices.Concat(x.Set, f.Best.Set)}.prepare(&x.runner.cache, nil)
	if err != nil {
		return nil, err
	}
	f.Config = s.Config
	return f, nil
}

// withinNoise reports whether the mean of the paired differences a − b is less
// than its standard error.
func withinNoise(a, b []float64) bool {
	d := make([]float64, len(a))
	for i := range a {
		d[i] = a[i] - b[i]
	}
	mean, std := lab.MeanStd(d)
	return mean < std/math.Sqrt(float64(len(d)))
}
