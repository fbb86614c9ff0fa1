package pipeline

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/parquet-go/parquet-go"

	"github.com/gsrc-dev/gsrc/data"
	"github.com/gsrc-dev/gsrc/run"
)

type nodeRow struct {
	ID    string    `parquet:"id"`
	X     []float32 `parquet:"x"`
	Label string    `parquet:"label"`
}

type edgeRow struct {
	Source string `parquet:"source"`
	Target string `parquet:"target"`
}

// LoadFor reads a graph for [WriteShards]: with the columns of tables as they are, which models
// read that this package uses, or those of a run alone, whose directory is not empty.
func LoadFor(runDir, path string, directed bool) (*data.Dataset, error) {
	if runDir == "" {
		return data.Load(path, data.LoadOptions{Directed: directed, NoPrepare: true})
	}
	r, err := run.Open(runDir)
	if err != nil {
		return nil, err
	}
	if err := r.CheckDirected(directed); err != nil {
		return nil, err
	}
	d, err := r.Deploy()
	if err != nil {
		return nil, err
	}
	return r.LoadOther(d, path, data.LoadOptions{})
}

// writeNodes writes a file of nodes, with a column for each feature where these have names.
func writeNodes(path string, nodes []nodeRow, names []string) error {
	if names == nil {
		return parquet.WriteFile(path, nodes)
	}
	g := parquet.Group{idColumn: parquet.String(), "label": parquet.String()}
	for _, name := range names {
		g[name] = parquet.Leaf(parquet.FloatType)
	}
	if len(g) != 2+len(names) {
		return fmt.Errorf("a feature is called %s or label, which others are in shards: call it something else", idColumn)
	}
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	w := parquet.NewWriter(f, parquet.NewSchema("nodes", g))
	at := map[string]int{}
	for i, column := range w.Schema().Columns() {
		at[column[0]] = i
	}
	row := make(parquet.Row, len(g))
	for _, n := range nodes {
		for name, text := range map[string]string{idColumn: n.ID, "label": n.Label} {
			row[at[name]] = parquet.ByteArrayValue([]byte(text)).Level(0, 0, at[name])
		}
		for i, name := range names {
			row[at[name]] = parquet.FloatValue(n.X[i]).Level(0, 0, at[name])
		}
		if _, err := w.WriteRows([]parquet.Row{row}); err != nil {
			return errors.Join(err, f.Close())
		}
	}
	return errors.Join(w.Close(), f.Close())
}

// WriteShards writes a graph as this package reads it: so many files nodes-*.parquet and
// edges-*.parquet in a folder, which is made, or must be empty. An undirected edge is listed once; the
// metadata of edges' files say whether they have a direction, so that no model reads one into them.
// Files get their names when all are written.
func WriteShards(ctx context.Context, ds *data.Dataset, dir string, files int) error {
	if err := given("out", dir, "folder for the shards"); err != nil {
		return err
	}
	if files < 1 {
		return fmt.Errorf("%d files were asked for; 1 is the least", files)
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	unlock, err := prepare(ctx, dir)
	if err != nil {
		return err
	}
	defer unlock()
	var names, features []string
	if ds.Columns != nil {
		features = ds.Columns.Features()
	}
	x := ds.X.ToDense()
	for f := range files {
		name := func(kind string) string {
			names = append(names, filepath.Join(dir, fmt.Sprintf("%s-%05d-of-%05d.parquet", kind, f, files)))
			return names[len(names)-1] + unfinished
		}
		var nodes []nodeRow
		for v := ds.Graph.N * f / files; v < ds.Graph.N*(f+1)/files; v++ {
			row := nodeRow{ID: ds.NodeID(v), X: x.Dense[v*x.Cols : (v+1)*x.Cols]}
			if ds.Labels[v] >= 0 {
				row.Label = fmt.Sprint(ds.Labels[v])
				if ds.ClassNames != nil {
					row.Label = ds.ClassNames[ds.Labels[v]]
				}
			}
			nodes = append(nodes, row)
		}
		if err := writeNodes(name("nodes"), nodes, features); err != nil {
			return err
		}
		var edges []edgeRow
		for _, e := range ds.Graph.Edges[len(ds.Graph.Edges)*f/files : len(ds.Graph.Edges)*(f+1)/files] {
			edges = append(edges, edgeRow{ds.NodeID(int(e[0])), ds.NodeID(int(e[1]))})
		}
		if err := parquet.WriteFile(name("edges"), edges, parquet.KeyValueMetadata(directedKey, fmt.Sprint(ds.Graph.Directed))); err != nil {
			return err
		}
	}
	for _, name := range names {
		if err := os.Rename(name+unfinished, name); err != nil {
			return err
		}
	}
	return nil
}
