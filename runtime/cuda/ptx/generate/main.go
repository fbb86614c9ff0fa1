// Command generate compiles the CUDA kernels of package src to PTX with clang, or
// assembles that PTX with ptxas and writes a table of what each kernel takes.
//
//	go run ./runtime/cuda/ptx/generate                 # kernels.ptx
//	go run ./runtime/cuda/ptx/generate -ptxas PATH     # docs/gpu-kernels.md
package main

import (
	"bytes"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/gsrc-dev/gsrc/runtime/cuda/ptx"
	"github.com/gsrc-dev/gsrc/runtime/cuda/src"
)

// clangVersion is the release whose text is checked in: others order registers
// differently.
const clangVersion = "14"

func main() {
	root := flag.String("root", ".", "the repository's root folder")
	clang := flag.String("clang", "clang-"+clangVersion, "the compiler")
	ptxas := flag.String("ptxas", "", "assemble with this ptxas and write the table, in place of compiling")
	flag.Parse()
	if err := run(*root, *clang, *ptxas); err != nil {
		fmt.Fprintln(os.Stderr, "generate:", err)
		os.Exit(1)
	}
}

func run(root, clang, ptxas string) error {
	if ptxas == "" {
		text, err := compile(clang)
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(root, "runtime", "cuda", "ptx", "kernels.ptx"), text, 0o644)
	}
	table, err := assemble(ptxas)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(root, "docs", "gpu-kernels.md"), table, 0o644)
}

// compile returns the PTX of all sources, one module.
func compile(clang string) ([]byte, error) {
	folder, err := os.MkdirTemp("", "gsrc-ptx")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(folder)
	if err := os.CopyFS(folder, src.Files); err != nil {
		return nil, err
	}
	names, err := fs.Glob(src.Files, "*.cu")
	if err != nil {
		return nil, err
	}
	slices.Sort(names)
	var all strings.Builder
	for _, name := range names {
		fmt.Fprintf(&all, "#include %q\n", name)
	}
	cmd := exec.Command(clang, "-x", "cuda", "--cuda-device-only", "-nocudainc", "-nocudalib", "--cuda-gpu-arch=sm_70",
		"-Xclang", "-target-feature", "-Xclang", "+ptx64", // PTX ISA 6.4
		"-O3", "-ffp-contract=off", "-S", "-o", "-", "-I", folder, "-")
	cmd.Stdin = strings.NewReader(all.String())
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	text, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%s: %w\n%s", clang, err, &stderr)
	}
	return text, nil
}

// targets are the architectures that the table has columns for.
var targets = []string{"sm_70", "sm_80", "sm_90", "sm_100"}

type usage struct {
	registers, shared string
	spilled           bool
}

var (
	compilingPattern = regexp.MustCompile(`Compiling entry function '(\w+)' for '\w+'`)
	spillPattern     = regexp.MustCompile(`(\d+) bytes spill stores, (\d+) bytes spill loads`)
	usedPattern      = regexp.MustCompile(`Used (\d+) registers(?:.*?(\d+) bytes smem)?`)
	releasePattern   = regexp.MustCompile(`release (\S+),`)
)

// assemble assembles the module for every target and returns the table.
func assemble(ptxas string) ([]byte, error) {
	folder, err := os.MkdirTemp("", "gsrc-ptxas")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(folder)
	source := filepath.Join(folder, "kernels.ptx")
	if err := os.WriteFile(source, []byte(ptx.Text()), 0o644); err != nil {
		return nil, err
	}
	version, err := exec.Command(ptxas, "--version").Output()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", ptxas, err)
	}
	release := releasePattern.FindSubmatch(version)
	if release == nil {
		return nil, fmt.Errorf("%s --version does not name a release", ptxas)
	}
	kernels := map[string]map[string]usage{}
	for _, target := range targets {
		out, err := exec.Command(ptxas, "-v", "-arch="+target, "-o", filepath.Join(folder, "out"), source).CombinedOutput()
		if err != nil {
			return nil, fmt.Errorf("%s -arch=%s: %w\n%s", ptxas, target, err, out)
		}
		name, spilled := "", false
		for line := range strings.Lines(string(out)) {
			if m := compilingPattern.FindStringSubmatch(line); m != nil {
				name = m[1]
			} else if m := spillPattern.FindStringSubmatch(line); m != nil {
				spilled = m[1] != "0" || m[2] != "0"
			} else if m := usedPattern.FindStringSubmatch(line); m != nil {
				if kernels[name] == nil {
					kernels[name] = map[string]usage{}
				}
				kernels[name][target] = usage{m[1], m[2], spilled}
			}
		}
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, `# What the CUDA kernels take

Registers a thread and bytes of shared memory a block, as ptxas %s assembles
`+"`runtime/cuda/ptx/kernels.ptx`"+`; a star marks registers that were spilled to memory.
Written by `+"`make ptxas`"+`.

| kernel | shared | %s |
|---|---:|%s
`, release[1], strings.Join(targets, " | "), strings.Repeat("---:|", len(targets)))
	var names []string
	for name := range kernels {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		shared := "0"
		var columns []string
		for _, target := range targets {
			u, ok := kernels[name][target]
			if !ok {
				return nil, fmt.Errorf("ptxas says nothing of %s for %s", name, target)
			}
			if u.shared != "" {
				shared = u.shared
			}
			if u.spilled {
				u.registers += "*"
			}
			columns = append(columns, u.registers)
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", name, shared, strings.Join(columns, " | "))
	}
	return b.Bytes(), nil
}
