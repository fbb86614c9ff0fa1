// Package cudaemulator runs the CUDA kernels of package src on the host, so that they
// can be tested where there is no GPU: see host/emulator.c for what it emulates and what
// it checks. It needs a C compiler, which [Build] calls.
package cudaemulator

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/gsrc-dev/gsrc/runtime/cuda/src"
)

//go:embed build.go ptx.go host
var own embed.FS

// Sources are the files that a built library depends on, beside the kernels of
// package src.
func Sources() fs.FS { return own }

// ErrNoCompiler is what Build returns where there is no C compiler.
var ErrNoCompiler = errors.New("there is no C compiler cc in the path")

// Build compiles the emulator with all kernels, and the given C files besides, into
// a shared library in a folder, and returns the library's path. Files that end in
// .cu are further kernels.
func Build(folder string, also ...string) (string, error) {
	return build(folder, "", also)
}

// BuildPTX is Build for kernels that a compiler has made PTX of.
func BuildPTX(folder, text string) (string, error) {
	return build(folder, text, nil)
}

func build(folder, text string, also []string) (string, error) {
	cc, err := exec.LookPath("cc")
	if err != nil {
		return "", ErrNoCompiler
	}
	host, err := fs.Sub(own, "host")
	if err != nil {
		return "", err
	}
	if err := errors.Join(os.CopyFS(folder, host), os.CopyFS(folder, src.Files)); err != nil {
		return "", err
	}
	sources, err := filepath.Glob(filepath.Join(folder, "*.cu"))
	if err != nil {
		return "", err
	}
	args := []string{"emulator.c", "kernels.c"}
	for _, path := range also {
		path, err := filepath.Abs(path)
		if err != nil {
			return "", err
		}
		if filepath.Ext(path) == ".cu" {
			sources = append(sources, path)
		} else {
			args = append(args, path)
		}
	}
	table, err := kernelTable(sources)
	if text != "" {
		table, err = fromPTX(text)
	}
	if err != nil {
		return "", err
	}
	if err := os.WriteFile(filepath.Join(folder, "kernels.c"), []byte(table), 0o644); err != nil {
		return "", err
	}
	library := filepath.Join(folder, "libgsrcemulator.so")
	cmd := exec.Command(cc, append(args, "-I.", "-std=gnu11", "-O2", "-ffp-contract=off", "-fno-strict-aliasing", "-fPIC", "-shared", "-Wall", "-Werror",
		"-Wno-unused-function", "-Wno-unused-value", "-Wno-unused-const-variable", "-Wno-unknown-pragmas", "-Wno-deprecated-declarations", "-o", library, "-lm")...)
	cmd.Dir = folder
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%s: %w\n%s", strings.Join(cmd.Args, " "), err, out)
	}
	return library, nil
}

var kernelPattern = regexp.MustCompile(`(?m)^KERNEL (\w+)\(([^)]*)\)`)

// kernelTable writes the C file that includes the sources and names the kernels
// in them with their parameters.
func kernelTable(sources []string) (string, error) {
	slices.Sort(sources)
	var includes, calls, rows strings.Builder
	for _, path := range sources {
		text, err := os.ReadFile(path)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(&includes, "#include %q\n", path)
		for _, m := range kernelPattern.FindAllStringSubmatch(string(text), -1) {
			name, params := m[1], strings.Split(m[2], ",")
			var values, sizes []string
			for i, p := range params {
				p = strings.TrimSpace(p)
				at := strings.LastIndexAny(p, " *")
				if at < 0 {
					return "", fmt.Errorf("%s: %s: cannot read the parameter %q", path, name, p)
				}
				typ := p[:at+1]
				values = append(values, fmt.Sprintf("*(%s *)p[%d]", typ, i))
				sizes = append(sizes, fmt.Sprintf("sizeof(%s)", typ))
			}
			fmt.Fprintf(&calls, "static void call_%s(void **p) { %s(%s); }\nstatic const unsigned char bytes_%s[] = {%s};\n", name, name, strings.Join(values, ", "), name, strings.Join(sizes, ", "))
			fmt.Fprintf(&rows, "\t{%q, call_%s, %d, bytes_%s},\n", name, name, len(params), name)
		}
	}
	return fmt.Sprintf("%s\n%s\nconst struct emu_kernel emu_kernels[] = {\n%s};\nconst int emu_kernel_count = sizeof emu_kernels / sizeof emu_kernels[0];\n", &includes, &calls, &rows), nil
}
