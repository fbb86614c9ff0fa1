package repro

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/gsrc-dev/gsrc"
	"github.com/gsrc-dev/gsrc/data"
	"github.com/gsrc-dev/gsrc/graph"
	"github.com/gsrc-dev/gsrc/lab"
	"github.com/gsrc-dev/gsrc/lab/sweep"
	"github.com/gsrc-dev/gsrc/rng"
)

// Tables R and S: rows of models on graphs that are damaged, and plain classifiers on a
// refined graph that was written out.

// alteration is what is made of data before a run. Altered data are written as a folder of
// their own, so that no options tuned for the data set count.
type alteration struct {
	name string // of the folder; empty leaves the data as they are
	// share of the entries of the features that are left out or, with moved, put into another
	// column of the node.
	share float64
	moved bool
	// refined puts in the place of the edges those of ecl-gsr's graph with at least half the
	// probability or, with weighted, all of them with their probabilities as weights.
	refined, weighted bool
	// embedded puts in the place of the features the embedding of ecl-gsr's encoder, trained by
	// contrast or, with drawn, never.
	embedded, drawn bool
}

var (
	copied       = alteration{name: "copy"}
	refinedEdges = alteration{name: "refined", refined: true}
	refinedAll   = alteration{name: "weighted", refined: true, weighted: true}
)

// judged is ecl-gsr for its refined graph alone: nothing that is trained takes part in
// judging edges by evidence.
var judged = []string{"train.pretrain_steps=0", "train.joint_every=0", "train.epochs=1"}

// alter writes the data of a run with edges hidden and planted, or altered otherwise, if they are not there.
func (p *planned) alter(ctx context.Context) error {
	if there(p.made) {
		return nil
	}
	source, seed := p.source, uint64(p.job.Seed)
	if p.alteration.refined || p.alteration.embedded {
		// Both refined graphs, and embeddings, are made of the copy, whose name has no options.
		c := *p
		c.alteration, c.made = copied, filepath.Join(filepath.Dir(p.made), copied.folder(source, p.job.Seed))
		if err := c.alter(ctx); err != nil {
			return err
		}
		source = c.made
	}
	ds, err := loadSource(source, seed)
	if err != nil {
		return err
	}
	var wrong, hidden [][2]int32
	switch a := p.alteration; {
	case p.kind != "":
		wrong, hidden, err = ds.Plant(p.kind, planted, planted, seed)
	case a.refined:
		ds.Graph, err = refinedGraph(ctx, source, ds.Graph, seed, a.weighted)
	case a.embedded:
		ds.X, err = embedding(ctx, source, seed, a.drawn)
	case a.share > 0:
		ds.X = alterFeatures(ds.X, a.share, a.moved, rng.New(seed, "repro.features"))
	}
	if err != nil {
		return err
	}
	if err := ds.WritePlanted(p.made, seed, wrong, hidden); err != nil && !there(p.made) { // another shard may have been faster
		return err
	}
	return nil
}

func (a alteration) folder(source string, seed int) string {
	return fmt.Sprintf("%s-%s-%d", source, a.name, seed)
}

// refinedGraph is the graph that ecl-gsr makes of g, the graph of the data in source.
func refinedGraph(ctx context.Context, source string, g *graph.Graph, seed uint64, weighted bool) (*graph.Graph, error) {
	o := gsrc.TrainOptions{Model: eclGSR, Data: source, Seed: int(seed)}
	s, err := gsrc.Prepare(o)
	if err != nil {
		return nil, err
	}
	if !s.Config.Model.Edges.SameClass { // which asks the trained classifier
		o.Set = judged
	}
	run, err := gsrc.Train(ctx, o)
	if err != nil {
		return nil, err
	}
	threshold := dropBelow
	if weighted {
		threshold = 0
	}
	r, err := run.Refine(gsrc.RefineOptions{Data: source, Threshold: &threshold})
	if err != nil {
		return nil, err
	}
	var src, dst []int32
	var weights []float32
	for _, e := range r.Edges {
		src, dst = append(src, e.Source), append(dst, e.Target)
		if weighted {
			weights = append(weights, e.Weight)
		}
	}
	out, _, err := graph.Build(g.N, src, dst, weights, false)
	return out, err
}

// alterFeatures leaves out a share of the entries, drawn evenly, or moves them to columns that
// the node has no entry in.
func alterFeatures(x *data.Features, share float64, moved bool, draws rng.Stream) *data.Features {
	x = x.ToCSR()
	out := &data.Features{Rows: x.Rows, Cols: x.Cols, RowPtr: make([]int32, 1, x.Rows+1)}
	drop, column := draws.Sub("entry"), draws.Sub("column")
	for i := range x.Rows {
		row := map[int32]float32{}
		var loose []float32
		for k := x.RowPtr[i]; k < x.RowPtr[i+1]; k++ {
			if float64(drop.Uniform(uint64(k))) < share {
				loose = append(loose, x.Val[k])
			} else {
				row[x.Col[k]] = x.Val[k]
			}
		}
		for try := uint64(0); moved && len(loose) > 0 && len(row) < x.Cols; try++ {
			c := int32(column.At(uint64(i)).Intn(try, x.Cols))
			if _, taken := row[c]; !taken {
				row[c], loose = loose[0], loose[1:]
			}
		}
		for _, c := range slices.Sorted(maps.Keys(row)) {
			out.Col, out.Val = append(out.Col, c), append(out.Val, row[c])
		}
		out.RowPtr = append(out.RowPtr, int32(len(out.Col)))
	}
	return out
}

// general is the classifier that ecl-gsr has by default.toml, in the place of that by own.ecl-gsr.toml.
var general = []string{"model.classifier=gcn", "model.hidden=16", "model.weight_decay=0.0005", "model.edges.consistency=1.0", "model.edges.confidence=0.0",
	"train.lr=0.01", "train.epochs=200", "train.eval_every=1", "train.self_training=0"}

// asGCN are the options that gcn has by data set, for rows that classify as it does.
var asGCN = map[string][]string{"blogcatalog": {"model.hidden=128", "model.weight_decay=5e-6"}}

// Rows of Table R that read a refined graph; all others are plain. All but the first two judge edges against
// random pairs alone, and have the general classifier, as by default when they were run.
var onRefined = []entry{
	{row: eclGSR, model: "ecl-gsr"},
	{row: eclGSR + cutAtTraining, model: "ecl-gsr", own: []string{"data.edges=cut:training"}},
	{row: "ecl-gsr, gcn", model: "ecl-gsr", own: slices.Concat(general, []string{"model.edges.disguised=false"}), byData: asGCN},
	{row: "refined, gcn", model: "ecl-gsr", own: slices.Concat(general, []string{"model.edges.disguised=false", "train.pretrain_steps=0", "train.joint_every=0", "model.edges.threshold=0.5"}), byData: asGCN},
	{row: "refined, propagated, linear, self-trained", model: "ecl-gsr", own: slices.Concat(general, []string{"model.edges.disguised=false", "train.pretrain_steps=0", "train.joint_every=0", "model.edges.threshold=0.5",
		"model.classifier=linear", "model.input_dropout=0.0", "model.weight_decay=0.0002", "model.decay_first=false", "train.lr=0.1", "model.linear.steps=8",
		"train.self_training=3", "train.epochs=100", "train.eval_every=10"})},
}

// offRefined are the plain rows of Table R.
var offRefined = slices.Concat(pick("gcn"), otherEdges, []entry{
	{row: "gcn, cut by features", model: "gcn", own: []string{"data.edges=cut:0.05"}},
	{row: "gcn" + cutAtTraining, model: "gcn", own: []string{"data.edges=cut:training"}},
	{row: rawGraph + cutAtTraining, model: "ecl-gsr", own: []string{"data.edges=cut:training", "candidates.structure=raw"}},
}, plain[1:], selfTrained[:1], []entry{
	{row: "cut by features, propagated, linear, self-trained", model: "linear", own: []string{"data.edges=cut:0.05", "model.linear.steps=8", "train.self_training=3", "train.epochs=100", "train.eval_every=10"}},
	{row: "cut at training nodes, propagated, linear, self-trained", model: "linear", own: slices.Concat(selfTrained[0].own, []string{"data.edges=cut:training"})},
}, those(learners, "stable"))

// onRaw is the classifier of the first of onRefined, on the graph as it is.
var onRaw = entry{row: rawGraph, model: "ecl-gsr", own: []string{"candidates.structure=raw"}}

// otherLearners are the rows of Table R for structure learners beside stable, in no comparison of rows.
var otherLearners = those(learners, "grcn", "idgl", "sublime", "gen", "prognn", "lds")

func robustCells() (cells []cell) {
	entries := slices.Concat(onRefined[:1], []entry{onRaw}, onRefined[1:], offRefined, otherLearners, chosen, ofEncoder[:2])
	for _, d := range citations {
		for _, e := range entries {
			add := func(x, suffix string, a alteration, set ...string) {
				c := e.cell(d, x, d+"_metattack_"+suffix, set...)
				c.alteration = a
				cells = append(cells, c)
			}
			add("none", "0", alteration{})
			add("Metattack 10 %", "0.1", alteration{})
			add("Metattack 20 %", "0.2", alteration{})
			add("features masked 50 %", "0", alteration{name: "masked-0.5", share: 0.5})
			add("features wrong 50 %", "0", alteration{name: "wrong-0.5", share: 0.5, moved: true})
			add("edges replaced 20 %", "0", alteration{}, "data.add_edges=0.2", "data.remove_edges=0.2")
			add("edges replaced 40 %", "0", alteration{}, "data.add_edges=0.4", "data.remove_edges=0.4")
		}
	}
	for _, e := range entries {
		cells = append(cells, e.cell("blogcatalog", "none", "blogcatalog"))
	}
	return cells
}

// cutAtTraining ends the names of rows without edges that were likelier added at training nodes.
const cutAtTraining = ", cut at training nodes"

// transferred are the classifiers of Table S.
var transferred = []string{"gcn", "gat", "sage"}

func transferCells() (cells []cell) {
	panel := func(data string) string { return strings.ReplaceAll(data, "_metattack_0.2", ", Metattack 20 %") }
	for _, d := range slices.Concat(citations, []string{"cora_metattack_0.2", "citeseer_metattack_0.2"}, webPages, []string{"actor", "blogcatalog"}) {
		for _, m := range transferred {
			add := func(row string, a alteration, set ...string) {
				cells = append(cells, cell{panel: panel(d), row: m + row, data: d, model: m, set: set, alteration: a})
			}
			add("", copied)
			add(", no edges", copied, "data.edges=none")
			add(", nearest neighbours", copied, "data.edges=knn:5")
			add(cutAtTraining, copied, "data.edges=cut:training")
			add(", refined", refinedEdges)
			if m != "gat" { // which refuses weights
				add(", refined, weighted", refinedAll)
			}
		}
		for _, e := range slices.Concat([]entry{{row: eclGSR, model: eclGSR}}, learners) {
			c := e.cell(panel(d), "", d)
			c.alteration = copied
			cells = append(cells, c)
		}
	}
	return cells
}

// contest is a comparison of rows that read a refined graph with plain ones.
type contest struct {
	name           string
	refined, plain []string
}

// contests compares, at every place, the refined row with the plain one, of each kind the one
// that validation nodes prefer, paired by seed. Rows with fewer seeds there than others take no part.
func contests(ls ResultRows, list []contest) string {
	type test struct {
		line []string
		*lab.Comparison
	}
	var tests []test
	var ps []float64
	for _, at := range ls.places() {
		for _, c := range list {
			most := 0
			for _, row := range slices.Concat(c.refined, c.plain) {
				most = max(most, len(ls.of(at.panel, row, at.x)))
			}
			best := func(rows []string) (name string) {
				top := -1.0
				for _, row := range rows {
					of := ls.of(at.panel, row, at.x)
					if mean, _, ok := of.meanStd(valAcc); ok && mean > top && len(of) == most {
						name, top = row, mean
					}
				}
				return name
			}
			a, b := best(c.refined), best(c.plain)
			if p := ls.paired(at.panel, at.x, a, b); a != "" && b != "" && p != nil {
				name := strings.TrimSuffix(at.panel+", "+at.x, ", ") + c.name
				tests, ps = append(tests, test{[]string{name, a, b}, p}), append(ps, p.P)
			}
		}
	}
	if tests == nil {
		return ""
	}
	var rows [][]string
	var up, down, higher int
	for i, p := range lab.Holm(ps) {
		c := tests[i]
		up, down, higher = up+count(c.Diff > 0 && p < significant), down+count(c.Diff < 0 && p < significant), higher+count(c.Diff > 0)
		rows = append(rows, append(c.line, signed(c.Diff), signed(c.Lo)+" to "+signed(c.Hi), pvalue(c.P), pvalue(p)))
	}
	return fmt.Sprintf("\nThe refined row and the plain one that are best on validation nodes, paired by seed; the last column is p by Holm's correction over all of these tests. "+
		"Of %d places the refined one is higher at %d; it is better at %d and worse at %d beyond p < %v, corrected.\n\n", len(tests), higher, up, down, significant) +
		table([]string{"", "refined", "plain", "difference", "95 % interval", "p", "p, Holm"}, rows)
}

// preferred is a table of what comes of taking, for each seed, the row that its validation nodes
// prefer, the first of equal ones: of all rows, of those that read a refined graph, and of the others. A row
// that has fewer seeds is there for those.
func preferred(ls ResultRows, name string, refined ...string) string {
	var rows [][]string
	xs := ls.xs("")
	for _, panel := range ls.panels() {
		for _, of := range []struct {
			name string
			in   func(row string) bool
		}{
			{"of all rows", func(string) bool { return true }},
			{"of those that refine", func(row string) bool { return slices.Contains(refined, row) }},
			{"of the others", func(row string) bool { return !slices.Contains(refined, row) }},
		} {
			rows = append(rows, tableLine(panel+", "+of.name, xs, func(x string) string {
				best := make(ResultRows, ls.seeds()) // by seed
				for _, l := range ls {
					if l.Panel != panel || l.X != x || l.Row == sweep.Auto || l.Row == learnsFromValidation || !of.in(l.Row) || l.ValAcc == nil || l.TestAcc == nil {
						continue
					}
					if b := &best[l.Seed]; b.ValAcc == nil || *l.ValAcc > *b.ValAcc {
						*b = l
					}
				}
				return best.spread("%.2f ± %.2f", testAcc)
			}))
		}
	}
	head := append([]string{"test accuracy (%)"}, xs...)
	head[1] = name + " " + head[1]
	return "\nWith each split's own validation nodes to choose a row by, but for “" + learnsFromValidation + "”, which learns from labels of half of these; rows of fewer seeds are there for those. This table was added when the rows' test figures were known:\n\n" + table(head, rows)
}

// rowsOf has the rows of entries.
func rowsOf(list []entry) []string { return distinct(list, func(e entry) string { return e.row }) }

func robustReport(t *Target, ls ResultRows) rendered {
	return rendered{text: deep(t, ls, "damage:") + contests(ls, []contest{{"", rowsOf(onRefined), rowsOf(append([]entry{onRaw}, offRefined...))}}) + trainedEncoder(ls, embeddingOnly, encoderDrawn)}
}

func transferReport(t *Target, ls ResultRows) rendered {
	var list, others []contest
	for _, m := range transferred {
		c := contest{": " + m, []string{m + ", refined", m + ", refined, weighted"}, []string{m, m + ", no edges", m + ", nearest neighbours"}}
		others = append(others, c)
		c.plain = append(slices.Clone(c.plain), m+cutAtTraining)
		list = append(list, c)
	}
	text := wide(t, ls) + contests(ls, list)
	if _, without, ok := strings.Cut(contests(ls, others), "all of these tests. "); ok {
		without, _, _ = strings.Cut(without, "\n")
		text += "\nWhere no plain row is cut at training nodes: " + without + "\n"
	}
	return rendered{text: text}
}
