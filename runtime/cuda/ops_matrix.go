package cuda

import (
	"github.com/gsrc-dev/gsrc/ir"
	"github.com/gsrc-dev/gsrc/runtime"
	"github.com/gsrc-dev/gsrc/runtime/kernels"
)

var matrixKernels = map[string]kernel{
	"matmul":       func(q *steps, k *runtime.Call) { product(q, k, nil) },
	"matmul_fused": func(q *steps, k *runtime.Call) { fused(q, k, 2, product) },
	"to_dense":     toDense,
	"cholesky":     cholesky,
	"solve_upper":  solveUpper,

	"concat":  concat,
	"columns": columns,
	"slice":   slice,
	"stack":   stack,

	"gather":      gather,
	"scatter_add": scatterAdd,
	"pair_dot":    pairDot,
	"pair_gather": pairGather,
}

// LaunchMatMul multiplies with the module's own kernel.
func LaunchMatMul(s Stream, m MatMul) error {
	if m.M == 0 || m.N == 0 {
		return nil
	}
	per, parts := innerParts(m.M, m.N, m.K)
	c, add := m.C, m.Accumulate
	if m.Scratch == 0 {
		per, parts = m.K, 1
	}
	if parts > 1 {
		c, add = m.Scratch, false
	}
	grid := [3]uint32{uint32((m.M + 63) / 64), uint32((m.N + 63) / 64), uint32(parts)}
	return queued(s, func(q *steps) {
		q.launch("gsrc_matmul", grid, [3]uint32{256, 1, 1}, 0, Ptr(c), Ptr(m.A), Ptr(m.B), Int(m.M), Int(m.N), Int(m.K), flag(m.TA), flag(m.TB), flag(add), Int(per))
		if parts > 1 {
			q.every("gsrc_matmul_sum", m.M*m.N, Ptr(m.C), Ptr(c), Int(m.M*m.N), Int(parts), flag(m.Accumulate))
		}
	})
}

// innerParts returns how much of the inner dimension of a product a block of
// gsrc_matmul takes, and into how many parts this divides it: enough blocks for two on
// each processor of a large GPU, and no part that is not worth its sum.
func innerParts(m, n, k int) (per, parts int) {
	tiles := max(1, (m+63)/64*((n+63)/64))
	parts = max(1, min(256/tiles, k/128))
	per = max(16, ((k+parts-1)/parts+15)&^15)
	return per, max(1, (k+per-1)/per)
}

func flag(b bool) uint64 {
	if b {
		return 1
	}
	return 0
}

// epilogue is what a product's kernel does to it: add, an operand of the product's
// shape, before, and after that bias, a row, and an activation.
type epilogue struct {
	add, bias *runtime.Buffer
	act       int
}

// The activations of an epilogue.
const (
	noAct = iota
	reluAct
	eluAct
)

// fused queues a product and the expression over it. Operand sum is added to the
// product, those behind it are the expression's. A bias and an activation are the
// product's own epilogue where they are the whole expression.
func fused(q *steps, k *runtime.Call, sum int, product func(q *steps, k *runtime.Call, e *epilogue)) {
	e := epilogue{add: k.In[sum]}
	whole := e.peel(k, sum+1)
	if product(q, k, &e); whole {
		return
	}
	c := &chain{dst: k.Out[0].Device.Elements, shape: k.Out[0].Dims}
	c.compile(k, sum+1)
	c.launch(q)
}

// peel takes an expression that is nothing but a bias and an activation, and
// reports whether it is.
func (e *epilogue) peel(k *runtime.Call, first int) bool {
	x := k.Op.Expr()
	at, steps := ir.ExprArg{Kind: ir.ExprProduct}, x.Steps
	var taken epilogue
	if len(steps) > 0 && steps[0].Def.Name == "add" {
		for i, a := range steps[0].Args {
			o := steps[0].Args[1-i]
			if o == at && a.Kind == ir.ExprOperand && runtime.Mode(k.In[first+a.Index].Dims, k.Out[0].Dims) == kernels.RowVector {
				taken.bias = k.In[first+a.Index]
			}
		}
		if taken.bias == nil {
			return false
		}
		at, steps = ir.ExprArg{Kind: ir.ExprResult}, steps[1:]
	}
	if len(steps) > 0 && steps[0].Args[0] == at {
		switch steps[0].Def.Name {
		case "relu":
			taken.act = reluAct
		case "elu":
			taken.act = eluAct
		default:
			return false
		}
		at, steps = ir.ExprArg{Kind: ir.ExprResult, Index: len(x.Steps) - len(steps)}, steps[1:]
	}
	if len(steps) > 0 || x.Out != at {
		return false
	}
	e.bias, e.act = taken.bias, taken.act
	return true
}

// product multiplies operands 0 and 1.
func product(q *steps, k *runtime.Call, e *epilogue) {
	a, b, y := k.In[0], k.In[1], k.Out[0]
	ta, tb := k.Op.Bool("ta"), k.Op.Bool("tb")
	if a.Device.In != nil {
		s, h := a.Device.In, b.Device.Elements
		if ta {
			s = a.Device.Out
		}
		if tb && b.Dims[0] > 0 && b.Dims[1] > 0 {
			h = k.ScratchAt()
			grid := [3]uint32{uint32((b.Dims[0] + 31) / 32), uint32((b.Dims[1] + 31) / 32), 1}
			q.launch("gsrc_transpose", grid, [3]uint32{256, 1, 1}, 0, Ptr(h), at(b), Int(b.Dims[0]), Int(b.Dims[1]))
		}
		aggregate(q, y, s, at(a), nil, Ptr(h), 1, e)
		return
	}
	inner := a.Dims[1]
	if ta {
		inner = a.Dims[0]
	}
	m := MatMul{C: y.Device.Elements, A: a.Device.Elements, B: b.Device.Elements, M: y.Dims[0], N: y.Dims[1], K: inner, TA: ta, TB: tb, Scratch: k.ScratchAt()}
	if e != nil && e.add != nil {
		m.Accumulate = true
		q.copy(m.C, e.add.Device.Elements, 4*y.Size())
	}
	switch {
	case m.M == 0 || m.N == 0:
		return
	case m.K == 0 && !m.Accumulate:
		fillWith(q, y, 0)
	case m.K > 0:
		q.matMul(m)
	}
	if e == nil || e.bias == nil && e.act == noAct {
		return
	}
	// What is left of the epilogue is a chain over the product.
	c := &chain{dst: y.Device.Elements, shape: y.Dims}
	from := argResult
	if e.bias != nil {
		c.input(e.bias)
		c.steps = append(c.steps, step(pointwise["add"], noRegister, argResult, 0, 0))
		from = argLast
	}
	switch e.act {
	case reluAct:
		c.steps = append(c.steps, step(pointwise["relu"], noRegister, from, 0, 0))
	case eluAct:
		c.steps = append(c.steps, step(pointwise["elu"], noRegister, from, 0, 0))
	}
	c.launch(q)
}

// productWorkspace is the transpose of a dense matrix that a sparse one is multiplied
// by, or the parts that the own kernel divides a product of dense ones into.
func productWorkspace(k *runtime.Call) int {
	a, b, y := k.In[0].Dims, k.In[1].Dims, k.Out[0].Dims
	switch {
	case k.Op.Operands[0].Type.Layout != ir.CSR:
		inner := a[1]
		if k.Op.Bool("ta") {
			inner = a[0]
		}
		if _, parts := innerParts(y[0], y[1], inner); parts > 1 {
			return 4 * parts * y[0] * y[1]
		}
	case k.Op.Bool("tb"):
		return 4 * b[0] * b[1]
	}
	return 0
}

func toDense(q *steps, k *runtime.Call) {
	x, y := k.In[0], k.Out[0]
	if x.Device.In == nil {
		identity(q, k)
		return
	}
	fillWith(q, y, 0)
	q.every("gsrc_to_dense", x.Device.In.Rows, at(y), at(x), Ptr(x.Device.In.RowPtr), Ptr(x.Device.In.Col), Int(y.Dims[0]), Int(y.Dims[1]))
}

func cholesky(q *steps, k *runtime.Call) {
	if n := k.In[0].Dims[0]; n > 0 {
		q.launch("gsrc_cholesky", [3]uint32{1, 1, 1}, [3]uint32{threads, 1, 1}, 0, at(k.Out[0]), at(k.In[0]), Ptr(k.ScratchAt()), Int(n), Double(k.Op.Float("ridge")))
	}
}

func choleskyWorkspace(k *runtime.Call) int { n := k.In[0].Dims[0]; return 8 * n * n }

func solveUpper(q *steps, k *runtime.Call) {
	n, cols := k.In[0].Dims[0], k.In[1].Dims[1]
	if n > 0 {
		q.warps("gsrc_solve_upper", cols, at(k.Out[0]), at(k.In[0]), at(k.In[1]), Int(n), Int(cols))
	}
}

// copyColumns copies width columns of rows rows between matrices of dstCols and
// xCols columns.
func copyColumns(q *steps, dst, x uintptr, rows, width, dstCols, xCols int) {
	q.every("gsrc_copy_columns", rows*width, Ptr(dst), Ptr(x), Int(rows), Int(width), Int(dstCols), Int(xCols))
}

func concat(q *steps, k *runtime.Call) {
	a, b, y := k.In[0], k.In[1], k.Out[0]
	rows, cols, left := y.Dims[0], y.Dims[1], a.Dims[1]
	copyColumns(q, y.Device.Elements, a.Device.Elements, rows, left, cols, left)
	copyColumns(q, y.Device.Elements+uintptr(4*left), b.Device.Elements, rows, b.Dims[1], cols, b.Dims[1])
}

func columns(q *steps, k *runtime.Call) {
	x, y := k.In[0], k.Out[0]
	copyColumns(q, y.Device.Elements, x.Device.Elements+uintptr(4*k.Op.Int("from")), y.Dims[0], y.Dims[1], y.Dims[1], x.Dims[1])
}

// slice copies rows. The arena executor reads them in place instead.
func slice(q *steps, k *runtime.Call) {
	x, y := k.In[0], k.Out[0]
	q.copy(y.Device.Elements, x.Device.Elements+uintptr(4*x.RowWidth()*k.Op.Int("from")), 4*y.Size())
}

func stack(q *steps, k *runtime.Call) {
	to := k.Out[0].Device.Elements
	for _, x := range k.In {
		q.copy(to, x.Device.Elements, 4*x.Size())
		to += uintptr(4 * x.Size())
	}
}

func gather(q *steps, k *runtime.Call) {
	x, idx, y := k.In[0], k.In[1], k.Out[0]
	kernel := "gsrc_gather"
	if x.DType == ir.I64 {
		kernel = "gsrc_gather_i64"
	}
	word, number := q.Fault(k.Op)
	q.every(kernel, y.Size(), at(y), at(x), at(idx), Int(idx.Dims[0]), Int(x.Dims[0]), Int(x.RowWidth()), Ptr(word), Int(number))
}

func scatterAdd(q *steps, k *runtime.Call) {
	x, idx, y := k.In[0], k.In[1], k.Out[0]
	rows := y.Dims[0]
	if y.Size() == 0 {
		return
	}
	word, number := q.Fault(k.Op)
	per := (rows + 527) / 528 // a block reads all indices: no more blocks than fill a device
	q.launch("gsrc_scatter_add", [3]uint32{uint32((rows + per - 1) / per), 1, 1}, [3]uint32{threads, 1, 1}, 0,
		at(y), at(x), at(idx), Int(idx.Dims[0]), Int(rows), Int(y.RowWidth()), Int(per), Ptr(word), Int(number))
}

// pairGather gathers at one row of the pairs.
func pairGather(q *steps, k *runtime.Call) {
	v, pairs, y := k.In[0], k.In[1], k.Out[0]
	n := pairs.Dims[1]
	idx := at(pairs)
	if k.Op.Str("end") == "second" {
		idx += uint64(8 * n)
	}
	word, number := q.Fault(k.Op)
	q.every("gsrc_gather", n, at(y), at(v), idx, Int(n), Int(v.Dims[0]), Int(1), Ptr(word), Int(number))
}

func pairDot(q *steps, k *runtime.Call) {
	p, pairs := k.In[0], k.In[1]
	n := pairs.Dims[1]
	word, number := q.Fault(k.Op)
	q.warps("gsrc_pair_dot", n, at(k.Out[0]), at(p), at(pairs), Int(n), Int(p.Dims[0]), Int(p.Dims[1]), Ptr(word), Int(number))
}
