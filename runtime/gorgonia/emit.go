package gorgonia

import (
	"fmt"
	"hash"
	"hash/fnv"
	"slices"

	"github.com/chewxy/hm"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/gsrc-dev/gsrc/ir"
	"github.com/gsrc-dev/gsrc/runtime"
)

// Graph is a function of the IR as a gorgonia graph.
type Graph struct {
	fn     *ir.Func
	expr   *gorgonia.ExprGraph
	inputs []*ir.Value // arguments in order, then the parameters that are read
	ops    []*graphOp  // as fn.Body
	nodes  map[*ir.Value]*gorgonia.Node
	step   *gorgonia.Node // the step number
}

// graphOp is an operation of the IR as an operation of a gorgonia graph.
//
// Its operands are the nodes of the IR operands that are present. Operations
// without operands and random ones also read the step number: gorgonia's nodes
// need an operand, and what is random differs between steps.
type graphOp struct {
	ownRegister
	id   int // position in the function
	salt int // see Emit
	op   *ir.Op
	in   []hm.Type

	// Of a graph that runs:
	instr *runtime.Instruction
	out   []*value // its results, which no other operation writes
	err   error    // what the run gave
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

// Do runs the kernel, on the TapeMachine. A panic would end the process, since the
// machine runs in a goroutine of its own; Run turns it into an error.
func (o *graphOp) Do(inputs ...gorgonia.Value) (gorgonia.Value, error) {
	k, step := 0, uint64(0)
	for i, v := range o.op.Operands {
		if v != nil {
			o.instr.In[i] = inputs[k].(*value).Buffer
			k++
		}
	}
	if k < len(inputs) {
		step = uint64(inputs[k].(*value).I64[0])
	}
	if o.err = o.instr.Run(step); o.err != nil {
		return nil, o.err
	}
	return o.out[0], nil
}

// ownRegister are the answers of an operation for which gorgonia allocates nothing, and
// whose result has a register of its own.
type ownRegister struct{}

func (ownRegister) ReturnsPtr() bool     { return false }
func (ownRegister) CallsExtern() bool    { return false }
func (ownRegister) OverwritesInput() int { return -1 }

// WriteHash writes what tells this operation from all others. Gorgonia merges
// nodes whose hashes are equal, so position and salt are part of it.
func (o *graphOp) WriteHash(h hash.Hash) { fmt.Fprintf(h, "gsrc:%d:%d:%s", o.salt, o.id, o.op) }

// Hashcode returns the hash of WriteHash.
func (o *graphOp) Hashcode() uint32 { return hashOf(o) }

func (o *graphOp) String() string { return o.op.String() }

// projection picks one result of an operation that has several.
type projection struct {
	ownRegister
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
	return inputs[0].(*value).all[q.index], nil
}

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

// Emit makes the gorgonia graph of a function of the module. Node hashes have 32
// bits and equal ones are merged without a look, so a graph with a collision (one in
// some thousands for the largest programs) is built again with another salt. The salt
// stands before what it salts: FNV, the hash in use, carries a collision on to any suffix.
func Emit(m *ir.Module, f *ir.Func) (*Graph, error) {
	for salt := range 16 {
		g, want, err := emitSalted(m, f, salt)
		if err != nil {
			return nil, fmt.Errorf("@%s: %w", f.Name, err)
		}
		seen := map[uint32]bool{}
		for _, n := range g.expr.AllNodes() {
			seen[n.Hashcode()] = true
		}
		if len(seen) == want && len(g.expr.AllNodes()) == want {
			return g, nil
		}
	}
	return nil, fmt.Errorf("@%s: no graph without hash collisions found for %d operations", f.Name, len(f.Body))
}

// emitSalted builds the graph and returns how many nodes it should have.
func emitSalted(m *ir.Module, f *ir.Func, salt int) (g *Graph, nodes int, err error) {
	defer func() { // gorgonia's constructors panic
		if r := recover(); r != nil {
			err = fmt.Errorf("building the gorgonia graph: %v", r)
		}
	}()
	expr := gorgonia.NewGraph(gorgonia.WithGraphName(f.Name))
	g = &Graph{fn: f, expr: expr, inputs: slices.Concat(f.Args, f.Params(m)), nodes: map[*ir.Value]*gorgonia.Node{}}
	arg := func(name string, t ir.Type) *gorgonia.Node {
		nodes++
		return gorgonia.NewUniqueNode(gorgonia.WithType(nodeType(t)), gorgonia.In(expr), gorgonia.WithShape(graphShape(t)...), gorgonia.WithName(fmt.Sprintf("%d:%s", salt, name)))
	}
	g.step = arg("step", ir.T(ir.I64))
	for _, v := range g.inputs {
		g.nodes[v] = arg(v.Ref(), v.Type)
	}
	apply := func(op gorgonia.Op, of *ir.Op, operands ...*gorgonia.Node) (*gorgonia.Node, error) {
		nodes++
		n, err := gorgonia.ApplyOp(op, operands...)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", of, err)
		}
		return n, nil
	}
	for id, op := range f.Body {
		o := &graphOp{id: id, salt: salt, op: op}
		g.ops = append(g.ops, o)
		var operands []*gorgonia.Node
		for _, v := range op.Operands {
			if v != nil {
				operands = append(operands, g.nodes[v])
				o.in = append(o.in, nodeType(v.Type))
			}
		}
		if op.Draws() || len(operands) == 0 {
			operands = append(operands, g.step)
			o.in = append(o.in, nodeType(ir.T(ir.I64)))
		}
		n, err := apply(o, op, operands...)
		if err != nil {
			return nil, 0, err
		}
		g.nodes[op.Results[0]] = n
		if len(op.Results) == 1 {
			continue
		}
		for i, r := range op.Results {
			if g.nodes[r], err = apply(&projection{of: o, index: i}, op, n); err != nil {
				return nil, 0, err
			}
		}
	}
	return g, nodes, nil
}
