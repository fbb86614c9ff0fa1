package parity

import (
	"fmt"
	"maps"
	"slices"

	"github.com/gsrc-dev/gsrc/export/manifest"
	"github.com/gsrc-dev/gsrc/export/onnx"
	"github.com/gsrc-dev/gsrc/export/onnxpb"
	"github.com/gsrc-dev/gsrc/runtime/ort"
)

// addTestCase writes the inputs of a case, and its outputs unless it is one to be
// refused, in ONNX's layout for test data. The sub-graph is test_data_set_0, which
// every export has; listed tells whether the manifest lists the cases.
func (m *Model) addTestCase(files map[string][]byte, listed bool, c manifest.TestCase, in, want map[string]ort.Tensor) error {
	c.Data = manifest.TestDataDir + "/" + m.Name
	if c.Name != testCase {
		set := 1
		for _, other := range m.TestCases {
			if other.Name != testCase {
				set++
			}
		}
		c.Data = fmt.Sprintf("test_data_set_%d/%s", set, m.Name)
	}
	if listed {
		m.TestCases = append(m.TestCases, c)
	}
	add := func(kind string, infos []*onnxpb.ValueInfoProto, values map[string]ort.Tensor) error {
		for i, info := range infos {
			data, err := onnx.MarshalTensor(info.Name, values[info.Name])
			if err != nil {
				return err
			}
			files[fmt.Sprintf("%s/%s_%d.pb", c.Data, kind, i)] = data
		}
		return nil
	}
	if err := add("input", m.Proto.Graph.Input, in); err != nil || c.Refused {
		return err
	}
	return add("output", m.Proto.Graph.Output, want)
}

// faults are edges to nodes that there are not, in a graph of n nodes: where in
// edge_index they stand, and the number.
var faults = []struct {
	name string
	row  int
	node func(n int64) int64
}{
	{"a source beyond the nodes", 0, func(n int64) int64 { return n }},
	{"a target beyond the nodes", 1, func(n int64) int64 { return n }},
	{"a negative source", 0, func(int64) int64 { return -1 }},
	{"a negative target", 1, func(int64) int64 { return -1 }},
	{"a target far beyond the nodes", 1, func(int64) int64 { return 1 << 40 }},
}

// reads reports whether a node of the model reads an input: one without graph
// convolutions takes edges as the others do, and looks at none.
func (m *Model) reads(input string) bool {
	return slices.ContainsFunc(m.Proto.Graph.Node, func(n *onnxpb.NodeProto) bool { return slices.Contains(n.Input, input) })
}

// checkRefusals runs a model that reads edge_index on faulty ones: onnxruntime must
// fail, and neither read elsewhere nor give numbers.
func (m *Model) checkRefusals(files map[string][]byte, o *Options, s *ort.Session, report *Report) error {
	in := m.testInputs
	index, ok := in[onnx.InputEdgeIndex]
	x, hasX := in["x"]
	nodes := int64(0)
	switch indptr, sparse := in[onnx.InputIndptr]; {
	case hasX:
		nodes = x.Shape[0]
	case sparse:
		nodes = indptr.Shape[0] - 1
	}
	if !ok || nodes == 0 || index.Shape[1] == 0 || !m.reads(onnx.InputEdgeIndex) {
		return nil
	}
	for _, f := range faults {
		bad := index
		bad.I64 = slices.Clone(index.I64)
		bad.I64[f.row*int(index.Shape[1])] = f.node(nodes)
		faulty := maps.Clone(in)
		faulty[onnx.InputEdgeIndex] = bad
		if o.TestCases {
			if err := m.addTestCase(files, true, manifest.TestCase{Name: f.name, Refused: true}, faulty, nil); err != nil {
				return err
			}
		}
		if s == nil {
			continue
		}
		if err := refuse([]engine{{"onnxruntime", s.Run}}, m.Name, f.name, faulty, m.outputNames()[0], report); err != nil {
			return err
		}
	}
	return nil
}
