package cuda

import (
	"errors"
	"math"
	"time"

	"github.com/gsrc-dev/gsrc/runtime/cuda/driver"
)

// How often Time repeats work: in one graph, so often that it takes about timedFor,
// and the graph a few times, of which the fastest counts.
const (
	timedFor    = 2 * time.Millisecond
	mostRepeats = 20
	timings     = 3
)

// Time returns how long the GPU takes for what queue queues; see [runtime.Timer]. The
// work is recorded as a CUDA graph, many times over, and events before and after a
// replay give the time, with what lies between kernels of a graph.
func (d *Device) Time(queue func() error) (took time.Duration, err error) {
	// Once as it is: what a library or the driver loads at first use is there then.
	if err := queue(); err != nil {
		return 0, err
	}
	if err := d.Sync(); err != nil {
		return 0, err
	}
	begin := time.Now()
	if err := errors.Join(queue(), d.Sync()); err != nil {
		return 0, err
	}
	repeats := min(int(timedFor/max(time.Since(begin), 1))+1, mostRepeats)
	r, err := d.Record(func() error {
		for range repeats {
			if err := queue(); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	var marks [2]*driver.Event
	for i := range marks {
		if marks[i], err = d.ctx.NewEvent(); err != nil {
			return 0, err
		}
		defer func() { err = errors.Join(err, marks[i].Close()) }()
	}
	best := math.Inf(1)
	for range timings {
		// While the first replay runs, the second and its marks are queued.
		if err := errors.Join(r.Replay(), d.stream.Record(marks[0]), r.Replay(), d.stream.Record(marks[1]), marks[1].Synchronize()); err != nil {
			return 0, err
		}
		ms, err := marks[1].Milliseconds(marks[0])
		if err != nil {
			return 0, err
		}
		best = min(best, float64(ms))
	}
	return time.Duration(best / float64(repeats) * float64(time.Millisecond)), d.Sync()
}
