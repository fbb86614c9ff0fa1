//go:build unix

package serve

import (
	"math"

	"golang.org/x/sys/unix"
)

// openFiles is how many files the process may have open.
func openFiles() int64 {
	var l unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &l); err != nil || l.Cur > math.MaxInt32 {
		return math.MaxInt32
	}
	return int64(l.Cur)
}
