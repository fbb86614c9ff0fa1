package runtime

import "fmt"

// replay is what the planned executor keeps on a device that records work. The
// first run behind a change of sizes or addresses queues every operation; the
// next one is recorded; those behind it are one call each.
type replay struct {
	settled   bool // a run has gone by since the last change
	recording Recording
}

// forget drops the recording, whose addresses and sizes do not hold any more.
func (r *replay) forget() error {
	rec := r.recording
	*r = replay{}
	if rec == nil {
		return nil
	}
	return rec.Close()
}

// runThere runs the program on a device with a memory of its own.
func (e *planned) runThere(step uint64) error {
	a := e.p.accel
	if err := a.SetStep(step); err != nil {
		return fmt.Errorf("@%s: %w", e.p.fn.Name, err)
	}
	if e.timed || e.check { // something to do between operations
		return e.execute(e.code, step)
	}
	if e.replay.recording == nil && e.replay.settled {
		rec, err := a.Record(func() error { return e.execute(e.code, step) })
		if err != nil {
			return err
		}
		e.replay.recording = rec
	}
	if e.replay.recording == nil {
		e.replay.settled = true
		return e.execute(e.code, step)
	}
	if err := e.replay.recording.Replay(); err != nil {
		return fmt.Errorf("@%s, as a recording of %d operations: %w", e.p.fn.Name, len(e.code), err)
	}
	return nil
}

// close gives back the memory on a device of its own.
func (e *planned) close() error {
	a := e.p.accel
	err := e.replay.forget()
	if e := a.Memory().Release(&e.mem.arena); err == nil {
		err = e
	}
	for _, s := range e.p.sizers {
		for _, b := range s.there {
			if b != nil {
				if e := a.Memory().Release(b); err == nil {
					err = e
				}
			}
		}
	}
	return err
}

// place is where an imported buffer lies, to see that it has moved.
type place struct {
	elements uintptr
	in, out  ResidentCSR
}

func placeOf(b *Buffer) place {
	p := place{elements: b.At.Elements}
	if b.At.In != nil {
		p.in, p.out = *b.At.In, *b.At.Out
	}
	return p
}

// bring imports a buffer and reports whether it lies elsewhere than before, on a
// device with a memory of its own.
func (p *program) bring(c *cell, b *Buffer) (moved bool, err error) {
	if err := p.device.Import(c.view, b); err != nil || p.accel == nil {
		return false, err
	}
	was := c.at
	c.at = placeOf(c.view)
	return c.at != was, nil
}

// stamp says which contents a sizer has seen.
type stamp struct {
	from    *Buffer
	changed uint64
}

// stampOf returns the stamp of what a sizer reads, on a device with a memory of
// its own.
func (p *program) stampOf(view *Buffer) stamp {
	for _, in := range p.inputs {
		if in.view == view {
			return stamp{in.bound, in.bound.res.changed}
		}
	}
	return stamp{view, view.res.changed} // another sizer's, brought anew
}

// unseen reports whether a sizer must run again: always on a device that shares
// the host's memory, where what is bound may change in place.
func (p *program) unseen(s *sizer) bool {
	if p.accel == nil {
		return true
	}
	now := [2]stamp{p.stampOf(s.in[0]), p.stampOf(s.in[1])}
	was := s.seen
	s.seen = now
	return now != was
}

// send brings what a sizer has found to a device with a memory of its own.
func (p *program) send(s *sizer) (moved bool, err error) {
	f := &s.field
	if s.there[0] == nil {
		s.there = [3]*Buffer{Block(&f.Structure), I64(nil, 0), I64(nil, 0)}
	}
	s.there[1].I64, s.there[2].I64 = f.Sources, f.Entries
	for i, b := range s.there {
		copy(b.Dims, s.out[i].view.Dims)
		p.accel.Memory().Changed(b)
		m, err := p.bring(s.out[i], b)
		if err != nil {
			return false, err
		}
		moved = moved || m
		p.accel.Memory().Changed(s.out[i].view) // for sizers that read it
	}
	return moved, nil
}
