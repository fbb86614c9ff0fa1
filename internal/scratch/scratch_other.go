//go:build !linux

package scratch

import "os"

func inMemory(string) bool { return false }

func reserve(f *os.File, n int64) error { return f.Truncate(n) }
