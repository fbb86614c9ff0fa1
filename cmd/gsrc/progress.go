package main

import (
	"fmt"
	"math"
	"path"
	"time"

	"github.com/gsrc-dev/gsrc/train"
	"github.com/schollz/progressbar/v3"
)

// lineEvery is how often a line is written where there is no terminal.
const lineEvery = 5 * time.Second

// meter shows on standard error how far something is: a bar on a terminal, a line every
// few seconds elsewhere.
type meter struct {
	w        *output
	terminal bool
	now      func() time.Time

	bar   *progressbar.ProgressBar
	wrote time.Time // when the last line was written
}

func (a *app) newMeter() meter {
	return meter{w: a.stderr, terminal: isTerminal(a.stderr.to), now: time.Now}
}

// begin starts over: with a bar on a terminal.
func (m *meter) begin(total int64, more ...progressbar.Option) {
	m.wrote = m.now()
	if m.terminal {
		m.bar = progressbar.NewOptions64(total, append([]progressbar.Option{
			progressbar.OptionSetWriter(m.w.to),
			progressbar.OptionSetWidth(24),
			progressbar.OptionThrottle(100 * time.Millisecond),
			progressbar.OptionSetPredictTime(true),
			progressbar.OptionClearOnFinish(),
			progressbar.OptionSetElapsedTime(true),
		}, more...)...)
	}
}

// show sets the bar, or reports that a line is due: at the end, or when the last one is
// some seconds ago.
func (m *meter) show(text string, done int64, end bool) (line bool) {
	if m.bar != nil {
		m.bar.Describe(text)
		// A terminal that has gone away must not stop the work.
		_ = m.bar.Set64(done)
	}
	now := m.now()
	if m.terminal || !end && now.Sub(m.wrote) < lineEvery {
		return false
	}
	m.wrote = now
	return true
}

// finish removes the bar, so that what follows starts on a line of its own.
func (m *meter) finish() {
	if m.bar != nil {
		_ = m.bar.Clear()
		m.bar = nil
	}
}

// progress shows how training goes, and a line at the end of a phase. It is a
// train.Observer.
type progress struct {
	meter
	label string // stands before the phase
	phase string
	start time.Time
	first int // steps that were done before, by the run that is resumed
}

func (a *app) newProgress() *progress { return &progress{meter: a.newMeter()} }

// Observe shows one step.
func (p *progress) Observe(e train.Event) {
	if e.Phase != p.phase {
		p.finish()
		p.enter(e)
	}
	status := ""
	if !math.IsNaN(e.Loss) {
		status = fmt.Sprintf("loss %.4g", e.Loss)
	}
	if !math.IsNaN(e.ValAcc) {
		status += fmt.Sprintf("  val %.1f %%", e.ValAcc)
	}
	if !p.show(fmt.Sprintf("%-9s %-28s", p.label+e.Phase, status), int64(e.Step), e.Step == e.Total) {
		return
	}
	left := ""
	if done := e.Step - p.first; done > 0 && e.Step < e.Total {
		each := p.wrote.Sub(p.start) / time.Duration(done)
		left = fmt.Sprintf("  %s left", (each * time.Duration(e.Total-e.Step)).Round(time.Second))
	}
	fmt.Fprintf(p.w, "%s%s %d/%d  %s%s\n", p.label, e.Phase, e.Step, e.Total, status, left)
}

func (p *progress) enter(e train.Event) {
	if e.Resumed {
		fmt.Fprintf(p.w, "%sresumed in phase %s after step %d\n", p.label, e.Phase, e.Step-1)
	}
	p.begin(int64(e.Total), progressbar.OptionShowCount())
	p.phase, p.start, p.first = e.Phase, p.wrote, e.Step-1
}

func (p *progress) finish() {
	p.meter.finish()
	p.phase = ""
}

// transfer shows how far a file has been fetched, or how many of something are done.
type transfer struct {
	meter
	what string
}

func (a *app) newTransfer() *transfer { return &transfer{meter: a.newMeter()} }

// count shows how many rows or graphs are done.
func (t *transfer) count(what string, done, total int) {
	t.enter(what, int64(total), progressbar.OptionShowCount())
	if t.show(fmt.Sprintf("%-12s", what), int64(done), false) {
		fmt.Fprintf(t.w, "%s %d/%d\n", what, done, total)
	}
}

// observe shows how many bytes of a file have come; total is -1 where that is not known.
func (t *transfer) observe(file string, done, total int64) {
	t.enter(file, total, progressbar.OptionShowBytes(true))
	if !t.show(fmt.Sprintf("%-28s", path.Base(file)), done, done == total) {
		return
	}
	of := ""
	if total >= 0 {
		of = fmt.Sprintf(" of %.1f", float64(total)/1e6)
	}
	fmt.Fprintf(t.w, "%s %.1f%s MB\n", file, float64(done)/1e6, of)
}

func (t *transfer) enter(what string, total int64, form progressbar.Option) {
	if what != t.what {
		t.finish()
		t.what = what
		t.begin(total, form)
	}
}

func (t *transfer) finish() {
	t.meter.finish()
	t.what = ""
}
