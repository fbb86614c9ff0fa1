package bench

import (
	"bytes"
	"os"
	"strconv"
)

// peakMiB returns the largest resident set of the process so far, 0 where it is
// not known. It is VmHWM of proc(5): what getrusage says includes that of the
// parent before the program was loaded.
func peakMiB() float64 {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	_, rest, found := bytes.Cut(status, []byte("VmHWM:"))
	fields := bytes.Fields(rest)
	if !found || len(fields) == 0 {
		return 0
	}
	kib, err := strconv.ParseFloat(string(fields[0]), 64)
	if err != nil {
		return 0
	}
	return kib / 1024
}
