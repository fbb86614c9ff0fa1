//go:build unix

package rss

import (
	"runtime"
	"syscall"
)

func maxRSS() int64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	if runtime.GOOS == "darwin" || runtime.GOOS == "ios" { // bytes there, KiB elsewhere
		return int64(u.Maxrss)
	}
	return int64(u.Maxrss) << 10
}
