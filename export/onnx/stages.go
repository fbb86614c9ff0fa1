package onnx

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/gsrc-dev/gsrc/export/onnxpb"
	"github.com/gsrc-dev/gsrc/internal/lists"
	"github.com/gsrc-dev/gsrc/ir"
)

// Stages divide a model where it reads neighbours: what it computes of a node at one
// level follows from the edges into the node and from values of lower levels, of the node
// and of its neighbours. So after a change of the graph only some rows of each level need
// to be computed again.
//
// The last level of a scorer that judges by evidence is of pairs and edges: it reads values
// of their nodes, and nothing else of the graph than sums over neighbours. An edge is
// judged without itself, so that edge_index may then list any edges to judge.
type Stages struct {
	// Nodes names the value that counts the nodes, int64 [1].
	Nodes string `json:"nodes,omitempty"`
	// Values names for each level but the last the values, float32 [N] or [N,F], that
	// higher levels read. The last level gives the model's outputs.
	Values [][]string `json:"values"`
	// Outputs names those that the last level gives; absent where it gives all.
	Outputs []string `json:"outputs,omitempty"`
	// Weights names what the model finds each edge to weigh, float32 [E], where it judges
	// its edges by itself: here it is an input.
	Weights string `json:"weights,omitempty"`
	// Common are inputs of the last level of a scorer.
	Common []CommonSum `json:"common,omitempty"`
	// Sums are inputs of levels that follow from values of a node's sources, so that a level
	// that reads them, and no edges beside, is computed of some rows without their sources.
	Sums []NeighborSum `json:"sums,omitempty"`
	// Cosine is what a scorer that judges by embeddings reads of pairs, and nothing else. It has
	// one level, whose input that is.
	Cosine *PairCosine `json:"cosine,omitempty"`
}

// PairCosine names the cosine of the two rows of each pair.
type PairCosine struct {
	Name string `json:"name"` // float32 [P]
	Of   string `json:"of"`   // the input with the rows, float32 [N,F]
}

// NeighborSum names a sum over the edges into a node.
type NeighborSum struct {
	Name     string `json:"name"`               // float32 [N,F]
	Of       string `json:"of"`                 // value of the sources, float32 [N,F], of a lower level
	Weighted bool   `json:"weighted,omitempty"` // by Weights where the model has them, or by edge_weight
}

// CommonSum names a sum over the neighbours of pairs, or of the ends of edges.
type CommonSum struct {
	Name string  `json:"name"`           // float32 [P] or [E]
	Of   string  `json:"of"`             // value of the neighbours, float32 [N], or [N,F] of a kernel
	Ends bool    `json:"ends"`           // of edges
	Tau  float64 `json:"tau,omitempty"`  // temperature of a neighbor_kernel; 0: over common neighbours
	Most int     `json:"most,omitempty"` // neighbours of a node that a kernel reads
}

// stagePlan is what [Stages] name.
type stagePlan struct {
	results []ir.Result
	values  [][]*ir.Value // by level
	weights *ir.Value
	common  []*ir.Op
	level   map[*ir.Value]int
}

// neededOps are the operations that results are computed by, but for a leaf; nil is none.
func neededOps(fn *ir.Func, results []ir.Result, leaf *ir.Value) (ops []*ir.Op) {
	needed := map[*ir.Value]bool{}
	for _, r := range results {
		needed[r.Value] = true
	}
	delete(needed, leaf)
	for _, op := range slices.Backward(fn.Body) {
		if !slices.ContainsFunc(op.Results, func(v *ir.Value) bool { return needed[v] }) {
			continue
		}
		ops = append(ops, op)
		for _, v := range op.Operands {
			needed[v] = v != leaf
		}
	}
	slices.Reverse(ops)
	return ops
}

// ofPairs tells the values of pairs of nodes. weights is what such a value gives the edges of
// the graph to weigh, nil where none does. It is an error where pairs are judged by that.
func ofPairs(fn *ir.Func, ops []*ir.Op) (pairs map[*ir.Value]bool, weights *ir.Value, err error) {
	pairs, weighed := map[*ir.Value]bool{}, map[*ir.Value]bool{}
	for _, op := range ops {
		judges, follows := false, false
		for i, v := range op.Operands {
			judges = judges || op.Reads(i) == ir.ReadPairs
			follows = follows || weighed[v] || pairs[v] && !op.ReadsSameRow(i)
		}
		if judges && follows {
			return nil, nil, fmt.Errorf("@%s: edges are judged by how others are", fn.Name)
		}
		for _, v := range op.Operands {
			if pairs[v] && follows {
				if weights != nil && weights != v {
					return nil, nil, fmt.Errorf("@%s: edges have several weights", fn.Name)
				}
				weights = v
			}
			judges = judges || pairs[v]
		}
		for _, r := range op.Results {
			pairs[r], weighed[r] = judges && !follows, follows
		}
	}
	return pairs, weights, nil
}

// planStages finds the values of each level. It is an error where results of a
// node depend on the whole graph.
func planStages(fn *ir.Func) (*stagePlan, error) {
	p := &stagePlan{}
	rows := slices.IndexFunc(fn.Results, func(r ir.Result) bool { return r.Name == OutputSimilarityRows })
	for i, r := range fn.Results {
		// Where candidates are found by other rows than the embedding, nothing reads that.
		if evidence := strings.HasPrefix(strings.TrimPrefix(r.Name, "edge_"), EvidencePrefix); !evidence && (rows < 0 || rows == i) {
			p.results = append(p.results, r)
		}
	}
	g := GraphArg(fn)
	ops := neededOps(fn, p.results, nil)
	pairs, weights, err := ofPairs(fn, ops)
	if err != nil {
		return nil, err
	}
	judges := slices.ContainsFunc(p.results, func(r ir.Result) bool { return pairs[r.Value] })
	if p.weights = weights; weights != nil {
		if judges {
			return nil, fmt.Errorf("@%s: edges are judged by how others are", fn.Name)
		}
		ops, pairs = neededOps(fn, p.results, weights), nil
	}
	if _, err := hopsOf(fn, ops, p.results, pairs); err != nil {
		return nil, err
	}
	byNode := func(v *ir.Value) bool {
		return g != nil && v != nil && !v.Type.IsGraph() && v.Type.Rank() > 0 && v.Type.Dims[0] == g.Type.Dims[0]
	}
	level, last := map[*ir.Value]int{}, 0
	for _, op := range ops {
		at := 0
		for i, v := range op.Operands {
			if v == nil {
				continue
			}
			if op.Reads(i) == ir.ReadSources {
				at = max(at, level[v]+1)
			} else {
				at = max(at, level[v])
			}
		}
		for _, r := range op.Results {
			if !pairs[r] {
				level[r], last = at, max(last, at)
			}
		}
	}
	if judges {
		if g == nil {
			return nil, fmt.Errorf("@%s judges pairs by what it is given", fn.Name)
		}
		last++
		for v, yes := range pairs {
			if yes {
				level[v] = last
			}
		}
	}
	p.values, p.level = make([][]*ir.Value, last), level
	seen := map[*ir.Value]bool{}
	for at := last; at >= 0; at-- {
		visited := map[*ir.Value]bool{}
		var walk func(v *ir.Value)
		walk = func(v *ir.Value) {
			if v == nil || v.Def == nil || v == weights || visited[v] {
				return
			}
			visited[v] = true
			if l := level[v]; l < at && byNode(v) {
				if !seen[v] {
					seen[v] = true
					p.values[l] = append(p.values[l], v)
				}
				return
			}
			if name := v.Def.Name(); name == "common_neighbors" || name == "neighbor_kernel" {
				if a := v.Def.Operands[1]; a != nil && (a.Def == nil || a.Def.Name() != "edge_ones") {
					err = fmt.Errorf("@%s: %s is of edges that weigh something", fn.Name, v.Name)
				}
				p.common = append(p.common, v.Def)
				walk(v.Def.Operands[2])
				return
			}
			for _, o := range v.Def.Operands {
				walk(o)
			}
		}
		if at == last {
			for _, r := range p.results {
				walk(r.Value)
			}
			continue
		}
		for _, v := range p.values[at] {
			walk(v)
		}
	}
	return p, err
}

// cosineOf finds the cosine of pairs' rows of an argument, nil where there is none.
func cosineOf(fn *ir.Func) (cosine, rows *ir.Value) {
	for _, op := range fn.Body {
		if op.Name() != "pair_dot" || op.Operands[1].Def != nil || len(op.Operands) > 2 && op.Operands[2] != nil {
			continue
		}
		if n := op.Operands[0].Def; n != nil && n.Name() == "l2_normalize" && n.Operands[0].Def == nil {
			return op.Result(), n.Operands[0]
		}
	}
	return nil, nil
}

// cosine is the stage of a scorer that reads of pairs their cosine alone, nil of others.
func (e *emitter) cosine(m *onnxpb.ModelProto) *Stages {
	cosine, rows := cosineOf(e.fn)
	if cosine == nil || e.values[cosine].t.dtype != float32Type {
		return nil
	}
	s := &Stages{Values: [][]string{}, Cosine: &PairCosine{Name: e.values[cosine].t.name, Of: rows.Name}}
	for _, r := range e.fn.Results {
		if r.Value != cosine {
			s.Outputs = append(s.Outputs, r.Name)
		}
	}
	part, err := s.Part(m, 0)
	if s.Outputs == nil || err != nil || len(part.Graph.Input) != 1 {
		return nil
	}
	return s
}

// stages names what planStages found, nil where something has no tensor of its own.
func (e *emitter) stages(p *stagePlan) *Stages {
	made := outputsOf(e.builder.graph.Node)
	s := &Stages{Values: make([][]string, len(p.values))}
	if e.nodes != nil {
		s.Nodes = e.nodes.name
	}
	if len(p.results) < len(e.fn.Results) {
		s.Outputs = lists.Map(p.results, func(r ir.Result) string { return r.Name })
	}
	for l, list := range p.values {
		s.Values[l] = []string{}
		for _, v := range list {
			x := e.values[v]
			if x.edge != nil || x.sparse != nil {
				return nil
			}
			parts := []tensor{x.t}
			if x.per != nil {
				parts = append(parts, *x.per)
			}
			for _, t := range parts {
				switch {
				case t.dtype != float32Type:
					return nil
				case !made[t.name]: // an input, or what became part of another value
				case !slices.Contains(s.Values[l], t.name):
					s.Values[l] = append(s.Values[l], t.name)
				}
			}
		}
	}
	// own is the tensor of a value of edges or pairs that consists of nothing else.
	own := func(v *ir.Value) string {
		x := e.values[v]
		if x.edge != nil {
			if x.edge.base == nil || x.edge.dst != nil || x.edge.src != nil {
				return ""
			}
			x.t = *x.edge.base
		}
		if !made[x.t.name] {
			return ""
		}
		return x.t.name
	}
	if p.weights != nil {
		if s.Weights = own(p.weights); s.Weights == "" {
			return nil
		}
	}
	for _, op := range p.common {
		c := CommonSum{Name: own(op.Result()), Of: e.values[op.Operands[2]].t.name, Ends: e.overEdges(op.Result())}
		if op.Name() == "neighbor_kernel" {
			c.Tau, c.Most = op.Float("tau"), op.Int("most")
		}
		if c.Name == "" || !made[c.Of] {
			return nil
		}
		s.Common = append(s.Common, c)
	}
	return s
}

// emittedSum is what the emitter knows of a [NeighborSum].
type emittedSum struct {
	result  *ir.Value
	sum, of tensor
	weight  *tensor // of each edge, nil for ones
}

// addSums has levels read the sums over neighbours that are of values of nodes alone, in
// place of the values, and leaves out the values that no level reads any more. weight is
// the input edge_weight, nil if there is none.
func (s *Stages) addSums(g *onnxpb.GraphProto, p *stagePlan, sums []emittedSum, weight *tensor) {
	made := outputsOf(g.Node)
	for _, x := range sums {
		at := p.level[x.result]
		known := x.weight == nil || x.weight.name == s.Weights || s.Weights == "" && weight != nil && x.weight.name == weight.name
		if !known || at == 0 || at > len(s.Values) || x.of.dtype != float32Type || !made[x.sum.name] || !made[x.of.name] {
			continue
		}
		s.Sums = append(s.Sums, NeighborSum{Name: x.sum.name, Of: x.of.name, Weighted: x.weight != nil})
		if !slices.Contains(slices.Concat(s.Values[:at]...), x.of.name) {
			s.Values[at-1] = append(s.Values[at-1], x.of.name)
		}
	}
	if s.Sums == nil {
		return
	}
	of := map[string]string{}
	for _, x := range s.Sums {
		of[x.Name] = x.Of
	}
	read := map[string]bool{}
	for level := len(s.Values); level >= 0; level-- {
		outputs := s.Outputs
		if level < len(s.Values) {
			s.Values[level] = slices.DeleteFunc(s.Values[level], func(name string) bool { return !read[name] })
			outputs = s.Values[level]
		} else if outputs == nil {
			outputs = lists.Map(g.Output, (*onnxpb.ValueInfoProto).GetName)
		}
		_, _, inputs := s.nodes(g, level, outputs)
		for name := range inputs {
			read[name] = true
			if x, ok := of[name]; ok {
				read[x] = true
			}
		}
		for _, c := range s.Common {
			read[c.Of] = true
		}
	}
	s.Sums = slices.DeleteFunc(s.Sums, func(x NeighborSum) bool { return !read[x.Name] })
}

// nodes are those that compute outputs at a level, with what they need and what of that
// is given.
func (s *Stages) nodes(g *onnxpb.GraphProto, level int, outputs []string) (nodes []*onnxpb.NodeProto, needed, inputs map[string]bool) {
	known := map[string]bool{}
	if s.Nodes != "" {
		known[s.Nodes] = true
	}
	for _, name := range slices.Concat(s.Values[:level]...) {
		known[name] = true
	}
	if s.Weights != "" {
		known[s.Weights] = true
	}
	for _, x := range s.Sums {
		known[x.Name] = true
	}
	if level == len(s.Values) {
		for _, c := range s.Common {
			known[c.Name] = true
		}
		if s.Cosine != nil {
			known[s.Cosine.Name] = true
		}
	}
	needed, inputs = map[string]bool{}, map[string]bool{}
	need := func(name string) {
		needed[name] = true
		if known[name] {
			inputs[name] = true
		}
	}
	for _, name := range outputs {
		need(name)
	}
	for _, n := range slices.Backward(g.Node) {
		if !slices.ContainsFunc(n.Output, func(name string) bool { return needed[name] && !inputs[name] }) {
			continue
		}
		nodes = append(nodes, n)
		for _, name := range n.Input {
			need(name)
		}
	}
	slices.Reverse(nodes)
	return nodes, needed, inputs
}

// Part cuts the part of a model that computes a level.
func (s *Stages) Part(m *onnxpb.ModelProto, level int) (*onnxpb.ModelProto, error) {
	infos := map[string]*onnxpb.ValueInfoProto{}
	for _, v := range slices.Concat(m.Graph.ValueInfo, m.Graph.Input, m.Graph.Output) {
		infos[v.Name] = v
	}
	part := proto.Clone(m).(*onnxpb.ModelProto)
	g := part.Graph
	if level < len(s.Values) {
		g.Output = nil
		for _, name := range s.Values[level] {
			if infos[name] == nil {
				return nil, fmt.Errorf("the model has no value %q, which its manifest names at level %d", name, level)
			}
			g.Output = append(g.Output, infos[name])
		}
	} else if s.Outputs != nil {
		g.Output = slices.DeleteFunc(g.Output, func(v *onnxpb.ValueInfoProto) bool { return !slices.Contains(s.Outputs, v.Name) })
	}
	nodes, needed, inputs := s.nodes(m.Graph, level, lists.Map(g.Output, (*onnxpb.ValueInfoProto).GetName))
	g.Node = nodes
	g.Input = slices.DeleteFunc(g.Input, func(v *onnxpb.ValueInfoProto) bool { return !needed[v.Name] })
	for _, name := range slices.Sorted(maps.Keys(inputs)) {
		if infos[name] == nil {
			return nil, fmt.Errorf("the model does not say what the value %q is", name)
		}
		g.Input = append(g.Input, infos[name])
	}
	made := outputsOf(nodes)
	g.Initializer = slices.DeleteFunc(g.Initializer, func(t *onnxpb.TensorProto) bool { return !needed[t.Name] })
	g.ValueInfo = slices.DeleteFunc(g.ValueInfo, func(v *onnxpb.ValueInfoProto) bool {
		return !made[v.Name] || slices.ContainsFunc(g.Output, func(o *onnxpb.ValueInfoProto) bool { return o.Name == v.Name })
	})
	return part, nil
}
