package sweep

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

func TestGridIsTheCrossProductInTheOrderOfTheFile(t *testing.T) {
	g, err := ParseGrid(`
[train]
epochs = 5
[sweep]
"train.lr" = [0.1, 0.01]
model.classifier = ["gcn", "propagation"]
seeds = [3, 1]
[[sweep.zip]]
"model.edges.old_lo" = [0, 0.5]
"model.edges.old_hi" = [0.9, 1e-3]
`)
	if err != nil {
		t.Fatal(err)
	}
	if err := g.Fix("candidates.k = 0_3"); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, j := range g.Jobs("ecl-gsr", "d") {
		got = append(got, fmt.Sprintf("%s %d", strings.Join(j.Set, " "), j.Seed))
	}
	var want []string
	for _, lr := range []string{"0.1", "0.01"} {
		for _, c := range []string{`"gcn"`, `"propagation"`} {
			for _, e := range []string{"model.edges.old_lo=0.0 model.edges.old_hi=0.9", "model.edges.old_lo=0.5 model.edges.old_hi=0.001"} {
				for _, seed := range []int{3, 1} {
					want = append(want, fmt.Sprintf("train.epochs=5 candidates.k=3 train.lr=%s model.classifier=%s %s %d", lr, c, e, seed))
				}
			}
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("jobs\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestGridSeeds(t *testing.T) {
	for _, c := range []struct {
		text string
		want []int
	}{
		{"", []int{0}},
		{"[sweep]\nseeds = 3", []int{0, 1, 2}},
		{"[sweep]\n\"train.seed\" = [4, 2]", []int{4, 2}},
		{"[train]\nseed = 7", []int{7}},
	} {
		g, err := ParseGrid(c.text)
		if err != nil || !slices.Equal(g.Seeds, c.want) {
			t.Errorf("%s: %v, %v", c.text, g, err)
		}
	}
}

func TestGridErrors(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"[sweep]\n\"model.edge.mu\" = [1]", "did you mean model.edges.mu?"},
		{"[sweep]\nmu = [1]", "did you mean model.edges.mu?"},
		{"[sweep]\nmodel.edges.muh = [1]", "did you mean model.edges.mu?"},
		{"[sweep]\nseed = 3", "did you mean seeds?"},
		{"[sweep]\nseeds = 0", "1 at least"},
		{"[sweep]\nseeds = [1, 1]", "list of seeds"},
		{"[sweep]\nseeds = [1]\n\"train.seed\" = [2]", "given twice"},
		{"[sweep]\n\"train.lr\" = [\"fast\"]", "train.lr must be a finite number"},
		{"[sweep]\n\"train.lr\" = []", "empty"},
		{"[sweep]\n\"train.lr\" = [0.1, 1e-1]", "twice"},
		{"[train]\nlr = 0.1\n[sweep]\n\"train.lr\" = [0.1]", "both a value and a list"},
		{"[train]\nepoch = 1", "did you mean train.epochs?"},
		{"[sweep]\n\"model\" = [1]", "section"},
		{"[[sweep.zip]]\n\"train.lr\" = [0.1]\n\"model.hidden\" = [1, 2]", "equally long"},
		{"[[sweep.zip]]\n\"train.lr\" = 0.1", "must be a list"},
		{"[[sweep.zip]]\n\"train.lrr\" = [0.1]", "did you mean train.lr?"},
		{"[[sweep.zip]]\nseeds = [1]", "every setting is run with each"},
		{"[sweep]\n\"train.lr\" = [0.1]\n[[sweep.zip]]\n\"train.lr\" = [0.1]", "two lists"},
		{"[[sweep.pairs]]\n\"train.lr\" = [0.1]", "[[sweep.zip]]"},
		{"sweep = 3", "must be a section"},
		{"[sweep", "line 1"},
	} {
		if g, err := ParseGrid(c.text); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %+v, error %v, want %q", c.text, g, err, c.want)
		}
	}
	g := &Grid{Axes: []Axis{{Keys: []string{"train.lr"}}}}
	for _, fix := range []string{"train.lr=0.1", "train.seed=3", "model.hidden=x", "hidden"} {
		if err := g.Fix(fix); err == nil {
			t.Errorf("%s was taken", fix)
		}
	}
}
