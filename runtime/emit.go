package runtime

import (
	"fmt"
	"hash"
	"hash/fnv"

	"github.com/chewxy/hm"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/gsrc-dev/gsrc/ir"
)

// graphOp is an operation of the IR as an operation of a gorgonia graph.
//
// Its operands are the nodes of the IR operands that are present. Operations
// without operands and random ones also read the step number: gorgonia's nodes
// need an operand, and what is random differs between steps.
type graphOp struct {
	p      *program
	id     int // position in the function
	salt   int // see program.emit
	op     *ir.Op
	kernel Kernel
	random bool
	call   Call // Out is filled; the TapeMachine fills In

	in    []hm.Type
	check bool  // look for NaN and infinities after the TapeMachine ran it
	err   error // what the TapeMachine's run of it gave
}

// Arity returns the number of operands, for gorgonia.
func (o *graphOp) Arity() int { return len(o.in) }

// Type returns the function type. Gorgonia recycles it, so each call makes one.
func (o *graphOp) Type() hm.Type {
	ts := append([]hm.Type{}, o.in...)
	return hm.NewFnType(append(ts, nodeType(o.op.Results[0].Type))...)
}

// InferShape returns the shape of the first result. Gorgonia knows no symbolic
// dimensions; a symbol stands as 1 in the graph. Values carry their real shapes.
func (o *graphOp) InferShape(...gorgonia.DimSizer) (tensor.Shape, error) {
	return graphShape(o.op.Results[0].Type), nil
}

// Do runs the kernel, for the TapeMachine. Results are the operation's own
// buffers, which no other operation writes.
func (o *graphOp) Do(inputs ...gorgonia.Value) (gorgonia.Value, error) {
	k := 0
	for i, v := range o.op.Operands {
		if v != nil {
			o.call.In[i] = inputs[k].(*Buffer)
			k++
		}
	}
	if o.random {
		o.call.Key = o.call.Stream.At(uint64(inputs[k].(*Buffer).I64[0]))
	}
	// A panic here would end the process: the machine runs in a goroutine of its own.
	o.err = protect(o.kernel, &o.call)
	if o.err == nil && o.check {
		o.err = checkFinite(o.p.device, &o.call)
	}
	if o.err != nil {
		return nil, o.err
	}
	if len(o.call.Out) == 1 {
		return o.call.Out[0], nil
	}
	return &bundle{Buffer: o.call.Out[0], outs: o.call.Out}, nil
}

// ReturnsPtr and CallsExtern are false so that gorgonia allocates nothing for
// the result, and OverwritesInput is −1 so that it gives it its own register.
func (o *graphOp) ReturnsPtr() bool { return false }

// CallsExtern: see ReturnsPtr.
func (o *graphOp) CallsExtern() bool { return false }

// OverwritesInput: see ReturnsPtr.
func (o *graphOp) OverwritesInput() int { return -1 }

// WriteHash writes what tells this operation from all others. Gorgonia merges
// nodes whose hashes are equal, so position and salt are part of it.
func (o *graphOp) WriteHash(h hash.Hash) { fmt.Fprintf(h, "gsrc:%d:%d:%s", o.salt, o.id, o.op) }

// Hashcode returns the hash of WriteHash.
func (o *graphOp) Hashcode() uint32 { return hashOf(o) }

func (o *graphOp) String() string { return o.op.String() }

// projection picks one result of an operation that has several.
type projection struct {
	of    *graphOp
	index int
}

func (q *projection) Arity() int { return 1 }

func (q *projection) Type() hm.Type {
	r := q.of.op.Results
	return hm.NewFnType(nodeType(r[0].Type), nodeType(r[q.index].Type))
}

func (q *projection) InferShape(...gorgonia.DimSizer) (tensor.Shape, error) {
	return graphShape(q.of.op.Results[q.index].Type), nil
}

func (q *projection) Do(inputs ...gorgonia.Value) (gorgonia.Value, error) {
	return inputs[0].(*bundle).outs[q.index], nil
}

func (q *projection) ReturnsPtr() bool     { return false }
func (q *projection) CallsExtern() bool    { return false }
func (q *projection) OverwritesInput() int { return -1 }

func (q *projection) WriteHash(h hash.Hash) {
	fmt.Fprintf(h, "gsrc.project:%d:%d:%d", q.of.salt, q.of.id, q.index)
}

func (q *projection) Hashcode() uint32 { return hashOf(q) }

func (q *projection) String() string {
	return fmt.Sprintf("result %d of %s", q.index, q.of.op.Name())
}

func hashOf(o interface{ WriteHash(hash.Hash) }) uint32 {
	h := fnv.New32a()
	o.WriteHash(h)
	return h.Sum32()
}

func graphShape(t ir.Type) tensor.Shape {
	s := make(tensor.Shape, 0, t.Rank())
	for _, d := range t.Dims {
		n, ok := d.Size()
		if !ok {
			n = 1
		}
		s = append(s, n)
	}
	return s
}

// emit builds the gorgonia graph. Node hashes have 32 bits and equal ones are
// merged without a look, so a graph with a collision (one in some thousands for
// the largest programs) is built again with another salt. The salt stands before
// what it salts: FNV, the hash in use, carries a collision on to any suffix.
func (p *program) emit() error {
	for salt := range 16 {
		want, err := p.emitSalted(salt)
		if err != nil {
			return fmt.Errorf("@%s: %w", p.fn.Name, err)
		}
		seen := map[uint32]bool{}
		for _, n := range p.graph.AllNodes() {
			seen[n.Hashcode()] = true
		}
		if len(seen) == want && len(p.graph.AllNodes()) == want {
			return nil
		}
	}
	return fmt.Errorf("@%s: no graph without hash collisions found for %d operations", p.fn.Name, len(p.ops))
}

// emitSalted builds the graph and returns how many nodes it should have.
func (p *program) emitSalted(salt int) (nodes int, err error) {
	defer func() { // gorgonia's constructors panic
		if r := recover(); r != nil {
			err = fmt.Errorf("building the gorgonia graph: %v", r)
		}
	}()
	g := gorgonia.NewGraph(gorgonia.WithGraphName(p.fn.Name))
	p.graph, p.nodes = g, map[*ir.Value]*gorgonia.Node{}
	arg := func(name string, t ir.Type) *gorgonia.Node {
		nodes++
		return gorgonia.NewUniqueNode(gorgonia.WithType(nodeType(t)), gorgonia.In(g), gorgonia.WithShape(graphShape(t)...), gorgonia.WithName(fmt.Sprintf("%d:%s", salt, name)))
	}
	p.stepAt = arg("step", ir.T(ir.I64))
	for _, in := range p.inputs {
		p.nodes[in.value] = arg(inputName(in.value), in.value.Type)
	}
	for _, o := range p.ops {
		o.salt, o.in = salt, nil
		var children []*gorgonia.Node
		for _, v := range o.op.Operands {
			if v != nil {
				children = append(children, p.nodes[v])
				o.in = append(o.in, nodeType(v.Type))
			}
		}
		if o.random || len(children) == 0 {
			children = append(children, p.stepAt)
			o.in = append(o.in, nodeType(ir.T(ir.I64)))
		}
		n, err := gorgonia.ApplyOp(o, children...)
		if err != nil {
			return 0, fmt.Errorf("%s: %w", o.op, err)
		}
		nodes++
		if len(o.op.Results) == 1 {
			p.nodes[o.op.Results[0]] = n
			continue
		}
		for i, r := range o.op.Results {
			q, err := gorgonia.ApplyOp(&projection{of: o, index: i}, n)
			if err != nil {
				return 0, fmt.Errorf("%s: %w", o.op, err)
			}
			nodes++
			p.nodes[r] = q
		}
	}
	return nodes, nil
}
