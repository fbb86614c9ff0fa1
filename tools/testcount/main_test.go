package main

import (
	"strings"
	"testing"
)

func TestCount(t *testing.T) {
	const pass = `{"Action":"run","Package":"p","Test":"TestA"}
{"Action":"output","Package":"p","Test":"TestA","Output":"quiet\n"}
{"Action":"pass","Package":"p","Test":"TestA"}
{"Action":"skip","Package":"p","Test":"TestB"}
`
	for _, c := range []struct {
		name, in, last string
		ok             bool
		has, lacks     string
	}{
		{"passes", pass + `{"Action":"pass","Package":"p","Elapsed":1.5}`, "1 passed, 0 failed, 1 skipped", true, "pass p 1.5s", "quiet"},
		{"a test fails", pass + `{"Action":"output","Package":"p","Test":"TestC","Output":"loud\n"}
{"Action":"fail","Package":"p","Test":"TestC"}
{"Action":"output","Package":"p","Output":"FAIL\n"}
{"Action":"fail","Package":"p"}
`, "1 passed, 1 failed, 1 skipped", false, "loud", "quiet"},
		{"a package dies", pass + `{"Action":"output","Package":"p","Output":"panic: boom\n"}
{"Action":"fail","Package":"p"}
`, "1 passed, 1 failed, 1 skipped", false, "boom", ""},
		{"a package does not build", `{"ImportPath":"q","Action":"build-output","Output":"q.go:1: syntax error\n"}
{"ImportPath":"q","Action":"build-fail"}
{"Action":"fail","Package":"q","FailedBuild":"q"}
`, "0 passed, 1 failed, 0 skipped", false, "syntax error", ""},
		{"not JSON", "go: cannot find main module\n", "0 passed, 1 failed, 0 skipped", false, "cannot find main module", ""},
		{"nothing", "", "0 passed, 1 failed, 0 skipped", false, "no test ran", ""},
		{"no test files", `{"Action":"skip","Package":"p"}`, "0 passed, 1 failed, 0 skipped", false, "no test ran", "skip p"},
	} {
		var b strings.Builder
		ok, err := count(strings.NewReader(c.in), &b)
		if err != nil || ok != c.ok {
			t.Errorf("%s: %v, %v", c.name, ok, err)
		}
		lines := strings.Split(strings.TrimSpace(b.String()), "\n")
		if got := lines[len(lines)-1]; got != c.last {
			t.Errorf("%s: last line %q, want %q", c.name, got, c.last)
		}
		if !strings.Contains(b.String(), c.has) || c.lacks != "" && strings.Contains(b.String(), c.lacks) {
			t.Errorf("%s: output %q", c.name, b.String())
		}
	}
}
