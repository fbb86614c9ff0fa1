package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// product reports whether a room is part of gsrc, and no leaf.
func product(r *room) bool {
	return r != nil && !isLeaf(r) && r.name != "tools" && !strings.HasPrefix(r.name, "internal/")
}

// The picture of the rooms in docs/architecture.md has an arrow for each import that does not
// follow from others.
func TestPictureOfTheRooms(t *testing.T) {
	imports := map[string]map[string]bool{} // what each room imports, directly at first
	product := func(folder string) (name string, ok bool) {
		r := roomOf(folder)
		if !product(r) || r.name == "export/onnxpb" {
			return "", false
		}
		return r.name, true
	}
	goFile := func(path string) bool { return !isTest(path) }
	eachFile(t, len(rooms), goFile, parser.ImportsOnly, func(name string, _ *token.FileSet, file *ast.File) {
		from, ok := product(path.Dir(name))
		if !ok || file.Name.Name == "main" && !strings.HasPrefix(name, "cmd/") {
			return
		}
		for _, spec := range file.Imports {
			imported, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				t.Fatal(err)
			}
			folder, ours := strings.CutPrefix(imported+"/", module+"/")
			if to, ok := product(path.Clean(folder)); ours && ok && to != from {
				if imports[from] == nil {
					imports[from] = map[string]bool{}
				}
				imports[from][to] = true
			}
		}
	})
	var reaches func(from, to string) bool
	reaches = func(from, to string) bool {
		for next := range imports[from] {
			if next == to || reaches(next, to) {
				return true
			}
		}
		return false
	}
	var want []string
	for from, list := range imports {
		for to := range list {
			needless := false
			for other := range list {
				needless = needless || other != to && reaches(other, to)
			}
			if !needless {
				want = append(want, node(from)+" --> "+node(to))
			}
		}
	}
	slices.Sort(want)
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "architecture.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, picture, ok := strings.Cut(string(text), "```mermaid\nflowchart TD\n")
	picture, _, closed := strings.Cut(picture, "```")
	var got []string
	for line := range strings.Lines(picture) {
		got = append(got, strings.TrimSpace(line))
	}
	if slices.Sort(got); !ok || !closed || !slices.Equal(got, want) {
		t.Errorf("docs/architecture.md has no flowchart TD with these arrows:\n    %s", strings.Join(want, "\n    "))
	}
}

// node is how the picture writes a room.
func node(room string) string {
	if room == "." {
		return "gsrc[the root]"
	}
	return strings.ReplaceAll(room, "/", "_") + "[" + room + "]"
}

// No folder of the root has more than a quarter of the code.
func TestNoRoomIsMostOfTheHouse(t *testing.T) {
	lines, all := map[string]int{}, 0
	code := func(path string) bool { return !isTest(path) && !strings.HasSuffix(path, ".pb.go") }
	eachFile(t, len(rooms), code, parser.PackageClauseOnly, func(name string, _ *token.FileSet, _ *ast.File) {
		text, err := os.ReadFile(filepath.Join("..", "..", name))
		if err != nil {
			t.Fatal(err)
		}
		top, _, _ := strings.Cut(name, "/")
		n := strings.Count(string(text), "\n")
		lines[top] += n
		all += n
	})
	for top, n := range lines {
		if 4*n > all {
			t.Errorf("%s has %d of %d lines", top, n, all)
		}
	}
}
