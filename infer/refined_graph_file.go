package infer

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/gsrc-dev/gsrc/internal/atomicfile"
	"github.com/gsrc-dev/gsrc/internal/nearest"
	"github.com/parquet-go/parquet-go"
	"github.com/sbinet/npyio/npz"
)

// GraphFormats are the formats that a refined graph is written in; a file's
// extension is its format's name.
//
//   - csv: a header and a row for each edge: source, target, weight, probability,
//     status. Nodes are called what the data call them.
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

// GraphFormat returns the format of a file by its name's extension. The error is a
// *FormatError.
func GraphFormat(path string) (string, error) {
	format := strings.ToLower(strings.TrimPrefix(filepath.Ext(path), "."))
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
	switch format {
	case "csv":
		return g.writeCSV(w)
	case "npz":
		return g.writeNPZ(w)
	case "parquet":
		switch {
		case g.Offset != nil:
			return writeParquet(w, g, func(e RefinedEdge) parquetGraphsRow {
				n := g.graphOf(e.Source)
				base := g.Offset[n]
				return parquetGraphsRow{int64(n), int64(e.Source - base), int64(e.Target - base), e.Weight, e.Probability, e.Status}
			})
		case g.NodeIDs != nil:
			return writeParquet(w, g, func(e RefinedEdge) parquetRow[string] {
				return parquetRow[string]{g.NodeIDs[e.Source], g.NodeIDs[e.Target], e.Weight, e.Probability, e.Status}
			})
		}
		return writeParquet(w, g, func(e RefinedEdge) parquetRow[int64] {
			return parquetRow[int64]{int64(e.Source), int64(e.Target), e.Weight, e.Probability, e.Status}
		})
	case "json":
		return g.writeJSON(w)
	}
	return &FormatError{format}
}

func (g *RefinedGraph) nodeID(v int32) string {
	if g.NodeIDs != nil {
		return g.NodeIDs[v]
	}
	return strconv.Itoa(int(v))
}

// graphOf returns the graph of a collection that a node belongs to.
func (g *RefinedGraph) graphOf(v int32) int {
	n, found := slices.BinarySearch(g.Offset, v)
	if !found {
		n--
	}
	return n
}

func (g *RefinedGraph) writeCSV(w io.Writer) error {
	c := csv.NewWriter(w)
	header := []string{"source", "target", "weight", "probability", "status"}
	if g.Offset != nil {
		header = append([]string{"graph"}, header...)
	}
	if err := c.Write(header); err != nil {
		return err
	}
	decimal := func(v float32) string { return strconv.FormatFloat(float64(v), 'g', -1, 32) }
	var row []string
	for _, e := range g.Edges {
		row = row[:0]
		if g.Offset != nil {
			n := g.graphOf(e.Source)
			row = append(row, strconv.Itoa(n), strconv.Itoa(int(e.Source-g.Offset[n])), strconv.Itoa(int(e.Target-g.Offset[n])))
		} else {
			row = append(row, g.nodeID(e.Source), g.nodeID(e.Target))
		}
		row = append(row, decimal(e.Weight), decimal(e.Probability), e.Status)
		if err := c.Write(row); err != nil {
			return err
		}
	}
	c.Flush()
	return c.Error()
}

func (g *RefinedGraph) writeNPZ(w io.Writer) error {
	n := len(g.Edges)
	source, target := make([]int64, n), make([]int64, n)
	weight, probability, status := make([]float32, n), make([]float32, n), make([]string, n)
	var of []int64
	for i, e := range g.Edges {
		base := int32(0)
		if g.Offset != nil {
			n := g.graphOf(e.Source)
			base, of = g.Offset[n], append(of, int64(n))
		}
		source[i], target[i] = int64(e.Source-base), int64(e.Target-base)
		weight[i], probability[i], status[i] = e.Weight, e.Probability, e.Status
	}
	z := npz.NewWriter(w)
	type array struct {
		name  string
		value any
	}
	arrays := []array{{"source", source}, {"target", target}, {"weight", weight}, {"probability", probability}, {"status", status}, {"num_nodes", []int64{int64(g.N)}}}
	if g.Offset != nil {
		var nodes []int64
		for i, v := range g.Offset[1:] {
			nodes = append(nodes, int64(v-g.Offset[i]))
		}
		arrays[len(arrays)-1].value = nodes
		arrays = append([]array{{"graph", of}}, arrays...)
	}
	if g.NodeIDs != nil {
		arrays = append(arrays, array{"node_id", g.NodeIDs})
	}
	for _, a := range arrays {
		if err := z.Write(a.name+".npy", a.value); err != nil {
			return err
		}
	}
	return z.Close()
}

// parquetRow is a row of a Parquet file whose nodes have IDs of type T.
type parquetRow[T int64 | string] struct {
	Source      T       `parquet:"source"`
	Target      T       `parquet:"target"`
	Weight      float32 `parquet:"weight"`
	Probability float32 `parquet:"probability"`
	Status      string  `parquet:"status,dict"`
}

// parquetGraphsRow is a row of a Parquet file of a collection.
type parquetGraphsRow struct {
	Graph       int64   `parquet:"graph"`
	Source      int64   `parquet:"source"`
	Target      int64   `parquet:"target"`
	Weight      float32 `parquet:"weight"`
	Probability float32 `parquet:"probability"`
	Status      string  `parquet:"status,dict"`
}

func writeParquet[R any](w io.Writer, g *RefinedGraph, row func(RefinedEdge) R) error {
	p := parquet.NewGenericWriter[R](w, parquet.Compression(&parquet.Snappy))
	var rows []R
	for part := range slices.Chunk(g.Edges, 1<<12) {
		rows = rows[:0]
		for _, e := range part {
			rows = append(rows, row(e))
		}
		if _, err := p.Write(rows); err != nil {
			return err
		}
	}
	return p.Close()
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
	Source      any     `json:"source"`
	Target      any     `json:"target"`
	Weight      float32 `json:"weight"`
	Probability float32 `json:"probability"`
	Status      string  `json:"status"`
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
	out := nodeLink{Directed: g.BothDirections, Nodes: make([]nodeLinkNode, g.N), Edges: make([]nodeLinkEdge, len(g.Edges))}
	out.Graph.Name, out.Graph.Refinement = g.Name, g.Summary
	for v, id := range ids {
		out.Nodes[v].ID = id
	}
	for i, e := range g.Edges {
		out.Edges[i] = nodeLinkEdge{ids[e.Source], ids[e.Target], e.Weight, e.Probability, e.Status}
	}
	return json.NewEncoder(w).Encode(out)
}
