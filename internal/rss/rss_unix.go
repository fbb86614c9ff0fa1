//go:build unix

package rss

import (
	"runtime"
	"syscall"
	"time"
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

// CPU is the processor time that the process has taken.
func CPU() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
