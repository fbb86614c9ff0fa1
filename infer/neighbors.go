package infer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"github.com/gsrc-dev/gsrc/data"
	"github.com/gsrc-dev/gsrc/export/dist"
	"github.com/gsrc-dev/gsrc/export/manifest"
	"github.com/gsrc-dev/gsrc/export/onnx"
	"github.com/gsrc-dev/gsrc/graph"
	"github.com/gsrc-dev/gsrc/internal/atomicfile"
	"github.com/gsrc-dev/gsrc/runtime/ort"
)

// Subgraph is the part of a graph that a classifier's answers for some nodes depend
// on, as inputs of the exported classifier: its first rows of logits are those that
// the whole graph gives these nodes.
type Subgraph struct {
	// Asked counts the nodes whose answers are the first rows; Hops is how far the
	// classifier sees.
	Asked, Hops int
	// Nodes are the rows' numbers in the data: the nodes asked for, then their
	// neighbours, nearest first. The last is −1 where a row stands for the rest of the
	// graph: it has no features, and edges from it give the outermost nodes, whose own
	// neighbours are left out, the degrees that they have in the whole graph.
	Nodes []int
	// IDs are the nodes' names in the data, empty for the rest of the graph.
	IDs []string
	// Inputs by name, in the order of Order: x, edge_index and edge_weight as the
	// classifier takes them (adjacency in the dense form, the tables of precomputed-buckets).
	Inputs map[string]ort.Tensor
	Order  []string
}

// Neighbors cuts what the answers of an export's classifier for some nodes of a graph
// depend on. nodes are names of the data's nodes, or their numbers from 0 where these
// have none. The graph is the one that [Predict] classifies on. It is an error if the
// answers depend on the whole graph.
func Neighbors(ctx context.Context, dir, path string, nodes []string, o PredictOptions) (*Subgraph, error) {
	p, err := newPredictor(dir, path, o)
	if err != nil {
		return nil, err
	}
	defer p.close()
	if err := p.refuseLabels("a part of a graph"); err != nil {
		return nil, err
	}
	info, ok := p.manifest.Models["classifier"]
	if !ok {
		return nil, fmt.Errorf("%s has no classifier", dir)
	}
	if p.manifest.Symmetrize {
		return nil, fmt.Errorf("the models of %s make graphs undirected, and a part of a graph has edges in one direction, to the nodes whose neighbours are left out; build it without --symmetrize", dir)
	}
	if info.Hops == nil {
		return nil, fmt.Errorf("the answers of %s for a node depend on the whole graph, or it was exported by a version of gsrc that does not tell (manifest.json: hops of the classifier); build it again, or classify the whole graph", dir)
	}
	seeds, err := Find(p.ds, nodes)
	if err != nil {
		return nil, err
	}
	g, err := p.graph(ctx)
	if err != nil {
		return nil, err
	}
	st := g.Structure()
	s := cut(entries(st, st.Spread(nil, g.Weights)), seeds, *info.Hops)
	for _, v := range s.Nodes {
		id := ""
		if v >= 0 {
			id = p.ds.NodeID(v)
		}
		s.IDs = append(s.IDs, id)
	}
	return s, p.inputs(s, info)
}

// Find returns the numbers of nodes of a data set by their names.
func Find(ds *data.Dataset, names []string) ([]int, error) {
	number := make(map[string]int, ds.Graph.N)
	for v := range ds.Graph.N {
		number[ds.NodeID(v)] = v
	}
	var list []int
	seen := map[int]bool{}
	for _, name := range names {
		v, ok := number[name]
		if !ok {
			return nil, fmt.Errorf("%s has no node %q", ds.Source, name)
		}
		if seen[v] {
			return nil, fmt.Errorf("the node %q is asked for twice", name)
		}
		seen[v] = true
		list = append(list, v)
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("no nodes are asked for")
	}
	return list, nil
}

// entries gives those of a structure; weights has one for each.
func entries(st *graph.Structure, weights []float32) entriesOf {
	return func(v int32) ([]int32, []float32) {
		lo, hi := st.In.RowPtr[v], st.In.RowPtr[v+1]
		return st.In.Col[lo:hi], weights[lo:hi]
	}
}

// cut finds the nodes within that many hops along edges that lead to the seeds. Inputs are
// edge_index and edge_weight.
func cut(in entriesOf, seeds []int, hops int) *Subgraph {
	row := make(map[int32]int, len(seeds))
	s := &Subgraph{Asked: len(seeds), Hops: hops}
	add := func(v int32) {
		if _, ok := row[v]; !ok {
			row[v] = len(s.Nodes)
			s.Nodes = append(s.Nodes, int(v))
		}
	}
	for _, v := range seeds {
		add(int32(v))
	}
	inner := 0 // the nodes whose neighbours are all in
	for range hops {
		end := len(s.Nodes)
		for _, v := range s.Nodes[inner:end] {
			from, _ := in(int32(v))
			for _, u := range from {
				add(u)
			}
		}
		inner = end
	}
	var src, dst []int64
	var w []float32
	for i, v := range s.Nodes[:inner] {
		from, weights := in(int32(v))
		for _, u := range from {
			src, dst = append(src, int64(row[u])), append(dst, int64(i))
		}
		w = append(w, weights...)
	}
	if hops > 0 {
		rest := int64(len(s.Nodes))
		edges := len(src)
		for i, v := range s.Nodes[inner:] {
			from, weights := in(int32(v))
			for range from {
				src, dst = append(src, rest), append(dst, int64(inner+i))
			}
			w = append(w, weights...)
		}
		if len(src) > edges {
			s.Nodes = append(s.Nodes, -1)
		}
	}
	n := int64(len(src))
	s.Inputs = map[string]ort.Tensor{"edge_index": ort.Int64s(append(src, dst...), 2, n), "edge_weight": ort.Float32s(w, n)}
	return s
}

// inputs makes the cut the classifier's inputs.
func (p *predictor) inputs(s *Subgraph, info manifest.ModelInfo) error {
	index := s.Inputs["edge_index"]
	var weight *ort.Tensor
	if p.manifest.EdgeWeight {
		var w ort.Tensor
		index, w = gather(index, s.Inputs["edge_weight"])
		weight = &w
	}
	x := p.ds.X.ToDense()
	rows := make([]float32, len(s.Nodes)*x.Cols)
	for i, v := range s.Nodes {
		if v >= 0 {
			copy(rows[i*x.Cols:], x.Dense[v*x.Cols:(v+1)*x.Cols])
		}
	}
	given := map[string]ort.Tensor{"x": ort.Float32s(rows, int64(len(s.Nodes)), int64(x.Cols))}
	if err := dist.Prepare(p.manifest, "classifier", given, &index, weight); err != nil {
		return err
	}
	s.Inputs = map[string]ort.Tensor{}
	for _, io := range info.Inputs {
		t, ok := given[io.Name]
		if !ok {
			return fmt.Errorf("the classifier of %s takes %s, of which a part cannot be cut; build it with --lowering degree-buckets", p.dir, io.Name)
		}
		s.Order, s.Inputs[io.Name] = append(s.Order, io.Name), t
	}
	return nil
}

// gather joins entries of the same ends that follow each other, adding up their
// weights: those from the rest of the graph.
func gather(index, weight ort.Tensor) (ort.Tensor, ort.Tensor) {
	n := int(index.Shape[1])
	var src, dst []int64
	var w []float32
	for e := range n {
		u, v := index.I64[e], index.I64[n+e]
		if k := len(src); k > 0 && src[k-1] == u && dst[k-1] == v {
			w[k-1] += weight.F32[e]
			continue
		}
		src, dst, w = append(src, u), append(dst, v), append(w, weight.F32[e])
	}
	m := int64(len(src))
	return ort.Int64s(append(src, dst...), 2, m), ort.Float32s(w, m)
}

// neighborsFile says which node each row of an answer is of.
const neighborsFile = "nodes.csv"

// Write leaves the sub-graph in a folder: input_0.pb and so on, ONNX tensors in the
// order of the classifier's inputs as in an export's test data, and nodes.csv, which
// says for each row of the answer which node it is of and whether it was asked for. It
// replaces a folder that it wrote before, and no other.
func (s *Subgraph) Write(dir string) error {
	files := map[string][]byte{}
	for i, name := range s.Order {
		data, err := onnx.MarshalTensor(name, s.Inputs[name])
		if err != nil {
			return err
		}
		files[fmt.Sprintf("input_%d.pb", i)] = data
	}
	n := len(s.Nodes)
	if n > 0 && s.Nodes[n-1] < 0 { // the rest of the graph
		n--
	}
	columns := []column{
		numbers("row", func(i int) int64 { return int64(i) }),
		texts("id", func(i int) string { return s.IDs[i] }),
		texts("asked", func(i int) string { return strconv.FormatBool(i < s.Asked) }),
	}
	var rows bytes.Buffer
	if err := writeCSV(&rows, n, columns, nil); err != nil {
		return err
	}
	files[neighborsFile] = rows.Bytes()
	unlock, err := manifest.LockFolder(dir)
	if err != nil {
		return err
	}
	defer unlock()
	return atomicfile.WriteFolder(dir, files, neighborsReplaceable, atomicfile.WriteSynced)
}

// neighborsReplaceable refuses a folder with anything that [Subgraph.Write] does not write.
func neighborsReplaceable(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	rows, _ := os.ReadFile(filepath.Join(dir, neighborsFile))
	for _, e := range entries {
		input, _ := filepath.Match("input_*.pb", e.Name())
		if !bytes.HasPrefix(rows, []byte("row,id,asked\n")) || e.Name() != neighborsFile && !input {
			return fmt.Errorf("%s holds %s, which gsrc neighbors has not written; choose another folder", dir, e.Name())
		}
	}
	return nil
}
