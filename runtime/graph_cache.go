package runtime

import (
	"errors"
	"slices"
)

// graphCache is what the arena executor keeps on a device that records work. The
// first run behind a change of addresses or of the inputs' sizes queues every
// operation; the next one is recorded; those behind it are one call each. Sizes that
// the program finds itself and those of padded batches, which differ from step to step,
// have a graph each: once they have all been seen, every step is a replay.
type graphCache struct {
	entries []*graphCacheEntry
	at      *graphCacheEntry // of this run
	clock   int
}

// graphCacheEntry is the runs with the same found sizes, and with padded inputs of the same sizes
// in the same places.
type graphCacheEntry struct {
	sizes   []int
	inputs  []extent
	settled bool // a run has gone by since the last change
	graph   CapturedGraph
	used    int // the clock when it last ran
}

// extent is how large an input is, and where it lies.
type extent struct {
	dims   []int
	stored int
	at     place
}

// maxGraphs bounds the recordings of a function; the one that was not used for
// longest goes when there is another.
const maxGraphs = 32

// enter makes the graphCacheEntry of the found sizes that of the next run.
func (r *graphCache) enter(p *program) error {
	r.clock++
	for _, k := range r.entries {
		if k.fits(p) {
			r.at, k.used = k, r.clock
			return nil
		}
	}
	k := &graphCacheEntry{used: r.clock}
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
	if len(r.entries) < maxGraphs {
		r.entries, r.at = append(r.entries, k), k
		return nil
	}
	oldest := 0
	for i, o := range r.entries {
		if o.used < r.entries[oldest].used {
			oldest = i
		}
	}
	was := r.entries[oldest].graph
	r.entries[oldest], r.at = k, k
	if was == nil {
		return nil
	}
	return was.Close()
}

// fits reports whether the found sizes are those of the graphCacheEntry.
func (k *graphCacheEntry) fits(p *program) bool {
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
func (r *graphCache) forget() error {
	var errs []error
	for _, k := range r.entries {
		if k.graph != nil {
			errs = append(errs, k.graph.Close())
		}
	}
	*r = graphCache{}
	return errors.Join(errs...)
}
