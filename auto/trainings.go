package auto

import (
	"context"
	"errors"
	"fmt"
	goruntime "runtime"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/gsrc-dev/gsrc/config"
	"github.com/gsrc-dev/gsrc/data"
	"github.com/gsrc-dev/gsrc/internal/budget"
	"github.com/gsrc-dev/gsrc/run"
	"github.com/gsrc-dev/gsrc/train"
)

// workers is how many trainings run side by side, a thread each.
func (x *chooser) workers() int {
	const large = 2_000_000 // edges and features, from which on one alone may fill the memory
	if x.base.Device != "cpu" || x.ds.Graph.NumEdges()+x.ds.X.NNZ() > large {
		return 1
	}
	if n := x.base.Threads; n > 0 {
		return n
	}
	return goruntime.GOMAXPROCS(0)
}

// outcome is what came of a training.
type outcome struct {
	score, seconds float64
	err            error
	ended          bool
}

// runAll runs trainings side by side. What counts of them is a beginning of the list: where the
// time is up for one, all is false, and those that come after it are forgotten.
func (x *chooser) runAll(ctx context.Context, todo []fit) (all bool, err error) {
	workers := min(x.workers(), len(todo))
	var mu sync.Mutex // guards what follows
	out := make([]outcome, len(todo))
	entered, stopped := 0, false
	enter := func() error { // what has ended, but for what comes after one that has not
		for ; entered < len(todo) && out[entered].ended; entered++ {
			if err := x.enter(todo[entered], &out[entered]); err != nil {
				stopped = true
				return err
			}
		}
		return nil
	}
	var group errgroup.Group
	group.SetLimit(workers)
	for i, f := range todo {
		group.Go(func() error {
			mu.Lock()
			if stopped || f.c.Failed != "" {
				out[i].ended = f.c.Failed != ""
				mu.Unlock()
				return nil
			}
			mu.Unlock()
			o := outcome{}
			begun := time.Now()
			ctx, cancel := x.limited(ctx, f.c, &mu)
			o.score, o.err = x.train(ctx, f, workers)
			o.seconds = time.Since(begun).Seconds()
			o.ended = o.err == nil || !run.IsInterrupted(ctx, o.err)
			mu.Lock()
			defer mu.Unlock()
			cancel()
			if out[i] = o; !o.ended {
				stopped = true
				return nil
			}
			return enter()
		})
	}
	if err := group.Wait(); err != nil {
		return false, err
	}
	if err := enter(); err != nil { // those of candidates that failed
		return false, err
	}
	if ctx.Err() != nil {
		return false, train.ErrInterrupted
	}
	return entered == len(todo), nil
}

// enter counts an outcome. The error of one that ends all is that of a fault that no other
// candidate would be spared.
func (x *chooser) enter(f fit, o *outcome) error {
	c := f.c
	if c.Failed != "" { // on an earlier resplit
		return nil
	}
	var diverged *train.NonFiniteError
	var tooLarge *budget.ExceededError
	switch {
	case o.err == nil && f.resplit < 0:
		c.Restarts = append(c.Restarts, rounded(o.score))
	case o.err == nil:
		c.Scores = append(c.Scores, rounded(o.score))
	case errors.As(o.err, &diverged) || errors.As(o.err, &tooLarge) || errors.Is(o.err, errNoAUC) || refused(o.err):
		c.Failed = o.err.Error()
	default:
		return fmt.Errorf("%s: %w", c.Name, o.err)
	}
	x.slowest = x.slowestWith(c, o.seconds)
	x.report.Trials++
	if x.Progress != nil {
		x.Progress(x.report.Trials, c)
	}
	return x.write()
}

var errNoAUC = errors.New("its probabilities are not finite, so they have no AUC")

// train trains a candidate on a resplit and returns its score there.
func (x *chooser) train(ctx context.Context, f fit, workers int) (float64, error) {
	split := data.Split{Train: x.pool.train, Val: x.pool.val}
	if f.resplit >= 0 {
		split = x.pool.resplit(x.draws.Sub("resplit").At(uint64(f.resplit)))
	}
	s, err := x.setup(f.c)
	if err != nil {
		return 0, err
	}
	s, err = s.On(x.pool.ds, &split, func(c *config.Config) {
		c.Train.Seed = x.seed + max(0, f.resplit)
		c.Train.Restart += f.restart
		if workers > 1 {
			c.Train.Threads = 1
		}
	})
	if err != nil {
		return 0, err
	}
	memory := x.Memory
	if memory == 0 {
		memory, _ = budget.Default()
	}
	r, err := s.Train(ctx, run.TrainOptions{Executor: x.Executor, Memory: memory / int64(workers), Evidence: &x.evidence})
	if err != nil {
		return 0, err
	}
	t := r.Result.Test
	if f.resplit < 0 {
		t = r.Result.Val
	}
	switch x.base.Select { // one measure for all, whatever keeps the epochs of a candidate
	case "macro_f1":
		return t.MacroF1, nil
	case "auc":
		if t.AUC == nil { // there are nodes of two classes
			return 0, errNoAUC
		}
		return *t.AUC, nil
	default:
		return t.Accuracy, nil
	}
}
