// Package cudatest gives tests a GPU where there is none: the mock driver with
// the kernels in the emulator, built by cc when they are first asked for.
package cudatest

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gsrc-dev/gsrc/internal/cudaemulator"
	"github.com/gsrc-dev/gsrc/internal/mockdriver"
	"github.com/gsrc-dev/gsrc/runtime/cuda/driver"
	"github.com/gsrc-dev/gsrc/runtime/cuda/ptx"
)

// MockDriver makes the mock driver the machine's driver for the rest of a test, as new, and
// returns it, to set faults. The mock driver's cuBLAS is found too; set GSRC_CUBLAS to a
// path without one to test without. At the end of the test nothing may be left in the
// device, also after a fault, and nothing may have been done wrong. The test is skipped
// where there is no C compiler. It must not run in parallel with others that use the
// mock driver: a process has one.
func MockDriver(tb testing.TB) *mockdriver.Library {
	tb.Helper()
	path := Path(tb)
	tb.Setenv(driver.Variable, path)
	tb.Setenv(driver.BLASVariable, mockdriver.BLAS(path))
	l, err := mockdriver.Load(path)
	if err != nil {
		tb.Fatal(err)
	}
	l.Reset()
	tb.Cleanup(func() {
		if c := l.Violations(); c != nil {
			tb.Errorf("the mock driver recorded violations:\n%s", strings.Join(c, "\n"))
		}
		if c := l.Live(); c != nil {
			tb.Errorf("left on the mock driver device:\n%s", strings.Join(c, "\n"))
		}
		l.Reset()
	})
	return l
}

// Path returns the path of the mock driver. The test is skipped where there is no C
// compiler.
func Path(tb testing.TB) string {
	tb.Helper()
	path, err := Build()
	if errors.Is(err, mockdriver.ErrNoCompiler) || errors.Is(err, cudaemulator.ErrNoCompiler) {
		tb.Skip(err)
	}
	if err != nil {
		tb.Fatal(err)
	}
	return path
}

// Build is [Path] where there is no test. The error is mockdriver.ErrNoCompiler or
// cudaemulator.ErrNoCompiler where there is no compiler. A command that a test starts gets
// the path by GSRC_CUDA_DRIVER, its cuBLAS (mockdriver.BLAS) by GSRC_CUBLAS, and settings by GSRC_MOCKDRIVER_
// and the setting's name in capitals.
//
// It compiles both once, and keeps them for later test processes in the user's
// cache, under the checksum of what they are made of.
var Build = sync.OnceValues(func() (string, error) {
	cc, err := exec.Command("cc", "--version").Output()
	if err != nil {
		return "", mockdriver.ErrNoCompiler
	}
	h := sha256.New()
	h.Write(cc)
	h.Write([]byte(ptx.Text()))
	for _, from := range []fs.FS{cudaemulator.Sources(), mockdriver.Sources()} {
		if err := addFiles(h, from); err != nil {
			return "", err
		}
	}
	root, err := os.UserCacheDir()
	if err != nil {
		root = os.TempDir()
	}
	root = filepath.Join(root, "gsrc", "cudatest")
	folder := filepath.Join(root, fmt.Sprintf("%x", h.Sum(nil)[:12]))
	path := filepath.Join(folder, mockdriver.File)
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	removeOld(root)
	if err := os.MkdirAll(root, 0o755); err != nil {
		return "", err
	}
	// Made elsewhere and renamed, so that a process never sees half of it.
	fresh, err := os.MkdirTemp(root, "new-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(fresh)
	library, err := cudaemulator.BuildPTX(fresh, ptx.Text())
	if err != nil {
		return "", err
	}
	if _, err := mockdriver.Build(library); err != nil {
		return "", err
	}
	if err := os.Rename(fresh, folder); err != nil {
		if _, err := os.Stat(path); err != nil { // no other process was first
			return "", err
		}
	}
	return path, nil
})

func addFiles(h interface{ Write([]byte) (int, error) }, from fs.FS) error {
	return fs.WalkDir(from, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := fs.ReadFile(from, path)
		fmt.Fprintf(h, "%s %d\n", path, len(text))
		h.Write(text)
		return err
	})
}

// removeOld removes what has not been made in the last week.
func removeOld(root string) {
	entries, _ := os.ReadDir(root)
	for _, e := range entries {
		if info, err := e.Info(); err == nil && time.Since(info.ModTime()) > 7*24*time.Hour {
			os.RemoveAll(filepath.Join(root, e.Name()))
		}
	}
}
