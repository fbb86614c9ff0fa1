package runtime

import (
	"errors"
	"fmt"
	"slices"
)

// replay is what the arena executor keeps on a device that records work. The
// first run behind a change of addresses or of the inputs' sizes queues every
// operation; the next one is recorded; those behind it are one call each. Sizes that
// the program finds itself and those of padded batches, which differ from step to step,
// have a recording each: once they have all been seen, every step is a replay.
type replay struct {
	kinds []*kind
	at    *kind // of this run
	clock int
}

// kind is the runs with the same found sizes, and with padded inputs of the same sizes
// in the same places.
type kind struct {
	sizes     []int
	inputs    []extent
	settled   bool // a run has gone by since the last change
	recording Recording
	used      int // the clock when it last ran
}

// extent is how large an input is, and where it lies.
type extent struct {
	dims   []int
	stored int
	at     place
}

// mostKinds bounds the recordings of a function; the one that was not used for
// longest goes when there is another.
const mostKinds = 32

// enter makes the kind of the found sizes that of the next run.
func (r *replay) enter(p *program) error {
	r.clock++
	for _, k := range r.kinds {
		if k.fits(p) {
			r.at, k.used = k, r.clock
			return nil
		}
	}
	k := &kind{used: r.clock}
	for _, s := range p.shapeOps {
		for _, c := range s.out {
			k.sizes = append(k.sizes, c.view.Dims...)
		}
	}
	if p.padded {
		for _, in := range p.inputs {
			k.inputs = append(k.inputs, extent{slices.Clone(in.view.Dims), in.n, in.at})
		}
	}
	if len(r.kinds) < mostKinds {
		r.kinds, r.at = append(r.kinds, k), k
		return nil
	}
	oldest := 0
	for i, o := range r.kinds {
		if o.used < r.kinds[oldest].used {
			oldest = i
		}
	}
	was := r.kinds[oldest].recording
	r.kinds[oldest], r.at = k, k
	if was == nil {
		return nil
	}
	return was.Close()
}

// fits reports whether the found sizes are those of the kind.
func (k *kind) fits(p *program) bool {
	i := 0
	for _, s := range p.shapeOps {
		for _, c := range s.out {
			for _, d := range c.view.Dims {
				if k.sizes[i] != d {
					return false
				}
				i++
			}
		}
	}
	for i, x := range k.inputs {
		if in := p.inputs[i]; in.n != x.stored || in.at != x.at || !slices.Equal(in.view.Dims, x.dims) {
			return false
		}
	}
	return true
}

// forget drops the recordings, whose addresses and sizes do not hold any more.
func (r *replay) forget() error {
	var errs []error
	for _, k := range r.kinds {
		if k.recording != nil {
			errs = append(errs, k.recording.Close())
		}
	}
	*r = replay{}
	return errors.Join(errs...)
}

// runThere runs the program on a device with a memory of its own.
func (e *arenaExecutor) runThere(step uint64) error {
	a := e.p.accel
	if err := a.SetStep(step); err != nil {
		return fmt.Errorf("@%s: %w", e.p.fn.Name, err)
	}
	if e.timed || e.p.check { // something to do between operations
		return e.execute(e.code, step)
	}
	k := e.replay.at
	if k.recording == nil && k.settled {
		rec, err := a.Record(func() error { return e.execute(e.code, step) })
		if err != nil {
			return err
		}
		k.recording = rec
	}
	if k.recording == nil {
		k.settled = true
		return e.execute(e.code, step)
	}
	if err := k.recording.Replay(); err != nil {
		return fmt.Errorf("@%s, as a recording of %d operations: %w", e.p.fn.Name, len(e.code), err)
	}
	return nil
}

// close gives back the memory on a device of its own.
func (e *arenaExecutor) close() error {
	a := e.p.accel
	err := e.replay.forget()
	if e := a.Memory().Release(&e.mem.arena); err == nil {
		err = e
	}
	for _, s := range e.p.shapeOps {
		for _, b := range s.there {
			if b != nil {
				if e := a.Memory().Release(b); err == nil {
					err = e
				}
			}
		}
	}
	if e.p.found != nil {
		if e := e.p.found.close(); err == nil {
			err = e
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
func (p *program) bring(c *slot, b *Buffer) (moved bool, err error) {
	if err := p.device.Import(c.view, b); err != nil || p.accel == nil {
		return false, err
	}
	was := c.at
	c.at = placeOf(c.view)
	return c.at != was, nil
}

// stamp says which contents a shape operation has seen.
type stamp struct {
	from    *Buffer
	changed uint64
}

// stampsOf returns the stamps of what a shape operation reads, on a device with a memory of
// its own.
func (p *program) stampsOf(s *shapeOp) (now [2]stamp) {
	if p.accel == nil {
		return now
	}
	for k, view := range s.in {
		now[k].from = view
		if view.res != nil {
			now[k].changed = view.res.changed // another shape operation's, brought anew
		}
		for _, in := range p.inputs {
			if in.view == view {
				now[k] = stamp{in.bound, in.bound.res.changed}
			}
		}
	}
	return now
}

// send brings what a shape operation has found to a device with a memory of its own. Within
// its memory there it lies where its sizes say.
func (p *program) send(s *shapeOp) error {
	f := &s.field
	if s.there[0] == nil {
		s.there = [3]*Buffer{Block(&f.Structure), I64(nil, 0), I64(nil, 0)}
	}
	s.there[1].I64, s.there[2].I64 = f.Sources, f.Entries
	m := p.accel.Memory()
	for i, b := range s.there {
		copy(b.Dims, s.out[i].view.Dims)
		was := m.of(b).block
		m.Changed(b)
		if _, err := p.bring(s.out[i], b); err != nil {
			return err
		}
		p.moved = p.moved || m.of(b).block != was
		m.Changed(s.out[i].view) // for shape operations that read it
	}
	return nil
}
