package charts

import (
	"fmt"
	"image/color"
	"math"
	"strconv"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// The colours of Okabe and Ito ("Color universal design", 2008), the one that is
// palest on white last.
var okabeIto = []color.NRGBA{
	{0x00, 0x72, 0xB2, 0xFF}, // blue
	{0xD5, 0x5E, 0x00, 0xFF}, // vermilion
	{0x00, 0x9E, 0x73, 0xFF}, // bluish green
	{0xCC, 0x79, 0xA7, 0xFF}, // reddish purple
	{0xE6, 0x9F, 0x00, 0xFF}, // orange
	{0x56, 0xB4, 0xE9, 0xFF}, // sky blue
	{0x00, 0x00, 0x00, 0xFF}, // black
	{0xF0, 0xE4, 0x42, 0xFF}, // yellow
}

var (
	blue = okabeIto[0]
	grey = color.NRGBA{0x80, 0x80, 0x80, 0xFF}
	pale = color.NRGBA{0xE4, 0xE4, 0xE4, 0xFF}
)

// dashes tell lines apart where colours do not.
var dashes = [][]vg.Length{nil, {6, 3}, {2, 2}, {8, 2, 2, 2}}

const (
	textSize   = vg.Length(11)
	tickSize   = vg.Length(10)
	plotHeight = vg.Length(330)
	margin     = vg.Length(8)
)

// newPlot returns an empty plot in the style of all charts.
func newPlot(title, x, y string) *plot.Plot {
	p := plot.New()
	p.Title.Text, p.X.Label.Text, p.Y.Label.Text = title, x, y
	p.Title.Padding = 6
	for _, s := range []*text.Style{&p.Title.TextStyle, &p.X.Label.TextStyle, &p.Y.Label.TextStyle} {
		s.Font = sans(textSize)
	}
	p.X.Tick.Label.Font, p.Y.Tick.Label.Font = sans(tickSize), sans(tickSize)
	p.X.Label.Padding, p.Y.Label.Padding = 4, 4
	p.X.Tick.Marker, p.Y.Tick.Marker = steps{}, steps{}
	return p
}

func sans(size vg.Length) font.Font {
	return font.Font{Typeface: "Liberation", Variant: "Sans", Size: size}
}

func grid() *plotter.Grid {
	g := plotter.NewGrid()
	g.Horizontal.Color, g.Vertical.Color = pale, pale
	g.Horizontal.Width, g.Vertical.Width = 0.6, 0.6
	return g
}

// newLegend returns an empty legend for beside.
func newLegend() plot.Legend {
	l := plot.NewLegend()
	l.TextStyle.Font = sans(tickSize)
	l.Top, l.Left, l.Padding = true, true, 4
	return l
}

// beside draws a plot with its legend to the right of it, where it covers nothing.
func beside(c draw.Canvas, p *plot.Plot, l plot.Legend) {
	c = inset(c)
	space := l.Rectangle(c).Size().X + 14
	p.Draw(draw.Crop(c, 0, -space, 0, 0))
	side := draw.Crop(c, c.Size().X-space+10, 0, 0, -24)
	l.Draw(side)
}

func inset(c draw.Canvas) draw.Canvas { return draw.Crop(c, margin, -margin, margin, -margin) }

func stroke(c color.Color, dash []vg.Length) draw.LineStyle {
	return draw.LineStyle{Color: c, Width: 1.4, Dashes: dash}
}

// steps ticks an axis at about five multiples of 1, 2 or 5 times a power of ten;
// gonum's own ticks are three, at uneven numbers.
type steps struct{}

func (steps) Ticks(lo, hi float64) []plot.Tick {
	rough := (hi - lo) / 6
	unit := math.Pow10(int(math.Floor(math.Log10(rough))))
	step := 10 * unit
	for _, m := range []float64{1, 2, 5} {
		if m*unit >= rough*(1-1e-9) {
			step = m * unit
			break
		}
	}
	digits := max(0, int(math.Ceil(-math.Log10(step)-1e-9)))
	var ticks []plot.Tick
	for i := math.Ceil(lo/step - 1e-9); i*step <= hi+1e-9*step; i++ {
		ticks = append(ticks, plot.Tick{Value: i * step, Label: strconv.FormatFloat(i*step+0, 'f', digits, 64)})
	}
	return ticks
}

// widen keeps an axis from having no extent.
func widen(a *plot.Axis) {
	if !finite(a.Min) || !finite(a.Max) { // nothing was drawn
		a.Min, a.Max = 0, 1
	}
	if !(a.Min < a.Max) {
		d := math.Max(1e-3, math.Abs(a.Min)*0.1)
		a.Min, a.Max = a.Min-d, a.Max+d
	}
}

func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

// count writes a number with its thousands apart.
func count(n int) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
