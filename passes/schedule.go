package passes

import (
	"fmt"
	"slices"

	"github.com/gsrc-dev/gsrc/ir"
)

// Memory is the function attribute that says how the values of a function get
// memory: [Shared] lets those whose lifetimes do not meet have the same.
const (
	Memory = "memory"
	Shared = "shared"
)

// scheduleOps marks every function as one whose values share memory, and puts its
// operations in an order in which less of it is in use at one time. Where each
// value lies is decided by the runtime, which knows all sizes.
func scheduleOps(m *ir.Module, info DataInfo) error {
	for _, f := range m.Funcs {
		if f.Attrs == nil {
			f.Attrs = ir.Attrs{}
		}
		f.Attrs[Memory] = Shared
		s := newSchedule(f, info)
		before := s.measure()
		if s.improve() {
			f.Body = s.order()
		}
		if after := s.measure(); 100*after.peak < 99*before.peak {
			info.say("schedule", f, fmt.Sprintf("another order of the operations needs %.0f %% of the memory", 100*float64(after.peak)/float64(before.peak)))
		}
	}
	return nil
}

// say remarks on a decision about a function.
func (f DataInfo) say(pass string, fn *ir.Func, line string) {
	if f.Remark != nil {
		f.Remark(pass, "@"+fn.Name+": "+line)
	}
}

// unknownSize stands for a dimension that DataInfo does not know, where it does not
// know the number of nodes either.
const unknownSize = 4096

// bytes estimates the size of a value. Of sparse matrices one element in 32 is
// taken to be stored.
func (f DataInfo) bytes(t ir.Type) int64 {
	if t.Layout == ir.Structure {
		return 0
	}
	n := int64(4)
	if t.DType == ir.I64 {
		n = 8
	}
	for _, d := range t.Dims {
		size, err := d.Resolve(f.Dims)
		if err != nil {
			if size = f.Dims["N"]; size == 0 {
				size = unknownSize
			}
		}
		n *= int64(size)
	}
	if t.Layout == ir.CSR {
		n /= 32
	}
	return n
}

// schedule is an order of a function's operations with the lifetimes of their
// values.
type schedule struct {
	ops    []*node // in order
	values []*value
	live   []int64 // scratch of measure
}

// node is an operation at its place in the order.
type node struct {
	op            *ir.Op
	at            int
	needs, users  []*node // whose results it reads, who reads its
	reads, writes []*value
}

// value is memory that one node writes. Results that only rename their operand
// are the operand.
type value struct {
	size    int64
	by      *node
	readers []*node
	result  bool // of the function: needed to the end
}

func newSchedule(f *ir.Func, info DataInfo) *schedule {
	s := &schedule{live: make([]int64, len(f.Body)+2)}
	of, by := map[*ir.Value]*value{}, map[*ir.Value]*node{}
	for k, op := range f.Body {
		n := &node{op: op, at: k}
		s.ops = append(s.ops, n)
		for _, v := range op.Operands {
			if by[v] == nil { // an argument, a parameter or absent
				continue
			}
			if d := by[v]; !slices.Contains(n.needs, d) {
				n.needs = append(n.needs, d)
				d.users = append(d.users, n)
			}
			if w := of[v]; !slices.Contains(n.reads, w) {
				n.reads = append(n.reads, w)
				w.readers = append(w.readers, n)
			}
		}
		for _, r := range op.Results {
			by[r] = n
			if _, view := op.View(); view {
				of[r] = &value{by: n} // of an argument: no memory of the function's own
				if len(n.reads) > 0 {
					of[r] = n.reads[0]
				}
				continue
			}
			w := &value{by: n, size: info.bytes(r.Type)}
			of[r] = w
			s.values = append(s.values, w)
			n.writes = append(n.writes, w)
		}
	}
	for _, r := range f.Results {
		if w := of[r.Value]; w != nil {
			w.result = true
		}
	}
	return s
}

func (s *schedule) order() []*ir.Op {
	body := make([]*ir.Op, len(s.ops))
	for _, n := range s.ops {
		body[n.at] = n.op
	}
	return body
}

// use is what an order needs: the most bytes that are alive at one operation,
// and the sum over all operations.
type use struct{ peak, sum int64 }

func (u use) less(v use) bool { return u.peak < v.peak || u.peak == v.peak && u.sum < v.sum }

// last returns the position after which a value is dead.
func (s *schedule) last(v *value) int {
	if v.result {
		return len(s.ops)
	}
	at := v.by.at
	for _, r := range v.readers {
		at = max(at, r.at)
	}
	return at
}

func (s *schedule) measure() use {
	clear(s.live)
	for _, v := range s.values {
		s.live[v.by.at] += v.size
		s.live[s.last(v)+1] -= v.size
	}
	var u use
	now := int64(0)
	for _, d := range s.live[:len(s.ops)] {
		now += d
		u.peak = max(u.peak, now)
		u.sum += now
	}
	return u
}

// improve moves single operations down to just before their first reader, or up
// to just behind their last operand, where that makes lifetimes shorter and the
// peak no larger. An operation that makes much of little sinks; one that makes
// little of much, such as the product for a weight's gradient, rises. One that
// makes as much as it uses up sinks too, so that whole chains can. It leaves the
// best order that it came by and reports whether that is a new one.
func (s *schedule) improve() bool {
	now := s.measure()
	best, order, changed := now, slices.Clone(s.ops), false
	try := func(n *node, to int, least int64) {
		from := n.at
		if from == to || n.op.Def.Sizes || s.gain(n, to-from) < least {
			return
		}
		s.move(from, to)
		if u := s.measure(); u.peak <= now.peak {
			now = u
		} else {
			s.move(to, from)
		}
	}
	for range 4 {
		for k := len(s.ops) - 1; k >= 0; k-- {
			n := s.ops[k]
			to := len(s.ops) - 1
			for _, u := range n.users {
				to = min(to, u.at-1)
			}
			try(n, to, 0)
		}
		for k := range s.ops {
			n := s.ops[k]
			to := 0
			for _, d := range n.needs {
				to = max(to, d.at+1)
			}
			try(n, to, 1)
		}
		if !now.less(best) {
			break
		}
		best, order, changed = now, slices.Clone(s.ops), true
	}
	s.ops = order
	for k, n := range s.ops {
		n.at = k
	}
	return changed
}

// gain is how much memory an operation's move by that many places saves, at most.
func (s *schedule) gain(n *node, by int) int64 {
	saved := int64(0)
	for _, v := range n.writes {
		saved += v.size
	}
	for _, v := range n.reads {
		if s.last(v) == n.at {
			saved -= v.size
		}
	}
	return saved * int64(by)
}

// move takes the operation at one position to another.
func (s *schedule) move(from, to int) {
	n := s.ops[from]
	s.ops = slices.Insert(slices.Delete(s.ops, from, from+1), to, n)
	for k := min(from, to); k <= max(from, to); k++ {
		s.ops[k].at = k
	}
}
