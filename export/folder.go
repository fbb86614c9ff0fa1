package export

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/gsrc-dev/gsrc/export/manifest"
)

// CheckFolder returns an error if [Build] does not write to a folder: it has other things
// than an export in it, or no name.
func CheckFolder(dir string) error {
	if dir == "" {
		return errors.New("there is no folder to write the export to: name one")
	}
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) || err == nil && len(entries) == 0 {
		return nil
	}
	if err != nil {
		return err
	}
	if _, err := manifest.Read(dir); err != nil {
		// A damaged export is one too.
		if text, _ := os.ReadFile(filepath.Join(dir, manifest.FileName)); bytes.Contains(text, []byte(`"generator": "gsrc"`)) {
			return nil
		}
		return fmt.Errorf("%s is not empty and holds no export of gsrc; choose another folder", dir)
	}
	return nil
}
