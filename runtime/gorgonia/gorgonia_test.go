package gorgonia

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"gonum.org/v1/gonum/graph/formats/dot"
	"gonum.org/v1/gonum/graph/formats/dot/ast"

	"github.com/gsrc-dev/gsrc/compiler"
	"github.com/gsrc-dev/gsrc/ir"
	"github.com/gsrc-dev/gsrc/models"
	"github.com/gsrc-dev/gsrc/runtime"
)

// The names of two arguments are chosen so that gorgonia's hashes of their nodes
// collide: the graph must still have both.
func TestHashCollision(t *testing.T) {
	m, err := ir.Parse("test", `module @m
func @f(%opoeqd: f32[N], %iraadi: f32[N]) -> (y: f32[N]) {
  %y = sub %opoeqd, %iraadi : f32[N]
  return %y
}`)
	if err != nil {
		t.Fatal(err)
	}
	f := m.Func("f")
	g, want, err := emitSalted(m, f, 0)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[uint32]bool{}
	for _, n := range g.expr.AllNodes() {
		seen[n.Hashcode()] = true
	}
	if len(seen) == want {
		t.Fatal("the names no longer collide: find others")
	}
	x, err := runtime.NewExecutable(m, f, runtime.Options{NewExecutor: NewTapeExecutor})
	if err != nil {
		t.Fatal(err)
	}
	defer x.Close()
	for i, v := range f.Args {
		if err := x.Bind(v.Name, runtime.F32([]float32{5 - 2*float32(i)}, 1)); err != nil {
			t.Fatal(err)
		}
	}
	if err := x.Run(0); err != nil {
		t.Fatal(err)
	}
	if got := x.Output("y").F32[0]; got != 2 {
		t.Errorf("5 − 3 = %v", got)
	}
}

// Of many operations that are equal but for their place no two become one node.
func TestNoNodeIsMerged(t *testing.T) {
	m := ir.NewModule("wide")
	b := m.NewFunc("f")
	x := b.Arg("x", ir.T(ir.F32, "N"))
	y := x
	for range 1500 {
		y = b.Add(y, b.One("exp", nil, x))
	}
	b.Return("y", y)
	g, err := Emit(m, b.Func)
	if err != nil {
		t.Fatal(err)
	}
	if n := len(g.expr.AllNodes()); n != 3002 {
		t.Errorf("%d nodes, want 3002", n)
	}
}

func compiled(t *testing.T, model models.Model) *ir.Module {
	t.Helper()
	o := models.Default()
	o.Features, o.Classes, o.StructWidth = 11, 3, 4
	p, err := compiler.Compile(model.Build(o), compiler.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return p.Module
}

// TestOwnOperations asserts that emitted graphs consist of this package's
// operations alone: gorgonia's own are slow, and some are wrong.
func TestOwnOperations(t *testing.T) {
	for _, model := range models.All {
		m := compiled(t, model)
		for _, f := range m.Funcs {
			g, err := Emit(m, f)
			if err != nil {
				t.Fatal(err)
			}
			for _, n := range g.expr.AllNodes() {
				switch op := n.Op().(type) {
				case nil, *graphOp, *projection:
				default:
					t.Errorf("%s: @%s has a node of type %T", model.Name, f.Name, op)
				}
			}
		}
	}
}

// What WriteDot writes is read back: the nodes of gorgonia's graph, an edge for
// each operand, and the same text every time.
func TestWriteDot(t *testing.T) {
	for _, model := range models.All {
		m := compiled(t, model)
		for _, f := range m.Funcs {
			g, err := Emit(m, f)
			if err != nil {
				t.Fatal(err)
			}
			var first, second bytes.Buffer
			if err := g.WriteDot(&first); err != nil {
				t.Fatal(err)
			}
			again, err := Emit(m, f)
			if err != nil {
				t.Fatal(err)
			}
			if err := again.WriteDot(&second); err != nil {
				t.Fatal(err)
			}
			if first.String() != second.String() {
				t.Errorf("%s: @%s is written in two ways", model.Name, f.Name)
			}
			file, err := dot.ParseBytes(first.Bytes())
			if err != nil {
				t.Fatalf("%s: @%s: %v\n%s", model.Name, f.Name, err, first.Bytes())
			}
			nodes, edges, operands := 0, 0, 0
			for _, s := range file.Graphs[0].Stmts {
				switch s.(type) {
				case *ast.NodeStmt:
					nodes++
				case *ast.EdgeStmt:
					edges++
				}
			}
			for _, n := range g.expr.AllNodes() {
				operands += g.expr.From(n.ID()).Len()
			}
			if len(file.Graphs) != 1 || nodes != len(g.expr.AllNodes()) || edges != operands {
				t.Errorf("%s: @%s: %d nodes of %d and %d edges of %d are written", model.Name, f.Name, nodes, len(g.expr.AllNodes()), edges, operands)
			}
			for _, op := range f.Body {
				if !strings.Contains(first.String(), fmt.Sprintf("label=%q", op)) {
					t.Errorf("%s: @%s: %s is not written", model.Name, f.Name, op)
				}
			}
		}
	}
}
