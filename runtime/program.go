package runtime

import (
	"fmt"

	"github.com/gsrc-dev/gsrc/ir"
	"github.com/gsrc-dev/gsrc/passes"
	"github.com/gsrc-dev/gsrc/rng"
)

// program is a function with the kernels of its operations and the sizes of its values.
type program struct {
	module   *ir.Module
	fn       *ir.Func
	device   Device
	runner   Runner
	inputs   []*input       // arguments in order, then the parameters that are read
	ops      []*Instruction // in program order
	slots    map[*ir.Value]*slot
	sym      *symbols
	check    bool       // results for NaN and infinities
	shapeOps []*shapeOp // operations that find sizes, in program order
	pads     bool       // what shape operations find is padded
	padded   bool       // batches are, so that inputs have few sizes

	// Since memory was last laid out: sizes that the program found are others, or those
	// and places of padded inputs; those of other inputs are.
	resized, moved bool
}

// slot is a value of the program while it runs.
type slot struct {
	value *ir.Value
	dims  []dim
	view  *Buffer // what kernels read and write
	root  *slot   // of a view, whose memory it is in the end
	n     int     // elements stored
	at    place   // where an imported value lies in a device's own memory
}

// base is the slot whose memory the value lies in.
func (c *slot) base() *slot {
	if c.root != nil {
		return c.root
	}
	return c
}

// input is an argument or a parameter.
type input struct {
	*slot
	bound *Buffer // what the caller bound, nil if nothing
}

// newProgram finds the kernels of a function on a device.
func newProgram(m *ir.Module, f *ir.Func, d Device, seed rng.Stream) (*program, error) {
	p := &program{module: m, fn: f, device: d, slots: map[*ir.Value]*slot{}, sym: newSymbols()}
	seen := map[string]bool{}
	for _, v := range append(append([]*ir.Value{}, f.Args...), f.Params(m)...) {
		if seen[v.Name] {
			return nil, fmt.Errorf("@%s: %s is the name of an argument and of a parameter; inputs are bound by name, so rename one", f.Name, v.Name)
		}
		seen[v.Name] = true
		if t := v.Type.DType; t != ir.F32 && t != ir.I64 {
			return nil, fmt.Errorf("@%s: %s is %s; programs run on f32 and i64 values", f.Name, v.Ref(), v.Type)
		}
		p.inputs = append(p.inputs, &input{slot: p.slot(v)})
	}
	uses := f.Uses()
	for i, op := range f.Body {
		kernel, err := d.Kernel(op)
		if err != nil {
			return nil, fmt.Errorf("@%s: operation %d, %s: %w", f.Name, i, op, err)
		}
		o := &Instruction{Call: Call{Op: op, In: make([]*Buffer, len(op.Operands))}, p: p, kernel: kernel, random: op.Draws(), in: make([]*slot, len(op.Operands))}
		if o.random {
			o.Stream = seed.Sub(op.Str("stream"))
		}
		for k, v := range op.Operands {
			if v != nil {
				o.in[k] = p.slots[v]
				o.In[k] = o.in[k].view
			}
		}
		for _, r := range op.Results {
			c := p.slot(r)
			o.outs = append(o.outs, c)
			o.Out = append(o.Out, c.view)
			o.unread = append(o.unread, uses[r] == 0)
		}
		p.ops = append(p.ops, o)
		if op.Def.Sizes {
			if err := p.addShapeOp(o); err != nil {
				return nil, fmt.Errorf("@%s: operation %d, %s: %w", f.Name, i, op, err)
			}
		}
	}
	if d.Pads() {
		p.pads = len(p.shapeOps) > 0 && p.paddable()
		p.padded = f.Attrs.Bool(passes.Padded)
	}
	p.runner = d.Attach(&Program{p})
	return p, nil
}

func (p *program) slot(v *ir.Value) *slot {
	c := &slot{value: v, dims: p.sym.parse(v.Type.Dims), view: &Buffer{DType: v.Type.DType, Dims: make([]int, v.Type.Rank())}}
	if v.Type.Layout == ir.CSR {
		c.view.Sparse = &SparseMatrix{}
	}
	p.slots[v] = c
	return c
}

// load imports what is bound to the inputs and notes whether any size or sparse
// structure differs from the last time.
func (p *program) load() error {
	changed := &p.moved
	if p.padded { // a kind of its own, which it may have been before
		changed = &p.resized
	}
	for _, in := range p.inputs {
		b, v := in.bound, in.view
		if b == nil {
			return fmt.Errorf("%s is not bound", in.value.Ref())
		}
		if b.Graph != nil && (b.Dims[0] != b.Graph.N || b.Dims[1] != b.Graph.E) {
			return fmt.Errorf("%s: %w", in.value.Ref(), b.check())
		}
		for i, d := range b.Dims {
			if v.Dims[i] != d {
				v.Dims[i], *changed = d, true
			}
		}
		if v.Sparse != nil && (v.Sparse.ByRow != b.Sparse.ByRow || in.n != b.len()) {
			in.n, *changed = b.len(), true
		}
		v.file = b.file
		moved, err := p.bring(in.slot, b)
		if err != nil {
			return fmt.Errorf("%s: %w", in.value.Ref(), err)
		}
		*changed = *changed || moved
	}
	return nil
}

// resolve computes the sizes of all values from those of the inputs.
func (p *program) resolve() error {
	p.sym.reset()
	for _, in := range p.inputs {
		if err := p.sym.bind(in.value, in.dims, in.view.Dims); err != nil {
			return err
		}
	}
	for _, s := range p.shapeOps {
		for i, c := range s.out {
			if err := p.sym.bind(s.Op.Results[i], c.dims, c.view.Dims); err != nil {
				return opError(p.fn, &s.Call, err)
			}
		}
	}
	for _, o := range p.ops {
		if o.Op.Def.Sizes {
			continue
		}
		for i, c := range o.outs {
			for k := range c.dims {
				n, ok := p.sym.value(&c.dims[k])
				if !ok {
					return opError(p.fn, &o.Call, fmt.Errorf("dimension %s of result %d is not that of any input", c.dims[k].text, i))
				}
				c.view.Dims[k] = n
			}
			c.n = count(c.view.Dims)
			if s := c.view.Sparse; s != nil { // the structure is the operand's
				from := o.in[0]
				s.ByRow, s.ByCol = from.view.Sparse.ByRow, from.view.Sparse.ByCol
				c.view.Device.In, c.view.Device.Out = from.view.Device.In, from.view.Device.Out
				c.n = from.n
			}
		}
	}
	return nil
}
