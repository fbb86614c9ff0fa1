//go:build darwin || linux

package cuda

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/gsrc-dev/gsrc/graph"
	"github.com/gsrc-dev/gsrc/internal/optest"
	"github.com/gsrc-dev/gsrc/ir"
	"github.com/gsrc-dev/gsrc/rng"
	"github.com/gsrc-dev/gsrc/runtime"
	"github.com/gsrc-dev/gsrc/runtime/kernels"
)

// TestLargeShapes runs kernels at sizes at which a launch has several blocks or
// chunks where those of TestKernels have one.
func TestLargeShapes(t *testing.T) {
	q := newQueue(t)
	for _, c := range []struct {
		name, attrs string
		in, out     []string
		sz          optest.Sizes
	}{
		{"pairwise_reduce", "tau=0.9", []string{"f32[N,F]", "f32[N,F]"}, []string{"f32[N]", "f32[N]", "f32[N]", "f32[]"}, optest.Sizes{"N": 1100, "F": 3}},
		{"pairwise_self", "tau=0.05", []string{"f32[N,F]"}, []string{"f32[N]"}, optest.Sizes{"N": 65, "F": 300}},
		{"pairwise_mean", "tau=0.9", []string{"f32[N,F]", "f32[N,F]"}, []string{"f32[N]", "f32[N]", "f32[N,F]"}, optest.Sizes{"N": 129, "F": 140}},
		{"scatter_add", "", []string{"f32[B,F]", "i64[B] index:N", "f32[N]"}, []string{"f32[N,F]"}, optest.Sizes{"N": 1300, "B": 700, "F": 3}},
		{"spmm", "", []string{"graph<N,E>", "f32[E]", "f32[N]", "f32[N,F]"}, []string{"f32[N,F]"}, optest.Sizes{"N": 300, "E": -1, "F": 264}},
		{"spmm", "transpose=true", []string{"graph<N,E>", "f32[E]", "_", "f32[N,F]"}, []string{"f32[N,F]"}, optest.Sizes{"N": 40, "E": 200, "F": 131}},
		{"reduce_sum", `axis="0"`, []string{"f32[N,F]"}, []string{"f32[F]"}, optest.Sizes{"N": 5000, "F": 33}},
		{"logsumexp", `axis="0"`, []string{"f32[N,F]"}, []string{"f32[F]"}, optest.Sizes{"N": 700, "F": 40}},
		{"logsumexp", `axis="all"`, []string{"f32[N,F] huge"}, []string{"f32[]"}, optest.Sizes{"N": 700, "F": 40}},
		{"reduce_max", `axis="1"`, []string{"f32[N,F]"}, []string{"f32[N]"}, optest.Sizes{"N": 3, "F": 3000}},
		{"cross_entropy", "", []string{"f32[N,F]", "i64[N] index:F"}, []string{"f32[]"}, optest.Sizes{"N": 5000, "F": 7}},
		// Few tiles and a long inner dimension, divided among blocks.
		{"matmul", "", []string{"f32[N,B]", "f32[B,F]"}, []string{"f32[N,F]"}, optest.Sizes{"N": 70, "B": 1433, "F": 33}},
		{"matmul", "ta=true", []string{"f32[B,N]", "f32[B,F]"}, []string{"f32[N,F]"}, optest.Sizes{"N": 5, "B": 2049, "F": 130}},
		{"matmul", "tb=true", []string{"f32[N,B]", "f32[F,B]"}, []string{"f32[N,F]"}, optest.Sizes{"N": 1, "B": 257, "F": 1}},
		{"matmul_fused", `ta=true, expr="relu(add(p, x0))"`, []string{"f32[B,N]", "f32[B,F]", "f32[N,F]", "f32[F]"}, []string{"f32[N,F]"}, optest.Sizes{"N": 65, "B": 700, "F": 7}},
		{"cholesky", "", []string{"f32[N,N] definite"}, []string{"f32[N,N]"}, optest.Sizes{"N": 48}},
	} {
		t.Run(c.name+fmt.Sprint(c.sz), func(t *testing.T) {
			oc := optest.Case{In: c.in, Attrs: c.attrs}
			for i, o := range c.out {
				if oc.Out += o; i < len(c.out)-1 {
					oc.Out += ", "
				}
			}
			if c.name == "scatter_add" {
				oc.In, oc.Also = c.in[:2], c.in[2:]
			}
			compareAt(t, q, c.name, oc, 7, c.sz)
			if strings.HasPrefix(c.name, "matmul") && !q.used["gsrc_matmul_sum"] {
				t.Error("the inner dimension is not divided")
			}
		})
	}
}

// TestResultOverOperand runs operations whose result the arena executor may lay
// over an operand so.
func TestResultOverOperand(t *testing.T) {
	q := newQueue(t)
	for _, c := range []struct {
		name, attrs string
		in          []string
		over        int
	}{
		{"add", "", []string{"f32[N,F]", "f32[N,F]"}, 1},
		{"mul", "", []string{"f32[N,F]", "f32[F]"}, 0},
		{"exp", "", []string{"f32[N,F]"}, 0},
		{"dropout", `rate=0.3, stream="a"`, []string{"f32[N,F]"}, 0},
		{"softmax", "", []string{"f32[N,F]"}, 0},
		{"log_softmax", "", []string{"f32[N,F]"}, 0},
		{"l1_normalize", "", []string{"f32[N,F]"}, 0},
		{"l2_normalize", "", []string{"f32[N,F]"}, 0},
		{"cross_entropy_grad", "", []string{"f32[N,F]", "i64[N] index:F", "f32[]"}, 0},
		{"l2_normalize_grad", "", []string{"f32[N,F]", "f32[N,F]", "f32[N,F]"}, 2},
		{"fused_elementwise", `expr="t0 = add(x0, x1); mul(t0, sub(x0, sigmoid(t0)))"`, []string{"f32[N,F]", "f32[F]"}, 0},
		{"matmul_fused", `expr="elu(p)"`, []string{"f32[N,N]", "f32[N,F]", "f32[N,F]"}, 2},
		{"spmm_fused", `expr="relu(p)"`, []string{"graph<N,E>", "f32[E]", "f32[N]", "f32[N,F]", "f32[N,F]"}, 4},
	} {
		t.Run(c.name, func(t *testing.T) {
			oc := optest.Case{In: c.in, Attrs: c.attrs, Out: "f32[N,F]"}
			src := oc.Source(c.name)
			m, err := ir.Parse(c.name, src)
			if err != nil {
				t.Fatal(err)
			}
			sz := optest.Sizes{"N": 70, "F": 37, "E": -1}
			args := map[string]*runtime.Buffer{}
			for a, v := range optest.Arguments(t, m.Func("f"), oc.Words(), sz, rng.New(1, src)) {
				args[a] = bufferOf(t, v)
			}
			apart, err := run(t, q, m.Func("f"), args, rng.New(1, "s"), 4)
			if err != nil {
				t.Fatal(err)
			}
			op := m.Func("f").Body[0]
			k := &runtime.Call{Op: op}
			for _, v := range op.Operands {
				k.In = append(k.In, args[v.Name])
			}
			if op.Draws() {
				k.Stream = rng.New(1, "s").Sub(op.Str("stream"))
			}
			k.Out = []*runtime.Buffer{k.In[c.over]}
			if n := Workspace(k); n > 0 {
				k.PlaceScratch(place(t, q, make([]float64, n/8+1)))
			}
			kernel, err := Lookup(op)
			if err != nil {
				t.Fatal(err)
			}
			if err := kernel(q, k); err != nil {
				t.Fatal(err)
			}
			if err := sameBits(k.Out[0], apart["r0"]); err != nil {
				t.Errorf("over operand %d: %v", c.over, err)
			}
		})
	}
}

// chainOf runs one step over the elements.
func chainOf(t *testing.T, q *hostQueue, op int, number float32, x ...[]float32) []float32 {
	t.Helper()
	y := runtime.F32(make([]float32, len(x[0])), len(x[0]))
	var in []*runtime.Buffer
	for _, v := range x {
		in = append(in, q.bind(t, runtime.F32(v, len(v))))
	}
	if err := queued(q, one(op, number, q.bind(t, y), in...).launch); err != nil {
		t.Fatal(err)
	}
	return y.F32
}

// TestFunctions holds the kernels' own functions against float64, over their whole
// range, in units in the last place.
func TestFunctions(t *testing.T) {
	q := newQueue(t)
	var all, positive, small []float32
	s := rng.New(1, "functions")
	for i := range uint64(20000) {
		b := s.Uint32(i)
		all = append(all, math.Float32frombits(b))
		positive = append(positive, math.Float32frombits(b&0x7fffffff))
		small = append(small, (s.Uniform(i)-0.5)*40)
	}
	inf := float32(math.Inf(1))
	edges := []float32{0, float32(math.Copysign(0, -1)), 1, -1, inf, -inf, float32(math.NaN()), 88.72, 88.73, -87.3, -103.9, -104.1, math.MaxFloat32, 1e-45, -1e-45, 1.17549435e-38, 0.5, 2, -2, 3, 1e10, -1e10, 0.34, -0.34, 0.17, 9.9, 10.1}
	all, small = append(all, edges...), append(small, edges...)
	relu := func(v float64) float64 {
		if v < 0 {
			return 0
		}
		return v
	}
	sigmoid := func(v float64) float64 { return 1 / (1 + math.Exp(-v)) }
	elu := func(v float64) float64 {
		if v < 0 {
			return math.Expm1(v)
		}
		return v
	}
	for _, c := range []struct {
		name   string
		op     int
		number float32
		x      []float32
		want   func(float64) float64
		ulps   float64
	}{
		{"exp", pointwise["exp"], 0, small, math.Exp, 2}, {"exp anywhere", pointwise["exp"], 0, all, math.Exp, 2}, {"log", pointwise["log"], 0, all, math.Log, 2},
		{"sqrt", pointwise["sqrt"], 0, all, math.Sqrt, 0.5}, {"rsqrt", pointwise["rsqrt"], 0, positive, func(v float64) float64 { return 1 / math.Sqrt(v) }, 1.5},
		{"sigmoid", pointwise["sigmoid"], 0, small, sigmoid, 4}, {"tanh", pointwise["tanh"], 0, small, math.Tanh, 4}, {"tanh anywhere", pointwise["tanh"], 0, all, math.Tanh, 4},
		{"elu", pointwise["elu"], 0, small, elu, 4}, {"relu", pointwise["relu"], 0, all, relu, 0},
		{"pow 1.7", pointwise["pow"], 1.7, all, func(v float64) float64 { return math.Pow(v, float64(float32(1.7))) }, 0.51},
		{"pow -2", pointwise["pow"], -2, all, func(v float64) float64 { return math.Pow(v, -2) }, 0.51},
		{"pow 3", pointwise["pow"], 3, small, func(v float64) float64 { return math.Pow(v, 3) }, 0.51},
		{"pow 0", pointwise["pow"], 0, all, func(float64) float64 { return 1 }, 0},
		{"pow 0.5", pointwise["pow"], 0.5, positive, func(v float64) float64 { return math.Pow(v, 0.5) }, 0.51},
	} {
		worst, at := 0.0, float32(0)
		for i, y := range chainOf(t, q, c.op, c.number, c.x) {
			want := c.want(float64(c.x[i]))
			if e := ulps(y, want); e > worst {
				worst, at = e, c.x[i]
			}
		}
		if worst > c.ulps {
			t.Errorf("%s: error of %.3g units in the last place at %g, want at most %g", c.name, worst, at, c.ulps)
		}
	}
	// Logarithms of sums: where both are infinite or far apart.
	var a, b []float32
	for _, x := range edges {
		for _, y := range edges {
			a, b = append(a, x), append(b, y)
		}
	}
	for i, y := range chainOf(t, q, pointwise["logaddexp"], 0, a, b) {
		x, z := float64(a[i]), float64(b[i])
		want := max(x, z) + math.Log1p(math.Exp(-math.Abs(x-z)))
		if math.IsInf(max(x, z), 0) {
			want = max(x, z)
		}
		if e := math.Abs(float64(y) - want); e > 4*unit(max(math.Abs(want), math.Abs(max(x, z)))) || math.IsNaN(want) != math.IsNaN(float64(y)) {
			t.Errorf("logaddexp(%g, %g) = %g, want %g", a[i], b[i], y, want)
		}
	}
}

// ulps is the distance of y from want in units in the last place of want.
func ulps(y float32, want float64) float64 {
	w := float32(want)
	if y == w || y != y && want != want {
		return max(0, math.Min(0.5, math.Abs(float64(y)-want)/unit(want)))
	}
	if math.IsInf(float64(y), 0) || math.IsInf(float64(w), 0) || y != y || w != w {
		return math.Inf(1)
	}
	return math.Abs(float64(y)-want) / unit(want)
}

func unit(v float64) float64 {
	if v == 0 || math.IsInf(v, 0) || math.IsNaN(v) {
		return 1
	}
	_, e := math.Frexp(v)
	return math.Ldexp(1, max(e-24, -149))
}

// TestAdam compares the optimizer's step with the CPU's, over several steps and
// parameters of different lengths.
func TestAdam(t *testing.T) {
	q := newQueue(t)
	pool := kernels.NewPool(1)
	defer pool.Close()
	var cpu, gpu []kernels.AdamParam
	var words []uint64
	fill := func(n int, name string) []float32 {
		x := make([]float32, n)
		for i := range x {
			x[i] = kernels.NormalAt(rng.New(1, name), uint64(i))
		}
		return x
	}
	for i, n := range []int{1, 1000, 37, 0} {
		p := kernels.AdamParam{W: fill(n, "w"), G: fill(n, "g"), M: make([]float32, n), V: make([]float32, n), WeightDecay: float32(i) * 0.01}
		cpu = append(cpu, p)
		g := kernels.AdamParam{W: slices.Clone(p.W), G: slices.Clone(p.G), M: make([]float32, n), V: make([]float32, n), WeightDecay: p.WeightDecay}
		gpu = append(gpu, g)
		words = append(words, Ptr(place(t, q, g.W)), Ptr(place(t, q, g.G)), Ptr(place(t, q, g.M)), Ptr(place(t, q, g.V)), Long(n), Float(g.WeightDecay))
	}
	table := place(t, q, words)
	for step := 1; step <= 5; step++ {
		pool.AdamStep(cpu, 0.01, 0.9, 0.999, 1e-8, step)
		q.step[0] = uint64(step + 99)
		if err := q.Launch("gsrc_adam", [3]uint32{3, uint32(len(gpu)), 1}, [3]uint32{threads, 1, 1}, 0, Ptr(table), Ptr(q.Step()), Long(-99), Float(0.01), Float(0.9), Float(0.999), Float(1e-8)); err != nil {
			t.Fatal(err)
		}
		for i := range cpu {
			for j, w := range cpu[i].W {
				if d := math.Abs(float64(gpu[i].W[j] - w)); !(d <= 1e-6) { // NaN, too
					t.Fatalf("step %d: parameter %d[%d] is %v, the CPU has %v", step, i, j, gpu[i].W[j], w)
				}
			}
		}
	}
}

// Indices that point nowhere are not followed, and show.
func TestIndicesOutside(t *testing.T) {
	q := newQueue(t)
	for name, body := range map[string]string{
		"gather":             "func @f(%x0: f32[4,3], %x1: i64[3]) -> (r0: f32[3,3]) {\n  %y0 = gather %x0, %x1 : f32[3,3]\n  return %y0\n}\n",
		"scatter_add":        "func @f(%x0: f32[3,2], %x1: i64[3]) -> (r0: f32[4,2]) {\n  %y0 = scatter_add %x0, %x1 : f32[4,2]\n  return %y0\n}\n",
		"cross_entropy":      "func @f(%x0: f32[3,4], %x1: i64[3]) -> (r0: f32[]) {\n  %y0 = cross_entropy %x0, %x1 : f32[]\n  return %y0\n}\n",
		"cross_entropy_grad": "func @f(%x0: f32[3,4], %x1: i64[3], %x2: f32[]) -> (r0: f32[3,4]) {\n  %y0 = cross_entropy_grad %x0, %x1, %x2 : f32[3,4]\n  return %y0\n}\n",
	} {
		m, err := ir.Parse(name, "module @case\n\n"+body)
		if err != nil {
			t.Fatal(err)
		}
		for _, bad := range []int64{-1, 4, math.MaxInt64, math.MinInt64} {
			args := map[string]*runtime.Buffer{"x1": runtime.I64([]int64{1, bad, 2}, 3), "x2": runtime.Scalar(1)}
			x := m.Func("f").Args[0].Type
			shape, err := x.Shape(nil)
			if err != nil {
				t.Fatal(err)
			}
			args["x0"] = runtime.Zeros(shape...)
			out, err := run(t, q, m.Func("f"), args, rng.New(1, "s"), 0)
			if err != nil {
				t.Errorf("%s: index %d: %v", name, bad, err)
				continue
			}
			if !slices.ContainsFunc(out["r0"].F32, func(v float32) bool { return v != v }) {
				t.Errorf("%s: index %d does not show: %v", name, bad, out["r0"].F32)
			}
		}
	}
}

// A graph whose rows differ much in length: the rows of a hub and of a leaf.
func TestSkewedGraph(t *testing.T) {
	q := newQueue(t)
	g := &graph.Graph{N: 600}
	for v := int32(1); v < 600; v++ {
		g.Edges = append(g.Edges, [2]int32{0, v})
	}
	s := g.Structure()
	m, err := ir.Parse("hub", `module @case

func @f(%x0: graph<N,E>, %x1: f32[E,2], %x2: f32[N,2], %x3: f32[N,8]) -> (r0: f32[N,8], r1: f32[E,2], r2: f32[N,8], r3: f32[N,8]) {
  %a, %self = edge_softmax %x0, %x1, %x2 : f32[E,2], f32[N,2]
  %y = spmm %x0, %a, %self, %x3 : f32[N,8]
  %d = sddmm %x0, %y, %x3 {heads=2} : f32[E,2]
  %top = spmax %x0, %x3 : f32[N,8]
  %back = spmm_fused %x0, _, _, %x3, %y {transpose=true, expr="elu(p)"} : f32[N,8]
  return %y, %d, %top, %back
}
`)
	if err != nil {
		t.Fatal(err)
	}
	args := map[string]*runtime.Buffer{"x0": runtime.Graph(s)}
	for _, a := range m.Func("f").Args[1:] {
		args[a.Name] = bufferOf(t, optest.RandomValue(t, a.Type, "", map[string]int{"N": s.N, "E": s.E}, rng.New(1, a.Name)))
	}
	want, err := runtime.Reference(m, "f", args, nil, rng.New(1, "s"), 0)
	if err != nil {
		t.Fatal(err)
	}
	got, err := run(t, q, m.Func("f"), args, rng.New(1, "s"), 0)
	if err != nil {
		t.Fatal(err)
	}
	for r, b := range got {
		if err := closeTo(b, want[r], 1e-5); err != nil {
			t.Errorf("%s: %v", r, err)
		}
	}
}

// A launch that was recorded draws for the step that the device's memory names when
// it is played.
func TestDrawsFollowTheStep(t *testing.T) {
	q := newQueue(t)
	y := q.bind(t, runtime.Zeros(10))
	c := one(pointwise["uniform"], 0, y)
	c.draws, c.stream = true, rng.New(3, "x")
	for at := range uint64(3) {
		q.step[0] = at
		if err := queued(q, c.launch); err != nil {
			t.Fatal(err)
		}
		for i, v := range y.F32 {
			if want := c.stream.At(at).Uniform(uint64(i)); v != want {
				t.Fatalf("step %d: element %d is %v, want %v", at, i, v, want)
			}
		}
	}
}
