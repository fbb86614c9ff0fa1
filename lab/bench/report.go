package bench

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
)

// Report is what one call of [Run] measured. Field names are stable; times are in
// milliseconds, memory is in MiB (2²⁰ bytes), rates are in 10⁹ a second.
type Report struct {
	Schema  int       `json:"schema"` // 1
	Version string    `json:"version"`
	Without []string  `json:"without,omitempty"` // passes that were left out
	Machine Machine   `json:"machine"`
	Device  *Device   `json:"device,omitempty"` // the GPU that all of it was measured on; Limits are then its
	Limits  *Roofline `json:"limits,omitempty"`
	Results []Result  `json:"results"`
}

// Result is one case.
type Result struct {
	Name string `json:"name"`
	Data string `json:"data,omitempty"` // the data set, "(generated)" behind it where its files were not there
	// MS is the median of the rounds.
	MS     float64 `json:"ms"`
	MinMS  float64 `json:"min_ms"`
	MaxMS  float64 `json:"max_ms"`
	Rounds int     `json:"rounds"`

	// Rates are those of kernels at the median.
	GFlops float64 `json:"gflops,omitempty"`
	GBs    float64 `json:"gb_per_s,omitempty"`
	// PerSizeNS is nanoseconds for each node and edge of the graph: where it does not
	// rise with the graph, cost grows no faster than the graph does.
	PerSizeNS float64 `json:"ns_per_node_and_edge,omitempty"`
	// Share is the time that the machine's limits allow over the median.
	Share float64 `json:"share_of_limit,omitempty"`

	Cost *Cost `json:"work,omitempty"` // of one kernel

	PlannedMiB float64 `json:"planned_mib,omitempty"` // memory that the executor planned, parameters and data not included
	PeakMiB    float64 `json:"peak_mib,omitempty"`    // largest resident set of a process that did this alone

	Least     *Work   `json:"least_work,omitempty"`
	LeastMS   float64 `json:"least_ms,omitempty"`   // the least work at this machine's rates
	OverLeast float64 `json:"over_least,omitempty"` // the median over LeastMS

	Parts []Part `json:"parts,omitempty"` // of a step, longest first
}

// Part is a kind of operation within a step.
type Part struct {
	Op     string  `json:"op"`
	Count  int     `json:"count"` // operations of the kind in a step
	MS     float64 `json:"ms"`    // mean, a step
	OfStep float64 `json:"of_step"`
	GFlops float64 `json:"gflops,omitempty"`
	GBs    float64 `json:"gb_per_s,omitempty"`
	Share  float64 `json:"share_of_limit,omitempty"`
	// Work of a step: floating-point operations, bytes moved, bytes touched by the
	// largest of the operations.
	Cost Cost `json:"work"`
}

// rates are GFLOP/s, or GB/s for what does few operations a byte, and the share of
// the limit.
func rates(c Cost, ms float64, l *Roofline) (gflops, gbs, share float64) {
	if ms <= 0 {
		return 0, 0, 0
	}
	if c.Flops > 4*c.Bytes {
		gflops = c.Flops / ms / 1e6
	} else {
		gbs = c.Bytes / ms / 1e6
	}
	return gflops, gbs, 1e3 * c.seconds(l) / ms
}

// Format is how a table is printed.
type Format int

// The formats.
const (
	Text Format = iota
	Markdown
)

// table prints rows of cells, the first row the head.
func table(w io.Writer, f Format, rows [][]string) error {
	var b strings.Builder
	aligned := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for i, r := range rows {
		if f == Text {
			fmt.Fprintln(aligned, strings.Join(r, "\t"))
			continue
		}
		fmt.Fprintf(&b, "| %s |\n", strings.Join(r, " | "))
		if i == 0 {
			fmt.Fprintf(&b, "|%s\n", strings.Repeat("---|", len(r)))
		}
	}
	if err := aligned.Flush(); err != nil {
		return err
	}
	for line := range strings.Lines(b.String()) { // empty cells leave blanks behind
		if _, err := fmt.Fprintln(w, strings.TrimRight(line, " \n")); err != nil {
			return err
		}
	}
	return nil
}

// Write prints the report; with parts, those of every step too. Columns that nothing
// stands in are left out.
func (r *Report) Write(w io.Writer, f Format, parts bool) error {
	if d := r.Device; d != nil {
		fmt.Fprintf(w, "%s; gsrc %s, %s\n", d, r.Version, d.Date)
	} else {
		fmt.Fprintf(w, "gsrc %s, %s\n", r.Version, r.Machine)
	}
	if r.Without != nil {
		fmt.Fprintf(w, "without %s\n", strings.Join(r.Without, ", "))
	}
	if l := r.Limits; l != nil {
		fmt.Fprintf(w, "limits: matrix product %.0f GFLOP/s", l.MatMul)
		if l.Exp > 0 {
			fmt.Fprintf(w, ", exp %.2f G/s", l.Exp)
		}
		for _, b := range l.Bandwidth {
			fmt.Fprintf(w, ", %.0f GB/s over %s", b.GBs, mib(b.MiB))
		}
		fmt.Fprintln(w)
	}
	fmt.Fprintln(w)
	rows := [][]string{{"case", "data", "median", "range, of step", "work", "rate", "of limit", "memory", "least work"}}
	for _, x := range r.Results {
		rows = append(rows, []string{x.Name, x.Data, ms(x.MS), ms(x.MinMS) + " to " + ms(x.MaxMS), work(x.Cost), rate(x.GFlops, x.GBs) + some("%.0f ns a node and edge", x.PerSizeNS), percent(x.Share), memory(x), least(x)})
		if !parts || len(x.Parts) == 0 {
			continue
		}
		small := Part{Op: "others"}
		rest := Part{Op: "between kernels, host", Count: 1, MS: x.MS}
		for _, p := range x.Parts {
			rest.MS -= p.MS
			if p.OfStep < 0.01 {
				small.Count, small.MS, small.OfStep, small.Cost = small.Count+p.Count, small.MS+p.MS, small.OfStep+p.OfStep, small.Cost.plus(p.Cost)
			}
		}
		rest.OfStep = rest.MS / x.MS
		all := append(slices.DeleteFunc(slices.Clone(x.Parts), func(p Part) bool { return p.OfStep < 0.01 }), small)
		if r.Device != nil { // whose parts are timed by themselves
			all = append(slices.Clone(x.Parts), rest)
		}
		for _, p := range all {
			if p.Count > 0 && p.MS > 0 {
				rows = append(rows, []string{fmt.Sprintf("  %s ×%d", p.Op, p.Count), "", ms(p.MS), percent(p.OfStep), work(&p.Cost), rate(p.GFlops, p.GBs), percent(p.Share), "", ""})
			}
		}
	}
	for c := len(rows[0]) - 1; c >= 0; c-- {
		if !slices.ContainsFunc(rows[1:], func(r []string) bool { return r[c] != "" }) {
			for i := range rows {
				rows[i] = slices.Delete(rows[i], c, c+1)
			}
		}
	}
	return table(w, f, rows)
}

func work(c *Cost) string {
	if c == nil || *c == (Cost{}) {
		return ""
	}
	return fmt.Sprintf("%s, %.3g MFLOP", mib(c.Bytes/(1<<20)), c.Flops/1e6)
}

func ms(v float64) string {
	switch {
	case v >= 10_000:
		return fmt.Sprintf("%.1f s", v/1e3)
	case v >= 100:
		return fmt.Sprintf("%.0f ms", v)
	case v >= 1:
		return fmt.Sprintf("%.3g ms", v)
	}
	return fmt.Sprintf("%.3g µs", v*1e3)
}

func mib(v float64) string {
	if v >= 1024 {
		return fmt.Sprintf("%.1f GiB", v/1024)
	}
	return fmt.Sprintf("%.3g MiB", v)
}

func some(format string, v float64) string {
	if v == 0 {
		return ""
	}
	return fmt.Sprintf(format, v)
}

func rate(gflops, gbs float64) string {
	return cmp.Or(some("%.1f GFLOP/s", gflops), some("%.1f GB/s", gbs))
}

func percent(share float64) string { return some("%.0f %%", 100*share) }

func memory(x Result) string {
	var parts []string
	if x.PlannedMiB > 0 {
		parts = append(parts, mib(x.PlannedMiB)+" planned")
	}
	if x.PeakMiB > 0 {
		parts = append(parts, mib(x.PeakMiB)+" peak")
	}
	return strings.Join(parts, ", ")
}

func least(x Result) string {
	if x.LeastMS == 0 {
		return ""
	}
	return fmt.Sprintf("%.1f GFLOP, %s; step is %.2f×", x.Least.Flops/1e9, ms(x.LeastMS), x.OverLeast)
}

// median returns the middle of the values, which it sorts.
func median(v []float64) float64 {
	if len(v) == 0 {
		return 0
	}
	slices.SortFunc(v, cmp.Compare)
	if n := len(v); n%2 == 0 {
		return (v[n/2-1] + v[n/2]) / 2
	}
	return v[len(v)/2]
}
