package driver_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gsrc-dev/gsrc/internal/mockdriver"
	"github.com/gsrc-dev/gsrc/runtime/cuda/driver"
)

func openBLAS(t testing.TB, r *rig) *driver.BLAS {
	t.Helper()
	path := mustBuild(t)
	d, err := driver.Open(path)
	do(t, err)
	l, err := d.OpenBLAS(mockdriver.BLAS(path))
	do(t, err)
	if l.Version != "12.4.5" {
		t.Errorf("version %s", l.Version)
	}
	b, err := r.stream.NewBLAS(l, false)
	do(t, err)
	return b
}

func mustBuild(t testing.TB) string {
	t.Helper()
	path, err := build()
	do(t, err)
	return path
}

// product is op(A)·op(B), row-major.
func product(a, b []float32, m, n, k int, ta, tb bool) []float32 {
	c := make([]float32, m*n)
	for i := range m {
		for j := range n {
			sum := 0.0
			for l := range k {
				ia, ib := i*k+l, l*n+j
				if ta {
					ia = l*m + i
				}
				if tb {
					ib = j*k + l
				}
				sum += float64(a[ia]) * float64(b[ib])
			}
			c[i*n+j] = float32(sum)
		}
	}
	return c
}

func TestMatMul(t *testing.T) {
	r := open(t)
	b := openBLAS(t, r)
	for _, d := range [][3]int{{1, 1, 1}, {3, 5, 7}, {8, 2, 1}, {1, 9, 4}, {4, 4, 0}, {0, 3, 2}, {3, 0, 2}} {
		for flags := range 8 {
			m, n, k, ta, tb, acc := d[0], d[1], d[2], flags&1 != 0, flags&2 != 0, flags&4 != 0
			x, y, start := make([]float32, m*k), make([]float32, k*n), make([]float32, m*n)
			for i := range x {
				x[i] = float32(i%5) - 1.5
			}
			for i := range y {
				y[i] = float32(i%7) - 2.25
			}
			for i := range start {
				start[i] = float32(i)
			}
			px, py, pc := r.alloc(t, 4*max(m*k, 1)), r.alloc(t, 4*max(k*n, 1)), r.alloc(t, 4*max(m*n, 1))
			out := make([]byte, 4*m*n)
			do(t, r.stream.Upload(px, bytesOf(x)), r.stream.Upload(py, bytesOf(y)), r.stream.Upload(pc, bytesOf(start)),
				b.MatMul(pc, px, py, m, n, k, ta, tb, acc), r.stream.Download(out, pc), r.stream.Synchronize())
			want := product(x, y, m, n, k, ta, tb)
			for i, v := range floatsOf(out) {
				if acc {
					want[i] += start[i]
				}
				if v != want[i] {
					t.Fatalf("m, n, k %v, ta %v, tb %v, accumulate %v: element %d is %v, not %v", d, ta, tb, acc, i, v, want[i])
				}
			}
			do(t, r.ctx.Free(px), r.ctx.Free(py), r.ctx.Free(pc))
		}
	}
	do(t, b.Close(), b.Close())
	if err := b.MatMul(1, 1, 1, 1, 1, 1, false, false, false); !errors.Is(err, driver.ErrClosed) {
		t.Error(err)
	}
	if err := b.SetTF32(true); !errors.Is(err, driver.ErrClosed) {
		t.Error(err)
	}
	r.close(t)
}

// A product is part of a captured graph, and allocates nothing.
func TestMatMulInGraph(t *testing.T) {
	r := open(t)
	b := openBLAS(t, r)
	x, y := r.alloc(t, 16), r.alloc(t, 16)
	do(t, r.stream.Upload(x, bytesOf([]float32{1, 1, 0, 1})), r.stream.Upload(y, bytesOf([]float32{1, 1, 0, 1})))
	z := r.alloc(t, 16)
	g, err := r.stream.Capture(func() error {
		return errors.Join(b.MatMul(z, x, y, 2, 2, 2, false, false, false), r.stream.Copy(y, z, 16))
	})
	do(t, err)
	e, err := g.Instantiate()
	do(t, err, g.Close(), e.Launch(r.stream), e.Launch(r.stream))
	out := make([]byte, 16)
	do(t, r.stream.Download(out, y))
	if got := fmt.Sprint(floatsOf(out)); got != "[1 3 0 1]" {
		t.Error(got)
	}
	if n := testing.AllocsPerRun(100, func() {
		if b.MatMul(z, x, y, 2, 2, 2, false, false, false) != nil || r.stream.Synchronize() != nil {
			t.Fatal("failed")
		}
	}); n != 0 && !raceEnabled {
		t.Errorf("%v allocations a product", n)
	}
	do(t, e.Close(), b.Close(), r.ctx.Free(x), r.ctx.Free(y), r.ctx.Free(z))
	r.close(t)
}

// In TF32 factors have 10 bits of mantissa, and all again in full float32.
func TestTF32(t *testing.T) {
	r := open(t)
	b := openBLAS(t, r)
	x, y := r.alloc(t, 4), r.alloc(t, 4)
	do(t, r.stream.Upload(x, bytesOf([]float32{1 + 1.0/4096})))
	for _, on := range []bool{false, true, false} {
		out := make([]byte, 4)
		do(t, b.SetTF32(on), b.MatMul(y, x, x, 1, 1, 1, false, false, false), r.stream.Download(out, y), r.stream.Synchronize())
		if got := floatsOf(out)[0]; (got == 1) != on {
			t.Errorf("TF32 %v: the product is %v", on, got)
		}
	}
	do(t, b.Close(), r.ctx.Free(x), r.ctx.Free(y))
	r.close(t)
}

func TestMatMulErrors(t *testing.T) {
	r := open(t)
	b := openBLAS(t, r)
	x := r.alloc(t, 16)
	if err := b.MatMul(x, x, x, 1<<31, 1, 1, false, false, false); err == nil || !strings.Contains(err.Error(), "sizes") {
		t.Error(err)
	}
	// Out of range on the device: the context is lost, and every later call says so.
	if err := errors.Join(b.MatMul(x, x, x, 3, 3, 3, false, false, false), r.stream.Synchronize()); !errors.Is(err, driver.ErrLaunch) {
		t.Error(err)
	}
	if err := b.MatMul(x, x, x, 2, 2, 2, false, false, false); !errors.Is(err, driver.ErrLaunch) {
		t.Error(err)
	}

	r = open(t)
	set(t, r.Library, "memory", 1<<20)
	d, err := driver.Open(mustBuild(t))
	do(t, err)
	l, err := d.OpenBLAS(mockdriver.BLAS(mustBuild(t)))
	do(t, err)
	if _, err := r.stream.NewBLAS(l, true); !errors.Is(err, driver.ErrOutOfMemory) || !strings.Contains(err.Error(), "workspace") {
		t.Error(err)
	}
	r.close(t)
}

func TestFindBLAS(t *testing.T) {
	_, path := load(t)
	d, err := driver.Open(path)
	do(t, err)
	library := mockdriver.BLAS(path)
	environment := t.TempDir()
	for _, key := range []string{"CUDA_HOME", "CUDA_PATH", "VIRTUAL_ENV", "CONDA_PREFIX", "PYTHONPATH", driver.BLASVariable} {
		t.Setenv(key, "")
	}
	t.Setenv("HOME", environment)
	if l, err := d.OpenBLAS(""); err == nil {
		t.Skipf("this machine has cuBLAS: %s", l.Path)
	} else if !errors.Is(err, driver.ErrNoBLAS) || !strings.Contains(err.Error(), "libcublas.so.12") || !strings.Contains(err.Error(), driver.BLASVariable) || strings.Contains(err.Error(), ".so.13") {
		t.Error(err) // the driver is for CUDA 12, which cuBLAS 13 does not run on
	}
	t.Setenv(driver.BLASVariable, library)
	if l, err := d.OpenBLAS(""); err != nil || l.Path != library {
		t.Error(err)
	}
	t.Setenv(driver.BLASVariable, environment)
	if _, err := d.OpenBLAS(""); !errors.Is(err, driver.ErrNoBLAS) || !strings.Contains(err.Error(), driver.BLASVariable) {
		t.Error(err)
	}
	t.Setenv(driver.BLASVariable, "")
	for key, folder := range map[string]string{
		"VIRTUAL_ENV":  "lib/python3.12/site-packages/nvidia/cublas/lib",
		"CONDA_PREFIX": "lib",
		"CUDA_HOME":    "lib64",
		"PYTHONPATH":   "nvidia/cublas/lib",
	} {
		home := t.TempDir()
		to := filepath.Join(home, folder, "libcublas.so.12")
		do(t, os.MkdirAll(filepath.Dir(to), 0o755), os.Symlink(library, to))
		t.Setenv(key, home)
		if l, err := d.OpenBLAS(""); err != nil || l.Path != to {
			t.Errorf("by %s: %v", key, err)
		}
		t.Setenv(key, "")
	}
	// One that is there and broken is named.
	home := t.TempDir()
	broken := filepath.Join(home, "lib64", "libcublas.so.12")
	do(t, os.MkdirAll(filepath.Dir(broken), 0o755), os.WriteFile(broken, nil, 0o644))
	t.Setenv("CUDA_HOME", home)
	if _, err := d.OpenBLAS(""); !errors.Is(err, driver.ErrNoBLAS) || !strings.Contains(err.Error(), broken) {
		t.Error(err)
	}
}
