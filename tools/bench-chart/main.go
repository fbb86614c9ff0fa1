// Command chart draws what gsrc bench --baselines --json has measured, for
// docs/benchmarks.md.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"image/color"
	"io"
	"math"
	"os"
	"strings"

	"github.com/gsrc-dev/gsrc/internal/atomicfile"
	"github.com/gsrc-dev/gsrc/lab/bench"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
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
	var names []string
	var ratios plotter.Values
	longest, shortest := 1.0, 1.0
	for i := len(r.Results) - 1; i >= 0; i-- { // upwards
		x := r.Results[i]
		for k := len(x.Baselines) - 1; k >= 0; k-- {
			if p := x.Baselines[k]; p.Failed == "" {
				names = append(names, fmt.Sprintf("%s: %s", strings.ReplaceAll(x.Work, "/", " "), p.Name))
				ratios = append(ratios, p.Ratio)
				longest, shortest = max(longest, p.Ratio), min(shortest, p.Ratio)
			}
		}
	}
	if len(ratios) == 0 {
		return errors.New("no comparison succeeded, so there is nothing to draw")
	}
	p := plot.New()
	p.X.Label.Text = fmt.Sprintf("time of the baseline over gsrc's (gsrc %s, %s, %d threads; %s)", r.Version, r.Machine.ISA, r.Machine.Threads, r.Python)
	p.X.Label.TextStyle.Font.Size = vg.Points(7)
	p.X.Scale, p.X.Tick.Marker = plot.LogScale{}, plot.ConstantTicks(ratioTicks(longest))
	p.X.Min, p.X.Max = math.Min(0.5, 0.8*shortest), math.Max(2, 1.3*longest)
	for i, v := range ratios {
		bar, err := plotter.NewPolygon(plotter.XYs{{X: 1, Y: float64(i) - 0.35}, {X: v, Y: float64(i) - 0.35}, {X: v, Y: float64(i) + 0.35}, {X: 1, Y: float64(i) + 0.35}})
		if err != nil {
			return err
		}
		bar.Color, bar.LineStyle.Width = color.RGBA{70, 110, 160, 255}, 0
		label, err := plotter.NewLabels(plotter.XYLabels{XYs: plotter.XYs{{X: math.Max(v, 1), Y: float64(i)}}, Labels: []string{fmt.Sprintf(" %.3g", v)}})
		if err != nil {
			return err
		}
		for k := range label.TextStyle {
			label.TextStyle[k].Font.Size = vg.Points(7)
			label.TextStyle[k].YAlign = -0.4
		}
		p.Add(bar, label)
	}
	one, err := plotter.NewLine(plotter.XYs{{X: 1, Y: -0.6}, {X: 1, Y: float64(len(ratios)) - 0.4}})
	if err != nil {
		return err
	}
	one.Color = color.Gray{120}
	p.Add(one)
	p.NominalY(names...)
	p.Y.Tick.Label.Font.Size, p.X.Tick.Label.Font.Size = vg.Points(7), vg.Points(7)
	p.Y.Min, p.Y.Max = -0.7, float64(len(ratios))-0.3
	svg, err := p.WriterTo(vg.Points(620), vg.Points(50+13*float64(len(ratios))), "svg")
	if err != nil {
		return err
	}
	_, err = svg.WriteTo(w)
	return err
}

// ratioTicks are 0.5, 1, 2, 5, 10 and so on.
func ratioTicks(longest float64) []plot.Tick {
	ticks := []plot.Tick{{Value: 0.5, Label: "0.5"}}
	for decade := 1.0; decade <= 2*longest; decade *= 10 {
		for _, k := range []float64{1, 2, 5} {
			ticks = append(ticks, plot.Tick{Value: k * decade, Label: fmt.Sprint(k * decade)})
		}
	}
	return ticks
}
