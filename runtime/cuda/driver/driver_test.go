package driver_test

import (
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gsrc-dev/gsrc/runtime/cuda/driver"
)

func TestDevices(t *testing.T) {
	l, path := load(t)
	set(t, l, "devices", 2)
	set(t, l, "memory", 3<<30)
	set(t, l, "capability", 75)
	d, err := driver.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	if d.Version().String() != "12.4" || d.Path() != path || len(d.Devices()) != 2 {
		t.Errorf("version %s, path %s, %d devices", d.Version(), d.Path(), len(d.Devices()))
	}
	if v := d.Devices()[1]; v.Ordinal != 1 || v.Name != "gsrc mock driver" || v.Memory != 3<<30 || v.Capability() != "7.5" || v.Multiprocessors != 2 {
		t.Errorf("device %+v", v)
	}
	set(t, l, "capability", 61)
	d, err = driver.Open(path)
	do(t, err)
	if _, err := d.Devices()[0].Open(); !errors.Is(err, driver.ErrNoDevice) || !strings.Contains(err.Error(), "6.1") {
		t.Errorf("an old GPU: %v", err)
	}
	t.Setenv(driver.Variable, path)
	if d, err = driver.Open(""); err != nil || d.Path() != path {
		t.Errorf("by %s: %v", driver.Variable, err)
	}
	set(t, l, "devices", 0)
	if _, err := driver.Open(path); !errors.Is(err, driver.ErrNoDevice) || !strings.Contains(err.Error(), "CUDA_VISIBLE_DEVICES") {
		t.Errorf("without devices: %v", err)
	}
	set(t, l, "devices", 1)
	set(t, l, "version", 11080)
	if _, err := driver.Open(path); !errors.Is(err, driver.ErrNoDriver) || !strings.Contains(err.Error(), "11.8") {
		t.Errorf("an old driver: %v", err)
	}
}

func TestOpenNamesTheMissingFunction(t *testing.T) {
	load(t)
	folder := t.TempDir()
	source, library := filepath.Join(folder, "old.c"), filepath.Join(folder, "libold.so")
	do(t, os.WriteFile(source, []byte("int cuInit(unsigned f) { return f; }\nint cuDriverGetVersion(int *v) { *v = 10020; return 0; }\n"), 0o644))
	if out, err := exec.Command("cc", "-fPIC", "-shared", "-o", library, source).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	_, err := driver.Open(library)
	if !errors.Is(err, driver.ErrNoDriver) || !strings.Contains(err.Error(), "no function cuGetErrorName") || !strings.Contains(err.Error(), "CUDA 12.0") || !strings.Contains(err.Error(), "for 10.2") {
		t.Error(err)
	}
}

func TestLaunchAndCopy(t *testing.T) {
	for seed := range int64(20) {
		r := open(t)
		set(t, r.Library, "seed", seed)
		n := 1000
		in := make([]float32, n)
		for i := range in {
			in[i] = float32(i)
		}
		x, y, z := r.alloc(t, 4*n), r.alloc(t, 4*n), r.alloc(t, 4*n)
		f := r.function(t, "test_scale")
		out := make([]byte, 4*n)
		do(t, r.stream.Upload(x, bytesOf(in)), r.scale(f, y, x, 3, n), r.stream.Copy(z, y, 4*n), r.stream.Fill(z, 0, 8),
			r.stream.Download(out, z), r.stream.Synchronize())
		got := floatsOf(out)
		for i, v := range got {
			if want := 3 * in[i]; v != want && i >= 2 || i < 2 && v != 0 {
				t.Fatalf("element %d is %v", i, v)
			}
		}
		free, total, err := r.ctx.FreeMemory()
		if err != nil || total-free != int64(12*n) {
			t.Errorf("%d of %d bytes free: %v", free, total, err)
		}
		do(t, r.ctx.Free(x), r.ctx.Free(y), r.ctx.Free(z), r.ctx.Free(0))
		r.close(t)
	}
}

// Arguments of every size arrive, whatever the slots hold beyond them.
func TestArgumentsOfEverySize(t *testing.T) {
	r := open(t)
	out := r.alloc(t, 8)
	f := r.function(t, "test_mix")
	b := make([]byte, 8)
	one := [3]uint32{1, 1, 1}
	negative := int64(-1) << 40
	do(t, r.stream.Launch(f, one, one, 0, uint64(out), 0xFFFF_FF00|uint64(uint8(0x80)), uint64(negative), 0x1234_0000|1000, math.Float64bits(0.5), uint64(math.Float32bits(0.25))),
		r.stream.Download(b, out), r.stream.Synchronize())
	var got float64
	for i, v := range b {
		got = math.Float64frombits(math.Float64bits(got)&^(0xFF<<(8*i)) | uint64(v)<<(8*i))
	}
	if want := -128 + float64(negative) + 1000 + 0.5 + 0.25; got != want {
		t.Errorf("%v, not %v", got, want)
	}
	if err := r.stream.Launch(f, one, one, 0, uint64(out)); err == nil || !strings.Contains(err.Error(), "takes 6 arguments, not 1") {
		t.Error(err)
	}
	if f := r.function(t, "test_scale"); f.Params != 4 {
		t.Errorf("test_scale has %d parameters", f.Params)
	}
	if _, err := r.module.Function("not_this_one"); !errors.Is(err, driver.ErrModule) {
		t.Error(err)
	}
	do(t, r.ctx.Free(out))
	r.close(t)
}

func TestModuleErrors(t *testing.T) {
	r := open(t)
	for _, x := range []struct{ from, to, want string }{
		{".version 6.3", "", "not recognized"},
		{".version 6.3", ".version 9.9", "Unsupported .version 9.9"},
		{"sm_70", "sm_120", "SM version"},
		{"{ ret; }", "{ ret;", "Parsing error"},
	} {
		_, err := r.ctx.LoadModule(strings.Replace(ptx, x.from, x.to, 1))
		if !errors.Is(err, driver.ErrModule) || !strings.Contains(err.Error(), x.want) {
			t.Errorf("with %q: %v", x.to, err)
		}
	}
	r.function(t, "test_scale")
	if r.Violations() != nil {
		t.Error(r.Violations())
	}
	// The emulator has no such kernel.
	r.function(t, "test_nothing")
	if !r.violated("make ptx") {
		t.Errorf("PTX without its source is not seen: %v", r.Violations())
	}
}

func TestEvents(t *testing.T) {
	for seed := range int64(20) {
		r := open(t)
		set(t, r.Library, "seed", seed)
		other, err := r.ctx.NewStream()
		do(t, err)
		e, err := r.ctx.NewEvent()
		do(t, err)
		late, err := r.ctx.NewEvent()
		do(t, err)
		n := 64
		x, y := r.alloc(t, 4*n), r.alloc(t, 4*n)
		f := r.function(t, "test_scale")
		out := make([]byte, 4*n)
		do(t, r.stream.Upload(x, bytesOf(slices.Repeat([]float32{2}, n))), r.scale(f, y, x, 2, n), r.stream.Record(e),
			e.Synchronize(), other.Copy(x, y, 4*n), other.Download(out, x), other.Record(late), late.Synchronize())
		if got := floatsOf(out); got[0] != 4 || got[n-1] != 4 {
			t.Fatalf("seed %d: %v", seed, got)
		}
		if ms, err := late.Milliseconds(e); err != nil || ms < 0 || ms > 60_000 {
			t.Errorf("%v ms: %v", ms, err)
		}
		do(t, e.Close(), late.Close(), other.Close(), r.ctx.Free(x), r.ctx.Free(y))
		r.close(t)
	}
}

// Without the event the other stream may come first, and for some seed it does.
func TestMissingEventShows(t *testing.T) {
	wrong := 0
	for seed := range int64(20) {
		r := open(t)
		set(t, r.Library, "seed", seed)
		other, err := r.ctx.NewStream()
		do(t, err)
		x, y := r.alloc(t, 4), r.alloc(t, 4)
		out := make([]byte, 4)
		do(t, r.stream.Upload(x, bytesOf([]float32{1})), r.scale(r.function(t, "test_scale"), y, x, 2, 1), other.Download(out, y), other.Synchronize())
		if floatsOf(out)[0] != 2 {
			wrong++
		}
		do(t, other.Close(), r.ctx.Free(x), r.ctx.Free(y))
		r.close(t)
	}
	if wrong == 0 {
		t.Error("the race never shows")
	}
}

func TestHostMemoryIsAsynchronous(t *testing.T) {
	early, late := 0, 0
	for seed := range int64(40) {
		r := open(t)
		set(t, r.Library, "seed", seed)
		h, err := r.ctx.AllocHost(4)
		do(t, err)
		x := r.alloc(t, 4)
		copy(h.Bytes(), bytesOf([]float32{5}))
		do(t, r.stream.Upload(x, h.Bytes()))
		copy(h.Bytes(), bytesOf([]float32{6})) // too early
		out := make([]byte, 4)
		do(t, r.stream.Download(out, x), r.stream.Synchronize())
		if floatsOf(out)[0] == 5 {
			early++
		} else {
			late++
		}
		do(t, h.Close(), h.Close(), r.ctx.Free(x))
		r.close(t)
	}
	if late == 0 || early == 0 {
		t.Errorf("the copy is done at once %d times, later %d times", early, late)
	}
}

func TestLaunchAllocatesNothing(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector has pools drop what they hold")
	}
	r := open(t)
	f := r.function(t, "test_scale")
	x, b := r.alloc(t, 4), make([]byte, 4)
	if n := testing.AllocsPerRun(100, func() {
		if r.scale(f, x, x, 1, 1) != nil || r.stream.Fill(x, 0, 4) != nil || r.stream.Upload(x, b) != nil || r.stream.Download(b, x) != nil || r.stream.Synchronize() != nil {
			t.Fatal("failed")
		}
	}); n != 0 {
		t.Errorf("%v allocations a launch", n)
	}
	do(t, r.ctx.Free(x))
	r.close(t)
}

func TestMisuseIsSeen(t *testing.T) {
	one := [3]uint32{1, 1, 1}
	for _, x := range []struct {
		name, want string
		fatal      bool
		do         func(r *rig, f *driver.Function, x uintptr) error
	}{
		{"double free", "freed twice", false, func(r *rig, _ *driver.Function, x uintptr) error {
			return errors.Join(r.ctx.Free(x), r.ctx.Free(x))
		}},
		{"foreign free", "was not allocated", false, func(r *rig, _ *driver.Function, x uintptr) error { return r.ctx.Free(x + 4) }},
		{"too long a copy", "not within one allocation", false, func(r *rig, _ *driver.Function, x uintptr) error { return r.stream.Fill(x, 0, 17) }},
		{"overlap", "overlap", false, func(r *rig, _ *driver.Function, x uintptr) error { return r.stream.Copy(x, x+4, 8) }},
		{"freed memory", "outside of all memory", true, func(r *rig, f *driver.Function, x uintptr) error {
			return errors.Join(r.ctx.Free(x), r.scale(f, x, x, 1, 1), r.stream.Synchronize())
		}},
		{"too many threads", "does not allow blocks of 512", false, func(r *rig, f *driver.Function, x uintptr) error {
			return r.stream.Launch(f, one, [3]uint32{512, 1, 1}, 0, uint64(x), uint64(x), 0, 1)
		}},
		{"too much shared memory", "49156 bytes of shared memory", false, func(r *rig, f *driver.Function, x uintptr) error {
			return r.stream.Launch(f, one, one, 48<<10-4000, uint64(x), uint64(x), 0, 1)
		}},
		{"an empty grid", "limits", false, func(r *rig, f *driver.Function, x uintptr) error {
			return r.stream.Launch(f, [3]uint32{0, 1, 1}, one, 0, uint64(x), uint64(x), 0, 1)
		}},
	} {
		t.Run(x.name, func(t *testing.T) {
			r := open(t)
			f, p := r.function(t, "test_scale"), r.alloc(t, 16)
			err := x.do(r, f, p)
			var e *driver.Error
			if !errors.As(err, &e) || e.Fatal() != x.fatal {
				t.Errorf("error %v", err)
			}
			if !r.violated(x.want) {
				t.Errorf("violations %v", r.Violations())
			}
		})
	}
}

func TestClosed(t *testing.T) {
	r := open(t)
	f, x := r.function(t, "test_scale"), r.alloc(t, 4)
	do(t, r.module.Close())
	if err := r.scale(f, x, x, 1, 1); !errors.Is(err, driver.ErrClosed) {
		t.Errorf("a kernel of a closed module: %v", err)
	}
	do(t, r.stream.Close())
	for _, err := range []error{r.scale(f, x, x, 1, 1), r.stream.Synchronize(), r.stream.Fill(x, 0, 4)} {
		if !errors.Is(err, driver.ErrClosed) {
			t.Errorf("a closed stream: %v", err)
		}
	}
	do(t, r.ctx.Free(x))
	r.close(t)
	for _, err := range []error{r.ctx.Free(x), r.ctx.Synchronize()} {
		if !errors.Is(err, driver.ErrClosed) {
			t.Errorf("a closed context: %v", err)
		}
	}
}

func TestLeaksAreListed(t *testing.T) {
	r := open(t)
	r.alloc(t, 12)
	if live := strings.Join(r.Live(), "\n"); !strings.Contains(live, "device block 1 of 12 bytes") || !strings.Contains(live, "stream") {
		t.Errorf("live: %s", live)
	}
	do(t, r.ctx.Close())
	if !r.violated("3 things are left") {
		t.Errorf("violations %v", r.Violations())
	}
	if err := r.stream.Synchronize(); !errors.Is(err, driver.ErrClosed) {
		t.Errorf("after the context: %v", err)
	}
}

func TestFaults(t *testing.T) {
	r := open(t)
	set(t, r.Library, "fail_alloc", 2)
	p := r.alloc(t, 1<<20)
	_, err := r.ctx.Alloc(3 << 20)
	if !errors.Is(err, driver.ErrOutOfMemory) || !strings.Contains(err.Error(), "3.0 MiB asked for, 8.0 GiB of 8.0 GiB free") {
		t.Error(err)
	}
	set(t, r.Library, "memory", 2<<20)
	if _, err = r.ctx.Alloc(1<<20 + 1); !errors.Is(err, driver.ErrOutOfMemory) || !strings.Contains(err.Error(), "1.0 MiB of 2.0 MiB free") {
		t.Error(err)
	}
	do(t, r.ctx.Free(r.alloc(t, 1<<20)))

	// A kernel fails when it runs, and the next calls say so.
	f := r.function(t, "test_scale")
	set(t, r.Library, "fail_launch", 2)
	do(t, r.scale(f, p, p, 1, 1), r.stream.Synchronize())
	err = errors.Join(r.scale(f, p, p, 1, 1), r.stream.Synchronize())
	var e *driver.Error
	if !errors.Is(err, driver.ErrLaunch) || !errors.As(err, &e) || !e.Fatal() {
		t.Error(err)
	}
	if _, err := r.ctx.Alloc(4); !errors.Is(err, driver.ErrLaunch) {
		t.Errorf("after a failed launch: %v", err)
	}
	if r.Violations() != nil {
		t.Error(r.Violations())
	}
}

// What waits for a failed device does not wait for ever.
func TestFailureEndsWaiting(t *testing.T) {
	for seed := range int64(10) {
		r := open(t)
		set(t, r.Library, "seed", seed)
		set(t, r.Library, "fail_launch", 1)
		other, err := r.ctx.NewStream()
		do(t, err)
		e, err := r.ctx.NewEvent()
		do(t, err)
		x := r.alloc(t, 4)
		// Each of these may be the one that says so.
		err = r.scale(r.function(t, "test_scale"), x, x, 1, 1)
		for _, call := range []func() error{
			func() error { return r.stream.Record(e) }, e.Synchronize, other.Synchronize, r.ctx.Synchronize,
		} {
			err = errors.Join(err, call())
		}
		if !errors.Is(err, driver.ErrLaunch) {
			t.Error(err)
		}
		if err := r.ctx.Close(); !errors.Is(err, driver.ErrLaunch) {
			t.Error(err)
		}
		if live := r.Live(); live != nil {
			t.Errorf("left: %v", live)
		}
	}
}

func TestVanishingDevice(t *testing.T) {
	r := open(t)
	p := r.alloc(t, 4)
	f := r.function(t, "test_scale")
	set(t, r.Library, "device_lost", 3)
	var err error
	for i := 0; err == nil; i++ {
		if i == 10 {
			t.Fatal("still there")
		}
		err = errors.Join(r.scale(f, p, p, 1, 1), r.stream.Synchronize())
	}
	if !errors.Is(err, driver.ErrDeviceLost) || !strings.Contains(err.Error(), "--resume") {
		t.Error(err)
	}
	for _, err := range []error{r.ctx.Free(p), r.stream.Close(), r.module.Close(), r.ctx.Close()} {
		if !errors.Is(err, driver.ErrDeviceLost) {
			t.Error(err)
		}
	}
	if r.Violations() != nil {
		t.Error(r.Violations())
	}
}

func ExampleOpen() {
	_, err := driver.Open("/nowhere/libcuda.so.1")
	fmt.Println(errors.Is(err, driver.ErrNoDriver))
	// Output: true
}
