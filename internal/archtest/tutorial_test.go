package archtest

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// The kernel for GPUs that the page on new operations prints compiles in the table that it names.
func TestTutorialKernel(t *testing.T) {
	file, err := filepath.Abs(filepath.Join("..", "..", "runtime", "cuda", "ops_elementwise.go"))
	page, err1 := os.ReadFile(filepath.Join("..", "..", "docs", "add-an-operation.md"))
	source, err2 := os.ReadFile(file)
	const table = "var elementwiseKernels = map[string]kernel{\n"
	printed := regexp.MustCompile("(?s)`elementwiseKernels` of `runtime/cuda/ops_elementwise.go`:\n\n```go\n(.*?)```").FindSubmatch(page)
	if err = errors.Join(err, err1, err2); err != nil || printed == nil || !strings.Contains(string(source), table) {
		t.Fatalf("the page has the block %q, and %s the table or not: %v", printed, file, err)
	}
	with, overlay := filepath.Join(t.TempDir(), "with.go"), filepath.Join(t.TempDir(), "overlay.json")
	text, err := json.Marshal(map[string]any{"Replace": map[string]string{file: with}})
	if err = errors.Join(err, os.WriteFile(overlay, text, 0o644), os.WriteFile(with, []byte(strings.Replace(string(source), table, table+string(printed[1]), 1)), 0o644)); err != nil {
		t.Fatal(err)
	}
	build := exec.Command("go", "build", "-overlay", overlay, "./runtime/cuda")
	build.Dir = filepath.Join("..", "..")
	if said, err := build.CombinedOutput(); err != nil {
		t.Errorf("the kernel of docs/add-an-operation.md: %v\n%s", err, said)
	}
}
