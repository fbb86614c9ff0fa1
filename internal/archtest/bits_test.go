package archtest

import (
	"bufio"
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// anyBits are the folders, with those below them and the root, whose floats may differ between
// processors: none reaches weights, a graph, candidates or the choice of an epoch.
// Everything else is held to the same bits by the tests below.
var anyBits = map[string]string{
	"cmd":                 "the command line: prints",
	"examples":            "shows how the library is used",
	"export":              "compares exports within a tolerance",
	"lab":                 "times, compares and draws what runs have left",
	"runtime/cuda":        "GPUs are outside of the promise",
	"runtime/ort":         "so is onnxruntime",
	"serve":               "answers from exports, by onnxruntime",
	"tools":               "programs for development",
	"internal/fakedevice": "tests",
	"models/pyg/testdata": "tests",
}

// sameBits are exceptions from anyBits: what a search draws are settings of runs.
var sameBits = []string{"lab/sweep"}

// In package ir only the element-wise operations count: by them passes fold constants.
// The rest is the float64 reference that kernels are compared with.
const onlyOfIR = "ops_elementwise.go"

// exact are the functions of package math that IEEE 754 or integer arithmetic defines to
// the last bit. internal/fmath has others.
var exact = []string{"Abs", "Ceil", "Copysign", "Dim", "FMA", "Float32bits", "Float32frombits", "Float64bits", "Float64frombits", "Floor",
	"Frexp", "Inf", "IsInf", "IsNaN", "Ldexp", "Max", "Min", "Mod", "Modf", "NaN", "Nextafter", "Nextafter32", "Round", "RoundToEven", "Signbit", "Sqrt", "Trunc"}

// mustAgree reports whether a folder, relative to the module, is held to the same bits.
func mustAgree(folder string) bool {
	for ; folder != "."; folder = path.Dir(folder) {
		if slices.Contains(sameBits, folder) {
			return true
		}
		if _, ok := anyBits[folder]; ok {
			return false
		}
	}
	return true
}

func lines(t *testing.T, file string) []string {
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(string(text), "\n")
}

// list runs "go list" for arm64: a package's folder and what was asked for beside it.
func list(t *testing.T, args ...string) [][2]string {
	cmd := exec.Command("go", append([]string{"list"}, args...)...)
	cmd.Dir = filepath.Join("..", "..")
	cmd.Env = append(os.Environ(), "GOOS=linux", "GOARCH=arm64", "CGO_ENABLED=0") // as "make cross" builds
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %v\n%s", cmd, err, said.String())
	}
	var found [][2]string
	for _, line := range strings.Split(strings.TrimSpace(string(out)), "\n") {
		name, rest, _ := strings.Cut(line, " ")
		found = append(found, [2]string{strings.TrimPrefix(name, module+"/"), rest})
	}
	return found
}

// packages lists the module's packages that are held to the same bits.
func packages(t *testing.T) [][2]string {
	found := slices.DeleteFunc(list(t, "./..."), func(p [2]string) bool { return p[0] == module || !mustAgree(p[0]) })
	if len(found) < 10 {
		t.Fatalf("only %d packages were found", len(found))
	}
	return found
}

// No function of package math is called whose bits depend on the processor.
func TestBitsOfMathFunctions(t *testing.T) {
	for _, p := range packages(t) {
		files, err := filepath.Glob(filepath.Join("..", "..", p[0], "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") || p[0] == "ir" && filepath.Base(file) != onlyOfIR {
				continue
			}
			set := token.NewFileSet()
			tree, err := parser.ParseFile(set, file, nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			for _, i := range tree.Imports {
				if name := strings.Trim(i.Path.Value, `"`); name == "math/rand" || name == "math/rand/v2" || name == "math/cmplx" || strings.HasPrefix(name, "gonum.org/") {
					t.Errorf("%s: %s does not give the same bits on every processor", set.Position(i.Pos()), name)
				}
			}
			ast.Inspect(tree, func(n ast.Node) bool {
				s, ok := n.(*ast.SelectorExpr)
				if !ok {
					return true
				}
				x, ok := s.X.(*ast.Ident)
				if !ok || x.Name != "math" || slices.Contains(exact, s.Sel.Name) || constant.MatchString(s.Sel.Name) {
					return true
				}
				t.Errorf("%s: math.%s does not give the same bits on every processor; internal/fmath has functions that do", set.Position(s.Pos()), s.Sel.Name)
				return true
			})
		}
	}
}

var constant = regexp.MustCompile(`^(Max|SmallestNonzero|Min)(Float|Int|Uint)|^(Pi|E|Ln2|Ln10|Log2E|Log10E|Sqrt2|Phi)$`)

// No sum has been fused with a product by the compiler, as it does for arm64 where the
// product is not rounded by a conversion: the instructions themselves are looked at. A
// source line may have one where it asks for it by name, as math.FMA.
func TestBitsOfFusedProducts(t *testing.T) {
	sources := map[string][][]string{} // by the base name, the only one that objdump prints
	all := packages(t)
	var args []string
	for _, p := range all {
		args = append(args, "./"+p[0])
	}
	all = list(t, append([]string{"-export", "-f", "{{.ImportPath}} {{.Export}}"}, args...)...)
	for _, p := range all {
		files, err := filepath.Glob(filepath.Join("..", "..", p[0], "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			sources[filepath.Base(f)] = append(sources[filepath.Base(f)], lines(t, f))
		}
	}
	asked := 0
	for _, p := range all {
		if p[1] == "" { // tests only
			continue
		}
		out, err := exec.Command("go", "tool", "objdump", p[1]).Output()
		if err != nil {
			t.Fatalf("disassembling %s: %v", p[0], err)
		}
		seen := map[string]bool{}
		function := ""
		for s := bufio.NewScanner(bytes.NewReader(out)); s.Scan(); {
			line := s.Text()
			if strings.HasPrefix(line, "TEXT ") {
				function = strings.Fields(line)[1]
				continue
			}
			m := fusedInstruction.FindStringSubmatch(line)
			if m == nil || p[0] == "ir" && m[1] != onlyOfIR || seen[m[1]+m[2]] {
				continue
			}
			seen[m[1]+m[2]] = true
			at := atoi(m[2])
			if slices.ContainsFunc(sources[m[1]], func(l []string) bool { return at <= len(l) && wanted.MatchString(l[at-1]) }) {
				asked++
				continue
			}
			t.Errorf("%s: %s:%d: arm64 fuses a product with a sum, in %s; round the product by a conversion, as in float64(x*y)+z, or write math.FMA", p[0], m[1], at, strings.TrimSuffix(function, "(SB)"))
		}
	}
	if asked == 0 { // internal/fmath has some
		t.Error("no fused product was found at all: does the disassembler name them otherwise?")
	}
}

var (
	fusedInstruction = regexp.MustCompile(`^\s+([\w.]+\.go):(\d+)\s.*\bFN?M(?:ADD|SUB)[SD]\b`)
	wanted           = regexp.MustCompile(`(?i)fma(32)?\(`)
)

func atoi(s string) (n int) {
	for _, c := range s {
		n = 10*n + int(c-'0')
	}
	return n
}
