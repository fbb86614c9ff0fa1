package parity

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/gsrc-dev/gsrc/export/manifest"
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
func verifyFully(ctx context.Context, path string, info manifest.ModelInfo, in, want map[string]ort.Tensor, order []string, lib *ort.Library, report *Report, size Case) error {
	for _, threads := range fullThreads {
		for _, level := range fullLevels {
			if err := ctx.Err(); err != nil {
				return err
			}
			s, err := ort.Open(path, ort.Options{Provider: ort.CPU, Threads: threads, Optimization: level, Library: lib})
			if err != nil {
				return err
			}
			e := engine{fmt.Sprintf("onnxruntime (cpu, %d threads, optimisation %s, %d runs)", threads, level, fullRuns),
				func(in map[string]ort.Tensor) (map[string]ort.Tensor, error) { return repeated(s, in, order) }}
			err = runEngines([]engine{e}, path, info.Bound(), in, want, order, size, report)
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

// repeated runs a session many times, and returns what the first run gave; it is an error
// if another gave other bits.
func repeated(s *ort.Session, in map[string]ort.Tensor, order []string) (map[string]ort.Tensor, error) {
	first, err := s.Run(in)
	for run := 2; err == nil && run <= fullRuns; run++ {
		var again map[string]ort.Tensor
		if again, err = s.Run(in); err != nil {
			break
		}
		if bad := differing(first, again, order, run); bad != nil {
			return nil, bad
		}
	}
	return first, err
}

// differing finds an output that is not the same, bit for bit, in another run.
func differing(first, again map[string]ort.Tensor, order []string, run int) *Error {
	for _, name := range order {
		a, b := first[name], again[name]
		if !slices.Equal(a.Shape, b.Shape) || !slices.Equal(a.I64, b.I64) || !slices.EqualFunc(a.F32, b.F32, func(x, y float32) bool { return math.Float32bits(x) == math.Float32bits(y) }) {
			return &Error{Output: name, Index: -1, Detail: fmt.Sprintf("of run %d is not that of run 1, bit for bit: something in it races", run)}
		}
	}
	return nil
}
