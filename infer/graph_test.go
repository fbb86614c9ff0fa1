package infer

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/gsrc-dev/gsrc/data"
	"github.com/gsrc-dev/gsrc/export"
	"github.com/gsrc-dev/gsrc/internal/orttest"
	"github.com/gsrc-dev/gsrc/models"
	"github.com/gsrc-dev/gsrc/runtime/ort"
)

// asFolder writes a data set, with more rows and edges, as CSV files.
func asFolder(t *testing.T, ds *data.Dataset, x []float32, edges [][2]string) string {
	t.Helper()
	var nodes, list strings.Builder
	nodes.WriteString("id")
	for j := range ds.X.Cols {
		fmt.Fprintf(&nodes, ",f%d", j)
	}
	all := append(slices.Clone(ds.X.ToDense().Dense), x...)
	for i := range len(all) / ds.X.Cols {
		nodes.WriteString("\n" + strconv.Itoa(i))
		for _, v := range all[i*ds.X.Cols : (i+1)*ds.X.Cols] {
			nodes.WriteString("," + strconv.FormatFloat(float64(v), 'g', -1, 32))
		}
	}
	list.WriteString("source,target\n")
	for _, e := range ds.Graph.Edges {
		fmt.Fprintf(&list, "%d,%d\n", e[0], e[1])
	}
	for _, e := range edges {
		fmt.Fprintf(&list, "%s,%s\n", e[0], e[1])
	}
	dir := t.TempDir()
	if err := errors.Join(os.WriteFile(filepath.Join(dir, "nodes.csv"), []byte(nodes.String()+"\n"), 0o644),
		os.WriteFile(filepath.Join(dir, "edges.csv"), []byte(list.String()), 0o644)); err != nil {
		t.Fatal(err)
	}
	return dir
}

// A graph that grows gives what Predict gives on data that had the nodes and edges
// from the start, also where new edges are found and scored.
func TestGraphGrowsLikeTheData(t *testing.T) {
	orttest.Need(t)
	for _, judge := range []string{"", models.JudgeEmbedding, models.JudgeEvidence} {
		for _, exact := range []bool{false, true} {
			dir := t.TempDir()
			model, set := "gcn", []string{"train.epochs=2", "synthetic.nodes=120"}
			if judge != "" {
				model, set = "ecl-gsr", append(set, "model.edges.judge="+judge)
				set = append(set, "train.pretrain_steps=2", "train.joint_every=0", "deepwalk.width=0")
			}
			run := Train(t, filepath.Join(dir, "run"), model, data.Synthetic, export.BuildOptions{}, set...)
			dist := run.Dist
			o := PredictOptions{Load: run.Load, Provider: ort.CPU}
			r, err := OpenGraph(t.Context(), dist, data.Synthetic, GraphOptions{PredictOptions: o, Exact: exact})
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			first := r.Snapshot()
			check := func(s *Snapshot, path string) {
				t.Helper()
				want, err := Predict(t.Context(), dist, path, "", PredictOptions{Provider: ort.CPU, Load: o.Load})
				if err != nil {
					t.Fatal(err)
				}
				all := make([]int, s.Nodes())
				for i := range all {
					all[i] = i
				}
				_, got, err := s.Answer(all)
				if err != nil {
					t.Fatal(err)
				}
				for i := range want.Probabilities {
					if d := got[i] - want.Probabilities[i]; !(d <= 1e-5 && d >= -1e-5) {
						t.Fatalf("%s, exact %v, version %d: probability %d is %g, want %g", model, exact, s.Version, i, got[i], want.Probabilities[i])
					}
				}
			}
			check(first, data.Synthetic)
			x := slices.Repeat(run.Data.X.ToDense().Dense[:run.Data.X.Cols], 2)
			edges := [][2]string{{"120", "3"}, {"121", "120"}, {"4", "9"}}
			g := Update{X: x, IDs: []string{"120", "121"}}
			for _, e := range edges {
				g.Sources, g.Targets = append(g.Sources, e[0]), append(g.Targets, e[1])
			}
			if a, err := r.Update(t.Context(), g); err != nil || a.Version != 2 {
				t.Fatal(a, err)
			}
			grown := r.Snapshot()
			check(grown, asFolder(t, run.Data, x, edges))
			check(first, data.Synthetic) // as it was
			if _, err := first.Find("121"); err == nil {
				t.Error("the first version has a node of the second")
			}
			if v, err := grown.Find("121"); err != nil || v != 121 {
				t.Errorf("node 121 is %d, %v", v, err)
			}
		}
	}
}

func TestUpdateFaults(t *testing.T) {
	orttest.Need(t)
	dir := t.TempDir()
	folder := filepath.Join(dir, "friends")
	if err := errors.Join(os.MkdirAll(folder, 0o755),
		os.WriteFile(filepath.Join(folder, "edges.csv"), []byte("source,target\nann,bob\nbob,cleo\ncleo,dan\n"), 0o644),
		os.WriteFile(filepath.Join(folder, "nodes.csv"), []byte("id,label,split,age,chess\nann,cat,train,31,1\nbob,dog,train,45,0\ncleo,cat,val,28,1\ndan,dog,test,52,0\n"), 0o644)); err != nil {
		t.Fatal(err)
	}
	run := Train(t, filepath.Join(dir, "run"), "gcn", folder, export.BuildOptions{}, "train.epochs=1")
	dist := run.Dist
	r, err := OpenGraph(t.Context(), dist, folder, GraphOptions{PredictOptions: PredictOptions{Provider: ort.CPU}})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	nan := float32(0)
	nan /= nan
	for want, g := range map[string]Update{
		"nothing to add,":   {},
		"no rows of 2":      {X: []float32{1}},
		"1 names for 2":     {X: []float32{1, 2, 3, 4}, IDs: []string{"eve"}},
		"0 names for 1":     {X: []float32{1, 2}},
		`called "ann"`:      {X: []float32{1, 2}, IDs: []string{"ann"}},
		`called "eve"`:      {X: []float32{1, 2, 3, 4}, IDs: []string{"eve", "eve"}},
		`called ""`:         {X: []float32{1, 2}, IDs: []string{""}},
		"features are fini": {X: []float32{1, nan}, IDs: []string{"eve"}},
		"one of each":       {Sources: []string{"ann"}},
		`edge 0 is "eve"`:   {Sources: []string{"ann"}, Targets: []string{"eve"}},
	} {
		var fault *UpdateError
		if _, err := r.Update(t.Context(), g); !errors.As(err, &fault) || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", g, err, want)
		}
	}
	if v := r.Snapshot().Version; v != 1 {
		t.Fatalf("version %d after nothing was added", v)
	}
	s, err := r.Update(t.Context(), Update{X: []float32{30, 1}, IDs: []string{"eve"}, Sources: []string{"eve", "eve", "eve"}, Targets: []string{"ann", "ann", "eve"}})
	if err != nil || s != (Applied{Version: 2, Nodes: 5, Edges: 4}) {
		t.Fatalf("%+v, %v", s, err)
	}
	if _, _, err := r.Snapshot().Answer([]int{5}); err == nil {
		t.Error("an answer for a node that there is not")
	}
}

// A model whose encoder knows the training graph alone answers for it, and lets it not
// grow.
func TestFixedGraph(t *testing.T) {
	orttest.Need(t)
	dir := t.TempDir()
	run := Train(t, filepath.Join(dir, "run"), "ecl-gsr", data.Synthetic, export.BuildOptions{}, "train.epochs=2", "synthetic.nodes=80", "train.pretrain_steps=2", "train.joint_every=0", "deepwalk.width=8", "model.edges.judge=embedding")
	dist := run.Dist
	r, err := OpenGraph(t.Context(), dist, data.Synthetic, GraphOptions{PredictOptions: PredictOptions{Provider: ort.CPU, Load: run.Load}})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if _, p, err := r.Snapshot().Answer([]int{7}); err != nil || len(p) == 0 {
		t.Fatal(p, err)
	}
	if _, err := r.Update(t.Context(), Update{Sources: []string{"1"}, Targets: []string{"2"}}); !errors.Is(err, ErrFixedGraph) || !strings.Contains(err.Error(), "structural attributes") || strings.Contains(err.Error(), "weight of its own") || err.Error() != r.Fixed().Error() {
		t.Errorf("it grew: %v", err)
	}
}

// A graph that is opened for questions alone refuses updates, also one that computes every version as a
// whole.
func TestReadOnlyGraph(t *testing.T) {
	for _, exact := range []bool{false, true} {
		r, _, _ := resident(t, "gcn", GraphOptions{ReadOnly: true, Exact: exact})
		if _, err := r.Update(t.Context(), Update{DeleteNodes: []string{"3"}}); !errors.Is(err, ErrReadOnly) {
			t.Errorf("exact: %v: %v", exact, err)
		}
		if s := r.Snapshot(); s.Version != 1 {
			t.Errorf("it has version %d", s.Version)
		}
	}
}
