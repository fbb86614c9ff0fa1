package charts

import (
	"fmt"
	"image/color"
	"math"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Value is a measured value with its standard deviation; Err 0 draws none.
type Value struct {
	X, Y, Err float64
}

// Line is a named series of a [Panel]. A name has one colour, dash and shape in
// all panels of a chart.
type Line struct {
	Name   string
	Values []Value
	// Reference lines are what others print: grey, dashed, with open marks.
	Reference bool
	// Points are not joined.
	Points bool
	// Plain lines have no marks: for many values.
	Plain bool
}

// Panel is one plot of several on a chart. Title and the axes' names carry units.
type Panel struct {
	Title, X, Y string
	LogX, LogY  bool // the axis is logarithmic; values must be greater than 0
	// Rows, if not nil, are names below one another in place of the Y axis: Y of a value
	// is its row, and Err is of X.
	Rows  []string
	Lines []Line
	// Mark is where a grey line stands across the plot; 0 is none.
	Mark float64
	// Range, if not nil, changes the extent of the Y axis.
	Range func(lo, hi float64) (float64, float64)
}

const panelHeight = vg.Length(215)

// Lines draws panels in two columns with one legend above them. Lines without a
// finite value are left out. There must be a panel.
func Lines(name, title, caption string, panels []Panel) *Chart {
	var styles lineStyles
	var plots [][]*plot.Plot
	height := panelHeight
	for i, panel := range panels {
		height = max(height, vg.Length(len(panel.Rows))*17+64)
		p := newPlot(panel.Title, panel.X, panel.Y)
		p.Add(grid())
		for axis, logarithmic := range map[*plot.Axis]bool{&p.X: panel.LogX, &p.Y: panel.LogY} {
			if logarithmic {
				axis.Scale, axis.Tick.Marker = plot.LogScale{}, decades{}
			}
		}
		if panel.Mark != 0 {
			p.Add(verticalLine(panel.Mark))
		}
		for _, l := range panel.Lines {
			if l.finite() {
				styles.of(l).add(p, l, panel.Rows != nil)
			}
		}
		widen(&p.X)
		widen(&p.Y)
		if panel.Rows != nil {
			list(p, panel.Rows)
			pad(p, panel.LogX, true)
		} else if panel.Range != nil {
			p.Y.Min, p.Y.Max = panel.Range(p.Y.Min, p.Y.Max)
		} else {
			pad(p, panel.LogX, panel.LogY)
		}
		if i%2 == 0 {
			plots = append(plots, make([]*plot.Plot, 2))
		}
		plots[i/2][i%2] = p
	}
	if len(panels) == 1 {
		plots = [][]*plot.Plot{plots[0][:1]}
		if panels[0].Rows == nil {
			height = plotHeight
		}
	}
	keys := styles.legends()
	c := &Chart{Name: name, Title: title, Caption: caption, height: vg.Length(len(plots))*height + legendHeight(len(keys)) + 2*margin}
	c.draw = func(dc draw.Canvas) { tile(inRows(inset(dc), keys), plots) }
	return c
}

// finite reports whether there is anything to draw.
func (l *Line) finite() bool {
	return slices.ContainsFunc(l.Values, func(v Value) bool { return finite(v.X) && finite(v.Y) })
}

// pad leaves room beside the first and the last value, which would lie on the
// axes.
func pad(p *plot.Plot, logX, logY bool) {
	if d := (p.Y.Max - p.Y.Min) * 0.06; d > 0 && !logY {
		p.Y.Min, p.Y.Max = p.Y.Min-d, p.Y.Max+d
	}
	if logX {
		if f := math.Pow(p.X.Max/p.X.Min, 0.04); p.X.Min > 0 {
			p.X.Min, p.X.Max = p.X.Min/f, p.X.Max*f
		}
	}
}

// list names the rows of a plot, the first at the top.
func list(p *plot.Plot, rows []string) {
	var names []plot.Tick
	for i, name := range rows {
		names = append(names, plot.Tick{Value: float64(i), Label: name})
	}
	p.Y.Tick.Marker, p.Y.Tick.Length, p.Y.LineStyle.Width = plot.ConstantTicks(names), 0, 0
	p.Y.Min, p.Y.Max, p.Y.Scale = -0.6, float64(len(rows))-0.4, plot.InvertedScale{Normalizer: plot.LinearScale{}}
	if _, ok := p.X.Scale.(plot.LogScale); !ok {
		d := (p.X.Max - p.X.Min) * 0.05
		p.X.Min, p.X.Max = p.X.Min-d, p.X.Max+d
	}
}

// verticalLine is a grey line across the plot at an x.
type verticalLine float64

func (v verticalLine) Plot(c draw.Canvas, p *plot.Plot) {
	x, _ := p.Transforms(&c)
	if at := x(float64(v)); c.ContainsX(at) {
		c.StrokeLine2(draw.LineStyle{Color: grey, Width: 1, Dashes: dashes[1]}, at, c.Min.Y, at, c.Max.Y)
	}
}

// decades ticks a logarithmic axis at 1, 2 and 5 of every power of ten, or at the
// powers alone where that would crowd it; one of less than a decade like any other.
type decades struct{}

func (decades) Ticks(lo, hi float64) (ticks []plot.Tick) {
	if hi < 10*lo {
		return steps{}.Ticks(lo, hi)
	}
	first, last := int(math.Floor(math.Log10(lo))), int(math.Ceil(math.Log10(hi)))
	for e := first; e <= last; e++ {
		for m := 1; m < 10; m++ {
			t := plot.Tick{Value: float64(m) * math.Pow10(e)}
			if t.Value < lo*(1-1e-9) || t.Value > hi*(1+1e-9) {
				continue
			}
			if m == 1 || last-first <= 3 && (m == 2 || m == 5) {
				t.Label = fmt.Sprintf("%.5g", t.Value)
			}
			ticks = append(ticks, t)
		}
	}
	return ticks
}

// lineStyle is how a name is drawn.
type lineStyle struct {
	name  string
	line  draw.LineStyle
	glyph draw.GlyphStyle
	kind  Line // for what its thumbnail shows
}

// lineStyles hands out styles in the order in which names appear.
type lineStyles struct{ all []*lineStyle }

var lineShapes = []draw.GlyphDrawer{draw.CircleGlyph{}, draw.BoxGlyph{}, draw.PyramidGlyph{}, draw.SquareGlyph{}, draw.TriangleGlyph{}, draw.CrossGlyph{}, draw.PlusGlyph{}}

func (s *lineStyles) of(l Line) *lineStyle {
	if i := slices.IndexFunc(s.all, func(o *lineStyle) bool { return o.name == l.Name }); i >= 0 {
		return s.all[i]
	}
	n := 0 // names before it that are ours
	for _, o := range s.all {
		if !o.kind.Reference {
			n++
		}
	}
	// The last colour, yellow, is too pale for a thin line.
	st := &lineStyle{name: l.Name, kind: l, line: stroke(okabeIto[n%(len(okabeIto)-1)], dashes[n%len(dashes)])}
	st.glyph = draw.GlyphStyle{Color: st.line.Color, Radius: 3.2, Shape: lineShapes[n%len(lineShapes)]}
	if l.Reference {
		st.line = stroke(grey, dashes[2])
		st.glyph = draw.GlyphStyle{Color: color.NRGBA{0x50, 0x50, 0x50, 0xFF}, Radius: 4, Shape: draw.RingGlyph{}}
	}
	s.all = append(s.all, st)
	return st
}

// add draws a line in this style, with its deviations along X or along Y.
func (s *lineStyle) add(p *plot.Plot, l Line, alongX bool) {
	var xy plotter.XYs
	var bars plotter.YErrors
	some := false
	for _, v := range l.Values {
		if finite(v.X) && finite(v.Y) {
			xy, bars = append(xy, plotter.XY{X: v.X, Y: v.Y}), append(bars, struct{ Low, High float64 }{-v.Err, v.Err})
			some = some || v.Err > 0
		}
	}
	style := draw.LineStyle{Color: s.line.Color, Width: 0.8}
	switch {
	case some && alongX:
		p.Add(&plotter.XErrorBars{XYs: xy, XErrors: plotter.XErrors(bars), LineStyle: style, CapWidth: 4})
	case some:
		p.Add(&plotter.YErrorBars{XYs: xy, YErrors: bars, LineStyle: style, CapWidth: 4})
	}
	if !l.Points {
		p.Add(&plotter.Line{XYs: xy, LineStyle: s.line})
	}
	if !l.Plain || len(xy) == 1 {
		p.Add(&plotter.Scatter{XYs: xy, GlyphStyle: s.glyph})
	}
}

// legends are one legend for each name.
func (s *lineStyles) legends() (keys []plot.Legend) {
	for _, st := range s.all {
		l := newLegend()
		var thumbs []plot.Thumbnailer
		if !st.kind.Points {
			thumbs = append(thumbs, &plotter.Line{LineStyle: st.line})
		}
		if !st.kind.Plain {
			thumbs = append(thumbs, &plotter.Scatter{GlyphStyle: st.glyph})
		}
		l.Add(st.name, thumbs...)
		keys = append(keys, l)
	}
	return keys
}

// keysPerRow is how many names of a legend stand beside one another.
const keysPerRow = 4

func legendHeight(keys int) vg.Length {
	return vg.Length((keys+keysPerRow-1)/keysPerRow)*18 + 6
}

// inRows draws legends in rows at the top and leaves the rest of the canvas.
func inRows(c draw.Canvas, keys []plot.Legend) draw.Canvas {
	for i, l := range keys {
		x := c.Size().X / keysPerRow * vg.Length(i%keysPerRow)
		l.Draw(draw.Crop(c, x, 0, 0, -18*vg.Length(i/keysPerRow)))
	}
	return draw.Crop(c, 0, 0, 0, -legendHeight(len(keys)))
}

// tile draws plots in a grid with their axes in line.
func tile(c draw.Canvas, plots [][]*plot.Plot) {
	tiles := draw.Tiles{Rows: len(plots), Cols: len(plots[0]), PadX: 14, PadY: 10}
	for i, row := range plot.Align(plots, tiles, c) {
		for j, cell := range row {
			if plots[i][j] != nil {
				plots[i][j].Draw(cell)
			}
		}
	}
}
