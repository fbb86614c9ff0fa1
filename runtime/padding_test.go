package runtime_test

import (
	"math"
	"strings"
	"testing"

	"github.com/gsrc-dev/gsrc/graph"
	"github.com/gsrc-dev/gsrc/internal/fakedevice"
	"github.com/gsrc-dev/gsrc/ir"
	"github.com/gsrc-dev/gsrc/rng"
	"github.com/gsrc-dev/gsrc/runtime"
)

// A program's blocks are padded where the rows that this appends change
// nothing, and the results are then those of exact sizes; other programs have exact
// sizes, which differ from step to step, so that no step is replayed.
func TestPadding(t *testing.T) {
	const head = `module @m
param $w: f32[4,3]
param $b: f32[3]

func @f(%x: f32[N,4], %g: graph<N,E>, %e: f32[E], %d: f32[N], %t: i64[B]) -> (y: f32[B,4], z: f32[RESULT]) {
  %block, %sources, %entries = sample_block %g, %t : graph<B,E1,S1>, i64[S1], i64[E1]
  %block2, %sources2, %entries2 = sample_block %g, %sources : graph<S1,E2,S2>, i64[S2], i64[E2]
  %e1 = gather %e, %entries : f32[E1]
  %e2 = gather %e, %entries2 : f32[E2]
  %d1 = gather %d, %t : f32[B]
  %d2 = gather %d, %sources : f32[S1]
  %h2 = gather %x, %sources2 : f32[S2,4]
  %h1 = spmm %block2, %e2, %d2, %h2 : f32[S1,4]
  %y = spmm %block, %e1, %d1, %h1 : f32[B,4]
  %dy = spmm %block, %e1, %d1, %y {transpose=true} : f32[S1,4]
`
	for _, c := range []struct {
		name, result, body string
		padded             bool
	}{
		{"rows that gradients come back from", "N,4", `
  %dh = spmm %block2, %e2, %d2, %dy {transpose=true} : f32[S2,4]
  %z = scatter_add %dh, %sources2 : f32[N,4]`, true},
		{"a weight's gradient", "4,3", `
  %p = matmul_fused %h1, $w, _, $b {expr="elu(add(p, x0))"} : f32[S1,3]
  %q = matmul %dy, $w : f32[S1,3]
  %dp = fused_elementwise %p, %q {expr="elu_grad(x0, mul(2.0, x1))"} : f32[S1,3]
  %z = matmul %h1, %dp {ta=true} : f32[4,3]`, true},
		{"a bias's gradient", "4", `
  %n = l2_normalize %h1 : f32[S1,4]
  %dn = l2_normalize_grad %h1, %n, %dy : f32[S1,4]
  %z = reduce_sum %dn {axis="0"} : f32[4]`, true},
		{"a sum of rows that are not zero", "4", `
  %z = reduce_sum %h1 {axis="0"} : f32[4]`, false},
		{"a mean", "4", `
  %z = reduce_mean %dy {axis="0"} : f32[4]`, false},
		{"what may be infinite", "4,4", `
  %l = log %h1 : f32[S1,4]
  %z = matmul %l, %dy {ta=true} : f32[4,4]`, false},
		{"two factors that are not zero", "4,4", `
  %z = matmul %h1, %h1 {ta=true} : f32[4,4]`, false},
		{"a sum with an appended number", "4", `
  %one = fused_elementwise %dy {expr="add(x0, 1.0)"} : f32[S1,4]
  %z = reduce_sum %one {axis="0"} : f32[4]`, false},
		{"rows scattered that are not zero", "N,4", `
  %z = scatter_add %h2, %sources2 : f32[N,4]`, false},
		{"what is random by place", "4", `
  %k = dropout %dy {rate=0.5, stream="k"} : f32[S1,4]
  %z = reduce_sum %k {axis="0"} : f32[4]`, true},
		{"columns by row", "4", `
  %k = matmul %dy, %dy {tb=true} : f32[S1,S1]
  %q = matmul %k, %dy : f32[S1,4]
  %z = reduce_sum %q {axis="0"} : f32[4]`, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			m, err := ir.Parse("test", strings.Replace(head, "RESULT", c.result, 1)+strings.TrimPrefix(c.body, "\n")+"\n  return %y, %z\n}\n")
			if err != nil {
				t.Fatal(err)
			}
			d, err := fakedevice.New()
			if err != nil {
				t.Fatal(err)
			}
			d.Pad = true
			const n = 50
			g := &graph.Graph{N: n}
			for i := range int32(n - 1) {
				g.Edges = append(g.Edges, [2]int32{i, i + 1})
			}
			st := g.Structure()
			s := rng.New(1, "padding")
			random := func(name string, dims ...int) *runtime.Buffer {
				b := runtime.Zeros(dims...)
				for i := range b.F32 {
					b.F32[i] = 0.5 + s.Sub(name).Uniform(uint64(i))
				}
				return b
			}
			inputs := map[string]*runtime.Buffer{"g": runtime.Graph(st), "x": random("x", n, 4), "e": random("e", st.E), "d": random("d", n), "w": random("w", 4, 3), "b": random("b", 3)}
			var fns []*runtime.Function
			for _, on := range []runtime.Device{runtime.CPU, d} {
				f, err := runtime.NewFunction(m, "f", runtime.Options{Device: on})
				if err != nil {
					t.Fatal(err)
				}
				fns = append(fns, f)
			}
			at := runtime.I64(make([]int64, 3), 3)
			for step := range 8 {
				targets := at.I64
				for i := range targets { // farther apart from step to step
					targets[i] = int64(20 + i*(step/2+1))
				}
				if step == 7 {
					at.I64, at.Dims[0] = nil, 0
				}
				var want [2]*runtime.Buffer
				for k, f := range fns {
					for name, b := range inputs {
						if step == 0 {
							if err := f.Bind(name, b); err != nil && m.Func("f").Arg(name) != nil {
								t.Fatal(err)
							}
						}
					}
					if err := f.Bind("t", at); err != nil {
						t.Fatal(err)
					}
					if err := f.Run(uint64(step)); err != nil {
						t.Fatal(err)
					}
					for i, name := range []string{"y", "z"} {
						b, err := f.Read(name)
						if err != nil {
							t.Fatal(err)
						}
						if k == 0 {
							want[i] = b
							continue
						}
						for j, w := range want[i].F32 {
							if v := b.F32[j]; !(math.Abs(float64(v-w)) <= 1e-5*max(1, math.Abs(float64(w)))) {
								t.Fatalf("step %d: %s[%d] is %g, want %g", step, name, j, v, w)
							}
						}
					}
				}
			}
			for _, f := range fns {
				f.Close()
			}
			// Steps 0 and 1 have one size in either case, and so on.
			if padded := d.Replays > 4; padded != c.padded {
				t.Errorf("%d of 8 steps were replays; padded should be %v", d.Replays, c.padded)
			}
			if err := d.ReleaseAll(); err != nil {
				t.Error(err)
			}
			if err := d.Close(); err != nil || d.Leaks() != 0 {
				t.Errorf("%v, %d bytes left", err, d.Leaks())
			}
		})
	}
}
