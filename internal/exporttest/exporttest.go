// Package exporttest changes exports in tests.
package exporttest

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/gsrc-dev/gsrc/export/manifest"
	"github.com/gsrc-dev/gsrc/internal/seal"
)

// Rewrite puts text in the place of a file of an export, and makes the checksums right,
// as if a faulty program had written it so.
func Rewrite(t testing.TB, dist, name, text string) {
	t.Helper()
	path := filepath.Join(dist, manifest.FileName)
	listed := []byte(text)
	if name != manifest.FileName {
		if err := os.WriteFile(filepath.Join(dist, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		var err error
		if listed, err = os.ReadFile(path); err != nil {
			t.Fatal(err)
		}
	}
	var m manifest.Manifest
	if err := json.Unmarshal(listed, &m); err != nil {
		t.Fatal(err)
	}
	if name != manifest.FileName {
		sum := sha256.Sum256([]byte(text))
		m.Files[name] = manifest.FileInfo{Bytes: int64(len(text)), SHA256: hex.EncodeToString(sum[:]), CRC32C: seal.Sum([]byte(text))}
	}
	m.Checksum = seal.Blank
	listed, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	seal.Stamp(listed)
	if err := os.WriteFile(path, listed, 0o644); err != nil {
		t.Fatal(err)
	}
}
