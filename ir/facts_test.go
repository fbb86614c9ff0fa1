package ir

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// notByRow are operations whose rows are computed apart from each other in their cases,
// but not where rows are appended.
var notByRow = map[string]string{
	"cross_entropy_grad": "divides by the number of rows",
}

// TestFacts holds what the table says of each tensor operation to its reference
// evaluation, in both directions where a wrong silence would make a pass leave the
// operation out.
func TestFacts(t *testing.T) {
	for _, d := range Ops() {
		if d.Level != TensorLevel || d.Resolved || d.Sizes {
			continue
		}
		t.Run(d.Name, func(t *testing.T) {
			additive := map[int]bool{} // operands in which every case is linear
			byRow := map[int]bool{}    // operands that every case reads by row, where it is said of none
			for i, c := range cases[d.Name] {
				for k := range 4 {
					r := rand.New(rand.NewPCG(uint64(i), uint64(k)))
					p := &probe{T: t, use: c.use(t, d.Name, randomSizes(r), "f32", r), name: fmt.Sprintf("case %d", i), byRow: byRow}
					for _, v := range p.op.Results {
						p.b.Return("y_"+v.Name, v)
					}
					for at := range p.op.Operands {
						is, known := p.operand(at, r)
						if was, seen := additive[min(at, len(d.Operands)-1)]; known {
							additive[min(at, len(d.Operands)-1)] = is && (was || !seen)
						}
					}
					p.moved()
					p.view()
				}
			}
			for at, is := range byRow {
				if is && notByRow[d.Name] == "" {
					t.Errorf("operand %s is read row by row, and the table does not say so", d.Operands[at].Name)
				}
			}
			for at, is := range additive {
				if is != d.Operands[at].Linear {
					t.Errorf("Linear of operand %s is %v, but the reference says %v", d.Operands[at].Name, d.Operands[at].Linear, is)
				}
			}
		})
	}
}

// probe is an operation in use, whose operands can be changed.
type probe struct {
	*testing.T
	*use
	name  string
	byRow map[int]bool
}

// operandTensor returns the float tensor that is operand i, or nil.
func (p *probe) operandTensor(i int) *Tensor {
	v := p.op.Operands[i]
	if v == nil || v.Type.IsGraph() || !v.Type.DType.IsFloat() || v.Type.Layout == CSR {
		return nil
	}
	return p.args[slices.Index(p.b.Func.Args, v)].T
}

// run returns the elements of all results, NaN where the operation refuses its operands.
func (p *probe) run() [][]float64 {
	p.Helper()
	out, err := Interpret(p.m, "f", p.args, nil, testRandom(3))
	if err != nil {
		return [][]float64{{math.NaN()}}
	}
	var all [][]float64
	for _, v := range out {
		all = append(all, v.T.Data)
	}
	return all
}

// operand tells whether the operation is additive in operand i, and whether that can be
// said of it alone, and checks what the table says of how the operand is read.
func (p *probe) operand(i int, r *rand.Rand) (additive, known bool) {
	x := p.operandTensor(i)
	if x == nil || len(x.Data) == 0 {
		return false, false
	}
	before, saved := p.run(), slices.Clone(x.Data)
	defer func() { copy(x.Data, saved) }()
	p.rows(i, x, before)
	copy(x.Data, saved)
	if p.op.Def.ShapeOnly {
		for k := range x.Data {
			x.Data[k] = 7 * r.Float64()
		}
		if !closeAll(p.run(), before, nil) {
			p.Errorf("%s: ShapeOnly, but the result depends on operand %d", p.name, i)
		}
		return false, false
	}
	if len(before) > 1 || slices.Contains(p.op.Operands[:i], p.op.Operands[i]) || !finiteAll(before) {
		return false, false
	}
	other := make([]float64, len(saved))
	for k := range other {
		other[k] = r.Float64() - 0.5
	}
	copy(x.Data, other)
	second := p.run()
	for k := range x.Data {
		x.Data[k] = saved[k] + other[k]
	}
	if len(second[0]) != len(before[0]) {
		return false, false
	}
	for k := range second[0] {
		second[0][k] += before[0][k]
	}
	return closeAll(p.run(), second, nil), finiteAll(second) && nonzero(before[0])
}

// rows changes operand i row by row, and element by element, and looks at which results
// change.
func (p *probe) rows(i int, x *Tensor, before [][]float64) {
	if len(p.op.Results) > 1 {
		return
	}
	in, out, at := p.op.Operands[i].Type, p.op.Result().Type, min(i, len(p.op.Def.Operands)-1)
	switch {
	case in.Rank() == 0:
		return
	case out.Rank() == 0 || in.Dims[0] != out.Dims[0]:
		p.byRow[at] = false
		return
	case x.Shape[0] < 2 || !nonzero(before[0]):
		return
	}
	saved, n := slices.Clone(x.Data), x.Shape[0]
	local := true
	for row := range n {
		for k := range len(x.Data) / n {
			x.Data[row*len(x.Data)/n+k] += 0.37 + 0.01*float64(k)
		}
		w := len(before[0]) / n
		local = local && closeAll(p.run(), before, func(_, k int) bool { return k/max(w, 1) == row })
		copy(x.Data, saved)
	}
	read := p.op.Reads(i)
	says := read == ReadElement || read == ReadRow
	was, seen := p.byRow[at]
	p.byRow[at] = local && !says && (was || !seen) && read == ReadAll
	if says && !local {
		p.Errorf("%s: operand %d is said to be read row by row, and is not", p.name, i)
	}
	if read == ReadElement && in.SameShape(out) {
		for at := range x.Data {
			x.Data[at] += 0.37
			if !closeAll(p.run(), before, func(_, k int) bool { return k == at }) {
				p.Errorf("%s: operand %d is said to be read element by element, and is not", p.name, i)
			}
			copy(x.Data, saved)
		}
	}
}

// moved holds results to consist of the elements of Moved operands.
func (p *probe) moved() {
	have, any := map[float64]bool{}, false
	for i, v := range p.op.Operands {
		if v == nil || !p.op.Def.operand(i).Moved {
			continue
		}
		any = true
		for _, e := range p.args[slices.Index(p.b.Func.Args, v)].T.Data {
			have[e] = true
		}
	}
	if !any {
		return
	}
	for _, e := range p.run()[0] {
		if !have[e] {
			p.Errorf("%s: %g is no element of a Moved operand", p.name, e)
		}
	}
}

// view holds views to be the rows of operand 0 that they say.
func (p *probe) view() {
	from, ok := p.op.View()
	if !ok {
		return
	}
	x, y := p.args[0].T, p.run()[0]
	if at := from * width(x); !slices.Equal(x.Data[at:at+len(y)], y) {
		p.Errorf("%s: the result is not the operand from row %d on", p.name, from)
	}
}

// TestFinite holds Finite to what elementwise operations make of numbers of every size.
func TestFinite(t *testing.T) {
	numbers := []float64{0, 1e-3, 0.5, 1, 2, 100, 1e4, 1e6}
	for _, v := range numbers {
		numbers = append(numbers, -v)
	}
	wild := append(slices.Clone(numbers), math.NaN(), math.Inf(1), math.Inf(-1))
	for _, d := range Ops() {
		if !d.Elementwise() || d.Random || d.Level != TensorLevel || d.Operands[0].Variadic || d.Operands[0].Moved || len(cases[d.Name]) == 0 {
			continue
		}
		all := func(numbers []float64) bool {
			for _, c := range cases[d.Name] {
				op, err := newOp(d.Name, c.attrs, nil, []*Value{{Type: T(F32)}, {Type: T(F32)}}[:len(d.Operands)])
				if err != nil {
					t.Fatal(err)
				}
				for _, a := range numbers {
					for _, b := range numbers {
						if y, ok := d.Scalar(op.Attrs, []float64{a, b}[:len(d.Operands)]...); !ok || math.IsNaN(y) || math.IsInf(y, 0) {
							return false
						}
					}
				}
			}
			return true
		}
		want := FiniteSometimes
		switch {
		case all(wild):
			want = FiniteAlways
		case all(numbers):
			want = FiniteIfOperands
		}
		if d.Finite != want {
			t.Errorf("Finite of %s is %v, the reference says %v", d.Name, d.Finite, want)
		}
	}
}

// closeAll reports whether two sets of results agree but where skip says so.
func closeAll(a, b [][]float64, skip func(result, k int) bool) bool {
	for i := range a {
		if len(a[i]) != len(b[i]) {
			return false
		}
		for k := range a[i] {
			if (skip == nil || !skip(i, k)) && !near(a[i][k], b[i][k], 1e-9) {
				return false
			}
		}
	}
	return true
}

func finiteAll(a [][]float64) bool {
	return !slices.ContainsFunc(a, func(x []float64) bool {
		return slices.ContainsFunc(x, func(v float64) bool { return math.IsNaN(v) || math.IsInf(v, 0) })
	})
}

func nonzero(x []float64) bool {
	return slices.ContainsFunc(x, func(v float64) bool { return v != 0 })
}
