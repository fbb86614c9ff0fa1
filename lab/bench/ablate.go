package bench

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/gsrc-dev/gsrc/compiler"
	"github.com/gsrc-dev/gsrc/models"
	"github.com/gsrc-dev/gsrc/passes"
)

// Ablation is what each optimising pass brings. Field names are stable.
type Ablation struct {
	Schema  int           `json:"schema"` // 1
	Version string        `json:"version"`
	Machine Machine       `json:"machine"`
	Results []AblationRow `json:"results"`
}

// AblationRow is a step with and without a pass, timed in turn.
type AblationRow struct {
	Without []string `json:"without"` // the pass
	Step    string   `json:"step"`
	Data    string   `json:"data"`
	// Same is true where the pass changes nothing in this program, which is then not
	// timed.
	Same bool `json:"same"`
	// WithMS and WithoutMS are medians. Ratio is the median over the rounds of time
	// without over time with; half of the rounds lie between RatioLo and RatioHi.
	WithMS    float64 `json:"with_ms,omitempty"`
	WithoutMS float64 `json:"without_ms,omitempty"`
	Ratio     float64 `json:"ratio,omitempty"`
	RatioLo   float64 `json:"ratio_lo,omitempty"`
	RatioHi   float64 `json:"ratio_hi,omitempty"`
	Rounds    int     `json:"rounds,omitempty"`

	PlannedMiB        float64 `json:"planned_mib,omitempty"` // with the pass
	PlannedWithoutMiB float64 `json:"planned_without_mib,omitempty"`
	Kernels           int     `json:"kernels,omitempty"` // called in a step, with the pass
	KernelsWithout    int     `json:"kernels_without,omitempty"`
}

// A ratio of times this near 1 is no gain, whatever the rounds say.
const (
	noTime   = 0.02
	noMemory = 0.01
)

// gain says what the pass brings here in time and in memory: 1 a gain, −1 a loss,
// 0 nothing measurable.
func (r *AblationRow) gain() (time, memory int) {
	if r.Same {
		return 0, 0
	}
	switch {
	case r.Ratio > 1+noTime && r.RatioLo > 1:
		time = 1
	case r.Ratio < 1-noTime && r.RatioHi < 1:
		time = -1
	}
	switch m := r.PlannedWithoutMiB / r.PlannedMiB; {
	case m > 1+noMemory:
		memory = 1
	case m < 1-noMemory:
		memory = -1
	}
	return time, memory
}

// ablationSteps are the steps that passes are judged by.
func ablationSteps() []stepCase {
	steps := []stepCase{{data: "cora", model: "ecl-gsr", fn: "pretrain", anchors: 512, width: -1}}
	for _, fn := range []string{"pretrain", "joint", "fit"} {
		steps = append(steps, stepCase{data: "cora", model: "ecl-gsr", fn: fn, recipe: true})
	}
	return append(steps, stepCase{data: "cora", model: "gcn", fn: "train"})
}

// ablations are the passes that are left out: every one that is not required. only
// names some, separated by commas; empty takes all.
func ablations(only string) (names []string, err error) {
	wanted := strings.FieldsFunc(only, func(r rune) bool { return r == ',' || r == ' ' })
	for _, name := range wanted {
		if p := passes.Lookup(name); p == nil {
			return nil, fmt.Errorf("there is no pass %q; gsrc passes lists them", name)
		} else if p.Required {
			return nil, fmt.Errorf("pass %s cannot be left out: no program runs without it", name)
		}
	}
	for _, p := range passes.All {
		if !p.Required && (len(wanted) == 0 || slices.Contains(wanted, p.Name)) {
			names = append(names, p.Name)
		}
	}
	return names, nil
}

// CheckAblation reports what is wrong with a list of passes to leave out.
func CheckAblation(only string) error {
	_, err := ablations(only)
	return err
}

// Ablate times every step with and without every pass that can be left out, in
// turn, so that a machine that others use too slows both. Of the options Only
// names passes, separated by commas; empty takes all.
func Ablate(ctx context.Context, o Options) (*Ablation, error) {
	if o.Rounds == 0 {
		o.Rounds = 7
	}
	leftOut, err := ablations(o.Only)
	if err != nil {
		return nil, err
	}
	a := &Ablation{Schema: 1, Version: o.Version, Machine: ThisMachine(o.Threads)}
	for _, s := range ablationSteps() {
		e := &env{Options: o}
		if e.ds, err = FindWorkload(s.data).Load(o.Data); err != nil {
			return nil, err
		}
		rows, err := ablateStep(ctx, e, s, leftOut)
		a.Results = append(a.Results, rows...)
		if err != nil {
			return a, fmt.Errorf("%s: %w", s.name(), err)
		}
	}
	return a, nil
}

func ablateStep(ctx context.Context, e *env, s stepCase, passes []string) ([]AblationRow, error) {
	job, err := s.job(e)
	if err != nil {
		return nil, err
	}
	name := e.ds.Name
	if e.ds.Source == Generated {
		name += " (generated)"
	}
	with, text, err := ablated(job, s.fn)
	if err != nil {
		return nil, err
	}
	defer with.s.Close()
	var rows []AblationRow
	for _, pass := range passes {
		if err := ctx.Err(); err != nil {
			return rows, err
		}
		if e.Progress != nil {
			e.Progress(s.name() + " without " + pass)
		}
		r := AblationRow{Without: []string{pass}, Step: s.name(), Data: name}
		without, changed, err := ablated(job, s.fn, pass)
		if err != nil {
			return rows, fmt.Errorf("without %s: %w", pass, err)
		}
		if changed == text {
			r.Same = true
		} else if err := r.time(with, without, e.Rounds); err != nil {
			without.s.Close()
			return rows, err
		}
		without.s.Close()
		rows = append(rows, r)
	}
	return rows, nil
}

// ablated makes a step without some passes, and returns the function's program as
// text.
func ablated(j Job, fn string, without ...string) (*Stepper, string, error) {
	j.Without = without
	m, err := models.Lookup(j.Model)
	if err != nil {
		return nil, "", err
	}
	s, err := NewSession(j)
	if err != nil {
		return nil, "", err
	}
	p, err := compiler.Compile(m.Build(s.Options), compiler.Options{Data: s.dataInfo(), Without: without, Funcs: []string{fn}})
	if err != nil {
		s.Close()
		return nil, "", err
	}
	st, err := s.Stepper(fn, false)
	if err != nil {
		s.Close()
		return nil, "", err
	}
	return st, p.Module.String(), nil
}

// time runs both steps in turn.
func (r *AblationRow) time(with, without *Stepper, rounds int) error {
	one := func(st *Stepper, times int) (float64, error) {
		start := time.Now()
		for range times {
			if err := st.Step(); err != nil {
				return 0, err
			}
		}
		return time.Since(start).Seconds() * 1e3 / float64(times), nil
	}
	for _, st := range []*Stepper{with, without} {
		if _, err := one(st, 2); err != nil {
			return err
		}
	}
	took, err := one(with, 1)
	if err != nil {
		return err
	}
	times := max(1, int(20/max(took, 0.01))) // 20 ms a turn
	var a, b, ratio []float64
	for range rounds {
		x, err := one(with, times)
		if err != nil {
			return err
		}
		y, err := one(without, times)
		if err != nil {
			return err
		}
		a, b, ratio = append(a, x), append(b, y), append(ratio, y/x)
	}
	r.WithMS, r.WithoutMS, r.Ratio, r.Rounds = median(a), median(b), median(ratio), rounds
	r.RatioLo, r.RatioHi = ratio[rounds/4], ratio[rounds-1-rounds/4]
	r.PlannedMiB, r.PlannedWithoutMiB = plannedMiB(with.Function), plannedMiB(without.Function)
	r.Kernels, r.KernelsWithout = with.Function.Main().Plan().Instructions, without.Function.Main().Plan().Instructions
	return nil
}

// Write prints a table, and then in a line for each pass what it brings.
func (a *Ablation) Write(w io.Writer, f Format) error {
	fmt.Fprintf(w, "gsrc %s, %s\n\n", a.Version, a.Machine)
	rows := [][]string{{"without", "step", "data", "with", "without", "without/with", "planned", "without it", "kernels", "without it"}}
	brings := map[string][]string{}
	var order []string
	for i := range a.Results {
		r := &a.Results[i]
		name := strings.Join(r.Without, " and ")
		if _, seen := brings[name]; !seen {
			brings[name] = []string{}
			order = append(order, name)
		}
		if r.Same {
			rows = append(rows, []string{name, r.Step, r.Data, "the same program", "", "", "", "", "", ""})
			continue
		}
		rows = append(rows, []string{name, r.Step, r.Data, ms(r.WithMS), ms(r.WithoutMS), fmt.Sprintf("%.2f (%.2f to %.2f)", r.Ratio, r.RatioLo, r.RatioHi),
			mib(r.PlannedMiB), mib(r.PlannedWithoutMiB), fmt.Sprint(r.Kernels), fmt.Sprint(r.KernelsWithout)})
		t, b := r.gain()
		var what []string
		if t != 0 {
			what = append(what, fmt.Sprintf("%.2f× the time", 1/r.Ratio))
		}
		if b != 0 {
			what = append(what, fmt.Sprintf("%.2f× the memory", r.PlannedMiB/r.PlannedWithoutMiB))
		}
		if len(what) > 0 {
			brings[name] = append(brings[name], r.Step+" "+strings.Join(what, " and "))
		}
	}
	if err := table(w, f, rows); err != nil {
		return err
	}
	fmt.Fprintln(w)
	for _, name := range order {
		bullet := ""
		if f == Markdown {
			bullet = "- "
		}
		if len(brings[name]) == 0 {
			fmt.Fprintf(w, "%s%s brings nothing on these steps\n", bullet, name)
			continue
		}
		fmt.Fprintf(w, "%s%s: %s\n", bullet, name, strings.Join(brings[name], "; "))
	}
	return nil
}
