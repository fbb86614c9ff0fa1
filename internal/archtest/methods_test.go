package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"
)

// A type of package train, with what it embeds of the package, has at most that many methods:
// what has more is to be taken apart.
func TestTrainHasNoTypeOfEverything(t *testing.T) {
	const most = 70
	paths, err := filepath.Glob(filepath.Join("..", "..", "train", "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	named := func(e ast.Expr) string {
		if star, ok := e.(*ast.StarExpr); ok {
			e = star.X
		}
		id, _ := e.(*ast.Ident)
		if id == nil {
			return ""
		}
		return id.Name
	}
	methods, embeds := map[string]int{}, map[string][]string{}
	look := func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			if n.Recv != nil {
				methods[named(n.Recv.List[0].Type)]++
			}
		case *ast.TypeSpec:
			if s, ok := n.Type.(*ast.StructType); ok {
				for _, f := range s.Fields.List {
					if len(f.Names) == 0 {
						embeds[n.Name.Name] = append(embeds[n.Name.Name], named(f.Type))
					}
				}
			}
		}
		return true
	}
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(f, look)
	}
	if methods["trainer"] == 0 || len(embeds["nodeSteps"]) == 0 {
		t.Fatal("the trainer or what embeds it was not found")
	}
	var count func(name string) int
	count = func(name string) int {
		n := methods[name]
		for _, e := range embeds[name] {
			n += count(e)
		}
		return n
	}
	for name := range methods {
		if n := count(name); n > most {
			t.Errorf("%s has %d methods, with those of what it embeds; %d are allowed", name, n, most)
		}
	}
}
