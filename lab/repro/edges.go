package repro

import (
	"bytes"
	"cmp"
	"context"
	"encoding/csv"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/gsrc-dev/gsrc"
	"github.com/gsrc-dev/gsrc/data"
	"github.com/gsrc-dev/gsrc/data/catalog"
	"github.com/gsrc-dev/gsrc/graph"
	"github.com/gsrc-dev/gsrc/lab/bench"
	"github.com/gsrc-dev/gsrc/metrics"
)

// Table E: refined graphs against the truth.

// Rows of Table E that are compared.
const (
	againstRandom = "against random pairs alone"
	byEmbeddings  = "judged by embeddings"
	neverTrained  = "judged by embeddings, never trained"
)

const (
	planted          = 0.1          // share of the edges that is hidden, and of as many planted
	dropBelow        = 0.5          // probability below which old edges count as dropped: they are likelier none
	edgeBins         = 10           // of the calibration error
	refinementFolder = "refinement" // in the folder of data sets, for those that are in no catalog
	plainFolder      = "plain"      // in the folder of results, for what the plain predictors gave
	evidencePrefix   = "evidence_"  // of the columns of a refined graph that have what one source says
)

func edgeCells() (cells []cell) {
	embedding := slices.Concat(general, []string{"model.edges.judge=embedding", "candidates.two_step=0"})
	// Nothing that is trained takes part in judging edges by evidence.
	untrained := slices.Concat(general, []string{"train.pretrain_steps=0", "train.joint_every=0", "train.epochs=1"})
	rows := []entry{
		eclWith(eclGSR, untrained...),
		eclWith(againstRandom, append(slices.Clone(untrained), "model.edges.disguised=false")...),
		eclWith(byEmbeddings, embedding...),
		eclWith(neverTrained, append(slices.Clone(embedding), "train.pretrain_steps=0", "train.joint_every=0")...),
	}
	add := func(c cell, rows []entry) {
		for _, e := range rows {
			c.row, c.model, c.set = e.row, e.model, e.own
			cells = append(cells, c)
		}
	}
	for _, d := range []string{"cora", "citeseer", "blogcatalog"} {
		add(cell{panel: d + ", planted", data: d, kind: graph.Random}, rows)
	}
	for _, d := range citations {
		add(cell{panel: d + ", Metattack 20 %", data: d + "_metattack_0.2", clean: d + "_metattack_0"}, rows)
	}
	for _, d := range citations {
		add(cell{panel: d + ", by degrees", data: d, kind: graph.Degrees}, rows[:3])
		add(cell{panel: d + ", similar ends", data: d, kind: graph.Similar}, rows[:3])
	}
	return cells
}

// locate returns where a data set of the catalog, or of the folder refinement, is on this
// machine; empty if it is not.
func locate(name string) string {
	set, ok := catalog.Find(name)
	if !ok {
		set.Path = refinementFolder + "/" + name + ".npz"
		set.Files = []catalog.File{{Path: set.Path}}
	}
	path, _ := set.Locate()
	return path
}

func there(made string) bool {
	_, err := os.Stat(filepath.Join(made, data.TruthFile))
	return err == nil
}

// loadSource reads what data are made of: a data set by its name, a folder, or small generated data.
func loadSource(source string, seed uint64) (*data.Dataset, error) {
	if source == data.Synthetic {
		small := graph.DefaultCSBM()
		small.Nodes, small.Features = 100, 12
		return data.Load(source, data.LoadOptions{Seed: seed, Synthetic: &small})
	}
	if path := locate(source); path != "" {
		source = path
	}
	return data.Load(source, data.LoadOptions{})
}

// truth says of pairs of nodes, the lower number first, which are wrong edges and which
// hidden ones. hidden is nil where nothing was hidden to be found.
type truth struct{ wrong, hidden map[[2]int]bool }

// truth compares the data of a run with what they were before edges were hidden and planted, or
// with the clean data.
func (p *planned) truth() (*truth, error) {
	ds, err := data.Load(p.job.Data, data.LoadOptions{})
	if err != nil {
		return nil, err
	}
	pairs := func(edges [][2]int32) map[[2]int]bool {
		set := map[[2]int]bool{}
		for _, e := range edges {
			set[[2]int{int(e[0]), int(e[1])}] = true
		}
		return set
	}
	if p.kind != "" {
		before := ds.Truth.Undamaged()
		if before == nil {
			return nil, fmt.Errorf("%s has no %s", p.job.Data, data.TruthFile)
		}
		return &truth{pairs(graph.Difference(ds.Graph, before)), pairs(graph.Difference(before, ds.Graph))}, nil
	}
	clean, err := data.Load(locate(p.clean), data.LoadOptions{})
	if err != nil {
		return nil, err
	}
	return &truth{wrong: pairs(graph.Difference(ds.Graph, clean.Graph))}, nil
}

// edgeTable is a file of edges: pairs with their status, and columns of numbers.
type edgeTable struct {
	pairs  [][2]int
	status []string
	names  []string    // of the columns, in the file's order
	values [][]float64 // by column; an empty field is 0
}

// readEdges reads a CSV file with the columns source, target and status; the columns probability
// and evidence_… are numbers, others are passed over.
func readEdges(name string, r io.Reader) (*edgeTable, error) {
	in := csv.NewReader(r)
	header, err := in.Read()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	t := &edgeTable{}
	var at []int
	for i, c := range header {
		if c == "probability" || strings.HasPrefix(c, evidencePrefix) {
			t.names, at = append(t.names, c), append(at, i)
		}
	}
	t.values = make([][]float64, len(at))
	u, v, s := slices.Index(header, "source"), slices.Index(header, "target"), slices.Index(header, "status")
	if u < 0 || v < 0 || s < 0 {
		return nil, fmt.Errorf("%s: the columns are %s; source, target and status are needed", name, strings.Join(header, ","))
	}
	for {
		row, err := in.Read()
		if err == io.EOF {
			return t, nil
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		a, errA := strconv.Atoi(row[u])
		b, errB := strconv.Atoi(row[v])
		if err := cmp.Or(errA, errB); err != nil {
			line, _ := in.FieldPos(0)
			return nil, fmt.Errorf("%s:%d: nodes are not numbered: %w", name, line, err)
		}
		t.pairs, t.status = append(t.pairs, [2]int{min(a, b), max(a, b)}), append(t.status, row[s])
		for k, i := range at {
			x := 0.0
			if row[i] != "" {
				if x, err = strconv.ParseFloat(row[i], 64); err != nil {
					line, _ := in.FieldPos(i)
					return nil, fmt.Errorf("%s:%d: %s: %w", name, line, header[i], err)
				}
			}
			t.values[k] = append(t.values[k], x)
		}
	}
}

// measure holds the scores of edges, high ones for real edges, against the truth.
func (t *truth) measure(edges *edgeTable, scores []float64) (m EdgeMeasures) {
	var old, unlikely, fresh []float64
	var wrong, hidden []bool
	var score32 []float32
	var labels, rows []int32
	for i, e := range edges.pairs {
		if edges.status[i] == graph.StatusNew {
			fresh, hidden = append(fresh, scores[i]), append(hidden, t.hidden[e])
			continue
		}
		rows = append(rows, int32(len(old)))
		old, unlikely, wrong = append(old, scores[i]), append(unlikely, -scores[i]), append(wrong, t.wrong[e])
		score32, labels = append(score32, float32(scores[i])), append(labels, int32(count(t.wrong[e])))
	}
	n := len(t.wrong)
	auc, _ := metrics.AUC(score32, 1, labels, rows)
	auc /= 100
	m.Wrong, m.WrongAUC, m.WrongPrecision = &n, &auc, new(amongTop(unlikely, wrong, n)/float64(n))
	if t.hidden != nil {
		k := len(t.hidden)
		m.Hidden, m.HiddenFound = &k, new(amongTop(fresh, hidden, k))
	}
	return m
}

// amongTop is how many of those that are so are among the k with the highest scores; of
// equal scores around the last place, as many as are expected in random order.
func amongTop(scores []float64, is []bool, k int) float64 {
	order := make([]int, len(scores))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(scores[b], scores[a]) })
	sum := 0.0
	for i := 0; i < len(order) && i < k; {
		size, so := 0, 0
		for x := scores[order[i]]; i+size < len(order) && scores[order[i+size]] == x; size++ {
			so += count(is[order[i+size]])
		}
		sum += float64(so) * float64(min(size, k-i)) / float64(size)
		i += size
	}
	return sum
}

// judge adds to the line of a run what its refined graph is worth, and lines of its
// sources of evidence alone.
func (p *planned) judge(line ResultRow, dir string) (ResultRows, error) {
	t, err := p.truth()
	if err != nil {
		return nil, err
	}
	run, err := gsrc.OpenRun(dir)
	if err != nil {
		return nil, err
	}
	likelier := dropBelow
	o := gsrc.RefineOptions{Data: p.job.Data, KeepRemoved: true, Threshold: &likelier}
	kept, err := run.Refine(o)
	if err != nil {
		return nil, err
	}
	o.Threshold = new(float64) // all candidates
	all, err := run.Refine(o)
	if err != nil {
		return nil, err
	}
	var text bytes.Buffer
	if err := all.Write(&text, "csv"); err != nil {
		return nil, err
	}
	edges, err := readEdges(dir, &text)
	if err != nil {
		return nil, err
	}
	lines := ResultRows{line}
	for k, name := range edges.names {
		m := t.measure(edges, edges.values[k])
		if source, ok := strings.CutPrefix(name, evidencePrefix); ok {
			if p.row == eclGSR {
				m.Source = source
				lines = append(lines, ResultRow{Panel: line.Panel, Row: line.Row, Seed: line.Seed, Data: line.Data, Model: line.Model, Set: line.Set,
					Budget: line.Budget, Split: line.Split, Hash: line.Hash, EdgeMeasures: m})
			}
			continue
		}
		var probability []float32
		var real []bool
		for i, e := range edges.pairs {
			if edges.status[i] != graph.StatusNew {
				probability, real = append(probability, float32(edges.values[k][i])), append(real, !t.wrong[e])
			}
		}
		ece := metrics.CalibrationError(metrics.Reliability(probability, real, edgeBins))
		dropped, wrong := 0, 0
		for _, e := range kept.Edges {
			if e.Status == graph.StatusRemoved {
				dropped++
				wrong += count(t.wrong[[2]int{int(e.Source), int(e.Target)}])
			}
		}
		m.EdgeECE, m.Dropped = &ece, &dropped
		if dropped > 0 {
			m.DroppedPrecision = new(float64(wrong) / float64(dropped))
		}
		lines[0].EdgeMeasures = m
	}
	return lines, nil
}

// plain are the lines of plain link predictors on the data of runs. Each gives a file,
// which is kept.
func (e *evaluation) plain(ctx context.Context, runs []planned) (lines ResultRows, err error) {
	done := map[string]bool{}
	for _, p := range runs {
		at := fmt.Sprintf("%s, seed %d", p.panel, p.job.Seed)
		if done[at] {
			continue
		}
		done[at] = true
		path := filepath.Join(e.Out, plainFolder, fmt.Sprintf("%s-%d.csv", strings.TrimSuffix(filepath.Base(p.job.Data), ".npz"), p.job.Seed))
		text, err := e.byPython(ctx, path, at+": plain link predictors", func() ([]byte, error) {
			return bench.LinkPredictors(ctx, e.Python, p.job.Data, p.job.Seed, path)
		})
		if text == nil {
			return lines, err
		}
		t, err := p.truth()
		if err != nil {
			return nil, err
		}
		edges, err := readEdges(path, bytes.NewReader(text))
		if err != nil {
			return nil, err
		}
		for k, name := range edges.names {
			row := strings.ReplaceAll(strings.TrimPrefix(name, evidencePrefix), "_", " ")
			lines = append(lines, ResultRow{Panel: p.panel, Row: row, Seed: p.job.Seed, Data: p.data, Budget: e.Budget, EdgeMeasures: t.measure(edges, edges.values[k])})
		}
	}
	return lines, nil
}

// byPython returns the file that a Python program leaves, made by run if it is not there; nil,
// with a line that says why, where that cannot be.
func (e *evaluation) byPython(ctx context.Context, path, what string, run func() ([]byte, error)) ([]byte, error) {
	text, err := os.ReadFile(path)
	if os.IsNotExist(err) && e.Python != "" {
		e.logf("%s", what)
		if text, err = run(); ctx.Err() != nil {
			return nil, ctx.Err()
		}
	}
	switch {
	case err == nil:
		return text, nil
	case e.Python != "" || !os.IsNotExist(err):
		e.logf("%s: left out: %v", what, err)
	default:
		e.logf("%s: left out; name a Python that has NumPy, SciPy and scikit-learn with --baselines", what)
	}
	return nil, nil
}

// forests are the lines of a random forest on statistics of whole graphs, on the folds that
// come with the collections.
func (e *evaluation) forests(ctx context.Context, runs []planned) (lines ResultRows, err error) {
	seeds := 0
	for _, p := range runs {
		seeds = max(seeds, p.job.Seed+1)
	}
	for _, name := range distinct(runs, func(p planned) string { return p.data }) {
		path, zip := filepath.Join(e.Out, plainFolder, "forest-"+name+".csv"), locate(name)
		text, err := e.byPython(ctx, path, name+": a forest on statistics", func() ([]byte, error) {
			return bench.GraphForest(ctx, e.Python, zip, path)
		})
		if text == nil {
			return lines, err
		}
		table, err := csv.NewReader(bytes.NewReader(text)).ReadAll()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		for fold, row := range table[1:] {
			accuracy, err := strconv.ParseFloat(row[len(row)-1], 64)
			if err != nil {
				return nil, fmt.Errorf("%s, line %d: %w", path, fold+2, err)
			}
			if fold < seeds {
				lines = append(lines, ResultRow{Panel: name, Row: forest, Seed: fold, Data: name, Budget: e.Budget, Split: fmt.Sprint("fold ", fold), TestAcc: &accuracy})
			}
		}
	}
	return lines, nil
}
