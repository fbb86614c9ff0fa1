package infer

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"
	"weak"

	"github.com/gsrc-dev/gsrc/data"
	"github.com/gsrc-dev/gsrc/export"
	"github.com/gsrc-dev/gsrc/graph"
	"github.com/gsrc-dev/gsrc/internal/budget"
	"github.com/gsrc-dev/gsrc/internal/orttest"
	"github.com/gsrc-dev/gsrc/models"
	"github.com/gsrc-dev/gsrc/runtime/ort"
)

// exports are small models of the synthetic graph, made once; TestMain removes them.
var exports struct {
	dir  string
	made map[string]*Exported
}

func TestMain(m *testing.M) {
	if dir := os.Getenv(childVar); dir != "" {
		if err := updateUntilKilled(dir); err != nil {
			fmt.Println("failed", err)
			os.Exit(1)
		}
		return
	}
	code := m.Run()
	os.RemoveAll(exports.dir)
	os.Exit(code)
}

// exported120 trains and exports a small model of a synthetic graph of 120 nodes.
func exported120(t *testing.T, model string, set ...string) (dist string, run *Exported) {
	t.Helper()
	return exportedAs(t, model, export.BuildOptions{}, set...)
}

func exportedAs(t *testing.T, model string, b export.BuildOptions, set ...string) (dist string, run *Exported) {
	t.Helper()
	orttest.Need(t)
	if exports.made == nil {
		var err error
		if exports.dir, err = os.MkdirTemp("", "gsrc"); err != nil {
			t.Fatal(err)
		}
		exports.made = map[string]*Exported{}
	}
	set = append([]string{"train.epochs=2", "synthetic.nodes=120"}, set...)
	if model == "ecl-gsr" { // models that judge by evidence are large, and take onnxruntime long to open
		set = slices.Concat([]string{"model.edges.judge=embedding"}, set, []string{"train.pretrain_steps=2", "train.joint_every=0", "deepwalk.width=0"})
	}
	key := fmt.Sprint(model, set, b)
	if run = exports.made[key]; run == nil {
		run = Train(t, filepath.Join(exports.dir, fmt.Sprint(len(exports.made))), model, data.Synthetic, b, set...)
		exports.made[key] = run
	}
	return run.Dist, run
}

// resident opens a small model's graph.
func resident(t *testing.T, model string, o GraphOptions, set ...string) (r *Graph, dist string, ds *data.Dataset) {
	t.Helper()
	return residentBuilt(t, model, o, export.BuildOptions{}, set...)
}

func residentBuilt(t *testing.T, model string, o GraphOptions, b export.BuildOptions, set ...string) (r *Graph, dist string, ds *data.Dataset) {
	t.Helper()
	dist, run := exportedAs(t, model, b, set...)
	o.Provider, o.Load = ort.CPU, run.Load
	r, err := OpenGraph(t.Context(), dist, data.Synthetic, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	return r, dist, run.Data
}

// Versions that are not read are freed, and what is held does not grow with their
// number.
func TestOldVersionsAreFreed(t *testing.T) {
	r, _, _ := resident(t, "gcn", GraphOptions{Exact: true})
	exact := r.advance
	var live atomic.Int64
	work := 0
	r.advance = func(ctx context.Context, old, next *Snapshot, c *changes) error {
		live.Add(1)
		runtime.AddCleanup(next, func(*atomic.Int64) { live.Add(-1) }, &live)
		if work++; work%1000 == 1 { // the rest is about what is held, not about answers
			return exact(ctx, old, next, c)
		}
		n := next.rows() * len(r.p.manifest.Classes)
		next.logits, next.probabilities = make([]float32, n), make([]float32, n)
		return nil
	}
	heap := func() uint64 {
		runtime.GC()
		runtime.GC() // the cleanups of the first have run
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	var first uint64
	for i := range 10_000 {
		// An edge comes and goes, and features change: the graph stays as large.
		u := Update{Sources: []string{"3"}, Targets: []string{"7"}, ChangeNodes: []string{strconv.Itoa(i % 120)}, ChangeX: make([]float32, r.Snapshot().x.cols)}
		if i%2 == 1 {
			u.Sources, u.Targets, u.DeleteSources, u.DeleteTargets = nil, nil, u.Targets, u.Sources
		}
		u.ChangeX[0] = float32(i)
		if a, err := r.Update(t.Context(), u); err != nil || a.Version != int64(i+2) {
			t.Fatal(a, err)
		}
		if i == 100 {
			first = heap()
		}
	}
	last := heap()
	if n := live.Load(); n > 3 {
		t.Errorf("%d of 10,000 versions are held", n)
	}
	if float64(last) > 1.2*float64(first) {
		t.Errorf("the heap has %d bytes after 10,000 updates, %d after 100", last, first)
	}
	runtime.KeepAlive(r)
}

// A graph that is closed is freed with all its versions.
func TestClosedGraphsAreFreed(t *testing.T) {
	for _, model := range []string{"gcn", "ecl-gsr"} {
		dist, run := exported120(t, model)
		var graphs []weak.Pointer[Graph]
		for range 3 {
			r, err := OpenGraph(t.Context(), dist, data.Synthetic, GraphOptions{PredictOptions: PredictOptions{Provider: ort.CPU, Load: run.Load}})
			if err != nil {
				t.Fatal(err)
			}
			mustUpdate(t, r, Update{Sources: []string{"3"}, Targets: []string{"70"}})
			r.Close()
			graphs = append(graphs, weak.Make(r))
		}
		for range 5 { // what the last update ran in may not have ended yet
			runtime.GC()
			time.Sleep(time.Millisecond)
		}
		for i, g := range graphs {
			if g.Value() != nil {
				t.Errorf("%s: graph %d is held after its end", model, i)
			}
		}
	}
}

// answers are those of every node that is there, in the order of their numbers.
func answers(t *testing.T, s *Snapshot) []float32 {
	t.Helper()
	var nodes []int
	for v := range s.Numbers() {
		if s.Check(int64(v)) == nil {
			nodes = append(nodes, v)
		}
	}
	_, p, err := s.Answer(nodes)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// same holds the answers of a version against Predict on files.
func same(t *testing.T, s *Snapshot, dist, path string, o PredictOptions) {
	t.Helper()
	want, err := Predict(t.Context(), dist, path, "", o)
	if err != nil {
		t.Fatal(err)
	}
	got := answers(t, s)
	if len(got) != len(want.Probabilities) {
		t.Fatalf("%d probabilities, want %d", len(got), len(want.Probabilities))
	}
	if s.r.inc == nil {
		if !slices.Equal(got, want.Probabilities) {
			t.Errorf("version %d differs from Predict", s.Version)
		}
		return
	}
	for i := range got {
		if d := got[i] - want.Probabilities[i]; !(d <= 1e-5 && d >= -1e-5) {
			t.Fatalf("version %d: probability %d is %g, want %g", s.Version, i, got[i], want.Probabilities[i])
		}
	}
}

// folder writes what a version is as CSV files that Predict reads: what the journal does
// for real, in other words.
func folder(t *testing.T, s *Snapshot) string {
	t.Helper()
	var nodes, edges strings.Builder
	nodes.WriteString("id")
	for j := range s.x.cols {
		fmt.Fprintf(&nodes, ",f%d", j)
	}
	for v := range s.rows() {
		if s.deleted.has(v) {
			continue
		}
		nodes.WriteString("\n" + s.name(v))
		for _, x := range s.x.row(v) {
			nodes.WriteString("," + strconv.FormatFloat(float64(x), 'g', -1, 32))
		}
	}
	edges.WriteString("source,target\n")
	for _, e := range s.graph.Edges {
		fmt.Fprintf(&edges, "%s,%s\n", s.name(int(e[0])), s.name(int(e[1])))
	}
	dir := t.TempDir()
	if err := errors.Join(os.WriteFile(filepath.Join(dir, "nodes.csv"), []byte(nodes.String()+"\n"), 0o644),
		os.WriteFile(filepath.Join(dir, "edges.csv"), []byte(edges.String()), 0o644)); err != nil {
		t.Fatal(err)
	}
	return dir
}

// Deleted nodes and edges and other features give what Predict gives on a graph that is
// so from the start, and what is left keeps its numbers.
func TestDeletedAndChanged(t *testing.T) {
	for _, judge := range []string{"", models.JudgeEmbedding, models.JudgeEvidence} {
		for _, exact := range []bool{false, true} {
			model, set := "gcn", []string(nil)
			if judge != "" {
				model, set = "ecl-gsr", []string{"model.edges.judge=" + judge}
			}
			r, dist, ds := resident(t, model, GraphOptions{Exact: exact}, set...)
			o := PredictOptions{Provider: ort.CPU}
			d := ds.X.Cols
			first := r.Snapshot()
			edge := ds.Graph.Edges[slices.IndexFunc(ds.Graph.Edges, func(e [2]int32) bool { return e[0] > 20 })]
			before := answers(t, first)
			u := Update{DeleteNodes: []string{"5", "17"}, DeleteSources: []string{strconv.Itoa(int(edge[1]))}, DeleteTargets: []string{strconv.Itoa(int(edge[0]))},
				ChangeNodes: []string{"30"}, ChangeX: slices.Clone(first.x.row(31)), X: slices.Clone(first.x.row(8)), Sources: []string{"120", "50"}, Targets: []string{"3", "70"}}
			a, err := r.Update(t.Context(), u)
			if err != nil {
				t.Fatal(err)
			}
			s := r.Snapshot()
			if a.Nodes != 119 || s.Numbers() != 121 || a.Version != 2 || a.Edges != s.Edges() || s.graph.Has(edge[0], edge[1]) || !s.graph.Has(50, 70) || !slices.Equal(s.x.row(30), first.x.row(31)) {
				t.Fatalf("%+v, %d numbers", a, s.Numbers())
			}
			for _, e := range s.graph.Edges {
				if e[0] == 5 || e[1] == 5 || e[0] == 17 || e[1] == 17 {
					t.Fatalf("edge %v is left", e)
				}
			}
			if err := s.graph.Validate(); err != nil {
				t.Fatal(err)
			}
			same(t, s, dist, folder(t, s), o)
			var node *NodeError
			if _, err := s.Find("17"); !errors.As(err, &node) || !node.Deleted || !strings.Contains(err.Error(), "deleted") {
				t.Errorf("a deleted node: %v", err)
			}
			if _, _, err := s.Answer([]int{3, 5}); !errors.As(err, &node) || !node.Deleted {
				t.Errorf("the number of a deleted node: %v", err)
			}
			if v, err := s.Find("120"); err != nil || v != 120 {
				t.Errorf("the new node is %d, %v", v, err)
			}
			// What is deleted and comes back, and what is there already, is no change.
			x := slices.Clone(s.x.row(30))
			if a, err := r.Update(t.Context(), Update{ChangeNodes: []string{"30"}, ChangeX: x, Sources: []string{"50", "70", "70"}, Targets: []string{"70", "50", "70"},
				DeleteSources: []string{"70", "1"}, DeleteTargets: []string{"50", "1"}}); err != nil || a.Version != 2 {
				t.Errorf("nothing changed: %+v, %v", a, err)
			}
			for i := range 6 { // more of it, so that blocks and versions mix
				number := strconv.Itoa(121 + i)
				u := Update{X: slices.Repeat([]float32{float32(i) / 4}, d), Sources: []string{number, number}, Targets: []string{strconv.Itoa(60 + i), "120"}, DeleteNodes: []string{strconv.Itoa(90 + i)}}
				if _, err := r.Update(t.Context(), u); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := r.Update(t.Context(), Update{DeleteNodes: []string{"121"}}); err != nil {
				t.Fatal(err)
			}
			same(t, r.Snapshot(), dist, folder(t, r.Snapshot()), o)
			if !slices.Equal(before, answers(t, first)) {
				t.Error("the first version has changed")
			}
		}
	}
}

func TestUpdatesThatDeleteWrongly(t *testing.T) {
	r, _, ds := resident(t, "gcn", GraphOptions{})
	if _, err := r.Update(t.Context(), Update{DeleteNodes: []string{"7"}}); err != nil {
		t.Fatal(err)
	}
	var all []string
	for v := range 120 {
		if v != 7 {
			all = append(all, strconv.Itoa(v))
		}
	}
	x := make([]float32, ds.X.Cols)
	for want, u := range map[string]Update{
		`node to delete 0 is "7", and that node was`: {DeleteNodes: []string{"7"}},
		`node to delete 1 is "8", which the update`:  {DeleteNodes: []string{"8", "8"}},
		`node to delete 0 is "120", and there is no`: {DeleteNodes: []string{"120"}},
		`the new node "120" is deleted by the same`:  {X: x, DeleteNodes: []string{"120"}},
		"no node would be left":                      {DeleteNodes: all},
		`source of edge 0 is "7", and that node was`: {Sources: []string{"7"}, Targets: []string{"8"}},
		`target of edge 0 is "9", which the update`:  {Sources: []string{"8"}, Targets: []string{"9"}, DeleteNodes: []string{"9"}},
		`edge to delete 0 is "7"`:                    {DeleteSources: []string{"7"}, DeleteTargets: []string{"8"}},
		"and 1 and 0 of edges to delete":             {DeleteSources: []string{"7"}},
		`node to change 0 is "7"`:                    {ChangeNodes: []string{"7"}, ChangeX: x},
		`node "8" are changed twice`:                 {ChangeNodes: []string{"8", "8"}, ChangeX: append(x, x...)},
		"features of 2 nodes":                        {ChangeNodes: []string{"8", "9"}, ChangeX: x},
		`new node 0 is called "7"`:                   {IDs: []string{"7"}, X: x},
	} {
		var fault *UpdateError
		if _, err := r.Update(t.Context(), u); !errors.As(err, &fault) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := r.Update(ended, Update{DeleteNodes: []string{"8"}}); !errors.Is(err, context.Canceled) {
		t.Errorf("with a context that has ended: %v", err)
	}
	if _, err := r.Update(t.Context(), Update{DeleteNodes: []string{"7"}}); err == nil { // after what waits
		t.Error("a node is deleted twice")
	}
	if v := r.Snapshot().Version; v != 2 {
		t.Errorf("version %d after nothing was changed", v)
	}
}

// A version with an answer that is not finite is refused, whoever else shares it, and
// what was refused leaves nothing behind.
func TestVersionsAreFinite(t *testing.T) {
	for _, model := range []string{"gcn", "ecl-gsr"} {
		for _, exact := range []bool{false, true} {
			r, dist, ds := resident(t, model, GraphOptions{Exact: exact}, "model.norm=none")
			before := answers(t, r.Snapshot())
			huge := slices.Repeat([]float32{3e38}, ds.X.Cols)
			fine := slices.Clone(r.Snapshot().x.row(3))
			var fault *UpdateError
			if _, err := r.Update(t.Context(), Update{X: huge, Sources: []string{"120"}, Targets: []string{"4"}}); !errors.As(err, &fault) || !strings.Contains(err.Error(), "of new node 0 are too large") {
				t.Errorf("%s: an update whose answers are not finite: %v", model, err)
			}
			if _, err := r.Update(t.Context(), Update{ChangeX: huge, ChangeNodes: []string{"9"}}); !errors.As(err, &fault) || !strings.Contains(err.Error(), `of the node "9" are too large`) {
				t.Errorf("%s: features that are too large: %v", model, err)
			}
			// One that would spoil comparisons with every later node.
			one := make([]float32, ds.X.Cols)
			one[0] = 3e38
			if _, err := r.Update(t.Context(), Update{X: one}); !errors.As(err, &fault) {
				t.Errorf("%s: a new node with one feature that is too large: %v", model, err)
			}
			all := []*attempt{
				{u: Update{ChangeX: fine, ChangeNodes: []string{"1"}}},
				{u: Update{ChangeX: huge, ChangeNodes: []string{"2"}}},
				{u: Update{X: fine, Sources: []string{"120"}, Targets: []string{"4"}}},
				{u: Update{DeleteSources: []string{"nobody"}, DeleteTargets: []string{"4"}}},
			}
			if !slices.Equal(before, answers(t, r.Snapshot())) || r.Snapshot().Version != 1 {
				t.Errorf("%s: what was refused has changed answers", model)
			}
			r.update(all)
			if all[0].err != nil || !errors.As(all[1].err, &fault) || all[2].err != nil || !errors.As(all[3].err, &fault) {
				t.Errorf("%s: of updates that come together: %v, %v, %v, %v", model, all[0].err, all[1].err, all[2].err, all[3].err)
			}
			s := r.Snapshot()
			if s.Nodes() != 121 || !slices.Equal(s.x.row(1), fine) || slices.Equal(s.x.row(2), huge) {
				t.Errorf("%s: %d nodes, version %d", model, s.Nodes(), s.Version)
			}
			same(t, s, dist, folder(t, s), PredictOptions{Provider: ort.CPU})
			// The same in files, with labels and without.
			spoilt := *s
			spoilt.x = matrixOf(s.x.appendRows(nil, s.deleted.has), s.x.cols)
			copy(spoilt.x.row(50), huge)
			path := folder(t, &spoilt)
			var finite *FiniteError
			for _, label := range []string{"", ",label"} {
				if label != "" {
					text, err := os.ReadFile(filepath.Join(path, "nodes.csv"))
					if err != nil {
						t.Fatal(err)
					}
					lines := strings.Split(strings.TrimSpace(string(text)), "\n")
					for i := range lines {
						if i > 0 {
							label = "," + strconv.Itoa(i%2)
						}
						lines[i] += label
					}
					if err := os.WriteFile(filepath.Join(path, "nodes.csv"), []byte(strings.Join(lines, "\n")+"\n"), 0o644); err != nil {
						t.Fatal(err)
					}
				}
				_, err := Predict(t.Context(), dist, path, filepath.Join(t.TempDir(), "out.csv"), PredictOptions{Provider: ort.CPU})
				if !errors.As(err, &finite) || !strings.Contains(err.Error(), `column 0 of node "50"`) {
					t.Errorf("%s: Predict on a feature that is too large: %v", model, err)
				}
			}
			if _, err := OpenGraph(t.Context(), dist, path, GraphOptions{PredictOptions: PredictOptions{Provider: ort.CPU}, Exact: exact}); !errors.As(err, &finite) {
				t.Errorf("%s: a graph with a feature that is too large: %v", model, err)
			}
			// A fault is told from what was there before.
			next := *r.Snapshot()
			next.Version++
			next.x = matrixOf(next.x.appendRows(nil, next.deleted.has), next.x.cols)
			copy(next.x.row(7), huge)
			if text := next.notFinite(8).Error(); !strings.Contains(text, `node "8" (whose features the update leaves as they are) is`) || !strings.Contains(text, `node "7": scale`) {
				t.Errorf("%s: %s", model, text)
			}
		}
	}
}

// The server says where its candidates are searched otherwise than by predict.
func TestSearchNote(t *testing.T) {
	for _, c := range []struct {
		graph string
		nodes int
		want  string
	}{
		{"refined", graph.ApproximateAbove, ""},
		{"refined", graph.ApproximateAbove + 1, "--exact"},
		{"raw", graph.ApproximateAbove + 1, ""},
	} {
		if got := searchNote(&Info{Graph: c.graph}, c.nodes); (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%+v: %q", c, got)
		}
	}
}

// What onnxruntime would take for a graph is held against the limit before it runs.
func TestPredictWithinMemory(t *testing.T) {
	orttest.Need(t)
	// What lists neighbours of the ends of edges takes far more of a dense graph than its size tells.
	dense, judging := exported120(t, "ecl-gsr", "model.edges.judge=evidence")
	small := judging.Config.Synthetic.CSBM(7)
	p, err := newPredictor(dense, data.Synthetic, PredictOptions{Provider: ort.CPU, Threads: 1, Load: data.LoadOptions{Seed: 7, Synthetic: &small, MaxBytes: 64 << 20}})
	if err != nil {
		t.Fatal(err)
	}
	defer p.close()
	if err := p.models(t.Context()); err != nil {
		t.Fatal(err)
	}
	g := &graph.Graph{N: p.ds.Graph.N}
	for u := range int32(g.N) {
		for v := range u {
			g.Edges = append(g.Edges, [2]int32{v, u})
		}
	}
	p.ds.Graph = g
	var over *budget.ExceededError
	if err := p.fits(p.ds.Graph, p.refining()...); !errors.As(err, &over) {
		t.Errorf("%d edges of %d nodes within 64 MiB: %v", len(g.Edges), g.N, err)
	}
	for _, model := range []string{"gcn", "ecl-gsr"} {
		dist, run := exported120(t, model)
		large := run.Config.Synthetic.CSBM(7)
		large.Nodes = 4000
		o := PredictOptions{Provider: ort.CPU, Threads: 1, Load: data.LoadOptions{Seed: 7, Synthetic: &large, MaxBytes: 12 << 20}}
		var exceeded *budget.ExceededError
		if _, err := Predict(t.Context(), dist, data.Synthetic, "", o); !errors.As(err, &exceeded) || !strings.Contains(err.Error(), "in onnxruntime takes") {
			t.Errorf("%s within 12 MiB: %v", model, err)
		}
		if model == "ecl-gsr" {
			if _, err := Refine(t.Context(), dist, RefineOptions{Data: data.Synthetic, Predict: o}); !errors.As(err, &exceeded) {
				t.Errorf("refining within 12 MiB: %v", err)
			}
		}
		o.Load.MaxBytes = 1 << 30
		if _, err := Predict(t.Context(), dist, data.Synthetic, "", o); err != nil {
			t.Errorf("%s within 1 GiB: %v", model, err)
		}
	}
}
