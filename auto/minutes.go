package auto

import (
	"context"
	"sync"
	"time"
)

func (x *chooser) elapsed() time.Duration { return x.before + time.Since(x.start) }

// left is the time that Minutes leave for a training of a candidate that has run for so many seconds: without that
// for the winner and for the two models that refinement is judged by, one of which it is unless it was chosen among
// restarts. What a training takes is known from those of the choice, which run on a thread each, and from how long
// this one has run, since it may be one of the last as well.
func (x *chooser) left(c *Candidate, seconds float64) time.Duration {
	const slower = 1.2 // than during the choice
	further := 2.0
	if x.restarting {
		further = 3
	}
	slowest := x.slowestWith(c, seconds)
	left := float64(60*x.Minutes) - float64(slower*(slowest[0]+float64(further*slowest[1])))
	return time.Duration(left*float64(time.Second)) - x.elapsed()
}

// slowestWith is what x.slowest is with a training of a candidate.
func (x *chooser) slowestWith(c *Candidate, seconds float64) [2]float64 {
	slowest := [2]float64{x.slowest[0], max(x.slowest[1], seconds)}
	if c.Simple {
		slowest[0] = max(slowest[0], seconds)
	}
	return slowest
}

// limited is the context of a training, which ends when its time is up: it is asked again and again, since others that
// end meanwhile shorten it. mu guards what is known of these, and must be held where the context is cancelled.
func (x *chooser) limited(ctx context.Context, c *Candidate, mu *sync.Mutex) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	if x.Minutes == 0 {
		return ctx, cancel
	}
	begun := time.Now()
	ask := func() {
		mu.Lock()
		defer mu.Unlock()
		if ctx.Err() == nil && x.begun() && x.left(c, time.Since(begun).Seconds()) <= 0 {
			cancel()
		}
	}
	ask()
	go func() {
		again := time.NewTicker(20 * time.Millisecond)
		defer again.Stop()
		for ctx.Err() == nil {
			select {
			case <-ctx.Done():
			case <-again.C:
				ask()
			}
		}
	}()
	return ctx, cancel
}
