package runtime

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/gsrc-dev/gsrc/ir"
	"github.com/gsrc-dev/gsrc/rng"
	"github.com/gsrc-dev/gsrc/runtime/kernels"
)

// TestTable walks the operation table: every tensor operation has a kernel and
// cases, and nothing else does.
func TestTable(t *testing.T) {
	want := map[string]bool{}
	for _, d := range ir.Ops() {
		if d.Level != ir.TensorLevel || d.Name == "grad" {
			continue
		}
		want[d.Name] = true
		if cpuKernels[d.Name] == nil {
			t.Errorf("%s has no CPU kernel", d.Name)
		}
		if len(opCases[d.Name]) == 0 {
			t.Errorf("%s has no case: its kernel is not compared with the reference", d.Name)
		}
	}
	for name := range cpuKernels {
		if !want[name] {
			t.Errorf("there is a CPU kernel for %s, which is no tensor operation", name)
		}
	}
	for _, name := range slices.Concat(viewOps, sizeOps, overwriting, integerOps) {
		if !want[name] {
			t.Errorf("%s is listed as a tensor operation and is none", name)
		}
	}
}

// TestPointwise walks the operations that expressions may hold: fused kernels
// have a step for each.
func TestPointwise(t *testing.T) {
	for _, d := range ir.Ops() {
		if !ir.Pointwise(d.Name) {
			continue
		}
		step := chainStep(ir.ExprStep{Def: d, Attr: 0.25}) // panics where there is none
		for _, a := range d.Attrs {
			if a.Name != "stream" && step.Param != 0.25 {
				t.Errorf("the step of %s has lost the attribute %s", d.Name, a.Name)
			}
		}
	}
}

// TestKernels compares every kernel with the float64 reference, on empty,
// one-element and larger shapes, and both executors bit for bit.
func TestKernels(t *testing.T) {
	one, four := kernels.NewPool(1), kernels.NewPool(4)
	defer one.Close()
	defer four.Close()
	for name, cases := range opCases {
		t.Run(name, func(t *testing.T) {
			for _, c := range cases {
				compareCase(t, name, c, one, four)
			}
		})
	}
}

func compareCase(t *testing.T, name string, c opCase, one, four *kernels.Pool) {
	src := c.source(name)
	m, err := ir.Parse(name, src)
	if err != nil {
		t.Fatalf("%v\n%s", err, src)
	}
	words := map[string]string{}
	for i, spec := range slices.Concat(c.in, c.also) {
		_, words[fmt.Sprintf("x%d", i)], _ = strings.Cut(spec, " ")
	}
	opts := Options{Seed: rng.New(3, "test"), Pool: one, CheckFinite: false}
	planned := mustFunction(t, m, "f", opts)
	threaded := opts
	threaded.Pool = four
	parallel := mustFunction(t, m, "f", threaded)
	opts.Executor = Tape
	tape := mustFunction(t, m, "f", opts)
	for k, sz := range caseSizes {
		args := arguments(t, m.Func("f"), words, sz, rng.New(uint64(k), name+src))
		if !indicesFit(words, args, sz) {
			continue
		}
		step := uint64(k)
		want, err := Reference(m, "f", args, nil, opts.Seed, step)
		if err != nil {
			t.Fatalf("%v at %v\n%s", err, sz, src)
		}
		for _, f := range []*Function{planned, parallel, tape} {
			bindAll(t, f, args)
			if err := f.Run(step); err != nil {
				t.Fatalf("%v at %v\n%s", err, sz, src)
			}
		}
		for _, r := range planned.Outputs() {
			got := planned.Output(r)
			if err := closeTo(got, want[r], tolerance(name)); err != nil {
				t.Errorf("%s at %v: %v\n%s", r, sz, err, src)
			}
			if err := sameBits(got, parallel.Output(r)); err != nil {
				t.Errorf("%s at %v: 1 and 4 threads differ: %v\n%s", r, sz, err, src)
			}
			if err := sameBits(got, tape.Output(r)); err != nil {
				t.Errorf("%s at %v: planned and tape differ: %v\n%s", r, sz, err, src)
			}
		}
	}
}

// indicesFit reports whether there is anything that the indices could point at.
func indicesFit(words map[string]string, args map[string]*Buffer, sz sizes) bool {
	for name, w := range words {
		if _, bound, ok := strings.Cut(w, ":"); ok && args[name] != nil && args[name].len() > 0 && sz[bound] == 0 {
			return false
		}
	}
	return true
}

// tolerance is the error allowed, relative to the largest element.
func tolerance(op string) float64 {
	switch op {
	case "pairwise_reduce", "pairwise_reduce_grad", "pairwise_mean", "pairwise_self", "pairwise_self_grad": // distances from products
		return 1e-4
	}
	return 1e-5
}

func mustFunction(t testing.TB, m *ir.Module, name string, opts Options) *Function {
	t.Helper()
	f, err := NewFunction(m, name, opts)
	if err != nil {
		t.Fatalf("%v\n%s", err, m)
	}
	t.Cleanup(f.Close)
	return f
}

func bindAll(t testing.TB, f *Function, sets ...map[string]*Buffer) {
	t.Helper()
	inputs := f.Inputs()
	for _, set := range sets {
		for name, b := range set {
			if !slices.Contains(inputs, name) {
				continue
			}
			if err := f.Bind(name, b); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func closeTo(got *Buffer, want *ir.Tensor, tol float64) error {
	g := refValue(got).T
	if !slices.Equal(g.Shape, want.Shape) && len(g.Shape)+len(want.Shape) > 0 {
		return fmt.Errorf("shape %v, want %v", g.Shape, want.Shape)
	}
	scale := 1.0
	for _, w := range want.Data {
		if a := math.Abs(w); !math.IsInf(a, 0) {
			scale = max(scale, a)
		}
	}
	for i, w := range want.Data {
		if v := g.Data[i]; v != w && !(math.Abs(v-w) <= tol*scale) && !(math.IsNaN(v) && math.IsNaN(w)) {
			return fmt.Errorf("element %d of %v is %v, want %v (largest %.3g)", i, g.Shape, v, w, scale)
		}
	}
	return nil
}

func sameBits(a, b *Buffer) error {
	if a == nil || b == nil {
		return fmt.Errorf("a result is missing")
	}
	if !slices.Equal(a.Dims, b.Dims) {
		return fmt.Errorf("shapes %v and %v", a.Dims, b.Dims)
	}
	x, y := a.F32, b.F32
	if a.Sparse != nil {
		x, y = a.Sparse.Values, b.Sparse.Values
	}
	if len(x) != len(y) || !slices.Equal(a.I64, b.I64) {
		return fmt.Errorf("contents differ")
	}
	for i := range x {
		if math.Float32bits(x[i]) != math.Float32bits(y[i]) {
			return fmt.Errorf("element %d is %v and %v", i, x[i], y[i])
		}
	}
	return nil
}
