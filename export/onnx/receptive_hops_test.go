package onnx

import (
	"slices"
	"strings"
	"testing"

	"github.com/gsrc-dev/gsrc/compiler"
	"github.com/gsrc-dev/gsrc/internal/onnxtest"
	"github.com/gsrc-dev/gsrc/internal/optest"
	"github.com/gsrc-dev/gsrc/ir"
	"github.com/gsrc-dev/gsrc/models"
)

// Every classifier reads as far as it has layers (propagation: powers), and no
// further.
func TestHopsOfClassifiers(t *testing.T) {
	o := models.Default()
	o.Features, o.Classes, o.Layers, o.Propagation.Order, o.Linear.Steps = 6, 3, 3, 5, 4
	want := map[string]int{"mlp": 0, "grand": 5, "gcnii": 3, "gcn": 3, "gat": 3, "acm": 3, "sage": 3, "gin": 3, "linear": 4}
	for _, a := range models.Architectures {
		model, err := models.Lookup(a.Model)
		if err != nil {
			t.Fatal(err)
		}
		p, err := compiler.Compile(model.Build(o), compiler.Options{Target: compiler.Inference, Funcs: []string{"classify"}})
		if err != nil {
			t.Fatal(err)
		}
		have, err := ReceptiveHops(p.Module.Func("classify"))
		if w, ok := want[a.Model]; !ok || err != nil || have != w {
			t.Errorf("%s reaches %d hops (%v), want %d", a.Model, have, err, w)
		}
	}
}

func TestHopsOfWholeGraphs(t *testing.T) {
	g := ir.GraphType("N", "E")
	for name, build := range map[string]func(b *ir.Builder, g, w, x *ir.Value) *ir.Value{
		"a mean of all nodes": func(b *ir.Builder, g, w, x *ir.Value) *ir.Value {
			return b.Sub(b.One("spmm", nil, g, w, nil, x), b.One("reduce_mean", ir.Attrs{"axis": "0"}, x))
		},
		"out-degrees": func(b *ir.Builder, g, w, x *ir.Value) *ir.Value {
			return b.Mul(b.One("unsqueeze", nil, b.One("edge_sum", ir.Attrs{"side": "src"}, g, w)), x)
		},
		"a product of nodes": func(b *ir.Builder, _, _, x *ir.Value) *ir.Value {
			return b.MatMul(x, b.One("matmul", ir.Attrs{"ta": true}, x, x))
		},
	} {
		b := ir.NewModule("m").NewFunc("classify")
		x := b.Arg("x", ir.T(ir.F32, "N", "4"))
		v := b.Arg("g", g)
		b.Return("logits", build(b, v, b.Arg("w", ir.T(ir.F32, g.Dims[1])), x))
		if n, err := ReceptiveHops(b.Func); err == nil || !strings.Contains(err.Error(), "whole graph") {
			t.Errorf("%s: %d hops, %v", name, n, err)
		}
	}
}

// Every operation that computes its rows apart lets an export reach as far as the layers
// around it do, one that was just added too.
func TestHopsThroughOperations(t *testing.T) {
	seen := 0
	for _, d := range ir.Ops() {
		b := ir.NewModule("m").NewFunc("classify")
		g, w := b.Arg("g", ir.GraphType("N", "E")), b.Arg("w", ir.T(ir.F32, "E"))
		y := optest.ByRow(b, d, b.One("spmm", nil, g, w, nil, b.Arg("x", ir.T(ir.F32, "N", "4"))))
		if y == nil {
			continue
		}
		seen++
		b.Return("logits", b.One("spmm", nil, g, w, nil, y))
		if n, err := ReceptiveHops(b.Func); n != 2 || err != nil {
			t.Errorf("%s: %d hops, %v, want 2", d.Name, n, err)
		}
	}
	if seen < 30 {
		t.Errorf("only %d operations were tried", seen)
	}
}

// Where the gate of the evidence is closed, pairs are judged by what was computed of nodes,
// and an encoder takes the edges' weights from there. Where it is open, how an edge is judged
// depends on how others are.
func TestStagesOfEvidence(t *testing.T) {
	o := models.Default()
	o.Features, o.Classes, o.Edges.Judge = 6, 3, models.JudgeEvidence
	model, err := models.Lookup("ecl-gsr")
	if err != nil {
		t.Fatal(err)
	}
	for _, closed := range []bool{true, false} {
		for _, similarity := range []string{"", "evidence"} {
			o.Dense = false
			m := model.Build(o)
			if closed {
				m = models.CloseGate(m)
			}
			models.EncodeByItself(m, similarity)
			stages := func(fn string) *Stages {
				f := onnxtest.Compile(t, m, fn)
				_, s, err := StagedModel(f, onnxtest.Params(m), ModelOptions{})
				if err != nil {
					t.Fatal(err)
				}
				return s
			}
			s := stages("score")
			if (s != nil) != closed {
				t.Fatalf("gate closed: %v, the scorer has the stages %+v", closed, s)
			}
			if closed && (len(s.Values) != 3 || len(s.Common) != 6 || !slices.Equal(s.Outputs, []string{"probability", "edge_probability"}) || s.Weights != "") {
				t.Errorf("the scorer has the stages %+v", s)
			}
			s = stages("encode")
			if similarity == "" {
				if (s != nil) != closed || closed && (s.Weights == "" || s.Outputs != nil) {
					t.Errorf("gate closed: %v, the encoder has the stages %+v", closed, s)
				}
			} else if s == nil || !slices.Equal(s.Outputs, []string{OutputSimilarityRows}) || s.Weights != "" || len(s.Values) != 1 {
				t.Errorf("gate closed: %v, the encoder's rows have the stages %+v", closed, s)
			}
			// The source spectrum is of the whole graph.
			o.Dense = true
			if m = models.CloseGate(model.Build(o)); stages("score") != nil {
				t.Error("a scorer that reads the spectrum has stages")
			}
		}
	}
}

// A scorer that judges by embeddings reads of pairs their cosine, and nothing else; one that
// reads more says nothing.
func TestStagesOfCosines(t *testing.T) {
	o := models.Default()
	o.Features, o.Classes, o.EdgeWeights = 6, 3, true
	for name, constants := range map[string]map[string]float32{"ecl-gsr": {"lo": 0.1, "hi": 0.9}, "grcn": nil} {
		model, err := models.Lookup(name)
		if err != nil {
			t.Fatal(err)
		}
		m := model.Build(o)
		score := onnxtest.Compile(t, m, "score")
		for _, bound := range []bool{true, false} {
			if !bound {
				constants = nil
			}
			proto, s, err := StagedModel(score, onnxtest.Params(m), ModelOptions{Constants: constants})
			if err != nil {
				t.Fatal(err)
			}
			if want := bound || name == "grcn"; (s != nil) != want {
				t.Errorf("%s, bounds known: %v: the scorer has the stages %+v", name, bound, s)
			}
			if s == nil {
				continue
			}
			part, err := s.Part(proto, 0)
			if err != nil {
				t.Fatal(err)
			}
			if in := part.Graph.Input; s.Cosine.Of != "embedding" || len(in) != 1 || in[0].Name != s.Cosine.Name || !slices.Equal(s.Outputs, []string{"probability", "probability_existing"}) {
				t.Errorf("%s: the scorer has the stages %+v and reads %v", name, s, in)
			}
		}
	}
	b := ir.NewModule("m").NewFunc("score")
	h, pairs := b.Arg("embedding", ir.T(ir.F32, "N", "4")), b.Arg("pairs", ir.T(ir.I64, "2", "P"))
	cos := b.One("pair_dot", nil, b.One("l2_normalize", nil, h), pairs)
	b.Return("probability", b.Mul(cos, b.One("pair_dot", nil, h, pairs)))
	if _, s, err := StagedModel(b.Func, nil, ModelOptions{}); err != nil || s != nil {
		t.Errorf("a scorer that reads the lengths of rows has the stages %+v (%v)", s, err)
	}
}
