package parity

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/gsrc-dev/gsrc/export/manifest"
	"github.com/gsrc-dev/gsrc/export/onnx"
	"github.com/gsrc-dev/gsrc/runtime/ort"
)

// What [VerifyOptions.Full] runs: each number of threads with each level of
// onnxruntime's graph optimisation, so often.
var (
	fullThreads = []int{1, 2, 4}
	fullLevels  = []ort.Optimization{ort.OptimizeNone, ort.OptimizeBasic, ort.OptimizeExtended, ort.OptimizeAll}
)

const fullRuns = 20

// verifyFully runs one model on its test data with every number of threads and
// level of optimisation: each within bounds, and each run of a session with the
// bits of its first, where races would show.
func verifyFully(ctx context.Context, path, role string, info manifest.ModelInfo, in, want map[string]ort.Tensor, order []string, lib *ort.Library, report *Report, size Case) error {
	for _, threads := range fullThreads {
		for _, level := range fullLevels {
			if err := ctx.Err(); err != nil {
				return err
			}
			s, err := ort.Open(path, ort.Options{Provider: ort.CPU, Threads: threads, Optimization: level, Library: lib})
			if err != nil {
				return err
			}
			name := fmt.Sprintf("onnxruntime (cpu, %d threads, optimisation %s, %d runs)", threads, level, fullRuns)
			err = repeated(s, path, role, info.Bound(), name, in, want, order, report, size)
			if closed := s.Close(); err == nil {
				err = closed
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// repeated compares the first of many runs with what was expected, and the others
// with the first.
func repeated(s *ort.Session, path, role string, within onnx.Tolerance, name string, in, want map[string]ort.Tensor, order []string, report *Report, size Case) error {
	first, err := s.Run(in)
	if err != nil {
		return fmt.Errorf("%s in %s: %w", path, name, err)
	}
	outputs, bad := compareOutputs(first, want, order, within)
	size.Model, size.Case, size.Runtime, size.Outputs = role, testCase, name, outputs
	report.Cases = append(report.Cases, size)
	for run := 2; bad == nil && run <= fullRuns; run++ {
		again, err := s.Run(in)
		if err != nil {
			return fmt.Errorf("%s in %s, run %d: %w", path, name, run, err)
		}
		bad = differing(first, again, order, run)
	}
	if bad == nil {
		return nil
	}
	bad.Model, bad.Case, bad.Runtime = role, testCase, name
	return bad
}

// differing finds an output that is not the same, bit for bit, in another run.
func differing(first, again map[string]ort.Tensor, order []string, run int) *Error {
	for _, name := range order {
		a, b := first[name], again[name]
		same := slices.Equal(a.Shape, b.Shape) && slices.Equal(a.I64, b.I64) && slices.EqualFunc(a.F32, b.F32, func(x, y float32) bool { return math.Float32bits(x) == math.Float32bits(y) })
		if !same {
			return &Error{Output: name, Index: -1, Detail: fmt.Sprintf("of run %d is not that of run 1, bit for bit: something in it races", run)}
		}
	}
	return nil
}
