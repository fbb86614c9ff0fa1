package repro

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

// Four old edges, of which two are wrong, and three new ones, of which one was hidden:
// the measures are worked out by hand.
func TestMeasure(t *testing.T) {
	edges, err := readEdges("a", strings.NewReader(`source,target,probability,status,note,evidence_a
1,0,0.9,old,x,0.5
1,2,0.1,removed,x,0.5
2,3,0.3,old,x,0.5
3,4,0.2,old,x,
0,2,0.8,new,x,1
4,0,0.8,new,x,3
1,3,0.7,new,x,2
`))
	if err != nil {
		t.Fatal(err)
	}
	truth := &truth{wrong: map[[2]int]bool{{1, 2}: true, {2, 3}: true}, hidden: map[[2]int]bool{{0, 4}: true}}
	m := truth.measure(edges, edges.values[0])
	// Of the pairs of a real and a wrong edge, 0.9 wins twice and 0.2 once; of the two least
	// likely, 0.1 is wrong and 0.2 is not; of the two likeliest new ones one was hidden.
	for i, x := range []struct{ got, want float64 }{{*m.WrongAUC, 0.75}, {*m.WrongPrecision, 0.5}, {*m.HiddenFound, 0.5}} {
		if !(math.Abs(x.got-x.want) <= 1e-12) {
			t.Errorf("measure %d is %v, want %v", i, x.got, x.want)
		}
	}
	// Alone, evidence a has three equal scores and a missing one, which is 0: the second
	// least likely is one of three, two of which are wrong.
	m = truth.measure(edges, edges.values[1])
	if *m.WrongAUC != 0.25 || !(math.Abs(*m.WrongPrecision-1.0/3) <= 1e-12) || *m.HiddenFound != 1 {
		t.Errorf("alone: AUC %v, precision %v, %v found", *m.WrongAUC, *m.WrongPrecision, *m.HiddenFound)
	}
	for text, want := range map[string]string{"": "a: EOF", "source,target\n": "status are needed", "source,target,status\nx,1,old\n": "a:2: nodes are not numbered",
		"source,target,status,probability\n0,1,old,high\n": "a:2: probability"} {
		if _, err := readEdges("a", strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

// edgeLines are two sets with ten seeds: the joined evidence is better than its sources
// by gain, and by trains where the embedding is trained.
func edgeLines(gain, trains float64) (ls ResultRows) {
	for _, panel := range []string{"cora, planted", "citeseer, planted"} {
		for seed := range 10 {
			base := 0.9 + 0.001*float64(seed*seed%7)
			jitter := 0.0001 * float64(seed*3%5)
			add := func(row, source string, auc float64) {
				ten := 10
				ls = append(ls, ResultRow{Panel: panel, Row: row, Seed: seed, Data: strings.TrimSuffix(panel, ", planted"), Model: "ecl-gsr", Budget: Full, Hash: "0123", Seconds: 1,
					EdgeMeasures: EdgeMeasures{Source: source, Wrong: &ten, WrongAUC: f64(auc), WrongPrecision: f64(auc - 0.3), Hidden: &ten, HiddenFound: f64(3)}})
			}
			add(eclGSR, "", base+gain+jitter)
			add(eclGSR, "features", base)
			add(eclGSR, "structure", base-0.1)
			add(byEmbeddings, "", base-0.1+jitter)
			add(neverTrained, "", base-0.1-trains)
			ls = append(ls, ResultRow{Panel: panel, Row: "boosted trees", Seed: seed, Data: strings.TrimSuffix(panel, ", planted"), Budget: Full, EdgeMeasures: EdgeMeasures{WrongAUC: f64(base + jitter/2)}})
		}
	}
	return ls
}

func TestEdgeReport(t *testing.T) {
	page := func(ls ResultRows) string {
		var b bytes.Buffer
		if err := ls.Write(&b); err != nil {
			t.Fatal(err)
		}
		page, err := Page(fstest.MapFS{"edges.csv": {Data: b.Bytes()}}, "results", "docs/results.md")
		if err != nil {
			t.Fatal(err)
		}
		return string(page)
	}
	good := page(edgeLines(0.02, 0.01))
	for _, want := range []string{
		"## Table E: Wrong and missing edges\n", "`gsrc repro edges --only cora,citeseer`: seeds 0 to 9, 60 runs,",
		"- All sources together are better than the best of them alone on 2 of 2 sets.\n", "- All sources together are better than the best plain predictor on 2 of 2 sets.\n",
		"- All sources together are better than the embedding on 2 of 2 sets.\n", "- The embedding is better trained than never trained on 2 of 2 sets.\n",
		"| cora, planted: all together − features alone ", "| cora, planted: all together − boosted trees ", "| features alone ", "| *required* ", "| citeseer, planted (k = 10) |", "in each of 100 lines",
	} {
		if !strings.Contains(good, want) {
			t.Errorf("the page lacks %q:\n%s", want, good[strings.Index(good, "## Table E"):])
		}
	}
	for text, found := range map[string]string{good: "2 of the 2", page(edgeLines(-0.2, -0.01)): "0 of the 2"} {
		if !strings.HasPrefix(text, "# Results\n\nThe embedding has no part in judging edges") || !strings.Contains(text, "judges by it on "+found+" sets") {
			t.Errorf("the page does not begin with what does not hold:\n%.300s", text)
		}
	}
	if bad := page(edgeLines(-0.2, -0.01)); !strings.Contains(bad, "alone on 0 of 2 sets") || !strings.Contains(bad, "never trained on 0 of 2 sets") {
		t.Error("the page says that what does not hold does")
	}
}

// The runs of planted data are judged, with plain predictors beside them; what was there
// comes out the same, and a line that is wrong is found.
func TestEdges(t *testing.T) {
	dir := t.TempDir()
	o := Options{Targets: []string{"edges"}, Only: []string{"cora_metattack_0.2"}, Seeds: 2, Out: dir}
	for _, p := range Find("edges").plan(Short, dir, []int{0, 1}, func(name string) bool { return name == o.Only[0] }) {
		path := filepath.Join(dir, plainFolder, fmt.Sprintf("%s-%d.csv", filepath.Base(p.job.Data), p.job.Seed)) // as a Python would have left it
		if err := cmp.Or(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte("source,target,status,evidence_by_chance\n0,1,old,2\n0,2,new,1\n"), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	got := reproduce(t, o)["edges"]
	if got == nil || len(got.Lines.panels()) != 1 || !strings.Contains(got.Text, "\n| "+neverTrained) || !strings.Contains(got.Text, "\n| by chance ") {
		t.Fatalf("%+v", got)
	}
	for _, l := range got.Lines {
		if l.Model == "" {
			continue
		}
		if l.Hash == "" || l.WrongAUC == nil || *l.WrongAUC <= 0 || *l.WrongAUC > 1 || *l.Wrong == 0 || l.HiddenFound == nil || l.Source == "" && (l.EdgeECE == nil || l.Dropped == nil) {
			t.Errorf("%+v is not whole", l)
		}
	}
	rewrite(t, filepath.Join(dir, "edges.csv"), func(ls ResultRows) { *ls[0].WrongAUC += 0.01 })
	c, err := Check(context.Background(), CheckOptions{Options: o})
	if err != nil || c.Repeated != c.Lines-2 || len(c.Faults) != 1 || !strings.Contains(c.Faults[0], "wrong_auc") {
		t.Errorf("of what was changed: %+v, %v", c, err)
	}
}

// What the forest of statistics gave on the folds becomes rows; without a Python and a file
// there are none.
func TestForests(t *testing.T) {
	dir := t.TempDir()
	e := &evaluation{Options: Options{Out: dir, Budget: Full}}
	runs := Find("table4").plan(Full, dir, []int{0, 1}, func(name string) bool { return name == "mutag" })
	if lines, err := e.forests(t.Context(), runs); err != nil || lines != nil {
		t.Fatalf("without a file: %v, %v", lines, err)
	}
	path := filepath.Join(dir, plainFolder, "forest-mutag.csv")
	if err := cmp.Or(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte("fold,accuracy\n0,80\n1,90\n2,100\n"), 0o644)); err != nil {
		t.Fatal(err)
	}
	lines, err := e.forests(t.Context(), runs)
	if err != nil || len(lines) != 2 || *lines[1].TestAcc != 90 || lines[1].Row != forest || lines[1].Panel != "mutag" || lines[1].Seed != 1 || lines[1].Model != "" {
		t.Errorf("%+v, %v", lines, err)
	}
	if text := protocols(Find("table4"), lines); !strings.Contains(text, "85.00 ± 7.07") {
		t.Error(text)
	}
}

// Rows of Table E that are run later stand where they would, and plain predictors behind all.
func TestEdgeRowsJoinTheOthers(t *testing.T) {
	dir := t.TempDir()
	line := func(row, source string, seed int) ResultRow {
		return ResultRow{Panel: "cora, planted", Row: row, Seed: seed, Data: "cora", Budget: Full, EdgeMeasures: EdgeMeasures{Source: source}}
	}
	old := ResultRows{line(eclGSR, "", 0), line(eclGSR, "mean", 0), line(eclGSR, "", 1), line("cosine", "", 1), line("cosine", "", 0)}
	var b bytes.Buffer
	if err := old.Write(&b); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "edges.csv"), b.Bytes(), 0o666); err != nil {
		t.Fatal(err)
	}
	e := &evaluation{Options: Options{Out: dir}}
	all, err := joined(e, Find("edges"), "edges.csv", ResultRows{line(againstRandom, "", 0), line(againstRandom, "", 1)}, lineOf)
	if err != nil {
		t.Fatal(err)
	}
	want := slices.Insert(slices.Clone(old), 3, line(againstRandom, "", 0), line(againstRandom, "", 1))
	if !reflect.DeepEqual(ResultRows(all), want) {
		t.Errorf("%v, want %v", all, want)
	}
}
