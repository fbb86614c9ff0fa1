package serve

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/gsrc-dev/gsrc/export/dist"
	"github.com/gsrc-dev/gsrc/export/manifest"
	"github.com/gsrc-dev/gsrc/export/onnx"
	"github.com/gsrc-dev/gsrc/internal/lists"
	"github.com/gsrc-dev/gsrc/runtime/ort"
)

// file is an ONNX file of the export as a model. It takes a graph as edge_index
// whatever the lowering of the file: tables, an adjacency matrix and features in CSR
// are made here.
type file struct {
	meta    Metadata
	gate    gate
	outputs map[string][]any // shapes by name, of numbers and names of dimensions
	run     func(d *dist.Dist, r *Request) (map[string]ort.Tensor, error)
	dist    *dist.Dist

	scratch  *dist.Scratch
	host     func(nodes, entries int64) int64
	maxPairs int64
}

const platform = "onnxruntime_onnx"

// files are the models of an export, in the order of their names. Of each, parallel runs
// go on at one time, whatever the others do.
func files(d *dist.Dist, parallel int, maxPairs int64) ([]model, error) {
	m := d.Manifest
	features := int64(m.NumFeatures)
	var all []model
	for _, role := range slices.Sorted(maps.Keys(m.Models)) {
		f := &file{meta: Metadata{Name: role, Versions: []string{modelVersion}, Platform: platform}, gate: make(gate, parallel), dist: d,
			outputs: map[string][]any{}, maxPairs: maxPairs, host: func(nodes, entries int64) int64 { return d.HostBytes(role, nodes, entries) }}
		for _, o := range m.Models[role].Outputs {
			f.outputs[o.Name] = o.Shape
			f.meta.Outputs = append(f.meta.Outputs, tensorInfo(o))
		}
		x, edges := TensorInfo{"x", FP32, []int64{-1, features}}, TensorInfo{"edge_index", INT64, []int64{2, -1}}
		weight := TensorInfo{"edge_weight", FP32, []int64{-1}}
		var weights []TensorInfo // where the file takes some
		if slices.ContainsFunc(m.Models[role].Inputs, func(in manifest.IOInfo) bool { return in.Name == weight.Name }) {
			weights = append(weights, weight)
		}
		switch role {
		case "encoder":
			f.meta.Inputs = []TensorInfo{x}
			for _, in := range m.Models[role].Inputs {
				if in.Name == "x_struct" {
					f.meta.Inputs = append(f.meta.Inputs, tensorInfo(in))
				}
			}
			f.meta.Inputs = append(append(f.meta.Inputs, edges), weights...)
			f.run = func(d *dist.Dist, r *Request) (map[string]ort.Tensor, error) {
				return d.Encode(value(r, "x"), optional(r, "x_struct"), value(r, "edge_index"), optional(r, "edge_weight"))
			}
		case "scorer":
			f.meta.Inputs = lists.Map(m.Models[role].Inputs, tensorInfo)
			if m.JudgesByEvidence() {
				f.meta.Inputs = append([]TensorInfo{x, edges, {"pairs", INT64, []int64{2, -1}}}, weights...)
			}
			f.run = func(d *dist.Dist, r *Request) (map[string]ort.Tensor, error) {
				if m.JudgesByEvidence() {
					return d.ScoreByEvidence(value(r, "x"), value(r, "edge_index"), value(r, "pairs"), optional(r, "edge_weight"))
				}
				return d.Score(value(r, "embedding"), value(r, "pairs"))
			}
		case "classifier":
			f.meta.Inputs = []TensorInfo{x, edges}
			if m.EdgeWeight {
				f.meta.Inputs = append(f.meta.Inputs, weight)
			}
			if m.ReadsLabels() {
				f.meta.Inputs = append(f.meta.Inputs, TensorInfo{onnx.InputKnownLabels, FP32, []int64{-1, int64(len(m.Classes))}})
			}
			f.run = func(d *dist.Dist, r *Request) (map[string]ort.Tensor, error) {
				return d.ClassifyKnowing(value(r, "x"), value(r, "edge_index"), optional(r, "edge_weight"), optional(r, onnx.InputKnownLabels))
			}
			if m.Task == manifest.TaskGraphs {
				f.meta.Inputs = append(f.meta.Inputs, TensorInfo{"graph_ids", INT64, []int64{-1}})
				f.run = func(d *dist.Dist, r *Request) (map[string]ort.Tensor, error) {
					return d.ClassifyGraphs(value(r, "x"), value(r, "edge_index"), optional(r, "edge_weight"), value(r, "graph_ids"))
				}
			}
		case "pipeline":
			f.meta.Inputs = append([]TensorInfo{x, edges, {"k", INT64, []int64{1}}}, weights...)
			f.run = func(d *dist.Dist, r *Request) (map[string]ort.Tensor, error) {
				k := value(r, "k").I64[0]
				// No graph that the file takes has more neighbours.
				return d.Refine(value(r, "x"), value(r, "edge_index"), optional(r, "edge_weight"), int(max(math.MinInt32, min(k, onnx.MaxPipelineNodes))))
			}
		default: // a file for other programs
			continue
		}
		var err error
		if f.scratch, err = d.Scratch(role); err != nil {
			return nil, fmt.Errorf("what the %s takes cannot be foreseen: %w", role, err)
		}
		all = append(all, f)
	}
	return all, nil
}

func (f *file) describe() *Metadata { return &f.meta }

func (f *file) infer(ctx context.Context, r *Request) (*Result, error) {
	for _, in := range f.meta.Inputs {
		if in.Name == "edge_weight" || in.Name == onnx.InputKnownLabels { // dist.Open says what it takes in their place
			continue
		}
		if r.input(in.Name) == nil {
			return nil, invalid("the input %.60q is missing", in.Name)
		}
	}
	if err := finite(r.Inputs, "element %d of the input %.60q of shape %v is %v; numbers are finite"); err != nil {
		return nil, err
	}
	if t := r.input("edge_weight"); t != nil {
		if i := slices.IndexFunc(t.F32, func(w float32) bool { return w < 0 }); i >= 0 {
			return nil, invalid("element %d of the input \"edge_weight\" is %v; weights are finite and not negative", i, t.F32[i])
		}
	}
	return f.gate.do(ctx, func() (*Result, error) {
		out, err := f.run(f.dist.During(ctx), r)
		if err != nil {
			return nil, blame(err)
		}
		res := &Result{}
		for _, o := range f.meta.Outputs {
			t := out[o.Name]
			res.Outputs = append(res.Outputs, Tensor{Name: o.Name, Datatype: o.Datatype, Shape: t.Shape, F32: t.F32, I64: t.I64})
		}
		return res, finite(res.Outputs, "element %d of the output %.60q of shape %v would be %v: the inputs are too large for the model")
	})
}

func value(r *Request, name string) ort.Tensor {
	t := r.input(name)
	if t.Datatype == INT64 {
		return ort.Int64s(t.I64, t.Shape...)
	}
	return ort.Float32s(t.F32, t.Shape...)
}

func optional(r *Request, name string) *ort.Tensor {
	if r.input(name) == nil {
		return nil
	}
	return new(value(r, name))
}

// tensorInfo is an input or output of a manifest as the protocol describes it.
func tensorInfo(io manifest.IOInfo) TensorInfo {
	t := TensorInfo{io.Name, FP32, shape(io.Shape)}
	if io.DType == "int64" {
		t.Datatype = INT64
	}
	return t
}

// shape turns a manifest's shape, of numbers and names, into the protocol's.
func shape(dims []any) []int64 {
	return lists.Map(dims, func(d any) int64 {
		if n, fixed := manifest.Dimension(d); fixed {
			return n
		}
		return -1
	})
}
