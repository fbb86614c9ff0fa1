// Package onnxtest has graphs and models for tests of exports, and runs ONNX models.
package onnxtest

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/gsrc-dev/gsrc/compiler"
	"github.com/gsrc-dev/gsrc/internal/orttest"
	"github.com/gsrc-dev/gsrc/ir"
	"github.com/gsrc-dev/gsrc/models"
	"github.com/gsrc-dev/gsrc/rng"
	"github.com/gsrc-dev/gsrc/runtime/ort"
)

// Graph is a graph as a user's input: edges in any order.
type Graph struct {
	Name     string
	N        int
	Src, Dst []int64
}

func (g *Graph) Add(src, dst int) {
	g.Src, g.Dst = append(g.Src, int64(src)), append(g.Dst, int64(dst))
}

// Graphs are the graphs on which exporters are known to fail.
func Graphs() []*Graph {
	r, draw := rng.New(7, "graphs"), uint64(0)
	node := func(n int) int { draw++; return r.Intn(draw, n) }
	random := func(name string, n, e int, loops bool) *Graph {
		g := &Graph{Name: name, N: n}
		for len(g.Src) < e {
			a, b := node(n), node(n)
			if a != b || loops {
				g.Add(a, b)
				g.Add(b, a)
			}
		}
		return g
	}
	star := func(leaves int) *Graph {
		g := &Graph{Name: fmt.Sprintf("star%d", leaves), N: leaves + 2} // the last node is isolated
		for i := range leaves {
			g.Add(i+1, 0)
			g.Add(0, i+1)
		}
		return g
	}
	pair := &Graph{Name: "duplicates", N: 3}
	for range 5 {
		pair.Add(0, 1)
		pair.Add(1, 0)
	}
	loops := &Graph{Name: "self-loops", N: 3}
	for i := range 3 {
		loops.Add(i, i)
		loops.Add(i, i)
	}
	loops.Add(0, 1)
	loops.Add(1, 0)
	onlyLoops := &Graph{Name: "only self-loops", N: 2}
	onlyLoops.Add(0, 0)
	return []*Graph{
		{Name: "one node", N: 1},
		{Name: "no edges", N: 5},
		pair, loops, onlyLoops,
		random("sparse", 40, 30, false),
		random("random", 200, 1500, true),
		random("crowded", 8, 2000, true),
		star(3), star(1024), star(1025), star(5000),
	}
}

func (g *Graph) EdgeIndex() ort.Tensor {
	return ort.Int64s(slices.Concat(g.Src, g.Dst), 2, int64(len(g.Src)))
}

func RandomFloats(stream string, n int) []float32 {
	r := rng.New(11, stream)
	out := make([]float32, n)
	for i := range out {
		out[i] = r.Uniform(uint64(i))*2 - 1
	}
	return out
}

func Open(t testing.TB, model []byte, threads int) *ort.Session {
	t.Helper()
	lib := orttest.Need(t)
	s, err := ort.OpenBytes(model, ort.Options{Library: &lib, Provider: ort.CPU, Threads: threads})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func Run(t testing.TB, s *ort.Session, in map[string]ort.Tensor) map[string]ort.Tensor {
	t.Helper()
	out, err := s.Run(in)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func CheckClose(t *testing.T, what string, got ort.Tensor, want []float64, shape ...int64) {
	t.Helper()
	if !slices.Equal(got.Shape, shape) {
		t.Errorf("%s has shape %v, want %v", what, got.Shape, shape)
		return
	}
	largest := 0.0
	for _, v := range want {
		largest = math.Max(largest, math.Abs(v))
	}
	for i, v := range want {
		if d := math.Abs(float64(got.F32[i]) - v); !(d <= 1e-5+float64(1e-4*largest)) {
			t.Errorf("%s: element %d is %g, want %g", what, i, got.F32[i], v)
			return
		}
	}
}

const Features = 6

// Zoo returns every model that can be exported in the shapes that exports meet.
func Zoo() map[string]*ir.Module {
	out := map[string]*ir.Module{}
	for _, m := range models.All {
		if m.Name == "stable" {
			continue // its classifier reads representations, which gsrc build refuses
		}
		for _, structWidth := range []int{0, 3} {
			if structWidth > 0 && !m.Refines {
				continue
			}
			for _, norm := range []string{"l1", "l2", "none"} {
				if m.Refines && (norm == "none" || structWidth > 0 && norm == "l2") || !m.Refines && m.Name != "gcn" && m.Name != "mlp" && norm != "l2" {
					continue // the same operations as in the others
				}
				o := models.Default()
				o.Features, o.Classes, o.StructWidth, o.Norm = Features, 4, structWidth, norm
				o.Encoder.Hidden, o.Encoder.Projection, o.Hidden = 5, 5, Features
				o.Encoder.StructWeight = 0.5
				out[fmt.Sprintf("%s/struct=%d/%s", m.Name, structWidth, norm)] = models.WithoutEstimate(m.Build(o))
				if m.Name == "gcn" && norm == "l2" { // neighbours are summed before the product
					o.Hidden = 2 * Features
					out["gcn/narrow"] = m.Build(o)
				}
				if (m.Name == "ecl-gsr" || m.Name == "grcn") && structWidth == 0 && norm == "l1" { // others have the same networks
					for _, o.Classifier = range models.Classifiers()[1:] {
						out[m.Name+"/"+o.Classifier] = m.Build(o)
					}
					for _, o.Encoder.Kind = range models.Encoders()[1:] {
						out[m.Name+"/encoder "+o.Encoder.Kind] = m.Build(o)
					}
				}
			}
		}
	}
	return out
}

var Funcs = []string{"encode", "score", "classify"}

func Params(m *ir.Module) map[string][]float32 {
	params := map[string][]float32{}
	for _, p := range m.Params {
		shape, err := p.Type.Shape(nil)
		if err != nil {
			panic(err)
		}
		n := 1
		for _, d := range shape {
			n *= d
		}
		params[p.Name] = RandomFloats(p.Name, n)
		if strings.HasSuffix(p.Name, ".sum.weight") {
			// A layer of GIN sums over up to 250 edges: probabilities that hang on the
			// last digits of logits in the thousands tell nothing.
			for i := range params[p.Name] {
				params[p.Name][i] /= 64
			}
		}
	}
	return params
}

// Judging is an ecl-gsr that judges edges so; by the embedding, it counts them by their weights,
// by evidence, it embeds the graph as that weighs it, and gives the rows of a similarity, "" of none. all has it read every source,
// look for disguised edges, and encode without doubted ones.
func Judging(judge, similarity string, all bool) (*ir.Module, map[string][]float32) {
	o := models.Default()
	o.Features, o.Classes, o.Encoder.Hidden, o.Encoder.Projection, o.Hidden = Features, 4, 5, 5, Features
	o.Edges.Judge, o.Dense, o.Edges.Labels, o.Edges.Disguised = judge, all, all, all
	o.EdgeWeights = judge == models.JudgeEmbedding
	if all {
		o.Encoder.Cut = 0.2
	}
	model, err := models.Lookup("ecl-gsr")
	if err != nil {
		panic(err)
	}
	m := model.Build(o)
	params := Params(m)
	if judge == models.JudgeEvidence {
		for name, p := range params {
			if strings.HasSuffix(name, ".share") {
				p[0] = 0.1
			}
		}
		models.EncodeByItself(m, similarity)
	}
	return m, params
}

// Compile lowers one function for export.
func Compile(t testing.TB, m *ir.Module, fn string) *ir.Func {
	t.Helper()
	p, err := compiler.Compile(m, compiler.Options{Target: compiler.Inference, Funcs: []string{fn}})
	if err != nil {
		t.Fatal(err)
	}
	return p.Module.Func(fn)
}

var Bounds = map[string]float32{"lo": -0.25, "hi": 0.75}

func Constants(fn *ir.Func) map[string]float32 {
	c := map[string]float32{}
	for name, v := range Bounds {
		if fn.Arg(name) != nil {
			c[name] = v
		}
	}
	return c
}

func Compare(t *testing.T, what string, got, want map[string]ort.Tensor) {
	t.Helper()
	for name, w := range want {
		data := make([]float64, len(w.F32))
		for i, v := range w.F32 {
			data[i] = float64(v)
		}
		CheckClose(t, what+": "+name, got[name], data, w.Shape...)
	}
	if len(got) != len(want) {
		t.Errorf("%s: %d outputs, want %d", what, len(got), len(want))
	}
}

func LastLine(text string) string {
	text = strings.TrimSpace(text)
	return text[strings.LastIndexByte(text, '\n')+1:]
}
