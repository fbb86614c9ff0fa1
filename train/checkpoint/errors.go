package checkpoint

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/gsrc-dev/gsrc/internal/shell"
)

// ErrNoChecksum is the error of files that are written with a checksum and have none.
var ErrNoChecksum = errors.New("its checksum is gone: it is damaged, or was changed by hand")

// DamageError says which file of a run is not what was written.
type DamageError struct {
	Path string
	Err  error
}

func (e *DamageError) Error() string {
	return fmt.Sprintf("%s: %v; restore it from a copy, or train again with --force", e.Path, e.Err)
}

// Unwrap returns the cause.
func (e *DamageError) Unwrap() error { return e.Err }

// Damage makes an error a *[DamageError]; nil stays nil.
func Damage(path string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, fs.ErrNotExist):
		err = fmt.Errorf("it is listed in %s, and %w", InfoFile, fs.ErrNotExist)
	}
	return &DamageError{path, err}
}

// ExistsError says that a run directory has something in it.
type ExistsError struct {
	Dir string
	Run bool // it holds a run
}

func (e *ExistsError) Error() string {
	if e.Run {
		return fmt.Sprintf("%s holds a run already; go on with --resume %s, replace it with --force, or choose another folder", e.Dir, shell.Quote(e.Dir))
	}
	return fmt.Sprintf("the folder %s is not empty; choose another, or write into it with --force", e.Dir)
}
