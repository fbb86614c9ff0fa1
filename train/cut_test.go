package train

import (
	"slices"
	"strings"
	"testing"

	"github.com/gsrc-dev/gsrc/compiler"
	"github.com/gsrc-dev/gsrc/graph"
	"github.com/gsrc-dev/gsrc/internal/onnxtest"
	"github.com/gsrc-dev/gsrc/models"
	"github.com/gsrc-dev/gsrc/runtime"
)

// Edges that count less than model.encoder.cut carry none of the encoder's messages, and others what
// is above it.
func TestEncoderCut(t *testing.T) {
	g, _, err := graph.Build(5, []int32{0, 0, 1, 2, 3}, []int32{1, 2, 2, 3, 4}, nil, false)
	if err != nil {
		t.Fatal(err)
	}
	st := g.Structure()
	model, err := models.Lookup("ecl-gsr")
	if err != nil {
		t.Fatal(err)
	}
	embed := func(kind string, cut float64, weights []float32) []float32 {
		o := models.Default()
		o.Features, o.Classes, o.EdgeWeights, o.Encoder.Kind, o.Encoder.Cut = onnxtest.Features, 2, true, kind, cut
		m, err := model.Program(o, false)
		if err != nil {
			t.Fatal(err)
		}
		p, err := compiler.Compile(m, compiler.Options{Target: compiler.Inference, Funcs: []string{"encode"}})
		if err != nil {
			t.Fatal(err)
		}
		f, err := runtime.NewFunction(p.Module, "encode", runtime.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		w := st.Spread(nil, weights)
		in := map[string]*runtime.Buffer{"g": runtime.Graph(st), "w": runtime.F32(w, len(w)), "x": runtime.F32(onnxtest.RandomFloats("x", 5*onnxtest.Features), 5, onnxtest.Features)}
		for name, p := range onnxtest.Params(m) {
			shape, err := m.Param(name).Type.Shape(nil)
			if err != nil {
				t.Fatal(err)
			}
			in[name] = runtime.F32(p, shape...)
		}
		for _, name := range f.Inputs() {
			if err := f.Bind(name, in[name]); err != nil {
				t.Fatal(err)
			}
		}
		if err := f.Run(0); err != nil {
			t.Fatal(err)
		}
		return slices.Clone(f.Result("embedding").F32)
	}
	weights := []float32{1, 0.5, 0.25, 0.125, 0.625}
	for _, kind := range []string{"gcn", "sage", "gin", "acm"} {
		got, want := embed(kind, 0.25, weights), embed(kind, 0, []float32{1, 1. / 3, 0, 0, 0.5})
		for i := range want {
			if d := got[i] - want[i]; !(d*d < 1e-10) {
				t.Fatalf("%s: element %d of the embedding is %v, want %v", kind, i, got[i], want[i])
			}
		}
		if slices.Equal(got, embed(kind, 0, weights)) {
			t.Errorf("%s: the cut changes nothing", kind)
		}
	}
	for _, c := range []struct {
		judge, kind, sampler, want string
	}{
		{models.JudgeEmbedding, "gcn", "full", "model.edges.judge=evidence"},
		{models.JudgeEvidence, "gat", "full", "reads no weights"},
		{models.JudgeEvidence, "gcn", neighbors, "train.sampler=neighbors does not work"},
	} {
		cfg := configure(t, "ecl-gsr", "model.encoder.cut=0.5", "model.edges.judge="+c.judge, "model.encoder.kind="+c.kind, "train.sampler="+c.sampler)
		ds := synthetic(t, 1)
		if _, err := Train(t.Context(), Job{Model: "ecl-gsr", Task: Nodes(ds)}, cfg, Options{}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: error %v", c, err)
		}
	}
}
