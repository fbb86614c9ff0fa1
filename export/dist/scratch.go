package dist

import (
	"fmt"
	"math"
	"path/filepath"

	"github.com/gsrc-dev/gsrc/export/inspect"
	"github.com/gsrc-dev/gsrc/export/onnx"
	"github.com/gsrc-dev/gsrc/internal/budget"
	"github.com/gsrc-dev/gsrc/runtime/ort"
)

// Scratch bounds the memory that a run of a model takes beside its inputs, from the
// size of the graph alone: so that a run which would take too much is refused before
// it begins. The figures are found by runs on small graphs whose every value's size is
// looked at, of shapes that make the tables of the lowerings as wasteful as they get.
type Scratch struct {
	fixed, node, edge, square float64 // bytes
}

// scratchSlack is how much more is expected than the values of a model take: operators
// have buffers of their own, and memory is handed out in pages.
const scratchSlack = 1.75

// Bytes returns the bound in bytes for a graph of so many nodes and entries in
// edge_index, or pairs for a scorer; k is that of the pipeline, else 0.
func (s *Scratch) Bytes(nodes, entries, k int64) int64 {
	n := float64(nodes)
	pairs := float64(entries) + float64(n*float64(min(k, nodes)))
	most := s.fixed + float64(s.node*n) + float64(s.edge*pairs) + float64(s.square*n*n)
	return int64(min(float64(scratchSlack*most)+(8<<20), math.MaxInt64/4))
}

// probe is a small graph: every node has the same number of entering edges, which come
// from the nodes behind it.
type probe struct{ nodes, degree, k int }

// Tables round degrees up, at most to nearly the double just above a power of two.
var edgeProbes = []probe{{1024, 1, 0}, {512, 3, 0}, {512, 5, 0}, {256, 9, 0}, {128, 33, 0}, {160, 129, 0}}

// Scratch measures a model of the export.
func (d *Dist) Scratch(role string) (*Scratch, error) {
	info, ok := d.Manifest.Models[role]
	if !ok {
		return nil, fmt.Errorf("%s has no %s", d.dir, role)
	}
	i, err := inspect.Read(filepath.Join(d.dir, filepath.FromSlash(info.File)))
	if err != nil {
		return nil, err
	}
	o := d.options
	o.Threads, o.Release, o.Optimization = 1, true, ort.OptimizeNone
	shapes, err := i.OpenShapes(o)
	if err != nil {
		return nil, err
	}
	defer shapes.Close()
	peak := func(p probe) (float64, error) {
		in, err := d.probeInputs(role, p)
		if err != nil {
			return 0, err
		}
		n, err := shapes.Peak(in)
		return float64(n), err
	}
	s := &Scratch{}
	small, large := probe{nodes: 16}, probe{nodes: 1024}
	if s.fixed, err = peak(small); err != nil {
		return nil, err
	}
	most, err := peak(large)
	if err != nil {
		return nil, err
	}
	s.node = max(0, most-s.fixed) / float64(large.nodes-small.nodes)
	for _, in := range info.Inputs {
		if in.Name == onnx.InputAdjacency { // which stands for nodes and edges
			s.square = most / float64(large.nodes*large.nodes)
			return s, nil
		}
	}
	probes := edgeProbes
	if role == "pipeline" {
		// What a node's neighbours take is counted at the pairs. All nodes are alike, so
		// that every pair passes the threshold; of each two candidates one is the other's.
		s.square = 4.0 / onnx.NearestBlocks
		probes = append([]probe{{nodes: 128, k: 127}}, probes...)
	}
	for _, p := range probes {
		most, err := peak(p)
		if err != nil {
			return nil, err
		}
		entries := float64(p.nodes * (p.degree + p.k))
		if p.k > 0 {
			entries /= 2
		}
		s.edge = max(s.edge, (most-s.fixed-s.node*float64(p.nodes))/entries)
	}
	return s, nil
}

// probeInputs makes the inputs of a model for a probe.
func (d *Dist) probeInputs(role string, p probe) (map[string]ort.Tensor, error) {
	n, e := p.nodes, p.nodes*p.degree
	pairs := make([]int64, 2*e)
	for i := range e {
		v := i / p.degree
		pairs[i], pairs[e+i] = int64((v+1+i%p.degree)%n), int64(v)
	}
	index := ort.Int64s(pairs, 2, int64(e))
	ones := func(width int) ort.Tensor {
		v := make([]float32, n*width)
		for i := range v {
			v[i] = 1
		}
		return ort.Float32s(v, int64(n), int64(width))
	}
	in := map[string]ort.Tensor{}
	for _, io := range d.Manifest.Models[role].Inputs {
		switch io.Name {
		case "x_struct", "embedding":
			width, _ := io.Shape[len(io.Shape)-1].(float64)
			in[io.Name] = ones(int(width))
		case "pairs":
			in[io.Name] = index
		case onnx.InputGraphIDs:
			ids := make([]int64, n)
			for v := range ids {
				ids[v] = int64(v)
			}
			in[io.Name] = ort.Int64s(ids, int64(n))
		case onnx.InputK:
			in[io.Name] = ort.Int64s([]int64{int64(p.k)}, 1)
		}
	}
	if _, isScorer := in["pairs"]; isScorer {
		return in, nil
	}
	in["x"] = ones(d.Manifest.NumFeatures)
	_, err := d.prepare(role, in, &index, nil)
	return in, err
}

// HostBytes bounds what is made of a request's graph before a model runs: tables, an
// adjacency matrix, features in CSR.
func (d *Dist) HostBytes(role string, nodes, entries int64) int64 {
	var sum int64
	for _, in := range d.Manifest.Models[role].Inputs {
		switch in.Name {
		case onnx.InputOrder:
			sum += budget.Mul(96, nodes) + budget.Mul(128, entries)
		case onnx.InputAdjacency:
			sum += budget.Mul(4, nodes, nodes)
		case onnx.InputIndptr:
			sum += budget.Mul(24, nodes, int64(d.Manifest.NumFeatures))
		}
		if sum < 0 {
			return math.MaxInt64
		}
	}
	return sum + 16*entries
}
