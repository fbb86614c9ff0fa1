package dist

import (
	"maps"
	"path/filepath"
	"slices"
	"testing"

	"github.com/gsrc-dev/gsrc/export"
	"github.com/gsrc-dev/gsrc/export/inspect"
	"github.com/gsrc-dev/gsrc/export/manifest"
	"github.com/gsrc-dev/gsrc/export/onnx"
	"github.com/gsrc-dev/gsrc/export/parity"
	"github.com/gsrc-dev/gsrc/internal/onnxtest"
	"github.com/gsrc-dev/gsrc/internal/orttest"
	"github.com/gsrc-dev/gsrc/models"
	"github.com/gsrc-dev/gsrc/rng"
	"github.com/gsrc-dev/gsrc/runtime/ort"
)

// built exports a model of the zoo on a random graph.
func built(t *testing.T, model string, change func(*export.BuildOptions)) *Dist {
	t.Helper()
	lib := orttest.Need(t)
	m, g := onnxtest.Zoo()[model], onnxtest.Graphs()[6]
	n := int64(g.N)
	edges, weights := g.EdgeIndex(), ort.Float32s(onnxtest.RandomFloats("w", len(g.Src)), int64(len(g.Src)))
	s := parity.ExampleInputs{X: ort.Float32s(onnxtest.RandomFloats("x", g.N*onnxtest.Features), n, onnxtest.Features), Edges: edges, Refined: &edges, Weights: &weights}
	if m.Func("encode").Arg("x_struct") != nil {
		x := ort.Float32s(onnxtest.RandomFloats("x_struct", g.N*3), n, 3)
		s.Struct = &x
	}
	o := export.BuildOptions{Module: m, Params: onnxtest.Params(m), Bounds: &manifest.Bounds{Lo: -0.25, Hi: 0.75}, Sample: s, Library: &lib, Unverified: true,
		Classes: []string{"a", "b", "c", "d"}}
	change(&o)
	dir := filepath.Join(t.TempDir(), "dist")
	if _, _, err := export.Build(t.Context(), dir, o); err != nil {
		t.Fatal(err)
	}
	d, err := Open(dir, ort.Options{Provider: ort.CPU, Threads: 1, Library: &lib})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return d
}

// The bound holds on graphs that are larger and shaped otherwise than those that it
// was found on.
func TestScratch(t *testing.T) {
	for name, test := range map[string]struct {
		model  string
		change func(*export.BuildOptions)
	}{
		"flat":         {"ecl-gsr/struct=0/l2", func(o *export.BuildOptions) { o.Lowering = onnx.Scatter }},
		"host-buckets": {"ecl-gsr/struct=3/l1", func(o *export.BuildOptions) { o.Lowering = onnx.PrecomputedBuckets }},
		"dense":        {"ecl-gsr/struct=3/l1", func(o *export.BuildOptions) { o.Lowering = onnx.Dense }},
		"evidence": {"ecl-gsr/struct=0/l1", func(o *export.BuildOptions) {
			o.Module, o.Params = onnxtest.Judging(models.JudgeEvidence, "", false)
			o.Bounds = nil
		}},
		"sparse pipeline": {"ecl-gsr/struct=0/l1", func(o *export.BuildOptions) {
			o.SparseX, o.Pipeline, o.Refinement = true, export.PipelineOn, &onnx.Refinement{K: 3, Weighted: true}
		}},
		"pipeline of two steps": {"ecl-gsr/struct=0/l1", func(o *export.BuildOptions) {
			o.Pipeline, o.Refinement = export.PipelineOn, &onnx.Refinement{K: 3, TwoStep: 7, Weighted: true}
		}},
	} {
		d := built(t, test.model, test.change)
		for _, role := range slices.Sorted(maps.Keys(d.Manifest.Models)) {
			s, err := d.Scratch(role)
			if err != nil {
				t.Fatal(name, role, err)
			}
			i, err := inspect.Read(filepath.Join(d.dir, d.Manifest.Models[role].File))
			if err != nil {
				t.Fatal(err)
			}
			shapes, err := i.OpenShapes(d.options)
			if err != nil {
				t.Fatal(err)
			}
			defer shapes.Close()
			stream := rng.New(1, "graphs")
			for _, p := range []struct {
				nodes, edges, hubs int
				k                  int64
			}{{600, 4000, 600, 0}, {40, 9000, 40, 0}, {2000, 3000, 1, 0}, {3, 5000, 2, 0}, {500, 1500, 500, 40}, {300, 0, 1, 299}, {40, 2000, 40, 0}} {
				if p.k > 0 && role != "pipeline" || s.Common() && p.edges > 4000 {
					continue
				}
				in, err := d.probeInputs(role, probe{nodes: p.nodes, k: int(p.k)})
				if err != nil {
					t.Fatal(err)
				}
				pairs := make([]int64, 2*p.edges)
				for i := range p.edges {
					pairs[i] = int64(stream.Uniform(uint64(2*i)) * float32(p.nodes))
					pairs[p.edges+i] = int64(stream.Uniform(uint64(2*i+1)) * float32(p.hubs))
				}
				index := ort.Int64s(pairs, 2, int64(p.edges))
				_, ofPairs := in["pairs"]
				if _, given := in["embedding"]; given {
					in["pairs"] = index
				} else {
					again := map[string]ort.Tensor{}
					for _, name := range []string{"x", "x_struct", onnx.InputK} {
						if v, ok := in[name]; ok {
							again[name] = v
						}
					}
					if again["x"].Shape == nil { // it was put into CSR
						again["x"] = ort.Float32s(make([]float32, p.nodes*d.Manifest.NumFeatures), int64(p.nodes), int64(d.Manifest.NumFeatures))
					}
					if in = again; ofPairs {
						in["pairs"] = index
					}
					if err := Prepare(d.Manifest, role, in, &index, nil); err != nil {
						t.Fatal(err)
					}
				}
				peak, err := shapes.Peak(in)
				if err != nil {
					t.Fatal(name, role, p, err)
				}
				common := d.Common(int64(p.nodes), pairs, in["pairs"].I64, p.k+s.TwoStep, s.Near)
				if bound := s.Bytes(int64(p.nodes), int64(p.edges), p.k, common) + s.Walks(int64(p.nodes), pairs) - 8<<20; float64(peak)*1.2 > float64(bound) {
					t.Errorf("%s, %s, %+v: %d bytes are taken, and %d foreseen", name, role, p, peak, bound)
				}
			}
		}
	}
}
