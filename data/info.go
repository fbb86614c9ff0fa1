package data

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/gsrc-dev/gsrc/data/schema"
	"github.com/gsrc-dev/gsrc/graph"
)

// Info is what gsrc data info prints of a data set. Its JSON form is stable:
// fields are added, never renamed.
type Info struct {
	Name     string `json:"name"`
	Source   string `json:"source"`
	Format   string `json:"format"`
	Checksum string `json:"checksum"`

	Nodes    int  `json:"nodes"`
	Edges    int  `json:"edges"` // undirected edges once; without self-loops
	Directed bool `json:"directed"`
	Weighted bool `json:"weighted"`

	Features       int     `json:"features"`
	FeatureNNZ     int     `json:"feature_nnz"`
	FeatureDensity float64 `json:"feature_density"`
	Sparse         bool    `json:"sparse"`

	Classes     int      `json:"classes"`
	ClassNames  []string `json:"class_names,omitempty"`
	ClassCounts []int    `json:"class_counts"` // [Classes]

	Degree Degree `json:"degree"`
	// Homophily is the share of edges between nodes of the same class; null if
	// no edge has two labels.
	Homophily *float64 `json:"homophily"`

	Splits    []SplitInfo `json:"splits"` // those that come with the data
	SplitSpec string      `json:"split_spec,omitempty"`

	// Of tables: which columns are what, how the others became features, and what was
	// guessed and left out in reading.
	Roles   *Roles         `json:"roles,omitempty"`
	Columns *schema.Schema `json:"columns,omitempty"`
	Notes   []string       `json:"notes,omitempty"`

	Repairs Repairs `json:"repairs"`
	// Corruption says how the graph was damaged on purpose; absent if it was not.
	Corruption *Corruption `json:"corruption,omitempty"`
	// Truth counts what a generator knows; absent for real data.
	Truth *TruthInfo `json:"truth,omitempty"`
}

// TruthInfo counts the edges of a generated graph's ground truth.
type TruthInfo struct {
	Edges  int `json:"edges"`  // of the graph before it was damaged
	Hidden int `json:"hidden"` // right edges that the data lacks
	Wrong  int `json:"wrong"`  // edges of the data that are not right
}

// Degree summarises how many edges nodes have.
type Degree struct {
	Min      int     `json:"min"`
	Mean     float64 `json:"mean"`
	Max      int     `json:"max"`
	Isolated int     `json:"isolated"` // nodes without an edge
}

// SplitInfo is the size of a split.
type SplitInfo struct {
	Train int `json:"train"`
	Val   int `json:"val"`
	Test  int `json:"test"`
}

// Info describes the data set.
func (d *Dataset) Info() Info {
	in := Info{
		Name: d.Name, Source: d.Source, Format: d.Format, Checksum: d.Checksum,
		Nodes: d.Graph.N, Edges: len(d.Graph.Edges), Directed: d.Graph.Directed, Weighted: d.Graph.Weights != nil,
		Features: d.X.Cols, FeatureNNZ: d.X.NNZ(), FeatureDensity: d.X.Density(), Sparse: d.X.IsSparse(),
		Classes: d.Classes, ClassNames: d.ClassNames, ClassCounts: make([]int, d.Classes),
		Splits: []SplitInfo{}, SplitSpec: d.SplitSpec.String(), Repairs: d.Repairs, Corruption: d.Corruption,
	}
	in.Notes = d.Notes
	if d.Roles != (Roles{}) {
		in.Roles, in.Columns = &d.Roles, d.Columns
	}
	if truth := d.Truth.Undamaged(); truth != nil {
		in.Truth = &TruthInfo{Edges: len(truth.Edges), Hidden: len(graph.Difference(truth, d.Graph)), Wrong: len(graph.Difference(d.Graph, truth))}
	}
	for _, c := range d.Labels {
		if c >= 0 {
			in.ClassCounts[c]++
		}
	}
	if h := d.Graph.Homophily(d.Labels); !math.IsNaN(h) {
		in.Homophily = &h
	}
	if degrees := d.Graph.Degrees(); len(degrees) > 0 {
		in.Degree.Min, in.Degree.Max = int(slices.Min(degrees)), int(slices.Max(degrees))
		sum := 0
		for _, n := range degrees {
			if n == 0 {
				in.Degree.Isolated++
			}
			sum += int(n)
		}
		in.Degree.Mean = float64(sum) / float64(d.Graph.N)
	}
	for _, s := range d.Splits {
		in.Splits = append(in.Splits, SplitInfo{len(s.Train), len(s.Val), len(s.Test)})
	}
	return in
}

// WriteText writes the information for people.
func (in Info) WriteText(w io.Writer) error {
	var b strings.Builder
	line := infoLines(&b, in.Name, in.Source, in.Format, in.Checksum)
	line("nodes", "%d", in.Nodes)
	kind := directions[in.Directed]
	if in.Weighted {
		kind += ", weighted (gat and all structure learners but ecl-gsr refuse weights that differ)"
	}
	line("edges", "%d %s", in.Edges, kind)
	line("degree", "min %d, mean %.2f, max %d, %d isolated", in.Degree.Min, in.Degree.Mean, in.Degree.Max, in.Degree.Isolated)
	if in.Homophily == nil {
		line("homophily", "unknown: no edge joins two labelled nodes")
	} else {
		line("homophily", "%.4f", *in.Homophily)
	}
	line("features", "%d columns, %d values, density %.4f, held %s", in.Features, in.FeatureNNZ, in.FeatureDensity, forms[in.Sparse])
	in.writeTables(line)
	line("classes", "%d", in.Classes)
	writeClasses(&b, in.ClassNames, in.ClassCounts)
	in.writeSplits(line)
	writeRepairs(line, in.Repairs, "nodes without a label", "unlabelled nodes dropped from the splits")
	if c := in.Corruption; c != nil {
		line("corrupted", "%d edges added at random, %d removed, seed %d", c.Added, c.Removed, c.Seed)
	}
	if t := in.Truth; t != nil {
		line("truth", "%d right edges, %d of them hidden, %d wrong ones added", t.Edges, t.Hidden, t.Wrong)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// writeTables writes what was made of tables, and what was noted in reading.
func (in Info) writeTables(line func(string, string, ...any)) {
	head := "notes"
	if in.Roles != nil {
		line("roles", "%s", in.Roles)
		head = "tables"
	}
	say := func(text string) {
		line(head, "%s", text)
		head = ""
	}
	for _, n := range in.Notes {
		say(n)
	}
	if in.Columns == nil {
		return
	}
	for _, text := range leftOut(in.Columns.LeftOut) {
		say(text)
	}
	head = "columns"
	const most = 50
	for i, c := range in.Columns.Columns {
		if i == most || !in.Columns.Prepared() {
			say(fmt.Sprintf("%d left as they are, or not shown", len(in.Columns.Columns)-i))
			break
		}
		say(printable(c.Name) + ": " + c.About())
	}
}

// Words for Directed and for Sparse.
var (
	directions = map[bool]string{false: "undirected", true: "directed"}
	forms      = map[bool]string{false: "dense", true: "sparse"}
)

// infoLines writes the lines that every text begins with, and returns what writes a line of a
// name and a text.
func infoLines(b *strings.Builder, name, source, format, checksum string) (line func(name, format string, args ...any)) {
	line = func(name, format string, args ...any) {
		fmt.Fprintf(b, "%-11s %s\n", name, fmt.Sprintf(format, args...))
	}
	line("name", "%s", name)
	line("source", "%s (%s)", source, format)
	line("checksum", "sha256 %s", checksum)
	return line
}

// writeClasses writes how many there are of each class, with a bar.
func writeClasses(b *strings.Builder, names []string, counts []int) {
	widest := 1
	for _, n := range counts {
		widest = max(widest, n)
	}
	for c, n := range counts {
		if c == 40 {
			fmt.Fprintf(b, "  … and %d more\n", len(counts)-c)
			break
		}
		name := fmt.Sprint(c)
		if names != nil {
			name = fmt.Sprintf("%d %s", c, printable(names[c]))
		}
		row := fmt.Sprintf("  %-24s %8d  %s", name, n, strings.Repeat("#", (n*30+widest-1)/widest))
		b.WriteString(strings.TrimRight(row, " ") + "\n")
	}
}

func (in Info) writeSplits(line func(string, string, ...any)) {
	switch {
	case in.SplitSpec != "":
		line("splits", "drawn for each seed: %s", in.SplitSpec)
	case len(in.Splits) == 0:
		line("splits", "none; training needs --split per-class:20,500,1000 or --split random:0.6,0.2,0.2")
	default:
		s := in.Splits[0]
		text, about := fmt.Sprintf("%d fixed", len(in.Splits)), ""
		if len(in.Splits) == 1 {
			text = "one"
		}
		if slices.ContainsFunc(in.Splits, func(o SplitInfo) bool { return o != s }) {
			about = " (the first)"
		}
		line("splits", "%s: train %d, val %d, test %d%s", text, s.Train, s.Val, s.Test, about)
	}
}

// merges says what was made of the weights of merged edges.
var merges = map[string]string{"": "the first was kept", MergeFirst: "the first was kept", MergeSum: "they were added", MergeMean: "their mean was taken", MergeMax: "the largest was kept"}

// writeRepairs writes what was changed or found missing; unlabelled and dropped say what
// Unlabelled and SplitUnlabelled count.
func writeRepairs(line func(string, string, ...any), r Repairs, unlabelled, dropped string) {
	head := "repaired"
	for _, c := range []struct {
		n    int
		text string
	}{
		{r.DuplicateEdges, "duplicate edges merged"},
		{r.ReversedEdges, "edges listed in both directions, merged"},
		{r.OneWayEdges, "edges listed in one direction, made undirected"},
		{r.WeightConflicts, "merged edges had different weights; " + merges[r.Merge]},
		{r.SelfLoops, "self-loops removed"},
		{r.MissingNodes, "nodes missing from the files, kept without features and label"},
		{r.Unlabelled, unlabelled},
		{r.EmptyRows, "nodes with all-zero features"},
		{r.SplitUnlabelled, dropped},
	} {
		if c.n > 0 {
			line(head, "%d %s", c.n, c.text)
			head = ""
		}
	}
	if head != "" {
		line(head, "nothing")
	}
}

// printable shows a name from a file without its control characters.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || (r >= 0x80 && r < 0xa0) {
			return '?'
		}
		return r
	}, s)
}

// CollectionInfo is what gsrc data info prints of a collection of graphs. Its
// JSON form is stable: fields are added, never renamed.
type CollectionInfo struct {
	Name     string `json:"name"`
	Source   string `json:"source"`
	Format   string `json:"format"`
	Checksum string `json:"checksum"`

	Graphs   int    `json:"graphs"`
	Nodes    int    `json:"nodes"` // of all graphs
	Edges    int    `json:"edges"` // of all graphs; undirected edges once, without self-loops
	Directed bool   `json:"directed"`
	PerGraph Ranges `json:"per_graph"`
	MaxDeg   int    `json:"max_degree"`
	Isolated int    `json:"isolated"` // nodes without an edge

	Features       int     `json:"features"`
	FeatureKind    string  `json:"feature_kind"`
	FeatureDensity float64 `json:"feature_density"`
	Sparse         bool    `json:"sparse"`
	EdgeLabels     int     `json:"edge_labels"` // how many different ones; 0 if edges have none

	Classes     int      `json:"classes"`
	ClassNames  []string `json:"class_names,omitempty"`
	ClassCounts []int    `json:"class_counts"` // [Classes] graphs

	Folds   int      `json:"folds"`  // that come with the data
	Tested  int      `json:"tested"` // graphs that are in the test part of one of them
	Unused  []string `json:"unused,omitempty"`
	Repairs Repairs  `json:"repairs"`
}

// Ranges says how large the graphs of a collection are.
type Ranges struct {
	Nodes Range `json:"nodes"`
	Edges Range `json:"edges"`
}

// Range summarises a number for each graph.
type Range struct {
	Min  int     `json:"min"`
	Mean float64 `json:"mean"`
	Max  int     `json:"max"`
}

// Info describes the collection.
func (c *Collection) Info() CollectionInfo {
	in := CollectionInfo{
		Name: c.Name, Source: c.Source, Format: c.Format, Checksum: c.Checksum,
		Graphs: len(c.Graphs), Nodes: c.Nodes(), Directed: c.Graphs[0].Directed,
		PerGraph: Ranges{Nodes: Range{Min: math.MaxInt}, Edges: Range{Min: math.MaxInt}},
		Features: c.X.Cols, FeatureKind: c.featureKind(), FeatureDensity: c.X.Density(), Sparse: c.X.IsSparse(),
		Classes: c.Classes, ClassNames: c.ClassNames, ClassCounts: Split{Train: labelled(c.Labels)}.ClassCounts(c.Labels, c.Classes),
		Folds: len(c.Folds), Unused: c.Unused, Repairs: c.Repairs,
	}
	kinds := map[int64]bool{}
	for i, g := range c.Graphs {
		in.Edges += len(g.Edges)
		in.PerGraph.Nodes.add(g.N)
		in.PerGraph.Edges.add(len(g.Edges))
		for _, d := range g.Degrees() {
			in.MaxDeg = max(in.MaxDeg, int(d))
			if d == 0 {
				in.Isolated++
			}
		}
		if c.EdgeLabels != nil {
			for _, l := range c.EdgeLabels[i] {
				kinds[l] = true
			}
		}
	}
	in.EdgeLabels = len(kinds)
	for _, f := range c.Folds {
		in.Tested += len(f.Test)
	}
	in.PerGraph.Nodes.Mean = float64(in.Nodes) / float64(in.Graphs)
	in.PerGraph.Edges.Mean = float64(in.Edges) / float64(in.Graphs)
	return in
}

func (r *Range) add(n int) { r.Min, r.Max = min(r.Min, n), max(r.Max, n) }

// WriteText writes the information for people.
func (in CollectionInfo) WriteText(w io.Writer) error {
	var b strings.Builder
	line := infoLines(&b, in.Name, in.Source, in.Format, in.Checksum)
	line("graphs", "%d", in.Graphs)
	line("nodes", "%d; of a graph min %d, mean %.2f, max %d", in.Nodes, in.PerGraph.Nodes.Min, in.PerGraph.Nodes.Mean, in.PerGraph.Nodes.Max)
	line("edges", "%d %s; of a graph min %d, mean %.2f, max %d", in.Edges, directions[in.Directed], in.PerGraph.Edges.Min, in.PerGraph.Edges.Mean, in.PerGraph.Edges.Max)
	line("degree", "max %d, %d isolated", in.MaxDeg, in.Isolated)
	if in.EdgeLabels > 0 {
		line("edge labels", "%d different", in.EdgeLabels)
	}
	line("features", "%d columns (%s), density %.4f, held %s", in.Features, in.FeatureKind, in.FeatureDensity, forms[in.Sparse])
	for _, u := range in.Unused {
		line("unused", "%s", printable(u))
	}
	line("classes", "%d", in.Classes)
	writeClasses(&b, in.ClassNames, in.ClassCounts)
	if in.Folds > 0 {
		line("folds", "%d, with the data, which test %d of the %d graphs", in.Folds, in.Tested, in.Graphs)
	} else if n := in.Graphs - in.Repairs.Unlabelled; n < leastGraphs {
		line("folds", "none with the data, and none can be drawn: %d or more graphs with a class are needed, and there are %d", leastGraphs, n)
	} else {
		line("folds", "none with the data; %d stratified ones are drawn for each seed", FoldCount)
	}
	writeRepairs(line, in.Repairs, "graphs without a class", "entries of the folds dropped, of graphs without a class")
	_, err := io.WriteString(w, b.String())
	return err
}
