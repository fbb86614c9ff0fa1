package seal

import (
	"errors"
	"fmt"
	"os"
)

// Folder returns an error where no folder of a run or an export is named, or nothing is there.
func Folder(dir string) error {
	if dir == "" {
		return errors.New("no run or export is named: give the path of its folder")
	}
	if _, err := os.Stat(dir); errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("%s: there is no such file or folder; give the folder of a run or an export", dir)
	}
	return nil
}
