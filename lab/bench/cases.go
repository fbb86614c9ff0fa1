package bench

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/gsrc-dev/gsrc/data"
	"github.com/gsrc-dev/gsrc/passes"
	"github.com/gsrc-dev/gsrc/runtime/cuda"
)

// Case is one thing that can be timed.
type Case struct {
	Name string // parts from coarse to fine, "step/ecl/cora/512"
	Doc  string
	// Heavy cases take long or much memory: they run where a pattern selects
	// them, and not otherwise.
	Heavy bool
	// Alone cases are timed in a process of their own where that can be had, so
	// that its peak of memory is theirs.
	Alone bool

	workload *Workload
	run      func(e *env) (Result, error)
}

// env is what a case has to work with.
type env struct {
	Options
	ds *data.Dataset
}

// Options say what to time and how.
type Options struct {
	Only    string   // patterns, see [Select]; empty takes all cases that are not heavy
	Data    string   // folder of data sets; empty generates
	Threads int      // 0 is one for each processor
	Rounds  int      // of each case; 0 is 7
	Version string   // of the program, for the report
	Without []string // passes to leave out

	// Device, if set, is the GPU that the cases of [DeviceCases] are timed on; the
	// others are for the CPU.
	Device *cuda.Device

	// NoRoofline leaves out what needs the machine's limits.
	NoRoofline bool
	// Child, if set, times one case in a process of its own.
	Child func(ctx context.Context, name string) (Result, error)
	// Progress, if set, is called before each case.
	Progress func(name string)
}

// CheckWithout reports what is wrong with passes to leave out.
func CheckWithout(names []string) error {
	for _, name := range names {
		if p := passes.Lookup(name); p == nil {
			return fmt.Errorf("there is no pass %q; gsrc passes lists them", name)
		} else if p.Required {
			return fmt.Errorf("pass %s cannot be left out: no program runs without it", name)
		}
	}
	return nil
}

// Cases lists everything that can be timed, in the order of the report.
func Cases() []Case {
	return slices.Concat(compileCases(), stepCases(), scaleCases(), searchCases(), evidenceCases(), learnerCases(), kernelCases(), inferenceCases())
}

// Select returns the cases that one of the patterns, separated by commas, fits: a
// * stands for any text, and a pattern fits all names that go on after it with a
// slash too. An empty selection is an error. Without patterns it is every case
// that is not heavy.
func Select(cases []Case, patterns string) ([]Case, error) {
	if patterns == "" {
		return slices.DeleteFunc(slices.Clone(cases), func(c Case) bool { return c.Heavy }), nil
	}
	var fits []*regexp.Regexp
	for _, p := range strings.Split(patterns, ",") {
		text := strings.ReplaceAll(regexp.QuoteMeta(strings.TrimSpace(p)), `\*`, ".*")
		fits = append(fits, regexp.MustCompile("^"+text+"(/.*)?$"))
	}
	var out []Case
	for _, c := range cases {
		if slices.ContainsFunc(fits, func(r *regexp.Regexp) bool { return r.MatchString(c.Name) }) {
			out = append(out, c)
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("no benchmark is called %q; gsrc bench --list shows them", patterns)
	}
	return out, nil
}

// Run times the selected cases.
func Run(ctx context.Context, o Options) (*Report, error) {
	o.Rounds = cmp.Or(o.Rounds, 7)
	if o.Rounds < 1 || o.Threads < 0 {
		return nil, fmt.Errorf("%d rounds with %d threads: want at least 1 and 0", o.Rounds, o.Threads)
	}
	if err := CheckWithout(o.Without); err != nil {
		return nil, err
	}
	all := Cases()
	if o.Device != nil {
		all = DeviceCases()
	}
	cases, err := Select(all, o.Only)
	if err != nil {
		return nil, err
	}
	r := &Report{Schema: 1, Version: o.Version, Without: o.Without, Machine: ThisMachine(o.Threads)}
	var before *Roofline
	switch {
	case o.Device != nil:
		o.Child = nil // one process has the GPU
		r.Device = describe(o.Device)
		if !o.NoRoofline {
			if r.Limits, err = MeasureDevice(o.Device, copyBytes, productSide); err != nil {
				err = fmt.Errorf("measuring what %s can do: %w", o.Device.Name(), err)
			}
		}
	case !o.NoRoofline:
		before = MeasureRoofline(o.Threads)
	}
	if err != nil {
		return nil, err
	}
	for _, c := range cases {
		if err := ctx.Err(); err != nil {
			return r, err
		}
		if o.Progress != nil {
			o.Progress(c.Name)
		}
		x, err := c.measure(ctx, o)
		if err != nil {
			return r, fmt.Errorf("%s: %w", c.Name, err)
		}
		r.Results = append(r.Results, x)
		if before != nil {
			before.glimpse(o.Threads)
		}
	}
	if before != nil {
		// What the machine can do is the best of all moments: something else may have
		// run in the others.
		r.Limits = before.best(MeasureRoofline(o.Threads))
	}
	r.judge()
	return r, nil
}

func (r *Report) judge() {
	if r.Limits == nil {
		return
	}
	for i := range r.Results {
		r.Results[i].judge(r.Limits)
	}
}

func (c *Case) measure(ctx context.Context, o Options) (x Result, err error) {
	defer func() { x.Name = c.Name }()
	if c.Alone && o.Child != nil {
		return o.Child(ctx, c.Name)
	}
	e := &env{Options: o}
	if c.workload != nil {
		if e.ds, err = c.workload.Load(o.Data); err != nil {
			return x, err
		}
	}
	x, err = c.run(e)
	if e.ds != nil {
		x.Data = e.ds.Name
		if e.ds.Source == Generated {
			x.Data += " (generated)"
		}
	}
	return x, err
}

func (r *Result) judge(l *Roofline) {
	if r.Least != nil {
		if r.LeastMS = r.Least.Milliseconds(l); r.LeastMS > 0 {
			r.OverLeast = r.MS / r.LeastMS
		}
	}
	if r.Cost != nil {
		r.GFlops, r.GBs, r.Share = rates(*r.Cost, r.MS, l)
	}
	for i := range r.Parts {
		p := &r.Parts[i]
		p.GFlops, p.GBs, p.Share = rates(p.Cost, p.MS, l)
	}
}

// warm is how long work takes of which the first run is hardly slower than others. Tests wait less.
var warm = 10 * time.Second

// rounds times f, after one or two runs that are not counted, and returns the
// sorted milliseconds of one call. Of work that takes longer than warm the first run is a round.
func (e *env) rounds(f func() error) (Result, error) {
	start := time.Now()
	if err := f(); err != nil {
		return Result{}, err
	}
	var t []float64
	if first := time.Since(start); first >= warm {
		t = append(t, first.Seconds()*1e3)
	} else if first < time.Second {
		start = time.Now()
		if err := f(); err != nil {
			return Result{}, err
		}
	}
	// Short work is repeated until a round takes some milliseconds.
	repeat := max(1, int(4*time.Millisecond/max(time.Since(start), 1)))
	for len(t) < e.Rounds {
		start := time.Now()
		for range repeat {
			if err := f(); err != nil {
				return Result{}, err
			}
		}
		t = append(t, time.Since(start).Seconds()*1e3/float64(repeat))
	}
	r := Result{MS: median(t), Rounds: e.Rounds}
	r.MinMS, r.MaxMS = t[0], t[len(t)-1]
	return r, nil
}
