package onnx

import (
	"slices"
	"strings"
	"testing"

	"github.com/gsrc-dev/gsrc/export/onnxpb"
	"github.com/gsrc-dev/gsrc/internal/onnxtest"
	"google.golang.org/protobuf/proto"
)

// TestNames holds files to paths that say where in the network a node or a parameter is.
func TestNames(t *testing.T) {
	all := onnxtest.Zoo()
	for _, test := range []struct {
		model, fn string
		o         ModelOptions
		nodes     []string // beginnings, each of a node
		params    []string
	}{
		{"gcn/struct=0/l1", "classify", ModelOptions{}, []string{"edges/", "tables/", "classifier/l1_normalize/", "classifier/conv1/matmul", "classifier/conv1/spmm", "classifier/conv1/relu", "classifier/conv2/matmul", "classifier/conv2/spmm", "logits"},
			[]string{"classifier/conv1/weight", "classifier/conv1/bias", "classifier/conv2/weight", "classifier/conv2/bias"}},
		{"gcn/struct=0/l1", "classify", ModelOptions{Lowering: Dense}, []string{"classifier/conv1/spmm", "classifier/conv2/spmm"}, []string{"classifier/conv2/weight"}},
		{"gcn/struct=0/l1", "classify", ModelOptions{Precision: FP16}, []string{"classifier/conv1/weight/float32", "classifier/conv2/spmm"}, []string{"classifier/conv2/weight"}},
		{"gcn/struct=0/l1", "classify", ModelOptions{Precision: INT8}, []string{"classifier/conv1/matmul"}, []string{"classifier/conv2/weight/uint8", "classifier/conv2/weight/scale"}},
		{"mlp/struct=0/l1", "classify", ModelOptions{}, []string{"classifier/linear1/matmul", "classifier/linear2/matmul"}, []string{"classifier/linear2/bias"}},
		{"gat/struct=0/l2", "classify", ModelOptions{}, []string{"classifier/conv1/", "classifier/conv2/"}, []string{"classifier/conv1/att_src"}},
		{"ecl-gsr/struct=0/l1", "encode", ModelOptions{}, []string{"encoder/conv1/spmm", "encoder/conv2/spmm"}, []string{"encoder/conv1/weight"}},
		{"ecl-gsr/struct=0/l1", "score", ModelOptions{}, []string{"scorer/", "pairs_are_within_the_nodes"}, nil},
	} {
		fn := onnxtest.Compile(t, all[test.model], test.fn)
		var m onnxpb.ModelProto
		if err := proto.Unmarshal(written(t, all[test.model], fn, test.o), &m); err != nil {
			t.Fatal(err)
		}
		seen := map[string]bool{}
		for _, n := range m.Graph.Node {
			if n.Name == "" || seen[n.Name] {
				t.Errorf("%s: a node %q of type %s has no name of its own", test.model, n.Name, n.OpType)
			}
			seen[n.Name] = true
			if first, _, _ := strings.Cut(n.Name, "/"); first == n.OpType {
				t.Errorf("%s: the node %s is named by its operation alone", test.model, n.Name)
			}
		}
		for _, want := range test.nodes {
			if !slices.ContainsFunc(m.Graph.Node, func(n *onnxpb.NodeProto) bool { return strings.HasPrefix(n.Name, want) }) {
				t.Errorf("%s/%s: no node %s…", test.model, test.fn, want)
			}
		}
		for _, want := range test.params {
			if !slices.ContainsFunc(m.Graph.Initializer, func(p *onnxpb.TensorProto) bool { return p.Name == want }) {
				t.Errorf("%s/%s: no initialiser %s", test.model, test.fn, want)
			}
		}
		for _, n := range m.Graph.Node { // the second layer reads what the first one's activation gave
			if strings.HasPrefix(n.Name, "classifier/conv1/") && slices.ContainsFunc(n.Input, func(in string) bool { return strings.HasPrefix(in, "classifier/conv2/") }) {
				t.Errorf("%s: %s of the first layer reads the second", test.model, n.Name)
			}
		}
	}
}
