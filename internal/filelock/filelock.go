// Package filelock keeps two processes from writing to one place. The system drops a
// lock when its process ends, however it ends, so a lock that is left over is none.
package filelock

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/gofrs/flock"
)

// HeldError says who has a lock. But for Path it is what the holder writes beside the lock, in
// which nobody else can read on Windows.
type HeldError struct {
	Path string `json:"-"` // of the lock
	// The process that has it, as far as it has said so: 0 and "" are not known.
	PID     int    `json:"pid"`
	Host    string `json:"host"`
	Command string `json:"command"`
}

func (e *HeldError) Error() string {
	if e.PID == 0 {
		return fmt.Sprintf("another process is using %s", filepath.Dir(e.Path))
	}
	return fmt.Sprintf("process %d on %s (%s) is using %s", e.PID, e.Host, e.Command, filepath.Dir(e.Path))
}

// Lock is a lock on a file.
type Lock struct {
	f      *flock.Flock
	shared bool
}

func ownerFile(path string) string { return path + ".owner" }

// TryLock locks the file at path, which is made if need be and stays. Where another
// process has the lock, or this one has it already, the error is a *[HeldError].
func TryLock(path string) (*Lock, error) {
	l := &Lock{f: flock.New(path)}
	ok, err := l.f.TryLock()
	if ok && !l.there() { // its holder has removed it in between
		_ = l.f.Unlock()
		return TryLock(path)
	}
	switch {
	case errors.Is(err, errors.ErrUnsupported): // no locks here, so no process is kept out
		return l, nil
	case err != nil:
		return nil, fmt.Errorf("cannot lock %s: %w", path, err)
	case !ok:
		return nil, held(path)
	}
	host, _ := os.Hostname()
	text, err := json.Marshal(HeldError{PID: os.Getpid(), Host: host, Command: strings.Join(os.Args, " ")})
	if err == nil {
		// Who it is helps whoever waits; the lock holds without it.
		_ = os.WriteFile(ownerFile(path), text, 0o644)
	}
	return l, nil
}

// TryShare locks the file at path for reading: others may share it, and nobody may have it by
// [TryLock]. Where the folder cannot be written to and has no such file, there is nothing
// to lock, and nobody to keep out.
func TryShare(path string) (*Lock, error) {
	l := &Lock{f: flock.New(path, flock.SetFlag(os.O_RDONLY)), shared: true}
	if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
		l.f = flock.New(path)
	}
	ok, err := l.f.TryRLock()
	switch {
	case errors.Is(err, errors.ErrUnsupported), errors.Is(err, os.ErrPermission):
		return l, nil
	case err != nil:
		return nil, fmt.Errorf("cannot lock %s: %w", path, err)
	case !ok:
		return nil, held(path)
	}
	return l, nil
}

// held says who has a lock, as far as it has said so.
func held(path string) *HeldError {
	h := &HeldError{Path: path}
	text, err := os.ReadFile(ownerFile(path))
	if err != nil || json.Unmarshal(text, h) != nil {
		return &HeldError{Path: path}
	}
	return h
}

// Acquire is [TryLock] that waits for another process until ctx ends. waiting is called
// once if it has to wait.
func Acquire(ctx context.Context, path string, waiting func(*HeldError)) (*Lock, error) {
	for told := false; ; {
		l, err := TryLock(path)
		var held *HeldError
		if !errors.As(err, &held) {
			return l, err
		}
		if !told {
			waiting(held)
			told = true
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// Unlock gives the lock back. It may be called of nil.
func (l *Lock) Unlock() error {
	if l == nil {
		return nil
	}
	if !l.shared {
		_ = os.Remove(ownerFile(l.f.Path()))
	}
	return l.f.Unlock()
}

// there reports whether the file that is locked is the one that others find.
func (l *Lock) there() bool {
	mine, err := l.f.Stat()
	if err != nil {
		return false
	}
	found, err := os.Stat(l.f.Path())
	return err == nil && os.SameFile(mine, found)
}

// Remove gives the lock back and deletes its file. It may be called of nil.
func (l *Lock) Remove() error {
	if l == nil {
		return nil
	}
	_ = os.Remove(ownerFile(l.f.Path()))
	removed := os.Remove(l.f.Path()) // before others can have it
	err := l.f.Unlock()
	if removed != nil { // Windows deletes no file that is open, so none that somebody locks
		_ = os.Remove(l.f.Path())
	}
	return err
}
