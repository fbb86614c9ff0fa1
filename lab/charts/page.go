package charts

import (
	"bytes"
	_ "embed"
	"errors"
	"fmt"
	"html/template"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/gsrc-dev/gsrc"
	"github.com/gsrc-dev/gsrc/internal/atomicfile"
	"github.com/gsrc-dev/gsrc/train"
	"github.com/gsrc-dev/gsrc/train/checkpoint"
)

// PageFile is the name of the page that shows all charts.
const PageFile = "index.html"

// Options say how charts are drawn. The zero value is a good default.
type Options struct {
	// Data is where the training data are now, if not where they were.
	Data string
	// Threads of the encoder; 0 is one for each processor. Charts do not depend on
	// it.
	Threads int
}

// Draw draws the charts of a run into a folder, which is made where it is missing:
// NAME.svg and NAME.png for each, and index.html, which holds them all. It returns
// those that the run has: a model without an encoder has no embedding, and one that
// refines nothing has no graph after refinement. The run must be in a directory,
// which has its metrics.
func Draw(run *gsrc.Run, out string, o Options) ([]*Chart, error) {
	if run.Dir == "" {
		return nil, errors.New("a run in memory has no metrics to draw; train with a folder (TrainOptions.Out)")
	}
	if err := atomicfile.CheckOwn(filepath.Join(out, PageFile), isPage); err != nil {
		return nil, err
	}
	records, err := checkpoint.ReadMetrics(run.Dir)
	if err != nil {
		return nil, err
	}
	if err := run.LoadData(o.Data); err != nil {
		return nil, err
	}
	all := []*Chart{accuracies(records, run.Result, itemOf(run)), losses(records, run.Result, itemOf(run)), contrastive(records)}
	j := judgedOf(run)
	all = append(all, j.confusion(), j.perClass())
	if run.Graphs == nil { // many graphs have no one picture
		logits, classes, nodes, err := run.Classify(o.Threads)
		if err != nil {
			return nil, err
		}
		t := 0.0
		if c := run.Result.Calibration; c != nil {
			t = c.Temperature
		}
		all = append(all, j.precisionRecall(classes, run.Data.Labels, nodes), j.calibration(logits, classes, t, run.Data.Labels, nodes))
		h, width, err := run.Embed(o.Threads)
		if err != nil {
			return nil, err
		}
		before, after := graphs(run)
		learned := run.Trained.Refined
		if learned != nil && !learned.Raw {
			if learned, err = run.Learned(o.Threads); err != nil {
				return nil, err
			}
		}
		all = append(all, adjacency(run.Data, before, after), embedding(run.Data, h, width), degrees(before, after), homophily(run.Data, before, after, learned), probabilities(run.Data, learned), evidence(run.Data, learned))
	}
	charts := slices.DeleteFunc(all, func(c *Chart) bool { return c == nil })
	if _, err := os.Stat(filepath.Join(out, PageFile)); err != nil { // beside a page they are its charts
		for _, c := range charts {
			for _, path := range c.files(out) {
				if _, err := os.Stat(path); err == nil {
					return nil, fmt.Errorf("%s would be overwritten, and no %s beside it says that it is a chart of gsrc; move it away, or choose another folder", path, PageFile)
				}
			}
		}
	}
	if err := os.MkdirAll(out, 0o755); err != nil {
		return nil, err
	}
	return charts, write(out, run.Result, charts)
}

// files are those of the chart in a folder, an SVG and a PNG.
func (c *Chart) files(dir string) [2]string {
	return [2]string{filepath.Join(dir, c.Name+".svg"), filepath.Join(dir, c.Name+".png")}
}

//go:embed page.tmpl
var pageText string

var page = template.Must(template.New("page.tmpl").Parse(pageText))

// isPage reports whether a file is a page of charts, by the first figures at its head, which
// pages of all versions have.
func isPage(beginning []byte) bool {
	return bytes.Contains(beginning, []byte("<dl>\n<div><dt>seed</dt>"))
}

type figure struct {
	*Chart
	SVG template.HTML
}

type fact struct{ Name, Value string }

// write writes the page, which tells the charts from files of something else even where writing
// ends before they are all there, and the files of all charts.
func write(dir string, res *train.Result, charts []*Chart) error {
	var view struct {
		Title   string
		Facts   []fact
		Figures []figure
	}
	var svgs [][]byte
	view.Title, view.Facts = fmt.Sprintf("%s on %s", res.Model, res.Data), facts(res)
	for _, c := range charts {
		var svg bytes.Buffer
		if err := c.SVG(&svg); err != nil {
			return fmt.Errorf("chart %s: %w", c.Name, err)
		}
		svgs = append(svgs, svg.Bytes())
		// Within a page an SVG begins with its element: what is before it is of XML.
		text := svg.Bytes()
		text = text[max(0, bytes.Index(text, []byte("<svg"))):]
		view.Figures = append(view.Figures, figure{c, template.HTML(text)})
	}
	if err := atomicfile.Write(filepath.Join(dir, PageFile), func(w io.Writer) error { return page.Execute(w, &view) }); err != nil {
		return err
	}
	for i, c := range charts {
		files := c.files(dir)
		if err := errors.Join(atomicfile.WriteBytes(files[0], svgs[i]), atomicfile.Write(files[1], c.PNG)); err != nil {
			return err
		}
	}
	return nil
}

// facts are the figures at the head of the page, those that there are.
func facts(r *train.Result) (list []fact) {
	add := func(name, format string, v *float64) {
		if v != nil {
			list = append(list, fact{name, fmt.Sprintf(format, *v)})
		}
	}
	list = []fact{{"seed", fmt.Sprint(r.Seed)}, {"split", r.Split}}
	if r.Val != nil {
		add("validation accuracy", "%.2f %%", &r.ValAcc)
		add("test accuracy", "%.2f %%", r.TestAcc)
		list = append(list, fact{"kept epoch", fmt.Sprint(r.BestEpoch)})
	}
	list = append(list, fact{"edges", count(r.EdgesBefore)})
	if r.EdgesAfter != nil {
		list = append(list, fact{"edges, refined", count(*r.EdgesAfter)})
	}
	add("homophily", "%.3f", r.HomophilyBefore)
	add("homophily, refined", "%.3f", r.HomophilyAfter)
	return list
}
