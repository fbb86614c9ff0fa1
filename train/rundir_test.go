package train

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// An export without its manifest is told from a folder that is none.
func TestExportWithoutManifest(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "classifier.onnx"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadInfo(dir); err == nil || !strings.Contains(err.Error(), "no manifest.json") {
		t.Error(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "manifest.json"), []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadInfo(dir); err == nil || !strings.Contains(err.Error(), "is an export; this takes the run") {
		t.Error(err)
	}
}
