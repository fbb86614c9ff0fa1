package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/gsrc-dev/gsrc/ir"
)

// operationTables are the tables with a line for each of some operations: what a back
// end or a pass has to do for it. What is true of an operation itself is in ir.OpDef.
var operationTables = map[string][]string{
	"passes": {"gnnLowerings", "gsrLowerings", "linear"},
	"runtime": {"elementwiseKernels", "reduceKernels", "matrixKernels", "pairwiseKernels", "graphKernels", "randomKernels", "fusedKernels",
		"cpuWorkspaces", "gradientOf", "chainUnary", "chainBinary", "chainCompare", "chainOther"},
	"runtime/cuda": {"elementwiseKernels", "reduceKernels", "matrixKernels", "pairwiseKernels", "graphKernels", "pointwise", "workspaces", "int64Indexed"},
	"export/onnx":  {"opEmitters"},
}

// A condition or a case that treats more than alikeMax operations alike, and a switch
// on more than switchMax, say what is true of operations; fewer match a pattern.
const (
	alikeMax  = 3
	switchMax = 8
)

// operationLists returns what is wrong with a source file: lists, conditions and
// switches of operation names. used collects the tables that it has.
func operationLists(fset *token.FileSet, file *ast.File, tables []string, used map[string]bool) []string {
	var wrong []string
	report := func(n ast.Node, what string, names []string) {
		wrong = append(wrong, fset.Position(n.Pos()).String()+": "+what+" "+strings.Join(names, ", "))
	}
	// named returns the operations among expressions, those that conditions compare with too.
	named := func(es ...ast.Expr) (names []string) {
		for _, e := range es {
			ast.Inspect(e, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.CallExpr:
					return false
				case *ast.BasicLit:
					if s, err := strconv.Unquote(n.Value); err == nil && n.Kind == token.STRING && ir.Lookup(s) != nil && !slices.Contains(names, s) {
						names = append(names, s)
					}
				}
				return true
			})
		}
		return names
	}
	within := map[*ast.CompositeLit]string{} // the variable that a literal is the value of
	var conditions []ast.Node                // that have been looked at as a whole
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ValueSpec:
			for i, v := range n.Values {
				if lit, ok := v.(*ast.CompositeLit); ok {
					within[lit] = n.Names[i].Name
				}
			}
		case *ast.AssignStmt:
			for i, v := range n.Rhs {
				lit, ok := v.(*ast.CompositeLit)
				if name, isName := n.Lhs[min(i, len(n.Lhs)-1)].(*ast.Ident); ok && isName {
					within[lit] = name.Name
				}
			}
		case *ast.CompositeLit:
			var keys []ast.Expr
			for _, e := range n.Elts {
				if kv, ok := e.(*ast.KeyValueExpr); ok {
					e = kv.Key
				}
				if lit, ok := e.(*ast.BasicLit); ok {
					keys = append(keys, lit)
				}
			}
			if names := named(keys...); len(names) > 1 {
				if used[within[n]] = true; !slices.Contains(tables, within[n]) {
					report(n, "a list of operations:", names)
				}
			}
		case *ast.SwitchStmt:
			var all []ast.Expr
			for _, c := range n.Body.List {
				list := c.(*ast.CaseClause).List
				all = append(all, list...)
				if names := named(list...); len(names) > alikeMax {
					report(c, "a case of many operations:", names)
				}
			}
			if names := named(all...); len(names) > switchMax {
				report(n, "a switch on many operations:", names)
			}
		case *ast.BinaryExpr:
			if slices.ContainsFunc(conditions, func(c ast.Node) bool { return c.Pos() <= n.Pos() && n.End() <= c.End() }) {
				return true
			}
			conditions = append(conditions, n)
			if names := named(n); len(names) > alikeMax {
				report(n, "a condition on many operations:", names)
			}
		}
		return true
	})
	return wrong
}

// TestFactsAboutOperationsAreInTheirTable looks for what passes, executors and exporters
// say of operations by name and ir.OpDef could say.
func TestFactsAboutOperationsAreInTheirTable(t *testing.T) {
	used := map[string]map[string]bool{}
	wanted := func(path string) bool { // runtime/kernels knows no operations of the IR
		room, _, _ := strings.Cut(path, "/")
		return !isTest(path) && slices.Contains([]string{"passes", "runtime", "export", "compiler"}, room) && !strings.HasPrefix(path, "runtime/kernels/")
	}
	eachFile(t, 100, wanted, 0, func(name string, set *token.FileSet, file *ast.File) {
		folder := path.Dir(name)
		if used[folder] == nil {
			used[folder] = map[string]bool{}
		}
		for _, w := range operationLists(set, file, operationTables[folder], used[folder]) {
			t.Errorf("%s: say it in ir.OpDef, or name the table in operationTables", w)
		}
	})
	for folder, tables := range operationTables {
		for _, table := range tables {
			if !used[folder][table] {
				t.Errorf("%s has no table %s of operations", folder, table)
			}
		}
	}
}

// TestOperationLists holds the search to what it must and must not find.
func TestOperationLists(t *testing.T) {
	for _, c := range []struct {
		body string
		want bool
	}{
		{`var list = []string{"add", "sub"}`, true},
		{`var set = map[string]bool{"relu": true, "elu": true}`, true},
		{`var table = map[string]func(){"relu": nil, "elu": nil}`, false},
		{`func f(op O) { switch op.Name() { case "add", "sub", "mul", "div": } }`, true},
		{`func f(op O) { switch op.Name() { case "add", "sub": case "mul": } }`, false},
		{`func f(op O) { switch op.Name() { case "add": case "sub": case "mul": case "div": case "exp": case "log": case "tanh": case "sqrt": case "neg": } }`, true},
		{`func f(n string) { switch { case n == "add" || n == "sub" || n == "mul" || n == "div": } }`, true},
		{`func f(n string) bool { return n == "add" || n == "sub" || n == "mul" || n == "div" }`, true},
		{`func f(n string) bool { return n != "matmul" && n != "spmm" }`, false},
		{`func f(b B) { b.One("add", b.One("mul", b.One("exp", b.One("log", b.One("neg"))))) }`, false},
		{`var words = []string{"addition", "anything"}`, false},
	} {
		fset := token.NewFileSet()
		file, err := parser.ParseFile(fset, "f.go", "package p\n"+c.body, 0)
		if err != nil {
			t.Fatal(err)
		}
		if got := operationLists(fset, file, []string{"table"}, map[string]bool{}); (len(got) > 0) != c.want {
			t.Errorf("%s: found %q, want some: %v", c.body, got, c.want)
		}
	}
}
