package passes_test

import (
	"flag"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gsrc-dev/gsrc/ir"
	"github.com/gsrc-dev/gsrc/models"
	"github.com/gsrc-dev/gsrc/passes"
	"github.com/gsrc-dev/gsrc/rng"
)

var update = flag.Bool("update", false, "rewrite golden files")

// between stands between the cases of a golden file.
const between = "\n// -----\n"

// Each case of testdata/PASS.gsr goes through its pass alone, and must give that of
// testdata/PASS.golden: remarks and the program, or an error. A case may begin with what is
// known of the data: "// data: sparse=x pad".
func TestGolden(t *testing.T) {
	for _, p := range passes.All {
		t.Run(p.Name, func(t *testing.T) {
			in := filepath.Join("testdata", p.Name+".gsr")
			src, err := os.ReadFile(in)
			if err != nil {
				t.Fatalf("every pass has a golden test: %v", err)
			}
			var cases []string
			for _, text := range strings.Split(string(src), between) {
				cases = append(cases, afterPass(t, p, in, text))
			}
			got := strings.Join(cases, between)
			golden := filepath.Join("testdata", p.Name+".golden")
			if *update {
				if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if got != string(want) {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
		})
	}
}

// afterPass returns what a pass makes of a case.
func afterPass(t *testing.T, p passes.Pass, file, text string) string {
	t.Helper()
	m, err := ir.Parse(file, text)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	info := passes.DataInfo{Remark: func(_, line string) { fmt.Fprintf(&b, "// remark: %s\n", line) }}
	if known, ok := strings.CutPrefix(text, "// data: "); ok {
		known, _, _ = strings.Cut(known, "\n")
		for _, word := range strings.Fields(known) {
			switch name, ok := strings.CutPrefix(word, "sparse="); {
			case ok:
				info.SparseArgs = append(info.SparseArgs, name)
			case word == "pad":
				info.PadBatches = true
			default:
				t.Fatalf("%s: nothing of the data is called %q", file, word)
			}
		}
	}
	if err := p.Run(m, info); err != nil {
		return fmt.Sprintf("// error: %v\n", err)
	}
	if err := ir.Verify(m); err != nil {
		t.Fatal(err)
	}
	b.WriteString(m.String())
	return b.String()
}

func TestOrder(t *testing.T) {
	if err := passes.CheckOrder(passes.All); err != nil {
		t.Fatal(err)
	}
	for _, p := range passes.All {
		if p.Doc == "" || p.Why == "" {
			t.Errorf("pass %s has no documentation or no reason for its place", p.Name)
		}
		for _, before := range p.After {
			broken := []passes.Pass{p, *passes.Lookup(before)}
			err := passes.CheckOrder(broken)
			if err == nil || !strings.Contains(err.Error(), before) {
				t.Errorf("%s before %s: got %v", p.Name, before, err)
			}
		}
	}
	if err := passes.CheckOrder(append(passes.All[:1:1], passes.All[0])); err == nil {
		t.Error("a pass may stand twice")
	}
}

// source draws from the project's streams.
type source struct {
	s     rng.Stream
	quiet bool // normals are 0
}

func (r source) Uniform(stream string, i int) float64 {
	return float64(r.s.Sub(stream).Uniform(uint64(i)))
}
func (r source) Normal(stream string, i int) float64 {
	if r.quiet {
		return 0
	}
	return r.s.Sub(stream).Normal(uint64(i))
}
func (r source) UniformPair(stream string, a, b int) float64 {
	return float64(r.s.Sub(stream).UniformPair(uint32(a), uint32(b)))
}

const nodes, anchors = 6, 4

func ring(s rng.Stream) *ir.Graph {
	g := &ir.Graph{N: nodes}
	has := map[[2]int]bool{}
	for i := range nodes {
		j := (i + 1 + s.Intn(uint64(i), nodes-1)) % nodes
		has[[2]int{i, j}], has[[2]int{j, i}] = true, true
	}
	for i := range nodes {
		for j := range nodes {
			if has[[2]int{i, j}] {
				g.Row, g.Col = append(g.Row, i), append(g.Col, j)
			}
		}
	}
	return g
}

// inputs makes random arguments for a function by name and type.
func inputs(f *ir.Func, o models.Options, s rng.Stream) map[string]ir.Val {
	in := map[string]ir.Val{}
	bind := map[string]int{"N": nodes, "B": anchors, "T": 3, "V": 2, "P": 5}
	for _, a := range f.Args {
		if a.Type.IsBlock() { // three graphs, the second without nodes
			g := &ir.Graph{N: 3, Sources: nodes}
			for v := range nodes {
				g.Row, g.Col = append(g.Row, 2*(2*v/nodes)), append(g.Col, v)
			}
			bind[string(a.Type.Dims[0])] = g.N
			in[a.Name] = ir.Val{G: g}
		} else if a.Type.IsGraph() {
			g := ring(s.Sub(string(a.Type.Dims[1])))
			bind[string(a.Type.Dims[1])] = len(g.Row)
			in[a.Name] = ir.Val{G: g}
		}
	}
	for _, a := range f.Args {
		if a.Type.IsGraph() {
			continue
		}
		for _, d := range a.Type.Dims {
			if _, err := d.Resolve(bind); err != nil {
				bind[string(d)] = 7 // candidates without a graph among the arguments
			}
		}
		shape, _ := a.Type.Shape(bind)
		x := ir.NewTensor(shape...)
		for i := range x.Data {
			st := s.Sub(a.Name)
			switch a.Name {
			case "anchors":
				x.Data[i] = float64(i)
			case "pairs", "train_idx", models.OuterIdx:
				x.Data[i] = float64(st.Intn(uint64(i), nodes))
			case "labels", models.OuterLabels:
				x.Data[i] = float64(st.Intn(uint64(i), o.Classes))
			case "old":
				x.Data[i] = float64(st.Intn(uint64(i), 2))
			case "p", "w":
				x.Data[i] = 0.1 + 0.8*float64(st.Uniform(uint64(i)))
			case "power1", "power2":
				x.Data[i] = 0.5
			case "lo":
				x.Data[i] = -0.5
			case "hi":
				x.Data[i] = 0.9
			default:
				x.Data[i] = st.Normal(uint64(i))
			}
			if strings.HasPrefix(a.Name, "v.") || a.Name == "updates" { // means of squares, and a number
				x.Data[i] = math.Abs(x.Data[i])
			}
		}
		in[a.Name] = ir.Val{T: x}
	}
	return in
}

func parameters(m *ir.Module, s rng.Stream) map[string]*ir.Tensor {
	ps := map[string]*ir.Tensor{}
	for _, p := range m.Params {
		shape, _ := p.Type.Shape(nil)
		x := ir.NewTensor(shape...)
		for i := range x.Data {
			x.Data[i] = 0.7 * s.Sub(p.Name).Normal(uint64(i))
			if strings.HasSuffix(p.Name, "variance") {
				x.Data[i] = 0.5 + math.Abs(x.Data[i])
			}
		}
		ps[p.Name] = x
	}
	return ps
}

// evaluate runs a function by name, its set-up function first.
func evaluate(t *testing.T, m *ir.Module, f *ir.Func, in map[string]ir.Val, ps map[string]*ir.Tensor) map[string]*ir.Tensor {
	t.Helper()
	return evaluateWith(t, m, f, in, ps, source{s: rng.New(3, "test")})
}

func evaluateWith(t *testing.T, m *ir.Module, f *ir.Func, in map[string]ir.Val, ps map[string]*ir.Tensor, random source) map[string]*ir.Tensor {
	t.Helper()
	all := map[string]ir.Val{}
	for k, v := range in {
		all[k] = v
	}
	if name := f.Attrs.Str(passes.Setup); name != "" {
		for k, v := range interpret(t, m, m.Func(name), in, ps, random) {
			all[k] = v
		}
	}
	out := map[string]*ir.Tensor{}
	for k, v := range interpret(t, m, f, all, ps, random) {
		out[k] = v.T
	}
	return out
}

func interpret(t *testing.T, m *ir.Module, f *ir.Func, in map[string]ir.Val, ps map[string]*ir.Tensor, random source) map[string]ir.Val {
	t.Helper()
	var args []ir.Val
	for _, a := range f.Args {
		args = append(args, in[a.Name])
	}
	vals, err := ir.Interpret(m, f.Name, args, ps, random)
	if err != nil {
		t.Fatalf("@%s: %v", f.Name, err)
	}
	out := map[string]ir.Val{}
	for i, r := range f.Results {
		out[r.Name] = vals[i]
	}
	return out
}

func tiny() models.Options {
	o := models.Default()
	o.Features, o.Classes, o.Hidden, o.StructWidth, o.Norm = 4, 3, 4, 2, "l1"
	o.Encoder.Hidden, o.Encoder.Projection = 3, 3
	o.Views.Blur, o.ECL.Steps, o.ECL.Alpha = 0.1, 2, 0.5
	o.LDS.Steps = 1 // each takes seconds to interpret: TestGradientsThroughSteps has several
	return o
}

// variants are the options whose programs differ in kind.
func variants(model models.Model) map[string]models.Options {
	v := map[string]models.Options{"struct and blur": tiny()}
	plain := tiny()
	plain.StructWidth, plain.Views, plain.ECL.Alpha = 0, models.Views{}, 0
	plain.ECL.Reg, plain.ECL.Positive, plain.Norm, plain.Edges.Mode = "paper", true, "none", "threshold"
	plain.ClassWeights = "balanced"
	v["no views, no sampler, as printed"] = plain
	random := tiny()
	random.StructWidth, random.Views.Blur, random.Classifier, random.Propagation.Order = 0, 0, "propagation", 2
	random.Norm = "l2"
	v["random propagation"] = random
	for _, name := range models.Classifiers() {
		if !model.Refines {
			break // it reads no option classifier
		}
		o := plain
		o.Classifier = name
		if name == "acm" {
			// A node that a sample isolates has exactly 0 in the high-pass channel,
			// the kink of its relu: here samples keep nearly every edge.
			o.Edges.OldLo, o.Edges.OldHi, o.Edges.NewLo, o.Edges.NewHi = 0.9, 0.95, 0.9, 0.95
		}
		v["classifier "+name] = o
	}
	for _, kind := range models.Encoders() {
		if !model.Refines {
			break
		}
		o := tiny()
		o.StructWidth, o.Encoder.Kind = 0, kind
		v["encoder "+kind] = o
	}
	if model.Graphs != nil {
		for _, readout := range ir.Readouts {
			o := plain
			o.Readout = readout
			v["graphs, "+readout] = o
		}
	}
	seen := map[string]bool{} // not every model reads every option
	for _, kind := range slices.Sorted(maps.Keys(v)) {
		if text := program(model, kind, v[kind]).String(); seen[text] {
			delete(v, kind)
		} else {
			seen[text] = true
		}
	}
	return v
}

// program builds a variant of a model.
func program(model models.Model, kind string, o models.Options) *ir.Module {
	if strings.HasPrefix(kind, "graphs") {
		return model.Graphs(o)
	}
	return model.Build(o)
}

func ones(n int) *ir.Tensor {
	x := ir.NewTensor(n)
	for i := range x.Data {
		x.Data[i] = 1
	}
	return x
}

func near(a, b float64, tol float64) bool {
	return a == b || math.Abs(a-b) <= tol*math.Max(1, math.Max(math.Abs(a), math.Abs(b)))
}

func compare(t *testing.T, what string, got, want *ir.Tensor, tol float64) {
	t.Helper()
	if got == nil || fmt.Sprint(got.Shape) != fmt.Sprint(want.Shape) {
		t.Errorf("%s: got %v, want %v", what, got, want)
		return
	}
	for i := range want.Data {
		if !near(got.Data[i], want.Data[i], tol) {
			t.Errorf("%s: element %d is %g, want %g", what, i, got.Data[i], want.Data[i])
			return
		}
	}
}

// Every function of every model computes the same before and after every pass.
func TestPassesKeepValues(t *testing.T) {
	for _, model := range models.All {
		for kind, o := range variants(model) {
			t.Run(model.Name+"/"+kind, func(t *testing.T) {
				m := program(model, kind, o)
				s := rng.New(11, model.Name)
				ps := parameters(m, s)
				in := map[string]map[string]ir.Val{}
				for _, f := range m.Funcs {
					in[f.Name] = inputs(f, o, s)
				}
				random := source{s: rng.New(3, "test")}
				baseline := func() map[string]map[string]*ir.Tensor {
					want := map[string]map[string]*ir.Tensor{}
					for _, f := range m.Funcs {
						if in[f.Name] != nil {
							want[f.Name] = evaluateWith(t, m, f, in[f.Name], ps, random)
						}
					}
					return want
				}
				want := baseline()
				for _, p := range passes.All {
					if p.Name == "project-noise" { // other numbers of the same distribution: equal without noise
						random.quiet = true
						want = baseline()
					}
					if err := p.Run(m, passes.DataInfo{SparseArgs: []string{"x"}, PadBatches: strings.HasPrefix(kind, "graphs")}); err != nil {
						t.Fatalf("%s: %v", p.Name, err)
					}
					for _, f := range m.Funcs {
						if p.Name == "pad" && f.Arg(passes.Present) != nil { // nothing is appended
							in[f.Name][passes.Present] = ir.Val{T: ones(nodes)}
						}
					}
					if err := ir.Verify(m); err != nil {
						t.Fatalf("after %s: %v", p.Name, err)
					}
					for _, f := range m.Funcs {
						if want[f.Name] == nil {
							continue // a set-up function, run with its main function
						}
						got := evaluateWith(t, m, f, in[f.Name], ps, random)
						for name, w := range want[f.Name] {
							// The sampler's gradients are numerical before autodiff.
							compare(t, fmt.Sprintf("after %s: @%s %s", p.Name, f.Name, name), got[name], w, 1e-7)
						}
						if t.Failed() {
							t.FailNow()
						}
					}
					if random.quiet {
						random.quiet = false
						want = baseline()
					}
				}

				// What is printed in the end compiles again.
				again, err := ir.Parse("printed.gsr", m.String())
				if err != nil {
					t.Fatal(err)
				}
				for _, p := range passes.All {
					if err := p.Run(again, passes.DataInfo{PadBatches: strings.HasPrefix(kind, "graphs")}); err != nil {
						t.Fatalf("%s of the printed program: %v", p.Name, err)
					}
				}
				if err := ir.Verify(again); err != nil {
					t.Fatalf("the printed program, compiled: %v", err)
				}
			})
		}
	}
}

// The gradients that autodiff appends equal the interpreter's central
// differences of the lowered loss, which honour stopped values: the sampler's
// chain, the bounds of the edge probabilities, the straight-through samples.
func TestGradients(t *testing.T) {
	for _, model := range models.All {
		for kind, o := range variants(model) {
			o.Edges.Mu = 1 // scale_grad is no derivative on purpose
			t.Run(model.Name+"/"+kind, func(t *testing.T) {
				m := program(model, kind, o)
				s := rng.New(11, model.Name) // at these values no activation lies within a step of its kink
				ps := parameters(m, s)
				for _, name := range []string{"lower-gsr", "unroll", "lower-gnn"} {
					if err := passes.Lookup(name).Run(m, passes.DataInfo{}); err != nil {
						t.Fatal(err)
					}
				}
				numeric := m.Clone()
				if err := passes.Lookup("autodiff").Run(m, passes.DataInfo{}); err != nil {
					t.Fatal(err)
				}
				checked := 0
				for _, f := range numeric.Funcs {
					loss := f.Result(f.Attrs.Str(passes.Differentiate))
					params := f.Params(numeric)
					if loss == nil || len(params) == 0 {
						continue
					}
					b := ir.NewBuilder(numeric, f)
					for i, g := range b.Op("grad", nil, append([]*ir.Value{loss}, params...)...) {
						b.Return(passes.GradPrefix+params[i].Name, g)
					}
					in := inputs(f, o, s)
					want := evaluate(t, numeric, f, in, ps)
					got := evaluate(t, m, m.Func(f.Name), in, ps)
					for _, p := range params {
						name := passes.GradPrefix + p.Name
						if got[name] == nil { // the loss does not depend on it, or its gradient is stopped
							got[name] = ir.NewTensor(want[name].Shape...)
						}
						compare(t, "@"+f.Name+" "+name, got[name], want[name], 1e-6)
						checked++
					}
				}
				if checked == 0 && len(m.Params) > 0 {
					t.Error("no gradient was checked")
				}
			})
		}
	}
}

// Gradients flow through unrolled steps that take gradients themselves, by the inner problem's
// start and by what it captures, and not into steps that are detached.
func TestGradientsThroughSteps(t *testing.T) {
	for _, c := range []struct {
		attrs   string
		through bool
	}{{"", true}, {", detach=true", false}} {
		m, err := ir.Parse("steps.gsr", `module @steps
func @descend(%w: f32[5,3], %v: f32[5,3], %x: f32[N,5], %p: f32[N], %labels: i64[N]) -> (w: f32[5,3], v: f32[5,3]) {
  %h = matmul %x, %w : f32[N,3]
  %u = unsqueeze %p : f32[N,1]
  %s = mul %h, %u : f32[N,3]
  %e = elu %s : f32[N,3]
  %d = dropout %e {rate=0.3, stream="drop"} : f32[N,3]
  %r = relu %d : f32[N,3]
  %z = add %r, %d : f32[N,3]
  %loss = cross_entropy %z, %labels : f32[]
  %g = grad %loss, %w : f32[5,3]
  %b = fill {value=0.9} : f32[]
  %k = mul %v, %b : f32[5,3]
  %n = add %k, %g : f32[5,3]
  %l = fill {value=0.5} : f32[]
  %m = mul %n, %l : f32[5,3]
  %y = sub %w, %m : f32[5,3]
  return %y, %n
}
func @f(%w: f32[5,3], %v: f32[5,3], %x: f32[N,5], %p: f32[N], %labels: i64[N]) -> (loss: f32[], dw: f32[5,3], dp: f32[N]) {
  %u, %n = unroll %w, %v, %x, %p, %labels {states=2, step=@descend, steps=3`+c.attrs+`} : f32[5,3], f32[5,3]
  %h = matmul %x, %u : f32[N,3]
  %s = square %h : f32[N,3]
  %loss = reduce_mean %s {axis="all"} : f32[]
  %dw, %dp = grad %loss, %w, %p : f32[5,3], f32[N]
  return %loss, %dw, %dp
}`)
		if err != nil {
			t.Fatal(err)
		}
		s := rng.New(4, "steps")
		tensor := func(k uint64, shape ...int) *ir.Tensor {
			x := ir.NewTensor(shape...)
			for i := range x.Data {
				x.Data[i] = float64(s.Normal(100*k + uint64(i)))
			}
			return x
		}
		labels := ir.NewTensor(7)
		for i := range labels.Data {
			labels.Data[i] = float64(i % 3)
		}
		args := []ir.Val{{T: tensor(0, 5, 3)}, {T: tensor(1, 5, 3)}, {T: tensor(2, 7, 5)}, {T: tensor(3, 7)}, {T: labels}}
		random := source{s: rng.New(3, "test")}
		want, err := ir.Interpret(m, "f", args, nil, random)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"unroll", "autodiff", "simplify", "fold", "cse", "dce"} {
			if err := passes.Lookup(name).Run(m, passes.DataInfo{}); err != nil {
				t.Fatal(err)
			}
		}
		got, err := ir.Interpret(m, "f", args, nil, random)
		if err != nil {
			t.Fatal(err)
		}
		size := 0.0
		for i, name := range []string{"loss", "∂/∂w", "∂/∂p"} {
			compare(t, c.attrs+" "+name, got[i].T, want[i].T, 1e-6)
			if i > 0 {
				for _, v := range got[i].T.Data {
					size = max(size, math.Abs(v))
				}
			}
		}
		if (size > 1e-3) != c.through {
			t.Errorf("steps%s: the largest element of the gradients is %g", c.attrs, size)
		}
	}
}
