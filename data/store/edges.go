package store

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"
)

// Edges says how edges become a graph.
type Edges struct {
	Nodes    int64
	Directed bool
	// Weighted tells that edges have weights, Planted that weights other than 0 mark
	// edges that were planted, and are none.
	Weighted, Planted bool
	// Merge is what weight equal edges have: first (or empty), sum, mean or max.
	Merge string
	// Symmetric tells that the source lists undirected edges in both directions, so that
	// only a missing one is counted.
	Symmetric bool
	// Total is how many edges come, for progress; 0 if that is not known.
	Total int64
}

// Add takes an edge from u to v. It does not keep NaNs.
type Add func(u, v int32, w float32) error

// Edges writes the arrays of the graph of the edges that list adds, in any order, again in
// the same order after an interruption. Before its first edge list may set Weighted and
// Merge. It is not called where an interruption came after the last edge, so that nothing
// else may depend on it.
func (b *Builder) Edges(o Edges, list func(o *Edges, add Add) error) error {
	pairs := newSorter(b.temp, "pairs", true, b.opts.Memory/2)
	pairs.runs = b.state.Runs["pairs"]
	for _, n := range pairs.runs {
		pairs.skip += n
	}
	pairs.written = func(runs []int64) error {
		b.state.Runs["pairs"] = runs
		return b.save()
	}
	note, err := b.Stage("list", func() (string, error) {
		var n int64
		err := list(&o, func(u, v int32, w float32) error {
			if u < 0 || v < 0 || int64(u) >= o.Nodes || int64(v) >= o.Nodes {
				return fmt.Errorf("an edge from node %d to node %d, but nodes are numbered 0..%d", u, v, o.Nodes-1)
			}
			if n++; n&0xfffff == 0 {
				if err := b.progress("edges listed", n, o.Total); err != nil {
					return err
				}
			}
			direction := uint64(0)
			if !o.Directed && u > v {
				u, v, direction = v, u, 1
			}
			if !o.Weighted && !o.Planted {
				w = 1
			}
			return pairs.add(uint64(u)<<32|uint64(v)<<1|direction, math.Float32bits(w))
		})
		if err == nil {
			err = pairs.flush()
		}
		o.Weighted = o.Weighted || o.Merge == "sum" && !o.Planted
		text, bad := json.Marshal(&o)
		return string(text), errors.Join(err, bad)
	})
	if err == nil {
		err = json.Unmarshal([]byte(note), &o)
	}
	pairs.free()
	if err != nil {
		return err
	}
	turned := newSorter(b.temp, "turned", o.Weighted, b.opts.Memory/2)
	if _, err := b.Stage("edges", func() (string, error) { return "", b.mergePairs(o, pairs, turned) }); err != nil {
		return err
	}
	turned.runs = b.state.Runs["turned"]
	turned.free()
	if _, err = b.Stage("entries", func() (string, error) { return "", b.entries(o, turned) }); err != nil {
		return err // the sorted runs stay for the next try
	}
	pairs.remove()
	turned.remove()
	return nil
}

// mergePairs writes edges, weights, loops and planted, and sorts the edges by their targets.
func (b *Builder) mergePairs(o Edges, pairs, turned *sorter) error {
	out, err := b.arrays(Array{Name: "edges", Type: Int32, Shape: []int64{2}}, Array{Name: "weights", Type: when(o.Weighted, Float32)},
		Array{Name: "loops", Type: when(o.Weighted, Uint64)}, Array{Name: "planted", Type: when(o.Planted, Uint8)})
	if err != nil {
		return err
	}
	var total, seen int64
	for _, n := range pairs.runs {
		total += n
	}
	m := &b.state.Merged
	*m = Merged{}
	edges := int64(0)
	// The weights of the edges that are equal, by direction, as they came.
	var same [2][]float32
	var pair uint64
	first := float32(0)
	flush := func() error {
		n := len(same[0]) + len(same[1])
		if n == 0 {
			return nil
		}
		u, v := int32(pair>>31), int32(pair&(1<<31-1))
		w := first
		if o.Weighted {
			w = MergedWeight(o.Merge, first, slices.Values(append(same[0], same[1]...)))
		}
		if u == v {
			m.SelfLoops++
			if !o.Symmetric {
				m.Duplicates += int64(n - 1)
			}
			return Put(out[2], uint64(u)<<32|uint64(math.Float32bits(w)))
		}
		for _, list := range same {
			m.Duplicates += int64(max(len(list)-1, 0))
		}
		both := len(same[0]) > 0 && len(same[1]) > 0
		switch {
		case o.Directed:
		case o.Symmetric && !both:
			m.OneWay++
		case !o.Symmetric && both:
			m.Reversed++
		}
		differs := func(x float32) bool { return x != first }
		if o.Weighted && (slices.ContainsFunc(same[0], differs) || slices.ContainsFunc(same[1], differs)) {
			m.Conflicts++
		}
		edges++
		mark := uint8(1)
		if o.Planted && (slices.Contains(same[0], 0) || slices.Contains(same[1], 0)) {
			mark = 0
		}
		return cmp.Or(Put(out[0], u, v), Put(out[1], w), Put(out[3], mark), turned.add(uint64(v)<<32|uint64(u)<<1, math.Float32bits(w)))
	}
	err = pairs.merge(b.opts.Memory/4, func(key uint64, val uint32) error {
		if seen++; seen&0xfffff == 0 {
			if err := b.progress("edges sorted", seen, total); err != nil {
				return err
			}
		}
		w := math.Float32frombits(val)
		if key>>1 != pair || seen == 1 {
			if err := flush(); err != nil {
				return err
			}
			pair, first, same[0], same[1] = key>>1, w, same[0][:0], same[1][:0]
		}
		same[key&1] = append(same[key&1], w)
		return nil
	})
	if err == nil {
		err = flush()
	}
	if err == nil {
		err = turned.flush()
	}
	if err != nil {
		return err
	}
	b.state.Edges, b.state.Runs["turned"] = edges, turned.runs
	return closeAll(out)
}

// when is a type of an array that is there only where something holds.
func when(holds bool, kind string) string {
	if holds {
		return kind
	}
	return ""
}

// MergedWeight is what weight equal edges have together, as [Edges.Merge] says, of the first
// one's and those of all.
func MergedWeight(how string, first float32, all iter.Seq[float32]) float32 {
	sum, top, n := 0.0, float32(0), 0
	for w := range all {
		sum, top, n = sum+float64(w), max(top, w), n+1
	}
	switch how {
	case "sum":
		return float32(min(sum, math.MaxFloat32))
	case "mean":
		return float32(sum / float64(n))
	case "max":
		return top
	}
	return first
}

// entries writes the rows of the graph: of a node first the sources below it, from the
// edges turned round, and in an undirected graph those above it, from the edges.
func (b *Builder) entries(o Edges, turned *sorter) error {
	out, err := b.arrays(Array{Name: "indptr", Type: Int64}, Array{Name: "sources", Type: Int32}, Array{Name: "entry_weights", Type: when(o.Weighted, Float32)})
	if err != nil {
		return err
	}
	f, r, err := b.open("edges")
	if err != nil {
		return err
	}
	defer f.Close()
	weights := r
	if o.Weighted {
		g, w, err := b.open("weights")
		if err != nil {
			return err
		}
		defer g.Close()
		weights = w
	}
	above, left := [2]int32{}, b.state.Edges
	w := [1]int32{}
	read := func() error {
		if o.Directed || left == 0 {
			above[0] = -1
			return nil
		}
		left--
		if err := read32(r, above[:]); err != nil || !o.Weighted {
			return err
		}
		return read32(weights, w[:])
	}
	if err := read(); err != nil {
		return err
	}
	entry := int64(0)
	put := func(source int32, weight uint32) error {
		entry++
		return cmp.Or(Put(out[1], source), Put(out[2], math.Float32frombits(weight)))
	}
	row := int32(0) // that is open
	if err := Put(out[0], int64(0)); err != nil {
		return err
	}
	// end closes the rows before one.
	end := func(before int64) error {
		for ; int64(row) < before; row++ {
			for above[0] == row {
				if err := cmp.Or(put(above[1], uint32(w[0])), read()); err != nil {
					return err
				}
			}
			if err := Put(out[0], entry); err != nil {
				return err
			}
		}
		return nil
	}
	var seen int64
	err = turned.merge(b.opts.Memory/4, func(key uint64, val uint32) error {
		if seen++; seen&0xfffff == 0 {
			if err := b.progress("rows written", seen, b.state.Edges); err != nil {
				return err
			}
		}
		if err := end(int64(key >> 32)); err != nil {
			return err
		}
		return put(int32(key>>1&(1<<31-1)), val)
	})
	if err == nil {
		err = end(o.Nodes)
	}
	if err != nil {
		return err
	}
	return closeAll(out)
}
