package cuda

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/gsrc-dev/gsrc/ir"
	"github.com/gsrc-dev/gsrc/rng"
	"github.com/gsrc-dev/gsrc/runtime"
	"github.com/gsrc-dev/gsrc/runtime/kernels"
)

// A chain is a program of elementwise steps for the kernel gsrc_chain: see
// src/elementwise.cu, which has the numbers of operations and arguments too.
type chain struct {
	dst    uintptr
	shape  []int
	inputs []chainInput
	steps  []uint64
	regs   int

	draws  bool
	stream rng.Stream
}

type chainInput struct {
	at   uintptr
	mode kernels.BroadcastMode // whose numbers are those of src/elementwise.cu
}

// pointwise are the operations that are one step, by their numbers there, those of the
// enumeration in src/elementwise.cu.
var pointwise = map[string]int{
	"neg": 0, "exp": 1, "log": 2, "sqrt": 3, "rsqrt": 4, "square": 5, "sigmoid": 6, "tanh": 7, "relu": 8, "elu": 9, "leaky_relu": 10, "pow": 11,
	"add": 13, "sub": 14, "mul": 15, "div": 16, "maximum": 17, "minimum": 18, "logaddexp": 19, "greater": 20, "greater_equal": 21, "less": 22,
	"relu_grad": 23, "elu_grad": 24, "leaky_relu_grad": 25, "uniform": 26, "normal": 27, "dropout": 28,
}

// opCopy is a step that is no operation.
const opCopy = 12

// Arguments of a step beside inputs, which are 0 to 25.
const (
	argRegister = 32
	argLast     = 64
	argNumber   = 65
	argResult   = 66
	noRegister  = 255
)

const (
	chainInputs = 26
	chainSteps  = 32
)

func step(op, reg, a, b int, number float32) uint64 {
	return uint64(op) | uint64(reg)<<8 | uint64(a)<<16 | uint64(b)<<24 | uint64(math.Float32bits(number))<<32
}

// one is a chain of one step over the operands.
func one(op int, number float32, dst *runtime.Buffer, in ...*runtime.Buffer) *chain {
	c := &chain{dst: dst.Device.Elements, shape: dst.Dims, steps: []uint64{step(op, noRegister, 0, 1, number)}}
	for _, b := range in {
		c.input(b)
	}
	return c
}

func (c *chain) input(b *runtime.Buffer) {
	c.inputs = append(c.inputs, chainInput{b.Device.Elements, runtime.Mode(b.Dims, c.shape)})
}

// launch queues the chain.
func (c *chain) launch(q *steps) {
	rows, cols := runtime.Matrix(c.shape)
	n := rows * cols
	if n == 0 {
		return
	}
	if len(c.inputs) > chainInputs || len(c.steps) > chainSteps {
		q.err = cmp.Or(q.err, fmt.Errorf("an expression of %d operands and %d steps is longer than a kernel takes (%d and %d): compile with fewer operations fused", len(c.inputs), len(c.steps), chainInputs, chainSteps))
		return
	}
	var args [8 + chainInputs + chainSteps]uint64
	var modes, at uint64
	for i, x := range c.inputs {
		modes |= uint64(x.mode) << (2 * i)
		args[8+i] = Ptr(x.at)
	}
	if c.draws {
		at = Ptr(q.Step())
	}
	copy(args[8+chainInputs:], c.steps)
	copy(args[:], []uint64{Ptr(c.dst), Int(n), Int(max(cols, 1)), Word(modes), Int(len(c.inputs)), Int(len(c.steps)), Word(uint64(c.stream)), at})
	width := 128
	for width > 32 && c.regs*width*16 > 40<<10 {
		width /= 2
	}
	q.launch("gsrc_chain", blocks((n+3)/4, width), [3]uint32{uint32(width), 1, 1}, uint32(c.regs*width*16), args[:]...)
}

// compile makes the steps of an expression whose operands are those of the call
// from position first on. Its product, if it has one, is what the result holds.
// What only the next step reads stays with the thread; what is read later gets a
// register.
func (c *chain) compile(k *runtime.Call, first int) {
	e := k.Op.Expr()
	for _, b := range k.In[first:] {
		c.input(b)
	}
	c.stream, c.draws = k.Stream, e.Draws()

	// Steps with at most one number each, which may be an attribute too.
	type node struct {
		op     int
		args   [2]ir.ExprArg
		count  int
		number float32
	}
	var nodes []node
	of := make([]int, len(e.Steps)) // the node of each step
	constant := func(v float64) ir.ExprArg {
		nodes = append(nodes, node{op: opCopy, args: [2]ir.ExprArg{{Kind: ir.ExprNumber}}, count: 1, number: float32(v)})
		return ir.ExprArg{Kind: ir.ExprResult, Index: len(nodes) - 1}
	}
	for i, s := range e.Steps {
		n := node{op: pointwise[s.Def.Name], count: len(s.Args), number: float32(s.Attr)}
		if n.op == pointwise["dropout"] {
			n.number = max(n.number, 0)
		}
		free := s.Def.NumberAttr() == nil // the number is not an attribute's
		for j, a := range s.Args {
			switch {
			case a.Kind == ir.ExprResult:
				a.Index = of[a.Index]
			case a.Kind == ir.ExprNumber && free:
				n.number, free = float32(a.Value), false
			case a.Kind == ir.ExprNumber:
				a = constant(a.Value)
			}
			n.args[j] = a
		}
		nodes = append(nodes, n)
		of[i] = len(nodes) - 1
	}
	out := e.Out
	if out.Kind == ir.ExprResult {
		out.Index = of[out.Index]
	}
	if out.Kind != ir.ExprResult || out.Index != len(nodes)-1 {
		nodes = append(nodes, node{op: opCopy, args: [2]ir.ExprArg{out}, count: 1, number: float32(out.Value)})
	}
	last := make([]int, len(nodes)) // the last reader beyond the next node
	for i, n := range nodes {
		for _, a := range n.args[:n.count] {
			if a.Kind == ir.ExprResult && i > a.Index+1 {
				last[a.Index] = i
			}
		}
	}
	reg := make([]int, len(nodes))
	var free []int
	for i, n := range nodes {
		arg := [2]int{}
		for j, a := range n.args[:n.count] {
			switch {
			case a.Kind == ir.ExprOperand:
				arg[j] = a.Index
			case a.Kind == ir.ExprNumber:
				arg[j] = argNumber
			case a.Kind == ir.ExprProduct:
				arg[j] = argResult
			case a.Index == i-1:
				arg[j] = argLast
			default:
				arg[j] = argRegister + reg[a.Index]
			}
		}
		for _, a := range n.args[:n.count] { // arguments are read before the register is written
			if a.Kind == ir.ExprResult && last[a.Index] == i && !slices.Contains(free, reg[a.Index]) {
				free = append(free, reg[a.Index])
			}
		}
		to := noRegister
		if last[i] > 0 {
			if len(free) == 0 {
				free = append(free, c.regs)
				c.regs++
			}
			to, free = free[len(free)-1], free[:len(free)-1]
			reg[i] = to
		}
		c.steps = append(c.steps, step(n.op, to, arg[0], arg[1], n.number))
	}
}
