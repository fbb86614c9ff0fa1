package main

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/gsrc-dev/gsrc/runtime/cuda/ptx"
	"github.com/gsrc-dev/gsrc/runtime/cuda/src"
)

// TestTextIsOfTheSources compiles the sources again where the compiler is at hand.
func TestTextIsOfTheSources(t *testing.T) {
	clang, err := exec.LookPath("clang-" + clangVersion)
	if err != nil {
		t.Skipf("clang-%s is not here: the PTX is not compared with its sources", clangVersion)
	}
	text, err := compile(clang)
	if err != nil {
		t.Fatal(err)
	}
	if string(text) != ptx.Text() {
		t.Error("runtime/cuda/ptx/kernels.ptx is not what the sources compile to: run make ptx")
	}
}

// TestTextHasTheKernels needs no compiler: every kernel of the sources has an entry
// with as many parameters, and the text runs on all devices that gsrc supports.
func TestTextHasTheKernels(t *testing.T) {
	text := ptx.Text()
	for _, line := range []string{".version 6.4\n", ".target sm_70\n"} {
		if !strings.Contains(text, line) {
			t.Errorf("there is no line %q", line)
		}
	}
	names, err := fs.Glob(src.Files, "*.cu")
	if err != nil || len(names) == 0 {
		t.Fatal(err, names)
	}
	rows, err := os.ReadFile("../../../../docs/gpu-kernels.md")
	if err != nil {
		t.Fatal(err)
	}
	if bytes.ContainsRune(rows, '*') {
		t.Error("docs/gpu-kernels.md has a kernel that spills registers")
	}
	kernels := 0
	for _, name := range names {
		source, err := fs.ReadFile(src.Files, name)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`(?m)^KERNEL (\w+)\(([^)]*)\)`).FindAllStringSubmatch(string(source), -1) {
			kernels++
			_, entry, ok := strings.Cut(text, ".visible .entry "+m[1]+"(")
			if !ok {
				t.Errorf("%s of %s has no entry", m[1], name)
				continue
			}
			entry, _, _ = strings.Cut(entry, ")")
			if !bytes.Contains(rows, []byte("| `"+m[1]+"` |")) {
				t.Errorf("docs/gpu-kernels.md has no row for %s: run make ptxas", m[1])
			}
			params := strings.Count(m[2], ",") + 1
			if !strings.Contains(entry, fmt.Sprintf("%s_param_%d", m[1], params-1)) || strings.Contains(entry, fmt.Sprintf("%s_param_%d", m[1], params)) {
				t.Errorf("the entry of %s has not %d parameters:\n%s", m[1], params, entry)
			}
		}
	}
	if n := bytes.Count(rows, []byte("| `gsrc_")); n != kernels {
		t.Errorf("docs/gpu-kernels.md has %d rows, the sources %d kernels: run make ptxas", n, kernels)
	}
	if n := strings.Count(text, ".visible .entry "); n != kernels {
		t.Errorf("%d entries, the sources have %d kernels", n, kernels)
	}
	// As an intrinsic, clang 14 takes a barrier to leave shared arrays alone.
	if bars, asm := strings.Count(text, "\tbar."), strings.Count(text, "\t// begin inline asm\n\tbar."); bars != asm || bars == 0 {
		t.Errorf("%d of %d barriers are assembly that reads and writes memory: others do not order shared memory", asm, bars)
	}
	// The least of some integers is the same in any order.
	text = strings.ReplaceAll(text, "\tatom.global.min.s32", "")
	for _, word := range []string{"\tatom.", "\tred.", ".local", "vprintf", ".approx"} {
		if strings.Contains(text, word) {
			t.Errorf("the text has %s: atomics and approximations have other bits each time or device, local memory is slow", word)
		}
	}
}
