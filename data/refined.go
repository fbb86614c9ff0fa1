package data

import (
	"encoding/csv"
	"fmt"
	"io"
	"slices"
	"strconv"

	"github.com/gsrc-dev/gsrc/graph"
)

// WriteRefined writes refined_edges.csv: source, target, probability and status of every
// edge of the raw and the refined graph, with the data set's node ids.
func (ds *Dataset) WriteRefined(w io.Writer, r *graph.Refined) error {
	return writeRefined(w, r, []string{"source", "target"}, func(e [2]int32) []string {
		return []string{ds.NodeID(int(e[0])), ds.NodeID(int(e[1]))}
	})
}

// WriteRefined writes the refined_edges.csv of a collection: that of
// [Dataset.WriteRefined] behind a column graph, the number of the graph, whose nodes are
// numbered from 0.
func (c *Collection) WriteRefined(w io.Writer, r *graph.Refined) error {
	return writeRefined(w, r, []string{"graph", "source", "target"}, func(e [2]int32) []string {
		g := c.GraphOf(e[0])
		return []string{strconv.Itoa(g), strconv.Itoa(int(e[0] - c.Offset[g])), strconv.Itoa(int(e[1] - c.Offset[g]))}
	})
}

// writeRefined writes the edges of both graphs, with columns that tell them.
func writeRefined(w io.Writer, r *graph.Refined, names []string, edge func(e [2]int32) []string) error {
	c := csv.NewWriter(w)
	if err := c.Write(append(names, "probability", "status")); err != nil {
		return err
	}
	for i, e := range r.Candidates.Edges {
		s := r.Status(i)
		if s == "" {
			continue
		}
		p := strconv.FormatFloat(float64(r.Probability[i]), 'g', -1, 32)
		if err := c.Write(append(edge(e), p, s)); err != nil {
			return err
		}
	}
	c.Flush()
	return c.Error()
}

// ReadRefined reads what [Dataset.WriteRefined] has written, for a graph refined in a mode
// and by a threshold as in [graph.Refined]. Its candidates are those that are edges of it
// or of the data. path names the text in errors.
func (ds *Dataset) ReadRefined(path string, text io.Reader, mode string, threshold float64) (*graph.Refined, error) {
	nodes := make(map[string]int32, ds.Graph.N)
	for i := range ds.Graph.N {
		nodes[ds.NodeID(i)] = int32(i)
	}
	rows := csv.NewReader(text)
	rows.FieldsPerRecord = 4
	if _, err := rows.Read(); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	raw := ds.Graph.Undirected()
	c := &graph.Candidates{N: ds.Graph.N}
	r := &graph.Refined{Candidates: c, Mode: mode, Threshold: threshold}
	for {
		row, err := rows.Read()
		if err == io.EOF {
			return r, nil
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		line, _ := rows.FieldPos(0)
		u, okU := nodes[row[0]]
		v, okV := nodes[row[1]]
		prob, err := strconv.ParseFloat(row[2], 32)
		if !okU || !okV || err != nil {
			return nil, fmt.Errorf("%s:%d: %q is no edge of the data's nodes with a probability", path, line, row)
		}
		e := [2]int32{u, v}
		if n := len(c.Edges); u >= v || n > 0 && slices.Compare(c.Edges[n-1][:], e[:]) >= 0 {
			return nil, fmt.Errorf("%s:%d: the edges are not in the order of the data's nodes, each once; export the run again", path, line)
		}
		c.Edges, c.Existing, r.Probability = append(c.Edges, e), append(c.Existing, raw.Has(u, v)), append(r.Probability, float32(prob))
		if have := r.Status(len(c.Edges) - 1); have != row[3] {
			return nil, fmt.Errorf("%s:%d: the status is %q; by its probability and the data it is %q; export the run again", path, line, row[3], have)
		}
	}
}
