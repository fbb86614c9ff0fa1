package driver

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"unsafe"
)

// BLASVariable names the environment variable whose value, a path, is opened in place
// of the cuBLAS that is found.
const BLASVariable = "GSRC_CUBLAS"

// ErrNoBLAS is returned where no usable cuBLAS was found.
var ErrNoBLAS = errors.New("no cuBLAS")

// blasFunctions are those that the binding uses.
const blasFunctions = `
	cublasCreate_v2 cublasDestroy_v2 cublasSetStream_v2 cublasSetWorkspace_v2 cublasSetMathMode cublasSgemm_v2
	cublasGetProperty`

// BLASLibrary is an opened cuBLAS.
type BLASLibrary struct {
	// Path is where it was found, or a bare name that the system's loader found.
	Path string
	// Version is such as "12.4.5".
	Version string

	fn procs
}

// OpenBLAS opens cuBLAS at path. An empty path means what the environment variable
// GSRC_CUBLAS names, or else the newest that the driver can run of those that the
// system's loader finds (LD_LIBRARY_PATH), that CUDA's toolkit installed, or that came
// with a Python package, such as nvidia-cublas-cu12 or PyTorch. The error is
// [ErrNoBLAS] where there is none, and says what was tried.
func (d *Driver) OpenBLAS(path string) (*BLASLibrary, error) {
	from := ""
	if path == "" {
		if path = os.Getenv(BLASVariable); path != "" {
			from = " (from " + BLASVariable + ")"
		}
	}
	if path != "" {
		l, err := openBLAS(path)
		if err != nil {
			return nil, fmt.Errorf("%w: %s cannot be opened%s: %w", ErrNoBLAS, path, from, err)
		}
		return l, nil
	}
	names := blasNames(d.version)
	var broken []string
	for _, p := range blasCandidates(names) {
		l, err := openBLAS(p)
		if err == nil {
			return l, nil
		}
		if filepath.IsAbs(p) { // the file is there
			broken = append(broken, fmt.Sprintf("%s: %v", p, err))
		}
	}
	if broken != nil {
		return nil, fmt.Errorf("%w: %s", ErrNoBLAS, strings.Join(broken, "; "))
	}
	return nil, fmt.Errorf("%w: %s was found neither by the system's loader nor with CUDA's toolkit or a Python environment; pip install nvidia-cublas-cu12, or name the file by %s",
		ErrNoBLAS, strings.Join(names, " or "), BLASVariable)
}

// blasNames are the files to look for, best first. A release of cuBLAS runs on the
// drivers of its own and later major versions.
func blasNames(v Version) []string {
	format := "libcublas.so.%d"
	if runtime.GOOS == "windows" {
		format = "cublas64_%d.dll"
	}
	var names []string
	for _, major := range []int{13, 12} {
		if int(v) >= 1000*major {
			names = append(names, fmt.Sprintf(format, major))
		}
	}
	return names
}

// blasCandidates are what may be opened: bare names first, then files that exist.
func blasCandidates(names []string) []string {
	list := slices.Clone(names)
	for _, folder := range blasFolders() {
		for _, name := range names {
			found, _ := filepath.Glob(filepath.Join(folder, name))
			slices.Sort(found)
			slices.Reverse(found) // the newest Python or toolkit
			list = append(list, found...)
		}
	}
	return list
}

// blasFolders are patterns of folders that cuBLAS may be in.
func blasFolders() []string {
	var folders []string
	lib := "lib64"
	if runtime.GOOS == "windows" {
		lib = "bin"
	}
	for _, key := range []string{"CUDA_HOME", "CUDA_PATH"} {
		if home := os.Getenv(key); home != "" {
			folders = append(folders, filepath.Join(home, lib))
		}
	}
	packages := filepath.SplitList(os.Getenv("PYTHONPATH"))
	for _, key := range []string{"VIRTUAL_ENV", "CONDA_PREFIX"} {
		if home := os.Getenv(key); home != "" {
			folders = append(folders, filepath.Join(home, "lib"))
			packages = append(packages, filepath.Join(home, "lib", "python3*", "site-packages"), filepath.Join(home, "Lib", "site-packages"))
		}
	}
	packages = append(packages, filepath.Join(".venv", "lib", "python3*", "site-packages"))
	if home, err := os.UserHomeDir(); err == nil {
		packages = append(packages, filepath.Join(home, ".local", "lib", "python3*", "site-packages"))
	}
	if runtime.GOOS != "windows" {
		folders = append(folders, "/usr/local/cuda/lib64", "/usr/local/cuda-1[23]*/lib64", "/opt/cuda/lib64")
		packages = append(packages, "/usr/local/lib/python3*/site-packages", "/usr/local/lib/python3*/dist-packages", "/usr/lib/python3*/site-packages", "/usr/lib/python3/dist-packages")
	}
	for _, p := range packages {
		if p == "" {
			continue
		}
		if abs, err := filepath.Abs(p); err == nil {
			p = abs
		}
		for _, in := range []string{"cu13", "cublas"} {
			folders = append(folders, filepath.Join(p, "nvidia", in, "lib"), filepath.Join(p, "nvidia", in, "bin"))
		}
	}
	return folders
}

func openBLAS(path string) (*BLASLibrary, error) {
	// It needs cublasLt, which the loader knows once it was opened from beside it.
	if filepath.IsAbs(path) {
		beside := filepath.Join(filepath.Dir(path), strings.Replace(filepath.Base(path), "cublas", "cublasLt", 1))
		if _, err := os.Stat(beside); err == nil {
			if _, err := openLibrary(beside); err != nil {
				return nil, err
			}
		}
	}
	library, err := openLibrary(path)
	if err != nil {
		return nil, err
	}
	l := &BLASLibrary{Path: path, fn: procs{}}
	if name := l.fn.bind(library, blasFunctions); name != "" {
		return nil, fmt.Errorf("it has no function %s; gsrc needs cuBLAS 12 or later", name)
	}
	var number [3]int32
	for i := range number {
		if c := l.fn["cublasGetProperty"].call(uintptr(i), uintptr(unsafe.Pointer(&number[i]))); c != 0 {
			return nil, blasError(l.fn["cublasGetProperty"], c)
		}
	}
	l.Version = fmt.Sprintf("%d.%d.%d", number[0], number[1], number[2])
	return l, nil
}
