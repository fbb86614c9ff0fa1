package runtime

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gsrc-dev/gsrc/graph"
	"github.com/gsrc-dev/gsrc/ir"
	"github.com/gsrc-dev/gsrc/passes"
	"github.com/gsrc-dev/gsrc/rng"
	"github.com/gsrc-dev/gsrc/runtime/kernels"
)

func parse(t testing.TB, file string) *ir.Module {
	t.Helper()
	path := filepath.Join("testdata", file)
	src, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return parseText(t, string(src))
}

func parseText(t testing.TB, src string) *ir.Module {
	t.Helper()
	m, err := ir.Parse("test", src)
	if err != nil {
		t.Fatal(err)
	}
	return shareMemory(t, m)
}

// shareMemory lets the values of a module share memory, as compiled ones do.
func shareMemory(t testing.TB, m *ir.Module) *ir.Module {
	t.Helper()
	if err := passes.Lookup("schedule").Run(m, passes.DataInfo{}); err != nil {
		t.Fatal(err)
	}
	return m
}

// Results that there are not, and what is asked of a function that was closed, are errors.
func TestUnknownResultsAndClosed(t *testing.T) {
	for _, e := range executors() {
		f := mustFunction(t, parseText(t, "module @m\n\nfunc @f(%x: f32[N]) -> (y: f32[N]) {\n  %y = neg %x : f32[N]\n  return %y\n}\n"), "f", Options{NewExecutor: e.make})
		if b, err := f.Read("y"); b != nil || err != nil {
			t.Errorf("before a run: %v, %v", b, err)
		}
		if _, err := f.Read("z"); err == nil || !strings.Contains(err.Error(), `@f has no result "z" (it has y)`) {
			t.Errorf("an unknown result: %v", err)
		}
		if err := errors.Join(f.Bind("x", Zeros(3)), f.Run(0)); err != nil {
			t.Fatal(err)
		}
		f.Close()
		for what, err := range map[string]error{"Bind": f.Bind("x", Zeros(3)), "Run": f.Run(1)} {
			if err == nil || !strings.Contains(err.Error(), "@f is closed") {
				t.Errorf("%s after Close: %v", what, err)
			}
		}
	}
}

// TestHandWritten compares the programs in testdata on both executors and with
// the reference, over changing sizes and steps.
func TestHandWritten(t *testing.T) {
	files, err := filepath.Glob("testdata/*.gsr")
	if err != nil || len(files) == 0 {
		t.Fatalf("no programs: %v", err)
	}
	for _, file := range files {
		m := parse(t, filepath.Base(file))
		params := moduleParams(t, m)
		for _, fn := range m.Funcs {
			if strings.HasSuffix(fn.Name, ".setup") {
				continue
			}
			opts := Options{Seed: rng.New(2, "hand")}
			arena := mustFunction(t, m, fn.Name, opts)
			opts.NewExecutor = TapeExecutor
			tape := mustFunction(t, m, fn.Name, opts)
			for k, n := range []int{7, 30, 1, 0, 12} {
				args := inputArguments(t, m, fn, sizes{"N": n, "E": -1, "D": 4, "B": min(n, 3)}, rng.New(uint64(k), fn.Name))
				for _, step := range []uint64{0, 1, 1 << 40} {
					for _, f := range []*Function{arena, tape} {
						bindAll(t, f, args, params)
						if err := f.Run(step); err != nil {
							t.Fatal(err)
						}
					}
					want, err := Reference(m, fn.Name, args, params, opts.Seed, step)
					if err != nil {
						t.Fatal(err)
					}
					for _, r := range arena.Outputs() {
						if err := closeTo(arena.Output(r), want[r], 1e-4); err != nil {
							t.Errorf("%s @%s %s, N = %d: %v", file, fn.Name, r, n, err)
						}
						if err := sameBits(arena.Output(r), tape.Output(r)); err != nil {
							t.Errorf("%s @%s %s, N = %d: executors differ: %v", file, fn.Name, r, n, err)
						}
					}
				}
			}
		}
	}
}

// Parameters changed in place are seen by the next run.
func TestParametersInPlace(t *testing.T) {
	m := parseText(t, `module @m
param $w: f32[2]
func @f(%x: f32[2]) -> (y: f32[2], same: f32[2]) {
  %y = add %x, $w : f32[2]
  %s = stop_gradient $w : f32[2]
  return %y, %s
}`)
	for _, e := range executors() {
		f := mustFunction(t, m, "f", Options{NewExecutor: e.make})
		w := F32([]float32{1, 2}, 2)
		bindAll(t, f, map[string]*Buffer{"x": F32([]float32{10, 20}, 2), "w": w})
		for range 2 {
			if err := f.Run(0); err != nil {
				t.Fatal(err)
			}
			y, s := f.Output("y").F32, f.Output("same").F32
			if y[0] != 10+w.F32[0] || y[1] != 20+w.F32[1] || s[0] != w.F32[0] {
				t.Errorf("%v: %v and %v with w = %v", e, y, s, w.F32)
			}
			w.F32[0] = 5
		}
	}
}

// A set-up runs when one of its inputs is bound, and only then.
func TestSetupRunsWhenDue(t *testing.T) {
	m := parse(t, "hoisted.gsr")
	f := mustFunction(t, m, "f", Options{})
	x := F32([]float32{3, 4, 0, 5}, 2, 2)
	bind := func(name string, b *Buffer) {
		t.Helper()
		if err := f.Bind(name, b); err != nil {
			t.Fatal(err)
		}
	}
	run := func() float32 {
		t.Helper()
		if err := f.Run(0); err != nil {
			t.Fatal(err)
		}
		return f.Output("y").F32[0]
	}
	bind("x", x)
	bind("k", Scalar(2))
	bind("w", F32([]float32{1, 1, 1, 1, 1, 1, 1, 1}, 2, 4))
	if got := strings.Join(f.Inputs(), " "); got != "x k w" {
		t.Errorf("inputs are %q", got)
	}
	first := run()
	x.F32[0] = 300 // not bound again: the set-up must not run
	if got := run(); got != first {
		t.Errorf("the set-up ran without need: %v, then %v", first, got)
	}
	bind("k", Scalar(4))
	if got := run(); got != 2*first {
		t.Errorf("a dynamic argument doubled: %v, then %v", first, got)
	}
	bind("x", x)
	if got := run(); got == 2*first {
		t.Error("the set-up did not run after its input was bound")
	}
	if err := f.Bind("xn", x); err == nil || !strings.Contains(err.Error(), "computed by @f.setup") {
		t.Errorf("a hoisted argument could be bound: %v", err)
	}
}

func TestBindErrors(t *testing.T) {
	m := parse(t, "graph.gsr")
	x, err := NewExecutable(m, m.Func("conv"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer x.Close()
	g := &graph.Graph{N: 3, Edges: [][2]int32{{0, 1}, {1, 2}}}
	sparse, err := Sparse(3, 6, []int32{0, 0, 0, 0}, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		b    *Buffer
		want string
	}{
		{"nothing", Scalar(1), "it has x, g, t, w, b"},
		{"x", nil, "nothing to bind"},
		{"x", Graph(g.Structure()), "it is f32[N,6], got a graph"},
		{"x", sparse, "got a sparse matrix"},
		{"x", I64(make([]int64, 18), 3, 6), "got a dense tensor of i64"},
		{"g", Zeros(3, 4), "it is graph<N,E>"},
		{"x", Zeros(6), "got shape [6]"},
		{"x", &Buffer{DType: ir.F32, Dims: []int{2, 6}, F32: make([]float32, 11)}, "are 12 elements, got 11"},
	} {
		if err := x.Bind(c.name, c.b); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", c.name, err, c.want)
		}
	}
	bind := func(name string, b *Buffer) {
		t.Helper()
		if err := x.Bind(name, b); err != nil {
			t.Fatal(err)
		}
	}
	bind("x", Zeros(3, 6))
	if err := x.Run(0); err == nil || !strings.Contains(err.Error(), "@conv: %g is not bound") {
		t.Errorf("unbound: %v", err)
	}
	st := g.Structure()
	bind("g", Graph(st))
	bind("t", Scalar(0.5))
	bind("w", Zeros(6, 5))
	bind("b", Zeros(4))
	if err := x.Run(0); err == nil || !strings.Contains(err.Error(), "$b is f32[5] with 5 = 5, got shape [4]") {
		t.Errorf("wrong size: %v", err)
	}
	bind("b", Zeros(5))
	if err := x.Run(0); err != nil {
		t.Error(err)
	}
	if x.Output("out") == nil || x.Output("other") != nil {
		t.Error("outputs by name")
	}
	bind("x", Zeros(4, 6))
	if err := x.Run(0); err == nil || !strings.Contains(err.Error(), "%g is graph<N,E> with N = 4, got shape [3 2]") && !strings.Contains(err.Error(), "with N = 4") {
		t.Errorf("sizes that disagree: %v", err)
	}
	if x.Output("out") != nil {
		t.Error("a result after a failed run")
	}
	bind("x", Zeros(3, 6))
	st.Rebuild(&graph.Graph{N: 3, Edges: [][2]int32{{0, 1}}})
	if err := x.Run(0); err == nil || !strings.Contains(err.Error(), "bind a structure again") {
		t.Errorf("a structure rebuilt behind the buffer: %v", err)
	}
	bind("g", Graph(st))
	if err := x.Run(0); err != nil {
		t.Error(err)
	}
}

func TestNewExecutableErrors(t *testing.T) {
	for _, c := range []struct{ name, src, want string }{
		{"high level", `module @m
func @f(%x: f32[N,3], %g: graph<N,E>) -> (a: f32[E]) {
  %a, %s = gnn.sym_norm %g, _ : f32[E], f32[N]
  return %a
}`, "gnn.sym_norm is not a tensor operation: lower"},
		{"gradient", `module @m
func @f(%x: f32[3]) -> (g: f32[3]) {
  %y = reduce_sum %x {axis="all"} : f32[]
  %g = grad %y, %x : f32[3]
  return %g
}`, "grad is not a tensor operation"},
		{"double", `module @m
func @f(%x: f64[3]) -> (y: f64[3]) {
  %y = neg %x : f64[3]
  return %y
}`, "%x is f64[3]"},
		{"integer arithmetic", `module @m
func @f(%x: i64[3]) -> (y: i64[3]) {
  %y = scatter_add %x, %x : i64[3]
  return %y
}`, "scatter_add has no CPU kernel for results of type i64[3]"},
		{"name twice", `module @m
param $x: f32[3]
func @f(%x: f32[3]) -> (y: f32[3]) {
  %y = add %x, $x : f32[3]
  return %y
}`, "name of an argument and of a parameter"},
	} {
		m := parseText(t, c.src)
		if _, err := NewExecutable(m, m.Func("f"), Options{}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", c.name, err, c.want)
		}
	}
	m := parse(t, "hoisted.gsr")
	if _, err := NewFunction(m, "nothing", Options{}); err == nil || !strings.Contains(err.Error(), "no function @nothing") {
		t.Error(err)
	}
	m.RemoveFunc("f.setup")
	if _, err := NewFunction(m, "f", Options{}); err == nil || !strings.Contains(err.Error(), "@f.setup") {
		t.Error(err)
	}
}

// A failing operation is named with its text and shapes, on both executors.
func TestRunErrors(t *testing.T) {
	m := parseText(t, `module @m
func @f(%x: f32[N,2], %i: i64[B]) -> (y: f32[B,2]) {
  %r = exp %x : f32[N,2]
  %y = gather %r, %i : f32[B,2]
  return %y
}
func @g(%x: f32[N,2]) -> (y: f32[N,2]) {
  %l = log %x : f32[N,2]
  return %l
}`)
	for _, e := range executors() {
		f := mustFunction(t, m, "f", Options{NewExecutor: e.make})
		bindAll(t, f, map[string]*Buffer{"x": Zeros(3, 2), "i": I64([]int64{2, 3}, 2)})
		err := f.Run(0)
		var op *OpError
		if !errors.As(err, &op) || op.Op.Name() != "gather" {
			t.Fatalf("%v: %v", e, err)
		}
		for _, want := range []string{"@f (line 4)", "%y = gather %r, %i : f32[B,2]", "(f32[3,2], i64[2]) -> (f32[2,2])", "index 3 at position 1 is outside 0..2"} {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%v: %q lacks %q", e, err, want)
			}
		}
		bindAll(t, f, map[string]*Buffer{"i": I64([]int64{2, 0}, 2)})
		if err := f.Run(0); err != nil {
			t.Errorf("%v: after an error: %v", e, err)
		}
		g := mustFunction(t, m, "g", Options{NewExecutor: e.make, CheckFinite: true})
		bindAll(t, g, map[string]*Buffer{"x": F32([]float32{1, 1, 1, -1}, 2, 2)})
		if err := g.Run(0); err == nil || !strings.Contains(err.Error(), "result %l is NaN at element 3") {
			t.Errorf("%v: %v", e, err)
		}
	}
}

// A kernel that panics gives an error on both executors: the TapeMachine runs
// operations in a goroutine of its own, where a panic would end the process.
func TestPanicsAreErrors(t *testing.T) {
	m := parseText(t, `module @m
func @f(%x: f32[N]) -> (y: f32[N]) {
  %y = exp %x : f32[N]
  return %y
}`)
	for _, e := range executors() {
		f := mustFunction(t, m, "f", Options{NewExecutor: e.make, Device: faulty{CPU}})
		bindAll(t, f, map[string]*Buffer{"x": Zeros(3)})
		if err := f.Run(0); err == nil || !strings.Contains(err.Error(), "kernel failed: boom") {
			t.Errorf("%v: %v", e, err)
		}
	}
}

// faulty is a device whose kernels panic.
type faulty struct{ Device }

func (faulty) Kernel(*ir.Op) (Kernel, error) { return func(*Call) error { panic("boom") }, nil }

// The random numbers of a program depend on seed, stream and step alone.
func TestStreams(t *testing.T) {
	m := parseText(t, `module @m
func @f(%x: f32[N]) -> (a: f32[N], b: f32[N], c: f32[N]) {
  %a = uniform {stream="s"} : f32[N]
  %b = uniform {stream="s"} : f32[N]
  %c = uniform {stream="t"} : f32[N]
  return %a, %b, %c
}`)
	seed := rng.New(4, "here")
	f := mustFunction(t, m, "f", Options{Seed: seed})
	bindAll(t, f, map[string]*Buffer{"x": Zeros(5)})
	for _, step := range []uint64{0, 1, math.MaxUint64} {
		if err := f.Run(step); err != nil {
			t.Fatal(err)
		}
		a, b, c := f.Output("a").F32, f.Output("b").F32, f.Output("c").F32
		for i := range a {
			if want := seed.Sub("s").At(step).Uniform(uint64(i)); a[i] != want || b[i] != want {
				t.Errorf("step %d, element %d: %v and %v, want %v", step, i, a[i], b[i], want)
			}
			if want := seed.Sub("t").At(step).Uniform(uint64(i)); c[i] != want {
				t.Errorf("step %d, element %d of another stream: %v, want %v", step, i, c[i], want)
			}
		}
	}
}

func TestSparseErrors(t *testing.T) {
	if _, err := Sparse(2, 2, []int32{0, 1, 1}, []int32{5}, []float32{1}); err == nil || !strings.Contains(err.Error(), "column 5") {
		t.Error(err)
	}
	if _, err := Sparse(2, 2, []int32{0, 1, 1}, []int32{1}, nil); err == nil || !strings.Contains(err.Error(), "1 entries and 0 values") {
		t.Error(err)
	}
}

// A chain of many equal operations takes the memory of three values.
func TestChainSharesMemory(t *testing.T) {
	m := ir.NewModule("wide")
	b := m.NewFunc("f")
	x := b.Arg("x", ir.T(ir.F32, "N"))
	y := x
	for range 1500 {
		y = b.Add(y, b.One("exp", nil, x)) // equal but for their place
	}
	b.Return("y", y)
	pool := kernels.NewPool(1)
	defer pool.Close()
	e, err := NewExecutable(shareMemory(t, m), b.Func, Options{Pool: pool})
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Bind("x", Zeros(2)); err != nil {
		t.Fatal(err)
	}
	if err := e.Run(0); err != nil {
		t.Fatal(err)
	}
	if got := e.Output("y").F32[0]; got != 1500 {
		t.Errorf("got %v", got)
	}
	if p := e.Plan(); p.Bytes > 3*alignment {
		t.Errorf("%d bytes for a chain of values of 8: %+v", p.Bytes, p)
	}
}

func TestProfile(t *testing.T) {
	m := parse(t, "graph.gsr")
	x, err := NewExecutable(m, m.Func("conv"), Options{Profile: true})
	if err != nil {
		t.Fatal(err)
	}
	defer x.Close()
	for name, b := range arguments(t, m.Func("conv"), nil, sizes{"N": 40, "E": -1}, rng.New(1, "profile")) {
		if err := x.Bind(name, b); err != nil {
			t.Fatal(err)
		}
	}
	for name, b := range moduleParams(t, m) {
		if err := x.Bind(name, b); err != nil {
			t.Fatal(err)
		}
	}
	for step := range uint64(5) {
		if err := x.Run(step); err != nil {
			t.Fatal(err)
		}
	}
	ops := x.Profile()
	// 28 operations, of which 4 are views.
	if len(ops) != 24 {
		t.Errorf("%d operations run, want 24", len(ops))
	}
	for i, o := range ops {
		if once := o.Op.Name() == "fill" || o.Op.Name() == "edge_ones"; once && o.Runs != 1 || !once && o.Runs != 5 {
			t.Errorf("%s ran %d times", o.Op, o.Runs)
		}
		if i > 0 && o.Time > ops[i-1].Time {
			t.Error("not sorted by time")
		}
	}
}
