package archtest

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestPromisesNameTheirTests holds docs/reliability.md to what there is: each line of
// its tables names a test, as `folder.TestName` or `folder.TestScripts/name`, and each of
// these exists.
func TestPromisesNameTheirTests(t *testing.T) {
	root := filepath.Join("..", "..")
	text, err := os.ReadFile(filepath.Join(root, "docs", "reliability.md"))
	if err != nil {
		t.Fatal(err)
	}
	named := regexp.MustCompile("`((?:[a-z0-9]+/)*[a-z0-9]+)\\.((?:Test|Fuzz)[A-Za-z0-9]+)(?:/([a-z]+))?`")
	promises := 0
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		if !strings.HasPrefix(line, "| ") || len(cells) < 2 || strings.TrimSpace(cells[len(cells)-1]) == "held by" {
			continue
		}
		promises++
		found := named.FindAllStringSubmatch(cells[len(cells)-1], -1)
		if len(found) == 0 {
			t.Errorf("a promise without a test: %s", line)
		}
		for _, f := range found {
			dir := filepath.Join(root, filepath.FromSlash(f[1]))
			if f[1] == "gsrc" {
				dir = root
			}
			files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
			if err != nil {
				t.Fatal(err)
			}
			has := func(file string) bool {
				source, err := os.ReadFile(file)
				return err == nil && strings.Contains(string(source), "\nfunc "+f[2]+"(")
			}
			if !slices.ContainsFunc(files, has) {
				t.Errorf("there is no test %s in %s: %s", f[2], f[1], line)
			}
			if f[3] != "" {
				if _, err := os.Stat(filepath.Join(dir, "testdata", "script", f[3]+".txtar")); err != nil {
					t.Errorf("%s: %v", line, err)
				}
			}
		}
	}
	if promises < 20 {
		t.Errorf("%d promises were found; are the tables still tables?", promises)
	}
}
