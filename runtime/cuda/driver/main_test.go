package driver_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/gsrc-dev/gsrc/internal/mockdriver"
	"github.com/gsrc-dev/gsrc/runtime/cuda/driver"
)

// ptx is a module for a GPU and for the mock driver, which reads of it what a launch
// takes: testdata/kernels.c has its kernels.
const ptx = `
// header .entry not_this_one(.param .u64 x)
.version 6.3
.target sm_70
.address_size 64
.visible .entry test_scale(
	.param .u64 test_scale_param_0, // y
	.param .u64 .ptr .global .align 4 test_scale_param_1,
	.param .f32 test_scale_param_2,
	.param .u32 test_scale_param_3
)
.maxntid 256, 1, 1
{
	.reg .pred %p<2>;
	.reg .f32 %f<4>;
	.reg .b32 %r<6>;
	.reg .b64 %rd<8>;
	.shared .align 16 .b8 tile[4000];
	.shared .align 4 .f32 total;
	ld.param.u64 %rd1, [test_scale_param_0];
	ld.param.u64 %rd2, [test_scale_param_1];
	ld.param.f32 %f1, [test_scale_param_2];
	ld.param.u32 %r1, [test_scale_param_3];
	mov.u32 %r2, %ctaid.x;
	mov.u32 %r3, %ntid.x;
	mov.u32 %r4, %tid.x;
	mad.lo.s32 %r5, %r2, %r3, %r4;
	setp.ge.s32 %p1, %r5, %r1;
	@%p1 bra done;
	cvta.to.global.u64 %rd3, %rd1;
	cvta.to.global.u64 %rd4, %rd2;
	mul.wide.s32 %rd5, %r5, 4;
	add.s64 %rd6, %rd4, %rd5;
	add.s64 %rd7, %rd3, %rd5;
	ld.global.f32 %f2, [%rd6];
	mul.f32 %f3, %f2, %f1;
	st.global.f32 [%rd7], %f3;
done:
	ret;
}
.visible .entry test_mix(.param .u64 a, .param .s8 b, .param .align 8 .b8 c[8], .param .u16 d, .param .f64 e, .param .f32 f)
{ ret; }
.visible .entry test_nothing() { ret; }
`

var build = sync.OnceValues(func() (string, error) {
	folder, err := os.MkdirTemp("", "gsrc-mock-")
	if err != nil {
		return "", err
	}
	emulator := filepath.Join(folder, "libtestkernels.so")
	if out, err := exec.Command("cc", "-O2", "-Wall", "-Wextra", "-Werror", "-fPIC", "-shared", "-o", emulator, "testdata/kernels.c").CombinedOutput(); err != nil {
		if errors.Is(err, exec.ErrNotFound) {
			return "", mockdriver.ErrNoCompiler
		}
		return "", fmt.Errorf("%w: %s", err, out)
	}
	return mockdriver.Build(emulator)
})

func TestMain(m *testing.M) {
	code := m.Run()
	if path, err := build(); err == nil {
		os.RemoveAll(filepath.Dir(path))
	}
	os.Exit(code)
}

// load returns the mock driver as new, and its path.
func load(t testing.TB) (*mockdriver.Library, string) {
	t.Helper()
	path, err := build()
	if errors.Is(err, mockdriver.ErrNoCompiler) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	l, err := mockdriver.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	l.Reset()
	t.Cleanup(l.Reset)
	return l, path
}

// rig is a device ready to work.
type rig struct {
	*mockdriver.Library
	ctx    *driver.Context
	stream *driver.Stream
	module *driver.Module
}

func set(t testing.TB, l *mockdriver.Library, name string, value int64) {
	t.Helper()
	if err := l.Set(name, value); err != nil {
		t.Fatal(err)
	}
}

// open takes the mock driver's device into use. At the end of the test nothing may be
// left, and nothing may have been done wrong that expect does not take.
func open(t testing.TB) *rig {
	t.Helper()
	l, path := load(t)
	d, err := driver.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{Library: l}
	if r.ctx, err = d.Devices()[0].Open(); err != nil {
		t.Fatal(err)
	}
	if r.stream, err = r.ctx.NewStream(); err != nil {
		t.Fatal(err)
	}
	if r.module, err = r.ctx.LoadModule(ptx); err != nil {
		t.Fatal(err)
	}
	return r
}

// close closes all that open made, and holds what is left against nothing.
func (r *rig) close(t testing.TB) {
	t.Helper()
	if err := errors.Join(r.module.Close(), r.stream.Close(), r.ctx.Close()); err != nil {
		t.Error(err)
	}
	if live := r.Live(); live != nil {
		t.Errorf("left: %v", live)
	}
	if c := r.Violations(); c != nil {
		t.Errorf("violations: %v", c)
	}
}

func (r *rig) function(t testing.TB, name string) *driver.Function {
	t.Helper()
	f, err := r.module.Function(name)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func (r *rig) alloc(t testing.TB, bytes int) uintptr {
	t.Helper()
	p, err := r.ctx.Alloc(bytes)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// scale queues y = a x.
func (r *rig) scale(f *driver.Function, y, x uintptr, a float32, n int) error {
	return r.stream.Launch(f, [3]uint32{uint32(n+255) / 256, 1, 1}, [3]uint32{256, 1, 1}, 0, uint64(y), uint64(x), uint64(math.Float32bits(a)), uint64(n))
}

func do(t testing.TB, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

func bytesOf(x []float32) []byte {
	b, err := binary.Append(nil, binary.LittleEndian, x)
	if err != nil {
		panic(err)
	}
	return b
}

func floatsOf(b []byte) []float32 {
	x := make([]float32, len(b)/4)
	if _, err := binary.Decode(b, binary.LittleEndian, x); err != nil {
		panic(err)
	}
	return x
}

// violated tells whether the mock driver saw something with these words.
func (r *rig) violated(words string) bool {
	return strings.Contains(strings.Join(r.Violations(), "\n"), words)
}
