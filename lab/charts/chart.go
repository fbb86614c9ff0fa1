// Package charts draws what a run did: its training curves, the adjacency matrix
// before and after refinement, the embedding, degrees and homophily. Each chart is
// an SVG and a PNG, and one HTML page that needs no network shows them all.
//
//	run, err := gsrc.OpenRun("runs/cora")
//	_, err = charts.Draw(run, "runs/cora/plots", charts.Options{})
//
// [Draw] is the front. The charts are drawn by gonum/plot in the colours of Okabe
// and Ito, which people with any kind of colour vision can distinguish; dashes, shapes
// or positions differ as well. Equal runs
// give equal bytes.
package charts

import (
	"bytes"
	"image/color"
	"io"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
	"gonum.org/v1/plot/vg/vgsvg"
)

// Chart is one picture with what a reader needs to know of it.
type Chart struct {
	Name    string // of its files, without extension
	Title   string
	Caption string // what is drawn, and how to read it

	height vg.Length
	draw   func(draw.Canvas)
}

// width of every chart: 800 pixels at 96 to the inch.
const width = vg.Length(600)

// paint draws on white, also where a viewer's own background is dark.
func (c *Chart) paint(canvas vg.CanvasSizer) {
	dc := draw.New(canvas)
	dc.SetColor(color.White)
	dc.Fill(dc.Rectangle.Path())
	c.draw(dc)
}

// PNG writes the chart as an image of 800 pixels' width.
func (c *Chart) PNG(w io.Writer) error {
	canvas := vgimg.New(width, c.height)
	c.paint(canvas)
	_, err := vgimg.PngCanvas{Canvas: canvas}.WriteTo(w)
	return err
}

// SVG writes the chart as a vector image.
func (c *Chart) SVG(w io.Writer) error {
	canvas := vgsvg.New(width, c.height)
	c.paint(canvas)
	var b bytes.Buffer
	if _, err := canvas.WriteTo(&b); err != nil {
		return err
	}
	text := b.Bytes()
	// vgsvg measures text in Liberation Sans, which has the widths of Arial and
	// Helvetica, and names no fallback. It calls its images JPEG, which they are not,
	// and leaves it to the viewer to fill their places, which viewers do not.
	text = bytes.ReplaceAll(text, []byte("font-family:Liberation Sans;"), []byte("font-family:'Liberation Sans',Arial,Helvetica,sans-serif;"))
	text = bytes.ReplaceAll(text, []byte("data:image/jpg;"), []byte("data:image/png;"))
	text = bytes.ReplaceAll(text, []byte("<image "), []byte(`<image preserveAspectRatio="none" `))
	_, err := w.Write(text)
	return err
}
