package export

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gsrc-dev/gsrc/export/dist"
	"github.com/gsrc-dev/gsrc/export/onnx"
	"github.com/gsrc-dev/gsrc/runtime/ort"
)

// Every lowering that reads edge_index, held against the forward pass on the
// undirected graph: duplicates, self-loops, no edges, one direction, both.
func TestBuildSymmetrizes(t *testing.T) {
	for name, change := range map[string]func(*BuildOptions){
		"buckets":      func(o *BuildOptions) {},
		"host-buckets": func(o *BuildOptions) { o.Lowering = onnx.PrecomputedBuckets },
		"flat, sparse": func(o *BuildOptions) { o.Lowering, o.SparseX = onnx.Scatter, true },
		"weights":      counted,
		"evidence":     func(o *BuildOptions) { byEvidence(o); o.Pipeline = PipelineOff }, // whose file takes onnxruntime long to open
	} {
		t.Run(name, func(t *testing.T) {
			o := pipelineOptions(t, "ecl-gsr/struct=0/l1")
			o.Symmetrize = true
			change(&o)
			dir := filepath.Join(t.TempDir(), "dist")
			m, report, err := Build(t.Context(), dir, o)
			if err != nil {
				t.Fatal(err)
			}
			oneWay, models := 0, len(m.Models)
			for _, c := range report.Cases {
				if c.Case == "one direction" {
					oneWay++
				}
			}
			if !m.Symmetrize || m.Models["classifier"].Hops != nil || oneWay != models || models < 3 {
				t.Errorf("symmetrize %v, %v hops, %d comparisons in one direction", m.Symmetrize, m.Models["classifier"].Hops, oneWay)
			}
			d, err := dist.Open(dir, ort.Options{Provider: ort.CPU, Threads: 1, Library: o.Library})
			if err != nil {
				t.Fatal(err)
			}
			defer d.Close()
			index, weight, err := onnx.Symmetrize(o.Sample.Nodes(), o.Sample.Edges, o.Sample.Weights)
			if err != nil {
				t.Fatal(err)
			}
			want, err := d.Classify(o.Sample.X, index, weight)
			if err != nil {
				t.Fatal(err)
			}
			got, err := d.Classify(o.Sample.X, o.Sample.Edges, o.Sample.Weights)
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(got["logits"].F32, want["logits"].F32) {
				t.Error("the undirected graph gives other logits")
			}
		})
	}
	o := buildOptions(t, "ecl-gsr/struct=0/l1")
	o.Symmetrize, o.Lowering = true, onnx.Dense
	if _, err := lowered(o); err == nil || !strings.Contains(err.Error(), "adjacency") {
		t.Errorf("dense: %v", err)
	}
	// Models that classify on the graph as it is.
	for _, model := range []string{"gat/struct=0/l2", "gcn/struct=0/none"} {
		o := buildOptions(t, model)
		o.Symmetrize = true
		if _, _, err := Build(t.Context(), filepath.Join(t.TempDir(), "dist"), o); err != nil {
			t.Errorf("%s: %v", model, err)
		}
	}
}
