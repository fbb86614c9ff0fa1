//go:build !linux

package scratch

import "os"

func inMemory(string) bool { return false }

func reserve(f *os.File, n int64) error { return f.Truncate(n) }

// Ahead does nothing where the system is not told what will be read.
type Ahead struct{}

// NewAhead returns nil.
func NewAhead[T any]([]T) *Ahead { return nil }

// InOrder does nothing.
func (*Ahead) InOrder() {}

// Range does nothing.
func (*Ahead) Range(_, _ int) {}

// Begin returns false.
func (*Ahead) Begin() bool { return false }

// Whole returns false.
func (*Ahead) Whole() bool { return false }

// Want does nothing.
func (*Ahead) Want(_, _ int) {}

// Read does nothing.
func (*Ahead) Read() {}
