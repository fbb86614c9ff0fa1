package runtime

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/gsrc-dev/gsrc/internal/optest"
	"github.com/gsrc-dev/gsrc/ir"
	"github.com/gsrc-dev/gsrc/passes"
	"github.com/gsrc-dev/gsrc/rng"
	"github.com/gsrc-dev/gsrc/runtime/kernels"
)

// TestTable walks the operation table: every tensor operation has a kernel and
// cases, and nothing else does.
func TestTable(t *testing.T) {
	want := map[string]bool{}
	for _, d := range ir.Ops() {
		if d.Level != ir.TensorLevel || d.Resolved {
			continue
		}
		want[d.Name] = true
		if cpuKernels[d.Name] == nil {
			t.Errorf("%s has no CPU kernel", d.Name)
		}
		if len(optest.Cases[d.Name]) == 0 {
			t.Errorf("%s has no case: its kernel is not compared with the reference", d.Name)
		}
	}
	for name := range cpuKernels {
		if !want[name] {
			t.Errorf("there is a CPU kernel for %s, which is no tensor operation", name)
		}
	}
}

// TestPointwise walks the operations that expressions may hold: fused kernels
// have a step for each.
func TestPointwise(t *testing.T) {
	for _, d := range ir.Ops() {
		if !d.InExpr {
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
	for name, cases := range optest.Cases {
		t.Run(name, func(t *testing.T) {
			for _, c := range cases {
				compareCase(t, name, c, one, four)
			}
		})
	}
}

func compareCase(t *testing.T, name string, c optest.Case, one, four *kernels.Pool) {
	src := c.Source(name)
	m, err := ir.Parse(name, src)
	if err != nil {
		t.Fatalf("%v\n%s", err, src)
	}
	words := c.Words()
	opts := Options{Seed: rng.New(3, "test"), Pool: one, CheckFinite: false}
	arena := mustFunction(t, m, "f", opts)
	threaded := opts
	threaded.Pool = four
	parallel := mustFunction(t, m, "f", threaded)
	over := inPlace(t, name, m, opts)
	opts.NewExecutor = TapeExecutor
	tape := mustFunction(t, m, "f", opts)
	for k, sz := range optest.CaseSizes {
		drawn := optest.Arguments(t, m.Func("f"), words, sz, rng.New(uint64(k), name+src))
		if !c.Fits(drawn, sz) {
			continue
		}
		args := buffers(t, drawn)
		step := uint64(k)
		want, err := Reference(m, "f", args, nil, opts.Seed, step)
		if err != nil {
			t.Fatalf("%v at %v\n%s", err, sz, src)
		}
		for _, f := range append([]*Function{arena, parallel, tape}, over...) {
			bindAll(t, f, args)
			if err := f.Run(step); err != nil {
				t.Fatalf("%v at %v\n%s", err, sz, src)
			}
		}
		for _, r := range arena.Outputs() {
			got := arena.Output(r)
			if err := closeTo(got, want[r], tolerance(name)); err != nil {
				t.Errorf("%s at %v: %v\n%s", r, sz, err, src)
			}
			if err := sameBits(got, parallel.Output(r)); err != nil {
				t.Errorf("%s at %v: 1 and 4 threads differ: %v\n%s", r, sz, err, src)
			}
			if err := sameBits(got, tape.Output(r)); err != nil {
				t.Errorf("%s at %v: arena and tape differ: %v\n%s", r, sz, err, src)
			}
			for _, f := range over {
				if err := sameBits(got, f.Output(r)); err != nil {
					t.Errorf("%s at %v: over an operand the result differs: %v\n%s", r, sz, err, src)
				}
			}
		}
	}
}

// inPlace returns functions that compute what the module does, each with the result of
// the operation written over another of the operands that it says may be.
func inPlace(t *testing.T, name string, m *ir.Module, opts Options) []*Function {
	var fs []*Function
	for i := 0; ; i++ {
		m := m.Clone()
		f := m.Func("f")
		at := slices.IndexFunc(f.Body, func(op *ir.Op) bool { return op.Name() == name })
		if op := f.Body[at]; i >= len(op.Operands) {
			return fs
		}
		op := f.Body[at]
		v := op.Operands[i]
		if _, view := op.View(); view || v == nil || !op.InPlace(i) || v.Type.Layout != ir.Dense || !v.Type.Equal(op.Result().Type) {
			continue
		}
		b := ir.NewBuilder(m, f).At(at)
		op.Operands[i] = b.One("neg", nil, b.One("neg", nil, v)) // a value that nothing else reads
		f.Attrs = ir.Attrs{passes.Memory: passes.Shared}
		fn := mustFunction(t, m, "f", opts)
		var place [2]int
		for _, a := range fn.exec.(*arenaExecutor).mem.values {
			switch a.slot.value {
			case op.Operands[i]:
				place[0] = a.allocation
			case op.Result():
				place[1] = a.allocation
			}
		}
		if place[0] != place[1] {
			t.Errorf("%s: the result is not written over operand %d", name, i)
		}
		fs = append(fs, fn)
	}
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

// sizes are those of symbolic dimensions.
type sizes = optest.Sizes

// arguments draws values for a function's arguments; words says what values they
// take.
func arguments(t testing.TB, f *ir.Func, words map[string]string, sz sizes, s rng.Stream) map[string]*Buffer {
	t.Helper()
	return buffers(t, optest.Arguments(t, f, words, sz, s))
}

func buffers(t testing.TB, values map[string]*optest.Value) map[string]*Buffer {
	t.Helper()
	all := map[string]*Buffer{}
	for name, v := range values {
		all[name] = bufferOf(t, v)
	}
	return all
}

func bufferOf(t testing.TB, v *optest.Value) *Buffer {
	t.Helper()
	switch {
	case v.Graph != nil && len(v.Dims) == 3:
		return Block(v.Graph)
	case v.Graph != nil:
		return Graph(v.Graph)
	case v.RowPtr != nil:
		b, err := Sparse(v.Dims[0], v.Dims[1], v.RowPtr, v.Col, v.F32)
		if err != nil {
			t.Fatal(err)
		}
		return b
	case v.I64 != nil:
		return I64(v.I64, v.Dims...)
	}
	return F32(v.F32, v.Dims...)
}
