package export

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// PlannedFile is one that [Build] would write.
type PlannedFile struct {
	Name    string
	Bytes   int64 // -1 where it shows only when the models run
	Content string
}

// Plan compiles and lowers as [Build] does, and tells what that would write. Nothing
// is run and nothing written.
func Plan(o BuildOptions) ([]PlannedFile, error) {
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
	manifest := o.manifest(models)
	var plan []PlannedFile
	for _, m := range models {
		info := manifest.Models[m.name]
		content := fmt.Sprintf("%s: %s → %s; %d operations", m.task, signature(info.Inputs), signature(info.Outputs), len(m.model.Graph.Node))
		if graphArg(m.fn) != nil {
			content += ", " + string(m.lowering)
		}
		plan = append(plan, PlannedFile{info.File, int64(len(m.data)), content})
		if m.weights != nil {
			plan = append(plan, PlannedFile{info.Data, int64(len(m.weights)), "large weights of " + info.File})
		}
	}
	for _, m := range models {
		info := manifest.Models[m.name]
		plan = append(plan, PlannedFile{info.TestData + "/", -1, fmt.Sprintf("inputs and expected outputs of %s, %d tensors", info.File, len(info.Inputs)+len(info.Outputs))})
	}
	for _, name := range slices.Sorted(maps.Keys(o.Files)) {
		plan = append(plan, PlannedFile{name, int64(len(o.Files[name])), "of the run, beside the models"})
	}
	return append(plan, PlannedFile{ParityFile, -1, "how far onnxruntime is from the compiled forward pass"},
		PlannedFile{ReportFile, -1, "the same as a page"},
		PlannedFile{ManifestFile, -1, "what is in the folder: inputs, shapes, checksums, metrics"}), nil
}

// signature lists inputs or outputs with their shapes.
func signature(list []IOInfo) string {
	var parts []string
	for _, io := range list {
		var dims []string
		for _, d := range io.Shape {
			dims = append(dims, fmt.Sprint(d))
		}
		parts = append(parts, fmt.Sprintf("%s [%s]", io.Name, strings.Join(dims, ", ")))
	}
	return strings.Join(parts, ", ")
}
