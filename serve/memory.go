package serve

import (
	"context"
	"os"
	"runtime"
	"runtime/debug"
	"time"

	"github.com/gsrc-dev/gsrc/internal/rss"
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
	s.tidied.Store(resident())
}

// keepTidy does so until ctx ends also after many requests and connections of which
// none was large: garbage that nobody collects, since there is nothing to do.
func (s *Server) keepTidy(ctx context.Context) {
	for tick := time.Tick(5 * time.Second); ; {
		select {
		case <-ctx.Done():
			return
		case <-tick:
			n, left := resident(), s.tidied.Load() // by the last time
			if n > s.budget.Used()/4*5 && max(n-left, left-n) > left/20 {
				s.tidy()
			}
		}
	}
}

// resident returns how much memory the process holds, in bytes.
func resident() int64 {
	if n := rss.Of(os.Getpid()); n > 0 {
		return n
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.Sys)
}
