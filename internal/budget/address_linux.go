package budget

import (
	"fmt"
	"os"
	"sync"
	"syscall"
)

// addressSpace returns how many bytes more the process may map, where it has a limit on
// that (ulimit -v): what it has mapped without using, as Go does at its start, counts.
var addressSpace = sync.OnceValues(func() (uint64, bool) {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_AS, &limit); err != nil || limit.Cur >= 1<<62 {
		return 0, false
	}
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0, false
	}
	var pages uint64
	if _, err := fmt.Sscan(string(text), &pages); err != nil {
		return 0, false
	}
	mapped := pages * uint64(os.Getpagesize())
	return limit.Cur - min(limit.Cur, mapped), true
})
