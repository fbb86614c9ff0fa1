package ir

import (
	"os"
	"regexp"
	"testing"
)

// TestDocs holds docs/ir.md to the package: its programs parse and are printed
// as they stand there.
func TestDocs(t *testing.T) {
	page, err := os.ReadFile("../docs/ir.md")
	if err != nil {
		t.Fatal(err)
	}
	programs := regexp.MustCompile("(?s)```gsr\n(.*?)```").FindAllStringSubmatch(string(page), -1)
	if len(programs) < 2 {
		t.Fatalf("docs/ir.md has %d programs", len(programs))
	}
	for _, p := range programs {
		m, err := Parse("docs/ir.md", p[1])
		if err != nil {
			t.Errorf("%v in\n%s", err, p[1])
			continue
		}
		if m.String() != p[1] {
			t.Errorf("the page has\n%s\nprinted:\n%s", p[1], m)
		}
	}
}
