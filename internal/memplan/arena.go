// Package memplan lays values that live for a while out in one piece of memory,
// so that values whose lifetimes do not meet share bytes.
package memplan

import (
	"cmp"
	"slices"
)

// Span is a value: Size bytes that must be its own from time First to time Last,
// both included.
type Span struct {
	Size        int
	First, Last int
}

// Live returns the largest number of bytes that the spans need at one time. No
// layout can be smaller.
func Live(spans []Span, align int) int {
	type event struct{ at, size int }
	var events []event
	for _, s := range spans {
		n := up(s.Size, align)
		events = append(events, event{2 * s.First, n}, event{2*s.Last + 1, -n})
	}
	slices.SortFunc(events, func(a, b event) int { return cmp.Compare(a.at, b.at) })
	live, peak := 0, 0
	for _, e := range events {
		live += e.size
		peak = max(peak, live)
	}
	return peak
}

// Layout gives every span an offset, a multiple of align, such that spans which
// are alive at the same time do not overlap, and returns the offsets and the
// size of the whole. To find the smallest layout is NP-hard; the spans are placed
// one after the other, each into the tightest gap that what was placed before it
// leaves, in several orders (by size as Pisarchyk and Lee 2020, "Efficient memory
// management for deep neural net inference", by size times lifetime, by lifetime,
// and in order of First), and the best order counts.
func Layout(spans []Span, align int) (offsets []int, size int) {
	orders := []func(a, b Span) int{
		func(a, b Span) int { return cmp.Compare(b.Size, a.Size) },
		func(a, b Span) int { return cmp.Compare(b.Size*b.length(), a.Size*a.length()) },
		func(a, b Span) int { return cmp.Compare(b.length(), a.length()) },
		func(a, b Span) int { return cmp.Compare(a.First, b.First) },
	}
	least := Live(spans, align)
	for i, compare := range orders {
		order := make([]int, len(spans))
		for k := range order {
			order[k] = k
		}
		slices.SortStableFunc(order, func(a, b int) int { return compare(spans[a], spans[b]) })
		at, n := place(spans, order, align)
		if i == 0 || n < size {
			offsets, size = at, n
		}
		if size == least {
			break
		}
	}
	return offsets, size
}

func (s Span) length() int { return s.Last - s.First + 1 }

// place puts the spans down in the given order.
func place(spans []Span, order []int, align int) (offsets []int, size int) {
	offsets = make([]int, len(spans))
	var placed []int // by offset
	for _, k := range order {
		s := spans[k]
		if s.Size == 0 {
			continue
		}
		need, end := up(s.Size, align), 0
		at, gap := -1, 0
		for _, o := range placed {
			t := spans[o]
			if t.Last < s.First || s.Last < t.First {
				continue
			}
			if free := offsets[o] - end; free >= need && (at < 0 || free < gap) {
				at, gap = end, free
			}
			end = max(end, offsets[o]+up(t.Size, align))
		}
		if at < 0 {
			at = end
		}
		offsets[k] = at
		size = max(size, at+need)
		i, _ := slices.BinarySearchFunc(placed, at, func(o, at int) int { return cmp.Compare(offsets[o], at) })
		placed = slices.Insert(placed, i, k)
	}
	return offsets, size
}

func up(n, align int) int { return (n + align - 1) / align * align }
