package main

import (
	"fmt"
	"io"
	"math"
	"path"
	"time"

	"github.com/gsrc-dev/gsrc/train"
	"github.com/schollz/progressbar/v3"
)

// lineEvery is how often a line is written where there is no terminal.
const lineEvery = 5 * time.Second

// progress shows how training goes on standard error: a bar on a terminal, a
// line every few seconds and at the end of a phase elsewhere. It is a
// train.Observer.
type progress struct {
	w        io.Writer
	terminal bool
	now      func() time.Time

	label string // stands before the phase
	phase string
	bar   *progressbar.ProgressBar
	start time.Time
	first int       // steps that were done before, by the run that is resumed
	wrote time.Time // when the last line was written
}

func (a *app) newProgress() *progress {
	return &progress{w: a.stderr, terminal: isTerminal(a.stderr), now: time.Now}
}

// Observe shows one step.
func (p *progress) Observe(e train.Event) {
	if e.Phase != p.phase {
		p.finish()
		p.begin(e)
	}
	status := ""
	if !math.IsNaN(e.Loss) {
		status = fmt.Sprintf("loss %.4g", e.Loss)
	}
	if !math.IsNaN(e.ValAcc) {
		status += fmt.Sprintf("  val %.1f %%", e.ValAcc)
	}
	if p.bar != nil {
		p.bar.Describe(fmt.Sprintf("%-9s %-28s", p.label+e.Phase, status))
		// A terminal that has gone away must not stop the training.
		_ = p.bar.Set(e.Step)
		return
	}
	now := p.now()
	if e.Step < e.Total && now.Sub(p.wrote) < lineEvery {
		return
	}
	p.wrote = now
	left := ""
	if done := e.Step - p.first; done > 0 && e.Step < e.Total {
		each := now.Sub(p.start) / time.Duration(done)
		left = fmt.Sprintf("  %s left", (each * time.Duration(e.Total-e.Step)).Round(time.Second))
	}
	fmt.Fprintf(p.w, "%s%s %d/%d  %s%s\n", p.label, e.Phase, e.Step, e.Total, status, left)
}

func (p *progress) begin(e train.Event) {
	p.phase, p.start, p.first = e.Phase, p.now(), e.Step-1
	p.wrote = p.start
	if e.Resumed {
		fmt.Fprintf(p.w, "%sresumed in phase %s after step %d\n", p.label, e.Phase, e.Step-1)
	}
	if !p.terminal {
		return
	}
	p.bar = newBar(p.w, int64(e.Total), progressbar.OptionShowCount())
}

// newBar makes a bar that looks like all others.
func newBar(w io.Writer, total int64, more ...progressbar.Option) *progressbar.ProgressBar {
	return progressbar.NewOptions64(total, append([]progressbar.Option{
		progressbar.OptionSetWriter(unwrapped(w)),
		progressbar.OptionSetWidth(24),
		progressbar.OptionThrottle(100 * time.Millisecond),
		progressbar.OptionSetPredictTime(true),
		progressbar.OptionClearOnFinish(),
		progressbar.OptionSetElapsedTime(true),
	}, more...)...)
}

// finish removes the bar, so that what follows starts on a line of its own.
func (p *progress) finish() {
	if p.bar != nil {
		_ = p.bar.Clear()
		p.bar = nil
	}
	p.phase = ""
}

// transfer shows how far a file has been fetched, or how many of something are done: a bar on a terminal, a line
// every few seconds and at the end of a file elsewhere.
type transfer struct {
	w        io.Writer
	terminal bool
	now      func() time.Time

	file  string
	bar   *progressbar.ProgressBar
	wrote time.Time
}

func (a *app) newTransfer() *transfer {
	return &transfer{w: a.stderr, terminal: isTerminal(a.stderr), now: time.Now}
}

// count shows how many rows or graphs are done: a bar on a terminal, a line every few
// seconds elsewhere.
func (t *transfer) count(what string, done, total int) {
	now := t.now()
	if what != t.file {
		t.finish()
		t.file, t.wrote = what, now
		if t.terminal {
			t.bar = newBar(t.w, int64(total), progressbar.OptionShowCount())
			t.bar.Describe(fmt.Sprintf("%-12s", what))
		}
	}
	if t.bar != nil {
		_ = t.bar.Set(done)
		return
	}
	if t.terminal || now.Sub(t.wrote) < lineEvery {
		return
	}
	t.wrote = now
	fmt.Fprintf(t.w, "%s %d/%d\n", what, done, total)
}

func (t *transfer) observe(file string, done, total int64) {
	now := t.now()
	if file != t.file {
		t.finish()
		t.file, t.wrote = file, now
		if t.terminal {
			t.bar = newBar(t.w, total, progressbar.OptionShowBytes(true))
			t.bar.Describe(fmt.Sprintf("%-28s", path.Base(file)))
		}
	}
	if t.bar != nil {
		// A terminal that has gone away must not stop the transfer.
		_ = t.bar.Set64(done)
		return
	}
	if t.terminal || done != total && now.Sub(t.wrote) < lineEvery {
		return
	}
	t.wrote = now
	of := ""
	if total >= 0 {
		of = fmt.Sprintf(" of %.1f", float64(total)/1e6)
	}
	fmt.Fprintf(t.w, "%s %.1f%s MB\n", file, float64(done)/1e6, of)
}

// finish removes the bar, so that what follows starts on a line of its own.
func (t *transfer) finish() {
	if t.bar != nil {
		_ = t.bar.Clear()
		t.bar = nil
	}
	t.file = ""
}
