package rss

import (
	"os"
	"slices"
	"sync"
	"time"
)

// Own returns what a process holds in memory: of its own (RssAnon and RssShmem of proc(5)), and
// as pages of files (RssFile), which the system may drop. Both are 0 where they are not known.
func Own(pid int) (own, mapped int64) {
	text := statusText(pid)
	return field(text, "RssAnon:") + field(text, "RssShmem:"), field(text, "RssFile:")
}

// A Stage is the most that this process has held while it was at something.
type Stage struct {
	Name        string
	Own, Mapped int64         // bytes; see [Own]
	Time        time.Duration // in all
}

var stages struct {
	sync.Mutex
	list []Stage
	now  string
	end  chan struct{} // nil while nobody watches
	done sync.WaitGroup
}

// Enter says what the process is at from now on, and returns what it was at before, for Leave.
func Enter(stage string) (before string) {
	stages.Lock()
	defer stages.Unlock()
	before, stages.now = stages.now, stage
	return before
}

// Leave says that the process is at what it was at before.
func Leave(before string) { Enter(before) }

// Watch samples memory every so often, until Stages is called.
func Watch(every time.Duration) {
	stages.Lock()
	defer stages.Unlock()
	if stages.end != nil {
		return
	}
	end := make(chan struct{})
	stages.end, stages.list = end, nil
	stages.done.Go(func() {
		last := time.Now()
		for tick := time.NewTicker(every); ; {
			sample(&last)
			select {
			case <-end:
				tick.Stop()
				return
			case <-tick.C:
			}
		}
	})
}

// sample adds what is held now to what the process is at.
func sample(last *time.Time) {
	own, mapped := Own(os.Getpid())
	stages.Lock()
	defer stages.Unlock()
	i := slices.IndexFunc(stages.list, func(s Stage) bool { return s.Name == stages.now })
	if i < 0 {
		i = len(stages.list)
		stages.list = append(stages.list, Stage{Name: stages.now})
	}
	s := &stages.list[i]
	s.Own, s.Mapped = max(s.Own, own), max(s.Mapped, mapped)
	now := time.Now()
	s.Time += now.Sub(*last)
	*last = now
}

// Stages ends what Watch began, and returns the stages in the order in which they were met.
// What no stage was said of has no name.
func Stages() []Stage {
	stages.Lock()
	end := stages.end
	stages.end = nil
	stages.Unlock()
	if end == nil {
		return nil
	}
	close(end)
	stages.done.Wait()
	return stages.list
}
