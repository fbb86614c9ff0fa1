package main

import (
	"bytes"
	"errors"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gsrc-dev/gsrc/internal/atomicfile"
)

type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, errors.New("no space left on device") }

// What a search has found is not lost where the file cannot be written.
func TestTuneOnFullDisk(t *testing.T) {
	atomicfile.Wrap = func(io.Writer) io.Writer { return fullDisk{} }
	defer func() { atomicfile.Wrap = nil }()
	var stdout, stderr bytes.Buffer
	path := filepath.Join(t.TempDir(), "found.toml")
	code := run(t.Context(), []string{"tune", "linear", "--data", "synthetic", "--trials", "2", "--rungs", "1", "--set", "synthetic.nodes=60", "--set", "train.epochs=2", "--out", path}, &stdout, &stderr)
	if code != exitError || !strings.Contains(stdout.String(), "\nepochs = 2  # gsrc tune: ") || !strings.Contains(stderr.String(), "cannot write "+path+": no space left on device") {
		t.Errorf("exit %d\n%s\n%s", code, stdout.String(), stderr.String())
	}
}
