package run

import (
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gsrc-dev/gsrc/graph"
	"github.com/gsrc-dev/gsrc/infer"
	"github.com/gsrc-dev/gsrc/internal/orttest"
	"github.com/gsrc-dev/gsrc/rng"
	"github.com/gsrc-dev/gsrc/runtime/ort"
)

// plantedTable writes nodes in three communities that noisy features hardly tell apart, and
// edges, two in seven of which are planted between communities. weight gives an edge's weight,
// and nil writes none; more edges follow the others.
func plantedTable(t *testing.T, weight func(planted bool, i int) float64, more ...string) string {
	t.Helper()
	const n = 150
	s := rng.New(3, "table")
	at := uint64(0)
	draw := func(k int) int { at++; return s.Intn(at, k) }
	nodes, edges := "id,label,split,a,b,c,d\n", "source,target"
	if weight != nil {
		edges += ",weight"
	}
	centre := [3][4]int{{9, 0, 4, 0}, {0, 9, 0, 4}, {4, 4, 9, 9}}
	var class [n]int
	for v := range n {
		class[v] = draw(3)
		nodes += fmt.Sprintf("n%d,%s,%s", v, [...]string{"x", "y", "z"}[class[v]], [...]string{"train", "val", "test", "test"}[v%4])
		for _, m := range centre[class[v]] {
			nodes += fmt.Sprintf(",%d.5", 10*m+draw(200))
		}
		nodes += "\n"
	}
	seen := map[[2]int]bool{}
	for i := 0; i < 5*n/2; {
		planted := i%7 < 2
		u, v := draw(n), draw(n)
		if u >= v || seen[[2]int{u, v}] || (class[u] == class[v]) == planted {
			continue
		}
		seen[[2]int{u, v}] = true
		edges += fmt.Sprintf("\nn%d,n%d", u, v)
		if weight != nil {
			edges += fmt.Sprintf(",%g", weight(planted, i))
		}
		i++
	}
	dir := t.TempDir()
	for name, text := range map[string]string{"nodes.csv": nodes, "edges.csv": strings.Join(append([]string{edges}, more...), "\n") + "\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// telling weights are low of planted edges.
func telling(planted bool, i int) float64 {
	if planted {
		return 0.25 + float64(i%5)/8
	}
	return 4 + float64(i%9)/2
}

var judges = map[string][]string{
	"evidence":  {"model.edges.judge=evidence"},
	"embedding": {"model.edges.judge=embedding", "candidates.similarity=embedding"},
}

// Weights that tell wrong edges make ecl-gsr better, and equal ones are none.
func TestRefiningCountsEdgeWeights(t *testing.T) {
	equal := func(bool, int) float64 { return 3.7 }
	for _, judge := range []string{"evidence", "embedding"} {
		set := append(judges[judge], "train.epochs=30", "train.pretrain_steps=10")
		none, told := trainOn(t, "ecl-gsr", plantedTable(t, nil), set...), trainOn(t, "ecl-gsr", plantedTable(t, telling), set...)
		for name, r := range map[string]*Run{"equal": trainOn(t, "ecl-gsr", plantedTable(t, equal), set...), "ignored": trainOn(t, "ecl-gsr", plantedTable(t, telling), append(set, "data.weights=ignore")...)} {
			if !slices.Equal(r.Trained.Logits, none.Trained.Logits) || !slices.Equal(r.Trained.Embedding, none.Trained.Embedding) {
				t.Errorf("%s: %s weights change the run", judge, name)
			}
		}
		scaled := trainOn(t, "ecl-gsr", plantedTable(t, func(planted bool, i int) float64 { return telling(planted, i) * 1024 }), set...)
		if !slices.Equal(scaled.Trained.Logits, told.Trained.Logits) {
			t.Errorf("%s: the unit of weights changes the run", judge)
		}
		if before, after := *none.Result.TestAcc, *told.Result.TestAcc; after <= before {
			t.Errorf("%s: weights that tell wrong edges: test accuracy %.1f, without %.1f", judge, after, before)
		}
		if before, after := *none.Result.HomophilyAfter, *told.Result.HomophilyAfter; after < before+0.05 {
			t.Errorf("%s: weights that tell wrong edges: homophily %.3f, without %.3f", judge, after, before)
		}
	}
}

func alike(t *testing.T, what string, got, want []float32) {
	t.Helper()
	if len(got) != len(want) || len(want) == 0 {
		t.Fatalf("%s: %d probabilities, want %d", what, len(got), len(want))
	}
	for i, w := range want {
		if d := got[i] - w; !(d <= 1e-4 && d >= -1e-4) {
			t.Fatalf("%s: probability %d is %v, want %v", what, i, got[i], w)
		}
	}
}

// noneApartFromWeights is how many of the removed edges are none by their probabilities without what they count.
func noneApartFromWeights(g *infer.RefinedGraph, logs bool) float64 {
	unit, none, removed := unitOf(g, logs), 0.0, 0.0
	for _, e := range g.Edges {
		if e.Status == "removed" {
			none, removed = none+1-float64(e.Probability)/min(1, weightOf(e, logs)/unit), removed+1
		}
	}
	return none / removed
}

func weightOf(e infer.RefinedEdge, logs bool) float64 {
	if logs {
		return math.Log1p(float64(e.DataWeight))
	}
	return float64(e.DataWeight)
}

// unitOf is the mean weight of the data's edges.
func unitOf(g *infer.RefinedGraph, logs bool) float64 {
	unit, old := 0.0, 0.0
	for _, e := range g.Edges {
		if e.Status != "new" {
			unit, old = unit+weightOf(e, logs), old+1
		}
	}
	return unit / old
}

// An export refines by weights as the training did: on the training graph, on the same graph
// read from other files, and served, where an update brings an edge with its weight.
func TestExportRefinesByEdgeWeights(t *testing.T) {
	lib := orttest.Need(t)
	const one, two = "n0,n1,0.5", "n5,n17,6"
	before, after := plantedTable(t, telling), plantedTable(t, telling, one, two)
	o := infer.PredictOptions{Library: &lib, Provider: ort.CPU}
	predict := func(dist, data string) []float32 {
		t.Helper()
		p, err := infer.Predict(t.Context(), dist, data, "", o)
		if err != nil {
			t.Fatal(err)
		}
		return p.Probabilities
	}
	judges := maps.Clone(judges)
	judges["raw"] = []string{"candidates.structure=raw", "candidates.keep=0.9"}
	judges["evidence"] = append(judges["evidence"], "model.encoder.kind=sage", "data.weights=log1p")
	for judge, set := range judges {
		t.Run(judge, func(t *testing.T) {
			r := trainOn(t, "ecl-gsr", after, append(set, "train.pretrain_steps=3", "train.joint_every=0", "model.encoder.hidden=16", "model.encoder.projection=16")...)
			dist := filepath.Join(t.TempDir(), "dist")
			if _, err := r.Build(t.Context(), dist, BuildOptions{Library: &lib, Uncalibrated: true, Symmetrize: judge == "embedding"}); err != nil {
				t.Fatal(err)
			}
			probabilities := predict(dist, after)
			alike(t, "on the training graph", probabilities, r.Trained.Probabilities)
			other := plantedTable(t, telling, one, two)
			file, err := os.OpenFile(filepath.Join(other, "nodes.csv"), os.O_APPEND|os.O_WRONLY, 0)
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprintln(file) // so that it is another file
			file.Close()
			alike(t, "refined anew", predict(dist, other), probabilities)

			if judge != "raw" {
				o := infer.RefineOptions{Ranked: true, Data: other, Predict: o, Threshold: new(0.5)}
				byExport, err := infer.Refine(t.Context(), dist, o)
				if err != nil {
					t.Fatal(err)
				}
				o.Data = ""
				byRun, err := r.Refine(o)
				if err != nil {
					t.Fatal(err)
				}
				for _, g := range []*infer.RefinedGraph{byExport, byRun} {
					i := slices.IndexFunc(g.Edges, func(e infer.RefinedEdge) bool { return e.Source == 5 && e.Target == 17 })
					if i < 0 || g.Edges[i].DataWeight != 6 {
						t.Errorf("an edge that weighs 6 in the data: %+v", g.Edges[max(i, 0)])
					}
					ranked := math.Inf(-1) // of the kept edges, which are last
					for _, e := range g.Edges {
						own := g.Evidence[len(g.Evidence)-1]
						p := float64(own.Values[e.Candidate])
						if c := min(1, weightOf(e, judge == "evidence")/unitOf(g, judge == "evidence")); own.Source != graph.Judged || e.Status != graph.StatusNew && math.Abs(p*c-float64(e.Probability)) > 1e-4 {
							t.Fatalf("by %s an edge is one with %v, counts %v and has %v", own.Source, p, c, e.Probability)
						}
						if e.Status == graph.StatusOld {
							if p < ranked {
								t.Fatalf("an edge of %v is behind one of %v", p, ranked)
							}
							ranked = p
						}
					}
					if got, want := g.Summary.RemovedPrecision, noneApartFromWeights(g, judge == "evidence"); got == nil || math.Abs(*got-want) > 1e-4 {
						t.Errorf("of the removed edges %v are none, want %v", got, want)
					}
				}
			}
			g, err := infer.OpenGraph(t.Context(), dist, before, infer.GraphOptions{PredictOptions: o})
			if err != nil {
				t.Fatal(err)
			}
			defer g.Close()
			served := func(u infer.Update) []float32 {
				t.Helper()
				if _, err := g.Update(t.Context(), u); err != nil {
					t.Fatal(err)
				}
				all := make([]int, g.Snapshot().Numbers())
				for v := range all {
					all[v] = v
				}
				_, got, err := g.Snapshot().Answer(all)
				if err != nil {
					t.Fatal(err)
				}
				return got
			}
			got := served(infer.Update{Sources: []string{"n0", "n5"}, Targets: []string{"n1", "n17"}, Weights: []float32{0.5, 6}})
			alike(t, "after an update", got, predict(dist, after))
			got = served(infer.Update{Sources: []string{"n0"}, Targets: []string{"n1"}, Weights: []float32{9}, DeleteSources: []string{"n0"}, DeleteTargets: []string{"n1"}})
			alike(t, "after another weight", got, predict(dist, plantedTable(t, telling, "n0,n1,9", two)))
			for want, u := range map[string]infer.Update{
				"1 weights for 2":                      {Sources: []string{"n0", "n5"}, Targets: []string{"n1", "n17"}, Weights: []float32{1}},
				"is -1; weights are numbers from 0":    {Sources: []string{"n0"}, Targets: []string{"n1"}, Weights: []float32{-1}},
				"is 2e+29; weights are numbers from 0": {Sources: []string{"n0"}, Targets: []string{"n1"}, Weights: []float32{2e29}},
			} {
				if _, err := g.Update(t.Context(), u); err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("an update with %v: %v, want %q", u.Weights, err, want)
				}
			}
		})
	}
}

// A run counts the edges of other graphs by their weights as its export does, and is refused where parts of
// graphs lie on several machines.
func TestRunsCountEdgeWeights(t *testing.T) {
	lib := orttest.Need(t)
	o := infer.PredictOptions{Library: &lib, Provider: ort.CPU}
	at := plantedTable(t, telling)
	other := plantedTable(t, telling, "") // the same edges, in another file
	for judge, set := range map[string][]string{"evidence": {"data.weights=log1p"}, "raw": {"candidates.structure=raw", "candidates.keep=0.9"}} {
		dir, dist := filepath.Join(t.TempDir(), "run"), filepath.Join(t.TempDir(), "dist")
		if _, err := Train(t.Context(), TrainOptions{Model: "ecl-gsr", Data: at, Out: dir, Set: append(set, "data.prepare=false", "train.epochs=3", "train.pretrain_steps=3", "train.joint_every=0", "model.encoder.hidden=16", "model.encoder.projection=16")}); err != nil {
			t.Fatal(err)
		}
		r, err := Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := r.Deploy(); err == nil || !strings.Contains(err.Error(), "weights of edges") {
			t.Errorf("%s: in parts: %v", judge, err)
		}
		if _, err := r.Build(t.Context(), dist, BuildOptions{Library: &lib, Uncalibrated: true}); err != nil {
			t.Fatal(err)
		}
		for _, graph := range []string{at, other} {
			near := func(what string, of func(dir string) ([]float32, error)) {
				t.Helper()
				got, err := of(dir)
				want, failed := of(dist)
				if err != nil || failed != nil || len(got) != len(want) {
					t.Fatalf("%s %s: %d and %d numbers, %v, %v", judge, what, len(got), len(want), err, failed)
				}
				for i, w := range want {
					if d := got[i] - w; !(d <= 1e-5 && d >= -1e-5) {
						t.Fatalf("%s %s: number %d is %v, by the export %v", judge, what, i, got[i], w)
					}
				}
			}
			near("predict", func(dir string) ([]float32, error) {
				p, err := Predict(t.Context(), dir, graph, "", o)
				if err != nil {
					return nil, err
				}
				return p.Probabilities, nil
			})
			if judge == "raw" {
				continue
			}
			near("embed", func(dir string) ([]float32, error) {
				e, err := Embed(t.Context(), dir, graph, o)
				if err != nil {
					return nil, err
				}
				return e.Values, nil
			})
			near("refine", func(dir string) (list []float32, err error) {
				g, err := Refine(t.Context(), dir, infer.RefineOptions{Data: graph, Predict: o, Streamed: true})
				if err != nil {
					return nil, err
				}
				for _, e := range g.Edges {
					list = append(list, e.Probability, e.DataWeight)
				}
				return list, nil
			})
		}
	}
}
