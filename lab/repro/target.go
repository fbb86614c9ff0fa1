package repro

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/gsrc-dev/gsrc/data"
	"github.com/gsrc-dev/gsrc/data/catalog"
	"github.com/gsrc-dev/gsrc/graph"
	"github.com/gsrc-dev/gsrc/internal/atomicfile"
	"github.com/gsrc-dev/gsrc/lab/charts"
	"github.com/gsrc-dev/gsrc/lab/sweep"
	"github.com/gsrc-dev/gsrc/train/checkpoint"
)

// Target is a table or a figure of the paper, or Table E, R or S.
type Target struct {
	Name  string // table1 to table4, fig3 to fig10, edges
	Title string // in a few words
	// Asks says what is compared with what, in sentences for the report.
	Asks string
	// Seeds is how many seeds, splits or folds are run by default.
	Seeds int

	cells []cell
	// alone targets measure time: their runs are done one after the other, with
	// all processors.
	alone bool
	// graphs targets classify whole graphs.
	graphs bool
	// kept targets keep the run directories, which they draw.
	kept bool
	// edges targets hold the refined graphs against the truth. They are kept.
	edges bool
	// render makes the text and the charts of finished runs.
	render func(*Target, ResultRows) rendered
	// trace takes from the metrics of kept runs what curves draws; both are nil
	// for targets that draw adjacency matrices.
	trace  func(records []checkpoint.Record) []Point
	curves func(*Target, []Point) *charts.Chart
}

// cell is one place of a table or one point of a figure; each seed is a run.
type cell struct {
	panel string // column of a table, plot of a figure: as a rule the data set
	row   string // row of a table, line of a figure
	x     string // what varies along the rows of a panel; empty if nothing does
	data  string // data set, by its name in the catalog
	model string
	set   []string
	// kind is that of the edges that are planted into data; clean is the data without the
	// wrong edges that data have. Both are empty for data that are taken as they are.
	kind  graph.Kind
	clean string
	// alteration is what else is made of the data; see alter.
	alteration alteration
}

type rendered struct {
	text     string        // Markdown: tables, tests, sentences
	caveat   string        // what the page has to say first, a sentence; may be empty
	chart    *charts.Chart // nil where there is none
	pictures []picture     // charts that were drawn from the runs themselves
}

// picture is a chart's file with what a reader needs to know of it.
type picture struct {
	Name    string // of its files, without extension
	Caption string
}

// Targets returns all targets, tables first, in the paper's order.
func Targets() []*Target { return targets }

// Names returns the names of all targets.
func Names() []string { return distinct(targets, func(t *Target) string { return t.Name }) }

// Find returns the target of a name, nil if there is none.
func Find(name string) *Target {
	if i := slices.IndexFunc(targets, func(t *Target) bool { return t.Name == name }); i >= 0 {
		return targets[i]
	}
	return nil
}

// Data returns the names of the data sets that the target runs on, in their order.
func (t *Target) Data() []string { return distinct(t.cells, func(c cell) string { return c.data }) }

// The budgets of [Options].
const (
	// Full is what the paper's evaluation asks for.
	Full = "full"
	// Short runs the machinery alone: two seeds of tables and one of figures, the
	// ends of each range, a few steps a run, on small generated graphs in place of
	// all data sets.
	Short = "short"
)

// shortSet makes runs of the short budget small. The options of a cell come after
// them.
var shortSet = []string{
	"synthetic.nodes=100", "synthetic.features=12", "train.epochs=3", "train.pretrain_steps=3", "train.joint_every=2",
	"train.anchors=16", "model.layers=2", "model.hidden=8", "model.encoder.hidden=8", "model.encoder.projection=8", "model.propagation.order=2",
	"deepwalk.walks=1", "deepwalk.length=10", "model.edges.judge=embedding",
}

// planned is a run that a target asks for.
type planned struct {
	cell
	job sweep.Job
	// made is the folder of data that are made for the run, if it has any, and source what
	// they are made of.
	made, source string
}

// plan lists the runs of a target with seeds on some of its data sets, those of a cell
// together. dir is for data that are made for them; see planned.prepare.
func (t *Target) plan(budget, dir string, seeds []int, on func(data string) bool) (runs []planned) {
	for _, c := range t.cells {
		if !on(c.data) || budget == Short && (!t.end(c) || c.model == sweep.Auto || c.row == asInPaper.row) { // which train dozens of models, or for minutes
			continue
		}
		for _, seed := range seeds {
			p := planned{cell: c, job: sweep.Job{Model: c.model, Data: c.data, Set: c.set, Seed: seed}}
			j := &p.job
			if budget == Short {
				j.Data, j.Set = data.Synthetic, slices.Clone(shortSet)
				if c.model == "sublime" || c.model == "stable" {
					j.Set = append(j.Set, "train.joint_every=0")
				} else if slices.ContainsFunc(learners, func(e entry) bool { return e.model == c.model }) {
					j.Set = slices.DeleteFunc(j.Set, func(set string) bool {
						return strings.HasPrefix(set, "train.pretrain_steps=") || strings.HasPrefix(set, "train.joint_every=")
					})
				}
				if t.graphs {
					j.Data = filepath.Join(dir, "short", "rings-and-stars.txt")
					p.made = filepath.Dir(j.Data)
				}
				if t.edges && c.kind == "" {
					p.kind = graph.Random
				}
				for _, set := range c.set {
					// Generated graphs have no parts that could stay.
					if ratio, ok := strings.CutPrefix(set, "data.split=ratio:"); ok {
						set = "data.split=random:" + ratio + ",0.2,0.2"
					}
					j.Set = append(j.Set, set)
				}
			}
			if p.kind != "" {
				// The name is no data set's own, so that no options of the data set count.
				p.made = filepath.Join(dir, "plantings", fmt.Sprintf("%s-%s-%d", j.Data, p.kind, seed))
				p.source, j.Data = j.Data, p.made
			} else if c.alteration.name != "" {
				p.made = filepath.Join(dir, "altered", c.alteration.folder(j.Data, seed))
				p.source, j.Data = j.Data, p.made
			} else if _, known := catalog.Find(j.Data); !known && budget != Short {
				j.Data = locate(j.Data)
			}
			runs = append(runs, p)
		}
	}
	return runs
}

// end reports whether a cell is the first or the last along its row.
func (t *Target) end(c cell) bool {
	var xs []string
	for _, o := range t.cells {
		if o.panel == c.panel && o.row == c.row {
			xs = append(xs, o.x)
		}
	}
	return c.x == xs[0] || c.x == xs[len(xs)-1]
}

// prepare makes the data of a run, if they are not there.
func (p *planned) prepare(ctx context.Context) error {
	switch {
	case p.made == "":
		return nil
	case p.kind != "" || p.alteration.name != "":
		return p.alter(ctx)
	}
	return smallGraphs(p.job.Data)
}

// smallGraphs writes a collection of rings and stars, for the short budget.
func smallGraphs(path string) error {
	var b strings.Builder
	const graphs = 60
	fmt.Fprintln(&b, graphs)
	for i := range graphs {
		n, class := 5+i%4, i%2
		fmt.Fprintln(&b, n, class)
		for v := range n {
			switch {
			case class == 0:
				fmt.Fprintln(&b, 0, 2, (v+1)%n, (v+n-1)%n)
			case v > 0:
				fmt.Fprintln(&b, 0, 1, 0)
			default:
				fmt.Fprint(&b, 0, " ", n-1)
				for w := 1; w < n; w++ {
					fmt.Fprint(&b, " ", w)
				}
				fmt.Fprintln(&b)
			}
		}
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return atomicfile.WriteBytes(path, []byte(b.String()))
}

func (t *Target) seeds(budget string) int {
	if budget == Short {
		if strings.HasPrefix(t.Name, "table") || t.edges { // the least that a test needs
			return 2
		}
		return 1
	}
	return t.Seeds
}

// distinct lists the different values of a property in their order.
func distinct[T any, K comparable](list []T, of func(T) K) (values []K) {
	for _, x := range list {
		if v := of(x); !slices.Contains(values, v) {
			values = append(values, v)
		}
	}
	return values
}

// command is the command line that repeats what the lines of a target hold.
func command(t *Target, lines ResultRows) string {
	c := "gsrc repro " + t.Name
	if data := distinct(lines, func(l ResultRow) string { return l.Data }); !slices.Equal(data, t.Data()) && len(data) > 0 {
		c += " --only " + strings.Join(data, ",")
	}
	if len(lines) == 0 {
		return c
	}
	budget := lines[0].Budget
	if n := lines.seeds(); n != t.seeds(budget) {
		c += fmt.Sprintf(" --seeds %d", n)
	}
	if budget != Full {
		c += " --budget " + budget
	}
	return c
}
