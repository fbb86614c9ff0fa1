package kernels

import "fmt"

// UnaryOp is an elementwise function of one operand.
type UnaryOp int

// The unary functions. ReluOp and EluOp carry the suffix because [Relu] and
// [Elu] name the activations of an [Epilogue].
const (
	Neg       UnaryOp = iota // −x
	Exp                      // eˣ
	Log                      // ln x
	Sqrt                     // √x
	Rsqrt                    // 1/√x
	Sigmoid                  // 1/(1+e⁻ˣ)
	ReluOp                   // max(x, 0)
	EluOp                    // x if x > 0, else eˣ−1
	Tanh                     // tanh x
	Abs                      // |x|
	Square                   // x²
	LeakyRelu                // x if x > 0, else param·x
	Pow                      // x^param

	unaryCount
)

// BinaryOp is an elementwise function of two operands.
type BinaryOp int

// The binary functions. Max and Min are NaN where either operand is.
const (
	Add BinaryOp = iota
	Sub
	Mul
	Div
	Max
	Min

	binaryCount
)

// BroadcastMode says how an operand fills the [rows, cols] shape of a result.
type BroadcastMode int

const (
	Full      BroadcastMode = iota // [rows, cols]
	RowVector                      // [cols], repeated for every row
	ColVector                      // [rows], repeated for every column
	Scalar                         // one element
)

// size is the number of elements an operand of this mode has.
func (m BroadcastMode) size(rows, cols int) int {
	switch m {
	case Full:
		return rows * cols
	case RowVector:
		return cols
	case ColVector:
		return rows
	}
	return 1
}

// Unary computes dst[i] = op(x[i]) for every element of x; param is the slope of
// LeakyRelu and the exponent of Pow. dst may be x.
func (p *Pool) Unary(op UnaryOp, dst, x []float32, param float32) {
	if op < 0 || op >= unaryCount {
		panic(fmt.Sprintf("kernels: Unary: unknown function %d", int(op)))
	}
	j := &elemJob{kind: elemUnary, op: int(op), dst: dst, a: x, b: x, s: param}
	if op == Pow {
		j.power(param)
	}
	p.runElem("Unary", j, 1, len(x))
}

// Binary computes dst[i,j] = op(a[i,j], b[i,j]) for a [rows, cols] result whose
// operands are broadcast by their modes. dst may be an operand of mode Full.
func (p *Pool) Binary(op BinaryOp, dst, a, b []float32, rows, cols int, modeA, modeB BroadcastMode) {
	if op < 0 || op >= binaryCount {
		panic(fmt.Sprintf("kernels: Binary: unknown function %d", int(op)))
	}
	p.runElem("Binary", &elemJob{kind: elemBinary, op: int(op), dst: dst, a: a, b: b, modeA: modeA, modeB: modeB}, rows, cols)
}

// power replaces the exponents that graphs need by exact and fast functions.
func (j *elemJob) power(e float32) {
	switch e {
	case 1:
		j.kind = elemCopy
	case 2:
		j.op = int(Square)
	case 0.5:
		j.op = int(Sqrt)
	case -0.5:
		j.op = int(Rsqrt)
	case -1:
		j.kind = elemInverse
	}
}

// flatten reduces modes that mean the same at a degenerate shape.
func flatten(m BroadcastMode, rows, cols int) BroadcastMode {
	switch {
	case m == RowVector && rows == 1, m == ColVector && cols == 1:
		return Full
	case m == RowVector && cols == 1, m == ColVector && rows == 1:
		return Scalar
	}
	return m
}

// ReluGrad computes dst = dy where y > 0, else 0; y is the output of relu.
func (p *Pool) ReluGrad(dst, y, dy []float32) {
	p.runElem("ReluGrad", &elemJob{kind: elemReluGrad, dst: dst, a: y, b: dy}, 1, len(y))
}

// EluGrad computes dst = dy where y > 0, else dy·(y+1); y is the output of elu.
func (p *Pool) EluGrad(dst, y, dy []float32) {
	p.runElem("EluGrad", &elemJob{kind: elemEluGrad, dst: dst, a: y, b: dy}, 1, len(y))
}

// LeakyReluGrad computes dst = dy where x > 0, else slope·dy; x is the input of
// the LeakyRelu function. dst may be x or dy.
func (p *Pool) LeakyReluGrad(dst, x, dy []float32, slope float32) {
	p.runElem("LeakyReluGrad", &elemJob{kind: elemLeakyGrad, dst: dst, a: x, b: dy, s: slope}, 1, len(x))
}

// Axpby computes dst = a·x + b·dst. With b = 0 dst is written without being read.
func (p *Pool) Axpby(dst, x []float32, a, b float32) {
	j := &elemJob{kind: elemAxpby, dst: dst, a: x, b: x, s: a, t: b}
	if b == 0 {
		j.kind = elemScale
	}
	p.runElem("Axpby", j, 1, len(x))
}

// Scale computes dst = a·x. dst may be x.
func (p *Pool) Scale(dst, x []float32, a float32) { p.Axpby(dst, x, a, 0) }

// Fill sets every element of dst to v.
func (p *Pool) Fill(dst []float32, v float32) {
	p.runElem("Fill", &elemJob{kind: elemFill, dst: dst, a: dst, b: dst, s: v}, 1, len(dst))
}

// Copy copies x to dst.
func (p *Pool) Copy(dst, x []float32) { p.BroadcastTo(dst, x, 1, len(x), Full) }
