package archtest

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	link    = regexp.MustCompile(`\]\(([^)\s#]*)(#[^)\s]*)?\)`)
	heading = regexp.MustCompile(`(?m)^#+ +(.*?) *$`)
	fenced  = regexp.MustCompile("(?ms)^ *```.*?^ *```|`[^`\n]*`")
	dropped = regexp.MustCompile(`[^\p{L}\p{N}_\- ]`)
)

// anchors returns the names that GitHub gives the headings of a page.
func anchors(page string) (names []string) {
	for _, m := range heading.FindAllStringSubmatch(page, -1) {
		names = append(names, "#"+strings.ReplaceAll(dropped.ReplaceAllString(strings.ToLower(m[1]), ""), " ", "-"))
	}
	return names
}

// Every link of a page to a file, or to a heading, leads to one.
func TestLinks(t *testing.T) {
	root := filepath.Join("..", "..")
	pages, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	top, err2 := filepath.Glob(filepath.Join(root, "*.md"))
	if err != nil || err2 != nil || len(pages) < 20 || len(top) < 2 {
		t.Fatal(pages, top, err, err2)
	}
	links := 0
	for _, page := range append(pages, top...) {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range link.FindAllStringSubmatch(fenced.ReplaceAllString(string(text), ""), -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			links++
			to := page
			if m[1] != "" {
				to = filepath.Join(filepath.Dir(page), m[1])
			}
			if _, err := os.Stat(to); err != nil {
				t.Errorf("%s: the link %s leads nowhere", page, m[0])
			} else if m[2] != "" && strings.HasSuffix(to, ".md") {
				if there, err := os.ReadFile(to); err != nil || !slices.Contains(anchors(string(there)), m[2]) {
					t.Errorf("%s: the link %s leads to no heading (%v)", page, m[0], err)
				}
			}
		}
	}
	if links < 100 {
		t.Errorf("%d links were looked at", links)
	}
}
