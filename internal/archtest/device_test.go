package archtest

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strings"
	"testing"
)

// devices are the folders that may know which device they have: those that implement
// one, and run, which opens one by its name. runtime/ort has providers of its own.
var devices = []string{"runtime/cuda", "runtime/ort", "internal/fakedevice", "internal/cudatest", "run"}

// asksForDevice returns what in a file asks which kind of device a runtime.Device is: an
// assertion or a switch to a type of runtime's device interfaces or of package cuda, or a
// comparison with runtime.CPU. A device's differences are methods of the one interface.
func asksForDevice(set *token.FileSet, tree *ast.File) (found []string) {
	report := func(n ast.Node, what string) {
		found = append(found, fmt.Sprintf("%s: %s", set.Position(n.Pos()), what))
	}
	ownsCPU := tree.Name.Name == "runtime"
	kind := func(x ast.Expr) string {
		if p, ok := x.(*ast.StarExpr); ok {
			x = p.X
		}
		names := []string{"Device", "Allocator", "Trainer", "Sampler", "Queue", "Stream", "Runner", "Timer"}
		switch x := x.(type) {
		case *ast.SelectorExpr:
			from, ok := x.X.(*ast.Ident)
			if ok && (from.Name == "runtime" && slices.Contains(names, x.Sel.Name) || from.Name == "cuda") {
				return from.Name + "." + x.Sel.Name
			}
		case *ast.Ident:
			if ownsCPU && (slices.Contains(names, x.Name) || slices.Contains([]string{"cpu", "hostRunner", "queueRunner", "sizesOf"}, x.Name)) {
				return x.Name
			}
		case *ast.InterfaceType:
			if ownsCPU {
				return "an interface"
			}
		}
		return ""
	}
	isCPU := func(x ast.Expr) bool {
		switch x := x.(type) {
		case *ast.SelectorExpr:
			from, ok := x.X.(*ast.Ident)
			return ok && from.Name == "runtime" && x.Sel.Name == "CPU"
		case *ast.Ident:
			return ownsCPU && x.Name == "CPU"
		}
		return false
	}
	ast.Inspect(tree, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.TypeAssertExpr:
			if k := kind(n.Type); k != "" {
				report(n, "asserts that a value is "+k)
			}
		case *ast.TypeSwitchStmt:
			for _, c := range n.Body.List {
				for _, x := range c.(*ast.CaseClause).List {
					if k := kind(x); k != "" {
						report(x, "switches on "+k)
					}
				}
			}
		case *ast.BinaryExpr:
			if (n.Op == token.EQL || n.Op == token.NEQ) && (isCPU(n.X) || isCPU(n.Y)) {
				report(n, "compares with runtime.CPU")
			}
		}
		return true
	})
	return found
}

// Nothing outside the devices asks for the kind of device.
func TestNothingAsksForTheKindOfDevice(t *testing.T) {
	outside := func(path string) bool {
		return !isTest(path) && !slices.ContainsFunc(devices, func(dir string) bool { return strings.HasPrefix(path, dir+"/") })
	}
	eachFile(t, 300, outside, parser.SkipObjectResolution, func(_ string, set *token.FileSet, file *ast.File) {
		for _, f := range asksForDevice(set, file) {
			t.Errorf("%s; make the difference a method of runtime.Device", f)
		}
	})
}

// The rule finds what it forbids, and nothing else.
func TestAsksForDevice(t *testing.T) {
	for _, c := range []struct {
		pkg, body string
		want      int
	}{
		{"train", "_, ok := d.(runtime.Queue); _ = ok", 1},
		{"train", "_ = d.(*cuda.Device)", 1},
		{"train", "if d != runtime.CPU {}", 1},
		{"train", "switch d.(type) { case *cuda.Device, runtime.Timer: }", 2},
		{"runtime", "_ = d.(cpu)", 1},
		{"runtime", "if d == CPU {}", 1},
		{"runtime", "_ = d.(interface{ Pads() bool })", 1},
		{"train", "_ = err.(*runtime.OpError); if d.Pads() {}", 0},
		{"train", "if d == nil { d = runtime.CPU }", 0},
	} {
		set := token.NewFileSet()
		tree, err := parser.ParseFile(set, "x.go", "package "+c.pkg+"\nfunc f() { "+c.body+" }", 0)
		if err != nil {
			t.Fatal(err)
		}
		if got := asksForDevice(set, tree); len(got) != c.want {
			t.Errorf("%s: %q, want %d", c.body, got, c.want)
		}
	}
}
