package serve

import (
	"bytes"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"time"

	"github.com/gsrc-dev/gsrc/runtime/ort"
)

// largeRequest is how much a request holds after which memory is given back to the
// system.
const largeRequest = 32 << 20

// large has memory given back to the system some time after a large request, once for
// those that come together, and again when what pools keep is old.
func (s *Server) large() {
	if s.tidying.CompareAndSwap(false, true) {
		time.AfterFunc(2*time.Second, func() {
			s.tidying.Store(false)
			s.tidy()
			time.AfterFunc(10*time.Second, s.tidy)
		})
	}
}

// tidy gives free memory back to the system. What a sync.Pool keeps is free after the
// second collection.
func (s *Server) tidy() {
	runtime.GC()
	debug.FreeOSMemory()
	ort.Trim()
}

// resident returns how much memory the process holds, in bytes.
func resident() int64 {
	if text, err := os.ReadFile("/proc/self/statm"); err == nil {
		if f := bytes.Fields(text); len(f) > 1 {
			if pages, err := strconv.ParseInt(string(f[1]), 10, 64); err == nil {
				return pages * int64(os.Getpagesize())
			}
		}
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.Sys)
}
