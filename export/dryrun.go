package export

import (
	"fmt"
	"maps"
	"slices"

	"github.com/gsrc-dev/gsrc/export/manifest"

	"github.com/gsrc-dev/gsrc/export/onnx"
	"github.com/gsrc-dev/gsrc/export/parity"
)

// PlannedFile is one that [Build] would write.
type PlannedFile struct {
	Name    string
	Bytes   int64 // -1 where it shows only when the models run
	Content string
}

// Plan compiles and lowers as [Build] does, and tells what that would write. Nothing
// is run and nothing written.
func DryRun(o BuildOptions) ([]PlannedFile, error) {
	if o.Log == nil {
		o.Log = func(string, ...any) {}
	}
	if err := o.check(); err != nil {
		return nil, err
	}
	models, err := o.lowered()
	if err != nil {
		return nil, err
	}
	infos := o.manifest(models).Models
	var plan []PlannedFile
	for _, m := range models {
		info := infos[m.Name]
		content := fmt.Sprintf("%s: %s → %s; %d operations", m.task, manifest.Signature(info.Inputs), manifest.Signature(info.Outputs), len(m.Proto.Graph.Node))
		if onnx.GraphArg(m.fn) != nil {
			content += ", " + string(m.Lowering)
		}
		plan = append(plan, PlannedFile{info.File, int64(len(m.Data)), content})
		if m.Weights != nil {
			plan = append(plan, PlannedFile{info.Data, int64(len(m.Weights)), "large weights of " + info.File})
		}
	}
	for _, m := range models {
		info := infos[m.Name]
		plan = append(plan, PlannedFile{info.TestData + "/", -1, fmt.Sprintf("inputs and expected outputs of %s, %d tensors", info.File, len(info.Inputs)+len(info.Outputs))})
	}
	if o.Columns != nil && o.Columns.Prepared() {
		plan = append(plan, PlannedFile{PreprocessFile, -1, fmt.Sprintf("%d columns of a table → x [num_nodes, %d]", len(o.Columns.Columns), o.Columns.Width())})
	}
	for _, name := range slices.Sorted(maps.Keys(o.Files)) {
		plan = append(plan, PlannedFile{name, int64(len(o.Files[name])), "of the run, beside the models"})
	}
	return append(plan, PlannedFile{parity.FileName, -1, "how far onnxruntime is from the compiled forward pass"},
		PlannedFile{manifest.FileName, -1, "what is in the folder: inputs, shapes, checksums, metrics"}), nil
}
