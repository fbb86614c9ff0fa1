// Package rss asks the system how much memory processes hold.
package rss

import (
	"fmt"
	"os"
	"strings"
)

// Of returns the resident memory of a process in bytes, 0 where it is not known: on
// systems other than Linux.
func Of(pid int) int64 { return status(pid, "VmRSS:") }

// Peak returns the largest resident memory of this process so far in bytes, 0 where it
// is not known. On Linux that is VmHWM of proc(5): what getrusage says includes the
// parent's before the program was loaded.
func Peak() int64 {
	if n := status(os.Getpid(), "VmHWM:"); n > 0 {
		return n
	}
	return maxRSS()
}

// status reads a field of /proc/PID/status that is in KiB.
func status(pid int, name string) (bytes int64) { return field(statusText(pid), name) }

// statusText is /proc/PID/status, empty where there is none.
func statusText(pid int) string {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	return string(text)
}

func field(text, name string) (bytes int64) {
	_, rest, _ := strings.Cut(text, name)
	var kib int64
	fmt.Sscan(rest, &kib)
	return kib << 10
}
