package charts

import (
	"fmt"
	"image"
	"image/color"
	"math"
	"slices"
	"strconv"

	"github.com/gsrc-dev/gsrc"
	"github.com/gsrc-dev/gsrc/data"
	"github.com/gsrc-dev/gsrc/graph"
	"github.com/gsrc-dev/gsrc/infer"
	"github.com/gsrc-dev/gsrc/internal/abbrev"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// cells is the most rows and columns that an adjacency matrix is drawn with: a
// cell is then about two pixels wide.
const cells = 150

// bordered is how many classes have lines between them at most: more lines would
// hide what is between them.
const bordered = 16

// tickLetters and legendLetters are how long names of classes are at axes of matrices and elsewhere.
const tickLetters, legendLetters = 12, 24

// byClass is an order of the nodes by class, unlabelled ones last.
type byClass struct {
	rank   []int32 // [N] place of each node
	blocks []block
}

// block is a run of nodes of one class.
type block struct {
	name       string // of tickLetters at most
	begin, end int
}

func sortByClass(ds *data.Dataset) byClass {
	n := ds.Graph.N
	o := byClass{rank: make([]int32, n)}
	nodes := make([]int32, n)
	for i := range nodes {
		nodes[i] = int32(i)
	}
	class := func(v int32) int32 {
		if c := ds.Labels[v]; c >= 0 {
			return c
		}
		return int32(ds.Classes)
	}
	slices.SortStableFunc(nodes, func(a, b int32) int { return int(class(a) - class(b)) })
	names := abbrev.Names(infer.ClassNames(ds.ClassNames, ds.Classes), tickLetters)
	for i, v := range nodes {
		o.rank[v] = int32(i)
		name := "no label"
		if c := ds.Labels[v]; c >= 0 {
			name = names[c]
		}
		if k := len(o.blocks); k == 0 || o.blocks[k-1].name != name {
			o.blocks = append(o.blocks, block{name, i, i})
		}
		o.blocks[len(o.blocks)-1].end = i + 1
	}
	return o
}

func (o *byClass) bin(g *graph.Graph, k int) []float64 {
	sum := make([]float64, k*k)
	at := func(v int32) int { return int(int64(o.rank[v]) * int64(k) / int64(len(o.rank))) }
	for i, e := range g.Edges {
		w := 1.0
		if g.Weights != nil {
			w = float64(g.Weights[i])
		}
		a, b := at(e[0]), at(e[1])
		sum[a*k+b] += w
		sum[b*k+a] += w
	}
	return sum
}

// Adjacency draws the adjacency matrix of a run's data before and after refinement.
// The run must have its data; it returns nil where the
// graph has no edges, or where the data are a collection of graphs.
func Adjacency(run *gsrc.Run) *Chart {
	if run.Data == nil {
		return nil
	}
	before, after := graphs(run)
	return adjacency(run.Data, before, after)
}

// graphs are the graph of a run's data and the refined one, nil where nothing was
// refined.
func graphs(run *gsrc.Run) (before, after *graph.Graph) {
	before = run.Data.Graph.Undirected()
	before = &graph.Graph{N: before.N, Edges: before.Edges} // a candidate's weight is its probability, the data's are not read
	if x := run.Trained.Refined; x != nil && !x.Raw {
		after = x.Graph()
	}
	return before, after
}

// adjacency draws the matrix before and after refinement. after is nil where
// nothing was refined.
func adjacency(ds *data.Dataset, before, after *graph.Graph) *Chart {
	c := &Chart{Name: "adjacency", Title: "Adjacency matrix", height: 385}
	n := ds.Graph.N
	if n == 0 {
		return nil
	}
	o := sortByClass(ds)
	k := min(n, cells)
	graphs, titles := []*graph.Graph{before}, []string{"the data"}
	if after != nil {
		graphs, titles = append(graphs, after), append(titles, "refined")
	}
	var bins [][]float64
	top := 0.0
	for _, g := range graphs {
		b := o.bin(g, k)
		bins, top = append(bins, b), max(top, slices.Max(b))
	}
	if top == 0 {
		return nil
	}
	c.Caption = fmt.Sprintf("Nodes are sorted by class, so edges within a class are in the squares on the diagonal. The darker a cell, the more edge weight is in it; a cell is about %s nodes wide and high",
		strconv.FormatFloat(float64(n)/float64(k), 'f', 1, 64))
	if after != nil {
		c.Caption += ", and both matrices have the same scale"
	}
	c.Caption += "."
	if after != nil && after.Weights != nil {
		c.Caption += " Refined edges weigh their probability."
	}
	var panels []*plot.Plot
	for i, g := range graphs {
		axis := "nodes by class"
		if len(o.blocks) > bordered {
			axis = fmt.Sprintf("nodes by class (%d)", len(o.blocks))
		}
		p := newPlot(fmt.Sprintf("%s: %s edges", titles[i], count(g.NumEdges())), axis, axis)
		p.Add(plotter.NewImage(heat(bins[i], k, top), 0, 0, float64(n), float64(n)))
		o.lines(p)
		panels = append(panels, p)
	}
	c.draw = func(dc draw.Canvas) {
		dc = inset(dc)
		const bar = vg.Length(62)
		upper := draw.Crop(dc, 0, 0, bar, 0)
		if len(panels) == 1 { // in the middle, so that it is square too
			upper = draw.Crop(upper, dc.Size().X/4, -dc.Size().X/4, 0, 0)
		}
		tile(upper, [][]*plot.Plot{panels})
		scale(draw.Crop(dc, dc.Size().X/4, -dc.Size().X/4, 0, bar-10-dc.Size().Y), top)
	}
	return c
}

// shade is the colour of a share between 0 and 1 of the darkest: from white over
// blue to near black, steps of lightness that any eye sees.
func shade(v float64) color.NRGBA {
	stops := []color.NRGBA{{0xFF, 0xFF, 0xFF, 0xFF}, {0x7F, 0xB8, 0xD8, 0xFF}, blue, {0x00, 0x1A, 0x33, 0xFF}}
	v = min(max(v, 0), 1) * float64(len(stops)-1)
	i := min(int(v), len(stops)-2)
	f := v - float64(i)
	mix := func(a, b uint8) uint8 { return uint8(math.Round(float64(a) + f*(float64(b)-float64(a)))) }
	a, b := stops[i], stops[i+1]
	return color.NRGBA{mix(a.R, b.R), mix(a.G, b.G), mix(a.B, b.B), 0xFF}
}

// depth is the share of the darkest colour for a sum of weights. It grows as the
// square root: most cells have one edge, few have many, and both are to be seen.
func depth(v, top float64) float64 {
	if v == 0 {
		return 0
	}
	return 0.15 + 0.85*math.Sqrt(v/top)
}

// heat is the image of k×k sums, the first row at the top. Every cell is some
// pixels wide, since viewers blur images that they enlarge.
func heat(sum []float64, k int, top float64) image.Image {
	zoom := max(4, 800/k)
	img := image.NewNRGBA(image.Rect(0, 0, k*zoom, k*zoom))
	for y := range k * zoom {
		for x := range k * zoom {
			img.SetNRGBA(x, y, shade(depth(sum[y/zoom*k+x/zoom], top)))
		}
	}
	return img
}

// lines draws the borders of the classes, names them on the axes, and puts the
// first node at the top left, as matrices are written.
func (o *byClass) lines(p *plot.Plot) {
	n := float64(len(o.rank))
	border := draw.LineStyle{Color: color.NRGBA{0xD5, 0x5E, 0x00, 0x90}, Width: 0.6}
	line := func(at float64) {
		p.Add(&plotter.Line{XYs: plotter.XYs{{X: at, Y: 0}, {X: at, Y: n}}, LineStyle: border},
			&plotter.Line{XYs: plotter.XYs{{X: 0, Y: n - at}, {X: n, Y: n - at}}, LineStyle: border})
	}
	line(0)
	line(n)
	var x, y []plot.Tick
	for _, b := range o.blocks {
		if b.begin > 0 && len(o.blocks) <= bordered {
			line(float64(b.begin))
		}
		// A name needs room: about 230 points are there for all nodes.
		if float64(b.end-b.begin)/n*230 < 9 {
			continue
		}
		middle := float64(b.begin+b.end) / 2
		x, y = append(x, plot.Tick{Value: middle, Label: b.name}), append(y, plot.Tick{Value: n - middle, Label: b.name})
	}
	p.X.Tick.Marker, p.Y.Tick.Marker = plot.ConstantTicks(x), plot.ConstantTicks(y)
	p.X.Tick.Length, p.Y.Tick.Length, p.X.LineStyle.Width, p.Y.LineStyle.Width = 0, 0, 0, 0
	if slices.ContainsFunc(x, func(t plot.Tick) bool { return len(t.Label) > 3 }) {
		p.X.Tick.Label.Rotation = math.Pi / 4
		p.X.Tick.Label.XAlign, p.X.Tick.Label.YAlign = draw.XRight, draw.YCenter
	}
	p.X.Padding, p.Y.Padding = 0, 0
}

// scale draws the meaning of the shades.
func scale(c draw.Canvas, top float64) {
	const steps = 256
	img := image.NewNRGBA(image.Rect(0, 0, steps, 1))
	for i := range steps {
		v := top * float64(i) / (steps - 1)
		img.SetNRGBA(i, 0, shade(depth(v, top)))
	}
	p := newPlot("", "sum of edge weights in a cell", "")
	p.Add(plotter.NewImage(img, 0, 0, top, 1))
	p.HideY()
	p.X.Padding = 2
	p.Draw(c)
}
