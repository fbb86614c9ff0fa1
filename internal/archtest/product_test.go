package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// notProduct are the packages that stand in for something in tests, and the programs for
// development.
var notProduct = regexp.MustCompile(`^(tools|internal/(archtest|fakedevice|cudaemulator|mockdriver|emulation|[a-z]*test))(/|$)`)

// The program that users run holds no test double, no test helper and no tool.
func TestProductHasNoTestDoubles(t *testing.T) {
	linked := list(t, "-deps", "-f", "{{.ImportPath}} {{.Standard}}", "./cmd/gsrc")
	if len(linked) < 50 {
		t.Fatalf("go list -deps names %d packages", len(linked))
	}
	for _, p := range linked {
		if p[1] == "false" && notProduct.MatchString(p[0]) {
			t.Errorf("%s is linked into ./cmd/gsrc", p[0])
		}
	}
	for _, p := range []string{"tools/testcount", "internal/fakedevice", "internal/optest", "internal/datatest"} {
		if !notProduct.MatchString(p) {
			t.Errorf("%s counts as a part of the product", p)
		}
	}
}

// No test looks for a file outside of the repository: not beside it, and not at an
// absolute path of one machine. Real data are where GSRC_DATA says.
func TestTestsStayInTheRepository(t *testing.T) {
	eachFile(t, 100, isTest, parser.SkipObjectResolution, func(path string, set *token.FileSet, file *ast.File) {
		for pos, up := range climbs(file) {
			if up > strings.Count(path, "/") {
				t.Errorf("%s: the path leads out of the repository; real data are below GSRC_DATA (internal/datatest)", set.Position(pos))
			}
		}
	})
}

// climbs returns how many folders up the paths of a file lead: those in texts, and those
// that Join makes.
func climbs(file *ast.File) map[token.Pos]int {
	found := map[token.Pos]int{}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ImportSpec:
			return false
		case *ast.BasicLit:
			if text, err := strconv.Unquote(n.Value); n.Kind == token.STRING && err == nil {
				found[n.Pos()] = ups(text)
			}
		case *ast.CallExpr:
			f, ok := n.Fun.(*ast.SelectorExpr)
			if !ok || f.Sel.Name != "Join" {
				return true
			}
			up := 0
			for _, a := range n.Args {
				text, ok := a.(*ast.BasicLit)
				if !ok || text.Value != `".."` {
					break
				}
				up++
			}
			found[n.Pos()] = up
		}
		return true
	})
	return found
}

func ups(path string) (n int) {
	for strings.HasPrefix(path, "../") {
		path, n = path[3:], n+1
	}
	return n
}

func TestClimbs(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "x.go", `package x
var a, b, c, d = "../../x", filepath.Join("..", "..", "..", "shared"), "a/../b", Join(dir, "..")`, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	most := map[int]int{}
	for _, up := range climbs(file) {
		most[up]++
	}
	if most[2] != 1 || most[3] != 1 || most[1] != 0 {
		t.Errorf("paths up: %v", most)
	}
}

// The server answers from exports: it holds no training, no compiled programs, no GPU
// driver of the project's own, and nothing of gorgonia.
func TestServeHasNoTraining(t *testing.T) {
	linked := list(t, "-deps", "-f", "{{.ImportPath}} {{.Standard}}", "./serve")
	if len(linked) < 50 {
		t.Fatalf("go list -deps names %d packages", len(linked))
	}
	trains := regexp.MustCompile(`^(train|runtime|run|config|models|lab)(/|$)|purego|gorgonia`)
	allowed := regexp.MustCompile(`^runtime/(kernels|ort)(/|$)`)
	for _, p := range linked {
		if p[1] == "false" && trains.MatchString(p[0]) && !allowed.MatchString(p[0]) {
			t.Errorf("%s is linked into ./serve", p[0])
		}
	}
}
