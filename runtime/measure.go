package runtime

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// Timer is the clock of a device.
type Timer interface {
	// Time returns how long the device takes for the work that queue queues, without
	// what queueing costs the host. The work is done many times over: queue is called
	// several times, and must queue the same each time.
	Time(queue func() error) (time.Duration, error)
}

// Measure returns the time of each operation that a run executes, and of the search for
// blocks where that is queued, longest first, by the device's clock. Each is repeated where it stands in the program, on the
// inputs of the last run, of which there must be one, or those of the next that
// [Executable.Prepare] has brought. Those that write over an operand then go on from
// their own results, so that the values are lost: there is no result to be read until
// the next run.
func (x *Executable) Measure(t Timer, step uint64) ([]OpTime, error) {
	e, ok := x.exec.(*arenaExecutor)
	if !ok || !x.ran {
		return nil, fmt.Errorf("runtime: @%s: nothing has run that could be measured", x.Name())
	}
	x.ran = false
	if err := x.p.runner.inferDynamicShapes(); err != nil { // of what Prepare has brought
		return nil, fmt.Errorf("runtime: %w", err)
	}
	if err := x.layOut(); err != nil {
		return nil, err
	}
	if err := x.p.runner.begin(step); err != nil {
		return nil, fmt.Errorf("runtime: @%s: %w", x.Name(), err)
	}
	var ts []OpTime
	for i, search := range x.p.runner.searches() {
		took, err := t.Time(search)
		s := x.p.shapeOps[i]
		if err != nil {
			return nil, opError(x.p.fn, &s.Call, err)
		}
		ts = append(ts, OpTime{s.Op, 1, took, extents(s.in[:]), extents([]*Buffer{s.out[0].view, s.out[1].view, s.out[2].view})})
	}
	for _, i := range e.code {
		took, err := t.Time(func() error { return e.execute([]*Instruction{i}, step) })
		if err != nil {
			return nil, fmt.Errorf("runtime: @%s: %w", x.Name(), err)
		}
		ts = append(ts, OpTime{i.Op, 1, took, extents(i.In), extents(i.Out)})
	}
	slices.SortStableFunc(ts, func(a, b OpTime) int { return cmp.Compare(b.Time, a.Time) })
	return ts, nil
}
