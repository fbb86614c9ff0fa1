package data

import (
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// docs/data.md is followed to the letter: its example loads, and its errors are
// what the example gives once it is damaged that way.
func TestDocsExample(t *testing.T) {
	page := string(mustRead(t, "../docs/data.md"))
	block := func(after string) string {
		_, rest, ok := strings.Cut(page, after)
		if !ok {
			t.Fatalf("docs/data.md lacks %q", after)
		}
		var b strings.Builder
		for _, line := range strings.Split(strings.TrimLeft(rest, "\n"), "\n") {
			text, ok := strings.CutPrefix(line, "    ")
			if !ok {
				break
			}
			b.WriteString(text + "\n")
		}
		return b.String()
	}
	dir := filepath.Join(t.TempDir(), "friends")
	os.Mkdir(dir, 0o755)
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	edges, nodes := block("two files. `edges.csv`:\n"), block("\n`nodes.csv`:\n")
	write(edgesFile, edges)
	write(nodesFile, nodes)
	ds := mustLoad(t, dir, LoadOptions{})
	s, err := ds.SplitFor(0)
	if err != nil {
		t.Fatal(err)
	}
	if ds.Name != "friends" || ds.Graph.N != 4 || len(ds.Graph.Edges) != 4 || ds.Classes != 2 || ds.X.Cols != 2 || len(s.Train) != 2 {
		t.Errorf("%+v", ds.Info())
	}

	errorsShown := block("Nothing is loaded by half.\n")
	for _, damage := range []func(){
		func() { write(edgesFile, strings.Replace(edges, "cleo", "cloe", 1)) },
		func() { write(nodesFile, strings.Replace(nodes, "val,28", "val,old", 1)) },
		func() { write(nodesFile, nodes+"eve,cat\n") },
	} {
		write(edgesFile, edges)
		write(nodesFile, nodes)
		damage()
		_, err := Load(dir, LoadOptions{})
		if err == nil {
			t.Fatal("a damaged example loads")
		}
		got := filepath.ToSlash("friends" + strings.TrimPrefix(err.Error(), dir))
		found := false
		for _, line := range strings.Split(strings.TrimSpace(errorsShown), "\n") {
			found = found || strings.HasPrefix(got, strings.TrimSuffix(line, "…"))
		}
		if !found {
			t.Errorf("docs/data.md does not show %s", got)
		}
	}
}

// The Python code that is shown for times reads each form of them as gsrc does.
func TestDocsReadTimes(t *testing.T) {
	python := cmp.Or(os.Getenv("GSRC_PYTHON"), "python3")
	if out, err := exec.Command(python, "-c", "import pandas").CombinedOutput(); err != nil {
		t.Skipf("%s has no pandas (GSRC_PYTHON names another Python): %v %s", python, err, out)
	}
	for _, page := range []string{"../docs/own-data.md", "../examples/company.py"} {
		_, code, _ := strings.Cut(string(mustRead(t, page)), `if column["kind"] == "time":`)
		code, _, found := strings.Cut(code, "elif")
		if !found {
			t.Fatalf("%s shows no times", page)
		}
		program := "import pandas as pd\n"
		for _, s := range []string{"2021-06-14", "2021/06/14 08:38", "2021-06-14 08:38:05 UTC", "2021-06-14T08:38:05GMT", "2021-06-14 08:38:05.25UTC", "20210614T083805 UTC", "20210614T083805Z", "2021-06-14 08:38 GMT", "2021-06-14T08:38:05 +05:30"} {
			want, ok := seconds(s)
			if !ok {
				t.Errorf("%s is not read", s)
			}
			program += fmt.Sprintf("c = pd.Series([%q, float('nan')], dtype=object)\nif True:%s\nassert abs(c[0] - %v) < 1e-6 and pd.isna(c[1]), c\n", s, strings.TrimRight(code, " "), want)
		}
		if out, err := exec.Command(python, "-c", program).CombinedOutput(); err != nil {
			t.Errorf("%s: %v %s", page, err, out)
		}
	}
}
