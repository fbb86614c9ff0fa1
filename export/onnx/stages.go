package onnx

import (
	"fmt"
	"maps"
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/gsrc-dev/gsrc/export/onnxpb"
	"github.com/gsrc-dev/gsrc/ir"
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
	if _, err := ReceptiveHops(fn); err != nil {
		return nil, err
	}
	g := GraphArg(fn)
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

// Part cuts the part of a model that computes a level.
func (s *Stages) Part(m *onnxpb.ModelProto, level int) (*onnxpb.ModelProto, error) {
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
