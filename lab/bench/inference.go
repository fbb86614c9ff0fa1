package bench

import (
	"fmt"

	"github.com/gsrc-dev/gsrc/compiler"
	"github.com/gsrc-dev/gsrc/export/onnx"
	"github.com/gsrc-dev/gsrc/models"
	"github.com/gsrc-dev/gsrc/runtime"
	"github.com/gsrc-dev/gsrc/runtime/ort"
)

// inferenceCases time a forward pass over the whole graph, compiled and as an
// exported file in onnxruntime.
func inferenceCases() []Case {
	var cases []Case
	for _, c := range []struct {
		model, fn, data string
		hidden          int
	}{{"gcn", "classify", "cora", 16}, {"gcn", "classify", "cora", 128}, {"gcn", "classify", "actor", 16}, {"ecl-gsr", "encode", "cora", 128}} {
		name := fmt.Sprintf("inference/%s/%s/%d", c.model, c.data, c.hidden)
		job := func(e *env) Job {
			o := models.Default()
			if c.model == "gcn" {
				o.Hidden = c.hidden
			}
			return Job{Data: e.ds, Model: c.model, Options: o, Threads: e.Threads}
		}
		cases = append(cases, Case{Name: name + "/compiled", Doc: "@" + c.fn + " over the whole graph", workload: FindWorkload(c.data), run: func(e *env) (Result, error) {
			s, err := NewSession(job(e))
			if err != nil {
				return Result{}, err
			}
			defer s.Close()
			f, err := s.Function(c.fn, runtime.Options{})
			if err != nil {
				return Result{}, err
			}
			r, err := e.rounds(func() error { return f.Run(0) })
			r.PlannedMiB = plannedMiB(f)
			return r, err
		}})
		for _, l := range []onnx.Lowering{onnx.DegreeBuckets, onnx.Scatter} {
			cases = append(cases, Case{Name: name + "/onnxruntime/" + string(l), Doc: "the same function exported, in onnxruntime", workload: FindWorkload(c.data),
				run: func(e *env) (Result, error) { return onnxInference(e, job(e), c.fn, l) }})
		}
	}
	return cases
}

func onnxInference(e *env, j Job, fn string, lowering onnx.Lowering) (Result, error) {
	s, err := NewSession(j)
	if err != nil {
		return Result{}, err
	}
	defer s.Close()
	m, err := models.Lookup(j.Model)
	if err != nil {
		return Result{}, err
	}
	p, err := compiler.Compile(m.Build(s.Options), compiler.Options{Target: compiler.Inference, Funcs: []string{fn}})
	if err != nil {
		return Result{}, err
	}
	params := map[string][]float32{}
	for _, v := range p.Module.Params {
		params[v.Name] = s.inputs[v.Name].F32
	}
	model, err := onnx.Model(p.Module.Func(fn), params, onnx.ModelOptions{Lowering: lowering, NoEdgeWeight: true})
	if err != nil {
		return Result{}, err
	}
	file, err := onnx.Marshal(model)
	if err != nil {
		return Result{}, err
	}
	session, err := ort.OpenBytes(file, ort.Options{Provider: ort.CPU, Threads: j.Threads})
	if err != nil {
		return Result{}, skipped{err.Error()}
	}
	defer session.Close()
	ds := e.ds
	st := ds.Graph.Structure()
	edges := make([]int64, 2*st.E)
	for r := range st.N {
		for k := st.In.RowPtr[r]; k < st.In.RowPtr[r+1]; k++ {
			edges[k], edges[int32(st.E)+k] = int64(st.In.Col[k]), int64(r)
		}
	}
	in := map[string]ort.Tensor{
		"x":          ort.Float32s(ds.X.ToDense().Dense, int64(ds.Graph.N), int64(ds.X.Cols)),
		"edge_index": ort.Int64s(edges, 2, int64(st.E)),
	}
	return e.rounds(func() error {
		_, err := session.Run(in)
		return err
	})
}
