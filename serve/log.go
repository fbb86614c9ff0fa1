package serve

import (
	"fmt"
	"io"
	"sync"
	"time"
)

// logBuffer bounds what a [LogWriter] holds, in bytes.
const logBuffer = 1 << 20

// LogWriter writes to another writer in the background. If that one blocks, say because
// nobody reads a pipe any more, nobody who logs waits for it: lines beyond a buffer of 1 MiB
// are dropped and counted, and a line in the log says how many once there is room again.
type LogWriter struct {
	w io.Writer

	mu      sync.Mutex
	wake    *sync.Cond
	lines   []byte // that are to be written
	busy    bool   // others are being written
	dropped int64
	said    int64 // how many of them the log tells of
}

// NewLogWriter starts to write to w. It goes on until the process ends.
func NewLogWriter(w io.Writer) *LogWriter {
	l := &LogWriter{w: w}
	l.wake = sync.NewCond(&l.mu)
	go l.run()
	return l
}

func (l *LogWriter) run() {
	var out []byte
	for {
		l.mu.Lock()
		l.busy = false
		l.wake.Broadcast()
		for len(l.lines) == 0 && l.dropped == l.said {
			l.wake.Wait()
		}
		l.busy = true
		out, l.lines = l.lines, out[:0]
		if n := l.dropped - l.said; n > 0 {
			out = fmt.Appendf(out, "%d lines of the log were dropped: they were not read in time\n", n)
			l.said = l.dropped
		}
		l.mu.Unlock()
		_, _ = l.w.Write(out) // there is nowhere to say that the log cannot be written
	}
}

// Write takes a line, or several. It never blocks and never fails.
func (l *LogWriter) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.lines)+len(line) > logBuffer {
		l.dropped++
	} else {
		l.lines = append(l.lines, line...)
	}
	l.wake.Broadcast()
	return len(line), nil
}

// Dropped counts the lines that were not written.
func (l *LogWriter) Dropped() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.dropped
}

// Flush waits until everything is written, but not for longer than the given time.
func (l *LogWriter) Flush(most time.Duration) {
	late := false
	timer := time.AfterFunc(most, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		late = true
		l.wake.Broadcast()
	})
	defer timer.Stop()
	l.mu.Lock()
	defer l.mu.Unlock()
	for !late && (l.busy || len(l.lines) > 0 || l.dropped > l.said) {
		l.wake.Wait()
	}
}
