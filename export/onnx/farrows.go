package onnx

import "slices"

// Rows whose norm float32 holds no squares of, or that is below the lower bound eps,
// are scaled by a power of two before they are normalised, as the definitions of
// l1_normalize and l2_normalize say. Hardly any data have such rows, so that their
// normalisation costs all others next to nothing: they are picked out by their norms
// and normalised by themselves, and their results are put among those of the other
// rows. Which rows these are the definition tells by the largest magnitude and the
// file by the norm; a row that only one of them scales comes out the same.
const (
	farLow, farHigh = 1e-12, 1e12
	farUp, farDown  = 1 << 88, 1.0 / (1 << 80) // those of runtime/kernels/rowscale.go
	farLeast        = 1e-30                    // below the norm of any scaled row but zeros
)

// farRows are rows of a normalised matrix [N,F] that are given by themselves.
type farRows struct {
	rows  tensor  // int64 [K]: which
	unit  tensor  // [K,F]: normalised
	other *tensor // the matrix with zeros in these rows, made by blank
}

// farRows picks the far rows of x by their norms [N,1], and returns what divides the
// rows: their norms, at least eps, and 1 for the far ones.
func (e *emitter) farRows(p int, x, norm tensor, eps float64) (per tensor, far *farRows) {
	b := e.builder
	rows := b.nonZero(b.squeeze(farMask(b, norm, eps), 1))
	picked := b.gather(x, rows)
	// Rows of zeros have no direction; they may be many, and are left where they are.
	some := b.nonZero(b.squeeze(b.compare("Greater", b.rowNorm(1, picked), e.scalar(0)), 1))
	rows, picked = b.gather(rows, some), b.gather(picked, some)
	rows.dims, picked.dims = []dim{unknown}, []dim{unknown, x.dims[1]}
	large := b.compare("Greater", b.gather(norm, rows), e.scalar(1))
	scaled := b.binary("Mul", picked, b.where(large, e.scalar(farDown), e.scalar(farUp)))
	unit := b.binary("Div", scaled, b.rowNorm(p, scaled))
	far = &farRows{rows: rows, unit: unit}
	return far.put(b, b.binary("Max", norm, e.scalar(eps)), b.filledFloat(b.concat(0, b.sizeOf(rows, 0), b.int64s(1)), 1, unknown, fixed(1))), far
}

// farMask tells which norms are outside of the limits; an infinite one is, and NaN is not.
func farMask(b *builder, norm tensor, eps float64) tensor {
	mask := b.compare("Greater", norm, b.floatConst(farHigh))
	if eps <= farLow { // or else it says that small rows have no direction
		mask = b.either(mask, b.compare("Less", norm, b.floatConst(farLow)))
	}
	return mask
}

func (b *builder) where(condition, x, y tensor) tensor {
	return b.op("Where", x.dtype, condition.dims, []tensor{condition, x, y})
}

// put returns t with the rows of part in place of its far rows; t where there are none.
// (Each element is written once: nothing races.)
func (f *farRows) put(b *builder, t, part tensor) tensor {
	if f == nil {
		return t
	}
	at := b.op("Expand", Int64Type, part.dims, []tensor{b.unsqueeze(f.rows, 1), b.op("Shape", Int64Type, []dim{fixed(2)}, []tensor{part})})
	return b.op("ScatterElements", t.dtype, t.dims, []tensor{t, at, part}, intAttr("axis", 0))
}

func (f *farRows) quotient() (unit tensor) {
	if f != nil {
		unit = f.unit
	}
	return unit
}

// blank returns x without its far rows, for what looks at the range of all rows.
func (f *farRows) blank(e *emitter, x tensor) tensor {
	if f.other == nil {
		f.other = new(f.put(e.builder, x, e.binary("Sub", f.unit, f.unit)))
	}
	return *f.other
}

// normalized returns the rows, scaled where they are far, and what divides them.
func (x *sparseRows) normalized(p int, eps float64) (*sparseRows, tensor) {
	b := x.b
	norm := x.norm(p)
	far := farMask(b, norm, eps)
	at, row := x.entries(b.nonZero(b.squeeze(far, 1)))
	large := b.compare("Greater", b.gather(b.squeeze(norm, 1), row), b.floatConst(1))
	values := b.binary("Mul", b.gather(x.values, at), b.where(large, b.floatConst(farDown), b.floatConst(farUp)))
	scaled := *x
	scaled.values = b.op("ScatterElements", float32Type, x.values.dims, []tensor{x.values, at, values}, intAttr("axis", 0))
	part := b.unary("Abs", values)
	if p == 2 {
		part = b.binary("Mul", values, values)
	}
	sum := b.unsqueeze(b.scatterAdd(b.filledFloat(x.rows, 0, x.nodeDim), row, part), 1)
	if p == 2 {
		sum = b.unary("Sqrt", sum)
	}
	return &scaled, b.where(far, b.binary("Max", sum, b.floatConst(farLeast)), b.binary("Max", norm, b.floatConst(float32(eps))))
}

// entries returns the positions of all entries of the given rows, and the row of each.
func (x *sparseRows) entries(rows tensor) (at, row tensor) {
	b := x.b
	list := []dim{unknown}
	part := func(t, from, to tensor) tensor {
		return b.op("Slice", Int64Type, list, []tensor{t, from, to, b.int64s(0)})
	}
	sum := func(t tensor) tensor {
		return b.op("CumSum", Int64Type, list, []tensor{t, b.int64Const(0)})
	}
	k, counts := b.sizeOf(rows, 0), b.gather(x.count, rows)
	total := b.reduceOp("ReduceSum", counts, []int64{0}, true, fixed(1)) // of one element, as runtimes see from the operator alone
	begun := b.concat(0, b.int64s(0), counts)
	begun.dims = list
	first := part(sum(begun), b.int64s(0), k)
	// The row of each entry is the number of rows that begin up to it.
	marks := b.scatterAdd(b.filledInt(b.binary("Add", total, b.int64s(1)), 0, unknown), first, b.filledInt(k, 1, unknown))
	of := b.binary("Sub", part(sum(marks), b.int64s(0), total), b.int64s(1))
	at = b.binary("Add", b.gather(b.binary("Sub", b.gather(x.ptr, rows), first), of), b.span(b.squeeze(total, 0)))
	return at, b.gather(rows, of)
}

// normalizeDense is the dense form, for runtimes with elementwise operators alone: the
// choices are sums of products with 0 and 1. Nothing overflows on the way:
// in some runtimes Relu and Min make NaN of infinities.
func (e *emitter) normalizeDense(p int, x tensor, eps float64) tensor {
	ones := e.floats("ones", slices.Repeat([]float32{1}, x.width()), x.width(), 1)
	norm := func(p int, x tensor) tensor {
		if p == 1 {
			return e.matmul(e.unary("Abs", x), ones)
		}
		return e.unary("Sqrt", e.matmul(e.binary("Mul", x, x), ones))
	}
	c := e.scalar
	// positive is 1 where t is above 0, which it then is by 1/steep or more, and else 0.
	positive := func(t tensor, steep float64) tensor {
		return e.binary("Min", e.binary("Mul", e.unary("Relu", t), c(steep)), c(1))
	}
	// choose scales the rows where is 1.
	choose := func(x, where tensor, by float64) tensor {
		return e.binary("Mul", x, e.binary("Add", e.binary("Mul", where, c(by)), e.binary("Sub", c(1), where)))
	}
	const quarter = 1.0 / (1 << 60) / (1 << 4) // no sum of magnitudes times this overflows
	large := positive(e.binary("Sub", norm(1, e.binary("Mul", x, c(quarter))), c(farHigh*quarter)), 1<<49)
	x = choose(x, large, 1.0/(1<<60)/(1<<10)) // and no square of what this leaves, which is above farLow
	least := c(eps)
	if eps <= farLow {
		small := positive(e.binary("Sub", c(farLow), norm(p, x)), 1e21)
		x = choose(x, small, farUp)
		least = e.binary("Add", e.binary("Mul", e.binary("Sub", c(1), small), c(eps)), e.binary("Mul", small, c(farLeast)))
	}
	return e.binary("Div", x, e.binary("Max", norm(p, x), least))
}
