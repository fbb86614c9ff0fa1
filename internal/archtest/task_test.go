package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"
)

// tasks are the files that implement the tasks of package train, and what package run adds to
// them. Nothing else in these folders may ask which task it has.
var tasks = map[string]*regexp.Regexp{
	filepath.Join("..", "..", "train"):       regexp.MustCompile(`^(task|nodes|nodesteps|nodeedges|graphs|graphsteps|graphedges|graphbatch|memory|graphmemory|batch)\.go$`),
	filepath.Join("..", "..", "run"):         regexp.MustCompile(`^(task|nodes|graphs)\.go$`),
	filepath.Join("..", "..", "cmd", "gsrc"): nil,
	filepath.Join("..", "..", "serve"):       nil,
	filepath.Join("..", ".."):                nil,
}

// ofTask are the types that one task only has.
var ofTask = []string{"nodeTask", "graphTask", "nodeSteps", "graphSteps", "Collection"}

// asksForTask returns the places where a file branches on the task that it has: comparisons
// of a field Graphs, or of a variable of that name, and assertions of a task's own types.
func asksForTask(fset *token.FileSet, f *ast.File) (found []token.Position) {
	name := func(e ast.Expr) string {
		for {
			switch x := e.(type) {
			case *ast.ParenExpr:
				e = x.X
			case *ast.StarExpr:
				e = x.X
			case *ast.SelectorExpr:
				return x.Sel.Name
			case *ast.Ident:
				return x.Name
			default:
				return ""
			}
		}
	}
	isGraphs := func(e ast.Expr) bool { return slices.Contains([]string{"Graphs", "graphs", "collection"}, name(e)) }
	ast.Inspect(f, func(n ast.Node) bool {
		asks := false
		switch n := n.(type) {
		case *ast.BinaryExpr:
			asks = n.Op != token.LAND && n.Op != token.LOR && (isGraphs(n.X) || isGraphs(n.Y))
		case *ast.TypeAssertExpr:
			asks = n.Type != nil && slices.Contains(ofTask, name(n.Type))
		case *ast.TypeSwitchStmt:
			for _, c := range n.Body.List {
				asks = asks || slices.ContainsFunc(c.(*ast.CaseClause).List, func(e ast.Expr) bool { return slices.Contains(ofTask, name(e)) })
			}
		}
		if asks {
			found = append(found, fset.Position(n.Pos()))
		}
		return true
	})
	return found
}

// A further task is a further implementation of train.Task: nothing outside of one branches
// on which it is.
func TestTasksAreNotAskedFor(t *testing.T) {
	for folder, implement := range tasks {
		entries, err := os.ReadDir(folder)
		if err != nil {
			t.Fatal(err)
		}
		files := 0
		for _, e := range entries {
			name := e.Name()
			if filepath.Ext(name) != ".go" || regexp.MustCompile(`_test\.go$`).MatchString(name) || implement != nil && implement.MatchString(name) {
				continue
			}
			fset := token.NewFileSet()
			f, err := parser.ParseFile(fset, filepath.Join(folder, name), nil, 0)
			if err != nil {
				t.Fatal(err)
			}
			files++
			for _, at := range asksForTask(fset, f) {
				t.Errorf("%s asks which task it has; make it a method of train.Task", at)
			}
		}
		if files == 0 {
			t.Errorf("no file of %s was looked at", folder)
		}
	}
}

func TestAsksForTask(t *testing.T) {
	for text, want := range map[string]int{
		"if r.Graphs != nil { a() }":                                      1,
		"if ok && (t.task.Graphs == nil) { a() }":                         1,
		"if info.Data.Graphs > 0 { a() }":                                 1,
		"if graphs != nil { a() }":                                        1,
		"_, ok := task.(graphTask); a(ok)":                                1,
		"switch x.(type) { case *nodeSteps: a(); case *graphSteps: a() }": 1,
		"n := len(c.Graphs); a(n)":                                        0,
		"r, ok := steps.(refiner); a(r, ok)":                              0,
	} {
		fset := token.NewFileSet()
		f, err := parser.ParseFile(fset, "x.go", "package x\nfunc f() {"+text+"}", 0)
		if err != nil {
			t.Fatal(err)
		}
		if got := len(asksForTask(fset, f)); got != want {
			t.Errorf("%q asks %d times, want %d", text, got, want)
		}
	}
}
