package charts

import (
	"fmt"
	"image/color"
	"slices"

	"github.com/gsrc-dev/gsrc/train"
	"github.com/gsrc-dev/gsrc/train/checkpoint"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// termNames are those of the zoo's models, in the order of the charts. Another
// program's terms follow under their own names.
var termNames = []struct{ term, name string }{
	{"loss", "loss"}, {"ecl", "contrastive loss"},
	{"disc", "discriminative term"}, {"gen", "generative term"}, {"reg", "regulariser"},
	{"xent", "cross-entropy"}, {"consistency", "consistency term"},
}

// TermName is how charts call a term of the loss.
func TermName(term string) string {
	for _, t := range termNames {
		if t.term == term {
			return t.name
		}
	}
	return term
}

// termsOf returns the terms of some records, in the order of termNames.
func termsOf(records []checkpoint.Record) []string {
	seen := map[string]bool{}
	var terms []string
	for _, r := range records {
		for t := range r.Terms {
			if !seen[t] {
				seen[t] = true
				terms = append(terms, t)
			}
		}
	}
	return SortTerms(terms)
}

// SortTerms puts terms of the loss into the order of the charts, in place.
func SortTerms(terms []string) []string {
	rank := func(t string) int {
		for i, n := range termNames {
			if n.term == t {
				return i
			}
		}
		return len(termNames)
	}
	slices.SortFunc(terms, func(a, b string) int {
		if rank(a) != rank(b) {
			return rank(a) - rank(b)
		}
		return slices.Compare([]byte(a), []byte(b))
	})
	return terms
}

// values are those of a term over x in the records that have both.
func values(records []checkpoint.Record, term string, x func(*checkpoint.Record) int) plotter.XYs {
	var xy plotter.XYs
	for i := range records {
		if v, ok := records[i].Terms[term]; ok {
			xy = append(xy, plotter.XY{X: float64(x(&records[i])), Y: float64(v)})
		}
	}
	return xy
}

func ofStep(r *checkpoint.Record) int  { return r.Step }
func ofEpoch(r *checkpoint.Record) int { return r.Epoch }

func where(records []checkpoint.Record, keep func(*checkpoint.Record) bool) []checkpoint.Record {
	var out []checkpoint.Record
	for i := range records {
		if keep(&records[i]) {
			out = append(out, records[i])
		}
	}
	return out
}

// contrastive draws the contrastive loss and its terms, a panel each: they differ
// too much in size for one axis. It returns nil where nothing was trained so.
func contrastive(records []checkpoint.Record) *Chart {
	pre := where(records, func(r *checkpoint.Record) bool { return r.Function == "pretrain" })
	joint := where(records, func(r *checkpoint.Record) bool { return r.Function == "joint" })
	if len(pre) == 0 {
		return nil
	}
	terms := termsOf(pre)
	c := &Chart{Name: "contrastive", Title: "Contrastive training",
		Caption: "The loss that the encoder is trained on, and its terms before they are weighted. The step is that of the whole run: pre-training comes first, then the classifier's epochs, some of which train the encoder too (joint steps, points)."}
	const columns, panel = 2, vg.Length(170)
	rows := (len(terms) + columns - 1) / columns
	c.height = vg.Length(rows)*panel + 24
	var plots [][]*plot.Plot
	for row := range rows {
		plots = append(plots, make([]*plot.Plot, columns))
		for col := range columns {
			if i := row*columns + col; i < len(terms) {
				plots[row][col] = termPanel(terms[i], pre, joint)
			}
		}
	}
	keys := []plot.Legend{newLegend()}
	keys[0].Add("pre-training", &plotter.Line{LineStyle: preStyle})
	if len(joint) > 0 {
		keys = append(keys, newLegend())
		keys[1].Add("joint steps", &plotter.Line{LineStyle: jointStyle}, &plotter.Scatter{GlyphStyle: points(jointStyle)})
	}
	c.draw = func(dc draw.Canvas) { tile(below(inset(dc), keys...), plots) }
	return c
}

var preStyle, jointStyle = stroke(blue, nil), stroke(vermilion, dashes[1])

func termPanel(term string, pre, joint []checkpoint.Record) *plot.Plot {
	p := newPlot("", "step of the run", TermName(term))
	p.Add(grid())
	(&series{xy: values(pre, term, ofStep), LineStyle: preStyle}).add(p, nil)
	if term == "loss" { // the joint loss has the classifier's in it
		term = "ecl"
	}
	(&series{xy: values(joint, term, ofStep), LineStyle: jointStyle, marked: true}).add(p, nil)
	widen(&p.X)
	widen(&p.Y)
	return p
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

// supervised are the records of the classifier's epochs.
func supervised(records []checkpoint.Record) []checkpoint.Record {
	return where(records, func(r *checkpoint.Record) bool { return r.Epoch > 0 })
}

// losses draws what the classifier is trained on.
func losses(records []checkpoint.Record, res *train.Result) *Chart {
	epochs := supervised(records)
	if len(epochs) == 0 {
		return nil
	}
	c := &Chart{Name: "loss", Title: "Loss of the classifier", height: plotHeight,
		Caption: "By epoch, in nats: the training loss with its terms, and the cross-entropy on the validation nodes. The run keeps the epoch with the highest validation accuracy."}
	p, l := newPlot("", "epoch", "loss (nats)"), newLegend()
	p.Add(grid())
	// The loss of a joint step has the encoder's in it.
	own := where(epochs, func(r *checkpoint.Record) bool { return r.Function != "joint" })
	n := 0
	for _, term := range termsOf(own) {
		s := series{name: TermName(term), xy: values(epochs, term, ofEpoch), LineStyle: stroke(okabeIto[[]int{0, 2, 3, 4, 5, 6}[n%6]], dashes[n%len(dashes)])}
		if term == "loss" {
			s.name, s.xy = "training loss", values(own, term, ofEpoch)
		}
		s.add(p, &l)
		n++
	}
	evaluated(epochs, "validation loss", vermilion, dashes[3], func(r *checkpoint.Record) *float64 { return r.ValLoss }).add(p, &l)
	vertical(p, &l, float64(res.BestEpoch), fmt.Sprintf("kept: epoch %d", res.BestEpoch))
	if p.Y.Min > 0 { // how near a loss has come to none is to be seen
		p.Y.Min = 0
	}
	widen(&p.X)
	widen(&p.Y)
	c.draw = func(dc draw.Canvas) { beside(dc, p, l) }
	return c
}

// evaluated is the series of what an evaluation measures.
func evaluated(records []checkpoint.Record, name string, c color.Color, dash []vg.Length, of func(*checkpoint.Record) *float64) *series {
	s := &series{name: name, LineStyle: stroke(c, dash)}
	for i := range records {
		if v := of(&records[i]); v != nil {
			s.xy = append(s.xy, plotter.XY{X: float64(records[i].Epoch), Y: *v})
		}
	}
	return s
}

// accuracies draws how well the training and the validation nodes are classified.
func accuracies(records []checkpoint.Record, res *train.Result) *Chart {
	epochs := supervised(records)
	if len(epochs) == 0 {
		return nil
	}
	c := &Chart{Name: "accuracy", Title: "Accuracy", height: plotHeight,
		Caption: "Share of the training and of the validation nodes that are classified right, by epoch. Test nodes are looked at once, at the kept epoch."}
	p, l := newPlot("", "epoch", "accuracy (%)"), newLegend()
	p.Add(grid())
	evaluated(epochs, "training", blue, dashes[1], func(r *checkpoint.Record) *float64 { return r.TrainAcc }).add(p, &l)
	evaluated(epochs, "validation", vermilion, nil, func(r *checkpoint.Record) *float64 { return r.ValAcc }).add(p, &l)
	vertical(p, &l, float64(res.BestEpoch), fmt.Sprintf("kept: epoch %d", res.BestEpoch))
	if res.TestAcc != nil {
		test := &plotter.Scatter{XYs: plotter.XYs{{X: float64(res.BestEpoch), Y: *res.TestAcc}},
			GlyphStyle: draw.GlyphStyle{Color: okabeIto[6], Radius: 4, Shape: draw.PyramidGlyph{}}}
		p.Add(test)
		l.Add(fmt.Sprintf("test: %.2f %%", *res.TestAcc), test)
	}
	widen(&p.X)
	widen(&p.Y)
	p.Y.Max = min(100, p.Y.Max+2)
	p.Y.Min = max(0, min(p.Y.Min-2, p.Y.Max-20)) // a curve that hardly moves is to look so
	c.draw = func(dc draw.Canvas) { beside(dc, p, l) }
	return c
}
