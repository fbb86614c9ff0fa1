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
	need("Unary", "dst", len(dst), len(x))
	j := &p.jobs.elem
	*j = elemJob{kind: elemUnary, op: int(op), dst: dst, a: x, s: param}
	if op == Pow {
		j.power(param)
	}
	p.runElem(j, len(x))
}

// Binary computes dst[i,j] = op(a[i,j], b[i,j]) for a [rows, cols] result whose
// operands are broadcast by their modes. dst may be an operand of mode Full.
func (p *Pool) Binary(op BinaryOp, dst, a, b []float32, rows, cols int, modeA, modeB BroadcastMode) {
	if op < 0 || op >= binaryCount {
		panic(fmt.Sprintf("kernels: Binary: unknown function %d", int(op)))
	}
	n := rows * cols
	need("Binary", "dst", len(dst), n)
	need("Binary", "a", len(a), modeA.size(rows, cols))
	need("Binary", "b", len(b), modeB.size(rows, cols))
	if n == 0 {
		return
	}
	// A single row or column is a plain vector; so is a pair of full operands.
	modeA, modeB = flatten(modeA, rows, cols), flatten(modeB, rows, cols)
	j := &p.jobs.elem
	*j = elemJob{op: int(op), dst: dst[:n], a: a, b: b, cols: cols, modeA: modeA, modeB: modeB}
	switch {
	case modeA == Full && modeB == Full:
		j.kind = elemVV
	case modeA == Full && modeB == Scalar:
		j.kind, j.s = elemVS, b[0]
	case modeA == Scalar && modeB == Full:
		j.kind, j.s = elemSV, a[0]
	default:
		j.kind, j.per = elemBroadcast, rowsPerChunk(cols)
		p.run(ceilDiv(rows, j.per), j)
		*j = elemJob{}
		return
	}
	p.runElem(j, n)
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
		j.kind, j.op, j.s, j.b = elemSV, int(Div), 1, j.a
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
	need("ReluGrad", "dst", len(dst), len(y))
	need("ReluGrad", "dy", len(dy), len(y))
	j := &p.jobs.elem
	*j = elemJob{kind: elemReluGrad, dst: dst, a: y, b: dy}
	p.runElem(j, len(y))
}

// EluGrad computes dst = dy where y > 0, else dy·(y+1); y is the output of elu.
func (p *Pool) EluGrad(dst, y, dy []float32) {
	need("EluGrad", "dst", len(dst), len(y))
	need("EluGrad", "dy", len(dy), len(y))
	j := &p.jobs.elem
	*j = elemJob{kind: elemEluGrad, dst: dst, a: y, b: dy}
	p.runElem(j, len(y))
}

// Axpby computes dst = a·x + b·dst. With b = 0 dst is written without being read.
func (p *Pool) Axpby(dst, x []float32, a, b float32) {
	need("Axpby", "dst", len(dst), len(x))
	j := &p.jobs.elem
	if b == 0 {
		*j = elemJob{kind: elemVS, op: int(Mul), dst: dst, a: x, s: a}
	} else {
		*j = elemJob{kind: elemAxpby, dst: dst, a: x, s: a, t: b}
	}
	p.runElem(j, len(x))
}

// Scale computes dst = a·x. dst may be x.
func (p *Pool) Scale(dst, x []float32, a float32) { p.Axpby(dst, x, a, 0) }

// Fill sets every element of dst to v.
func (p *Pool) Fill(dst []float32, v float32) {
	j := &p.jobs.elem
	*j = elemJob{kind: elemFill, dst: dst, s: v}
	p.runElem(j, len(dst))
}

// Copy copies x to dst.
func (p *Pool) Copy(dst, x []float32) {
	need("Copy", "dst", len(dst), len(x))
	j := &p.jobs.elem
	*j = elemJob{kind: elemCopy, dst: dst, a: x}
	p.runElem(j, len(x))
}

type elemKind int

const (
	elemUnary elemKind = iota
	elemVV
	elemVS
	elemSV
	elemBroadcast
	elemReluGrad
	elemEluGrad
	elemAxpby
	elemFill
	elemCopy
)

// elemJob is one elementwise kernel over n elements, or over rows where an
// operand is broadcast.
type elemJob struct {
	kind         elemKind
	op           int
	dst, a, b    []float32
	s, t         float32
	n            int
	cols, per    int
	modeA, modeB BroadcastMode
}

func (p *Pool) runElem(j *elemJob, n int) {
	j.n = n
	p.run(ceilDiv(n, elemChunk), j)
	*j = elemJob{}
}

func (j *elemJob) do(c, _ int) {
	if j.kind == elemBroadcast {
		j.broadcast(c)
		return
	}
	lo := c * elemChunk
	hi := min(lo+elemChunk, j.n)
	switch j.kind {
	case elemUnary:
		ks.unary[j.op](j.dst[lo:hi], j.a[lo:hi], j.s)
	case elemVV:
		ks.vv[j.op](j.dst[lo:hi], j.a[lo:hi], j.b[lo:hi])
	case elemVS:
		ks.vs[j.op](j.dst[lo:hi], j.a[lo:hi], j.s)
	case elemSV:
		ks.sv[j.op](j.dst[lo:hi], j.s, j.b[lo:hi])
	case elemReluGrad:
		ks.reluGrad(j.dst[lo:hi], j.a[lo:hi], j.b[lo:hi])
	case elemEluGrad:
		ks.eluGrad(j.dst[lo:hi], j.a[lo:hi], j.b[lo:hi])
	case elemAxpby:
		ks.axpby(j.dst[lo:hi], j.a[lo:hi], j.s, j.t)
	case elemFill:
		d := j.dst[lo:hi]
		for i := range d {
			d[i] = j.s
		}
	case elemCopy:
		copy(j.dst[lo:hi], j.a[lo:hi])
	}
}

// broadcast computes the rows of one chunk where an operand is a row or column
// vector (or both are smaller than the result).
func (j *elemJob) broadcast(c int) {
	cols := j.cols
	rows := len(j.dst) / cols
	for r := c * j.per; r < min((c+1)*j.per, rows); r++ {
		d := j.dst[r*cols : (r+1)*cols]
		va, sa := j.operand(j.a, j.modeA, r)
		vb, sb := j.operand(j.b, j.modeB, r)
		switch {
		case va != nil && vb != nil:
			ks.vv[j.op](d, va, vb)
		case va != nil:
			ks.vs[j.op](d, va, sb)
		case vb != nil:
			ks.sv[j.op](d, sa, vb)
		default:
			for i := range d {
				d[i] = sb
			}
			ks.sv[j.op](d, sa, d)
		}
	}
}

// operand returns what an operand contributes to row r: a vector, or nil and a scalar.
func (j *elemJob) operand(x []float32, m BroadcastMode, r int) ([]float32, float32) {
	switch m {
	case Full:
		return x[r*j.cols : (r+1)*j.cols], 0
	case RowVector:
		return x[:j.cols], 0
	case ColVector:
		return nil, x[r]
	}
	return nil, x[0]
}
