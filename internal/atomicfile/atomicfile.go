// Package atomicfile writes files that exist whole or not at all: the contents
// go to a temporary file in the same folder, are flushed to the disk, and take
// the file's name only then. A crash, a kill or a full disk leaves the old file
// as it was. Devices and pipes are written to as they are.
package atomicfile

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	goruntime "runtime"
)

// Wrap, if not nil, wraps the writer of every temporary file. Tests put a
// writer here that fails as a full disk does.
var Wrap func(io.Writer) io.Writer

// Write replaces the file at path by what write writes. On an error, from write
// or from the file system, the old file is unchanged and no temporary file
// stays. Write buffers, so write may write in small pieces. Where path is a link, the file
// that it leads to is replaced.
func Write(path string, write func(io.Writer) error) (err error) {
	if isStream(path) {
		return stream(path, write)
	}
	path = Follow(path)
	f, dir, err := create(path)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = fmt.Errorf("cannot write %s: %w", path, errors.Join(err, discard(f)))
		}
	}()
	if err := fill(f, write); err != nil {
		return err
	}
	if err := f.Chmod(0o644); err != nil && !errors.Is(err, errors.ErrUnsupported) {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	if err := os.Rename(f.Name(), path); err != nil {
		return err
	}
	_ = SyncDir(dir) // that it cannot be opened everywhere is no fault of the file
	return nil
}

func fill(f *os.File, write func(io.Writer) error) error {
	var w io.Writer = f
	if Wrap != nil {
		w = Wrap(f)
	}
	b := bufio.NewWriterSize(w, 1<<16)
	if err := write(b); err != nil {
		return err
	}
	return b.Flush()
}

// Follow returns where a link leads, and other paths as they are. What it leads to need not
// exist.
func Follow(path string) string {
	for range 40 { // those that lead in a circle end somewhere, too
		to, err := os.Readlink(path)
		if err != nil {
			break
		}
		if !filepath.IsAbs(to) { // not joined, since dir/../file is elsewhere where dir is a link
			dir, _ := filepath.Split(path)
			to = dir + to
		}
		path = to
	}
	return path
}

// isStream reports whether a path is that of a device, a pipe or the like, or of what standard
// output goes to.
func isStream(path string) bool {
	info, err := os.Stat(path)
	if err != nil || info.IsDir() {
		return false
	}
	return !info.Mode().IsRegular() || isStdout(info)
}

func isStdout(info os.FileInfo) bool {
	if goruntime.GOOS == "windows" && !info.Mode().IsRegular() { // any two devices there are the same to SameFile
		return false
	}
	out, err := os.Stdout.Stat()
	return err == nil && os.SameFile(info, out)
}

// stream writes to a device or a pipe.
func stream(path string, write func(io.Writer) error) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("cannot write %s: %w", path, err)
		}
	}()
	if info, err := os.Stat(path); err == nil && isStdout(info) { // opened anew, a file would be written from its beginning
		return fill(os.Stdout, write)
	}
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	return errors.Join(fill(f, write), f.Close())
}

// create makes the temporary file of one at path, in the folder that it returns.
func create(path string) (f *os.File, dir string, err error) {
	dir, name := filepath.Split(path)
	dir = cmp.Or(dir, ".")
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return nil, dir, fmt.Errorf("cannot write %s: it is a folder", path)
	}
	if f, err = os.CreateTemp(dir, "."+name+".*.tmp"); err != nil {
		err = fmt.Errorf("cannot write %s: %w", path, err)
	}
	return f, dir, err
}

// Check returns the error with which [Write] would not begin, before there is anything
// to write. It leaves the file as it is.
func Check(path string) error {
	if isStream(path) { // opening a pipe waits for its reader
		return nil
	}
	f, _, err := create(Follow(path))
	if err != nil {
		return err
	}
	return discard(f)
}

// CheckOwn is an error where a file with content is at path and own, which is given its
// beginning, says that it is not one of those that are written there. Devices and pipes are
// not read.
func CheckOwn(path string, own func(beginning []byte) bool) error {
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() || info.Size() == 0 {
		return nil // what is wrong with a path is said where it is written
	}
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	beginning, err := io.ReadAll(io.LimitReader(f, 1<<16))
	if err != nil {
		return err
	}
	if !own(beginning) {
		return fmt.Errorf("%s would be overwritten, and gsrc has not written it; move it away, or choose another folder", path)
	}
	return nil
}

// discard closes and deletes a temporary file, which may be closed already.
func discard(f *os.File) error {
	_ = f.Close()
	return os.Remove(f.Name())
}

// WriteBytes replaces the file at path by data; see [Write].
func WriteBytes(path string, data []byte) error {
	return Write(path, func(w io.Writer) error {
		_, err := w.Write(data)
		return err
	})
}

// JSON encodes a value as indented JSON with sorted keys and a final newline.
func JSON(v any) ([]byte, error) {
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	err := e.Encode(v)
	return text.Bytes(), err
}

// WriteJSON replaces the file at path by [JSON]; see [Write].
func WriteJSON(path string, v any) error {
	text, err := JSON(v)
	if err != nil {
		return fmt.Errorf("cannot write %s: %w", path, err)
	}
	return WriteBytes(path, text)
}

// SyncDir makes the names of a folder's files durable, where folders can be flushed.
func SyncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	_ = d.Sync() // not everywhere (Windows)
	return d.Close()
}
