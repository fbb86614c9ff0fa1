package ir

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

const vjpTolerance = 1e-7

// TestVJP holds every gradient rule against central differences in float64: of
// L = Σ_k ⟨y_k, c_k⟩ with random c, the rule's products against the
// interpreter's grad operation, for f32 and f64 types, all shapes, and for
// operations of several results also with each cotangent alone.
func TestVJP(t *testing.T) {
	checked := 0
	for _, d := range Ops() {
		if d.VJP == nil {
			continue
		}
		for i, c := range cases[d.Name] {
			for label, s := range allSizes() {
				for _, dtype := range []string{"f32", "f64"} {
					if dtype == "f64" && slices.ContainsFunc(c.in, func(s string) bool { return strings.HasPrefix(s, "csr") }) {
						continue // CSR is f32
					}
					t.Run(fmt.Sprintf("%s/%d/%s/%s", d.Name, i, label, dtype), func(t *testing.T) {
						checkVJP(t, d, c, s, dtype, -1, -1)
						checked++
						for k := range d.Results {
							if len(d.Results) > 1 {
								checkVJP(t, d, c, s, dtype, k, -1)
							}
						}
						for k, spec := range d.Operands {
							if spec.Kind == TensorOperand && len(d.Operands) > 1 {
								checkVJP(t, d, c, s, dtype, -1, k)
							}
						}
					})
				}
			}
		}
	}
	t.Logf("%d uses checked", checked)
}

// checkVJP checks one use. onlyCt ≥ 0 leaves out all other cotangents; onlyNeed
// ≥ 0 asks for one operand's product.
func checkVJP(t *testing.T, d *OpDef, c opCase, s sizes, dtype string, onlyCt, onlyNeed int) {
	t.Helper()
	r := rand.New(rand.NewPCG(5, 11))
	u := c.use(t, d.Name, s, dtype, r)
	values := interpretResults(t, u)
	bind := boundBy(u)
	b := u.b
	ctx := &VJPCtx{Builder: b, Op: u.op, Ct: make([]*Value, len(u.op.Results)), Need: make([]bool, len(u.op.Operands))}
	loss := b.Fill(0, T(F64))
	if dtype == "f32" {
		loss = b.Const(0)
	}
	for k, y := range u.op.Results {
		// What is not finite (a logsumexp of nothing) has no gradient.
		if onlyCt >= 0 && k != onlyCt || !y.Type.DType.IsFloat() || !finite(values[k]) {
			continue
		}
		ty := y.Type
		ty.Layout = Dense
		ctx.Ct[k] = b.Arg(fmt.Sprintf("c%d", k), ty)
		u.args = append(u.args, randomVal(t, ty, "", k, bind, r))
		if y.Type.Layout == CSR {
			y = b.One("to_dense", nil, y)
		}
		if ty.DType == loss.Type.DType {
			loss = b.Add(loss, b.Sum(b.Mul(y, ctx.Ct[k])))
		} else { // fill and the like, of a declared type
			ctx.Ct[k] = nil
		}
	}
	any := false
	for k, x := range u.op.Operands {
		ctx.Need[k] = x != nil && !x.Type.IsGraph() && x.Type.DType.IsFloat() && (onlyNeed < 0 || k == onlyNeed)
		any = any || ctx.Need[k]
	}
	if !any || !hasCt(ctx) {
		if g := d.VJP; onlyNeed < 0 && onlyCt < 0 && !any && len(u.op.Operands) == 0 {
			if out := g(ctx); len(out) != 0 {
				t.Errorf("products %v of no operands", out)
			}
		}
		return
	}
	var numeric []*Value
	for k, x := range u.op.Operands {
		if ctx.Need[k] && x.Type.Layout == Dense {
			numeric = append(numeric, b.One("grad", nil, loss, x))
		} else {
			numeric = append(numeric, nil)
		}
	}
	products := d.VJP(ctx)
	if len(products) != len(u.op.Operands) {
		t.Fatalf("%d products of %d operands", len(products), len(u.op.Operands))
	}
	b.Return("loss", loss)
	for k, x := range u.op.Operands {
		if !ctx.Need[k] {
			continue
		}
		if g := products[k]; g != nil {
			if !g.Type.SameShape(x.Type) || g.Type.DType != x.Type.DType || g.Type.Layout != Dense {
				t.Errorf("operand %d is %s, its product %s", k, x.Type, g.Type)
			}
			b.Return(fmt.Sprintf("vjp%d", k), g)
		}
		if numeric[k] != nil {
			b.Return(fmt.Sprintf("numeric%d", k), numeric[k])
		}
	}
	if err := Verify(u.m); err != nil {
		t.Fatal(err)
	}
	out, err := Interpret(u.m, "f", u.args, nil, testRandom(3))
	if err != nil {
		t.Fatal(err)
	}
	byName := map[string]*Tensor{}
	for k, res := range b.Func.Results {
		byName[res.Name] = out[k].T
	}
	for k, x := range u.op.Operands {
		if !ctx.Need[k] {
			continue
		}
		want := byName[fmt.Sprintf("numeric%d", k)]
		if want == nil {
			want = sparseNumeric(t, u, x)
		}
		got := byName[fmt.Sprintf("vjp%d", k)]
		if got == nil {
			got = NewTensor(want.Shape...) // nil says zero
		}
		for i := range want.Data {
			if !near(got.Data[i], want.Data[i], vjpTolerance) {
				t.Errorf("operand %d, element %d: rule %.10g, central differences %.10g\n%s", k, i, got.Data[i], want.Data[i], u.m)
				break
			}
		}
	}
}

// sparseNumeric is the gradient by an argument that the grad operation does not
// take, since it is stored sparsely.
func sparseNumeric(t *testing.T, u *use, x *Value) *Tensor {
	for k, a := range u.b.Func.Args {
		if a != x {
			continue
		}
		g, err := centralDifferences(u.args[k].T, func() (float64, error) {
			out, err := Interpret(u.m, "f", u.args, nil, testRandom(3))
			if err != nil {
				return 0, err
			}
			return out[0].T.Data[0], nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if u.op.Name() == "stop_gradient" { // Interpret runs no gradient here, so nothing is stopped
			g = NewTensor(g.Shape...)
		}
		return g
	}
	t.Fatalf("%s is no argument", x.Name)
	return nil
}

func hasCt(c *VJPCtx) bool {
	for _, v := range c.Ct {
		if v != nil {
			return true
		}
	}
	return false
}

func finite(x *Tensor) bool {
	for _, v := range x.Data {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return false
		}
	}
	return true
}

// interpretResults evaluates the results of the operation of a use.
func interpretResults(t *testing.T, u *use) []*Tensor {
	m := u.m.Clone()
	f := m.Func("f")
	op := f.Body[len(f.Body)-1]
	f.Results = nil
	for k, v := range op.Results {
		f.Results = append(f.Results, Result{fmt.Sprintf("y%d", k), v})
	}
	out, err := Interpret(m, "f", u.args, nil, testRandom(3))
	if err != nil {
		t.Fatal(err)
	}
	var ts []*Tensor
	for _, v := range out {
		ts = append(ts, v.T)
	}
	return ts
}
