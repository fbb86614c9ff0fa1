package charts

import (
	"cmp"
	"fmt"
	"image/color"
	"slices"

	"github.com/gsrc-dev/gsrc/data"
	"github.com/gsrc-dev/gsrc/infer"
	"github.com/gsrc-dev/gsrc/internal/abbrev"
	"github.com/gsrc-dev/gsrc/rng"
	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// drawnNodes is how many nodes an embedding is drawn with at most: more cover each
// other and say nothing new.
const drawnNodes = 4000

// shapes tell classes apart beside colours: neighbours in the legend and classes of
// the same colour have different ones.
var shapes = []draw.GlyphDrawer{draw.CircleGlyph{}, draw.PyramidGlyph{}, draw.BoxGlyph{}}

// listedClasses is how many classes get a colour and a shape of their own.
var listedClasses = len(shapes) * len(okabeIto)

// embedding draws the encoder's output [N, width] in its two first principal
// components; nil where there is none.
func embedding(ds *data.Dataset, h []float32, width int) *Chart {
	if width < 2 || len(h) < 3*width {
		return nil
	}
	nodes := sample(ds.Graph.N, drawnNodes)
	xy, explained, ok := principal(h, width, nodes)
	if !ok {
		return nil
	}
	c := &Chart{Name: "embedding", Title: "Embedding", height: 400,
		Caption: fmt.Sprintf("The encoder's %d dimensions in their first two principal components, which hold %.0f %% of the variance. Nodes of one class have one colour and shape.", width, 100*(explained[0]+explained[1]))}
	if len(nodes) < ds.Graph.N {
		c.Caption += fmt.Sprintf(" %s of %s nodes are drawn, chosen at random.", count(len(nodes)), count(ds.Graph.N))
	}
	axis := func(i int) string { return fmt.Sprintf("component %d (%.0f %% of variance)", i+1, 100*explained[i]) }
	p, l := newPlot("", axis(0), axis(1)), newLegend()
	p.Add(grid())
	place, names := listed(ds)
	radius := vg.Length(2)
	if len(nodes) < 500 {
		radius = 3.5
	}
	p.Add(&plotter.Scatter{XYs: xy, GlyphStyleFunc: func(i int) draw.GlyphStyle { return glyph(place(ds.Labels[nodes[i]]), radius) }})
	for i, name := range names {
		if ds.ClassNames == nil {
			name = "class " + name
		}
		l.Add(name, &plotter.Scatter{GlyphStyle: glyph(i, 4)})
	}
	if slices.ContainsFunc(nodes, func(v int) bool { return place(ds.Labels[v]) < 0 }) {
		l.Add("other or none", &plotter.Scatter{GlyphStyle: glyph(-1, 4)})
	}
	for _, a := range []*plot.Axis{&p.X, &p.Y} { // so that no point is on the axis
		widen(a)
		d := 0.03 * (a.Max - a.Min)
		a.Min, a.Max = a.Min-d, a.Max+d
	}
	c.draw = func(dc draw.Canvas) { beside(dc, p, l) }
	return c
}

// listed orders the classes for the legend: by number, or where there are too many
// the largest ones by size. place is −1 for a class that is not among them.
func listed(ds *data.Dataset) (place func(label int32) int, names []string) {
	size := make([]int, ds.Classes)
	for _, c := range ds.Labels {
		if c >= 0 {
			size[c]++
		}
	}
	order := make([]int32, ds.Classes)
	for c := range order {
		order[c] = int32(c)
	}
	if len(order) > listedClasses {
		slices.SortStableFunc(order, func(a, b int32) int { return cmp.Compare(size[b], size[a]) })
		order = order[:listedClasses]
	}
	short := abbrev.Names(infer.ClassNames(ds.ClassNames, ds.Classes), legendLetters)
	at := slices.Repeat([]int{-1}, ds.Classes)
	for i, c := range order {
		at[c] = i
		names = append(names, short[c])
	}
	return func(label int32) int {
		if label < 0 {
			return -1
		}
		return at[label]
	}, names
}

// glyph is the look of a class by its place, −1 being those without one.
func glyph(place int, radius vg.Length) draw.GlyphStyle {
	s := draw.GlyphStyle{Radius: radius, Shape: draw.CircleGlyph{}, Color: color.NRGBA{0xB0, 0xB0, 0xB0, 0xC0}}
	if place >= 0 {
		k := okabeIto[place%len(okabeIto)]
		k.A = 0xC0
		s.Color, s.Shape = k, shapes[(place%len(okabeIto)+place/len(okabeIto))%len(shapes)]
	}
	return s
}

// sample returns the numbers 0..n-1, or k of them drawn at random, ascending.
func sample(n, k int) []int {
	nodes := rng.New(0, "charts").Perm(n)
	nodes = nodes[:min(n, k)]
	slices.Sort(nodes)
	return nodes
}

// principal returns the first two principal components of some rows of h
// [N, width], and the share of the variance that each holds.
func principal(h []float32, width int, nodes []int) (xy plotter.XYs, explained [2]float64, ok bool) {
	x := mat.NewDense(len(nodes), width, nil)
	for j := range width { // centred, as the components are
		column := make([]float64, len(nodes))
		for i, v := range nodes {
			column[i] = float64(h[v*width+j])
		}
		mean := stat.Mean(column, nil)
		if !finite(mean) {
			return nil, explained, false
		}
		floats.AddConst(-mean, column)
		x.SetCol(j, column)
	}
	var pc stat.PC
	if !pc.PrincipalComponents(x, nil) {
		return nil, explained, false
	}
	var vectors mat.Dense
	pc.VectorsTo(&vectors)
	vars := pc.VarsTo(nil)
	total := floats.Sum(vars)
	if _, k := vectors.Dims(); k < 2 || !(total > 0) {
		return nil, explained, false
	}
	first := mat.DenseCopyOf(vectors.Slice(0, width, 0, 2))
	for j := range 2 {
		explained[j] = vars[j] / total
		// A component's sign is arbitrary: its largest loading is made positive.
		loadings := mat.Col(nil, j, first)
		if least := floats.Min(loadings); -least > floats.Max(loadings) {
			floats.Scale(-1, loadings)
			first.SetCol(j, loadings)
		}
	}
	var scores mat.Dense
	scores.Mul(x, first)
	for i := range nodes {
		xy = append(xy, plotter.XY{X: scores.At(i, 0), Y: scores.At(i, 1)})
	}
	return xy, explained, true
}
