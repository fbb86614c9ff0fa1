package export

import (
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gsrc-dev/gsrc/export/dist"
	"github.com/gsrc-dev/gsrc/export/onnx"
	"github.com/gsrc-dev/gsrc/export/parity"
	"github.com/gsrc-dev/gsrc/internal/onnxtest"
	"github.com/gsrc-dev/gsrc/models"
	"github.com/gsrc-dev/gsrc/runtime/ort"
)

// pipelineOptions are those of a model that refines, with pipeline.onnx.
func pipelineOptions(t *testing.T, model string) BuildOptions {
	o := buildOptions(t, model)
	o.Pipeline = PipelineOn
	o.Refinement = &onnx.Refinement{K: 3, Weighted: true}
	return o
}

// Every build is held against the parts of the pipeline on all awkward graphs.
func TestPipeline(t *testing.T) {
	tests := map[string]struct {
		model  string
		change func(*BuildOptions)
	}{
		"buckets": {"ecl-gsr/struct=0/l1", func(o *BuildOptions) {}},
		"flat, threshold": {"ecl-gsr/struct=0/l2", func(o *BuildOptions) {
			o.Lowering, o.Refinement.Threshold, o.Refinement.Weighted = onnx.Scatter, 0.55, false
		}},
		"host-buckets, mutual": {"ecl-gsr/struct=0/l2", func(o *BuildOptions) {
			o.Lowering, o.Refinement.Mutual, o.Refinement.K = onnx.PrecomputedBuckets, true, 12
		}},
		"sparse, opset 21":         {"ecl-gsr/struct=0/l1", func(o *BuildOptions) { o.SparseX, o.Opset = true, 21 }},
		"gat":                      {"ecl-gsr/gat", func(o *BuildOptions) {}},
		"mlp":                      {"ecl-gsr/mlp", func(o *BuildOptions) {}},
		"sage encoder, unweighted": {"ecl-gsr/encoder sage", func(o *BuildOptions) { o.NoEdgeWeight = true }},
		"fp16, external":           {"ecl-gsr/struct=0/l1", func(o *BuildOptions) { o.Precision, o.ExternalData = onnx.FP16, 1 }},
		"weights":                  {"ecl-gsr/struct=0/l1", counted},
		"evidence, sparse": {"ecl-gsr/struct=0/l1", func(o *BuildOptions) {
			byEvidence(o)
			o.Lowering, o.SparseX, o.Precision, o.Refinement.Threshold = onnx.PrecomputedBuckets, true, onnx.FP16, 0.3
		}},
		"evidence, all sources": {"ecl-gsr/struct=0/l1", func(o *BuildOptions) {
			byEvidence(o)
			o.Module, o.Params = onnxtest.Judging(models.JudgeEvidence, "", true)
		}},
		"evidence, two steps": {"ecl-gsr/struct=0/l1", func(o *BuildOptions) {
			o.Refinement.Similarity, o.Refinement.TwoStep = "evidence", 3
			byEvidence(o)
		}},
		"encoder without edges": {"ecl-gsr/encoder mlp", func(o *BuildOptions) {}},
		"idgl": {"idgl/struct=0/l1", func(o *BuildOptions) {
			o.Refinement.Together, o.Refinement.Rows = true, "similar"
		}},
		"idgl, sparse": {"idgl/struct=0/l1", func(o *BuildOptions) {
			o.Refinement.Together, o.Refinement.Rows, o.SparseX, o.Lowering = true, "similar", true, onnx.PrecomputedBuckets
		}},
		"sublime, flat": {"sublime/struct=0/l1", func(o *BuildOptions) {
			o.Refinement.Together, o.Lowering, o.Refinement.Threshold = true, onnx.Scatter, 0.001
		}},
		"two steps, mutual": {"ecl-gsr/struct=0/l1", func(o *BuildOptions) {
			o.Refinement.TwoStep, o.Refinement.Mutual = 4, true
		}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			o := pipelineOptions(t, test.model)
			test.change(&o)
			dir := filepath.Join(t.TempDir(), "dist")
			m, report, err := Build(t.Context(), dir, o)
			if err != nil {
				t.Fatal(err)
			}
			cases, judged := 0, 0
			for _, c := range report.Cases {
				if c.Model == "pipeline" {
					cases++
					judged += len(c.Outputs) - 3 // of those without near ties, where probabilities depend on one another
				}
			}
			if cases < 8 || judged < 8 {
				t.Errorf("%d cases of the pipeline in the report, %d with probabilities", cases, judged)
			}
			if _, ok := m.Models["pipeline"]; !ok || m.Models["pipeline"].Hops != nil {
				t.Errorf("the manifest has %+v", m.Models["pipeline"])
			}
			if strings.HasPrefix(name, "evidence") {
				return // large models, which take onnxruntime long to open
			}
			if _, _, err := parity.Verify(t.Context(), dir, parity.VerifyOptions{Provider: ort.CPU, Library: o.Library}); err != nil {
				t.Error(err)
			}
		})
	}
}

// counted makes a model's edges count by their weights.
func counted(o *BuildOptions) {
	o.Module, o.Params = onnxtest.Judging(models.JudgeEmbedding, "", false)
	o.Module = models.CountWeights(o.Module, 0.7)
	w := onnxtest.RandomFloats("weights", int(o.Sample.Edges.Shape[1]))
	for i := range w {
		w[i] = w[i]*0.4 + 0.5 // another in each direction: the first listed counts
	}
	t := ort.Float32s(w, int64(len(w)))
	o.Sample.EdgeWeights = &t
}

// byEvidence has a model judge edges by evidence from several sources.
func byEvidence(o *BuildOptions) {
	o.Module, o.Params = onnxtest.Judging(models.JudgeEvidence, o.Refinement.Similarity, false)
	o.Bounds, o.Sample.EdgeWeights = nil, nil
}

// The same bits for any number of threads, and any k.
func TestPipelineK(t *testing.T) {
	o := pipelineOptions(t, "ecl-gsr/struct=0/l1")
	dir := filepath.Join(t.TempDir(), "dist")
	if _, _, err := Build(t.Context(), dir, o); err != nil {
		t.Fatal(err)
	}
	m := parity.Model{Classify: o.Module.Func("classify")}
	o.Forward = onnx.Interpreter(o.Module, o.Params, map[string]float32{"lo": o.Bounds.Lo, "hi": o.Bounds.Hi})
	check := o.checks()
	first := map[int]map[string]ort.Tensor{}
	for _, threads := range []int{1, 2, 4} {
		d, err := dist.Open(dir, ort.Options{Provider: ort.CPU, Threads: threads, Library: o.Library})
		if err != nil {
			t.Fatal(err)
		}
		defer d.Close()
		for _, k := range []int{0, 1, 7, 199, 5000} {
			got, err := d.Refine(o.Sample.X, o.Sample.Edges, nil, k)
			if err != nil {
				t.Fatalf("k = %d: %v", k, err)
			}
			if threads > 1 {
				for name, want := range first[k] {
					if !slices.Equal(got[name].I64, want.I64) || !slices.Equal(got[name].F32, want.F32) {
						t.Errorf("k = %d: %s is another with %d threads", k, name, threads)
					}
				}
				continue
			}
			first[k] = got
			in := map[string]ort.Tensor{"x": o.Sample.X, onnx.InputEdgeIndex: o.Sample.Edges, onnx.InputK: ort.Int64s([]int64{int64(k)}, 1)}
			if _, bad, err := check.ComparePipeline(&m, in, got); err != nil || bad != nil {
				t.Errorf("k = %d: %v %v", k, err, bad)
			}
			if n := o.Sample.Nodes(); k >= n-1 && len(got[onnx.OutputRefinedProb].F32) != n*(n-1)/2 {
				t.Errorf("k = %d: %d edges, want all pairs of %d nodes", k, len(got[onnx.OutputRefinedProb].F32), n)
			}
		}
		if _, err := d.Refine(o.Sample.X, o.Sample.Edges, nil, -1); err == nil || !strings.Contains(err.Error(), "k is -1") {
			t.Errorf("k = -1: %v", err)
		}
	}
}

func TestPipelineRefusals(t *testing.T) {
	tests := []struct {
		name, want string
		model      string
		change     func(*BuildOptions)
	}{
		{"structural attributes", "x_struct", "ecl-gsr/struct=3/l1", func(o *BuildOptions) {}},
		{"dense", "no edge_index", "ecl-gsr/struct=0/l1", func(o *BuildOptions) { o.Lowering = onnx.Dense }},
		{"8 bits", "near neighbours", "ecl-gsr/struct=0/l1", func(o *BuildOptions) { o.Precision = onnx.INT8 }},
		{"a model that refines nothing", "nothing to refine", "gcn/struct=0/l1", func(o *BuildOptions) { o.Refinement = nil }},
		{"many nodes", "at most 32768", "ecl-gsr/struct=0/l1", func(o *BuildOptions) {
			n := int64(onnx.MaxPipelineNodes + 1)
			o.Sample.X = ort.Float32s(make([]float32, n*onnxtest.Features), n, onnxtest.Features)
		}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			o := pipelineOptions(t, test.model)
			o.Unverified = true
			test.change(&o)
			if _, err := lowered(o); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want one with %q", err, test.want)
			}
			var lines []string
			o.Pipeline, o.Log = PipelineAuto, func(f string, args ...any) { lines = append(lines, fmt.Sprintf(f, args...)) }
			models, err := lowered(o)
			if err != nil || slices.ContainsFunc(models, func(m built) bool { return m.Name == "pipeline" }) {
				t.Errorf("auto: %v, %v", err, models)
			}
			if told := strings.Contains(strings.Join(lines, "\n"), test.want); told == (o.Refinement == nil) {
				t.Errorf("auto says %q", lines)
			}
		})
	}
	// The file refuses by itself.
	o := pipelineOptions(t, "ecl-gsr/struct=0/l1")
	o.Unverified = true
	dir := filepath.Join(t.TempDir(), "dist")
	if _, _, err := Build(t.Context(), dir, o); err != nil {
		t.Fatal(err)
	}
	s, err := ort.Open(filepath.Join(dir, "pipeline.onnx"), ort.Options{Provider: ort.CPU, Library: o.Library})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	run := func(n int64, k int64, edges ...int64) error {
		_, err := s.Run(map[string]ort.Tensor{"x": ort.Float32s(make([]float32, n*onnxtest.Features), n, onnxtest.Features),
			onnx.InputEdgeIndex: ort.Int64s(edges, 2, int64(len(edges)/2)), onnx.InputK: ort.Int64s([]int64{k}, 1)})
		return err
	}
	if err := run(onnx.MaxPipelineNodes+1, 1); err == nil || !strings.Contains(err.Error(), "num_nodes_is_at_most_32768") {
		t.Errorf("too many nodes: %v", err)
	}
	if err := run(4, 1, 0, 4); err == nil || !strings.Contains(err.Error(), "edge_index_is_within_the_nodes") {
		t.Errorf("a node that is not there: %v", err)
	}
	if err := run(4, -1); err == nil || !strings.Contains(err.Error(), "k_is_not_negative") {
		t.Errorf("k = -1: %v", err)
	}
	if err := run(4, math.MaxInt64/2); err != nil {
		t.Errorf("a large k: %v", err)
	}
}

// lowered makes the models of a build without running them.
func lowered(o BuildOptions) ([]built, error) {
	if o.Log == nil {
		o.Log = func(string, ...any) {}
	}
	if err := o.check(); err != nil {
		return nil, err
	}
	return o.lowered()
}
