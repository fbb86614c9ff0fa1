package repro

import (
	"bytes"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/gsrc-dev/gsrc/lab/charts"
	"github.com/gsrc-dev/gsrc/train/checkpoint"
)

// TestResultsPage holds docs/results.md to the files beside it: the page says what
// they hold and nothing else, and each claim has its command.
func TestResultsPage(t *testing.T) {
	docs := filepath.Join("..", "..", "docs")
	got, err := os.ReadFile(filepath.Join(docs, "results.md"))
	if err != nil {
		t.Fatal(err)
	}
	want, err := Page(os.DirFS(filepath.Join(docs, "results")), "results", "docs/results.md")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Error("docs/results.md is not what docs/results makes; write it with: gsrc repro --report docs/results.md")
	}
	checkPage(t, got, filepath.Join(docs, "results"))

	drawn := t.TempDir()
	for _, target := range targets {
		lines, err := target.linesIn(os.DirFS(filepath.Join(docs, "results")))
		if err != nil {
			t.Fatal(err)
		}
		if lines == nil {
			continue
		}
		if err := target.draw(drawn, lines); err != nil {
			t.Fatal(err)
		}
	}
	charts, err := filepath.Glob(filepath.Join(drawn, "*.svg"))
	if err != nil || len(charts) == 0 {
		t.Fatalf("%d charts, %v", len(charts), err)
	}
	for _, chart := range charts {
		want, err := os.ReadFile(chart)
		if err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(filepath.Join(docs, "results", filepath.Base(chart)))
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s is not what its lines make (%v); draw it with: gsrc repro --report docs/results.md", filepath.Base(chart), err)
		}
	}
}

// checkPage looks for the command of every section that has numbers, and for the
// files that the page shows.
func checkPage(t *testing.T, page []byte, dir string) {
	t.Helper()
	sections := strings.Split(string(page), "\n## ")[1:]
	for strings.HasPrefix(sections[0], "What ") { // refinement brings, and auto chooses: of several tables
		sections = sections[1:]
	}
	if len(sections) != len(targets) {
		t.Fatalf("the page has %d sections for %d targets", len(sections), len(targets))
	}
	for i, s := range sections {
		if !strings.Contains(s, "`gsrc repro "+targets[i].Name) {
			t.Errorf("%s has no command", targets[i].Name)
		}
		if strings.Contains(s, "| ") && !regexp.MustCompile(`seeds 0.*, \d+ runs, [\d.]+ (s|min|h), peak memory \d+ MiB`).MatchString(s) {
			t.Errorf("%s does not say what its runs took", targets[i].Name)
		}
		for _, link := range regexp.MustCompile(`\]\(([^)]+)\)`).FindAllStringSubmatch(s, -1) {
			if _, err := os.Stat(filepath.Join(dir, "..", filepath.FromSlash(link[1]))); err != nil {
				t.Errorf("%s: %v", targets[i].Name, err)
			}
		}
	}
}

func f64(v float64) *float64 { return &v }

// lines makes runs of ecl-gsr and of its classifier on the raw graph with these
// test accuracies.
func lines(own, raw []float64) (ls ResultRows) {
	for i, values := range [][]float64{own, raw} {
		for seed, v := range values {
			ls = append(ls, ResultRow{Panel: "cora", Row: []string{eclGSR, rawGraph}[i], Seed: seed, Data: "cora", Model: "ecl-gsr", Budget: Full, TestAcc: f64(v), Seconds: 1})
		}
	}
	return ls
}

// TestSentences holds the sentences about refinement to the paired test.
func TestSentences(t *testing.T) {
	for _, c := range []struct {
		own, raw []float64
		want     string
	}{
		{[]float64{84, 85, 86}, []float64{83, 84.1, 85}, "- cora: refinement brings 0.97 points (95 % interval +0.82 to +1.11, p = 0.0012, 3 pairs)."},
		{[]float64{83, 84.1, 85}, []float64{84, 85, 86}, "- cora: refinement costs 0.97 points (95 % interval -1.11 to -0.82, p = 0.0012, 3 pairs)."},
		{[]float64{84, 83, 85}, []float64{83, 84, 84.5}, "- cora: refinement brings nothing that these runs can show (+0.17 points, 95 % interval -2.42 to +2.75, p = 0.81, 3 pairs)."},
		{[]float64{84, 83}, []float64{84, 83}, "- cora: refinement changes nothing: all 2 pairs are equal."},
	} {
		got := refinement(lines(c.own, c.raw), "")
		if !strings.HasSuffix(got, "\n\n"+c.want+"\n") {
			t.Errorf("%v against %v:\n%s\nwant %s", c.own, c.raw, got, c.want)
		}
	}
	if got := refinement(lines([]float64{84}, []float64{83}), ""); got != "" {
		t.Errorf("one pair is no test, but it says %q", got)
	}
}

func TestPage(t *testing.T) {
	write := func(ls ResultRows) []byte {
		var b bytes.Buffer
		if err := ls.Write(&b); err != nil {
			t.Fatal(err)
		}
		return b.Bytes()
	}
	ls := append(lines([]float64{84, 85, 86}, []float64{83, 84.1, 85}), ResultRow{Panel: "cora", Row: "gcn", Data: "cora", Model: "gcn", Budget: Full, Error: "loss is NaN", Seconds: 3600, PeakBytes: 5 << 20})
	page, err := Page(fstest.MapFS{"table1.csv": {Data: write(ls)}}, "results", "docs/results.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"## Table 1: Node classification\n", "`gsrc repro table1 --only cora --seeds 3`: seeds 0 to 2, 7 runs, 60 min, peak memory 5 MiB.",
		"Rows that were not run: “gat”, “mlp”, ", "`gsrc repro table1 --rows` runs some.",
		"| 85.00 ± 1.00 |", "| *paper: ECL-GSR*         | 84.06 ± 0.84 |", "Runs that failed: 1;", "Fewer seeds: “gcn” on cora 1.\n",
		"Not run: citeseer, cornell, texas, wisconsin, actor, pubmed, ogbn-arxiv.", "![Node classification](results/table1.svg)",
		"refinement brings 0.97 points", "## Figure 10: Training dynamics\n", "Not run yet: `gsrc repro fig10`.\n",
	} {
		if !strings.Contains(string(page), want) {
			t.Errorf("the page lacks %q:\n%s", want, page[:min(len(page), 6000)])
		}
	}
	for name, text := range map[string]string{"a,b\n1,2\n": "not a file of gsrc repro", "": "not a file of gsrc repro",
		strings.Join(names(columnsOf(reflect.TypeFor[ResultRow]())), ",") + "\n": "has no runs", strings.Join(names(columnsOf(reflect.TypeFor[ResultRow]())), ",") + "\nx\n": "wrong number of fields",
		strings.Replace(string(write(ls)), ",full,", ",,", 1): `table1.csv:2: the budget is ""`, strings.Replace(string(write(ls)), "gcn,,full,", "gcn,,short,", 1): `table1.csv:8: the budget is "short", and that of the lines above "full"`,
		string(write(append(slices.Clone(ls), ls[1]))):                      "table1.csv:9: line 3 is of the same panel, row, x, source and seed",
		strings.Replace(string(write(ls)), ",1,cora,", ",5000000,cora,", 1): "table1.csv:3: the seed is 5000000",
		strings.Replace(string(write(ls)), ",85,", ",eighty,", 1):           `test_acc: "eighty" is not a finite number`,
		strings.Replace(string(write(ls)), ",85,", ",NaN,", 1):              `table1.csv:3: test_acc: "NaN" is not a finite number`} {
		if _, err := Page(fstest.MapFS{"table1.csv": {Data: []byte(name)}}, "results", "docs/results.md"); err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("%.40q: %v, want %q", name, err, text)
		}
	}
}

func TestCommonEpoch(t *testing.T) {
	// The means over the runs are 55, 65 and 60: the second epoch is the best one.
	ls := ResultRows{{TestCurve: "50.000 70.000 80.000"}, {TestCurve: "60.000 60.000 40.000 100.000"}, {}}
	mean, std, ok := ls.commonEpoch()
	if !ok || mean != 65 || !(math.Abs(std-math.Sqrt(50)) <= 1e-9) {
		t.Errorf("%g ± %g, %v", mean, std, ok)
	}
	if _, _, ok := (ResultRows{{}}).commonEpoch(); ok {
		t.Error("runs without curves have a best epoch")
	}
}

func TestProgressKeepsEveryTenthEpoch(t *testing.T) {
	acc := func(x float64) *float64 { return &x }
	var records []checkpoint.Record
	for epoch := 1; epoch <= 25; epoch++ {
		records = append(records, checkpoint.Record{Step: 100 + epoch, Epoch: epoch, Function: "fit", ValAcc: acc(float64(epoch))})
	}
	records = append(records, checkpoint.Record{Step: 130, Epoch: 30, Function: "fit"}) // not evaluated
	var steps []int
	for _, p := range progress(records) {
		if p.Value != float32(p.Step) || p.Term != "val_acc" {
			t.Errorf("%+v", p)
		}
		steps = append(steps, p.Step)
	}
	if want := []int{1, 10, 20}; !slices.Equal(steps, want) {
		t.Errorf("epochs %v, want %v", steps, want)
	}
}

func TestConvergenceDrawsMeansOfSeeds(t *testing.T) {
	if convergence(&Target{Name: "fig4"}, nil) != nil {
		t.Error("a chart of nothing")
	}
	points := []Point{
		{Panel: "cora", Row: "full", Seed: 0, Step: 1, Value: 10}, {Panel: "cora", Row: "full", Seed: 0, Step: 10, Value: 60},
		{Panel: "cora", Row: "full", Seed: 1, Step: 1, Value: 30}, {Panel: "cora", Row: "full", Seed: 1, Step: 10, Value: 80},
		{Panel: "cora", Row: "gcn", Seed: 0, Step: 1, Value: 5},
	}
	panels := averaged(points)
	if len(panels) != 1 || len(panels[0].Lines) != 2 {
		t.Fatalf("%+v", panels)
	}
	if got, want := panels[0].Lines[0].Values, []charts.Value{{X: 1, Y: 20}, {X: 10, Y: 70}}; !slices.Equal(got, want) {
		t.Errorf("full: %v, want %v", got, want)
	}
}

// Every learner's refined graph has a line and a picture of its own.
func TestRefinedGraphsOfLearners(t *testing.T) {
	ls := lines([]float64{84}, nil)
	n, share := 10, 0.5
	ls = append(ls, ls[0], ls[0])
	ls[1].Row, ls[1].EdgesBefore, ls[1].EdgesAfter, ls[1].HomophilyAfter = "gen", &n, &n, &share
	ls[2].Row, ls[2].Error, ls[2].TestAcc = "lds", "no memory", nil
	r := Find("fig8").render(Find("fig8"), ls)
	if len(r.pictures) != 2 || r.pictures[0].Name != "fig8-cora" || r.pictures[1].Name != "fig8-cora-gen" || !strings.Contains(r.pictures[1].Caption, "by gen") {
		t.Errorf("%+v", r.pictures)
	}
	if !regexp.MustCompile(`\| cora, gen +\| +10 \| +10 \| +– \| +0\.500 \|`).MatchString(r.text) {
		t.Errorf("no line of gen:\n%s", r.text)
	}
}

func TestQuickerRows(t *testing.T) {
	ls := lines([]float64{84, 86}, []float64{84, 86})
	for i := range ls {
		ls[i].Seconds = 2 - ls[i].Seconds*float64(i/2)
	}
	if got, want := cheaper(ls), "\nQuicker than ecl-gsr, with as high a mean or a higher one: “ecl-gsr on the raw graph” on cora.\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	*ls[3].TestAcc = 85.5
	if got := cheaper(ls); got != "" {
		t.Errorf("a less accurate row counts: %q", got)
	}
}
