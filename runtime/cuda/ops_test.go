//go:build darwin || linux

package cuda

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"slices"
	"testing"
	"unsafe"

	"github.com/gsrc-dev/gsrc/graph"
	"github.com/gsrc-dev/gsrc/internal/cudaemulator"
	"github.com/gsrc-dev/gsrc/internal/optest"
	"github.com/gsrc-dev/gsrc/ir"
	"github.com/gsrc-dev/gsrc/rng"
	"github.com/gsrc-dev/gsrc/runtime"
	"github.com/gsrc-dev/gsrc/runtime/cuda/ptx"
	"github.com/gsrc-dev/gsrc/runtime/kernels"
)

// emulatePTX, if set, has the emulator run the PTX in place of its sources.
const emulatePTX = "GSRC_TEST_PTX"

// TestPTX runs the tests of this package's kernels on what the compiler made of them: that
// shows what it moved or left out, such as a read across a barrier.
func TestPTX(t *testing.T) {
	newQueue(t) // which skips where there is no compiler
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self, "-test.v", "-test.run=^Test(Kernels|LargeShapes|ResultOverOperand|Functions|Adam|IndicesOutside|SkewedGraph|DrawsFollowTheStep|ScoreKernels|Scan|Sort|SampleBlock|Nearest.*)$")
	cmd.Env = append(os.Environ(), emulatePTX+"=1")
	out, err := cmd.CombinedOutput()
	if err != nil || !bytes.Contains(out, []byte("--- PASS: TestKernels ")) || !bytes.Contains(out, []byte("--- PASS: TestAdam ")) {
		t.Errorf("%v\n%s", err, out[max(0, len(out)-4000):])
	}
}

var emulated struct {
	*cudaemulator.Emulator
	err error
}

func TestMain(m *testing.M) { os.Exit(withEmulator(m)) }

func withEmulator(m *testing.M) int {
	folder, err := os.MkdirTemp("", "gsrc-emulator")
	if err == nil {
		defer os.RemoveAll(folder)
		var library string
		if os.Getenv(emulatePTX) == "" {
			library, err = cudaemulator.Build(folder)
		} else {
			library, err = cudaemulator.BuildPTX(folder, ptx.Text())
		}
		if err == nil {
			emulated.Emulator, err = cudaemulator.Open(library)
		}
	}
	emulated.err = err
	return m.Run()
}

// hostQueue is a queue whose device is the emulator: work is done at once, and
// device addresses are the host's.
type hostQueue struct {
	*cudaemulator.Emulator
	step     *[8]uint64
	used     map[string]bool // kernels that were launched
	launches int
	held     []any // what must not move or go
}

func newQueue(t testing.TB) *hostQueue {
	t.Helper()
	if errors.Is(emulated.err, cudaemulator.ErrNoCompiler) {
		t.Skip(emulated.err)
	}
	if emulated.err != nil {
		t.Fatal(emulated.err)
	}
	q := &hostQueue{Emulator: emulated.Emulator, step: new([8]uint64), used: map[string]bool{}}
	q.Register(q.Step(), 16)
	t.Cleanup(func() { q.Unregister(q.Step()) })
	return q
}

func (q *hostQueue) Launch(kernel string, grid, block [3]uint32, shared uint32, args ...uint64) error {
	q.used[kernel] = true
	q.launches++
	return q.Emulator.Launch(kernel, grid, block, shared, args...)
}

func (q *hostQueue) Copy(dst, src uintptr, bytes int) error {
	if dst < src+uintptr(bytes) && src < dst+uintptr(bytes) {
		return fmt.Errorf("a copy of %d bytes overlaps", bytes)
	}
	copy(hostBytes(dst, bytes), hostBytes(src, bytes))
	return nil
}

func (q *hostQueue) MatMul(m MatMul) error { return LaunchMatMul(q, m) }

func (q *hostQueue) Step() uintptr { return uintptr(unsafe.Pointer(q.step)) }

// Fault is a word behind the step, and 7.
func (q *hostQueue) Fault(*ir.Op) (uintptr, int) { return uintptr(unsafe.Pointer(&q.step[1])), 7 }

func hostBytes(at uintptr, n int) []byte {
	return unsafe.Slice((*byte)(*(*unsafe.Pointer)(unsafe.Pointer(&at))), n)
}

// place registers memory of the test's as the device's and returns its address.
func place[T any](t testing.TB, q *hostQueue, s []T) uintptr {
	if len(s) == 0 {
		return 0
	}
	q.held = append(q.held, s)
	at := uintptr(unsafe.Pointer(unsafe.SliceData(s)))
	q.Register(at, len(s)*int(unsafe.Sizeof(s[0])))
	t.Cleanup(func() { q.Unregister(at) })
	return at
}

// bind gives a buffer its residence.
func (q *hostQueue) bind(t testing.TB, b *runtime.Buffer) *runtime.Buffer {
	csr := func(c *kernels.CSR) *runtime.DeviceCSR {
		r := &runtime.DeviceCSR{Rows: c.Rows, Cols: c.Cols, NNZ: c.NNZ(), RowPtr: place(t, q, c.RowPtr), Col: place(t, q, c.Col), Perm: place(t, q, c.Perm)}
		row := make([]int32, 0, c.NNZ())
		for i := range c.Rows {
			for range c.RowPtr[i+1] - c.RowPtr[i] {
				row = append(row, int32(i))
			}
		}
		r.Row = place(t, q, row)
		return r
	}
	switch {
	case b.Graph != nil:
		b.Device.In, b.Device.Out = csr(b.Graph.In), csr(b.Graph.Out)
	case b.Sparse != nil:
		b.Device.In, b.Device.Out, b.Device.Elements = csr(b.Sparse.ByRow), csr(b.Sparse.ByCol), place(t, q, b.Sparse.Values)
	case b.DType == ir.I64:
		b.Device.Elements = place(t, q, b.I64)
	default:
		b.Device.Elements = place(t, q, b.F32)
	}
	return b
}

func bufferOf(t testing.TB, v *optest.Value) *runtime.Buffer {
	switch {
	case v.Graph != nil:
		return runtime.Graph(v.Graph)
	case v.RowPtr != nil:
		b, err := runtime.Sparse(v.Dims[0], v.Dims[1], v.RowPtr, v.Col, v.F32)
		if err != nil {
			t.Fatal(err)
		}
		return b
	case v.I64 != nil:
		return runtime.I64(v.I64, v.Dims...)
	}
	return runtime.F32(v.F32, v.Dims...)
}

// unwritten is what results hold before a kernel runs.
var unwritten = math.Float32frombits(0x7fc0dead)

// result makes memory for a result.
func result(t testing.TB, v *ir.Value, bind map[string]int, first *runtime.Buffer) *runtime.Buffer {
	shape, err := v.Type.Shape(bind)
	if err != nil {
		t.Fatal(err)
	}
	n := 1
	for _, d := range shape {
		n *= d
	}
	if v.Type.Layout == ir.CSR {
		s := *first.Sparse
		s.Values = slices.Repeat([]float32{unwritten}, len(s.Values))
		return &runtime.Buffer{DType: ir.F32, Dims: shape, Sparse: &s}
	}
	if v.Type.DType == ir.I64 {
		return runtime.I64(slices.Repeat([]int64{-77}, n), shape...)
	}
	return runtime.F32(slices.Repeat([]float32{unwritten}, n), shape...)
}

// run executes a function's operations one by one on the emulator.
func run(t testing.TB, q *hostQueue, f *ir.Func, args map[string]*runtime.Buffer, seed rng.Stream, stepAt uint64) (map[string]*runtime.Buffer, error) {
	t.Helper()
	q.step[0] = stepAt
	values := map[*ir.Value]*runtime.Buffer{}
	bind := map[string]int{}
	for _, a := range f.Args {
		b := q.bind(t, args[a.Name])
		values[a] = b
		for i, d := range a.Type.Dims {
			if _, fixed := d.Size(); !fixed {
				bind[string(d)] = b.Dims[i]
			}
		}
	}
	for _, op := range f.Body {
		k := &runtime.Call{Op: op, In: make([]*runtime.Buffer, len(op.Operands))}
		for i, v := range op.Operands {
			if v != nil {
				k.In[i] = values[v]
			}
		}
		if op.Draws() {
			k.Stream = seed.Sub(op.Str("stream"))
		}
		if op.Def.Sizes {
			var block graph.Block
			if err := block.Rebuild(k.In[0].Graph, k.In[1].I64); err != nil {
				t.Fatal(err)
			}
			made := []*runtime.Buffer{runtime.Block(&block.Structure), runtime.I64(block.Sources, len(block.Sources)), runtime.I64(block.Entries, len(block.Entries))}
			for i, r := range op.Results {
				values[r] = q.bind(t, made[i])
				for j, d := range r.Type.Dims {
					bind[string(d)] = made[i].Dims[j]
				}
			}
			continue
		}
		for _, r := range op.Results {
			var first *runtime.Buffer
			if len(k.In) > 0 {
				first = k.In[0]
			}
			b := q.bind(t, result(t, r, bind, first))
			values[r] = b
			k.Out = append(k.Out, b)
		}
		kernel, err := Lookup(op)
		if err != nil {
			return nil, err
		}
		if n := Workspace(k); n > 0 {
			k.PlaceScratch(place(t, q, slices.Repeat([]float64{math.NaN()}, (n+7)/8)))
		}
		if err := kernel(q, k); err != nil {
			return nil, fmt.Errorf("%s: %w", op, err)
		}
	}
	out := map[string]*runtime.Buffer{}
	for _, r := range f.Results {
		out[r.Name] = values[r.Value]
	}
	return out, nil
}

// TestTable demands a kernel for every operation that the CPU has one for.
func TestTable(t *testing.T) {
	for _, d := range ir.Ops() {
		if d.Level == ir.TensorLevel && !d.Resolved && (operations[d.Name] == nil) == (onlyOnCPU(&ir.Op{Def: d}) == "") {
			t.Errorf("%s has no CUDA kernel and no reason why, or both", d.Name)
		}
	}
	for name := range operations {
		if d := ir.Lookup(name); d == nil || d.Level != ir.TensorLevel {
			t.Errorf("there is a CUDA kernel for %s, which is no tensor operation", name)
		}
	}
}

// exact operations give the CPU's bits.
var exact = []string{"normal", "uniform", "edge_uniform", "dropout", "gather", "fill", "broadcast_to", "relu", "greater", "neg", "concat", "columns", "slice", "stack", "edge_gather", "to_dense"}

// TestKernels compares every kernel with the float64 reference, on empty,
// one-element and larger shapes, in several orders of threads and blocks.
func TestKernels(t *testing.T) {
	q := newQueue(t)
	for _, name := range slices.Sorted(func(yield func(string) bool) {
		for name := range optest.Cases {
			if !yield(name) {
				return
			}
		}
	}) {
		t.Run(name, func(t *testing.T) {
			for _, c := range optest.Cases[name] {
				compareCase(t, q, name, c)
			}
		})
	}
}

func compareCase(t *testing.T, q *hostQueue, name string, c optest.Case) {
	for k, sz := range optest.CaseSizes {
		compareAt(t, q, name, c, uint64(k), sz)
	}
}

func compareAt(t *testing.T, q *hostQueue, name string, c optest.Case, stepAt uint64, sz optest.Sizes) {
	t.Helper()
	src := c.Source(name)
	m, err := ir.Parse(name, src)
	if err != nil {
		t.Fatalf("%v\n%s", err, src)
	}
	if onCPU(t, m) {
		return
	}
	seed := rng.New(3, "test")
	args := map[string]*runtime.Buffer{}
	drawn := optest.Arguments(t, m.Func("f"), c.Words(), sz, rng.New(stepAt, name+src))
	if !c.Fits(drawn, sz) {
		return
	}
	for a, v := range drawn {
		args[a] = bufferOf(t, v)
	}
	want, err := runtime.Reference(m, "f", args, nil, seed, stepAt)
	if err != nil {
		t.Fatalf("%v at %v\n%s", err, sz, src)
	}
	var first map[string]*runtime.Buffer
	for order := range uint64(2) {
		q.Seed(1 + order)
		got, err := run(t, q, m.Func("f"), args, seed, stepAt)
		if err != nil {
			t.Fatalf("%v at %v\n%s", err, sz, src)
		}
		if first == nil {
			first = got
		}
		for r, b := range got {
			if err := closeTo(b, want[r], tolerance(name)); err != nil {
				t.Errorf("%s at %v: %v\n%s", r, sz, err, src)
			}
			if err := sameBits(b, first[r]); err != nil {
				t.Errorf("%s at %v: orders of threads differ: %v\n%s", r, sz, err, src)
			}
		}
	}
	if slices.Contains(exact, name) {
		checkExact(t, m, args, first, seed, stepAt)
	}
}

// checkExact compares results with the CPU's, bit for bit.
func checkExact(t *testing.T, m *ir.Module, args, got map[string]*runtime.Buffer, seed rng.Stream, stepAt uint64) {
	t.Helper()
	f, err := runtime.NewFunction(m, "f", runtime.Options{Seed: seed, Pool: kernels.NewPool(1)})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, name := range f.Inputs() {
		if err := f.Bind(name, args[name]); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.Run(stepAt); err != nil {
		t.Fatal(err)
	}
	for r, b := range got {
		if err := sameBits(b, f.Output(r)); err != nil {
			t.Errorf("%s: the CPU differs: %v\n%s", r, err, m)
		}
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

func values(b *runtime.Buffer) []float64 {
	var out []float64
	switch {
	case b.Sparse != nil:
		s := b.Sparse.ByRow
		out = make([]float64, s.Rows*s.Cols)
		for r := range s.Rows {
			for e := s.RowPtr[r]; e < s.RowPtr[r+1]; e++ {
				out[r*s.Cols+int(s.Col[e])] += float64(b.Sparse.Values[e])
			}
		}
	case b.DType == ir.I64:
		for _, v := range b.I64 {
			out = append(out, float64(v))
		}
	default:
		for _, v := range b.F32 {
			out = append(out, float64(v))
		}
	}
	return out
}

func closeTo(got *runtime.Buffer, want *ir.Tensor, tol float64) error {
	g := values(got)
	if len(g) != len(want.Data) {
		return fmt.Errorf("%d elements, want %d", len(g), len(want.Data))
	}
	scale := 1.0
	for _, w := range want.Data {
		if a := math.Abs(w); !math.IsInf(a, 0) {
			scale = max(scale, a)
		}
	}
	for i, w := range want.Data {
		if v := g[i]; v != w && !(math.Abs(v-w) <= tol*scale) && !(math.IsNaN(v) && math.IsNaN(w)) {
			return fmt.Errorf("element %d of %v is %v, want %v (largest %.3g)", i, got.Dims, v, w, scale)
		}
	}
	return nil
}

func sameBits(a, b *runtime.Buffer) error {
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
