//go:build linux || darwin

package scratch

import (
	"math"
	"path/filepath"
	"syscall"
)

// Free returns how many bytes the disk of a folder, which need not be there yet, has left; where
// that is not known the largest number.
func Free(dir string) int64 {
	dir, err := filepath.Abs(dir)
	for ; err == nil; dir = filepath.Dir(dir) {
		var s syscall.Statfs_t
		if syscall.Statfs(dir, &s) == nil && s.Blocks > 0 { // others, as /proc, are no disks
			return int64(min(s.Bavail, math.MaxInt64/uint64(s.Bsize))) * int64(s.Bsize)
		}
		if dir == filepath.Dir(dir) {
			break
		}
	}
	return math.MaxInt64
}
