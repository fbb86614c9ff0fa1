package data

import (
	"io"
	"math"
	"strings"
)

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
		Classes: c.Classes, ClassNames: c.ClassNames, ClassCounts: make([]int, c.Classes),
		Folds: len(c.Folds), Unused: c.Unused, Repairs: c.Repairs,
	}
	kinds := map[int64]bool{}
	for i, g := range c.Graphs {
		in.Edges += len(g.Edges)
		in.PerGraph.Nodes.add(g.N)
		in.PerGraph.Edges.add(len(g.Edges))
		in.ClassCounts[c.Labels[i]]++
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
	line := infoLines(&b)
	line("name", "%s", in.Name)
	line("source", "%s (%s)", in.Source, in.Format)
	line("checksum", "sha256 %s", in.Checksum)
	line("graphs", "%d", in.Graphs)
	line("nodes", "%d; of a graph min %d, mean %.2f, max %d", in.Nodes, in.PerGraph.Nodes.Min, in.PerGraph.Nodes.Mean, in.PerGraph.Nodes.Max)
	kind := "undirected"
	if in.Directed {
		kind = "directed"
	}
	line("edges", "%d %s; of a graph min %d, mean %.2f, max %d", in.Edges, kind, in.PerGraph.Edges.Min, in.PerGraph.Edges.Mean, in.PerGraph.Edges.Max)
	line("degree", "max %d, %d isolated", in.MaxDeg, in.Isolated)
	if in.EdgeLabels > 0 {
		line("edge labels", "%d different", in.EdgeLabels)
	}
	form := "dense"
	if in.Sparse {
		form = "sparse"
	}
	line("features", "%d columns (%s), density %.4f, held %s", in.Features, in.FeatureKind, in.FeatureDensity, form)
	for _, u := range in.Unused {
		line("unused", "%s", printable(u))
	}
	line("classes", "%d", in.Classes)
	writeClasses(&b, in.ClassNames, in.ClassCounts)
	if in.Folds > 0 {
		line("folds", "%d, with the data, which test %d of the %d graphs", in.Folds, in.Tested, in.Graphs)
	} else if in.Graphs < leastGraphs {
		line("folds", "none with the data, and none can be drawn: %d or more graphs are needed, and there are %d", leastGraphs, in.Graphs)
	} else {
		line("folds", "none with the data; %d stratified ones are drawn for each seed", FoldCount)
	}
	writeRepairs(line, in.Repairs)
	_, err := io.WriteString(w, b.String())
	return err
}
