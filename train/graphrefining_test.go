package train

import (
	"bytes"
	"context"
	"math"
	"path/filepath"
	"reflect"
	goruntime "runtime"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	"github.com/gsrc-dev/gsrc/data"
	"github.com/gsrc-dev/gsrc/graph"
)

// Candidates join nodes of one graph; those that are new lie within the interval of new
// edges, the others within theirs; and what is below the threshold is no edge.
func TestGraphsRefined(t *testing.T) {
	c := shapes(t, 70)
	dir := filepath.Join(t.TempDir(), "run")
	res := trainGraphs(t, "ecl-gsr", Options{Dir: dir}, "model.edges.threshold=0.05", "model.edges.old_lo=0.8", "model.edges.new_hi=0.1")
	r := res.Trained.Refined
	if r == nil || r.Raw || r.Candidates.N != c.Nodes() || r.Lo >= r.Hi {
		t.Fatalf("refined: %+v", r)
	}
	fresh := 0
	for i, e := range r.Candidates.Edges {
		if c.GraphOf(e[0]) != c.GraphOf(e[1]) {
			t.Fatalf("candidate %v joins two graphs", e)
		}
		g := c.Graphs[c.GraphOf(e[0])]
		base := c.Offset[c.GraphOf(e[0])]
		if r.Candidates.Existing[i] != g.Has(e[0]-base, e[1]-base) {
			t.Fatalf("candidate %v exists: %v", e, r.Candidates.Existing[i])
		}
		lo, hi := float32(0.01), float32(0.1)
		if r.Candidates.Existing[i] {
			lo, hi = 0.8, 0.99
		} else {
			fresh++
		}
		if p := r.Probability[i]; p < lo-1e-6 || p > hi+1e-6 {
			t.Fatalf("candidate %v has the probability %g", e, p)
		}
	}
	existing := len(r.Candidates.Edges) - fresh
	if existing != c.NumEdges() || fresh == 0 {
		t.Errorf("%d existing and %d new candidates of %d edges", existing, fresh, c.NumEdges())
	}
	if n := r.Graph().NumEdges(); *res.EdgesAfter != n || n >= len(r.Candidates.Edges) || n <= c.NumEdges() {
		t.Errorf("%d refined edges, %d told", n, *res.EdgesAfter)
	}
	if res.HomophilyAfter != nil || res.Quality != nil {
		t.Error("homophily of nodes without labels")
	}
	var b bytes.Buffer
	if err := c.WriteRefined(&b, r); err != nil {
		t.Fatal(err)
	}
	if lines := strings.Split(b.String(), "\n"); lines[0] != "graph,source,target,probability,status" || !strings.HasPrefix(lines[1], "0,0,1,") {
		t.Errorf("refined_edges.csv begins with %q", lines[:2])
	}
	if text := contents(t, dir)["refined_edges.csv"]; !slices.Equal([]byte(text), b.Bytes()) {
		t.Error("the run directory has another refined_edges.csv")
	}
}

// What a graph's edges become does not depend on graphs that are not trained on, nor on
// what else is in the collection behind it.
func TestProbabilitiesAreInductive(t *testing.T) {
	c := shapes(t, 70)
	refine := func(c *data.Collection, split data.Split) (*graph.Refined, map[string][]float32) {
		res, err := Train(context.Background(), Job{Model: "ecl-gsr", Task: Graphs(c), Split: &split}, graphConfig(t, "ecl-gsr"), Options{})
		if err != nil {
			t.Fatal(err)
		}
		return res.Trained.Refined, res.Trained.Params
	}
	split := data.Split{}
	for g := range int32(40) {
		split.Train = append(split.Train, g)
	}
	split.Val = []int32{40, 41, 42, 43}
	whole, params := refine(c, split)
	part := *c
	part.Graphs, part.Labels, part.Offset = c.Graphs[:50], c.Labels[:50], c.Offset[:51]
	n := int(part.Offset[50])
	part.X = &data.Features{Rows: n, Cols: c.X.Cols, Dense: c.X.Dense[:n*c.X.Cols]}
	less, again := refine(&part, split)
	if !reflect.DeepEqual(params, again) || whole.Lo != less.Lo || whole.Hi != less.Hi {
		t.Error("graphs that are not trained on change what is learned")
	}
	if m := len(less.Candidates.Edges); !slices.Equal(whole.Candidates.Edges[:m], less.Candidates.Edges) || !slices.Equal(whole.Probability[:m], less.Probability) {
		t.Error("other graphs change a graph's edges")
	}
}

// On the raw graphs nothing is learned of edges.
func TestGraphsRaw(t *testing.T) {
	res := trainGraphs(t, "ecl-gsr", Options{}, "candidates.structure=raw", "candidates.keep=0.9", "train.epochs=25")
	r := res.Trained.Refined
	if r == nil || !r.Raw || res.EdgesAfter != nil || *res.TestAcc < 99 {
		t.Fatalf("test accuracy %v, %v edges", *res.TestAcc, res.EdgesAfter)
	}
	for _, p := range r.Probability {
		if p != 0.9 {
			t.Fatalf("an edge is kept with the probability %g", p)
		}
	}
}

// Graphs without edges, and collections of nothing else, are refined too.
func TestRefiningLoneNodes(t *testing.T) {
	for _, k := range []string{"0", "2"} {
		for _, edges := range []bool{false, true} {
			c := shapes(t, 40)
			for g, one := range c.Graphs {
				if !edges || g%3 == 0 {
					c.Graphs[g] = &graph.Graph{N: one.N}
				}
			}
			res, err := Train(context.Background(), Job{Model: "ecl-gsr", Task: Graphs(c)}, graphConfig(t, "ecl-gsr", "candidates.k="+k, "train.epochs=4"), Options{})
			if err != nil {
				t.Fatalf("k = %s, edges %v: %v", k, edges, err)
			}
			if n := len(res.Trained.Refined.Candidates.Edges); (n == 0) != (k == "0" && !edges) {
				t.Errorf("k = %s, edges %v: %d candidates", k, edges, n)
			}
			for _, p := range res.Trained.Probabilities {
				if math.IsNaN(float64(p)) {
					t.Fatal("a probability is NaN")
				}
			}
		}
	}
}

// Once the largest batches were seen, an epoch of the classifier allocates nothing, nor
// does one with the encoder and the refreshed probabilities behind it.
func TestGraphRefiningAllocatesNothing(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	for _, every := range []string{"0", "1"} {
		tr := started(t, Job{Model: "ecl-gsr", Task: Graphs(shapes(t, 70))}, graphConfig(t, "ecl-gsr", "train.joint_every="+every, "train.refresh_every=0"), Options{})
		p := algorithm1{tr, tr.steps.(refiner)}
		epoch := 0
		step := func() {
			if _, _, err := p.epoch(epoch); err != nil {
				t.Fatal(err)
			}
			epoch++
		}
		for range 20 {
			step()
		}
		if n := allocations(10, step); n > 10 { // the stream's name is hashed once an epoch
			t.Errorf("joint_every = %s: 10 epochs allocate %d times", every, n)
		}
		tr.close()
	}
}

func TestGraphRefiningErrors(t *testing.T) {
	for _, test := range []struct{ set, want string }{
		{"deepwalk.width=4", "structural attributes belong to one graph"},
		{"model.edges.judge=evidence", "evidence judges the edges of one graph"},
		{"train.batch_graphs=1", "must be two at least"},
		{"model.classifier=propagation", "take one of gcn, mlp, gat, sage, gin"},
	} {
		_, err := Train(context.Background(), Job{Model: "ecl-gsr", Task: Graphs(shapes(t, 40))}, graphConfig(t, "ecl-gsr", test.set), Options{})
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: error %v, want %q", test.set, err, test.want)
		}
	}
}

// Class weights make a rare class count as much as a frequent one, in models of graphs
// too; the mean weight of the training graphs is 1.
func TestClassWeightsOfGraphs(t *testing.T) {
	c := shapes(t, 70)
	for g := range c.Labels {
		c.Labels[g] = int32(g % 5 / 4) // one in five
	}
	tr := started(t, Job{Model: "gin", Task: Graphs(c)}, graphConfig(t, "gin", "model.class_weights=balanced"), Options{})
	defer tr.close()
	p := tr.steps.(*graphSteps)
	sum := [2]float64{}
	for _, g := range tr.split.Train {
		sum[c.Labels[g]] += p.batch.share[c.Labels[g]]
	}
	half := float64(len(tr.split.Train)) / 2
	if !(math.Abs(sum[0]-half) <= 1e-9) || !(math.Abs(sum[1]-half) <= 1e-9) {
		t.Errorf("the classes count %v, want %v each", sum, half)
	}
	if err := p.batch.join(tr.split.Train[:4], false); err != nil {
		t.Fatal(err)
	}
	for i, label := range p.batch.b.Labels {
		row := p.batch.targets.F32[2*i : 2*i+2]
		if row[1-label] != 0 || !(math.Abs(float64(row[label])-p.batch.share[label]/4) <= 1e-6) {
			t.Errorf("graph of class %d has the targets %v", label, row)
		}
	}
	for _, model := range []string{"gin", "ecl-gsr"} {
		cfg := graphConfig(t, model, "model.class_weights=balanced")
		if _, err := Train(context.Background(), Job{Model: model, Task: Graphs(c)}, cfg, Options{}); err != nil {
			t.Errorf("%s: %v", model, err)
		}
	}
}

// Graphs without a class, which stand in batches that are predicted and in forecasts of memory,
// weigh nothing where classes have weights.
func TestClassWeightsWhereGraphsHaveNoClass(t *testing.T) {
	c := shapes(t, 70)
	for g := 0; g < len(c.Labels); g += 3 {
		c.Labels[g] = -1
	}
	for _, model := range []string{"gin", "ecl-gsr"} {
		cfg := graphConfig(t, model, "model.class_weights=balanced")
		res, err := Train(context.Background(), Job{Model: model, Task: Graphs(c)}, cfg, Options{})
		if err != nil {
			t.Fatalf("%s: %v", model, err)
		}
		if !(*res.TestAcc > 50) {
			t.Errorf("%s: test accuracy %.1f", model, *res.TestAcc)
		}
		tr := started(t, Job{Model: model, Task: Graphs(c)}, cfg, Options{})
		if f, _ := forecastOf(t, tr); f.Peak <= 0 {
			t.Errorf("%s: the forecast is %d bytes", model, f.Peak)
		}
		b := newGraphBatch(c, []float64{1, 2})
		if err := b.join([]int32{0, 1, 2}, false); err != nil {
			t.Fatal(err)
		}
		if got := b.targets.F32; !slices.Equal(got, []float32{0, 0, 0, float32(2. / 3), float32(1. / 3), 0}) {
			t.Errorf("targets %v", got)
		}
		tr.close()
	}
}

// The forecast of the memory that training on batches of graphs takes is not below what
// its steps are found to hold, nor far above: batches' sizes are those of the largest.
func TestGraphForecastHolds(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	for _, model := range []string{"gin", "ecl-gsr"} {
		c := shapes(t, 300)
		cfg := graphConfig(t, model, "model.hidden=64", "train.batch_graphs=150", "train.epochs=4", "train.pretrain_steps=4", "train.joint_every=3", "model.encoder.hidden=64", "model.encoder.projection=32")
		before := heap()
		tr := started(t, Job{Model: model, Task: Graphs(c)}, cfg, Options{})
		f, own := forecastOf(t, tr)
		run, err := tr.procedure()
		if err == nil {
			err = run()
		}
		if err != nil {
			t.Fatal(err)
		}
		held := heap() - before + own
		tr.close()
		t.Logf("%s: predicted %.2f MiB in phase %s, held %.2f\n%s", model, mib(f.Peak), f.Phase, mib(held), f.Table())
		if f.Peak < held || 100*f.Peak > 130*held {
			t.Errorf("%s: %d bytes are predicted, %d are held", model, f.Peak, held)
		}
		goruntime.KeepAlive(tr)
	}
}
