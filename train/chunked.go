package train

import (
	"fmt"

	"github.com/gsrc-dev/gsrc/internal/scratch"
	"github.com/gsrc-dev/gsrc/passes"
	"github.com/gsrc-dev/gsrc/runtime"
)

// runChunked runs the classifier over chunks of nodes, on the host.
func runChunked(t *nodeSteps) error {
	if t.chunked == nil {
		parts, err := passes.Cut(t.prog.Module, "classify")
		if err != nil {
			return fmt.Errorf("train: %w", err)
		}
		dir, err := scratch.Dir(t.opts.Dir)
		if err != nil {
			return fmt.Errorf("train: %w", err)
		}
		t.chunked = runtime.NewChunked(parts, dir, t.chunk, t.prog.options)
		for name, b := range t.prog.inputs {
			t.chunked.Bind(name, b)
		}
	}
	for _, p := range t.optim.Params {
		b, err := t.device.Export(p.Value)
		if err != nil {
			return err
		}
		t.chunked.Bind(p.Name, b)
	}
	return t.chunked.Run()
}
