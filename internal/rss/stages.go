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
	last time.Time     // of the last sample
	end  chan struct{} // nil while nobody watches
	done sync.WaitGroup
}

// Enter says what the process is at from now on, and returns what it was at before, for Leave.
func Enter(stage string) (before string) {
	stages.Lock()
	defer stages.Unlock()
	if stages.end != nil {
		sample() // however short it was, it is told of
	}
	before, stages.now = stages.now, stage
	return before
}

// Leave says that the process is at what it was at before.
func Leave(before string) { Enter(before) }

// Watch samples memory now, at each change of the stage and every so often, until Stages is called.
func Watch(every time.Duration) {
	stages.Lock()
	defer stages.Unlock()
	if stages.end != nil {
		return
	}
	end := make(chan struct{})
	stages.end, stages.list, stages.last = end, nil, time.Now()
	sample()
	stages.done.Go(func() {
		for tick := time.NewTicker(every); ; {
			select {
			case <-end:
				tick.Stop()
				return
			case <-tick.C:
			}
			stages.Lock()
			sample()
			stages.Unlock()
		}
	})
}

// sample adds what is held now to what the process is at. The lock is held.
func sample() {
	own, mapped := Own(os.Getpid())
	i := slices.IndexFunc(stages.list, func(s Stage) bool { return s.Name == stages.now })
	if i < 0 {
		i = len(stages.list)
		stages.list = append(stages.list, Stage{Name: stages.now})
	}
	s := &stages.list[i]
	s.Own, s.Mapped = max(s.Own, own), max(s.Mapped, mapped)
	now := time.Now()
	s.Time += now.Sub(stages.last)
	stages.last = now
}

// Stages ends what Watch began, and returns the stages in the order in which they were met.
// What no stage was said of has no name.
func Stages() []Stage {
	stages.Lock()
	end := stages.end
	stages.end = nil
	if end != nil {
		sample()
	}
	stages.Unlock()
	if end == nil {
		return nil
	}
	close(end)
	stages.done.Wait()
	return stages.list
}
