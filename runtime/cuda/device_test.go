//go:build darwin || linux

package cuda

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/gsrc-dev/gsrc/internal/cudatest"
	"github.com/gsrc-dev/gsrc/internal/optest"
	"github.com/gsrc-dev/gsrc/ir"
	"github.com/gsrc-dev/gsrc/rng"
	"github.com/gsrc-dev/gsrc/runtime"
	"github.com/gsrc-dev/gsrc/runtime/cuda/driver"
	"github.com/gsrc-dev/gsrc/runtime/kernels"
)

// openDevice opens the mock driver's GPU, or the machine's own.
func openDevice(t *testing.T) *Device {
	t.Helper()
	d, err := Open(Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d
}

// TestDeviceOperations runs every operation as a program on a device, three times: queued,
// recorded and replayed. Results are near the reference's, and the same each time. On
// the mock driver it takes one case and one size of each, on a GPU all of them.
func TestDeviceOperations(t *testing.T) {
	mock := cudatest.Either(t)
	d := openDevice(t)
	pool := kernels.NewPool(1)
	defer pool.Close()
	for name, cases := range optest.Cases {
		sizes := optest.CaseSizes
		if mock != nil {
			cases, sizes = cases[:1], sizes[len(sizes)-1:]
		}
		for _, c := range cases {
			for k, sz := range sizes {
				deviceCase(t, d, pool, name, c, uint64(k), sz)
			}
		}
	}
	if now, _ := d.Held(); now != 0 {
		if err := d.ReleaseAll(); err != nil { // what was bound
			t.Error(err)
		}
	}
}

func deviceCase(t *testing.T, d *Device, pool *kernels.Pool, name string, c optest.Case, step uint64, sz optest.Sizes) {
	t.Helper()
	src := c.Source(name)
	m, err := ir.Parse(name, src)
	if err != nil {
		t.Fatalf("%v\n%s", err, src)
	}
	if onCPU(t, m) {
		return
	}
	drawn := optest.Arguments(t, m.Func("f"), c.Words(), sz, rng.New(step, name+src))
	if !c.Fits(drawn, sz) {
		return
	}
	args := map[string]*runtime.Buffer{}
	for a, v := range drawn {
		args[a] = bufferOf(t, v)
	}
	seed := rng.New(3, "test")
	want, err := runtime.Reference(m, "f", args, nil, seed, step)
	if err != nil {
		t.Fatal(err)
	}
	f, err := runtime.NewFunction(m, "f", runtime.Options{Device: d, Seed: seed, Pool: pool})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, in := range f.Inputs() {
		if err := f.Bind(in, args[in]); err != nil {
			t.Fatal(err)
		}
	}
	first := map[string][]float32{}
	for round := range 3 {
		if err := f.Run(step); err != nil {
			t.Fatalf("%v\n%s", err, src)
		}
		for _, r := range f.Outputs() {
			got, err := f.Read(r)
			if err != nil {
				t.Fatal(err)
			}
			if err := closeTo(got, want[r], tolerance(name)); err != nil {
				t.Errorf("%s at %v, run %d: %v\n%s", r, sz, round, err, src)
			}
			data := got.F32
			if got.Sparse != nil {
				data = got.Sparse.Values
			}
			if round == 0 {
				first[r] = slices.Clone(data)
				continue
			}
			if !slices.EqualFunc(data, first[r], func(a, b float32) bool { return a == b || a != a && b != b }) {
				t.Errorf("%s at %v: run %d gives other numbers than the first\n%s", r, sz, round, src)
			}
		}
	}
}

// What a step reports, the optimizer beside it: flags of what is not finite, scalars,
// and statistics that follow.
func TestDeviceReports(t *testing.T) {
	cudatest.Either(t)
	d := openDevice(t)
	own := func(x []float32, dims ...int) *runtime.Buffer {
		b := runtime.F32(x, dims...)
		if err := d.ToDevice(b); err != nil {
			t.Fatal(err)
		}
		return b
	}
	loss, term := own([]float32{1.5}), own([]float32{-2})
	good, empty, long := own(make([]float32, 3), 3), own(nil, 0), own(make([]float32, 5000), 5000)
	values := make([]float32, 2)
	for _, c := range []struct {
		at  int // of a NaN in long, −1 none
		bad int
	}{{-1, -1}, {0, 2}, {1023, 2}, {1024, 2}, {4999, 2}, {-1, -1}} {
		clear(long.F32)
		if c.at >= 0 {
			long.F32[c.at] = unwritten
		}
		if err := d.CopyToDevice(long); err != nil {
			t.Fatal(err)
		}
		bad, err := d.Finite([]*runtime.Buffer{loss, term}, values, []*runtime.Buffer{good, empty, long})
		if err != nil || bad != c.bad || values[0] != 1.5 || values[1] != -2 {
			t.Errorf("a NaN at %d: buffer %d is bad, values %v, %v", c.at, bad, values, err)
		}
	}
	dst := own([]float32{1, 2, 3}, 3)
	if err := errors.Join(d.EMAUpdate(dst, good, 0.25), d.CopyToHost(dst)); err != nil || !slices.Equal(dst.F32, []float32{0.75, 1.5, 2.25}) {
		t.Errorf("statistics follow to %v, %v", dst.F32, err)
	}
}

// Without room the error says what was asked for, and the device goes on working.
func TestDeviceOutOfMemory(t *testing.T) {
	cudatest.Either(t)
	d := openDevice(t)
	var b runtime.Buffer
	b.DType = ir.F32
	err := d.Reserve(&b, 1<<43)
	var e *runtime.MemoryError
	if !errors.As(err, &e) || !errors.Is(err, driver.ErrOutOfMemory) || e.Asked != 1<<45 || !strings.Contains(err.Error(), d.Name()) {
		t.Fatalf("32 TiB: %v", err)
	}
	if err := d.Reserve(&b, 1000); err != nil {
		t.Errorf("4 kB afterwards: %v", err)
	}
	if err := d.Release(&b); err != nil {
		t.Error(err)
	}
}

// Every operation of a program is timed by the device's clock, once in a list, and the
// program runs on as if nothing had been.
func TestDeviceMeasuresOperations(t *testing.T) {
	cudatest.Either(t)
	d := openDevice(t)
	m, err := ir.Parse("timed", `module @timed

func @f(%a: f32[N,K], %b: f32[K,M]) -> (y: f32[N,M]) {
  %p = matmul %a, %b : f32[N,M]
  %e = exp %p : f32[N,M]
  %y = softmax %e : f32[N,M]
  return %y
}
`)
	if err != nil {
		t.Fatal(err)
	}
	f, err := runtime.NewFunction(m, "f", runtime.Options{Device: d})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.Main().Measure(d, 0); err == nil || !strings.Contains(err.Error(), "nothing has run") {
		t.Errorf("before a run: %v", err)
	}
	a, b := runtime.F32([]float32{1, 2, 3, 4, 5, 6}, 3, 2), runtime.F32([]float32{1, 0, 0, 1}, 2, 2)
	if err := errors.Join(f.Bind("a", a), f.Bind("b", b)); err != nil {
		t.Fatal(err)
	}
	result := func() []float32 {
		if err := f.Run(0); err != nil {
			t.Fatal(err)
		}
		y, err := f.Read("y")
		if err != nil {
			t.Fatal(err)
		}
		return slices.Clone(y.F32)
	}
	want := result()
	times, err := f.Main().Measure(d, 0)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, o := range times {
		names = append(names, o.Op.Name())
		if o.Time <= 0 || o.Runs != 1 || !slices.Equal(o.Out[0].Dims, []int{3, 2}) {
			t.Errorf("%s took %v in %d runs, result %v", o.Op.Name(), o.Time, o.Runs, o.Out)
		}
	}
	if slices.Sort(names); !slices.Equal(names, []string{"exp", "matmul", "softmax"}) {
		t.Errorf("timed are %v", names)
	}
	if f.Result("y") != nil {
		t.Error("there is a result, of values that were lost")
	}
	if got := result(); !slices.Equal(got, want) {
		t.Errorf("afterwards the result is %v, before %v", got, want)
	}
	if err := d.ReleaseAll(); err != nil {
		t.Error(err)
	}
}

// A GPU that is not there is told from a driver that is not.
func TestOpenWithout(t *testing.T) {
	cudatest.MockDriver(t)
	if _, err := Open(Options{Ordinal: 7}); !errors.Is(err, driver.ErrNoDevice) {
		t.Errorf("GPU 7: %v", err)
	}
	if _, err := Open(Options{Driver: "/nowhere/libcuda.so.1"}); !errors.Is(err, driver.ErrNoDriver) {
		t.Errorf("no driver: %v", err)
	}
}

// An index outside of its range is an error that names the operation, queued and
// replayed, when the host next reads; with good indices the device goes on.
func TestDeviceIndexErrors(t *testing.T) {
	cudatest.Either(t)
	d := openDevice(t)
	for _, c := range []struct {
		op, body string
		dims     []int
		bad      []int64
	}{
		{"gather", "%y = gather %x, %i : f32[B,4]", []int{3}, []int64{0, 5, 1}},
		{"gather", "%y = gather %x, %i : f32[B,4]", []int{3}, []int64{0, -1, 1}},
		{"gather", "%j = gather %i, %i : i64[B]\n  %y = gather %x, %i : f32[B,4]", []int{3}, []int64{0, 9, 1}},
		{"scatter_add", "%z = gather %x, %k : f32[B,4]\n  %y = scatter_add %z, %i : f32[N,4]", []int{3}, []int64{0, 5, 1}},
		{"pair_dot", "%y = pair_dot %x, %i : f32[P]", []int{2, 2}, []int64{0, 4, 1, 5}},
		{"cross_entropy", "%y = cross_entropy %x, %i : f32[]", []int{5}, []int64{0, 1, 2, 3, 4}},
		{"cross_entropy_grad", "%y = cross_entropy_grad %x, %i, %s : f32[N,4]", []int{5}, []int64{0, 1, 2, 3, -7}},
	} {
		index := map[string]string{"pair_dot": "i64[2,P]", "cross_entropy": "i64[N]", "cross_entropy_grad": "i64[N]"}[c.op]
		if index == "" {
			index = "i64[B]"
		}
		y := c.body[strings.LastIndex(c.body, ": ")+2:]
		m, err := ir.Parse("m", "module @m\n\nfunc @f(%x: f32[N,4], %i: "+index+", %k: i64[B], %s: f32[]) -> (y: "+y+") {\n  "+c.body+"\n  return %y\n}\n")
		if err != nil {
			t.Fatal(err)
		}
		f, err := runtime.NewFunction(m, "f", runtime.Options{Device: d})
		if err != nil {
			t.Fatal(err)
		}
		at := runtime.I64(make([]int64, len(c.bad)), c.dims...)
		for name, b := range map[string]*runtime.Buffer{"x": runtime.Zeros(5, 4), "k": runtime.I64(make([]int64, 3), 3), "s": runtime.Scalar(1)} {
			if err := f.Bind(name, b); err != nil {
				t.Fatal(err)
			}
		}
		for step, bad := range []bool{false, true, false, true, false} { // the second is recorded
			clear(at.I64)
			if bad {
				copy(at.I64, c.bad)
			}
			if err := errors.Join(f.Bind("i", at), f.Run(uint64(step))); err != nil {
				t.Fatal(err)
			}
			y, err := f.Read("y")
			var e *IndexError
			if bad != errors.As(err, &e) {
				t.Errorf("%s, step %d: with indices %v the error is %v", c.op, step, at.I64, err)
				continue
			}
			if bad && (e.Op.Name() != c.op || !strings.Contains(err.Error(), c.op) || !strings.Contains(err.Error(), "outside of its range")) {
				t.Errorf("%s, step %d: the error is %q", c.op, step, err)
			}
			if !bad && slices.ContainsFunc(y.F32, func(v float32) bool { return v != v }) {
				t.Errorf("%s, step %d: %v after good indices", c.op, step, y.F32)
			}
		}
		f.Close()
	}
	if err := d.ReleaseAll(); err != nil {
		t.Error(err)
	}
}

// Copies go through page-locked memory, which is used again only when the device has
// read it: what arrives is what the host had when it asked, however late the device
// reads, and however much is copied between two waits.
func TestCopiesAreStaged(t *testing.T) {
	s := cudatest.MockDriver(t)
	for seed := range int64(4) {
		if err := s.Set("seed", seed); err != nil {
			t.Fatal(err)
		}
		d := openDevice(t)
		const n = 100_000 // three of them are more than the staging memory has at first
		var bs []*runtime.Buffer
		src := runtime.Zeros(n)
		for k := range 8 {
			b := runtime.Zeros(n)
			if err := d.ToDevice(b); err != nil {
				t.Fatal(err)
			}
			for i := range src.F32 {
				src.F32[i] = float32(k*n + i)
			}
			b.F32 = src.F32 // the same memory of the host for all of them
			if err := d.CopyToDevice(b); err != nil {
				t.Fatal(err)
			}
			bs = append(bs, b)
		}
		for k, b := range bs {
			b.F32 = make([]float32, n)
			if err := d.CopyToHost(b); err != nil {
				t.Fatal(err)
			}
			for i, v := range b.F32 {
				if v != float32(k*n+i) {
					t.Fatalf("seed %d: element %d of buffer %d is %g", seed, i, k, v)
				}
			}
		}
		if _, err := d.Record(func() error { return d.SetStep(1) }); err == nil || !strings.Contains(err.Error(), "cannot be part of a recording") {
			t.Errorf("a copy from the host was recorded: %v", err)
		}
	}
	if n := s.Count("pageable"); n != 0 {
		t.Errorf("%d copies of memory that is not page-locked", n)
	}
	if s.Count("uploads") == 0 || s.Count("nothing") != -1 {
		t.Error("the mock driver does not count")
	}
}
