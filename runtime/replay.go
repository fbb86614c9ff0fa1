package runtime

import (
	"errors"
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
