package export

import (
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gsrc-dev/gsrc/models"
	"github.com/gsrc-dev/gsrc/runtime/ort"
)

// pipelineOptions are those of a model that refines, with pipeline.onnx.
func pipelineOptions(t *testing.T, model string) BuildOptions {
	o := buildOptions(t, model)
	o.Pipeline = PipelineOn
	o.Refinement = &Refinement{K: 3, Weighted: true}
	return o
}

// Every build is held against the parts of the pipeline on all awkward graphs.
func TestPipeline(t *testing.T) {
	tests := map[string]struct {
		model  string
		change func(*BuildOptions)
	}{
		"buckets":                  {"ecl-gsr/struct=0/l1", func(o *BuildOptions) {}},
		"flat, threshold":          {"ecl-gsr/struct=0/l2", func(o *BuildOptions) { o.Lowering, o.Refinement.Threshold, o.Refinement.Weighted = Flat, 0.55, false }},
		"host-buckets, mutual":     {"ecl-gsr/struct=0/l2", func(o *BuildOptions) { o.Lowering, o.Refinement.Mutual, o.Refinement.K = HostBuckets, true, 12 }},
		"sparse, opset 21":         {"ecl-gsr/struct=0/l1", func(o *BuildOptions) { o.SparseX, o.Opset = true, 21 }},
		"gat":                      {"ecl-gsr/gat", func(o *BuildOptions) {}},
		"mlp":                      {"ecl-gsr/mlp", func(o *BuildOptions) {}},
		"sage encoder, unweighted": {"ecl-gsr/encoder sage", func(o *BuildOptions) { o.NoEdgeWeight = true }},
		"fp16, external":           {"ecl-gsr/struct=0/l1", func(o *BuildOptions) { o.Precision, o.ExternalData = FP16, 1 }},
		"judged":                   {"ecl-gsr/struct=0/l1", judged},
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
			cases := 0
			for _, c := range report.Cases {
				if c.Model == pipelineName {
					cases++
				}
			}
			if cases < 8 {
				t.Errorf("%d cases of the pipeline in the report", cases)
			}
			if _, ok := m.Models[pipelineName]; !ok || m.Models[pipelineName].Hops != nil {
				t.Errorf("the manifest has %+v", m.Models[pipelineName])
			}
			if _, _, err := Verify(t.Context(), dir, VerifyOptions{Provider: ort.CPU, Library: o.Library}); err != nil {
				t.Error(err)
			}
		})
	}
}

// judged makes a model's edges weigh what speaks for them.
func judged(o *BuildOptions) {
	mo := models.Default()
	mo.Features, mo.Classes, mo.Encoder.Hidden, mo.Encoder.Projection, mo.Hidden = testFeatures, 4, 5, 5, testFeatures
	mo.Edges.Judge = models.JudgeAttributes
	model, err := models.Lookup("ecl-gsr")
	if err != nil {
		panic(err)
	}
	o.Module = model.Build(mo)
	o.Params = testParams(o.Module)
	o.Refinement.Judged = true
	w := randomFloats("evidence", int(o.Sample.Edges.Shape[1]))
	for i := range w {
		w[i] = w[i]*0.4 + 0.5 // another in each direction: the first listed counts
	}
	t := ort.Float32s(w, int64(len(w)))
	o.Sample.EdgeWeights = &t
}

// The same bits for any number of threads, and any k.
func TestPipelineK(t *testing.T) {
	o := pipelineOptions(t, "ecl-gsr/struct=0/l1")
	dir := filepath.Join(t.TempDir(), "dist")
	if _, _, err := Build(t.Context(), dir, o); err != nil {
		t.Fatal(err)
	}
	m := built{parts: &parts{classify: o.Module.Func("classify")}}
	o.Forward = Interpreter(o.Module, o.Params, map[string]float32{"lo": o.Bounds.Lo, "hi": o.Bounds.Hi})
	first := map[int]map[string]ort.Tensor{}
	for _, threads := range []int{1, 2, 4} {
		d, err := Open(dir, ort.Options{Provider: ort.CPU, Threads: threads, Library: o.Library})
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
			r, err := o.refine(&m, map[string]ort.Tensor{"x": o.Sample.X, inputEdgeIndex: o.Sample.Edges, inputK: ort.Int64s([]int64{int64(k)}, 1)})
			if err != nil {
				t.Fatal(err)
			}
			if _, bad, err := o.compareRefined(&m, r, o.Sample.X, got); err != nil || bad != nil {
				t.Errorf("k = %d: %v %v", k, err, bad)
			}
			if n := o.Sample.nodes(); k >= n-1 && len(got[outputRefinedProb].F32) != n*(n-1)/2 {
				t.Errorf("k = %d: %d edges, want all pairs of %d nodes", k, len(got[outputRefinedProb].F32), n)
			}
		}
		if _, err := d.Refine(o.Sample.X, o.Sample.Edges, nil, -1); err == nil || !strings.Contains(err.Error(), "k is -1") {
			t.Errorf("k = -1: %v", err)
		}
	}
}

// Nodes whose embedding has no direction are nobody's neighbours, and equally near
// ones go by their number: rows of zeros, and rows that repeat.
func TestNearestSearch(t *testing.T) {
	const n, f = 37, 5
	h := randomFloats("nearest", n*f)
	for _, i := range []int{0, 9, 36} {
		clear(h[i*f : (i+1)*f])
	}
	for i := 20; i < 30; i++ {
		copy(h[i*f:(i+1)*f], h[10*f:11*f])
	}
	for j := range f { // tiny and huge, in the direction of another
		h[31*f+j], h[32*f+j] = h[5*f+j]*0x1p-80, h[6*f+j]*0x1p80
	}
	for _, rows := range []int{0, 1, 2, 16, 17, n} {
		b := newBuilder("nearest", "")
		x := b.input("h", "", float32Type, named("num_nodes"), fixed(f))
		k := b.input("k", "", int64Type, fixed(1))
		got := (&search{b: b, nodes: b.sizeOf(x, 0)}).nearest(x, k)
		for name, v := range map[string]tensor{"rows": got.rows, "idx": got.idx} {
			if err := b.reserve(name); err != nil {
				t.Fatal(err)
			}
			b.output(v, name, "", "Identity")
		}
		data, err := Marshal(b.finish(ModelOptions{}))
		if err != nil {
			t.Fatal(err)
		}
		s := openTestModel(t, data, 2)
		for _, k := range []int{0, 1, 12, 100} {
			out := mustRun(t, s, map[string]ort.Tensor{"h": ort.Float32s(h[:rows*f], int64(rows), f), "k": ort.Int64s([]int64{int64(k)}, 1)})
			r := refinement{embedding: ort.Float32s(h[:rows*f], int64(rows), f)}
			want := r.search(rows, k)
			have := slices.Repeat([]int32{-1}, rows*k)
			numbers := out["rows"].I64
			if len(numbers) > 0 {
				width := len(out["idx"].I64) / len(numbers)
				for i, at := range out["idx"].I64 {
					have[int(numbers[i/width])*k+i%width] = int32(numbers[at])
				}
			}
			if !slices.Equal(have, want) {
				t.Errorf("%d rows, k = %d: neighbours\n%v, want\n%v", rows, k, have, want)
			}
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
		{"dense", "no edge_index", "ecl-gsr/struct=0/l1", func(o *BuildOptions) { o.Lowering = Dense }},
		{"8 bits", "near neighbours", "ecl-gsr/struct=0/l1", func(o *BuildOptions) { o.Precision = INT8 }},
		{"a model that refines nothing", "nothing to refine", "gcn/struct=0/l1", func(o *BuildOptions) { o.Refinement = nil }},
		{"many nodes", "at most 32768", "ecl-gsr/struct=0/l1", func(o *BuildOptions) {
			n := int64(MaxPipelineNodes + 1)
			o.Sample.X = ort.Float32s(make([]float32, n*testFeatures), n, testFeatures)
		}},
		{"evidence that the encoder does not take", "evidence", "ecl-gsr/struct=0/l1", func(o *BuildOptions) { o.Refinement.Judged = true }},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			o := pipelineOptions(t, test.model)
			o.Unverified = true
			test.change(&o)
			if _, err := Plan(o); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want one with %q", err, test.want)
			}
			if o.Refinement != nil && o.Refinement.Judged {
				return
			}
			var lines []string
			o.Pipeline, o.Log = PipelineAuto, func(f string, args ...any) { lines = append(lines, fmt.Sprintf(f, args...)) }
			plan, err := Plan(o)
			if err != nil || slices.ContainsFunc(plan, func(f PlannedFile) bool { return f.Name == "pipeline.onnx" }) {
				t.Errorf("auto: %v, %v", err, plan)
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
		_, err := s.Run(map[string]ort.Tensor{"x": ort.Float32s(make([]float32, n*testFeatures), n, testFeatures),
			inputEdgeIndex: ort.Int64s(edges, 2, int64(len(edges)/2)), inputK: ort.Int64s([]int64{k}, 1)})
		return err
	}
	if err := run(MaxPipelineNodes+1, 1); err == nil || !strings.Contains(err.Error(), "num_nodes_is_at_most_32768") {
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

// What compareRefined must not let pass.
func TestPipelineMistakes(t *testing.T) {
	o := pipelineOptions(t, "ecl-gsr/struct=0/l1")
	o.Forward = Interpreter(o.Module, o.Params, map[string]float32{"lo": o.Bounds.Lo, "hi": o.Bounds.Hi})
	m := built{parts: &parts{classify: o.Module.Func("classify")}}
	r, err := o.refine(&m, map[string]ort.Tensor{"x": o.Sample.X, inputEdgeIndex: o.Sample.Edges, inputK: ort.Int64s([]int64{3}, 1)})
	if err != nil {
		t.Fatal(err)
	}
	n := len(r.outputs[outputRefinedProb].F32)
	for name, change := range map[string]func(out map[string]ort.Tensor){
		"an edge that is missing": func(out map[string]ort.Tensor) {
			index := out[outputRefinedIndex].I64
			out[outputRefinedIndex] = ort.Int64s(slices.Concat(index[:n-1], index[n:2*n-1]), 2, int64(n-1))
			out[outputRefinedProb] = ort.Float32s(out[outputRefinedProb].F32[:n-1], int64(n-1))
			out[outputRefinedExisting] = ort.Int64s(out[outputRefinedExisting].I64[:n-1], int64(n-1))
		},
		"another edge": func(out map[string]ort.Tensor) {
			index := slices.Clone(out[outputRefinedIndex].I64)
			index[2*n-1]++
			out[outputRefinedIndex] = ort.Int64s(index, 2, int64(n))
		},
		"old and new": func(out map[string]ort.Tensor) {
			e := slices.Clone(out[outputRefinedExisting].I64)
			e[n/2] = 1 - e[n/2]
			out[outputRefinedExisting] = ort.Int64s(e, int64(n))
		},
		"a probability": func(out map[string]ort.Tensor) {
			p := slices.Clone(out[outputRefinedProb].F32)
			p[n/2] += 1e-3
			out[outputRefinedProb] = ort.Float32s(p, int64(n))
		},
		"a class": func(out map[string]ort.Tensor) {
			p := slices.Clone(out["logits"].F32)
			p[3] += 1e-2
			out["logits"] = ort.Float32s(p, out["logits"].Shape...)
		},
	} {
		out := map[string]ort.Tensor{}
		for k, v := range r.outputs {
			out[k] = v
		}
		change(out)
		if _, bad, err := o.compareRefined(&m, r, o.Sample.X, out); err != nil || bad == nil {
			t.Errorf("%s passes (%v)", name, err)
		}
	}
	if _, bad, err := o.compareRefined(&m, r, o.Sample.X, r.outputs); err != nil || bad != nil {
		t.Errorf("the reference does not pass: %v %v", err, bad)
	}
}
