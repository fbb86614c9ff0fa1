package train

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/gsrc-dev/gsrc/data"
	"github.com/gsrc-dev/gsrc/data/company"
	"github.com/gsrc-dev/gsrc/graph"
	"github.com/gsrc-dev/gsrc/metrics"
	"github.com/gsrc-dev/gsrc/models"
	"github.com/gsrc-dev/gsrc/rng"
	"github.com/gsrc-dev/gsrc/runtime/kernels"
)

// A regression finds the coefficients that its rows were drawn by.
func TestRegressionFindsCoefficients(t *testing.T) {
	r := rng.New(1, "regression")
	pool := kernels.NewPool(2)
	defer pool.Close()
	uniform := func(i uint64) float64 { return float64(r.Intn(i, 1<<20)) / (1 << 20) }
	logit := func(x []float32) float64 { return 0.4 + 1.5*float64(x[0]) - 0.8*float64(x[1]) }
	edges, none := make([][]float32, 2), make([][]float32, 2)
	for i := range uint64(40_000) {
		x := []float32{float32(4*uniform(3*i) - 2), float32(4*uniform(3*i+1) - 2)}
		into := none
		if uniform(3*i+2) < 1/(1+math.Exp(-logit(x))) {
			into = edges
		}
		into[0], into[1] = append(into[0], x[0]), append(into[1], x[1])
	}
	for _, penalty := range []float64{ridge, ridgeWithProducts, ridgeOfClasses} {
		l := fitRegression(pool, edges, none, nil, 1, penalty)
		for _, x := range [][]float32{{0, 0}, {1, 0}, {0, 1}, {-1.5, 1}, {1, -1.5}} {
			if got, want := l.logits([][]float32{x[:1], x[1:]})[0], logit(x); !(math.Abs(got-want) <= 0.15) {
				t.Errorf("penalty %v: the logit at %v is %v, drawn by %v", penalty, x, got, want)
			}
		}
	}
}

// A source that differs by less than the engines' rounding would be judged by is left out.
func TestRegressionIgnoresRounding(t *testing.T) {
	pool := kernels.NewPool(1)
	defer pool.Close()
	r := rng.New(2, "regression")
	edges, none := make([][]float32, 2), make([][]float32, 2)
	constant := float32(math.Log(0.001))
	for i := range uint64(2000) {
		v := float32(r.Intn(2*i, 1000)) / 1000
		near := constant
		if i%50 == 0 {
			near += 1e-4 // an edge in 25 has it, no pair
		}
		if i%2 == 0 {
			edges[0], edges[1] = append(edges[0], v+0.5), append(edges[1], near)
		} else {
			none[0], none[1] = append(none[0], v), append(none[1], constant)
		}
	}
	for _, penalty := range []float64{ridge, ridgeWithProducts} {
		l := fitRegression(pool, edges, none, nil, 1, penalty)
		at, moved := l.logits([][]float32{{0.7}, {constant}})[0], l.logits([][]float32{{0.7}, {constant + 1e-6}})[0]
		if !(math.Abs(moved-at) <= 1e-5) {
			t.Errorf("penalty %v: the logit moves by %.2g where a source moves by its rounding", penalty, moved-at)
		}
	}
}

// Wrong edges drawn at random are less probable than real ones, and do not hold each other
// up.
func TestEvidenceFindsWrongEdges(t *testing.T) {
	ds := synthetic(t, 1)
	sets := []string{"model.edges.judge=evidence", "train.epochs=1", "train.pretrain_steps=1", "train.joint_every=0"}
	res := run(t, "ecl-gsr", ds, Options{}, sets...)
	if g := res.Trained.Params[models.EvidenceGate][0]; g != 0 {
		t.Errorf("the gate of a graph with random edges is %v", g)
	}
	var real, wrong []float32
	learned := res.Trained.Refined
	for i, e := range learned.Candidates.Edges {
		switch {
		case !learned.Candidates.Existing[i]:
		case ds.Truth.Graph.Has(e[0], e[1]):
			real = append(real, learned.Probability[i])
		default:
			wrong = append(wrong, learned.Probability[i])
		}
	}
	slices.Sort(real)
	above := 0
	for _, p := range wrong {
		i, _ := slices.BinarySearch(real, p)
		above += len(real) - i
	}
	if auc := float64(above) / float64(len(real)*len(wrong)); auc < 0.8 {
		t.Errorf("the AUC of %d wrong edges among %d is %.3f", len(wrong), len(wrong)+len(real), auc)
	}
	// Edges that an attack plants between groups of nodes of two classes do.
	attacked := *ds
	g := *ds.Truth.Graph
	g.Edges, g.Weights = slices.Clone(g.Edges), nil
	var groups [2][]int32
	for v := range int32(g.N) {
		if c := ds.Labels[v]; c < 2 {
			groups[c] = append(groups[c], v)
		}
	}
	const size = 8
	for at := 0; at+size <= min(len(groups[0]), len(groups[1]), 40); at += size {
		for _, u := range groups[0][at : at+size] {
			for _, v := range groups[1][at : at+size] {
				if u, v := min(u, v), max(u, v); !ds.Truth.Graph.Has(u, v) {
					g.Edges = append(g.Edges, [2]int32{u, v})
				}
			}
		}
	}
	slices.SortFunc(g.Edges, func(a, b [2]int32) int { return slices.Compare(a[:], b[:]) })
	g = graph.Graph{N: g.N, Edges: g.Edges}
	attacked.Graph = &g
	res = run(t, "ecl-gsr", &attacked, Options{}, sets...)
	if g := res.Trained.Params[models.EvidenceGate][0]; g == 0 {
		t.Error("the gate of an attacked graph is closed")
	}

	lookAtHalf(t, &attacked)
	res = run(t, "ecl-gsr", &attacked, Options{}, sets...)
	if g := res.Trained.Params[models.EvidenceGate][0]; g == 0 {
		t.Error("the gate of an attacked graph is closed by half of its edges")
	}
}

// lookAtHalf has evidence estimated from half of the edges, as of large graphs it is from some.
func lookAtHalf(t *testing.T, ds *data.Dataset) {
	kept, looked := mostKept, mostLooked
	t.Cleanup(func() { mostKept, mostLooked = kept, looked })
	mostKept, mostLooked = 0, len(ds.Graph.Edges)/2
}

// What is estimated from half of the edges is about that of all.
func TestEvidenceOfSomeEdges(t *testing.T) {
	ds := synthetic(t, 2, "synthetic.nodes=6000")
	var told []Event
	see := watch(func(e Event) {
		if e.Phase == "evidence" {
			told = append(told, e)
		}
	})
	edges := func() (p []float32) {
		r := run(t, "ecl-gsr", ds, Options{Observer: see}, "model.edges.judge=evidence", "train.epochs=1", "train.pretrain_steps=0", "train.joint_every=0").Trained.Refined
		for i, existing := range r.Candidates.Existing {
			if existing {
				p = append(p, r.Probability[i])
			}
		}
		return p
	}
	all := edges()
	lookAtHalf(t, ds)
	off := 0.0
	for i, p := range edges() {
		off += math.Abs(float64(p-all[i])) / float64(len(all))
	}
	if off == 0 || off > 0.03 {
		t.Errorf("probabilities of %d edges are off by %.4f on average, want a little", len(all), off)
	}
	if len(told) <= models.EvidenceRounds || told[len(told)-1].Step != told[0].Total || told[0].Total != (models.EvidenceRounds+1)*len(all) {
		t.Errorf("%d events tell of evidence, the last %+v", len(told), told[len(told)-1])
	}
	if !slices.IsSortedFunc(told, func(a, b Event) int { return a.Step - b.Step }) {
		t.Error("a step comes before an earlier one")
	}
}

// Of a large graph edges are drawn that differ, all along the list.
func TestLookedAt(t *testing.T) {
	const n = 100_000_000
	l := newLookedAt(n, 15, rng.New(3, "evidence"))
	if len(l.edges) != mostLooked || len(l.fitted) != evidenceSample {
		t.Fatalf("%d edges are looked at, and %d fitted to", len(l.edges), len(l.fitted))
	}
	for i, e := range l.edges {
		if e < i*n/mostLooked || e >= (i+1)*n/mostLooked {
			t.Fatalf("edge %d is number %d", e, i)
		}
	}
	if l := newLookedAt(mostKept/15, 15, rng.New(3, "evidence")); l.edges != nil {
		t.Error("not all edges are looked at where they may be kept")
	}
}

// dense returns a graph with many edges a node, half of all pairs within communities and a
// twentieth of others, and features that know nothing of it.
func dense(nodes, communities int) *data.Dataset {
	const features = 8
	r, draw := rng.New(2, "dense"), uint64(0)
	ds := &data.Dataset{Graph: &graph.Graph{N: nodes}, X: &data.Features{Rows: nodes, Cols: features, Dense: make([]float32, nodes*features)}}
	ds.Classes, ds.Splits = communities, []data.Split{{}}
	for u := range int32(nodes) {
		ds.Labels = append(ds.Labels, u%int32(communities))
		into := []*[]int32{&ds.Splits[0].Train, &ds.Splits[0].Val, &ds.Splits[0].Test}[u/int32(communities)%3]
		*into = append(*into, u)
	}
	for i := range ds.X.Dense {
		ds.X.Dense[i] = float32(r.Normal(uint64(100_000_000 + i)))
	}
	for u := range nodes {
		for v := u + 1; v < nodes; v++ {
			if draw++; u%communities == v%communities && r.Intn(draw, 2) == 0 || r.Intn(draw, 20) == 0 {
				ds.Graph.Edges = append(ds.Graph.Edges, [2]int32{int32(u), int32(v)})
			}
		}
	}
	return ds
}

// Where a node has many edges the spectrum tells the wrong ones, of which features know nothing.
func TestEvidenceOfDenseGraphs(t *testing.T) {
	const communities = 4
	ds := dense(240, communities)
	sets := []string{"model.edges.judge=evidence", "train.pretrain_steps=0", "train.epochs=1"}
	few := *ds
	few.Graph = &graph.Graph{N: ds.Graph.N, Edges: slices.DeleteFunc(slices.Clone(ds.Graph.Edges), func(e [2]int32) bool { return (e[0]+e[1])%8 != 0 })}
	if run(t, "ecl-gsr", &few, Options{}, sets...).Trained.Params[models.EvidenceSpectrum] != nil {
		t.Error("a graph of few edges is judged by its spectrum")
	}
	res := run(t, "ecl-gsr", ds, Options{}, sets...)
	if res.Trained.Params[models.EvidenceSpectrum] == nil {
		t.Fatal("a graph of many edges is not judged by its spectrum")
	}
	var scores []float32
	var is, rows []int32
	learned := res.Trained.Refined
	for i, e := range learned.Candidates.Edges {
		if learned.Candidates.Existing[i] {
			across := int32(1)
			if e[0]%communities == e[1]%communities {
				across = 0
			}
			rows, scores, is = append(rows, int32(len(rows))), append(scores, learned.Probability[i]), append(is, across)
		}
	}
	if auc, _ := metrics.AUC(scores, 1, is, rows); auc < 97 {
		t.Errorf("edges within communities are told from others with AUC %.1f", auc)
	}
}

// Where what describes nodes is made from the graph, a wrong edge is told from right ones, too: of its ends
// such places are alike because of the edge.
func TestEvidenceOfPlaces(t *testing.T) {
	const nodes, near = 400, 4 // each is joined to the four before and behind it
	r := rng.New(7, "places")
	ds := &data.Dataset{Graph: &graph.Graph{N: nodes}, Structural: true, Classes: 2, Splits: []data.Split{{}}}
	around := func(e [2]int32) bool { return e[1]-e[0] <= near || e[0]+nodes-e[1] <= near }
	for u := range int32(nodes) {
		ds.Labels = append(ds.Labels, u/(nodes/2))
		into := []*[]int32{&ds.Splits[0].Train, &ds.Splits[0].Val, &ds.Splits[0].Test}[u%3]
		*into = append(*into, u)
		for v := u + 1; v < nodes; v++ {
			if around([2]int32{u, v}) || r.Intn(uint64(u*nodes+v), 200) == 0 {
				ds.Graph.Edges = append(ds.Graph.Edges, [2]int32{u, v})
			}
		}
	}
	x, err := graph.Encodings(ds.Graph)
	if err != nil {
		t.Fatal(err)
	}
	ds.X = &data.Features{Rows: nodes, Cols: graph.EncodingWidth(nodes), Dense: x}
	auc := func(ds *data.Dataset) float64 {
		var scores []float32
		var wrong, rows []int32
		learned := run(t, "ecl-gsr", ds, Options{}, "model.edges.judge=evidence", "train.pretrain_steps=0", "train.joint_every=0", "train.epochs=1").Trained.Refined
		for i, e := range learned.Candidates.Edges {
			if learned.Candidates.Existing[i] {
				rows, scores, wrong = append(rows, int32(len(rows))), append(scores, learned.Probability[i]), append(wrong, 1)
				if around(e) {
					wrong[len(wrong)-1] = 0
				}
			}
		}
		auc, _ := metrics.AUC(scores, 1, wrong, rows)
		return auc
	}
	for cols, want := range map[int]int{ds.X.Cols: 512, graph.PlacesWidth + 64: 128, graph.RoleWidth: graph.RoleWidth} { // of versions before, and of roles
		described := *ds
		described.PlacesAs(cols)
		m, err := Nodes(&described).Module("ecl-gsr", configure(t, "ecl-gsr", "model.edges.judge=evidence"))
		if err != nil {
			t.Fatal(err)
		}
		if width, _ := m.Param(models.EvidenceProjection).Type.Dims[1].Size(); width != want {
			t.Errorf("evidence reads %d columns of %d, want %d", width, cols, want)
		}
	}
	given := *ds
	given.Structural = false // as if what describes nodes were not made from the edges
	if places, given := auc(ds), auc(&given); places < 98 || given > places {
		t.Errorf("wrong edges are told with AUC %.1f by places, %.1f by places that are taken for features", places, given)
	}
}

// Training labels judge edges where that is asked for, and no other labels do.
func TestLabelsJudgeEdges(t *testing.T) {
	sets := []string{"model.edges.judge=evidence", "model.edges.labels=true", "train.pretrain_steps=0", "train.joint_every=0", "train.epochs=1"}
	// Edges are within classes, which single features hardly tell, but for a tenth.
	const nodes, features, classes = 600, 30, 3
	r := rng.New(5, "labels")
	ds := &data.Dataset{Graph: &graph.Graph{N: nodes}, X: &data.Features{Rows: nodes, Cols: features}, Classes: classes, Splits: []data.Split{{}}}
	for v := range int32(nodes) {
		ds.Labels = append(ds.Labels, v%classes)
		into := []*[]int32{&ds.Splits[0].Train, &ds.Splits[0].Val, &ds.Splits[0].Test}[v/classes%3]
		*into = append(*into, v)
		for k := range uint64(features) {
			ds.X.Dense = append(ds.X.Dense, float32(0.6*r.Normal(uint64(v%classes)*features+k)+r.Normal(uint64(1000+v)*features+k)))
		}
	}
	for u := range nodes {
		for v := u + 1; v < nodes; v++ {
			if draw := r.Intn(uint64(1_000_000+u*nodes+v), 2000); u%classes == v%classes && draw < 30 || draw < 2 {
				ds.Graph.Edges = append(ds.Graph.Edges, [2]int32{int32(u), int32(v)})
			}
		}
	}
	auc := func(res *Result) float64 {
		var scores []float32
		var wrong, rows []int32
		learned := res.Trained.Refined
		for i, e := range learned.Candidates.Edges {
			if learned.Candidates.Existing[i] {
				rows, scores, wrong = append(rows, int32(len(rows))), append(scores, learned.Probability[i]), append(wrong, 1)
				if ds.Labels[e[0]] == ds.Labels[e[1]] {
					wrong[len(wrong)-1] = 0
				}
			}
		}
		auc, _ := metrics.AUC(scores, 1, wrong, rows)
		return auc
	}
	with, without := run(t, "ecl-gsr", ds, Options{}, sets...), run(t, "ecl-gsr", ds, Options{}, append(sets[:len(sets):len(sets)], "model.edges.labels=false")...)
	if !(auc(with) > auc(without)) {
		t.Errorf("wrong edges are told with AUC %.2f with labels, %.2f without", auc(with), auc(without))
	}
	noise := *ds
	noise.Labels = slices.Clone(ds.Labels)
	for i, nodes := range [][]int32{ds.Splits[0].Val, ds.Splits[0].Test} {
		for k, v := range nodes {
			noise.Labels[v] = int32(r.Intn(uint64(10_000*i+k), classes))
		}
	}
	for name, p := range run(t, "ecl-gsr", &noise, Options{}, sets...).Trained.Params {
		if strings.HasPrefix(name, "evidence.") && !slices.Equal(p, with.Trained.Params[name]) {
			t.Errorf("labels of validation and test nodes change %s", name)
		}
	}
}

// Old edges' probabilities mean what they say.
func TestEvidenceIsCalibrated(t *testing.T) {
	check := func(t *testing.T, ds *data.Dataset, wrong [][2]int32, most float64, sets ...string) {
		t.Helper()
		res := run(t, "ecl-gsr", ds, Options{}, append(sets, "model.edges.judge=evidence", "train.epochs=1", "train.pretrain_steps=0", "train.joint_every=0")...)
		if g := res.Trained.Params[models.EvidenceGate][0]; g != 0 {
			t.Errorf("the gate of a graph that nobody attacked is %v", g)
		}
		var probability []float32
		var is []bool
		learned, none := res.Trained.Refined, 0
		for i, e := range learned.Candidates.Edges {
			if learned.Candidates.Existing[i] {
				probability, is = append(probability, learned.Probability[i]), append(is, !slices.Contains(wrong, e))
				if !is[len(is)-1] {
					none++
				}
			}
		}
		if none != len(wrong) {
			t.Errorf("%d wrong edges, %d were planted", none, len(wrong))
		}
		if ece := metrics.CalibrationError(metrics.Reliability(probability, is, 10)); !(ece <= most) {
			t.Errorf("the calibration error of %d edges, %d of them wrong, is %.3f", len(is), none, ece)
		}
	}
	t.Run("cora", func(t *testing.T) {
		ds := dataset(t, "planetoid/cora")
		wrong, _, err := ds.Plant(graph.Random, 0.1, 0.1, 1)
		if err != nil {
			t.Fatal(err)
		}
		check(t, ds, wrong, 0.04)
	})
	t.Run("cora, two fifths wrong", func(t *testing.T) {
		ds := dataset(t, "planetoid/cora")
		wrong, _, err := ds.Plant(graph.Random, 0.4, 0.4, 1)
		if err != nil {
			t.Fatal(err)
		}
		check(t, ds, wrong, 0.06, "model.edges.disguised=true")
	})
	for _, kind := range []graph.Kind{graph.Degrees, graph.Similar} {
		t.Run(fmt.Sprint("cora, ", kind), func(t *testing.T) {
			ds := dataset(t, "planetoid/cora")
			wrong, _, err := ds.Plant(kind, 0.1, 0.1, 1)
			if err != nil {
				t.Fatal(err)
			}
			check(t, ds, wrong, 0.05, "model.edges.disguised=true")
		})
	}
	// Features of this table tell next to nothing: to doubt edges by them would doubt half.
	t.Run("company", func(t *testing.T) {
		dir := t.TempDir()
		if err := company.Write(dir, company.Options{Nodes: 10_000, Edges: 60_000}); err != nil {
			t.Fatal(err)
		}
		ds, err := data.Load(dir, data.LoadOptions{Tables: data.Tables{Label: "churned"}, Split: "random:0.6,0.2,0.2"})
		if err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(filepath.Join(dir, "wrong.csv"))
		if err != nil {
			t.Fatal(err)
		}
		var wrong [][2]int32
		for _, line := range strings.Fields(string(text))[1:] {
			var u, v int32
			if _, err := fmt.Sscanf(line, "C%d,C%d", &u, &v); err != nil {
				t.Fatal(err)
			}
			wrong = append(wrong, [2]int32{min(u, v), max(u, v)})
		}
		check(t, ds, wrong, 0.05)
	})
}

// Graphs with too little to tell edges from, no edge, one, or no pair that is none, doubt
// no edge and add none that is not; none stops a run.
func TestEvidenceOfSmallestGraphs(t *testing.T) {
	every := func(n int) (edges [][2]int32) {
		for u := range int32(n) {
			for v := u + 1; v < int32(n); v++ {
				edges = append(edges, [2]int32{u, v})
			}
		}
		return edges
	}
	for name, c := range map[string]struct {
		nodes int
		edges [][2]int32
	}{
		"no edge":            {4, nil},
		"one edge, no other": {2, every(2)},
		"one edge":           {4, [][2]int32{{0, 1}}},
		"every edge":         {5, every(5)},
		"all but one":        {3, [][2]int32{{0, 1}, {1, 2}}},
	} {
		ds := *synthetic(t, 1)
		ds.Truth = nil
		ds.X, ds.Labels = &data.Features{Rows: c.nodes, Cols: 3, Dense: []float32{1, 0, 0, 0, 1, 0, 0, 0, 1, 1, 1, 0, 0, 1, 1}[:3*c.nodes]}, make([]int32, c.nodes)
		for v := range ds.Labels {
			ds.Labels[v] = int32(v % 2)
		}
		ds.Graph = &graph.Graph{N: c.nodes, Edges: c.edges}
		ds.Splits, ds.SplitSpec = []data.Split{{Train: []int32{0}, Val: []int32{1}}}, nil
		res := run(t, "ecl-gsr", &ds, Options{}, "model.edges.judge=evidence", "train.epochs=1", "train.pretrain_steps=1")
		for i, p := range res.Trained.Refined.Probability {
			if !(p >= 0 && p <= 1) {
				t.Errorf("%s: the probability of pair %v is %v", name, res.Trained.Refined.Candidates.Edges[i], p)
			}
		}
	}
}

// Where candidates are near by the evidence or two steps away, which edges there are, and
// how likely, does not depend on what is trained.
func TestEvidenceKnowsNoTraining(t *testing.T) {
	ds := synthetic(t, 1)
	sets := []string{"model.edges.judge=evidence", "candidates.similarity=evidence", "candidates.two_step=3", "candidates.mutual=false"}
	none := run(t, "ecl-gsr", ds, Options{}, append(sets, "train.epochs=1", "train.pretrain_steps=0", "train.joint_every=0")...).Trained.Refined
	some := run(t, "ecl-gsr", ds, Options{}, append(sets, "train.epochs=3", "train.pretrain_steps=5", "train.joint_every=1")...).Trained.Refined
	if !slices.Equal(none.Candidates.Edges, some.Candidates.Edges) || !slices.Equal(none.Probability, some.Probability) {
		t.Errorf("%d candidates of no training, %d of some, or other probabilities", len(none.Candidates.Edges), len(some.Candidates.Edges))
	}
	if n := len(none.Candidates.Edges); n <= len(ds.Graph.Edges) {
		t.Errorf("%d candidates of %d edges", n, len(ds.Graph.Edges))
	}
}

func BenchmarkEvidence(b *testing.B) {
	ds := dataset(b, "planetoid/cora")
	cfg := configure(b, "ecl-gsr", "model.edges.judge=evidence", "candidates.similarity=evidence", "candidates.two_step=10", "model.classifier=linear", "train.epochs=1", "train.pretrain_steps=0", "train.joint_every=0")
	for b.Loop() {
		if _, err := Train(context.Background(), Job{Model: "ecl-gsr", Task: Nodes(ds)}, cfg, Options{}); err != nil {
			b.Fatal(err)
		}
	}
}

// Runs that give up what they computed as soon as nothing reads it, or make it again when it is its
// turn, end as those that keep it, and go on as those after an interruption.
func TestGivenBack(t *testing.T) {
	ds := synthetic(t, 1)
	defer func(n int) { large = n }(large)
	for _, sets := range [][]string{
		{"train.joint_every=2", "train.refresh_every=2", "candidates.similarity=evidence", "model.encoder.hidden=400", "train.self_training=1", "train.self_trained=4"},
		{"train.joint_every=0"},
		{"train.joint_every=0", "candidates.similarity=embedding"},
		{"train.joint_every=2", "train.refresh_every=2", "candidates.similarity=embedding+evidence", "candidates.mutual=true"},
	} {
		t.Run(strings.Join(sets, ","), func(t *testing.T) {
			sets = append(sets, "model.edges.judge=evidence", "candidates.two_step=5", "train.pretrain_steps=3", "train.epochs=6", "train.checkpoint_every=2")
			cfg := configure(t, "ecl-gsr", sets...)
			tr := started(t, Job{Model: "ecl-gsr", Task: Nodes(ds)}, cfg, Options{})
			f, _ := forecastOf(t, tr)
			tr.close()
			limits := []int64{0, 0}
			if cfg.Train.JointEvery > 0 && !searchesAgain(cfg) {
				limits = append(limits, int64(f.Peak-1)) // too little for all functions at once
			}
			var want map[string]string
			for i, memory := range limits {
				if large = 1 << 40; i == 1 {
					large = 0
				}
				for _, after := range []int{0, 7} {
					dir := filepath.Join(t.TempDir(), "run")
					if after > 0 {
						ctx, cancel := context.WithCancel(t.Context())
						_, err := Train(ctx, Job{Model: "ecl-gsr", Task: Nodes(ds)}, configure(t, "ecl-gsr", sets...), Options{Dir: dir, Observer: &stopAfter{after, cancel}, Memory: memory})
						if !errors.Is(err, ErrInterrupted) {
							t.Fatal(err)
						}
					}
					run(t, "ecl-gsr", ds, Options{Dir: dir, Resume: after > 0, Memory: memory}, sets...)
					if got := contents(t, dir); want == nil {
						want = got
					} else {
						sameRuns(t, got, want)
					}
				}
			}
		})
	}
}

// Edges that look like pairs of a kind are counted once: not again as those of another kind with the
// same evidence, nor as those of one that is found where a first estimate is loose.
func TestShareOfNone(t *testing.T) {
	draw := func(n int, mean float64, name string) []float64 {
		x, s := make([]float64, n), rng.New(1, name)
		for i := range x {
			x[i] = mean + s.Normal(uint64(i))
		}
		return x
	}
	none := draw(10_000, -2, "none")
	edges := append(draw(9000, 4, "real"), draw(1000, -2, "wrong")...)
	for _, c := range []struct {
		name     string
		counted  []wrongLogits
		from, to float64
	}{
		{"nothing before", nil, 0.1, 0.12},
		{"the same pairs before", []wrongLogits{{0.1, none}}, 0, 0},
		{"half of them before", []wrongLogits{{0.05, none}}, 0.03, 0.06},
		{"others before", []wrongLogits{{0.04, draw(10_000, 4, "others")}}, 0.085, 0.11},
	} {
		if share := shareOfNone(edges, none, quantiles, c.counted...); share < c.from || share > c.to {
			t.Errorf("%s: a share of %.4f, want %v to %v", c.name, share, c.from, c.to)
		}
	}
}

// Runs that share what evidence was fitted to end as those that fit it do: with another classifier,
// and, since it is another fit, with another seed, graph or sources.
func TestFittedEvidenceIsShared(t *testing.T) {
	ds := synthetic(t, 1)
	other := *ds
	g := *ds.Graph
	g.Edges = g.Edges[1:]
	other.Graph = &g
	var shared FittedEvidence
	for _, c := range []struct {
		ds   *data.Dataset
		fits int
		sets []string
	}{
		{ds, 1, nil},
		{ds, 1, []string{"model.classifier=sage", "model.hidden=8"}},
		{ds, 2, []string{"train.seed=3"}},
		{&other, 3, nil},
		{ds, 4, []string{"model.edges.disguised=false"}},
		{ds, 4, nil},
	} {
		sets := append([]string{"model.edges.judge=evidence", "train.epochs=3", "train.pretrain_steps=0", "train.joint_every=0"}, c.sets...)
		got := run(t, "ecl-gsr", c.ds, Options{Evidence: &shared}, sets...)
		want := run(t, "ecl-gsr", c.ds, Options{}, sets...)
		if !reflect.DeepEqual(got.Trained.Params, want.Trained.Params) || !slices.Equal(got.Trained.Refined.Probability, want.Trained.Refined.Probability) {
			t.Errorf("%v: a shared fit ends in other weights or edges", c.sets)
		}
		fits := 0
		shared.params.Range(func(any, any) bool { fits++; return true })
		if fits != c.fits {
			t.Errorf("%v: %d fits are kept, want %d", c.sets, fits, c.fits)
		}
	}
}
