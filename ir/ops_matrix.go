package ir

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

var (
	taAttr = AttrSpec{Name: "ta", Kind: BoolAttr, Default: false, Doc: "the first operand is transposed"}
	tbAttr = AttrSpec{Name: "tb", Kind: BoolAttr, Default: false, Doc: "the second operand is transposed"}
)

func flip(dims []Dim, t bool) (Dim, Dim) {
	if t {
		return dims[1], dims[0]
	}
	return dims[0], dims[1]
}

func inferMatMul(c *InferCtx) []Type {
	for i := range 2 {
		c.wantRank(i, 2)
	}
	c.wantOneDType(0, 1)
	m, k := flip(c.In(0).Dims, c.Op.Bool("ta"))
	k2, n := flip(c.In(1).Dims, c.Op.Bool("tb"))
	if k != k2 {
		fail("inner dimensions %s and %s differ", k, k2)
	}
	return one(T(c.In(0).DType, m, n))
}

func evalMatMul(a, b, y *Tensor, ta, tb bool) {
	m, n := y.Shape[0], y.Shape[1]
	k := a.Shape[1]
	if ta {
		k = a.Shape[0]
	}
	// How far apart rows and columns are of op(a) and op(b).
	strides := func(t *Tensor, tr bool) (row, col int) {
		if tr {
			return 1, t.Shape[1]
		}
		return t.Shape[1], 1
	}
	ar, ac := strides(a, ta)
	br, bc := strides(b, tb)
	for i := range m {
		row := y.Data[i*n:][:n]
		clear(row)
		for l := range k { // outside, so that b is read in order
			v := a.Data[i*ar+l*ac]
			for j := range row {
				row[j] += v * b.Data[l*br+j*bc]
			}
		}
	}
}

// factors are the operands of a product, which is the result or goes into an expression.
func factors(result bool) []OperandSpec {
	return []OperandSpec{{Name: "a", Sparse: true, Linear: result}, {Name: "b", Linear: result}}
}

// readsProduct is the [OpDef.Reads] of products of matrices.
func readsProduct(op *Op, i int) Read {
	if i == 0 && !op.Bool("ta") {
		return ReadRow
	}
	return op.Def.operand(i).Read
}

var matrixOps = []OpDef{
	{
		Name: "matmul", Doc: "y = op(a)·op(b), op the transpose where ta or tb", Operands: factors(true), Attrs: []AttrSpec{taAttr, tbAttr}, Results: []string{"matmul"}, Infer: inferMatMul,
		Reads: readsProduct, Finite: FiniteIfOperands, Pad: padProduct,
		VJP: func(c *VJPCtx) []*Value {
			a, b, g, ta, tb := c.X(0), c.X(1), c.Ct[0], c.Op.Bool("ta"), c.Op.Bool("tb")
			mm := func(x, y *Value, ta, tb bool) *Value { return c.One("matmul", Attrs{"ta": ta, "tb": tb}, x, y) }
			return c.pick(func() *Value {
				if ta {
					return mm(b, g, tb, true)
				}
				return mm(g, b, false, !tb)
			}, func() *Value {
				if tb { // a moves to the right, where only dense matrices may stand
					return mm(g, c.dense(a), true, ta)
				}
				return mm(a, g, !ta, false)
			})
		},
		Eval: func(c *EvalCtx) {
			evalMatMul(c.T(0), c.T(1), c.New(0), c.Op.Bool("ta"), c.Op.Bool("tb"))
		},
	},
	{
		Name: "to_dense", Doc: "the same matrix, stored densely", Operands: []OperandSpec{{Name: "x", Sparse: true, Read: ReadElement, Linear: true, Moved: true}}, View: wholeIfSame, Int64: true, Results: []string{"dense"},
		Infer: func(c *InferCtx) []Type { return one(c.In(0).WithDims(c.In(0).Dims...)) },
		VJP:   func(c *VJPCtx) []*Value { return []*Value{c.Ct[0]} },
		Eval:  func(c *EvalCtx) { c.Set(0, c.T(0).Clone()) },
	},
	{
		Name: "cholesky", Doc: "the upper triangular r with rᵀr = a; where a is nearly singular, of a + ridge·(tr a/n)·I", Operands: operands("a"), Results: []string{"r"},
		NoGrad: "only used for noise, which is detached",
		Attrs:  []AttrSpec{floatAttr("ridge", 1e-6, "added to the diagonal, relative to its mean")},
		Infer: func(c *InferCtx) []Type {
			c.wantSquare(0)
			return sameAsFirst(c)
		},
		Eval: func(c *EvalCtx) {
			a, r := c.T(0), c.New(0)
			if err := Cholesky(r.Data, a.Data, a.Shape[0], c.Op.Float("ridge")); err != nil {
				fail("%w", err)
			}
		},
	},
	{
		Name: "spectral_map", Doc: "y = V·f(Λ)·Vᵀ of a symmetric a = V·Λ·Vᵀ. inverse_sqrt: f(λ) = λ^-½, 0 where λ is at most amount times the largest; soft_inverse_sqrt: f(λ) = λ·(λ + ρ)^-3/2, ρ = amount·mean of all λ + 1e-30, of a that has no λ below 0; shrink: amount nearer to 0, or 0", Operands: operands("a"), Results: []string{"mapped"},
		NoGrad: "proximal steps and bases have no gradient",
		Attrs:  []AttrSpec{{Name: "map", Kind: StringAttr, OneOf: []string{"inverse_sqrt", "soft_inverse_sqrt", "shrink"}, Doc: "f"}, within(nonNegative, floatAttr("amount", nil, "how much, see above"))},
		Infer: func(c *InferCtx) []Type {
			c.wantSquare(0)
			return sameAsFirst(c)
		},
		Eval: func(c *EvalCtx) {
			a, y := c.T(0).Clone(), c.New(0)
			n := a.Shape[0]
			v := make([]float64, n*n)
			SpectralMap(y.Data, a.Data, v, n, c.Op.Str("map"), c.Op.Float("amount"))
		},
	},
	{
		Name: "solve_upper", Doc: "y with r·y = b, r upper triangular", Operands: []OperandSpec{{Name: "r"}, {Name: "b", Linear: true}}, Results: []string{"solve"},
		NoGrad: "only used for noise, which is detached",
		Infer: func(c *InferCtx) []Type {
			c.wantSquare(0)
			c.wantRank(1, 2)
			if c.In(1).Dims[0] != c.In(0).Dims[0] {
				fail("%s rows of b do not fit %s", c.In(1).Dims[0], c.In(0))
			}
			c.wantFloat(0, 1)
			return one(c.In(1))
		},
		Eval: func(c *EvalCtx) {
			r, y := c.T(0), c.T(1).Clone()
			n := r.Shape[0]
			for i := n - 1; i >= 0; i-- {
				for j := range y.Row(i) {
					s := y.Row(i)[j]
					for k := i + 1; k < n; k++ {
						s -= r.Data[i*n+k] * y.Row(k)[j]
					}
					y.Row(i)[j] = s / r.Data[i*n+i]
				}
			}
			c.Set(0, y)
		},
	},
	{
		Name: "concat", Doc: "y = [a, b], side by side", Operands: []OperandSpec{{Name: "a", Read: ReadRow, Moved: true}, {Name: "b", Read: ReadRow, Moved: true}}, Results: []string{"concat"},
		Infer: func(c *InferCtx) []Type {
			for i := range 2 {
				c.wantRank(i, 2)
			}
			a, b := c.In(0), c.In(1)
			wa, okA := a.Dims[1].Size()
			wb, okB := b.Dims[1].Size()
			if a.DType != b.DType || a.Dims[0] != b.Dims[0] || !okA || !okB {
				fail("want matrices of the same rows and of fixed widths")
			}
			return one(a.WithDims(a.Dims[0], D(wa+wb)))
		},
		VJP: func(c *VJPCtx) []*Value { return c.parts(1, "columns", "width") },
		Eval: func(c *EvalCtx) {
			a, b, y := c.T(0), c.T(1), c.New(0)
			for i := range y.Rows() {
				copy(y.Row(i), a.Row(i))
				copy(y.Row(i)[a.Cols():], b.Row(i))
			}
		},
	},
	{
		Name: "columns", Doc: "y = columns from … from + width − 1 of x", Operands: []OperandSpec{{Name: "x", Read: ReadRow, Linear: true, Moved: true}}, Results: []string{"columns"},
		Attrs: []AttrSpec{{Name: "from", Kind: IntAttr, Doc: "first column"}, {Name: "width", Kind: IntAttr, Doc: "number of columns"}},
		Infer: func(c *InferCtx) []Type {
			c.wantRank(0, 2)
			from, width := c.Op.Int("from"), c.Op.Int("width")
			if n, ok := c.In(0).Dims[1].Size(); !ok || from < 0 || width < 0 || from > n || width > n-from {
				fail("%d columns from %d on are not within %s", width, from, c.In(0))
			}
			return one(c.In(0).WithDims(c.In(0).Dims[0], D(width)))
		},
		VJP: func(c *VJPCtx) []*Value { return c.amidZeros(1, "width", "concat") },
		Eval: func(c *EvalCtx) {
			x, y := c.T(0), c.New(0)
			for i := range y.Rows() {
				copy(y.Row(i), x.Row(i)[c.Op.Int("from"):])
			}
		},
	},
	{
		Name: "slice", Doc: "y = rows from … from + count − 1 of a matrix, or those elements of a vector", Operands: []OperandSpec{{Name: "x", Linear: true, Moved: true}}, Results: []string{"slice"},
		View:  func(op *Op) (int, bool) { return op.Int("from"), true },
		Attrs: []AttrSpec{{Name: "from", Kind: IntAttr, Doc: "first row"}, {Name: "count", Kind: IntAttr, Doc: "number of rows"}},
		Infer: func(c *InferCtx) []Type {
			x := c.In(0)
			c.wantRows(0)
			from, count := c.Op.Int("from"), c.Op.Int("count")
			if n, ok := x.Dims[0].Size(); !ok || from < 0 || count < 0 || from > n || count > n-from {
				fail("%d rows from %d on are not within %s", count, from, x)
			}
			return one(x.WithDims(append([]Dim{D(count)}, x.Dims[1:]...)...))
		},
		VJP: func(c *VJPCtx) []*Value { return c.amidZeros(0, "count", "stack") },
		Eval: func(c *EvalCtx) {
			x, y := c.T(0), c.New(0)
			copy(y.Data, x.Data[c.Op.Int("from")*width(x):])
		},
	},
	{
		Name: "stack", Doc: "y = [a; b], one above the other", Operands: []OperandSpec{{Name: "a", Moved: true}, {Name: "b", Moved: true}}, Results: []string{"stack"},
		Infer: func(c *InferCtx) []Type {
			a, b := c.In(0), c.In(1)
			if a.Rank() != b.Rank() || a.Rank() != 1 && a.Rank() != 2 || a.DType != b.DType {
				fail("want two matrices or two vectors of one element type")
			}
			na, okA := a.Dims[0].Size()
			nb, okB := b.Dims[0].Size()
			if !okA || !okB || a.Rank() == 2 && a.Dims[1] != b.Dims[1] {
				fail("want fixed numbers of rows of the same width")
			}
			return one(a.WithDims(append([]Dim{D(na + nb)}, a.Dims[1:]...)...))
		},
		VJP: func(c *VJPCtx) []*Value { return c.parts(0, "slice", "count") },
		Eval: func(c *EvalCtx) {
			a, b, y := c.T(0), c.T(1), c.New(0)
			copy(y.Data[copy(y.Data, a.Data):], b.Data)
		},
	},
	{
		Name: "argsort", Doc: "y = the places of the elements of x in ascending order, equal ones as they stand: of uniform x a random permutation", Operands: operands("x"), Results: []string{"order"}, Int64: true,
		NoGrad: "its results are integers",
		Infer: func(c *InferCtx) []Type {
			c.wantRank(0, 1)
			c.wantFloat(0)
			return one(T(I64, c.In(0).Dims[0]))
		},
		Eval: func(c *EvalCtx) {
			x, y := c.T(0), c.New(0)
			for i := range y.Data {
				y.Data[i] = float64(i)
			}
			slices.SortStableFunc(y.Data, func(a, b float64) int { return cmp.Compare(x.Data[int(a)], x.Data[int(b)]) })
		},
	},
	{
		Name: "gather", Doc: "y_b = x_idx[b], rows of a matrix or elements of a vector", Operands: []OperandSpec{{Name: "x", Linear: true, Moved: true}, {Name: "idx", Read: ReadRow}}, Results: []string{"rows"}, Int64: true,
		Infer: func(c *InferCtx) []Type {
			x := c.In(0)
			c.wantRows(0)
			c.wantRank(1, 1)
			c.wantDType(1, I64)
			dims := append([]Dim{c.In(1).Dims[0]}, x.Dims[1:]...)
			return one(x.WithDims(dims...))
		},
		VJP: func(c *VJPCtx) []*Value {
			return []*Value{c.OneTyped("scatter_add", nil, c.X(0).Type, c.Ct[0], c.X(1)), nil}
		},
		Eval: func(c *EvalCtx) {
			x, idx, y := c.T(0), c.T(1), c.New(0)
			w, rows := width(x), x.Shape[0]
			for i, f := range idx.Data {
				r := int(f)
				if r < 0 || r >= rows {
					fail("gather: index %d at position %d is outside 0..%d", r, i, rows-1)
				}
				copy(y.Data[i*w:(i+1)*w], x.Data[r*w:(r+1)*w])
			}
		},
	},
	{
		Name: "scatter_add", Doc: "y_r = Σ over idx[b] = r of x_b; the type is declared", Operands: []OperandSpec{{Name: "x", Linear: true}, {Name: "idx"}}, Finite: FiniteIfOperands, Pad: padSum, Results: []string{"scatter"},
		Infer: func(c *InferCtx) []Type {
			ts := declaredTensor(c)
			x := c.In(0)
			c.wantRows(0)
			c.wantDType(1, I64)
			c.wantDims(1, x.Dims[0])
			if ts[0].DType != x.DType || ts[0].Rank() != x.Rank() || x.Rank() == 2 && ts[0].Dims[1] != x.Dims[1] {
				fail("rows do not fit %s", ts[0])
			}
			return ts
		},
		VJP: func(c *VJPCtx) []*Value { return []*Value{c.One("gather", nil, c.Ct[0], c.X(1)), nil} },
		Eval: func(c *EvalCtx) {
			x, idx, y := c.T(0), c.T(1), c.New(0)
			w := width(x)
			for i, f := range idx.Data {
				r := int(f)
				if r < 0 || r >= y.Shape[0] {
					fail("scatter_add: index %d at position %d is outside 0..%d", r, i, y.Shape[0]-1)
				}
				for j := range w {
					y.Data[r*w+j] += x.Data[i*w+j]
				}
			}
		},
	},
}

// parts cuts the cotangent of two operands that stand one behind the other along an axis, with an
// operation that takes a part of a length.
func (c *VJPCtx) parts(axis int, op, length string) []*Value {
	first, _ := c.X(0).Type.Dims[axis].Size()
	second, _ := c.X(1).Type.Dims[axis].Size()
	part := func(from, n int) func() *Value {
		return func() *Value { return c.One(op, Attrs{"from": from, length: n}, c.Ct[0]) }
	}
	return c.pick(part(0, first), part(first, second))
}

// amidZeros joins the cotangent of a part of the operand along an axis with zeros for the rest.
func (c *VJPCtx) amidZeros(axis int, length, join string) []*Value {
	g, x, from := c.Ct[0], c.X(0).Type, c.Op.Int("from")
	zeros := func(n int) *Value {
		dims := slices.Clone(x.Dims)
		dims[axis] = D(n)
		return c.Fill(0, x.WithDims(dims...))
	}
	all, _ := x.Dims[axis].Size()
	if from > 0 {
		g = c.One(join, nil, zeros(from), g)
	}
	if rest := all - from - c.Op.Int(length); rest > 0 {
		g = c.One(join, nil, g, zeros(rest))
	}
	return []*Value{g}
}

// wantRows checks that operand i is a vector or a matrix.
func (c *InferCtx) wantRows(i int) {
	if rank := c.In(i).Rank(); rank != 1 && rank != 2 {
		fail("operand %s has rank %d, want 1 or 2", c.Op.operandName(i), rank)
	}
}

func (c *InferCtx) wantSquare(i int) {
	c.wantRank(i, 2)
	if c.In(i).Dims[0] != c.In(i).Dims[1] {
		fail("operand %s is %s, want a square matrix", c.Op.operandName(i), c.In(i))
	}
	c.wantFloat(i)
}

// Cholesky writes into r [n,n] the upper triangular factor with rᵀr = a. Where
// a pivot falls below ridge·tr a/n, a is (nearly) singular: then that much is
// added to its diagonal, and ten times more until every pivot holds. A matrix
// that is not finite, or far from positive definite, is an error.
func Cholesky(r, a []float64, n int, ridge float64) error {
	mean := 0.0
	for i := range n {
		mean += a[i*n+i] / float64(n)
	}
	shift, pivot := 0.0, -1
	for {
		if pivot = factor(r, a, n, shift, ridge*mean); pivot < 0 {
			return nil
		}
		if shift *= 10; shift == 0 {
			shift = ridge * mean
		}
		if !(shift > 0 && shift < mean) {
			return fmt.Errorf("cholesky: pivot %d: the matrix is not positive definite (mean of its diagonal %g)", pivot, mean)
		}
	}
}

// factor returns the first pivot that is not greater than least, or -1.
func factor(r, a []float64, n int, shift, least float64) int {
	for i := range n {
		clear(r[i*n : i*n+i])
		for j := i; j < n; j++ {
			s := a[i*n+j]
			if i == j {
				s += shift
			}
			for k := range i {
				s -= r[k*n+i] * r[k*n+j]
			}
			switch {
			case i != j:
				r[i*n+j] = s / r[i*n+i]
			case s > least:
				r[i*n+i] = math.Sqrt(s)
			default:
				return i
			}
		}
	}
	return -1
}

// SpectralLeast is what soft_inverse_sqrt adds to its ρ, so that a matrix of zeros has finite
// results.
const SpectralLeast = 1e-30

// SpectralMap writes V·f(Λ)·Vᵀ into y [n,n], given a = V·Λ·Vᵀ, of which it reads the mean with
// its transpose; see the operation spectral_map. It overwrites a and v, [n,n] both. Eigenvalues
// are found by Jacobi's rotations, with a cost of some 10·n³ products.
func SpectralMap(y, a, v []float64, n int, f string, amount float64) {
	for i := range n {
		for j := range i {
			m := (a[i*n+j] + a[j*n+i]) / 2
			a[i*n+j], a[j*n+i] = m, m
		}
	}
	diagonalise(a, v, n)
	largest, trace := 0.0, 0.0
	for i := range n {
		largest = max(largest, a[i*n+i])
		trace += a[i*n+i]
	}
	clear(y)
	for k := range n {
		l := a[k*n+k]
		switch {
		case f == "shrink":
			l -= max(-amount, min(amount, l))
		case f == "soft_inverse_sqrt":
			l = max(l, 0)
			above := l + float64(amount*trace)/float64(n) + SpectralLeast
			l /= float64(above * math.Sqrt(above))
		case l > amount*largest:
			l = 1 / math.Sqrt(l)
		default:
			l = 0
		}
		row := v[k*n : (k+1)*n]
		for i, x := range row {
			if x *= l; x == 0 {
				continue
			}
			for j, w := range row[:i+1] {
				y[i*n+j] += float64(x * w)
			}
		}
	}
	for i := range n {
		for j := range i {
			y[j*n+i] = y[i*n+j]
		}
	}
}

// diagonalise turns the symmetric a into a diagonal matrix of its eigenvalues, and writes
// their eigenvectors into the rows of v.
func diagonalise(a, v []float64, n int) {
	clear(v)
	for i := range n {
		v[i*n+i] = 1
	}
	turn := func(x, y []float64, c, s float64) {
		for i, p := range x {
			q := y[i]
			x[i], y[i] = float64(c*p)-float64(s*q), float64(s*p)+float64(c*q)
		}
	}
	for range 60 {
		off, all := 0.0, 0.0
		for i := range n {
			for j, x := range a[i*n : (i+1)*n] {
				if all += float64(x * x); i != j {
					off += float64(x * x)
				}
			}
		}
		if !(off > 1e-26*all) { // also where a is not finite
			return
		}
		for p := range n {
			for q := p + 1; q < n; q++ {
				x := a[p*n+q]
				if x == 0 {
					continue
				}
				d := (a[q*n+q] - a[p*n+p]) / (2 * x)
				t := 1 / (math.Abs(d) + math.Sqrt(float64(d*d)+1))
				if d < 0 {
					t = -t
				}
				c := 1 / math.Sqrt(float64(t*t)+1)
				s := float64(t * c)
				turn(a[p*n:(p+1)*n], a[q*n:(q+1)*n], c, s)
				for i := 0; i < n*n; i += n {
					x, y := a[i+p], a[i+q]
					a[i+p], a[i+q] = float64(c*x)-float64(s*y), float64(s*x)+float64(c*y)
				}
				turn(v[p*n:(p+1)*n], v[q*n:(q+1)*n], c, s)
			}
		}
	}
}
