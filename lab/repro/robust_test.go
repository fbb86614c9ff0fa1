package repro

import (
	"context"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gsrc-dev/gsrc"
	"github.com/gsrc-dev/gsrc/config"
	"github.com/gsrc-dev/gsrc/data"
	"github.com/gsrc-dev/gsrc/lab/sweep"
	"github.com/gsrc-dev/gsrc/rng"
)

// TestAlterFeatures holds masked and moved entries to their share, and to the values and
// columns that may be left.
func TestAlterFeatures(t *testing.T) {
	const rows, cols, each, share = 200, 50, 10, 0.3
	x := &data.Features{Rows: rows, Cols: cols, RowPtr: []int32{0}}
	for i := range rows {
		for k := range each {
			x.Col, x.Val = append(x.Col, int32(k*5+i%5)), append(x.Val, float32(1+i*each+k)) // all values differ
		}
		x.RowPtr = append(x.RowPtr, int32(len(x.Col)))
	}
	for _, moved := range []bool{false, true} {
		got := alterFeatures(x, share, moved, rng.New(3, "test"))
		if again := alterFeatures(x, share, moved, rng.New(3, "test")); !slices.Equal(got.Col, again.Col) || !slices.Equal(got.Val, again.Val) {
			t.Error("the same seed gives other features")
		}
		stay := 0
		for i := range rows {
			was, is := x.Col[x.RowPtr[i]:x.RowPtr[i+1]], got.Col[got.RowPtr[i]:got.RowPtr[i+1]]
			values := got.Val[got.RowPtr[i]:got.RowPtr[i+1]]
			if !slices.IsSorted(is) || len(slices.Compact(slices.Clone(is))) != len(is) || moved && len(is) != each {
				t.Fatalf("row %d has the columns %v", i, is)
			}
			for k, c := range is {
				at := slices.Index(x.Val, values[k])
				if at < int(x.RowPtr[i]) || at >= int(x.RowPtr[i+1]) {
					t.Fatalf("row %d has the value %v of another", i, values[k])
				}
				stay += count(x.Col[at] == c)
				if !moved && !slices.Contains(was, c) {
					t.Fatalf("row %d has a column %d that it had not", i, c)
				}
			}
		}
		if left := float64(stay) / (rows * each); left < 1-share-0.04 || left > 1-share+0.06 {
			t.Errorf("moved %v: %.3f of the entries are where they were, want about %v", moved, left, 1-share)
		}
	}
}

// altered makes an alteration of generated data in a folder, and reads it.
func altered(t *testing.T, dir string, a alteration) *data.Dataset {
	t.Helper()
	p := planned{job: sweep.Job{Seed: 1}, source: data.Synthetic, made: filepath.Join(dir, a.folder(data.Synthetic, 1))}
	p.alteration = a
	if err := p.prepare(context.Background()); err != nil {
		t.Fatal(err)
	}
	ds, err := data.Load(p.made, data.LoadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return ds
}

// TestAlterGraph holds what is written for Table S to what ecl-gsr refines.
func TestAlterGraph(t *testing.T) {
	dir := t.TempDir()
	load := func(a alteration) *data.Dataset { return altered(t, dir, a) }
	refined, all := load(refinedEdges), load(refinedAll)
	left, err := os.ReadDir(dir)
	if err != nil || !slices.ContainsFunc(left, func(e os.DirEntry) bool { return strings.Contains(e.Name(), copied.name) }) {
		t.Fatalf("the refined graph was not made of a copy: %v, %v", left, err)
	}
	was := load(copied)
	if !slices.Equal(was.Labels, refined.Labels) || !slices.Equal(was.X.Val, refined.X.Val) || len(was.Splits) != 1 || !slices.Equal(was.Splits[0].Train, refined.Splits[0].Train) {
		t.Error("labels, features or the split are others on the refined graph")
	}
	if was.Graph.Weights != nil || refined.Graph.Weights != nil || all.Graph.Weights == nil {
		t.Fatal("the weighted graph, and no other, has weights")
	}
	likely := 0
	for i, w := range all.Graph.Weights {
		_, kept := refined.Graph.Find(all.Graph.Edges[i][0], all.Graph.Edges[i][1])
		if kept != (w >= dropBelow) {
			t.Fatalf("an edge of probability %v: in the refined graph %v", w, kept)
		}
		likely += count(kept)
	}
	dropped := slices.ContainsFunc(was.Graph.Edges, func(e [2]int32) bool { _, ok := refined.Graph.Find(e[0], e[1]); return !ok })
	if likely != refined.Graph.NumEdges() || !dropped {
		t.Errorf("%d edges are in both graphs, %d in the refined one; edges of the data are dropped: %v", likely, refined.Graph.NumEdges(), dropped)
	}
}

// TestAlterEmbedding holds the features of Table L to the encoder, which is trained but where it is to stay as drawn.
func TestAlterEmbedding(t *testing.T) {
	dir := t.TempDir()
	load := func(a alteration) *data.Dataset { return altered(t, dir, a) }
	was, trained, drawn := load(copied), load(embedded), load(asDrawn)
	if trained.X.Cols == was.X.Cols || trained.X.Cols != drawn.X.Cols || slices.Equal(trained.X.Dense, drawn.X.Dense) {
		t.Errorf("%d features have become %d and %d, or training changes nothing", was.X.Cols, trained.X.Cols, drawn.X.Cols)
	}
	for _, ds := range []*data.Dataset{trained, drawn} {
		if !slices.Equal(ds.Labels, was.Labels) || !slices.Equal(ds.Graph.Edges, was.Graph.Edges) || !slices.Equal(ds.Splits[0].Test, was.Splits[0].Test) {
			t.Error("labels, edges or the split are others beside an embedding")
		}
	}
	params := func(set ...string) map[string][]float32 {
		run, err := gsrc.Train(context.Background(), gsrc.TrainOptions{Model: eclGSR, Data: filepath.Join(dir, copied.folder(data.Synthetic, 1)), Set: append(slices.Clone(contrast), set...), Seed: 1})
		if err != nil {
			t.Fatal(err)
		}
		return run.Trained.Params
	}
	untrained, never := params("train.pretrain_steps=0"), params(stayDrawn...)
	for name, w := range untrained {
		for i, v := range never[name] {
			if strings.HasPrefix(name, "encoder") && !(math.Abs(float64(v-w[i])) <= 1e-20) {
				t.Fatalf("%s is not as it was drawn", name)
			}
		}
	}
}

// TestPreferred holds the choice of a row to each seed's own validation nodes.
func TestPreferred(t *testing.T) {
	var ls ResultRows
	for row, accuracies := range map[string][2][2]float64{"a": {{80, 70}, {60, 50}}, "b": {{79, 90}, {65, 56}}} { // validation and test of two seeds
		for seed, v := range accuracies {
			ls = append(ls, ResultRow{Panel: "cora", X: "1", Row: row, Seed: seed, ValAcc: f64(v[0]), TestAcc: f64(v[1])})
		}
	}
	ls = append(ls, ResultRow{Panel: "cora", X: "1", Row: "lds", ValAcc: f64(99), TestAcc: f64(1)}) // of half of the nodes
	got := preferred(ls, "labels:", "a")
	for _, want := range []string{"| cora, of all rows          |  63.00 ± 9.90 |", "| cora, of those that refine | 60.00 ± 14.14 |", "| cora, of the others        | 73.00 ± 24.04 |"} {
		if !strings.Contains(got, want) {
			t.Errorf("%s\nlacks %q", got, want)
		}
	}
}

// TestContests holds the choice of rows to validation, among those with all seeds, and the count to the tests.
func TestContests(t *testing.T) {
	var ls ResultRows
	add := func(row string, val float64, test ...float64) {
		for seed, v := range test {
			ls = append(ls, ResultRow{Panel: "cora", X: "none", Row: row, Seed: seed, ValAcc: &val, TestAcc: f64(v)})
		}
	}
	add("a", 80, 81, 82.1, 83)
	add("b", 70, 91, 92, 93) // better on test nodes alone
	add("c", 79, 80, 81, 82)
	add("d", 60, 99, 99, 99)
	add("e", 90, 70, 71) // fewer seeds
	got := contests(ls, []contest{{"", []string{"a", "b", "e"}, []string{"c", "d"}}})
	for _, want := range []string{"Of 1 places the refined one is higher at 1; it is better at 1 and worse at 0 beyond", "| cora, none |       a |     c |      +1.03 |"} {
		if !strings.Contains(got, want) {
			t.Errorf("%s\nlacks %q", got, want)
		}
	}
	if got := contests(ls[:1], []contest{{"", []string{"a"}, []string{"c"}}}); got != "" {
		t.Errorf("a single run is no test: %q", got)
	}
}

// Rows that classify as gcn does have its options, whatever its defaults become.
func TestRowsClassifyAsGCN(t *testing.T) {
	for data, sets := range asGCN {
		own, err := config.Load("gcn", data, "", nil)
		if err != nil {
			t.Fatal(err)
		}
		as, err := config.Load("gcn", "other", "", sets)
		if err != nil {
			t.Fatal(err)
		}
		if own.Model.Hidden != as.Model.Hidden || own.Model.WeightDecay != as.Model.WeightDecay {
			t.Errorf("%s: %v, and gcn has a width of %d and a weight decay of %v", data, sets, own.Model.Hidden, own.Model.WeightDecay)
		}
	}
}
