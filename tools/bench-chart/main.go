// Command chart draws what gsrc bench --baselines --json has measured, for
// docs/benchmarks.md.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/gsrc-dev/gsrc/internal/atomicfile"
	"github.com/gsrc-dev/gsrc/lab/bench"
	"github.com/gsrc-dev/gsrc/lab/charts"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: chart BASELINES.json CHART.svg")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "chart:", err)
		os.Exit(1)
	}
}

func run(from, to string) error {
	text, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	var r bench.BaselineReport
	if err := json.Unmarshal(text, &r); err != nil {
		return fmt.Errorf("%s: %w", from, err)
	}
	return atomicfile.Write(to, func(w io.Writer) error { return draw(&r, w) })
}

// draw draws how many times longer each baseline takes, on a logarithmic scale,
// as SVG.
func draw(r *bench.BaselineReport, w io.Writer) error {
	panel := charts.Panel{X: "time of the baseline over gsrc's", LogX: true, Mark: 1,
		Title: fmt.Sprintf("gsrc %s, %s, %d threads; %s", r.Version, r.Machine.ISA, r.Machine.Threads, r.Python)}
	line := charts.Line{Name: "baseline", Points: true}
	for _, x := range r.Results {
		for _, p := range x.Baselines {
			if p.Failed == "" {
				line.Values = append(line.Values, charts.Value{X: p.Ratio, Y: float64(len(panel.Rows))})
				panel.Rows = append(panel.Rows, fmt.Sprintf("%s: %s, %.3g", strings.ReplaceAll(x.Work, "/", " "), p.Name, p.Ratio))
			}
		}
	}
	if line.Values == nil {
		return errors.New("no comparison succeeded, so there is nothing to draw")
	}
	panel.Lines = []charts.Line{line}
	return charts.Lines("baselines", panel.X, "", []charts.Panel{panel}).SVG(w)
}
