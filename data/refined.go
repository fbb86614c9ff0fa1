package data

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/gsrc-dev/gsrc/graph"
)

// WriteRefined writes refined_edges.csv: source, target, probability and status of every
// edge of the raw and the refined graph, with the data set's node ids.
func (ds *Dataset) WriteRefined(w io.Writer, r *graph.Refined) error {
	return ds.writeRefined(w, r, false)
}

// WriteWeighed writes the same with a column weight, that of each edge in the refined graph, behind the others:
// the refined_edges.csv of an export.
func (ds *Dataset) WriteWeighed(w io.Writer, r *graph.Refined) error {
	return ds.writeRefined(w, r, true)
}

func (ds *Dataset) writeRefined(w io.Writer, r *graph.Refined, weights bool) error {
	id := func(b []byte, v int32) []byte {
		if ds.NodeIDs == nil {
			return strconv.AppendInt(b, int64(v), 10)
		}
		return appendField(b, ds.NodeIDs[v])
	}
	return writeRefined(w, r, "source,target", weights, func(b []byte, e [2]int32) []byte {
		return id(append(id(b, e[0]), ','), e[1])
	})
}

// WriteRefined writes the refined_edges.csv of a collection: that of
// [Dataset.WriteRefined] behind a column graph, the number of the graph, whose nodes are
// numbered from 0.
func (c *Collection) WriteRefined(w io.Writer, r *graph.Refined) error {
	return writeRefined(w, r, "graph,source,target", false, func(b []byte, e [2]int32) []byte {
		g := c.GraphOf(e[0])
		b = strconv.AppendInt(b, int64(g), 10)
		for _, v := range e {
			b = strconv.AppendInt(append(b, ','), int64(v-c.Offset[g]), 10)
		}
		return b
	})
}

// writeRefined writes the edges of both graphs, with columns that tell them, which edge appends.
// Every line is made in the same memory: edges are many.
func writeRefined(w io.Writer, r *graph.Refined, columns string, weights bool, edge func(b []byte, e [2]int32) []byte) error {
	out := bufio.NewWriterSize(w, 1<<16)
	b := append([]byte(columns), ",probability,status"...)
	if weights {
		b = append(b, ",weight"...)
	}
	b = append(b, '\n')
	for i, e := range r.Candidates.Edges {
		s := r.Status(i)
		if s == "" {
			continue
		}
		b = append(edge(b, e), ',')
		b = append(strconv.AppendFloat(b, float64(r.Probability[i]), 'g', -1, 32), ',')
		b = append(b, s...)
		if weights {
			b = strconv.AppendFloat(append(b, ','), float64(r.Weight(i)), 'g', -1, 32)
		}
		b = append(b, '\n')
		if _, err := out.Write(b); err != nil {
			return err
		}
		b = b[:0]
	}
	if _, err := out.Write(b); err != nil { // the names of the columns, where there is no edge
		return err
	}
	return out.Flush()
}

// appendField appends a field of a CSV file, quoted where it must be.
func appendField(b []byte, s string) []byte {
	if !strings.ContainsFunc(s, func(c rune) bool {
		return (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && c != '_' && c != '-'
	}) {
		return append(b, s...)
	}
	var field bytes.Buffer
	c := csv.NewWriter(&field)
	_ = c.Write([]string{s}) // a buffer takes everything
	c.Flush()
	return append(b, bytes.TrimSuffix(field.Bytes(), []byte("\n"))...)
}

// ReadRefined reads what [Dataset.WriteRefined] or [Dataset.WriteWeighed] has written, for a graph refined in a mode
// and by a threshold as in [graph.Refined]. Its candidates are those that are edges of it
// or of the data. path names the text in errors.
func (ds *Dataset) ReadRefined(path string, text io.Reader, mode string, threshold float64) (*graph.Refined, error) {
	nodes := make(map[string]int32, ds.Graph.N)
	for i := range ds.Graph.N {
		nodes[ds.NodeID(i)] = int32(i)
	}
	rows := csv.NewReader(text)
	switch names, err := rows.Read(); {
	case err != nil:
		return nil, fmt.Errorf("%s: %w", path, err)
	case len(names) < 4:
		return nil, fmt.Errorf("%s:1: %q are not the columns of refined edges", path, names)
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
