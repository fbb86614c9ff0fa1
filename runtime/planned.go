package runtime

import (
	"fmt"
	"slices"
	"sort"
	"time"

	"gorgonia.org/gorgonia"

	"github.com/gsrc-dev/gsrc/ir"
)

// planned walks the graph once and then only calls kernels.
//
// Its instructions are the graph's nodes in the order in which they were made,
// which is the order of the program: passes that schedule operations are obeyed.
// An operation that only renames its operand becomes a view of the operand's
// memory; one that depends on sizes alone runs when sizes change. Every other
// value gets a slot of memory, which the next value takes over once the last
// reader has run; an elementwise operation writes over an operand that dies there.
type planned struct {
	p      *program
	check  bool // for NaN and infinities
	timed  bool
	trace  *Trace   // nil unless somebody wants one
	record bool     // this run goes to the trace
	code   []*instr // run every time
	once   []*instr // run when sizes change
	views  []view   // of computed values, set when sizes change
	live   []view   // of inputs, set before every run

	assigned bool
	owned    []owned
	slots    []slot

	at *instr // being run, for errors
}

type instr struct {
	Call
	op   *graphOp
	in   []*cell // operands, nil where absent
	outs []*cell

	runs int // with Options.Profile
	time time.Duration
}

// view is a cell that shares the memory of its operand, all of it or the rows
// from one on. root is the cell whose memory it is in the end.
type view struct {
	cell, operand, root *cell
	from                int
}

// owned is a cell with memory in a slot.
type owned struct {
	cell *cell
	slot int
}

type slot struct {
	mem  *Buffer
	need int // elements of the largest value in it
}

// viewOps give their operand under another type or for the gradient rules only.
var viewOps = []string{"stop_gradient", "scale_grad", "unsqueeze", "squeeze", "slice"}

// sizeOps depend on sizes and attributes only.
var sizeOps = []string{"fill", "count", "edge_ones"}

// overwriting operations compute each element of the result from the elements
// at the same place, so that the result may lie over an operand.
var overwriting = []string{
	"add", "sub", "mul", "div", "maximum", "minimum", "logaddexp", "greater", "greater_equal", "less",
	"neg", "exp", "log", "sqrt", "rsqrt", "square", "sigmoid", "tanh", "relu", "elu", "leaky_relu", "pow",
	"relu_grad", "elu_grad", "leaky_relu_grad", "dropout",
	"softmax", "log_softmax", "l1_normalize", "l2_normalize", // a row is read before it is written
}

// isView reports whether the operation gives its operand as it is.
func isView(op *ir.Op) bool {
	switch op.Name() {
	case "to_dense", "broadcast_to":
		return op.Operands[0].Type.Equal(op.Results[0].Type)
	}
	return slices.Contains(viewOps, op.Name())
}

func newPlanned(p *program, opts Options) *planned {
	e := &planned{p: p, check: opts.CheckFinite, timed: opts.Profile || opts.Trace != nil, trace: opts.Trace}
	cells := map[int64][]*cell{} // by node: one, or those of a bundle
	for _, in := range p.inputs {
		cells[p.nodes[in.value].ID()] = []*cell{in.cell}
	}
	nodes := slices.Clone(p.graph.AllNodes())
	sort.Slice(nodes, func(i, j int) bool { return nodes[i].ID() < nodes[j].ID() })
	root := map[*cell]*cell{}
	inputs := map[*cell]bool{}
	for _, in := range p.inputs {
		inputs[in.cell] = true
	}
	for _, s := range p.sizers { // found before the run, like inputs
		for _, c := range s.out {
			inputs[c] = true
		}
	}
	for _, n := range nodes {
		var operands []*cell
		for from := p.graph.From(n.ID()); from != nil && from.Next(); {
			if c := from.Node().(*gorgonia.Node); c != p.stepAt {
				operands = append(operands, cells[c.ID()]...)
			}
		}
		switch op := n.Op().(type) {
		case *projection:
			cells[n.ID()] = operands[op.index : op.index+1]
		case *graphOp:
			i := &instr{Call: Call{Op: op.op, In: make([]*Buffer, len(op.op.Operands)), Out: op.call.Out, Pool: opts.Pool}, op: op}
			i.in = make([]*cell, len(op.op.Operands))
			for k, v := range op.op.Operands {
				if v != nil {
					i.in[k], operands = operands[0], operands[1:]
					i.In[k] = i.in[k].view
				}
			}
			for _, r := range op.op.Results {
				i.outs = append(i.outs, p.cells[r])
			}
			cells[n.ID()] = i.outs
			switch {
			case op.op.Def.Sizes:
			case isView(op.op):
				v := view{cell: i.outs[0], operand: i.in[0], root: i.in[0]}
				if root[v.root] != nil {
					v.root = root[v.root]
				}
				root[v.cell] = v.root
				if op.op.Name() == "slice" {
					v.from = op.op.Int("from")
				}
				if inputs[v.root] {
					e.live = append(e.live, v)
				} else {
					e.views = append(e.views, v)
				}
			case slices.Contains(sizeOps, op.op.Name()):
				e.once = append(e.once, i)
			default:
				e.code = append(e.code, i)
			}
		}
	}
	return e
}

// assign decides which slot each computed value lives in, from the sizes of the
// first run. Later sizes change the slots' sizes only.
func (e *planned) assign() {
	root := map[*cell]*cell{}
	for _, v := range append(slices.Clone(e.views), e.live...) {
		root[v.cell] = v.root
	}
	rootOf := func(c *cell) *cell {
		if r := root[c]; r != nil {
			return r
		}
		return c
	}
	const forever = int(^uint(0) >> 1)
	last := map[*cell]int{} // position of the last reader
	for k, i := range e.code {
		for _, c := range i.in {
			if c != nil {
				last[rootOf(c)] = k
			}
		}
	}
	for _, in := range e.p.inputs {
		last[in.cell] = forever
	}
	for _, s := range e.p.sizers {
		for _, c := range s.out {
			last[c] = forever
		}
	}
	for _, r := range e.p.fn.Results {
		last[rootOf(e.p.cells[r.Value])] = forever
	}
	slotOf := map[*cell]int{}
	put := func(c *cell, s int) {
		slotOf[c] = s
		e.owned = append(e.owned, owned{c, s})
		e.slots[s].need = max(e.slots[s].need, c.n)
	}
	fresh := func(c *cell) int {
		e.slots = append(e.slots, slot{mem: &Buffer{DType: c.value.Type.DType}})
		return len(e.slots) - 1
	}
	for _, i := range e.once { // constants keep their memory
		last[i.outs[0]] = forever
		put(i.outs[0], fresh(i.outs[0]))
	}
	var free []int
	for k, i := range e.code {
		var dying []*cell // whose memory is free after this instruction
		for _, c := range i.in {
			if c == nil {
				continue
			}
			if r := rootOf(c); last[r] == k && !slices.Contains(dying, r) {
				dying = append(dying, r)
			}
		}
		if r := e.overwritten(i, dying, rootOf); r != nil {
			put(i.outs[0], slotOf[r])
			dying = slices.DeleteFunc(dying, func(c *cell) bool { return c == r })
		} else {
			for _, c := range i.outs {
				s := e.bestFit(&free, c)
				if s < 0 {
					s = fresh(c)
				}
				put(c, s)
			}
		}
		for _, c := range i.outs {
			if _, read := last[c]; !read { // nobody reads it
				dying = append(dying, c)
			}
		}
		for _, c := range dying {
			free = append(free, slotOf[c])
		}
	}
	e.assigned = true
}

// overwritten returns the dying operand whose memory the result may take, or nil.
func (e *planned) overwritten(i *instr, dying []*cell, rootOf func(*cell) *cell) *cell {
	if !slices.Contains(overwriting, i.Op.Name()) {
		return nil
	}
	out := i.outs[0].value.Type
	for _, r := range dying {
		fits := true
		for _, c := range i.in {
			// Every operand that lies in this memory must be read place by place.
			if c != nil && rootOf(c) == r && !c.value.Type.Equal(out) {
				fits = false
			}
		}
		if fits {
			return r
		}
	}
	return nil
}

// bestFit takes the free slot that suits a value best: the smallest that holds
// it, else the largest, which then grows. −1 if none is free.
func (e *planned) bestFit(free *[]int, c *cell) int {
	best := -1
	for k, s := range *free {
		if e.slots[s].mem.DType != c.value.Type.DType {
			continue
		}
		if best < 0 {
			best = k
			continue
		}
		have, held := e.slots[s].need, e.slots[(*free)[best]].need
		if have >= c.n && (held < c.n || have < held) || have < c.n && held < c.n && have > held {
			best = k
		}
	}
	if best < 0 {
		return -1
	}
	s := (*free)[best]
	*free = slices.Delete(*free, best, best+1)
	return s
}

func (e *planned) allocate() error {
	if !e.assigned {
		e.assign()
	}
	for i := range e.slots {
		e.slots[i].need = 0
	}
	for _, o := range e.owned {
		e.slots[o.slot].need = max(e.slots[o.slot].need, o.cell.n)
	}
	for i := range e.slots {
		if s := &e.slots[i]; s.need > 0 {
			if err := e.p.device.Reserve(s.mem, s.need); err != nil {
				return fmt.Errorf("@%s: %w", e.p.fn.Name, err)
			}
		}
	}
	for _, o := range e.owned {
		e.p.device.View(o.cell.view, e.slots[o.slot].mem, o.cell.n)
	}
	for _, v := range e.views {
		if err := e.show(v); err != nil {
			return err
		}
	}
	return e.execute(e.once, 0)
}

// show makes a view's buffer that of its operand, or some rows of it. Views are
// shown in program order, so the operand has its memory.
func (e *planned) show(v view) error {
	b := v.cell.view
	if err := e.p.device.Import(b, v.operand.view); err != nil {
		return fmt.Errorf("@%s: %w", e.p.fn.Name, err)
	}
	if v.cell.value.Def.Name() == "slice" {
		at := v.from * rowWidth(b)
		b.F32 = b.F32[at : at+v.cell.n]
	}
	return nil
}

func (e *planned) run(step uint64) error {
	for _, v := range e.live {
		if err := e.show(v); err != nil {
			return err
		}
	}
	e.record = e.trace != nil && e.trace.begin(e.p.fn.Name)
	err := e.execute(e.code, step)
	e.record = false // what runs when sizes change is no run
	return err
}

func (e *planned) execute(code []*instr, step uint64) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = opError(e.p.fn, &e.at.Call, fmt.Errorf("kernel failed: %v", r))
		}
	}()
	for _, i := range code {
		e.at = i
		if i.op.random {
			i.Key = i.op.stream.At(step)
		}
		var start time.Time
		if e.timed {
			start = time.Now()
		}
		if err := i.op.kernel(&i.Call); err != nil {
			return opError(e.p.fn, &i.Call, err)
		}
		if e.timed {
			took := time.Since(start)
			i.time += took
			i.runs++
			if e.record {
				e.trace.add(e.p.fn.Name, &i.Call, step, start, took)
			}
		}
		if e.check {
			if err := checkFinite(&i.Call); err != nil {
				return opError(e.p.fn, &i.Call, err)
			}
		}
	}
	return nil
}

func (e *planned) buffer(v *ir.Value) *Buffer { return e.p.cells[v].view }

func (e *planned) plan() Plan {
	p := Plan{Operations: len(e.p.ops), Instructions: len(e.code), Buffers: len(e.slots)}
	size := func(d ir.DType) int {
		if d == ir.I64 {
			return 8
		}
		return 4
	}
	for _, s := range e.slots {
		p.Bytes += s.need * size(s.mem.DType)
	}
	for _, o := range e.owned {
		p.Unshared += o.cell.n * size(o.cell.value.Type.DType)
	}
	return p
}
