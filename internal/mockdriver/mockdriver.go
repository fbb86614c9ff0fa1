// Package mockdriver is a mock driver for NVIDIA's driver, for tests on machines without
// a GPU: a shared library in C with the part of the driver API that package driver
// uses, and one with the part of cuBLAS.
//
// Device memory is memory of the host, filled with what is not a number until it is
// written. Kernels run through the emulator, which checks bounds. Work is done as
// late as the driver may do it and in an order by a seed, so that a missing
// synchronization shows. The mock driver checks each argument's size against the PTX,
// handles, ranges and double frees, refuses what a captured stream refuses, and tells
// what is left when a context is released: see [Library.Violations]. Faults come on
// demand: see [Library.Set].
//
// A process of its own takes settings from the environment, GSRC_MOCKDRIVER_ and the name
// in capitals, and appends violations, and a line for each context taken and released,
// to the file that GSRC_MOCKDRIVER_REPORT names.
package mockdriver

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

//go:embed src blas mockdriver.go
var sources embed.FS

// Sources are the files that a built library depends on.
func Sources() fs.FS { return sources }

// The names are not those of NVIDIA's libraries: a process that loaded these would
// find them when it asks the system's loader for those.
const (
	// File is the driver's name.
	File     = "libgsrc-mockdriver-cuda.so"
	blasFile = "libgsrc-mockdriver-cublas.so"
)

// BLAS returns the path of the cuBLAS beside a mock driver.
func BLAS(driver string) string { return filepath.Join(filepath.Dir(driver), blasFile) }

// ErrNoCompiler is returned where there is no C compiler, or none that makes shared
// libraries as Linux has them.
var ErrNoCompiler = errors.New("the mock driver for NVIDIA's driver is built by cc on Linux, which is not here")

// Build compiles the mock driver into the folder of an emulator's shared library, against
// it, and returns its path; its cuBLAS is beside it, see [BLAS]. The folder
// may be moved.
func Build(emulator string) (string, error) {
	if runtime.GOOS != "linux" {
		return "", ErrNoCompiler
	}
	if _, err := exec.LookPath("cc"); err != nil {
		return "", ErrNoCompiler
	}
	folder := filepath.Dir(emulator)
	driver, blas := filepath.Join(folder, File), filepath.Join(folder, blasFile)
	if err := compile("src", driver, emulator); err != nil {
		return "", err
	}
	return driver, compile("blas", blas, driver)
}

// compile makes a shared library of a folder of sources, against one beside it.
func compile(from, to, library string) error {
	folder := filepath.Dir(to)
	sub, err := fs.Sub(sources, from)
	if err != nil {
		return err
	}
	copied := filepath.Join(folder, "mock-"+from)
	if err := os.CopyFS(copied, sub); err != nil {
		return err
	}
	files, err := filepath.Glob(filepath.Join(copied, "*.c"))
	if err != nil {
		return err
	}
	args := append([]string{"-std=gnu11", "-O2", "-Wall", "-fPIC", "-shared", "-fvisibility=hidden", "-pthread",
		"-Wl,-soname," + filepath.Base(to), "-Wl,-rpath,$ORIGIN", "-o", to}, files...)
	args = append(args, "-L"+folder, "-l:"+filepath.Base(library))
	if out, err := exec.Command("cc", args...).CombinedOutput(); err != nil {
		return fmt.Errorf("cc cannot build the mock driver's %s: %w\n%s", filepath.Base(to), err, out)
	}
	return nil
}
