package gsrc_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/gsrc-dev/gsrc"
	"github.com/gsrc-dev/gsrc/data"
	"github.com/gsrc-dev/gsrc/graph"
	"github.com/gsrc-dev/gsrc/infer"
	"github.com/gsrc-dev/gsrc/internal/exporttest"
	"github.com/gsrc-dev/gsrc/internal/orttest"
	"github.com/gsrc-dev/gsrc/runtime/ort"
	"github.com/parquet-go/parquet-go"
	"github.com/sbinet/npyio/npz"
)

func refine(t *testing.T, r *gsrc.Run, o gsrc.RefineOptions) *gsrc.RefinedGraph {
	t.Helper()
	g, err := r.Refine(o)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func threshold(v float64) *float64 { return &v }

func TestRefine(t *testing.T) {
	out := filepath.Join(t.TempDir(), "run")
	run := quickTrain(t, gsrc.TrainOptions{Model: "ecl-gsr", Out: out, Seed: 2, Set: []string{"model.edges.judge=embedding"}})
	g := refine(t, run, gsrc.RefineOptions{})
	s, res := g.Summary, run.Result
	if s.Before.Edges != res.EdgesBefore || s.After.Edges != *res.EdgesAfter || *s.Before.Homophily != *res.HomophilyBefore || *s.After.Homophily != *res.HomophilyAfter {
		t.Errorf("summary %+v, the run's result %+v", s, res)
	}
	if s.New == 0 || s.Kept+s.New != s.After.Edges || s.Kept+s.Removed != s.Before.Edges || len(g.Edges) != s.After.Edges || s.After.MeanDegree != 2*float64(s.After.Edges)/120 {
		t.Errorf("%d edges are listed, summary %+v", len(g.Edges), s)
	}
	// In the mode expected an edge weighs its probability.
	for _, e := range g.Edges {
		if e.Source >= e.Target || e.Weight != e.Probability || (e.Status == graph.StatusOld) != run.Data.Graph.Undirected().Has(e.Source, e.Target) {
			t.Fatalf("edge %+v", e)
		}
	}

	// What is read from the directory is the same, whichever name it has.
	again, err := gsrc.Refine(context.Background(), out, gsrc.RefineOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(again, g) {
		t.Error("the run in its directory has another refined graph")
	}

	// A threshold between the probabilities removes what is below it.
	var p []float64
	for _, e := range g.Edges {
		p = append(p, float64(e.Probability))
	}
	slices.Sort(p)
	cut := (p[len(p)/2] + p[len(p)/2+1]) / 2
	high := refine(t, run, gsrc.RefineOptions{Threshold: threshold(cut), KeepRemoved: true})
	want := 0
	for _, e := range refine(t, run, gsrc.RefineOptions{KeepRemoved: true}).Edges {
		if float64(e.Probability) >= cut || e.Status != graph.StatusNew {
			want++
		}
	}
	if s := high.Summary; s.Threshold != cut || s.After.Edges != s.Kept+s.New || len(high.Edges) != want || s.Kept+s.Removed != s.Before.Edges || s.Removed == 0 && s.New == g.Summary.New {
		t.Errorf("at the threshold %v: %d edges are listed, want %d; %+v", cut, len(high.Edges), want, s)
	}
	for _, e := range high.Edges {
		if below := float64(e.Probability) < cut; below != (e.Status == graph.StatusRemoved) || below != (e.Weight == 0) {
			t.Fatalf("edge %+v at the threshold %v", e, cut)
		}
	}

	// Both directions are the same edges twice, in order.
	both := refine(t, run, gsrc.RefineOptions{BothDirections: true})
	seen := map[[2]int32]infer.RefinedEdge{}
	for i, e := range both.Edges {
		if i > 0 && slices.Compare([]int32{both.Edges[i-1].Source, both.Edges[i-1].Target}, []int32{e.Source, e.Target}) >= 0 {
			t.Fatalf("edge %d is out of order", i)
		}
		seen[[2]int32{e.Source, e.Target}] = e
	}
	for _, e := range g.Edges {
		back := seen[[2]int32{e.Target, e.Source}]
		if seen[[2]int32{e.Source, e.Target}] != e || back.Weight != e.Weight || back.Status != e.Status {
			t.Fatalf("edge %+v and back %+v", e, back)
		}
	}
	if len(both.Edges) != 2*len(g.Edges) || !reflect.DeepEqual(both.Summary, g.Summary) {
		t.Errorf("%d edges for %d, summary %+v, want %+v", len(both.Edges), len(g.Edges), both.Summary, g.Summary)
	}
}

// In the mode threshold every edge weighs 1.
func TestRefineModeThreshold(t *testing.T) {
	run := quickTrain(t, gsrc.TrainOptions{Model: "ecl-gsr", Set: []string{"model.edges.mode=threshold", "model.edges.threshold=0.3"}})
	g := refine(t, run, gsrc.RefineOptions{})
	for _, e := range g.Edges {
		if e.Weight != 1 || e.Probability < 0.3 {
			t.Fatalf("edge %+v", e)
		}
	}
	if g.Summary.Threshold != 0.3 || *g.Summary.After.Homophily != *run.Result.HomophilyAfter {
		t.Errorf("summary %+v", g.Summary)
	}
}

// Where the truth is known the summary says how many of the removed edges are wrong, and how
// many of as many at random would be.
func TestRefineKnowsTheTruth(t *testing.T) {
	run := quickTrain(t, gsrc.TrainOptions{Model: "ecl-gsr", Set: []string{"model.edges.judge=evidence", "model.edges.threshold=0.5"}})
	s, q := refine(t, run, gsrc.RefineOptions{}).Summary, run.Result.Quality
	if s.RemovedWrong == nil || *s.RemovedWrong != *q.DroppedPrecision || *s.RemovedWrong <= *s.Wrong {
		t.Fatalf("of %d removed edges %v are wrong, of all %v; training says %v", s.Removed, s.RemovedWrong, s.Wrong, q.DroppedPrecision)
	}
	if wrong := *s.Wrong * float64(s.Before.Edges); math.Round(wrong**q.DroppedRecall) != math.Round(*s.RemovedWrong*float64(s.Removed)) {
		t.Errorf("%v edges are wrong; %v of them, and %v of the %d that were removed", wrong, *q.DroppedRecall, *s.RemovedWrong, s.Removed)
	}
}

func TestRefineExport(t *testing.T) {
	ctx := context.Background()
	dir := t.TempDir()
	dist := filepath.Join(dir, "dist")
	run := quickTrain(t, gsrc.TrainOptions{Model: "ecl-gsr", Seed: 1, Set: []string{"model.edges.judge=embedding", "model.edges.threshold=0.3"}})
	if _, err := run.Build(ctx, dist, gsrc.BuildOptions{Unverified: true}); err != nil {
		t.Fatal(err)
	}
	c := run.Trained.Config.Synthetic.CSBM(1)
	o := gsrc.RefineOptions{Data: data.Synthetic, KeepRemoved: true, Predict: gsrc.PredictOptions{Load: data.LoadOptions{Seed: 1, Synthetic: &c}}}
	g, err := gsrc.Refine(ctx, dist, o)
	if err != nil {
		t.Fatal(err)
	}
	if want := refine(t, run, gsrc.RefineOptions{KeepRemoved: true}); !reflect.DeepEqual(g, want) {
		t.Errorf("the export has %d edges, summary %+v; the run %d, %+v", len(g.Edges), g.Summary, len(want.Edges), want.Summary)
	}
	o.Threshold = threshold(0.5)
	if g, err = gsrc.Refine(ctx, dist, o); err != nil {
		t.Fatal(err)
	}
	if want := refine(t, run, gsrc.RefineOptions{KeepRemoved: true, Threshold: o.Threshold}); g.Summary.After.Edges != want.Summary.After.Edges || g.Summary.Removed != want.Summary.Removed {
		t.Errorf("at 0.5 the export has %+v, the run %+v", g.Summary, want.Summary)
	}
	o.Threshold = threshold(0.2)
	if _, err := gsrc.Refine(ctx, dist, o); err == nil || !strings.Contains(err.Error(), "refine with the run") {
		t.Errorf("below the training's threshold: %v", err)
	}
	o.Threshold = nil
	ended, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := gsrc.Refine(ended, dist, o); !errors.Is(err, context.Canceled) {
		t.Errorf("with a context that has ended: %v", err)
	}
	if _, err := gsrc.Refine(ctx, dist, gsrc.RefineOptions{}); err == nil || !strings.Contains(err.Error(), "--data") {
		t.Errorf("without data: %v", err)
	}

	// A list of edges that somebody has changed is told as such.
	path := filepath.Join(dist, "refined_edges.csv")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.SplitAfter(string(text), "\n")
	field := func(line, status string) string {
		f := strings.Split(line, ",")
		f[3] = status
		return strings.Join(f, ",")
	}
	for _, c := range []struct{ name, text, want string }{
		{"order", lines[0] + lines[2] + lines[1], ":3: the edges are not in the order"},
		{"twice", lines[0] + lines[1] + lines[1], ":3: the edges are not in the order"},
		{"node", lines[0] + "x,1,0.5,new,0.5\n", ":2: "},
		{"probability", lines[0] + "0,1,much,new,1\n", ":2: "},
		{"status", lines[0] + field(lines[1], "none"), `:2: the status is "none"`},
		{"columns", lines[0] + "0,1\n", "wrong number of fields"},
	} {
		exporttest.Rewrite(t, dist, "refined_edges.csv", c.text)
		if _, err := gsrc.Refine(ctx, dist, o); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
}

// With model.edges.same_class the graph that is written has edges between nodes of one class, by
// the predictions for the very graph; run and export write the same.
func TestRefineSameClass(t *testing.T) {
	lib := orttest.Need(t)
	ctx := context.Background()
	dir, dist := filepath.Join(t.TempDir(), "run"), filepath.Join(t.TempDir(), "dist")
	run := quickTrain(t, gsrc.TrainOptions{Model: "ecl-gsr", Seed: 1, Out: dir, Set: []string{"model.edges.judge=evidence", "model.edges.same_class=true", "model.edges.threshold=0.05"}})
	if _, err := run.Build(ctx, dist, gsrc.BuildOptions{Unverified: true}); err != nil {
		t.Fatal(err)
	}
	for _, seed := range []uint64{1, 7} { // the training graph, and another
		c := run.Trained.Config.Synthetic.CSBM(seed)
		predict := gsrc.PredictOptions{Library: &lib, Provider: ort.CPU, Load: data.LoadOptions{Seed: seed, Synthetic: &c}}
		p, err := gsrc.Predict(ctx, dist, data.Synthetic, "", predict)
		if err != nil {
			t.Fatal(err)
		}
		classes := len(p.Classes)
		o := gsrc.RefineOptions{Data: data.Synthetic, KeepRemoved: true, Predict: predict}
		var edges [][]infer.RefinedEdge
		for _, from := range []string{dist, dir, "memory"} {
			var g *gsrc.RefinedGraph
			switch {
			case from != "memory":
				g, err = gsrc.Refine(ctx, from, o)
			case seed == 1: // it refines what it was trained on
				g, err = run.Refine(gsrc.RefineOptions{KeepRemoved: true})
			default:
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			if !g.Summary.SameClass {
				t.Errorf("seed %d, %s: the summary does not say what probabilities are", seed, from)
			}
			low := 0
			for _, e := range g.Edges {
				judged := g.Evidence[len(g.Evidence)-1].Values[e.Candidate]
				same := 0.0
				for k := range classes {
					same += float64(p.Probabilities[int(e.Source)*classes+k]) * float64(p.Probabilities[int(e.Target)*classes+k])
				}
				if judged < 0.05 {
					same = 0
				}
				if !(math.Abs(same-float64(e.Probability)) <= 1e-4) {
					t.Fatalf("seed %d, %s: edge %d-%d has %v, both ends are of one class with %v", seed, from, e.Source, e.Target, e.Probability, same)
				}
				if same > 0.05 && same < float64(judged)-0.2 {
					low++
				}
			}
			if low == 0 {
				t.Errorf("seed %d, %s: classes change nothing", seed, from)
			}
			if name := g.Evidence[len(g.Evidence)-1].Source; name != graph.Judged {
				t.Errorf("the last evidence is %s", name)
			}
			if edges = append(edges, g.Edges); len(g.Edges) != len(edges[0]) {
				t.Errorf("seed %d: the export lists %d edges, %s %d", seed, len(edges[0]), from, len(g.Edges))
			}
		}
	}
}

// An export finds new edges for a graph that it was not trained on.
func TestRefineAnotherGraph(t *testing.T) {
	lib := orttest.Need(t)
	ctx := context.Background()
	dist := filepath.Join(t.TempDir(), "dist")
	run := quickTrain(t, gsrc.TrainOptions{Model: "ecl-gsr", Seed: 1})
	if _, err := run.Build(ctx, dist, gsrc.BuildOptions{Unverified: true}); err != nil {
		t.Fatal(err)
	}
	c := run.Trained.Config.Synthetic.CSBM(7)
	g, err := gsrc.Refine(ctx, dist, gsrc.RefineOptions{Data: data.Synthetic, Predict: gsrc.PredictOptions{Library: &lib, Provider: ort.CPU, Load: data.LoadOptions{Seed: 7, Synthetic: &c}}})
	if err != nil {
		t.Fatal(err)
	}
	if g.N != 120 || g.Summary.New == 0 || g.Summary.Kept+g.Summary.Removed != g.Summary.Before.Edges {
		t.Errorf("%d nodes, %+v", g.N, g.Summary)
	}
}

func TestRefineErrors(t *testing.T) {
	for _, c := range []struct {
		o    gsrc.TrainOptions
		want string
	}{
		{gsrc.TrainOptions{Model: "gcn"}, "refines nothing"},
		{gsrc.TrainOptions{Model: "ecl-gsr", Set: []string{"candidates.structure=raw"}}, "candidates.structure = raw"},
	} {
		if _, err := quickTrain(t, c.o).Refine(gsrc.RefineOptions{}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: %v, want %q", c.o, err, c.want)
		}
	}
	run := quickTrain(t, gsrc.TrainOptions{Model: "ecl-gsr"})
	for _, v := range []float64{-0.1, 1.1, math.NaN(), math.Inf(1)} {
		if _, err := run.Refine(gsrc.RefineOptions{Threshold: &v}); err == nil || !strings.Contains(err.Error(), "between 0 and 1") {
			t.Errorf("threshold %v: %v", v, err)
		}
	}
	if _, err := gsrc.Refine(context.Background(), t.TempDir(), gsrc.RefineOptions{}); err == nil || !strings.Contains(err.Error(), "no run directory") {
		t.Errorf("an empty folder: %v", err)
	}
	t.Chdir(t.TempDir())
	none := filepath.Join(t.TempDir(), "none")
	for what, do := range map[string]func(dir string) error{
		"Predict": func(dir string) error {
			_, err := gsrc.Predict(t.Context(), dir, "synthetic", "", gsrc.PredictOptions{})
			return err
		},
		"Refine": func(dir string) error { _, err := gsrc.Refine(t.Context(), dir, gsrc.RefineOptions{}); return err },
		"Embed": func(dir string) error {
			_, err := gsrc.Embed(t.Context(), dir, "synthetic", gsrc.PredictOptions{})
			return err
		},
		"OpenRun": func(dir string) error { _, err := gsrc.OpenRun(dir); return err },
		"Resume":  func(dir string) error { _, err := gsrc.Resume(t.Context(), dir, gsrc.ResumeOptions{}); return err },
		"Verify":  func(dir string) error { _, _, err := gsrc.Verify(t.Context(), dir, gsrc.VerifyOptions{}); return err },
		"OpenGraph": func(dir string) error {
			_, err := gsrc.OpenGraph(t.Context(), dir, "synthetic", gsrc.GraphOptions{})
			return err
		},
	} {
		if err := do(""); err == nil || !strings.Contains(err.Error(), "no run or export is named") {
			t.Errorf("%s of no folder: %v", what, err)
		}
		if err := do(none); err == nil || !strings.Contains(err.Error(), none+": there is no such file or folder") {
			t.Errorf("%s of a folder that is not there: %v", what, err)
		}
	}
	if _, err := gsrc.Import(t.Context(), gsrc.ImportOptions{}); err == nil || !strings.Contains(err.Error(), "no weights to import") {
		t.Errorf("an import of nothing: %v", err)
	}
}

// edgeRow is what every format must give back of an edge.
type edgeRow struct {
	Source, Target      string
	Weight, Probability float32
	Status              string
}

// readers read what Write has written, by other means.
var readers = map[string]func(t *testing.T, path string, named bool) []edgeRow{
	"csv": func(t *testing.T, path string, _ bool) (rows []edgeRow) {
		f, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		lines, err := csv.NewReader(f).ReadAll()
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(lines[0], []string{"source", "target", "weight", "probability", "status"}) {
			t.Fatalf("header %q", lines[0])
		}
		number := func(s string) float32 {
			v, err := strconv.ParseFloat(s, 32)
			if err != nil {
				t.Fatal(err)
			}
			return float32(v)
		}
		for _, l := range lines[1:] {
			rows = append(rows, edgeRow{l[0], l[1], number(l[2]), number(l[3]), l[4]})
		}
		return rows
	},
	"npz": func(t *testing.T, path string, named bool) (rows []edgeRow) {
		z, err := npz.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer z.Close()
		var source, target, n []int64
		var weight, probability []float32
		var status, ids []string
		for name, to := range map[string]any{"source": &source, "target": &target, "num_nodes": &n, "weight": &weight, "probability": &probability, "status": &status} {
			if err := z.Read(name+".npy", to); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
		if !slices.Equal(n, []int64{4}) {
			t.Errorf("num_nodes is %v", n)
		}
		if named {
			if err := z.Read("node_id.npy", &ids); err != nil {
				t.Fatal(err)
			}
		}
		// npyio leaves NumPy's strings in UTF-32, its last zeros cut off.
		utf32 := func(s string) (text string) {
			for b := range slices.Chunk([]byte(s + "\x00\x00\x00")[:(len(s)+3)/4*4], 4) {
				if r := rune(binary.LittleEndian.Uint32(b)); r != 0 {
					text += string(r)
				}
			}
			return text
		}
		id := func(v int64) string {
			if named {
				return utf32(ids[v])
			}
			return fmt.Sprint(v)
		}
		for i := range source {
			rows = append(rows, edgeRow{id(source[i]), id(target[i]), weight[i], probability[i], utf32(status[i])})
		}
		return rows
	},
	"parquet": func(t *testing.T, path string, named bool) (rows []edgeRow) {
		if named {
			return readParquet[string](t, path)
		}
		return readParquet[int64](t, path)
	},
	"json": func(t *testing.T, path string, _ bool) (rows []edgeRow) {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var g struct {
			Directed bool
			Graph    struct{ Name string }
			Nodes    []struct{ ID any }
			Edges    []struct {
				Source, Target      any
				Weight, Probability float32
				Status              string
			}
		}
		if err := json.Unmarshal(text, &g); err != nil {
			t.Fatal(err)
		}
		if g.Directed || g.Graph.Name != "small" || len(g.Nodes) != 4 {
			t.Errorf("directed %v, name %q, %d nodes", g.Directed, g.Graph.Name, len(g.Nodes))
		}
		for _, e := range g.Edges {
			rows = append(rows, edgeRow{fmt.Sprint(e.Source), fmt.Sprint(e.Target), e.Weight, e.Probability, e.Status})
		}
		return rows
	},
}

func readParquet[T any](t *testing.T, path string) (rows []edgeRow) {
	t.Helper()
	type row struct {
		Source      T       `parquet:"source"`
		Target      T       `parquet:"target"`
		Weight      float32 `parquet:"weight"`
		Probability float32 `parquet:"probability"`
		Status      string  `parquet:"status"`
	}
	read, err := parquet.ReadFile[row](path)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range read {
		rows = append(rows, edgeRow{fmt.Sprint(r.Source), fmt.Sprint(r.Target), r.Weight, r.Probability, r.Status})
	}
	return rows
}

func TestRefinedGraphFormats(t *testing.T) {
	for _, ids := range [][]string{nil, {"a", `b,"c"`, "3-x", "d e"}} {
		g := &gsrc.RefinedGraph{Name: "small", N: 4, NodeIDs: ids, Edges: []infer.RefinedEdge{
			{Source: 0, Target: 1, Weight: 0.1, Probability: 0.1, Status: "old"},
			{Source: 0, Target: 2, Probability: 1e-9, Status: "removed"},
			{Source: 1, Target: 2, Weight: 1, Probability: 1, Status: "new"}}}
		id := func(v int) string {
			if ids != nil {
				return ids[v]
			}
			return strconv.Itoa(v)
		}
		want := []edgeRow{{id(0), id(1), 0.1, 0.1, "old"}, {id(0), id(2), 0, 1e-9, "removed"}, {id(1), id(2), 1, 1, "new"}}
		for _, format := range infer.GraphFormats {
			path := filepath.Join(t.TempDir(), "g."+format)
			if err := g.WriteFile(path, ""); err != nil {
				t.Fatalf("%s: %v", format, err)
			}
			if got := readers[format](t, path, ids != nil); !slices.Equal(got, want) {
				t.Errorf("%s: %v, want %v", format, got, want)
			}
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			var b bytes.Buffer
			if err := g.Write(&b, format); err != nil || !bytes.Equal(b.Bytes(), text) {
				t.Errorf("%s: written again it is other bytes (%v)", format, err)
			}
			// A graph without edges is a graph.
			if err := (&gsrc.RefinedGraph{Name: "small", N: 4, NodeIDs: ids}).WriteFile(path, format); err != nil {
				t.Errorf("%s without edges: %v", format, err)
			} else if got := readers[format](t, path, ids != nil); len(got) != 0 {
				t.Errorf("%s without edges: %v", format, got)
			}
		}
	}
}

func TestGraphFormat(t *testing.T) {
	for path, want := range map[string]string{"a.csv": "csv", "b/c.NPZ": "npz", "x.tar.json": "json", "/dev/stdout": "csv", "/dev/fd/63": "csv"} {
		if got, err := infer.GraphFormat(path); err != nil || got != want {
			t.Errorf("%s: %q, %v", path, got, err)
		}
	}
	for path, want := range map[string]string{"a.parket": `did you mean "parquet"?`, "a.xlsx": "there are csv, npz", "a": "no extension"} {
		var wrong *infer.FormatError
		if _, err := infer.GraphFormat(path); !errors.As(err, &wrong) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", path, err, want)
		}
		if err := (&gsrc.RefinedGraph{}).WriteFile(filepath.Join(t.TempDir(), path), ""); !errors.As(err, &wrong) {
			t.Errorf("writing %s: %v", path, err)
		}
	}
}

// The encoder of an opened run gives the embedding that the training left.
func TestEmbed(t *testing.T) {
	for _, set := range [][]string{nil, {"deepwalk.width=4", "deepwalk.length=10"}, {"model.edges.judge=embedding"}, {"model.edges.judge=evidence"}} {
		out := filepath.Join(t.TempDir(), "run")
		run := quickTrain(t, gsrc.TrainOptions{Model: "ecl-gsr", Out: out, Set: set})
		opened, err := gsrc.OpenRun(out)
		if err != nil {
			t.Fatal(err)
		}
		h, width, err := opened.Embed(1)
		if err != nil {
			t.Fatal(err)
		}
		want, wantWidth, err := run.Embed(0)
		if err != nil {
			t.Fatal(err)
		}
		if width != wantWidth || len(h) != 120*width || len(h) != len(want) {
			t.Fatalf("%d numbers of width %d, want %d of %d", len(h), width, len(want), wantWidth)
		}
		for i, v := range want {
			if d := math.Abs(float64(h[i] - v)); !(d <= 1e-5) {
				t.Fatalf("%v: number %d is %v, in the training it was %v", set, i, h[i], v)
			}
		}
	}
	if h, width, err := quickTrain(t, gsrc.TrainOptions{Model: "gcn"}).Embed(1); h != nil || width != 0 || err != nil {
		t.Errorf("a model without an encoder has %d numbers, width %d, %v", len(h), width, err)
	}
}
