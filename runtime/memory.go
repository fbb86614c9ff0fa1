package runtime

import (
	goruntime "runtime"
	"slices"

	"github.com/gsrc-dev/gsrc/internal/memplan"
	"github.com/gsrc-dev/gsrc/ir"
	"github.com/gsrc-dev/gsrc/passes"
	"github.com/gsrc-dev/gsrc/runtime/kernels"
)

// memoryPlan is where the values of a program lie.
//
// place decides, once and without knowing sizes, from which instruction to which
// each value is needed, and which results are written over an operand that dies
// there. layout gives every allocation an offset in one arena such that allocations which
// are needed at the same time do not overlap; a kernel's workspace is a value
// that lives for one instruction.
//
// Sizes that change within the room that an allocation has change no offset. An allocation
// whose size varies from step to step by itself (that of a block), or
// that has outgrown its room, gets more than it needs: matrices a sixteenth, and
// vectors, which are small and of which those by edges vary most, a half.
//
// Only a function that the pass schedule has marked shares memory. In others
// every value keeps memory of its own.
type memoryPlan struct {
	shared      bool
	values      []assignment
	work        []workspace
	allocations []allocation
	end         int // the time after the last instruction

	arena Buffer
	size  int // bytes of the arena
	live  int
	laid  bool
}

// assignment is a value and the allocation it lies in.
type assignment struct {
	slot       *slot
	allocation int
}

// workspace is the scratch memory of an instruction, or where it is saved what that leaves for its
// gradients.
type workspace struct {
	at         *Instruction
	saved      bool
	allocation int
	view       Buffer
	floats     int
	pool       kernels.Scratch
}

// allocation is memory that is in use from instruction first to last: of one value
// after the other, where they are written in place.
type allocation struct {
	first, last int
	varies      bool // from step to step
	matrix      bool
	need        int // bytes for the sizes of now
	room        int // bytes laid out
	at          int // offset
}

// place finds the allocations of a program: of constants, which are computed when
// sizes change; of what instructions compute; of their workspaces.
func (m *memoryPlan) place(e *arenaExecutor) {
	m.shared = e.p.fn.Attrs.Str(passes.Memory) == passes.Shared
	m.arena.DType = ir.F32
	m.end = len(e.code)
	last := map[*slot]int{} // the last instruction that reads it
	for k, i := range e.code {
		for _, c := range i.in {
			if c != nil {
				last[c.base()] = k
			}
		}
	}
	for _, i := range e.once {
		last[i.outs[0]] = m.end
	}
	for _, in := range e.p.inputs {
		last[in.slot] = m.end
	}
	for _, s := range e.p.shapeOps {
		for _, c := range s.out {
			last[c] = m.end
		}
	}
	for _, r := range e.p.fn.Results {
		last[e.p.slots[r.Value].base()] = m.end
	}
	varies := e.p.varying()
	at := map[*slot]int{}
	put := func(c *slot, k int) {
		if !m.shared {
			k = -1
		}
		at[c] = k
		if k < 0 {
			at[c] = len(m.allocations)
			m.allocations = append(m.allocations, allocation{})
		}
		m.values = append(m.values, assignment{c, at[c]})
	}
	for _, i := range e.once {
		put(i.outs[0], -1)
		m.allocations[at[i.outs[0]]] = allocation{first: 0, last: m.end, varies: varies(i.outs[0])}
	}
	for k, i := range e.code {
		var dying []*slot
		for _, c := range i.in {
			if c != nil && last[c.base()] == k {
				dying = append(dying, c.base())
			}
		}
		for _, c := range i.outs {
			if over := overwritten(i, dying); over != nil {
				put(c, at[over])
			} else {
				put(c, -1)
				m.allocations[at[c]].first = k
			}
			p := &m.allocations[at[c]]
			p.last = max(p.last, k, last[c])
			p.varies = p.varies || varies(c)
			p.matrix = p.matrix || len(c.dims) > 1
		}
		m.work = append(m.work, workspace{at: i, allocation: len(m.allocations), view: Buffer{DType: ir.F32}})
		m.allocations = append(m.allocations, allocation{first: k, last: k, matrix: true, varies: slices.ContainsFunc(i.in, varies) || slices.ContainsFunc(i.outs, varies)})
		if l := i.saved; l != nil {
			if n := slices.IndexFunc(m.work, func(w workspace) bool { return w.saved && w.at.saved == l }); n >= 0 {
				m.allocations[m.work[n].allocation].last = k
			} else {
				m.work = append(m.work, workspace{at: i, saved: true, allocation: len(m.allocations), view: Buffer{DType: ir.F32}})
				m.allocations = append(m.allocations, allocation{first: k, last: k, matrix: true, varies: slices.ContainsFunc(i.in, varies)})
			}
		}
	}
	if !m.shared {
		for k := range m.allocations {
			m.allocations[k].first, m.allocations[k].last = 0, m.end
		}
	}
}

// foundSizes are the symbols whose sizes the program finds itself.
func (p *program) foundSizes() map[int]bool {
	found := map[int]bool{}
	for _, s := range p.shapeOps {
		for _, c := range s.out {
			for _, d := range c.dims {
				for _, t := range d.terms {
					found[t] = true
				}
			}
		}
	}
	for _, in := range p.inputs {
		for _, d := range in.dims {
			for _, t := range d.terms {
				delete(found, t)
			}
		}
	}
	return found
}

// varying tells which slots have sizes that the program finds itself.
func (p *program) varying() func(*slot) bool {
	found := p.foundSizes()
	return func(c *slot) bool {
		return c != nil && slices.ContainsFunc(c.dims, func(d dim) bool {
			return slices.ContainsFunc(d.terms, func(t int) bool { return found[t] })
		})
	}
}

// overwritten returns the dying operand whose memory the result may take, or nil.
func overwritten(i *Instruction, dying []*slot) *slot {
	if len(i.outs) != 1 {
		return nil
	}
	out := i.outs[0].value.Type
	for _, r := range dying {
		fits := r.value.Type.Equal(out) // not a part of it
		for k, c := range i.in {
			// Every operand that lies in this memory must be read place by place.
			if c != nil && c.base() == r && !(i.Op.InPlace(k) && c.value.Type.Equal(out)) {
				fits = false
			}
		}
		if fits {
			return r
		}
	}
	return nil
}

// layout gives every allocation its offset for the sizes that the slots have now, and
// reports whether it moved them.
func (m *memoryPlan) layout() (moved bool) {
	for k := range m.allocations {
		m.allocations[k].need = 0
	}
	m.measure()
	return m.arrange()
}

// measure makes the need of every allocation at least that of the sizes of now.
func (m *memoryPlan) measure() {
	need := func(k, bytes int) { m.allocations[k].need = max(m.allocations[k].need, bytes) }
	for _, v := range m.values {
		need(v.allocation, v.slot.bytes())
	}
	for k := range m.work {
		w := &m.work[k]
		if w.saved {
			w.floats = w.at.savedFloats()
		} else {
			floats, pool := w.at.p.device.Workspace(&w.at.Call)
			w.floats, w.pool = floats, w.pool.Max(pool)
		}
		need(w.allocation, 4*w.floats)
	}
}

// arrange lays the allocations out, unless they fit where they are: it then reports false.
func (m *memoryPlan) arrange() bool {
	fits, varies := m.laid, false
	for k := range m.allocations {
		p := &m.allocations[k]
		varies = varies || p.varies
		if p.need <= p.room {
			continue
		}
		fits = false
		p.room = p.need
		if m.laid || p.varies {
			p.room += p.slack()
		}
	}
	if fits {
		return false
	}
	spans := make([]memplan.Span, len(m.allocations))
	for k, p := range m.allocations {
		spans[k] = memplan.Span{Size: p.room, First: p.first, Last: p.last}
	}
	offsets, size := memplan.Layout(spans, alignment)
	if size > m.size {
		m.size = size
		if m.laid || varies { // so that the next layout still fits the arena
			m.size += size / 32 / alignment * alignment
		}
	}
	for k := range m.allocations {
		m.allocations[k].at = offsets[k]
	}
	m.live = memplan.Live(spans, alignment)
	m.laid = true
	return true
}

// slack is the room that an allocation gets beyond its need.
func (p *allocation) slack() int {
	if p.matrix {
		return p.need / 16
	}
	return p.need / 2
}

// largeArena is how many bytes of an arena that another takes the place of are given back before.
const largeArena = 32 << 20

// leave lets go of an arena of the host that is large and does not suffice any more, so that it
// is not there beside the next one.
func (m *memoryPlan) leave(views, live []view) {
	if old := 4 * cap(m.arena.F32); old < largeArena || old >= m.size {
		return
	}
	m.arena.F32 = nil
	for _, v := range m.values {
		v.slot.view.forget()
	}
	for _, v := range slices.Concat(views, live) {
		v.slot.view.forget()
	}
	for k := range m.work {
		w := &m.work[k]
		w.view.F32, w.at.scratch = nil, nil
		if w.saved {
			w.at.saved.mem = nil
		}
		if w.at.fused != nil {
			clear(w.at.fused.chain.Inputs)
		}
	}
	goruntime.GC()
}

// forget makes a view one of nothing.
func (b *Buffer) forget() {
	if b.F32, b.I64 = nil, nil; b.Sparse != nil {
		b.Sparse.Values = nil
	}
}

// provide makes the arena large enough and every value a view of it.
func (m *memoryPlan) provide(d Device) error {
	if err := d.Reserve(&m.arena, (m.size+3)/4); err != nil {
		return err
	}
	for _, v := range m.values {
		d.View(v.slot.view, &m.arena, m.allocations[v.allocation].at, v.slot.n)
	}
	for k := range m.work {
		w := &m.work[k]
		d.View(&w.view, &m.arena, m.allocations[w.allocation].at, w.floats)
		if w.saved {
			w.at.saved.mem = w.view.F32
		} else {
			w.at.scratch, w.at.extra, w.at.work = w.view.F32, 0, w.view.Device.Elements
		}
	}
	return nil
}

// plan describes the layout.
func (m *memoryPlan) plan() Plan {
	p := Plan{Bytes: m.size, Live: m.live, Values: len(m.values)}
	for _, v := range m.values {
		p.Unshared += v.slot.bytes()
	}
	for _, w := range m.work {
		p.Unshared += 4 * w.floats
		if w.floats > 0 && !w.saved {
			p.Values++
		}
	}
	for _, q := range m.allocations {
		if q.room > 0 {
			p.Buffers++
		}
	}
	return p
}

// pool returns what the kernels need of the pool's buffers.
func (m *memoryPlan) pool() (s kernels.Scratch) {
	for _, w := range m.work {
		s = s.Max(w.pool)
	}
	return s
}

// bytes returns the size of what a slot stores.
func (c *slot) bytes() int {
	if c.value.Type.DType == ir.I64 {
		return 8 * c.n
	}
	return 4 * c.n
}

// held returns the bytes that the plan has allocated: the arena, and workspace
// that a kernel asked for beyond what Device.Workspace asked for.
func (m *memoryPlan) held() int {
	n := 4 * cap(m.arena.F32)
	for _, w := range m.work {
		if !w.saved {
			n += 4 * w.at.extra
		}
	}
	return n
}
