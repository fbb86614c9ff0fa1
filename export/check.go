package export

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/gsrc-dev/gsrc/runtime/ort"
)

// inputs picks from a case what a model takes, in the sparse form; embedding is
// that of the encoder.
func (m *built) inputs(c parityCase, embedding ort.Tensor) map[string]ort.Tensor {
	in := map[string]ort.Tensor{}
	for _, p := range m.model.Graph.Input {
		switch p.Name {
		case "x", inputIndptr:
			in["x"] = c.X
		case "x_struct":
			if c.Struct != nil {
				in["x_struct"] = *c.Struct
			}
		case inputGraphIDs:
			if c.GraphIDs != nil {
				in[inputGraphIDs] = *c.GraphIDs
			}
		case "embedding":
			in["embedding"] = embedding
		case "pairs":
			in["pairs"] = c.scoredPairs()
		case inputEdgeIndex, inputAdjacency:
			in[inputEdgeIndex] = c.Edges
			if m.name == "classifier" && c.Refined != nil {
				in[inputEdgeIndex] = *c.Refined
			}
		}
	}
	if m.weighted {
		e := in[inputEdgeIndex].Shape[1]
		in[inputEdgeWeight] = ort.Float32s(slices.Repeat([]float32{1}, int(e)), e)
		if w := c.weights(m.name); w != nil {
			in[inputEdgeWeight] = *w
		}
	}
	return in
}

// forwardInputs are those of the forward pass, which has every edge in both
// directions.
func (m *built) forwardInputs(in map[string]ort.Tensor) (map[string]ort.Tensor, error) {
	index, ok := in[inputEdgeIndex]
	if !ok || !m.symmetric {
		return in, nil
	}
	var weight *ort.Tensor
	if w, ok := in[inputEdgeWeight]; ok {
		weight = &w
	}
	index, weight, err := Symmetrize(int(in["x"].Shape[0]), index, weight)
	if err != nil {
		return nil, err
	}
	out := maps.Clone(in)
	out[inputEdgeIndex] = index
	if weight != nil {
		out[inputEdgeWeight] = *weight
	}
	return out, nil
}

// modelInputs turns inputs of the sparse form into what the file takes.
func (m *built) modelInputs(in map[string]ort.Tensor) (map[string]ort.Tensor, error) {
	x, hasX := in[sparseArg]
	if m.sparse && hasX {
		in = maps.Clone(in)
		if err := addSparse(in); err != nil {
			return nil, err
		}
	}
	index, hasGraph := in[inputEdgeIndex]
	if !hasGraph || m.lowering != Dense && m.lowering != HostBuckets {
		return in, nil
	}
	if m.lowering == HostBuckets {
		out := maps.Clone(in)
		return out, addTables(out, int(x.Shape[0]), m.symmetric)
	}
	var weight *ort.Tensor
	if w, ok := in[inputEdgeWeight]; ok {
		weight = &w
	}
	a, err := Adjacency(int(x.Shape[0]), index, weight)
	if err != nil {
		return nil, err
	}
	out := maps.Clone(in)
	delete(out, inputEdgeIndex)
	delete(out, inputEdgeWeight)
	out[inputAdjacency] = a
	return out, nil
}

func (m *built) outputNames() []string {
	var list []string
	for _, out := range m.model.Graph.Output {
		list = append(list, out.Name)
	}
	return list
}

// checkParity runs every model on every case in every runtime, and adds the
// test data to files.
func (o *BuildOptions) checkParity(ctx context.Context, models []built, files map[string][]byte) (*ParityReport, error) {
	report := &ParityReport{SchemaVersion: SchemaVersion, Bound: "max|a-b| <= 1e-5 + 1e-4*max|b|", Runtimes: map[string]string{}, Cases: []ParityCase{}}
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
	if o.Precision != FP32 && !o.Unverified {
		report.Precision = &PrecisionReport{Precision: o.Precision}
	}
	var first *ParityError
	note := func(bad *ParityError) {
		switch {
		case bad == nil:
		case first == nil:
			first = bad
		default:
			first.More += 1 + bad.More
		}
	}
	for _, c := range parityCases(o.Sample, o.Lowering, o.Symmetrize) {
		if o.Unverified && !o.TestCases && c.name != testCase {
			continue
		}
		var embedding ort.Tensor
		for i := range models {
			if err := ctx.Err(); err != nil {
				return report, err
			}
			m := &models[i]
			if m.parts != nil {
				if c.name == hubCase {
					continue // all pairs of 10⁵ nodes
				}
				bad, err := o.checkPipeline(ctx, m, c, sessions[m.name], files, report)
				if err != nil {
					return report, err
				}
				note(bad)
				continue
			}
			in := m.inputs(c, embedding)
			inputs, err := m.forwardInputs(in)
			if err != nil {
				return report, err
			}
			forward := o.Forward
			if c.name == hubCase {
				if o.Precision != FP32 {
					continue // its numbers are too large for what fewer bits are held to
				}
				forward = o.reference
			}
			want, err := forward(m.role.fn, inputs)
			if err != nil {
				return report, fmt.Errorf("the compiled forward pass of @%s on %q: %w", m.role.fn, c.name, err)
			}
			if e, ok := want["embedding"]; ok {
				embedding = e
			}
			fed, err := m.modelInputs(in)
			if err != nil {
				return report, err
			}
			if o.TestCases || c.name == testCase {
				if err := m.addTestCase(files, o.TestCases, TestCase{Name: c.name}, fed, want); err != nil {
					return report, err
				}
			}
			if c.name == testCase {
				m.testInputs = fed
			}
			if o.Unverified {
				continue
			}
			for _, rt := range m.runtimes(sessions[m.name]) {
				got, err := rt.run(fed)
				if err != nil {
					return report, fmt.Errorf("%s.onnx in %s on %q: %w", m.name, rt.name, c.name, err)
				}
				outputs, bad := compareOutputs(got, want, m.outputNames(), m.tolerance())
				report.Cases = append(report.Cases, ParityCase{Model: m.name, Case: c.name, Runtime: rt.name, Nodes: c.nodes(),
					Edges: edgeCount(m, c), Outputs: outputs})
				if c.name == trainingCase && report.Precision != nil {
					trained, err := o.Trained(m.role.fn, in)
					if err != nil {
						return report, fmt.Errorf("the forward pass of @%s with the weights as trained: %w", m.role.fn, err)
					}
					report.Precision.add(m.name, m.outputNames(), got, trained, &c.Sample)
				}
				if bad != nil {
					bad.Model, bad.Case, bad.Runtime = m.name, c.name, rt.name
				}
				note(bad)
			}
		}
	}
	if first != nil {
		return report, first
	}
	for i := range models {
		if err := models[i].checkRefusals(files, o, sessions[models[i].name], report); err != nil {
			return report, err
		}
	}
	if !o.Unverified {
		o.Log("parity: %d comparisons within bounds", len(report.Cases))
	}
	return report, nil
}

func edgeCount(m *built, c parityCase) int {
	if m.name == "classifier" && c.Refined != nil {
		return int(c.Refined.Shape[1])
	}
	return int(c.Edges.Shape[1])
}

// goVersion is the release of onnx-go that go.mod pins.
const goVersion = "0.5.0"

func (o *BuildOptions) openSessions(ctx context.Context, models []built, report *ParityReport) (map[string]*ort.Session, error) {
	lib := o.Library
	if lib == nil {
		found, err := ort.Ensure(ctx, o.Log)
		if err != nil {
			return nil, fmt.Errorf("the export cannot be checked: %w", err)
		}
		lib = &found
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
			return nil, fmt.Errorf("%s.onnx: %w", m.name, err)
		}
		sessions[m.name] = s
		if m.lowering == Dense {
			report.Runtimes["onnx-go"] = goVersion
		}
	}
	return sessions, nil
}

// open loads a model that is in no folder yet.
func (m *built) open(o ort.Options) (*ort.Session, error) {
	if m.weights == nil {
		return ort.OpenBytes(m.data, o)
	}
	dir, err := os.MkdirTemp("", "gsrc-build-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, m.name+".onnx")
	if err := os.WriteFile(path, m.data, 0o600); err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(dir, m.weightsFile()), m.weights, 0o600); err != nil {
		return nil, err
	}
	return ort.Open(path, o)
}

// engine is a runtime that a model can run in.
type engine struct {
	name string
	run  func(map[string]ort.Tensor) (map[string]ort.Tensor, error)
}

func (m *built) runtimes(s *ort.Session) []engine {
	list := []engine{{"onnxruntime", s.Run}}
	if m.lowering == Dense {
		list = append(list, engine{"onnx-go", func(in map[string]ort.Tensor) (map[string]ort.Tensor, error) { return RunGo(m.data, in) }})
	}
	return list
}
