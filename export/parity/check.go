// Package parity holds exported models against the compiled forward pass.
//
// [Options.Check] runs the models of a build on the training graph and on graphs derived
// from it (cases.go, edge_cases.go), compares every output (compare.go) and gives a
// [Report]. [Verify] checks an export folder on its own test data.
package parity

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/gsrc-dev/gsrc/export/manifest"
	"github.com/gsrc-dev/gsrc/export/onnx"
	"github.com/gsrc-dev/gsrc/export/onnxpb"
	"github.com/gsrc-dev/gsrc/internal/lists"
	"github.com/gsrc-dev/gsrc/ir"
	"github.com/gsrc-dev/gsrc/runtime/ort"
)

// Model is a model that an export is about to hold, to be checked.
type Model struct {
	Name    string // of its role, such as encoder
	Func    string // the function that it computes
	Proto   *onnxpb.ModelProto
	Data    []byte // of NAME.onnx
	Weights []byte // of NAME.data; nil if the model has them all

	Lowering  onnx.Lowering
	Sparse    bool // takes x in CSR
	Symmetric bool // makes the graph undirected inside
	Weighted  bool // takes edge weights, as an input or within the adjacency matrix
	Judges    bool // judges the edges of its graph as pairs of nodes
	// Within bounds how far outputs may be from the forward pass.
	Within onnx.Tolerance
	// Classify is the classifier on the refined graph, of a pipeline; nil of others.
	Classify *ir.Func

	// TestCases are those that were written, where the manifest lists them.
	TestCases []manifest.TestCase
	// testInputs are those of the test data.
	testInputs map[string]ort.Tensor
}

// WeightsFile is the name of the file of the model's large weights.
func (m *Model) WeightsFile() string { return m.Name + ".data" }

// Options say against what models are checked.
type Options struct {
	Sample ExampleInputs
	// Forward is the Compile forward pass, Reference the float64 interpreter, and
	// Trained the forward pass with the weights as trained.
	Forward, Reference, Trained onnx.Forward
	Refinement                  *onnx.Refinement
	NoEdgeWeight                bool
	Lowering                    onnx.Lowering
	Symmetrize                  bool
	Precision                   onnx.Precision
	// Library, Unverified, TestCases and Log are those of export.BuildOptions.
	Library    *ort.Library
	Unverified bool
	TestCases  bool
	Log        func(format string, args ...any)
}

// inputs picks from a case what a model takes, in the sparse form; embedding is
// that of the encoder.
func (m *Model) inputs(c Example, embedding ort.Tensor) map[string]ort.Tensor {
	in := map[string]ort.Tensor{}
	for _, p := range m.Proto.Graph.Input {
		switch p.Name {
		case "x", onnx.InputIndptr:
			in["x"] = c.X
		case "x_struct":
			if c.Struct != nil {
				in["x_struct"] = *c.Struct
			}
		case onnx.InputKnownLabels:
			in[p.Name] = KnownLabels(c.Nodes(), int(p.Type.GetTensorType().Shape.Dim[1].GetDimValue()))
		case onnx.InputGraphIDs:
			if c.GraphIDs != nil {
				in[onnx.InputGraphIDs] = *c.GraphIDs
			}
		case "embedding":
			in["embedding"] = embedding
		case "pairs":
			in["pairs"] = c.scoredPairs()
		case onnx.InputEdgeIndex, onnx.InputAdjacency:
			in[onnx.InputEdgeIndex] = c.Edges
			if m.Name == "classifier" && c.Refined != nil {
				in[onnx.InputEdgeIndex] = *c.Refined
			}
		}
	}
	if m.Weighted {
		e := in[onnx.InputEdgeIndex].Shape[1]
		in[onnx.InputEdgeWeight] = ort.Float32s(slices.Repeat([]float32{1}, int(e)), e)
		if w := c.weights(m.Name); w != nil {
			in[onnx.InputEdgeWeight] = *w
		}
	}
	return in
}

// KnownLabels are those of every third node, the classes in turn, float32 [nodes,classes].
func KnownLabels(nodes, classes int) ort.Tensor {
	v := make([]float32, nodes*classes)
	for i := 0; i < nodes; i += 3 {
		v[i*classes+i/3%classes] = 1
	}
	return ort.Float32s(v, int64(nodes), int64(classes))
}

// forwardInputs are those of the forward pass, which has every edge in both
// directions.
func (m *Model) forwardInputs(in map[string]ort.Tensor) (map[string]ort.Tensor, error) {
	index, ok := in[onnx.InputEdgeIndex]
	if !ok || !m.Symmetric {
		return in, nil
	}
	index, weight, err := onnx.Symmetrize(int(in["x"].Shape[0]), index, onnx.EdgeWeight(in))
	if err != nil {
		return nil, err
	}
	out := maps.Clone(in)
	out[onnx.InputEdgeIndex] = index
	if weight != nil {
		out[onnx.InputEdgeWeight] = *weight
	}
	return out, nil
}

// ofGiven brings what the forward pass gives of the edges of a graph that was made
// symmetric in the order of those that edge_index lists; self-loops have 0.
func (m *Model) ofGiven(in, symmetric, want map[string]ort.Tensor) {
	if !m.Symmetric {
		return
	}
	ends := func(t ort.Tensor, i int) [2]int64 { return [2]int64{t.I64[i], t.I64[int(t.Shape[1])+i]} }
	given, made := in[onnx.InputEdgeIndex], symmetric[onnx.InputEdgeIndex]
	at := map[[2]int64]int{}
	for i := range int(made.Shape[1]) {
		at[ends(made, i)] = i
	}
	for name, t := range want {
		if strings.HasPrefix(name, "edge_") {
			values := make([]float32, given.Shape[1])
			for i := range values {
				if k, ok := at[ends(given, i)]; ok {
					values[i] = t.F32[k]
				}
			}
			want[name] = ort.Float32s(values, given.Shape[1])
		}
	}
}

// modelInputs turns inputs of the sparse form into what the file takes.
func (m *Model) modelInputs(in map[string]ort.Tensor) (map[string]ort.Tensor, error) {
	x, hasX := in[onnx.SparseArg]
	out := maps.Clone(in)
	if m.Sparse && hasX {
		if err := onnx.AddSparse(out); err != nil {
			return nil, err
		}
	}
	index, hasGraph := in[onnx.InputEdgeIndex]
	switch {
	case hasGraph && m.Lowering == onnx.PrecomputedBuckets:
		return out, onnx.AddTables(out, int(x.Shape[0]), m.Symmetric)
	case hasGraph && m.Lowering == onnx.Dense:
		a, err := onnx.Adjacency(int(x.Shape[0]), index, onnx.EdgeWeight(in))
		delete(out, onnx.InputEdgeIndex)
		delete(out, onnx.InputEdgeWeight)
		out[onnx.InputAdjacency] = a
		return out, err
	}
	return out, nil
}

func (m *Model) outputNames() []string {
	return lists.Map(m.Proto.Graph.Output, (*onnxpb.ValueInfoProto).GetName)
}

// Check runs every model on every case in every runtime, and adds the
// test data to files.
func (o *Options) Check(ctx context.Context, models []*Model, files map[string][]byte) (*Report, error) {
	report := newReport()
	sessions := map[string]*ort.Session{}
	if !o.Unverified {
		var err error
		if sessions, err = o.openSessions(ctx, models, report); err != nil {
			return report, err
		}
		defer func() {
			for _, s := range sessions {
				s.Close()
			}
		}()
	}
	if o.Precision != onnx.FP32 && !o.Unverified {
		report.Precision = &PrecisionReport{Precision: o.Precision}
	}
	var first *Error
	for _, c := range Examples(o.Sample, o.Lowering, o.Symmetrize) {
		if o.Unverified && !o.TestCases && c.Name != testCase {
			continue
		}
		var embedding ort.Tensor
		for i := range models {
			if err := ctx.Err(); err != nil {
				return report, err
			}
			m := models[i]
			if m.Classify != nil {
				if c.Name == hubCase {
					continue // all pairs of 10⁵ nodes
				}
				bad, err := o.checkPipeline(ctx, m, c, sessions[m.Name], files, report)
				if err != nil {
					return report, err
				}
				first = first.and(bad)
				continue
			}
			if c.Name == hubCase && m.Judges {
				continue // what is left of its sums without an edge is what rounding leaves
			}
			in := m.inputs(c, embedding)
			inputs, err := m.forwardInputs(in)
			if err != nil {
				return report, err
			}
			forward := o.Forward
			if c.Name == hubCase {
				if o.Precision != onnx.FP32 {
					continue // its numbers are too large for what fewer bits are held to
				}
				forward = o.Reference
			}
			want, err := forward(m.Func, inputs)
			if err != nil {
				return report, fmt.Errorf("the compiled forward pass of @%s on %q: %w", m.Func, c.Name, err)
			}
			m.ofGiven(in, inputs, want)
			if e, ok := want["embedding"]; ok {
				embedding = e
			}
			fed, err := m.modelInputs(in)
			if err != nil {
				return report, err
			}
			if o.TestCases || c.Name == testCase {
				if err := m.addTestCase(files, o.TestCases, manifest.TestCase{Name: c.Name}, fed, want); err != nil {
					return report, err
				}
			}
			if c.Name == testCase {
				m.testInputs = fed
			}
			if o.Unverified {
				continue
			}
			got, err := sessions[m.Name].Run(fed)
			if err != nil {
				return report, fmt.Errorf("%s.onnx in onnxruntime on %q: %w", m.Name, c.Name, err)
			}
			outputs, bad := compareOutputs(got, want, m.outputNames(), m.Within)
			first = first.and(report.add(Case{Model: m.Name, Case: c.Name, Runtime: "onnxruntime", Nodes: c.Nodes(),
				Edges: edgeCount(m, c), Outputs: outputs}, bad))
			if c.Name == trainingCase && report.Precision != nil {
				trained, err := o.Trained(m.Func, in)
				if err != nil {
					return report, fmt.Errorf("the forward pass of @%s with the weights as trained: %w", m.Func, err)
				}
				report.Precision.add(m.Name, m.outputNames(), got, trained, &c.ExampleInputs)
			}
		}
	}
	if first != nil {
		return report, first
	}
	for i := range models {
		if err := models[i].checkRefusals(files, o, sessions[models[i].Name], report); err != nil {
			return report, err
		}
	}
	if !o.Unverified {
		o.Log("parity: %d comparisons within bounds", len(report.Cases))
	}
	return report, nil
}

func edgeCount(m *Model, c Example) int {
	if m.Name == "classifier" && c.Refined != nil {
		return int(c.Refined.Shape[1])
	}
	return int(c.Edges.Shape[1])
}

func (o *Options) openSessions(ctx context.Context, models []*Model, report *Report) (map[string]*ort.Session, error) {
	lib, err := o.Library.OrEnsure(ctx, o.Log)
	if err != nil {
		return nil, fmt.Errorf("the export cannot be checked: %w", err)
	}
	report.Runtimes["onnxruntime"] = lib.Version
	sessions := map[string]*ort.Session{}
	for _, m := range models {
		// The CPU and one thread: the report is the same on every run.
		s, err := m.open(ort.Options{Provider: ort.CPU, Threads: 1, Library: lib})
		if err != nil {
			for _, open := range sessions {
				open.Close()
			}
			return nil, fmt.Errorf("%s.onnx: %w", m.Name, err)
		}
		sessions[m.Name] = s
	}
	return sessions, nil
}

// open loads a model that is in no folder yet.
func (m *Model) open(o ort.Options) (*ort.Session, error) {
	if m.Weights == nil {
		return ort.OpenBytes(m.Data, o)
	}
	dir, err := os.MkdirTemp("", "gsrc-build-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, m.Name+".onnx")
	if err := os.WriteFile(path, m.Data, 0o600); err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(dir, m.WeightsFile()), m.Weights, 0o600); err != nil {
		return nil, err
	}
	return ort.Open(path, o)
}

// engine is a runtime that a model can run in.
type engine struct {
	name string
	run  func(map[string]ort.Tensor) (map[string]ort.Tensor, error)
}
