package passes_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/gsrc-dev/gsrc/ir"
	"github.com/gsrc-dev/gsrc/models"
	"github.com/gsrc-dev/gsrc/passes"
	"github.com/gsrc-dev/gsrc/rng"
)

// langevin is two noisy steps and the weight's gradient, D = 10 against F = 2.
const langevin = `module @langevin

param $w: f32[10,2] {group="classifier", init="glorot"}

func @f(%x: f32[N,10], %t: f32[N,2]) -> (h: f32[N,2], loss: f32[], grad.w: f32[10,2]) {
  %sigma = fill {value=0.5} : f32[]
  %e0 = normal {stream="init"} : f32[N,10]
  %n0 = mul %e0, %sigma : f32[N,10]
  %nu0 = add %x, %n0 : f32[N,10]
  %h0 = matmul %nu0, $w : f32[N,2]
  %d0 = sub %h0, %t : f32[N,2]
  %g0 = matmul %d0, $w {tb=true} : f32[N,10]
  %step = fill {value=-0.1} : f32[]
  %s0 = mul %g0, %step : f32[N,10]
  %nu1 = add %nu0, %s0 : f32[N,10]
  %e1 = normal {stream="step"} : f32[N,10]
  %n1 = mul %e1, %sigma : f32[N,10]
  %nu2 = add %nu1, %n1 : f32[N,10]
  %h = matmul %nu2, $w : f32[N,2]
  %d = sub %h, %t : f32[N,2]
  %sq = square %d : f32[N,2]
  %loss = reduce_sum %sq {axis="all"} : f32[]
  %two = fill {value=2.0} : f32[]
  %dd = mul %d, %two : f32[N,2]
  %dw = matmul %nu2, %dd {ta=true} : f32[10,2]
  return %h, %loss, %dw
}
`

// moments of the results over draws.
type moments struct{ mean, square []float64 }

// Over 4000 draws the projected program has the mean and covariance of νW, the
// mean loss and the mean gradient of the dense one, and its gradient varies
// less. Each of the 40 comparisons allows 5 standard errors: a false alarm is
// less likely than one in 40,000, and the seed is fixed.
func TestProjectNoiseDistribution(t *testing.T) {
	const draws, n = 4000, 2
	s := rng.New(9, "langevin")
	random := func(name string, shape ...int) *ir.Tensor {
		x := ir.NewTensor(shape...)
		for i := range x.Data {
			x.Data[i] = s.Sub(name).Normal(uint64(i))
		}
		return x
	}
	args := []ir.Val{{T: random("x", n, 10)}, {T: random("t", n, 2)}}
	ps := map[string]*ir.Tensor{"w": random("w", 10, 2)}
	sample := func(m *ir.Module, name string) map[string]moments {
		out := map[string]moments{}
		for k := range draws {
			vals, err := ir.Interpret(m, "f", args, ps, source{s: rng.New(uint64(k), name)})
			if err != nil {
				t.Fatal(err)
			}
			h := vals[0].T.Data
			var products []float64
			for i := range h {
				for j := i; j < len(h); j++ {
					products = append(products, h[i]*h[j])
				}
			}
			for what, xs := range map[string][]float64{"νW": h, "νWνWᵀ": products, "loss": vals[1].T.Data, "gradient": vals[2].T.Data} {
				a := out[what]
				if a.mean == nil {
					a = moments{make([]float64, len(xs)), make([]float64, len(xs))}
				}
				for i, x := range xs {
					a.mean[i] += x / draws
					a.square[i] += x * x / draws
				}
				out[what] = a
			}
		}
		return out
	}
	parse := func() *ir.Module {
		m, err := ir.Parse("langevin", langevin)
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	projected := parse()
	if err := passes.Lookup("project-noise").Run(projected, passes.DataInfo{}); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(projected.String(), "f32[N,10]") && strings.Contains(projected.String(), "normal {stream=\"init\"} : f32[N,10]") {
		t.Fatalf("the pass did not fire:\n%s", projected)
	}
	dense, low := sample(parse(), "dense"), sample(projected, "projected")
	var vDense, vLow float64
	for what, d := range dense {
		l := low[what]
		for i := range d.mean {
			vd, vl := d.square[i]-d.mean[i]*d.mean[i], l.square[i]-l.mean[i]*l.mean[i]
			if se := math.Sqrt((vd + vl) / draws); !(math.Abs(d.mean[i]-l.mean[i]) <= 5*se) {
				t.Errorf("%s %d: dense mean %g, projected %g, standard error %g", what, i, d.mean[i], l.mean[i], se)
			}
			if what == "gradient" {
				vDense, vLow = vDense+vd, vLow+vl
			}
		}
	}
	t.Logf("variance of the gradient: dense %.3g, projected %.3g", vDense, vLow)
	if vLow > vDense {
		t.Errorf("the projected gradient varies more: %g against %g", vLow, vDense)
	}
}

// The pass says why it fires or not.
func TestProjectNoiseRemarks(t *testing.T) {
	narrow := strings.NewReplacer("[10,2]", "[2,2]", "[N,10]", "[N,2]").Replace(langevin)
	for _, c := range []struct{ name, text, want string }{
		{"fires", langevin, "noise of 10 columns is drawn in 2"},
		{"narrow", narrow, "nothing is gained"},
		{"read otherwise", strings.Replace(langevin, "%h = matmul %nu2, $w", "%odd = exp %nu2 : f32[N,10]\n  %h = matmul %nu2, $w", 1), "read by"},
		{"returned", strings.Replace(strings.Replace(langevin, "(h: f32[N,2],", "(nu: f32[N,10],", 1), "return %h", "return %nu2", 1), "are the result nu"},
		{"gradient read elsewhere", strings.Replace(strings.Replace(langevin, "return %h", "%odd = neg %dw : f32[10,2]\n  return %h", 1), "grad.w: f32[10,2]) {", "other: f32[10,2]) {", 1), "read by"},
	} {
		m, err := ir.Parse(c.name, c.text)
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		before := m.String()
		var said string
		if err := passes.Lookup("project-noise").Run(m, passes.DataInfo{Remark: func(_, line string) { said += line }}); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(said, c.want) {
			t.Errorf("%s: said %q, want %q", c.name, said, c.want)
		}
		if fired := m.String() != before; fired != (c.name == "fires") {
			t.Errorf("%s: fired %v", c.name, fired)
		}
	}
}

// In ECL-GSR no noise and no gradient as large as the features is left.
func TestProjectNoiseOnECL(t *testing.T) {
	o := models.Default()
	o.Features, o.Classes = 300, 3
	o.Encoder.Hidden, o.Encoder.Projection = 16, 16
	for _, blur := range []float64{0, 0.1} {
		o.Views.Blur = blur
		m, _ := models.Lookup("ecl-gsr")
		program := m.Build(o)
		for _, p := range passes.All {
			if err := p.Run(program, passes.DataInfo{SparseArgs: []string{"x"}}); err != nil {
				t.Fatal(err)
			}
		}
		for _, f := range program.Funcs {
			for _, op := range f.Body {
				for _, r := range op.Results {
					if r.Type.Layout == ir.Dense && fmt.Sprint(r.Type.Dims) == "[N 300]" {
						t.Errorf("blur %g: @%s still has %s", blur, f.Name, op)
					}
				}
			}
		}
	}
}
