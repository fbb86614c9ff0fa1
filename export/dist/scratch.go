package dist

import (
	"fmt"
	"math"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strconv"

	"github.com/gsrc-dev/gsrc/export/inspect"
	"github.com/gsrc-dev/gsrc/export/manifest"
	"github.com/gsrc-dev/gsrc/export/onnx"
	"github.com/gsrc-dev/gsrc/internal/budget"
	"github.com/gsrc-dev/gsrc/internal/lists"
	"github.com/gsrc-dev/gsrc/runtime/ort"
)

// Scratch bounds the memory that a run of a model takes beside its inputs, from the
// size of the graph alone: so that a run which would take too much is refused before
// it begins. The figures are found by runs on small graphs whose every value's size is
// looked at, of shapes that make the tables of the lowerings as wasteful as they get.
type Scratch struct {
	fixed, node, edge, square float64 // bytes
	shared                    float64 // bytes of an edge that [Common] counts

	// Near is how many neighbours of each node of a pair are listed at most, 0 where none are.
	Near int64

	// TwoStep is how many nodes two steps away become candidates of each node: 0 but in
	// pipelines.
	TwoStep int64
}

// walkBytes are what a walk of two steps takes while candidates are searched.
const walkBytes = 80

// Walks bounds what a pipeline takes while it walks two steps from every node of a graph
// whose edge_index holds these nodes, in bytes; it comes to that of [Scratch.Bytes].
func (s *Scratch) Walks(nodes int64, index []int64) int64 {
	if s.TwoStep == 0 || nodes == 0 {
		return 0
	}
	degree, walks := make([]int64, nodes), make([]int64, nodes)
	for _, v := range index {
		if v >= 0 && v < nodes { // others are refused
			degree[v]++
		}
	}
	ends := len(index) / 2
	for i, v := range index[:ends] {
		if u := index[ends+i]; min(u, v) >= 0 && max(u, v) < nodes {
			walks[v] += degree[u]
			walks[u] += degree[v]
		}
	}
	most := int64(0)
	rows := (nodes + onnx.NearestBlocks - 1) / onnx.NearestBlocks
	for part := range slices.Chunk(walks, int(rows)) {
		sum := int64(0)
		for _, n := range part {
			sum += min(n, 2*onnx.TwoStepWalks)
		}
		most = max(most, sum)
	}
	return int64(scratchSlack * float64(walkBytes*most))
}

// scratchSlack is how much more is expected than the values of a model take: operators
// have buffers of their own, and memory is handed out in pages.
const scratchSlack = 1.75

// Bytes returns the bound in bytes for a graph of that many nodes and entries in
// edge_index, or pairs for a scorer; k is that of the pipeline, else 0, and common what
// [Common] counts, 0 where no [Scratch.Common] is wanted.
func (s *Scratch) Bytes(nodes, entries, k, common int64) int64 {
	n := float64(nodes)
	pairs := float64(entries) + float64(n*float64(min(k, nodes)+min(s.TwoStep, nodes)))
	most := s.fixed + float64(s.node*n) + float64(s.edge*pairs) + float64(s.square*n*n) + float64(s.shared*float64(common))
	return int64(min(float64(scratchSlack*most)+(8<<20), math.MaxInt64/4))
}

// Common tells whether a model lists neighbours of pairs: what it takes then depends on
// what the edges of a graph are, not only on how many there are.
func (s *Scratch) Common() bool { return s.shared > 0 }

// Common counts, for a graph of this many nodes, the edges that models list for all edges'
// ends, for pairs, and for each node with k others: of each two nodes the edges into the one
// that has fewer, where common neighbours are looked for, and of both at most near, see
// [Scratch.Near]. Both lists are [2,·]; nodes that there are not count as without edges.
func (d *Dist) Common(nodes int64, edges, pairs []int64, k, near int64) int64 {
	into := make([]int64, max(0, nodes))
	e, times := len(edges)/2, int64(1)
	ends := edges[e:]
	if d.Manifest.Symmetrize {
		ends, times = edges, 2
	}
	for _, v := range ends {
		if v >= 0 && v < nodes {
			into[v]++
		}
	}
	count := func(list []int64) (sum int64) {
		for i, u := range list[:len(list)/2] {
			if v := list[len(list)/2+i]; u >= 0 && u < nodes && v >= 0 && v < nodes {
				sum += min(into[u], into[v]) + min(into[u], near) + min(into[v], near)
			}
		}
		return sum
	}
	others := budget.Mul(times*k, int64(e))
	if most := min(near, slices.Max(append(into, 0))); most > 0 { // of the others nothing is known
		others += others + budget.Mul(nodes, k, most)
	}
	return times*count(edges) + others + count(pairs)
}

// probe is a small graph: every node has the same number of entering edges, which come
// from the nodes behind it, or if apart from as many nodes more. All lead to the hubs too,
// and these to one another.
type probe struct {
	nodes, degree, k int
	apart            bool // nodes have no neighbours in common
	hubs             int
	bare             bool // all features but the first are 0
}

// Tables round degrees up, at most to nearly the double just above a power of two. The
// probes are small, since the budget of a server that starts holds for them, too.
var edgeProbes = []probe{{nodes: 1024, degree: 1}, {nodes: 512, degree: 3}, {nodes: 512, degree: 5}, {nodes: 256, degree: 9}, {nodes: 64, degree: 33}, {nodes: 66, degree: 65}}

// probeBytes is about what a probe may take.
const probeBytes = 32 << 20

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
	defer func() { // before the next model is measured
		shapes.Close()
		debug.FreeOSMemory()
		ort.Trim()
	}()
	peak := func(p probe) (most float64, in map[string]ort.Tensor, err error) {
		if in, err = d.probeInputs(role, p); err != nil {
			return 0, nil, err
		}
		n, err := shapes.Peak(in)
		ort.Trim()
		return float64(n), in, err
	}
	s := &Scratch{}
	s.TwoStep, _ = strconv.ParseInt(i.Metadata[onnx.MetadataTwoStep], 10, 64) // none is 0
	// withoutEdges is what is taken however many nodes there are, and what each takes.
	withoutEdges := func(bare bool) (fixed, node float64, err error) {
		small := probe{nodes: 16, bare: bare}
		if fixed, _, err = peak(small); err != nil {
			return 0, 0, err
		}
		large := probe{nodes: max(32, int(min(1024, float64(small.nodes)*probeBytes/fixed))), bare: bare}
		most, _, err := peak(large)
		s.square = most / float64(large.nodes*large.nodes) // where edges are a matrix
		return fixed, max(0, most-fixed) / float64(large.nodes-small.nodes), err
	}
	if s.fixed, s.node, err = withoutEdges(false); err != nil {
		return nil, err
	}
	takes := func(name string) bool {
		return slices.ContainsFunc(info.Inputs, func(in manifest.IOInfo) bool { return in.Name == name })
	}
	if takes(onnx.InputAdjacency) { // which stands for nodes and edges
		return s, nil
	}
	s.square = 0
	// Elements in CSR take so much that what edges take is not seen beside them.
	bare, fixed, node := takes(onnx.InputIndptr), s.fixed, s.node
	if bare {
		if fixed, node, err = withoutEdges(true); err != nil {
			return nil, err
		}
	}
	common := i.Scope(onnx.SharedEdges)
	s.Near = i.ScopeNumber(onnx.NearEdges)
	probes := edgeProbes
	if role == "pipeline" {
		// What a node's neighbours take is counted at the pairs. All nodes are alike, so
		// that every pair passes the threshold; of each two candidates one is the other's.
		s.square = 4.0 / onnx.NearestBlocks
		probes = append([]probe{{nodes: 64, k: 63}}, probes...)
	}
	if common { // lists that are far longer than those of the edges
		p := probe{nodes: 16, hubs: 48, bare: bare}
		most, in, err := peak(p)
		if err != nil {
			return nil, err
		}
		s.shared = (most - fixed - node*float64(p.size())) / float64(d.Common(int64(p.size()), in[onnx.InputEdgeIndex].I64, in["pairs"].I64, 0, s.Near))
	}
	for _, p := range probes {
		p.apart, p.bare = common && p.k == 0, bare
		entries := float64(p.nodes * (p.degree + p.k))
		if p.k > 0 {
			entries /= 2
		}
		// Of two nodes that are two steps apart each proposes the other.
		entries += float64(p.nodes*min(2*p.degree, max(0, p.nodes-1-2*p.degree), int(s.TwoStep))) / 2
		lists := 0.0
		if s.Near > 0 {
			list, _ := p.edges()
			pairs := list
			if !takes("pairs") {
				pairs = nil
			}
			lists = float64(s.shared * float64(d.Common(int64(p.size()), list, pairs, int64(p.k), s.Near)))
		}
		if fixed+node*float64(p.size())+s.edge*entries+lists > probeBytes {
			continue // the ones before it tell nearly as much
		}
		most, _, err := peak(p)
		if err != nil {
			return nil, err
		}
		most -= lists
		s.edge = max(s.edge, (most-fixed-node*float64(p.size()))/entries)
	}
	return s, nil
}

// size is how many nodes there are.
func (p *probe) size() int {
	if p.apart {
		return 2*p.nodes + p.hubs
	}
	return p.nodes + p.hubs
}

// edges lists the edges, [2,·].
func (p *probe) edges() (list []int64, count int) {
	var from, to []int64
	add := func(u, v int) { from, to = append(from, int64(u)), append(to, int64(v)) }
	for i := range p.nodes * p.degree {
		v := i / p.degree
		u := (v + 1 + i%p.degree) % p.nodes
		if p.apart {
			u += p.nodes
		}
		add(u, v)
	}
	first := p.size() - p.hubs
	for hub := first; hub < p.size(); hub++ {
		for u := range p.size() {
			if u != hub {
				add(u, hub)
			}
		}
	}
	return append(from, to...), len(from)
}

// probeInputs makes the inputs of a model for a probe.
func (d *Dist) probeInputs(role string, p probe) (map[string]ort.Tensor, error) {
	n := p.size()
	list, e := p.edges()
	index := ort.Int64s(list, 2, int64(e))
	ones := func(width int) ort.Tensor {
		v := slices.Repeat([]float32{1}, n*width)
		return ort.Float32s(v, int64(n), int64(width))
	}
	in := map[string]ort.Tensor{}
	for _, io := range d.Manifest.Models[role].Inputs {
		switch io.Name {
		case "x_struct", "embedding", onnx.InputKnownLabels:
			width, _ := io.Shape[len(io.Shape)-1].(float64)
			in[io.Name] = ones(int(width))
		case "pairs":
			in[io.Name] = index
		case onnx.InputGraphIDs:
			in[io.Name] = ort.Int64s(lists.Of(n, func(v int) int64 { return int64(v) }), int64(n))
		case onnx.InputK:
			in[io.Name] = ort.Int64s([]int64{int64(p.k)}, 1)
		}
	}
	if _, given := in["embedding"]; given { // it scores by nothing else
		return in, nil
	}
	in["x"] = ones(d.Manifest.NumFeatures)
	if p.bare {
		for i := range in["x"].F32 {
			if i%d.Manifest.NumFeatures > 0 {
				in["x"].F32[i] = 0
			}
		}
	}
	return in, Prepare(d.Manifest, role, in, &index, nil)
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
