package onnx

import (
	"math"

	"github.com/gsrc-dev/gsrc/ir"
)

// emitEdgeSoftmax writes the softmax over the edges into each node with maxima
// and sums over those edges, a column a head. An edge of weight 0 does not count:
// its score must not be what the others are measured by.
func emitEdgeSoftmax(e *emitter, op *ir.Op) value {
	scores := e.operand(op, 1)
	own := e.operand(op, 2)
	vector := op.Operands[1].Type.Rank() == 1
	if vector {
		scores, own = e.unsqueeze(scores, 1), e.unsqueeze(own, 1)
	}
	counted := scores
	var weight *tensor
	if op.Operands[3] != nil {
		w := e.edge(op, 3)
		if w.base != nil || w.dst != nil || w.src != nil { // else ones
			column := e.unsqueeze(e.perEdge(w), 1)
			weight = &column
			none := e.compare("Equal", column, e.floatConst(0))
			counted = e.op("Where", scores.dtype, scores.dims, []tensor{none, e.floatConst(-math.MaxFloat32), scores})
		}
	}
	into := e.aggregation(false)
	// The lowest number stands in for −∞, so that nothing is subtracted from itself.
	top := e.binary("Max", e.binary("Max", own, into.largest(counted)), e.floatConst(-math.MaxFloat32))
	// Only scores that do not count exceed the maximum.
	far := e.binary("Min", e.binary("Sub", scores, e.gather(top, e.list.dst)), e.floatConst(0))
	a := e.unary("Exp", far)
	if weight != nil {
		a = e.binary("Mul", a, *weight)
	}
	self := e.unary("Exp", e.binary("Sub", own, top))
	// A node without edges and without itself has a sum of 0, and shares of 0.
	sum := e.binary("Max", e.binary("Add", into.total(a), self), e.floatConst(math.SmallestNonzeroFloat32*(1<<23)))
	a = e.binary("Div", a, e.gather(sum, e.list.dst))
	self = e.binary("Div", self, sum)
	if vector {
		a, self = e.squeeze(a, 1), e.squeeze(self, 1)
	}
	e.values[op.Results[1]] = value{t: self}
	return value{edge: &edgeValue{base: &a}}
}

// headProduct writes an spmm whose values have a column a head: every block of
// columns of a message is multiplied by its head's value.
func (e *emitter) headProduct(op *ir.Op, v *edgeValue, h tensor) value {
	reverse := op.Bool("transpose")
	from := e.list.src
	if reverse {
		from = e.list.dst
	}
	messages := e.gather(h, from)
	if op.Operands[1] != nil {
		messages = e.binary("Mul", messages, e.overColumns(e.perEdge(v), h.width()))
	}
	y := e.aggregation(reverse).total(messages)
	if op.Operands[2] == nil {
		return value{t: y}
	}
	s := e.operand(op, 2)
	return value{t: e.binary("Add", y, e.binary("Mul", h, e.overColumns(s, h.width())))}
}

// overColumns repeats the columns of a value until it has that many.
func (e *emitter) overColumns(t tensor, width int) tensor { return e.groupRepeat(t, width/t.width()) }

// blocks is the matrix [groups·width, groups] with a one where the row lies in the
// column's block. Sums and repetitions are products with it, which every runtime
// has, and does fast.
func (e *emitter) blocks(groups, width int, transposed bool) tensor {
	ones := make([]float32, groups*width*groups)
	for i := range groups * width {
		if transposed {
			ones[i/width*groups*width+i] = 1
		} else {
			ones[i*groups+i/width] = 1
		}
	}
	if transposed {
		return e.floats("blocks", ones, groups, groups*width)
	}
	return e.floats("blocks", ones, groups*width, groups)
}

func (e *emitter) groupSum(t tensor, groups int) tensor {
	return e.matmul(t, e.blocks(groups, t.width()/groups, false))
}

func (e *emitter) groupRepeat(t tensor, times int) tensor {
	if times == 1 {
		return t
	}
	return e.matmul(t, e.blocks(t.width(), times, true))
}
