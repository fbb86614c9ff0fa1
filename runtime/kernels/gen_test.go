package kernels

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The committed assembly is what the generator writes today.
func TestAssemblyIsGenerated(t *testing.T) {
	if testing.Short() {
		t.Skip("builds and runs the generator")
	}
	goTool, err := exec.LookPath("go")
	if err != nil {
		t.Skip("no go command: ", err)
	}
	dir := t.TempDir()
	generator := filepath.Join(dir, "asm")
	if out, err := exec.Command(goTool, "build", "-o", generator, "./asm").CombinedOutput(); err != nil {
		t.Fatalf("building the generator: %v\n%s", err, out)
	}
	source, err := os.ReadFile("gen.go")
	if err != nil {
		t.Fatal(err)
	}
	const directive = "//go:generate go run ./asm "
	files := 0
	for line := range strings.Lines(string(source)) {
		rest, ok := strings.CutPrefix(strings.TrimSpace(line), directive)
		if !ok {
			continue
		}
		args := strings.Fields(rest)
		var names []string
		for i, a := range args {
			if a == "-out" || a == "-stubs" {
				names = append(names, args[i+1])
				args[i+1] = filepath.Join(dir, args[i+1])
			}
		}
		if out, err := exec.Command(generator, args...).CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", rest, err, out)
		}
		for _, name := range names {
			got, err := os.ReadFile(filepath.Join(dir, name))
			if err != nil {
				t.Fatal(err)
			}
			want, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			// The first line repeats the command.
			_, got, _ = bytes.Cut(got, []byte("\n"))
			_, want, _ = bytes.Cut(want, []byte("\n"))
			if !bytes.Equal(got, want) {
				t.Errorf("%s is not what the generator writes: run go generate", name)
			}
			if strings.HasSuffix(name, ".s") {
				wideOnly(t, name, string(want))
			}
			files++
		}
	}
	if files < 14 {
		t.Errorf("%d files checked, want at least 14", files)
	}
}

// wideOnly fails if a routine for AVX2 uses what only AVX-512 has.
func wideOnly(t *testing.T, file, source string) {
	for routine := range strings.SplitSeq(source, "\nTEXT ·") {
		name, body, _ := strings.Cut(routine, "(")
		if !strings.HasSuffix(name, "AVX2") {
			continue
		}
		for word := range strings.FieldsFuncSeq(body, func(r rune) bool { return strings.ContainsRune(" ,\n\t()", r) }) {
			if len(word) > 1 && (strings.HasPrefix(word, "Z") || (word[0] == 'Y' || word[0] == 'X') && len(word) == 3 && word[1:] > "15") {
				t.Errorf("%s: %s uses %s", file, name, word)
			}
		}
	}
}
