// Package standin is a stand-in for NVIDIA's driver, for tests on machines without
// a GPU: a shared library in C with the part of the driver API that package driver
// uses, and one with the part of cuBLAS.
//
// Device memory is memory of the host, filled with what is not a number until it is
// written. Kernels run through the emulator, which checks bounds. Work is done as
// late as the driver may do it and in an order by a seed, so that a missing
// synchronization shows. The stand-in checks each argument's size against the PTX,
// handles, ranges and double frees, refuses what a captured stream refuses, and tells
// what is left when a context is released: see [Library.Complaints]. Faults come on
// demand: see [Library.Set].
//
// A process of its own takes settings from the environment, GSRC_STANDIN_ and the name
// in capitals, and appends complaints, and a line for each context taken and released,
// to the file that GSRC_STANDIN_REPORT names.
package standin

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
)

//go:embed src blas
var sources embed.FS

// ErrNoCompiler is returned where there is no C compiler, or none that makes shared
// libraries as Linux has them.
var ErrNoCompiler = errors.New("the stand-in for NVIDIA's driver is built by cc on Linux, which is not here")

// Build compiles the stand-in into a folder, against the shared library of an emulator,
// and returns the path of libcuda.so.1; libcublas.so.12 is beside it.
func Build(folder, emulator string) (string, error) {
	if runtime.GOOS != "linux" {
		return "", ErrNoCompiler
	}
	if _, err := exec.LookPath("cc"); err != nil {
		return "", ErrNoCompiler
	}
	emulator, err := filepath.Abs(emulator)
	if err != nil {
		return "", err
	}
	driver, blas := filepath.Join(folder, "libcuda.so.1"), filepath.Join(folder, "libcublas.so.12")
	if err := compile(folder, "src", driver, emulator); err != nil {
		return "", err
	}
	return driver, compile(folder, "blas", blas, driver)
}

// compile makes a shared library of a folder of sources.
func compile(folder, from, to, library string) error {
	if err := os.CopyFS(filepath.Join(folder, "standin"), sources); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	files, err := filepath.Glob(filepath.Join(folder, "standin", from, "*.c"))
	if err != nil {
		return err
	}
	args := append([]string{"-std=gnu11", "-O2", "-fPIC", "-shared", "-fvisibility=hidden", "-pthread",
		"-Wl,-soname," + filepath.Base(to), "-Wl,-rpath," + filepath.Dir(library), "-o", to}, files...)
	if out, err := exec.Command("cc", append(args, library)...).CombinedOutput(); err != nil {
		return fmt.Errorf("cc cannot build the stand-in's %s: %w\n%s", filepath.Base(to), err, out)
	}
	return nil
}
