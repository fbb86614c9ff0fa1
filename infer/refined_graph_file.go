package infer

import (
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/gsrc-dev/gsrc/data"
	"github.com/gsrc-dev/gsrc/export/onnx"
	"github.com/gsrc-dev/gsrc/internal/atomicfile"
	"github.com/gsrc-dev/gsrc/internal/lists"
	"github.com/gsrc-dev/gsrc/internal/nearest"
)

// GraphFormats are the formats that a refined graph is written in; a file's
// extension is its format's name.
//
//   - csv: a header and a row for each edge: source, target, weight, probability,
//     data_weight (0 of new edges) where edges have weights in the data, status, and a
//     column for each source of evidence (evidence_features, …) where the
//     model judges by some. Nodes are called what the data call them.
//   - parquet: the same columns; source and target are strings where the data name
//     their nodes, int64 elsewhere; weight and probability are float32.
//   - npz: arrays for NumPy: source and target, int64 [E] node numbers; weight and
//     probability, float32 [E]; status, strings [E]; num_nodes, int64 [1]; and node_id,
//     [N] names, where the data have them.
//   - json: the node-link form that networkx.node_link_graph reads; it is the one
//     that lists nodes without edges by name, too.
//
// Those of a collection have one more column or array in front, graph, the number of the
// graph; source and target are then numbered within their graph, num_nodes is [G], and
// json calls a node [graph, node], which networkx makes a tuple.
var GraphFormats = []string{"csv", "npz", "parquet", "json"}

// FormatError says that a file's name or an option asks for a format that there
// is none of.
type FormatError struct{ Format string }

func (e *FormatError) Error() string {
	list := strings.Join(GraphFormats, ", ")
	if e.Format == "" {
		return "the name of the file has no extension that tells its format; there are " + list
	}
	if n := nearest.Of(e.Format, GraphFormats); n != "" {
		return fmt.Sprintf("there is no format %q; did you mean %q?", e.Format, n)
	}
	return fmt.Sprintf("there is no format %q; there are %s", e.Format, list)
}

// CheckGraphFormat returns a *FormatError if there is no such format.
func CheckGraphFormat(format string) error {
	if !slices.Contains(GraphFormats, format) {
		return &FormatError{format}
	}
	return nil
}

// GraphFormat returns the format of a file by its name's extension; devices have none, such as
// /dev/stdout, and get csv. The error is a *FormatError.
func GraphFormat(path string) (string, error) {
	format := strings.ToLower(strings.TrimPrefix(filepath.Ext(path), "."))
	if format == "" && strings.HasPrefix(path, "/dev/") {
		format = "csv"
	}
	return format, CheckGraphFormat(format)
}

// WriteFile writes the graph to a file in one of [GraphFormats]; an empty format is
// that of the file's extension. The file is there whole or not at all.
func (g *RefinedGraph) WriteFile(path, format string) error {
	if format == "" {
		var err error
		if format, err = GraphFormat(path); err != nil {
			return err
		}
	}
	return atomicfile.Write(path, func(w io.Writer) error { return g.Write(w, format) })
}

// Write writes the graph in one of [GraphFormats]. Equal graphs give equal bytes.
func (g *RefinedGraph) Write(w io.Writer, format string) error {
	n := max(len(g.Edges), len(g.rows))
	base := func(e RefinedEdge) int32 { // of the numbers in its graph
		if g.Offset == nil {
			return 0
		}
		return g.Offset[g.graphOf(e.Source)]
	}
	columns := []column{
		numbers("source", func(i int) int64 { return int64(g.edge(i).Source - base(g.edge(i))) }),
		numbers("target", func(i int) int64 { return int64(g.edge(i).Target - base(g.edge(i))) }),
		floats("weight", func(i int) float32 { return g.edge(i).Weight }),
		floats("probability", func(i int) float32 { return g.edge(i).Probability }),
		texts("status", func(i int) string { return g.edge(i).Status }),
	}
	if g.Weighted {
		columns = slices.Insert(columns, 4, floats("data_weight", func(i int) float32 { return g.edge(i).DataWeight }))
	}
	for _, e := range g.Evidence {
		columns = append(columns, floats(onnx.EvidencePrefix+e.Source, func(i int) float32 { return e.Values[g.edge(i).Candidate] }))
	}
	if g.Offset != nil {
		columns = slices.Insert(columns, 0, numbers("graph", func(i int) int64 { return int64(g.graphOf(g.edge(i).Source)) }))
	} else if g.NodeIDs != nil && format != "npz" {
		columns[0] = texts("source", func(i int) string { return g.NodeIDs[g.edge(i).Source] })
		columns[1] = texts("target", func(i int) string { return g.NodeIDs[g.edge(i).Target] })
	}
	switch format {
	case "csv":
		return writeCSV(w, n, columns, nil)
	case "npz":
		arrays := lists.Map(columns, func(x column) array { return x.arrayOf(n) })
		nodes := []int64{int64(g.N)}
		if g.Offset != nil {
			nodes = lists.Of(len(g.Offset)-1, func(i int) int64 { return int64(g.Offset[i+1] - g.Offset[i]) })
		}
		if arrays = append(arrays, array{name: "num_nodes", value: nodes}); g.NodeIDs != nil {
			arrays = append(arrays, array{name: "node_id", value: g.NodeIDs})
		}
		return writeNPZ(w, arrays)
	case "parquet":
		return writeParquet(w, n, columns, "status", nil)
	case "json":
		return g.writeJSON(w)
	}
	return &FormatError{format}
}

// graphOf returns the graph of a collection that a node belongs to.
func (g *RefinedGraph) graphOf(v int32) int {
	return (&data.Collection{Offset: g.Offset}).GraphOf(v)
}

// nodeLink is the node-link form of a graph.
type nodeLink struct {
	Directed   bool `json:"directed"`
	Multigraph bool `json:"multigraph"`
	Graph      struct {
		Name       string        `json:"name"`
		Refinement RefineSummary `json:"refinement"`
	} `json:"graph"`
	Nodes []nodeLinkNode `json:"nodes"`
	Edges []nodeLinkEdge `json:"edges"`
}

type nodeLinkNode struct {
	ID any `json:"id"` // string, int32 or, of a collection, [2]int32
}

type nodeLinkEdge struct {
	Source      any      `json:"source"`
	Target      any      `json:"target"`
	Weight      float32  `json:"weight"`
	Probability float32  `json:"probability"`
	DataWeight  *float32 `json:"data_weight,omitempty"`
	Status      string   `json:"status"`
	// Evidence by source.
	Evidence map[string]float32 `json:"evidence,omitempty"`
}

func (g *RefinedGraph) writeJSON(w io.Writer) error {
	ids := make([]any, g.N)
	for v := range ids {
		ids[v] = int32(v)
		if g.NodeIDs != nil {
			ids[v] = g.NodeIDs[v]
		}
		if g.Offset != nil {
			n := g.graphOf(int32(v))
			ids[v] = [2]int32{int32(n), int32(v) - g.Offset[n]}
		}
	}
	out := nodeLink{Directed: g.BothDirections, Nodes: make([]nodeLinkNode, g.N), Edges: make([]nodeLinkEdge, max(len(g.Edges), len(g.rows)))}
	out.Graph.Name, out.Graph.Refinement = g.Name, g.Summary
	for v, id := range ids {
		out.Nodes[v].ID = id
	}
	for i := range out.Edges {
		e := g.edge(i)
		out.Edges[i] = nodeLinkEdge{Source: ids[e.Source], Target: ids[e.Target], Weight: e.Weight, Probability: e.Probability, Status: e.Status}
		if g.Weighted {
			out.Edges[i].DataWeight = &e.DataWeight
		}
		for k, by := range g.Evidence {
			if k == 0 {
				out.Edges[i].Evidence = map[string]float32{}
			}
			out.Edges[i].Evidence[by.Source] = by.Values[e.Candidate]
		}
	}
	return json.NewEncoder(w).Encode(out)
}
