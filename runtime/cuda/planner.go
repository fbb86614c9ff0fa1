package cuda

import (
	"errors"
	"fmt"

	"github.com/gsrc-dev/gsrc/ir"
	"github.com/gsrc-dev/gsrc/runtime"
	"github.com/gsrc-dev/gsrc/runtime/kernels"
)

// Planner is a GPU as far as predictions go: it knows what there are kernels for and
// what workspace they need, and runs nothing. See [runtime.PredictMemoryOn].
var Planner runtime.Device = planner{runtime.CPU}

type planner struct{ runtime.Device }

func (planner) Name() string { return "cuda" }

func (planner) Kernel(op *ir.Op) (runtime.Kernel, error) {
	if _, err := Lookup(op); err != nil {
		return nil, err
	}
	return func(*runtime.Call) error { return fmt.Errorf("%s: nothing runs on what plans", op.Name()) }, nil
}

func (planner) Pads() bool { return true }

func (planner) FieldWork(f *runtime.ResidentField) int { return fieldWorkBytes(f) }

func (planner) FindField(*runtime.ResidentField) error {
	return errors.New("no receptive field is found on what plans")
}

func (planner) Workspace(k *runtime.Call) (int, kernels.Scratch) { return (*Device)(nil).Workspace(k) }

func (planner) Nearest([]int32, []float32, *runtime.Buffer, int) error {
	return errors.New("a search for neighbours: nothing runs on what plans")
}

func (planner) NearestBytes(n, f, k int) int { return (*Device)(nil).NearestBytes(n, f, k) }

func (planner) Candidates(*runtime.ResidentCandidates, *runtime.Buffer, int, bool) error {
	return errors.New("a choice of candidates: nothing runs on what plans")
}

func (planner) CandidateBytes(n, f, edges, k int) int {
	return (*Device)(nil).CandidateBytes(n, f, edges, k)
}
