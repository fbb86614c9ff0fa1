package data

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/gsrc-dev/gsrc/graph"
)

// Cache keeps what was read, so that many runs share one copy of their data,
// which must not be changed. It may be used by several goroutines at once: those
// that want the same data wait for one that reads them. A nil cache keeps
// nothing.
//
// A cache does not look at the files again: it is for as long as they stay as
// they are.
type Cache struct {
	// Limit is how many sets of data are kept, those that were used last; 0 is 16.
	Limit int

	mu      sync.Mutex
	entries map[string]*cached
	clock   int // uses so far
}

type cached struct {
	once sync.Once
	used int // when, by Cache.clock

	dataset    *Dataset
	collection *Collection
	err        error
}

// LoadAny is [LoadAny] by way of the cache.
func (c *Cache) LoadAny(path string, opts LoadOptions) (*Dataset, *Collection, error) {
	if c == nil {
		return LoadAny(path, opts)
	}
	e := c.entry("any " + opts.identity(path))
	e.once.Do(func() { e.dataset, e.collection, e.err = LoadAny(path, opts) })
	return e.dataset, e.collection, e.err
}

func (c *Cache) entry(key string) *cached {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.entries == nil {
		c.entries = map[string]*cached{}
	}
	e := c.entries[key]
	if e == nil {
		for limit := cmp.Or(max(c.Limit, 0), 16); len(c.entries) >= limit; {
			keys := slices.Collect(maps.Keys(c.entries))
			delete(c.entries, slices.MinFunc(keys, func(a, b string) int { return c.entries[a].used - c.entries[b].used }))
		}
		e = &cached{}
		c.entries[key] = e
	}
	c.clock++
	e.used = c.clock
	return e
}

// identity is equal for options with which a path gives the same data.
func (o LoadOptions) identity(path string) string {
	csbm := ""
	if path == Synthetic {
		if o.Synthetic != nil {
			csbm = fmt.Sprintf("%+v", *o.Synthetic)
		}
	} else if r, _ := graph.ParseRewiring(o.Edges); o.AddEdges == 0 && o.RemoveEdges == 0 && !r.Training {
		o.Seed = 0 // only what is generated, corrupted or cut where nodes train depends on it
	}
	o.Synthetic = nil
	return fmt.Sprintf("%q %s %+v", path, csbm, o)
}
