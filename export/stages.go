package export

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/gsrc-dev/gsrc/export/onnxpb"
	"github.com/gsrc-dev/gsrc/ir"
	"github.com/gsrc-dev/gsrc/runtime/ort"
)

// Stages divide a model where it reads neighbours: what it computes of a node at one
// level follows from the edges into the node and from values of lower levels, of the node
// and of its neighbours. So after a change of the graph only some rows of each level need
// to be computed again.
type Stages struct {
	// Nodes names the value that counts the nodes, int64 [1].
	Nodes string `json:"nodes,omitempty"`
	// Values names for each level but the last the values, float32 [N] or [N,F], that
	// higher levels read. The last level gives the model's outputs.
	Values [][]string `json:"values"`
}

// planStages finds the values of each level, by level. It is an error where results of a
// node depend on the whole graph.
func planStages(fn *ir.Func) ([][]*ir.Value, error) {
	if _, err := hops(fn); err != nil {
		return nil, err
	}
	g := graphArg(fn)
	byNode := func(v *ir.Value) bool {
		return g != nil && v != nil && !v.Type.IsGraph() && v.Type.Rank() > 0 && v.Type.Dims[0] == g.Type.Dims[0]
	}
	level := map[*ir.Value]int{}
	for _, op := range fn.Body {
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
			level[r] = at
		}
	}
	last := 0
	for _, r := range fn.Results {
		last = max(last, level[r.Value])
	}
	values := make([][]*ir.Value, last)
	seen := map[*ir.Value]bool{}
	for at := last; at >= 0; at-- {
		visited := map[*ir.Value]bool{}
		var walk func(v *ir.Value)
		walk = func(v *ir.Value) {
			if v == nil || v.Def == nil || visited[v] {
				return
			}
			visited[v] = true
			if l := level[v]; l < at && byNode(v) {
				if !seen[v] {
					seen[v] = true
					values[l] = append(values[l], v)
				}
				return
			}
			for _, o := range v.Def.Operands {
				walk(o)
			}
		}
		if at == last {
			for _, r := range fn.Results {
				walk(r.Value)
			}
			continue
		}
		for _, v := range values[at] {
			walk(v)
		}
	}
	return values, nil
}

// stages names what planStages found, nil where something has no tensor of its own.
func (e *emitter) stages(values [][]*ir.Value) *Stages {
	made := map[string]bool{}
	for _, n := range e.builder.graph.Node {
		for _, name := range n.Output {
			made[name] = true
		}
	}
	s := &Stages{Values: make([][]string, len(values))}
	if e.nodes != nil {
		s.Nodes = e.nodes.name
	}
	for l, list := range values {
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
	return s
}

// model cuts the part of a model that computes a level.
func (s *Stages) model(m *onnxpb.ModelProto, level int) (*onnxpb.ModelProto, error) {
	known := map[string]bool{}
	if s.Nodes != "" {
		known[s.Nodes] = true
	}
	for _, names := range s.Values[:level] {
		for _, name := range names {
			known[name] = true
		}
	}
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
	}
	needed, inputs := map[string]bool{}, map[string]bool{}
	need := func(name string) {
		needed[name] = true
		if known[name] {
			inputs[name] = true
		}
	}
	for _, out := range g.Output {
		need(out.Name)
	}
	var nodes []*onnxpb.NodeProto
	for _, n := range slices.Backward(m.Graph.Node) {
		if !slices.ContainsFunc(n.Output, func(name string) bool { return needed[name] && !inputs[name] }) {
			continue
		}
		nodes = append(nodes, n)
		for _, name := range n.Input {
			need(name)
		}
	}
	slices.Reverse(nodes)
	g.Node = nodes
	g.Input = slices.DeleteFunc(g.Input, func(v *onnxpb.ValueInfoProto) bool { return !needed[v.Name] })
	for _, name := range slices.Sorted(maps.Keys(inputs)) {
		if infos[name] == nil {
			return nil, fmt.Errorf("the model does not say what the value %q is", name)
		}
		g.Input = append(g.Input, infos[name])
	}
	made := map[string]bool{}
	for _, n := range nodes {
		for _, name := range n.Output {
			made[name] = true
		}
	}
	g.Initializer = slices.DeleteFunc(g.Initializer, func(t *onnxpb.TensorProto) bool { return !needed[t.Name] })
	g.ValueInfo = slices.DeleteFunc(g.ValueInfo, func(v *onnxpb.ValueInfoProto) bool {
		return !made[v.Name] || slices.ContainsFunc(g.Output, func(o *onnxpb.ValueInfoProto) bool { return o.Name == v.Name })
	})
	return part, nil
}

// Staged is a model in use level by level.
type Staged struct {
	d      *Dist
	nodes  string
	levels []*ort.Session
}

// Stage opens a model of the export by its stages, see [Stages]. It returns nil for a model
// that has none: one whose outputs depend on the whole graph, of the dense form or with
// --symmetrize, with weights in a file beside it, or of an earlier version of gsrc.
func (d *Dist) Stage(role string) (*Staged, error) {
	info, ok := d.Manifest.Models[role]
	if !ok || info.Stages == nil || info.Data != "" {
		return nil, nil
	}
	data, err := d.Manifest.ReadFile(info.File)
	if err != nil {
		return nil, err
	}
	var m onnxpb.ModelProto
	if err := proto.Unmarshal(data, &m); err != nil || m.Graph == nil {
		return nil, fmt.Errorf("%s is no ONNX model: %w", info.File, errors.Join(err, errors.New("it has no graph")))
	}
	s := &Staged{d: d, nodes: info.Stages.Nodes}
	for level := range len(info.Stages.Values) + 1 {
		part, err := info.Stages.model(&m, level)
		if err == nil {
			data, err = Marshal(part)
		}
		var session *ort.Session
		if err == nil {
			session, err = ort.OpenBytes(data, d.options)
		}
		if err != nil {
			s.Close()
			return nil, fmt.Errorf("%s, level %d: %w", info.File, level, err)
		}
		s.levels = append(s.levels, session)
	}
	return s, nil
}

// Close frees the sessions.
func (s *Staged) Close() error {
	var err error
	for _, session := range s.levels {
		err = errors.Join(err, session.Close())
	}
	s.levels = nil
	return err
}

// Levels counts the levels.
func (s *Staged) Levels() int { return len(s.levels) }

// Reads names the values of lower levels that a level reads, and x where it does.
func (s *Staged) Reads(level int) (names []string) {
	x := false
	for _, io := range s.levels[level].Inputs() {
		switch io.Name {
		case s.nodes, inputEdgeIndex, inputEdgeWeight, inputDegree, inputOrder, inputOrderRows, inputSegments, inputSegmentRows, inputRest, inputRestore:
		case "x", inputIndptr, inputIndices, inputValues:
			x = true
		default:
			names = append(names, io.Name)
		}
	}
	if x {
		names = append(names, "x")
	}
	return names
}

// Gives names the values that a level computes.
func (s *Staged) Gives(level int) (names []string) {
	for _, io := range s.levels[level].Outputs() {
		names = append(names, io.Name)
	}
	return names
}

// Run computes a level for a graph of n nodes, or for a part of one in which all edges
// into the rows that are wanted are there, in the order of the whole graph's; other rows of
// the results mean nothing. in holds what [Staged.Reads] names, edgeIndex and weight are
// those of [Dist.Classify].
func (s *Staged) Run(level, n int, in map[string]ort.Tensor, edgeIndex ort.Tensor, weight *ort.Tensor) (map[string]ort.Tensor, error) {
	session := s.levels[level]
	takes := map[string]bool{}
	for _, io := range session.Inputs() {
		takes[io.Name] = true
	}
	in = maps.Clone(in)
	if takes[s.nodes] {
		in[s.nodes] = ort.Int64s([]int64{int64(n)}, 1)
	}
	if takes[inputIndptr] {
		if err := addSparse(in); err != nil {
			return nil, err
		}
	}
	if takes[inputEdgeIndex] {
		if err := s.d.addGraph(in, takes, int64(n), edgeIndex, weight); err != nil {
			return nil, err
		}
	}
	return session.RunContext(s.d.ctx, in)
}
