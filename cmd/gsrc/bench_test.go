package main

import (
	"bytes"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gsrc-dev/gsrc/internal/atomicfile"
)

// What was timed is shown where the file cannot be written.
func TestBenchOnFullDisk(t *testing.T) {
	atomicfile.Wrap = func(io.Writer) io.Writer { return fullDisk{} }
	defer func() { atomicfile.Wrap = nil }()
	var stdout, stderr bytes.Buffer
	path := filepath.Join(t.TempDir(), "report.json")
	code := run(t.Context(), []string{"bench", "--only", "compile/gcn", "--rounds", "1", "--json", path}, &stdout, &stderr)
	if code != exitError || !strings.Contains(stdout.String(), "\ncompile/gcn ") || !strings.Contains(stderr.String(), "cannot write "+path+": no space left on device") {
		t.Errorf("exit %d\n%s\n%s", code, stdout.String(), stderr.String())
	}
}
