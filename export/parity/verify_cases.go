package parity

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/gsrc-dev/gsrc/export/manifest"
	"github.com/gsrc-dev/gsrc/export/onnx"
	"github.com/gsrc-dev/gsrc/internal/lists"
	"github.com/gsrc-dev/gsrc/runtime/ort"
)

// sizeOf tells the nodes and edges among a model's inputs.
func sizeOf(in map[string]ort.Tensor) Case {
	var c Case
	if t, ok := in[onnx.InputIndptr]; ok && len(t.Shape) == 1 {
		c.Nodes = int(t.Shape[0]) - 1
	}
	for _, name := range []string{"x", "embedding"} {
		if t, ok := in[name]; ok && len(t.Shape) > 0 {
			c.Nodes = int(t.Shape[0])
		}
	}
	if t, ok := in[onnx.InputEdgeIndex]; ok && len(t.Shape) == 2 {
		c.Edges = int(t.Shape[1])
	}
	return c
}

// runEngines runs a model in every engine and compares; what tells the model, the case
// and its size.
func runEngines(engines []engine, path string, tol onnx.Tolerance, in, want map[string]ort.Tensor, order []string, what Case, report *Report) error {
	for _, e := range engines {
		what.Runtime = e.name
		var bad *Error
		got, err := e.run(in)
		if err == nil {
			what.Outputs, bad = compareOutputs(got, want, order, tol)
			report.Cases = append(report.Cases, what)
		} else if !errors.As(err, &bad) {
			return fmt.Errorf("%s in %s on %q: %w", path, e.name, what.Case, err)
		}
		if bad != nil {
			return bad.of(what)
		}
	}
	return nil
}

func engineNames(engines []engine) string {
	return strings.Join(lists.Map(engines, func(e engine) string { return e.name }), " and ")
}

// verifyTestCases runs the test cases that an export carries. Faulty graphs are for
// the engines that refuse them.
func verifyTestCases(ctx context.Context, m *manifest.Manifest, role string, info manifest.ModelInfo, engines []engine, order []string, report *Report) error {
	for _, c := range info.TestCases {
		if err := ctx.Err(); err != nil {
			return err
		}
		in, err := m.TestTensors(c.Data, "input", info.Inputs)
		if err != nil {
			return err
		}
		if c.Refused {
			if err := refuse(engines, role, c.Name, in, info.Outputs[0].Name, report); err != nil {
				return err
			}
			continue
		}
		if c.Data == info.TestData {
			continue // they ran already
		}
		want, err := m.TestTensors(c.Data, "output", info.Outputs)
		if err != nil {
			return err
		}
		what := sizeOf(in)
		what.Model, what.Case = role, c.Name
		if err := runEngines(engines, info.File, info.Bound(), in, want, order, what, report); err != nil {
			return err
		}
	}
	return nil
}

// refuse runs a model on a faulty graph in the engines that check what a gather reads,
// which must fail. CUDA's does not: there the host has to look.
func refuse(engines []engine, role, name string, in map[string]ort.Tensor, output string, report *Report) error {
	for _, e := range engines {
		if strings.Contains(e.name, string(ort.CUDA)) {
			continue
		}
		if _, err := e.run(in); err == nil {
			return &Error{Model: role, Case: name, Runtime: e.name, Output: output, Index: -1,
				Detail: "was computed for an edge_index that names no node; it must be refused"}
		}
		report.Refusals = append(report.Refusals, Refusal{Model: role, Case: name, Runtime: e.name})
	}
	return nil
}
