package main

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/gsrc-dev/gsrc/train"
)

// clock advances a second each time it is read.
func clock() func() time.Time {
	now := time.Unix(0, 0)
	return func() time.Time { now = now.Add(time.Second); return now }
}

func TestPlainProgress(t *testing.T) {
	var b strings.Builder
	p := &progress{meter: meter{w: &output{to: &b}, now: clock()}, label: "seed 1 "}
	for step := 1; step <= 12; step++ {
		p.Observe(train.Event{Phase: "pretrain", Step: step, Total: 12, Loss: 1 / float64(step), ValAcc: math.NaN()})
	}
	p.Observe(train.Event{Phase: "fit", Step: 9, Total: 9, Loss: 0.5, ValAcc: 81.25, Resumed: true})
	p.finish()
	want := `seed 1 pretrain 5/12  loss 0.2  7s left
seed 1 pretrain 10/12  loss 0.1  2s left
seed 1 pretrain 12/12  loss 0.08333
seed 1 resumed in phase fit after step 8
seed 1 fit 9/9  loss 0.5  val 81.2 %
`
	if b.String() != want {
		t.Errorf("got\n%s\nwant\n%s", b.String(), want)
	}
}

func TestTerminalProgress(t *testing.T) {
	var b strings.Builder
	p := &progress{meter: meter{w: &output{to: &b}, terminal: true, now: time.Now}}
	for step := 1; step <= 3; step++ {
		p.Observe(train.Event{Phase: "fit", Step: step, Total: 3, Loss: 0.25, ValAcc: 80})
		time.Sleep(110 * time.Millisecond) // the bar is drawn ten times a second at most
	}
	p.finish()
	p.finish() // harmless
	out := b.String()
	for _, want := range []string{"fit", "loss 0.25", "val 80.0 %", "/3"} {
		if !strings.Contains(out, want) {
			t.Errorf("the bar lacks %q: %q", want, out)
		}
	}
	if strings.Contains(out, "\n") {
		t.Errorf("the bar left a line: %q", out)
	}
}
