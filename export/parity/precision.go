package parity

import (
	"slices"

	"github.com/gsrc-dev/gsrc/export/manifest"
	"github.com/gsrc-dev/gsrc/export/onnx"
	"github.com/gsrc-dev/gsrc/runtime/kernels"
	"github.com/gsrc-dev/gsrc/runtime/ort"
)

// PrecisionReport is what storing weights in fewer bits does to a model on the
// training graph.
type PrecisionReport struct {
	Precision onnx.Precision `json:"precision"`
	// Outputs holds for each output the largest difference from the forward pass
	// with the weights as trained.
	Outputs []OutputChange `json:"outputs"`
	// Agreement is the share of rows of the logits whose largest is the same, per cent.
	Agreement *float64 `json:"agreement,omitempty"`
	// Test is absent where the sample has no test split.
	Test *manifest.TestAccuracy `json:"test,omitempty"`
}

// OutputChange compares an output with that of the weights as trained.
type OutputChange struct {
	Model  string  `json:"model"`
	Output string  `json:"output"`
	MaxAbs float64 `json:"max_abs"` // max|a − b|
	MaxRel float64 `json:"max_rel"` // over max|b|
}

// add compares one model's outputs on the training graph.
func (r *PrecisionReport) add(model string, order []string, got, want map[string]ort.Tensor, s *ExampleInputs) {
	for _, name := range order {
		o, _ := compareOutput(name, got[name], want[name], onnx.Exact)
		r.Outputs = append(r.Outputs, OutputChange{model, name, finite(o.MaxAbs), finite(o.MaxRel)})
	}
	a, b := got["logits"], want["logits"]
	if len(a.Shape) != 2 || a.Shape[1] == 0 || !slices.Equal(a.Shape, b.Shape) || a.Shape[0] == 0 {
		return
	}
	width := int(a.Shape[1])
	same := agreement(a.F32, b.F32, width)
	r.Agreement = new(100 * float64(same.Agree) / float64(same.Rows))
	if len(s.Test) == 0 {
		return
	}
	t := manifest.TestAccuracy{Rows: len(s.Test)}
	for k, i := range s.Test {
		if kernels.Top(b.F32[i*width:(i+1)*width]) == s.Labels[k] {
			t.Trained++
		}
		if kernels.Top(a.F32[i*width:(i+1)*width]) == s.Labels[k] {
			t.Exported++
		}
	}
	t.Trained, t.Exported = 100*t.Trained/float64(t.Rows), 100*t.Exported/float64(t.Rows)
	r.Test = &t
}
