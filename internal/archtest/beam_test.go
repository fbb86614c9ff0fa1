package archtest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Beam is a dependency of the module in beam/ alone.
func TestBeamIsAModuleOfItsOwn(t *testing.T) {
	root := filepath.Join("..", "..")
	read := func(name string) string {
		text, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	if _, err := os.Stat(filepath.Join(root, "go.work")); err == nil {
		t.Error("go.work joins the modules: go list -m all of gsrc then has Beam's")
	}
	for _, file := range []string{"go.mod", "go.sum"} {
		if strings.Contains(read(file), "apache/beam") {
			t.Errorf("%s of gsrc has Beam", file)
		}
	}
	own := read("beam/go.mod")
	for _, line := range []string{"module " + module + "/beam\n", "replace " + module + " => ../\n", "github.com/apache/beam/sdks/v2 v2"} {
		if !strings.Contains(own, line) {
			t.Errorf("beam/go.mod lacks %q", line)
		}
	}
}
