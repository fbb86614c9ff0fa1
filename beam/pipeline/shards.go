package pipeline

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/parquet-go/parquet-go"

	"github.com/gsrc-dev/gsrc/data"
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

// WriteShards writes a graph as this package reads it: so many files nodes-*.parquet and
// edges-*.parquet in a folder, which is made, or must be empty. An undirected edge is listed once.
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
	if err := prepare(ctx, dir); err != nil {
		return err
	}
	var names []string
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
		if err := parquet.WriteFile(name("nodes"), nodes); err != nil {
			return err
		}
		var edges []edgeRow
		for _, e := range ds.Graph.Edges[len(ds.Graph.Edges)*f/files : len(ds.Graph.Edges)*(f+1)/files] {
			edges = append(edges, edgeRow{ds.NodeID(int(e[0])), ds.NodeID(int(e[1]))})
		}
		if err := parquet.WriteFile(name("edges"), edges); err != nil {
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
