// Package archtest holds the import graph to the rooms of docs/architecture.md:
// data flows one way, and nothing points back.
package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/gsrc-dev/gsrc"

// room is a folder with everything below it that is not a room itself.
type room struct {
	name string
	may  []string // rooms it may import, beside itself and the leaves
	// bare rooms import the standard library and nothing else that is not of
	// the project.
	bare bool
}

// leaves may be imported by every room, and import nothing of the project.
var leaves = []room{
	{name: "rng", may: []string{"internal/fmath"}, bare: true},
	{name: "internal/fmath", bare: true},
	{name: "internal", bare: true},
	{name: "data/schema", may: []string{"internal/fmath"}, bare: true}, // what a model says of its columns
	{name: "internal/budget"},                                          // asks a library for the limit of the cgroup
	{name: "internal/filelock"},                                        // locks by a library
	{name: "internal/parquetcell", may: []string{"internal"}},          // reads by a library
	{name: "internal/safetensors", may: []string{"internal", "internal/budget"}, bare: true},
}

// rooms is the table of docs/architecture.md. "." is the package of the root
// folder.
var rooms = []room{
	{name: "runtime/kernels"},
	{name: "ir", bare: true},
	{name: "passes", may: []string{"ir"}, bare: true},
	{name: "compiler", may: []string{"ir", "passes"}, bare: true},
	{name: "models", may: []string{"ir"}, bare: true},
	{name: "graph", may: []string{"runtime/kernels"}, bare: true},
	{name: "data", may: []string{"graph"}},
	{name: "config", may: []string{"models", "graph"}},
	{name: "runtime/ort"},
	{name: "runtime/cuda/driver"},
	{name: "runtime/cuda", may: []string{"ir", "passes", "graph", "runtime", "runtime/kernels", "runtime/cuda/driver"}},
	{name: "runtime", may: []string{"ir", "passes", "graph", "runtime/kernels"}, bare: true},
	{name: "runtime/gorgonia", may: []string{"ir", "runtime"}},
	{name: "metrics", may: []string{"graph", "runtime/kernels"}},
	{name: "train", may: []string{"ir", "passes", "compiler", "models", "graph", "data", "config", "runtime", "runtime/kernels", "runtime/cuda", "runtime/cuda/driver", "metrics"}},
	{name: "export/onnxpb"},
	{name: "export/onnx", may: []string{"ir", "graph", "runtime/ort", "export/onnxpb"}},
	{name: "export/manifest", may: []string{"runtime/ort", "export/onnx", "export/onnxpb"}},
	{name: "export/inspect", may: []string{"runtime/ort", "export/onnx", "export/onnxpb", "export/manifest"}},
	{name: "export/parity", may: []string{"ir", "graph", "runtime/kernels", "runtime/ort", "export/onnx", "export/onnxpb", "export/manifest"}},
	{name: "export", may: []string{"ir", "compiler", "runtime/ort", "export/onnx", "export/onnxpb", "export/manifest", "export/inspect", "export/parity"}},
	{name: "export/dist", may: []string{"runtime/ort", "export/onnxpb", "export/onnx", "export/manifest", "export/inspect"}},
	{name: "infer", may: []string{"graph", "data", "runtime/kernels", "metrics", "runtime/ort", "export/dist", "export/onnx", "export/manifest"}},
	{name: "run", may: []string{"ir", "passes", "compiler", "models", "graph", "data", "config", "runtime", "runtime/gorgonia", "runtime/kernels", "runtime/cuda", "runtime/cuda/driver", "train", "metrics", "runtime/ort", "export", "export/onnx", "export/manifest", "export/parity", "infer"}},
	{name: "auto", may: []string{"models", "data", "config", "train", "metrics", "run"}},
	{name: ".", may: []string{"train", "export", "export/manifest", "export/parity", "infer", "run", "auto"}},
	{name: "lab", may: []string{"ir", "passes", "compiler", "models", "graph", "data", "config", "runtime", "runtime/kernels", "runtime/cuda", "runtime/cuda/driver", "train", "metrics", "runtime/ort", "export", "export/onnx", "infer", "run", "auto", "."}},
	{name: "tools", may: []string{".", "infer", "lab", "serve", "ir", "passes", "compiler", "models", "graph", "data", "config", "runtime", "runtime/kernels", "train", "runtime/ort", "export", "export/onnx", "export/manifest"}},
	{name: "internal/fakedevice", may: []string{"ir", "graph", "runtime", "runtime/kernels"}},
	{name: "internal/cudaemulator", may: []string{"runtime/cuda"}},
	{name: "internal/mockdriver", may: []string{"runtime/cuda/driver"}},
	{name: "internal/cudatest", may: []string{"runtime/cuda", "runtime/cuda/driver", "internal/mockdriver", "internal/cudaemulator"}},
	{name: "internal/orttest", may: []string{"runtime/ort"}},
	{name: "internal/exporttest", may: []string{"export/manifest"}},
	{name: "internal/onnxtest", may: []string{"ir", "compiler", "models", "runtime/ort", "internal/orttest"}},
	{name: "internal/optest", may: []string{"ir", "graph", "runtime/kernels"}},
	{name: "serve", may: []string{"export/dist", "export/onnx", "export/manifest", "runtime/ort", "infer"}},
	// A module of its own, so that gsrc does not depend on Beam.
	{name: "beam", may: []string{"passes", "compiler", "ir", "graph", "data", "metrics", "runtime", "runtime/kernels", "models", "export/manifest", "export/onnx", "infer", "run"}},
	{name: "cmd", may: []string{".", "infer", "run", "auto", "lab", "serve", "ir", "passes", "compiler", "models", "graph", "data", "config", "runtime", "runtime/gorgonia", "runtime/kernels", "runtime/cuda", "runtime/cuda/driver", "train", "metrics", "runtime/ort", "export", "export/onnx", "export/manifest", "export/inspect", "export/dist"}},
}

// roomOf returns the most specific room of a folder, or nil.
func roomOf(folder string) *room {
	var best *room
	for _, list := range [][]room{leaves, rooms} {
		for i, r := range list {
			if (folder == r.name || r.name != "." && strings.HasPrefix(folder, r.name+"/")) && (best == nil || len(r.name) > len(best.name)) {
				best = &list[i]
			}
		}
	}
	return best
}

func isLeaf(r *room) bool {
	return slices.ContainsFunc(leaves, func(l room) bool { return l.name == r.name })
}

// complaint returns what is wrong with an import, or "".
func complaint(from *room, path string) string {
	folder := "."
	switch {
	case path == module:
	case strings.HasPrefix(path, module+"/"):
		folder = path[len(module)+1:]
	default:
		first, _, _ := strings.Cut(path, "/")
		if from.bare && strings.Contains(first, ".") {
			return "may import the standard library only"
		}
		return ""
	}
	to := roomOf(folder)
	switch {
	case to == nil:
		return "imports a folder that is no room"
	case to.name == from.name || isLeaf(to) && !isLeaf(from) || slices.Contains(from.may, to.name):
		return ""
	case isLeaf(from):
		return "is a leaf and may import nothing of the project"
	}
	return "may import " + strings.Join(append([]string{"the leaves"}, from.may...), ", ")
}

// eachFile calls f for the Go files of the repository that are wanted, by their paths
// below its root. There must be as many as least.
func eachFile(t *testing.T, least int, wanted func(path string) bool, mode parser.Mode, f func(path string, set *token.FileSet, file *ast.File)) {
	t.Helper()
	files := 0
	err := fs.WalkDir(os.DirFS(filepath.Join("..", "..")), ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if name := d.Name(); path != "." && (strings.ContainsAny(name[:1], "._") || name == "testdata") {
				return fs.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(path, ".go") || !wanted(path) {
			return nil
		}
		files++
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, filepath.Join("..", "..", path), nil, mode)
		if err == nil {
			f(path, set, file)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if files < least {
		t.Fatalf("only %d files were looked at", files)
	}
}

func isTest(path string) bool { return strings.HasSuffix(path, "_test.go") }

func TestImportsKeepToTheRooms(t *testing.T) {
	// Tests compare rooms with each other and may reach further.
	noTest := func(path string) bool { return !isTest(path) }
	eachFile(t, len(rooms), noTest, parser.ImportsOnly, func(name string, _ *token.FileSet, file *ast.File) {
		from := roomOf(path.Dir(name))
		if from == nil {
			t.Errorf("%s is in no room: give its folder a line in this test and in docs/architecture.md", name)
			return
		}
		if file.Name.Name == "main" { // a generator beside what it generates
			from = &room{name: from.name, may: from.may}
		}
		for _, spec := range file.Imports {
			imported, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				t.Fatal(err)
			}
			if why := complaint(from, imported); why != "" {
				t.Errorf("%s imports %s, but room %s %s", name, imported, from.name, why)
			}
		}
	})
}

// The rule book itself refuses what it should.
func TestComplaints(t *testing.T) {
	for _, c := range []struct {
		folder, path string
		ok           bool
	}{
		{"ir", "fmt", true},
		{"ir", "pgregory.net/rapid", false},
		{"ir", module + "/passes", false},
		{"ir", module + "/internal/nearest", true},
		{"passes", module + "/ir", true},
		{"compiler", module + "/models", false},
		{"graph", module + "/runtime/kernels", true},
		{"graph/internal/sgns", module + "/graph", true},
		{"graph", module + "/runtime", false},
		{"runtime/kernels", module + "/graph", false},
		{"runtime", module + "/runtime/kernels", true},
		{"runtime", module + "/export", false},
		{"export/onnxpb", module + "/cmd/gsrc", false},
		{".", module + "/cmd/gsrc", false},
		{"cmd/gsrc", module, true},
		{"data", module, false},
		{"rng", module + "/internal/nearest", false},
		{"internal/nearest", "golang.org/x/sys/unix", false},
		{"internal/filelock", "github.com/gofrs/flock", true},
		{"data/catalog", module + "/internal/download", true},
		{"data", module + "/elsewhere", false},
		{"config", "github.com/BurntSushi/toml", true},
	} {
		if why := complaint(roomOf(c.folder), c.path); (why == "") != c.ok {
			t.Errorf("%s imports %s: complaint %q", c.folder, c.path, why)
		}
	}
	if roomOf("elsewhere") != nil {
		t.Error("a folder without a line is a room")
	}
}

// No room may reach itself through others.
func TestRoomsHaveNoCycle(t *testing.T) {
	may := map[string][]string{}
	for _, r := range rooms {
		may[r.name] = r.may
	}
	var visit func(name string, path []string)
	visit = func(name string, path []string) {
		if slices.Contains(path, name) {
			t.Fatalf("cycle: %s", strings.Join(append(path, name), " → "))
		}
		next, ok := may[name]
		if !ok {
			t.Fatalf("%s is allowed somewhere and has no line", name)
		}
		for _, n := range next {
			visit(n, append(path[:len(path):len(path)], name))
		}
	}
	for _, r := range rooms {
		visit(r.name, nil)
	}
}
