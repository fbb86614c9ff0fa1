package bench

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/gsrc-dev/gsrc/data"
	"github.com/gsrc-dev/gsrc/graph"
	"github.com/gsrc-dev/gsrc/rng"
)

// Workload is a data set, and its sizes for where there is none.
type Workload struct {
	Name string
	Path string // below the folder of data sets; empty: always generated

	Nodes    int
	Edges    int // undirected
	Features int
	Stored   int // features that are not zero
	Classes  int
}

// Workloads are the data sets that steps are timed on.
var Workloads = []Workload{
	{"cora", "planetoid/cora", 2708, 5278, 1433, 49216, 7},
	{"citeseer", "planetoid/citeseer", 3327, 4552, 3703, 105165, 6},
	{"actor", "heterophilous/actor.npz", 7600, 26659, 932, 40977, 5},
	{"amazon_cs", "large/amazon_cs.npz", 13752, 245861, 767, 3675081, 10},
	{"coauthor_phy", "large/coauthor_phy.npz", 34493, 247962, 8415, 1137311, 5},
	{"7600", "", 7600, 119_000, 932, 40977, 5}, // Actor's nodes, with more edges
	scaling(10_000), scaling(100_000), scaling(1_000_000),
	{"arxiv", "", 169_343, 1_166_243, 128, 169_343 * 128, 40},         // ogbn-arxiv's sizes
	{"products", "", 2_450_000, 61_900_000, 100, 2_450_000 * 100, 47}, // ogbn-products' sizes
}

// scaling is a graph of average degree 10 with 128 features, 16 of a node not
// zero.
func scaling(nodes int) Workload {
	name := fmt.Sprintf("%dk", nodes/1000)
	if nodes >= 1_000_000 {
		name = fmt.Sprintf("%dM", nodes/1_000_000)
	}
	return Workload{Name: name, Nodes: nodes, Edges: 5 * nodes, Features: 128, Stored: 16 * nodes, Classes: 8}
}

// FindWorkload returns the workload of a name, or nil.
func FindWorkload(name string) *Workload {
	for i := range Workloads {
		if Workloads[i].Name == name {
			return &Workloads[i]
		}
	}
	return nil
}

// DefaultData is the folder of data sets where nothing else is said: the
// environment variable GSRC_DATA.
func DefaultData() string { return os.Getenv("GSRC_DATA") }

// Load reads the workload below a folder of data sets. Where root is empty or has
// no such data set it is generated; the data set's Source is then "generated".
func (w Workload) Load(root string) (*data.Dataset, error) {
	if root != "" && w.Path != "" {
		path := filepath.Join(root, filepath.FromSlash(w.Path))
		_, err := os.Stat(path)
		if err == nil {
			return data.Load(path, data.LoadOptions{})
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	}
	return w.Generate()
}

// Generated is the Source of a data set that was made here.
const Generated = "generated"

// Generate draws a graph of the workload's sizes: nodes are chosen as ends of
// edges with a power-law distribution, in no order; features are ones in random
// columns, or real numbers if all are stored. Edges drawn twice count once, so there can be a few less.
func (w Workload) Generate() (*data.Dataset, error) {
	s := rng.New(0, "bench.workload").Sub(w.Name)
	perm := s.Sub("order").Perm(w.Nodes)
	src, dst := make([]int32, w.Edges), make([]int32, w.Edges)
	ends := s.Sub("edges")
	for i := range src {
		for k, end := range []*int32{&src[i], &dst[i]} {
			u := float64(ends.Uniform(uint64(2*i + k)))
			*end = int32(perm[min(int(u*u*float64(w.Nodes)), w.Nodes-1)])
		}
	}
	g, _, err := graph.Build(w.Nodes, src, dst, nil, false)
	if err != nil {
		return nil, fmt.Errorf("generating %s: %w", w.Name, err)
	}
	ds := &data.Dataset{Name: w.Name, Source: Generated, Format: Generated, Graph: g, Classes: w.Classes, Labels: make([]int32, w.Nodes)}
	x := &data.Features{Rows: w.Nodes, Cols: w.Features}
	columns := s.Sub("features")
	dense := w.Stored == w.Nodes*w.Features
	if dense {
		x.Dense = make([]float32, w.Stored)
		for i := range x.Dense {
			x.Dense[i] = columns.Uniform(uint64(i)) - 0.5
		}
	} else {
		x.RowPtr = make([]int32, w.Nodes+1)
	}
	used := make([]bool, w.Features)
	for i := range w.Nodes {
		ds.Labels[i] = int32(i % w.Classes)
		if dense {
			continue
		}
		from := i * w.Stored / w.Nodes
		count := (i+1)*w.Stored/w.Nodes - from
		clear(used)
		for k := range min(count, w.Features) {
			used[columns.Intn(uint64(from+k), w.Features)] = true
		}
		for c, on := range used {
			if on {
				x.Col, x.Val = append(x.Col, int32(c)), append(x.Val, 1)
			}
		}
		x.RowPtr[i+1] = int32(len(x.Col))
	}
	ds.X = x
	train := min(20*w.Classes, w.Nodes/3)
	part := func(from, to int) []int32 {
		var v []int32
		for i := from; i < to; i++ {
			v = append(v, int32(i))
		}
		return v
	}
	ds.Splits = []data.Split{{Train: part(0, train), Val: part(train, 2*train), Test: part(2*train, min(3*train, w.Nodes))}}
	return ds, nil
}

// trainSplit is the first split, of labelled nodes, or where data come without one each
// fiftieth node.
func trainSplit(ds *data.Dataset) data.Split {
	var s data.Split
	if len(ds.Splits) > 0 {
		s = ds.Splits[0]
	} else {
		for v := int32(0); int(v) < ds.Graph.N; v += 50 {
			s.Train = append(s.Train, v)
		}
		s.Val = s.Train
	}
	known := func(nodes []int32) []int32 {
		return slices.DeleteFunc(slices.Clone(nodes), func(v int32) bool { return ds.Labels[v] < 0 })
	}
	return data.Split{Train: known(s.Train), Val: known(s.Val)}
}
