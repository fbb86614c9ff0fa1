package ir

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// TestTable walks the operation table: whatever a reader or a pass wants of an
// operation must be there.
func TestTable(t *testing.T) {
	for _, d := range Ops() {
		t.Run(d.Name, func(t *testing.T) {
			if d.Doc == "" || d.Infer == nil || d.Eval == nil {
				t.Errorf("Doc, Infer and Eval are due; set: %v, %v, %v", d.Doc != "", d.Infer != nil, d.Eval != nil)
			}
			if (d.VJP == nil) == (d.NoGrad == "") {
				t.Errorf("exactly one of VJP and NoGrad is due; VJP %v, NoGrad %q", d.VJP != nil, d.NoGrad)
			}
			if len(d.Results) == 0 || slices.ContainsFunc(d.Results, func(s string) bool { return !validSymbol(s) }) {
				t.Errorf("results %q must be names", d.Results)
			}
			prefix := map[Level]string{GSRLevel: "gsr.", GNNLevel: "gnn.", TensorLevel: ""}[d.Level]
			if got := d.Name[:strings.IndexByte(d.Name, '.')+1]; got != prefix {
				t.Errorf("level %s wants the prefix %q, has %q", d.Level, prefix, got)
			}
			names := map[string]bool{}
			for i, o := range d.Operands {
				if !validSymbol(o.Name) || names[o.Name] {
					t.Errorf("operand %d: name %q", i, o.Name)
				}
				names[o.Name] = true
				if o.Variadic && i != len(d.Operands)-1 {
					t.Errorf("operand %s is variadic and not the last", o.Name)
				}
				if o.Sparse && o.Kind == GraphOperand {
					t.Errorf("operand %s is a graph and sparse", o.Name)
				}
			}
			random := false
			for _, a := range d.Attrs {
				if !validSymbol(a.Name) || names[a.Name] {
					t.Errorf("attribute name %q", a.Name)
				}
				names[a.Name] = true
				if a.Doc == "" {
					t.Errorf("attribute %s has no Doc", a.Name)
				}
				if a.Default != nil && !a.Kind.holds(a.Default) {
					t.Errorf("attribute %s: default %v is not %s", a.Name, a.Default, a.Kind)
				}
				if s, ok := a.Default.(string); ok && a.OneOf != nil && !slices.Contains(a.OneOf, s) {
					t.Errorf("attribute %s: default %q is none of %v", a.Name, s, a.OneOf)
				}
				if a.OneOf != nil && a.Kind != StringAttr {
					t.Errorf("attribute %s: OneOf is for strings", a.Name)
				}
				random = random || a.Name == "stream" && a.Kind == StringAttr && a.Default == nil
			}
			if d.Random != random {
				t.Errorf("Random is %v, attribute stream present: %v", d.Random, random)
			}
			if Lookup(d.Name) != d {
				t.Errorf("Lookup does not find it")
			}
			if len(cases[d.Name]) == 0 {
				t.Errorf("there is no line in cases (cases_test.go)")
			}
		})
	}
	for name := range cases {
		if Lookup(name) == nil {
			t.Errorf("cases has a line for %q, which is no operation", name)
		}
	}
}

// TestOpsOrder holds what `gsrc ops` lists: levels from the paper down, then
// names, each once.
func TestOpsOrder(t *testing.T) {
	ops := Ops()
	for i := 1; i < len(ops); i++ {
		a, b := ops[i-1], ops[i]
		if a.Level < b.Level || a.Level == b.Level && a.Name >= b.Name {
			t.Errorf("%s (%s) stands before %s (%s)", a.Name, a.Level, b.Name, b.Level)
		}
	}
}

// TestCases runs every operation on random, empty and one-element shapes: its
// type rule accepts it, the module verifies, prints and parses, and the
// reference evaluation returns what the type rule says.
func TestCases(t *testing.T) {
	for _, d := range Ops() {
		for i, c := range cases[d.Name] {
			for label, s := range allSizes() {
				t.Run(fmt.Sprintf("%s/%d/%s", d.Name, i, label), func(t *testing.T) {
					r := rand.New(rand.NewPCG(1, uint64(i)))
					u := c.use(t, d.Name, s, "f32", r)
					for k, v := range u.op.Results {
						u.b.Return(fmt.Sprintf("y%d", k), v)
					}
					if err := Verify(u.m); err != nil {
						t.Fatal(err)
					}
					roundTrip(t, u.m)
					out, err := Interpret(u.m, "f", u.args, nil, testRandom(3))
					if err != nil {
						t.Fatal(err)
					}
					bind := boundBy(u)
					for k, v := range u.op.Results {
						if d.Sizes { // the sizes are what they are, but agree
							if err := bindDims(v, out[k], bind); err != nil {
								t.Error(err)
							}
							continue
						}
						want, err := v.Type.Shape(bind)
						if err != nil {
							t.Fatal(err)
						}
						if got := out[k].T; got == nil || !slices.Equal(got.Shape, want) || len(got.Data) != elements(want) {
							t.Errorf("result %d is %v, want shape %v", k, out[k], want)
						}
					}
					again, err := Interpret(u.m, "f", u.args, nil, testRandom(3))
					if err != nil {
						t.Fatal(err)
					}
					for k := range out {
						if !reflect.DeepEqual(out[k], again[k]) {
							t.Errorf("result %d differs from run to run: operands were changed", k)
						}
					}
				})
			}
		}
	}
}

// boundBy returns the sizes that the arguments of a use bind.
func boundBy(u *use) map[string]int {
	bind := map[string]int{}
	for i, a := range u.b.Func.Args {
		if err := bindDims(a, u.args[i], bind); err != nil {
			panic(err)
		}
	}
	return bind
}
