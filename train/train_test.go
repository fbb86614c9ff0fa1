package train

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/gsrc-dev/gsrc/config"
	"github.com/gsrc-dev/gsrc/data"
	"github.com/gsrc-dev/gsrc/graph"
	"github.com/gsrc-dev/gsrc/ir"
	"github.com/gsrc-dev/gsrc/metrics"
	"github.com/gsrc-dev/gsrc/runtime"
	"github.com/gsrc-dev/gsrc/runtime/gorgonia"
	"github.com/gsrc-dev/gsrc/runtime/kernels"
	"github.com/gsrc-dev/gsrc/train/checkpoint"
)

// Kipf and Welling report 81.5 on Cora's public split; implementations that keep
// the best validation epoch land between 81.0 and 82.5.
func TestGCNOnCora(t *testing.T) {
	ds := dataset(t, "planetoid/cora")
	var runs []*Result
	for seed := range 3 {
		cfg, err := config.Load("gcn", "cora", "", []string{fmt.Sprintf("train.seed=%d", seed)})
		if err != nil {
			t.Fatal(err)
		}
		res, err := Train(context.Background(), Job{Model: "gcn", Task: Nodes(ds)}, cfg, Options{})
		if err != nil {
			t.Fatal(err)
		}
		runs = append(runs, res)
	}
	if s := Summarize(runs); *s.TestAccMean < 81.0 || *s.TestAccMean > 82.5 {
		t.Errorf("test accuracy %.2f ± %.2f, want 81.0 to 82.5", *s.TestAccMean, *s.TestAccStd)
	}
	if r := runs[0]; r.EdgesBefore != 5278 || r.EdgesAfter != nil || r.Split != "public" || r.Data != "cora" || !(math.Abs(*r.HomophilyBefore-0.81) <= 0.001) {
		t.Errorf("result %+v", r)
	}
}

// Every model learns a small graph, on which guessing gives a third.
func TestModelsLearn(t *testing.T) {
	ds := synthetic(t, 1)
	for _, c := range []struct {
		model   string
		sets    []string
		least   float64
		refines bool
	}{
		{"mlp", nil, 45, false},
		{"gcn", nil, 55, false},
		{"linear", nil, 45, false},
		{"linear", []string{"model.linear.steps=4"}, 55, false},
		{"linear", []string{"model.smooth.alpha=0.8", "model.smooth.correct=0.5"}, 55, false},
		{"mlp", []string{"model.smooth.alpha=0.8"}, 55, false},
		{"ecl-gsr", []string{"model.smooth.alpha=0.5"}, 55, true},
		{"label-propagation", nil, 45, false},
		{"ecl-gsr", nil, 55, true},
		{"ecl-gsr", []string{"candidates.structure=raw"}, 55, false},
		{"ecl-gsr", []string{"model.classifier=propagation", "model.propagation.order=3"}, 55, true},
		{"ecl-gsr", []string{"deepwalk.width=6", "model.views.blur=0.05", "model.edges.mode=threshold", "candidates.mutual=true"}, 50, true},
		{"ecl-gsr", []string{"train.sampler=edges", "train.batch_edges=20", "train.fanout=5", "deepwalk.width=4"}, 50, true},
		{"ecl-gsr", []string{"model.ecl.alpha=0", "train.joint_every=0", "train.eval_every=7", "train.anchors=0"}, 50, true},
		{"ecl-gsr", []string{"train.pretrain_steps=0", "train.joint_every=1", "train.refresh_every=1", "train.epochs=12"}, 40, true},
	} {
		res := run(t, c.model, ds, Options{}, append([]string{"train.epochs=60", "train.lr=0.02"}, c.sets...)...)
		if *res.TestAcc < c.least {
			t.Errorf("%s %v: test accuracy %.1f, want at least %v", c.model, c.sets, *res.TestAcc, c.least)
		}
		if (res.EdgesAfter != nil) != c.refines || (res.HomophilyAfter != nil) != c.refines || (res.Quality != nil) != c.refines {
			t.Errorf("%s %v: says %v about the refined graph", c.model, c.sets, res)
		}
		tr := res.Trained
		if len(tr.Probabilities) != ds.Graph.N*ds.Classes || len(tr.Params) != len(tr.Module.Params) || (tr.Embedding != nil) != c.refines {
			t.Errorf("%s %v: the trained model is incomplete", c.model, c.sets)
		}
	}
}

// One seed gives one result: for any number of threads, and for both executors.
func TestDeterminism(t *testing.T) {
	ds := synthetic(t, 2)
	for _, c := range []struct {
		model string
		sets  []string
	}{
		{"ecl-gsr", nil}, {"ecl-gsr", []string{"train.sampler=edges", "deepwalk.width=4"}},
		{"lds", []string{"train.joint_every=1", "train.pretrain_steps=0", "train.refresh_every=0", "candidates.k=8", "model.lds.restart=6"}},
	} {
		sets := c.sets
		want := run(t, c.model, ds, Options{}, append([]string{"train.threads=1"}, sets...)...)
		for name, got := range map[string]*Result{
			"3 threads":   run(t, c.model, ds, Options{}, append([]string{"train.threads=3"}, sets...)...),
			"TapeMachine": run(t, c.model, ds, Options{NewExecutor: gorgonia.NewTapeExecutor}, append([]string{"train.threads=2"}, sets...)...),
		} {
			if !reflect.DeepEqual(got.Trained.Params, want.Trained.Params) || !reflect.DeepEqual(got.Trained.Refined, want.Trained.Refined) ||
				!reflect.DeepEqual(got.Trained.Logits, want.Trained.Logits) || got.ValAcc != want.ValAcc {
				t.Errorf("%s, %s: the result is another one", c.model, name)
			}
		}
	}
	other := run(t, "ecl-gsr", ds, Options{}, "train.seed=1")
	if reflect.DeepEqual(other.Trained.Params, run(t, "ecl-gsr", ds, Options{}).Trained.Params) {
		t.Error("another seed gives the same parameters")
	}
}

func TestPatience(t *testing.T) {
	ds := synthetic(t, 1)
	full := run(t, "gcn", ds, Options{}, "train.epochs=300", "train.lr=0.1")
	dir := t.TempDir()
	res := run(t, "gcn", ds, Options{Dir: dir}, "train.epochs=300", "train.lr=0.1", "train.patience=5")
	lines := strings.Count(contents(t, dir)[checkpoint.MetricsFile], "\n") + 1
	if lines != res.BestEpoch+5 || lines == 300 {
		t.Errorf("stopped after epoch %d, the best was %d and patience 5", lines, res.BestEpoch)
	}
	if full.ValAcc < res.ValAcc {
		t.Errorf("the whole run kept %.1f, less than the stopped one's %.1f", full.ValAcc, res.ValAcc)
	}
}

// The kept epoch is the best by what train.select says, and the result's reports
// are those of that epoch.
func TestSelect(t *testing.T) {
	ds := synthetic(t, 1)
	for by, value := range map[string]func(r *checkpoint.Record) float64{
		"accuracy": func(r *checkpoint.Record) float64 { return *r.ValAcc },
		"macro_f1": func(r *checkpoint.Record) float64 { return *r.ValSelected },
		"auc":      func(r *checkpoint.Record) float64 { return *r.ValSelected },
		"loss":     func(r *checkpoint.Record) float64 { return -*r.ValLoss },
	} {
		dir := t.TempDir()
		res := run(t, "gcn", ds, Options{Dir: dir}, "train.epochs=40", "train.lr=0.1", "train.select="+by)
		records, err := checkpoint.ReadMetrics(dir)
		if err != nil {
			t.Fatal(err)
		}
		kept := records[res.BestEpoch-1]
		for _, r := range records {
			if value(&r) > value(&kept) {
				t.Errorf("%s: epoch %d has %v, the kept epoch %d has %v", by, r.Epoch, value(&r), kept.Epoch, value(&kept))
			}
		}
		split, err := ds.SplitFor(0)
		if err != nil {
			t.Fatal(err)
		}
		if res.Val.Nodes != len(split.Val) || res.Test.Nodes != len(split.Test) || res.Val.Accuracy != res.ValAcc || res.Test.Accuracy != *res.TestAcc {
			t.Errorf("%s: the reports %+v and %+v do not fit %+v", by, res.Val, res.Test, res)
		}
		if d := res.Val.NLL - *kept.ValLoss; !(math.Abs(d) <= 1e-5) {
			t.Errorf("%s: the validation loss is %v, the report says %v", by, *kept.ValLoss, res.Val.NLL)
		}
		want := map[string]float64{"macro_f1": res.Val.MacroF1, "auc": *res.Val.AUC}
		if w, ok := want[by]; ok && value(&kept) != w {
			t.Errorf("%s: selected by %v, the report says %v", by, value(&kept), w)
		}
	}
	var one []int32
	for v, c := range ds.Labels {
		if c == 0 {
			one = append(one, int32(v))
		}
	}
	task := Job{Model: "gcn", Task: Nodes(ds), Split: &data.Split{Train: one[:2], Val: one[2:5]}}
	if _, err := Train(context.Background(), task, configure(t, "gcn", "train.select=auc"), Options{}); err == nil || !strings.Contains(err.Error(), "train.select") {
		t.Errorf("AUC of one class: error %v", err)
	}
}

// Balanced weights count every class alike; where the classes have as many nodes
// each, that is the plain cross-entropy.
func TestClassWeights(t *testing.T) {
	want := []float32{0, 0.125, 0, 0, 0.125, 0, 0.5, 0, 0, 0, 0.125, 0, 0, 0.125, 0}
	if got := targets([]int64{1, 1, 0, 1, 1}, 3, "balanced"); !reflect.DeepEqual(got, want) {
		t.Errorf("targets %v, want %v", got, want)
	}
	ds := *synthetic(t, 1)
	loss := func(model, weights string) float64 {
		dir := t.TempDir()
		run(t, model, &ds, Options{Dir: dir}, "train.epochs=3", "train.pretrain_steps=1", "train.joint_every=3", "model.class_weights="+weights)
		records, err := checkpoint.ReadMetrics(dir)
		if err != nil {
			t.Fatal(err)
		}
		return float64(records[len(records)-1].Terms["loss"])
	}
	for _, model := range []string{"gcn", "grand", "ecl-gsr"} {
		ds.SplitSpec = &data.SplitSpec{PerClass: true, Train: 5, Val: 30, Test: 30}
		if plain, weighted := loss(model, "none"), loss(model, "balanced"); !(math.Abs(plain-weighted) <= 1e-4*math.Abs(plain)) {
			t.Errorf("%s: with as many nodes of each class the loss is %v, balanced %v", model, plain, weighted)
		}
		split, err := ds.SplitFor(0)
		if err != nil {
			t.Fatal(err)
		}
		var few []int32 // all of class 0, one of each other class
		seen := map[int32]bool{0: false}
		for _, v := range split.Train {
			if c := ds.Labels[v]; c == 0 || !seen[c] {
				few, seen[c] = append(few, v), true
			}
		}
		ds.SplitSpec, ds.Splits = nil, []data.Split{{Train: few, Val: split.Val, Test: split.Test}}
		if plain, weighted := loss(model, "none"), loss(model, "balanced"); math.Abs(plain-weighted) < 1e-3*math.Abs(plain) {
			t.Errorf("%s: with more nodes of one class the loss is %v, and %v balanced as well", model, plain, weighted)
		}
	}
}

// Both learning rates halve by epochs; contrastive steps come before the first.
func TestLearningRateHalves(t *testing.T) {
	dir := t.TempDir()
	run(t, "ecl-gsr", synthetic(t, 1), Options{Dir: dir}, "train.epochs=9", "train.halve_lr_every=3", "train.joint_every=2", "train.lr=0.08", "train.encoder_lr=0.004")
	records, err := checkpoint.ReadMetrics(dir)
	if err != nil {
		t.Fatal(err)
	}
	encoder := 0
	for _, r := range records {
		part := 1.0
		if r.Epoch > 0 {
			part = []float64{1, 0.5, 0.25}[(r.Epoch-1)/3]
		}
		if lr, ok := r.LR["classifier"]; ok && lr != 0.08*part {
			t.Errorf("epoch %d has the rate %v, want %v", r.Epoch, lr, 0.08*part)
		}
		if lr, ok := r.LR["encoder"]; ok {
			encoder++
			if lr != 0.004*part {
				t.Errorf("epoch %d has the encoder's rate %v, want %v", r.Epoch, lr, 0.004*part)
			}
		}
	}
	if encoder < 5 {
		t.Errorf("the encoder made %d steps that are told", encoder)
	}
}

// A hand-written module is trained by the functions that it has.
func TestHandWrittenModule(t *testing.T) {
	ds := synthetic(t, 1)
	text := func(train string) string {
		return `module @mine
param $w: f32[40,3] {group="classifier", init="glorot"}
param $b: f32[3] {group="classifier", init="ones"}
func @` + train + `(%x: f32[N,40], %train_idx: i64[T], %labels: i64[T]) -> (loss: f32[]) {differentiate="loss"} {
  %h = gnn.linear %x, $w, $b : f32[N,3]
  %g = gather %h, %train_idx : f32[T,3]
  %l = cross_entropy %g, %labels : f32[]
  return %l
}
func @classify(%x: f32[N,40]) -> (logits: f32[N,3], probabilities: f32[N,3]) {
  %h = gnn.linear %x, $w, $b : f32[N,3]
  %p = softmax %h : f32[N,3]
  return %h, %p
}
`
	}
	m, err := ir.Parse("mine.gsr", text("train"))
	if err != nil {
		t.Fatal(err)
	}
	res, err := Train(context.Background(), Job{Module: m, Task: Nodes(ds)}, configure(t, "mine", "train.epochs=80"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	if *res.TestAcc < 45 || res.Model != "mine" {
		t.Errorf("result %+v", res)
	}
	if m, err = ir.Parse("mine.gsr", text("learn")); err != nil {
		t.Fatal(err)
	}
	_, err = Train(context.Background(), Job{Module: m, Task: Nodes(ds)}, configure(t, "mine"), Options{})
	if err == nil || !strings.Contains(err.Error(), "it has @learn, @classify") {
		t.Errorf("error %v, want one that lists the functions", err)
	}
}

func TestAnchors(t *testing.T) {
	anchors := func(n, count int) *anchorSampler {
		a, err := newAnchorSampler(runtime.NewCPU(nil), 7, n, count)
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	a, b := anchors(100, 30), anchors(100, 30)
	for _, step := range []uint64{5, 3, 5, 0} {
		a.draw(step)
	}
	first := append([]int64(nil), a.out.I64...)
	b.draw(0)
	if !reflect.DeepEqual(first, b.out.I64) {
		t.Error("a draw depends on the ones before it")
	}
	seen := map[int64]bool{}
	for i, v := range first {
		if v < 0 || v >= 100 || seen[v] || i > 0 && v < first[i-1] {
			t.Fatalf("anchors %v are not different nodes in ascending order", first)
		}
		seen[v] = true
	}
	counts := make([]int, 100)
	for step := range uint64(2000) {
		a.draw(step)
		for _, v := range a.out.I64 {
			counts[v]++
		}
	}
	for v, n := range counts { // expectation 600, deviation √(2000·0.3·0.7) = 20
		if n < 500 || n > 700 {
			t.Errorf("node %d was drawn %d times of 2000, want about 600", v, n)
		}
	}
	if n := testing.AllocsPerRun(10, func() { a.draw(3) }); n != 0 {
		t.Errorf("a draw allocates %v times", n)
	}
	if all := anchors(5, 0); !reflect.DeepEqual(all.out.I64, []int64{0, 1, 2, 3, 4}) {
		t.Errorf("all anchors are %v", all.out.I64)
	}
}

// The edge file has every edge of the raw and of the refined graph, each with
// its status, by the data set's ids.
func TestRefinedEdges(t *testing.T) {
	ds := &data.Dataset{NodeIDs: []string{"a", "b", "c", "d,1"}}
	r := &graph.Refined{
		Candidates:  &graph.Candidates{N: 4, Edges: [][2]int32{{0, 1}, {0, 2}, {1, 2}, {2, 3}}, Existing: []bool{true, false, true, false}},
		Probability: []float32{0.75, 0.625, 0.25, 0.375}, Mode: "expected", Threshold: 0.5,
	}
	var b bytes.Buffer
	if err := ds.WriteRefined(&b, r); err != nil {
		t.Fatal(err)
	}
	if want := "source,target,probability,status\na,b,0.75,old\na,c,0.625,new\nb,c,0.25,removed\n"; b.String() != want {
		t.Errorf("wrote\n%swant\n%s", b.String(), want)
	}
	if g := r.Graph(); !reflect.DeepEqual(g.Edges, [][2]int32{{0, 1}, {0, 2}}) || !reflect.DeepEqual(g.Weights, []float32{0.75, 0.625}) {
		t.Errorf("refined graph %+v", g)
	}
	r.Mode, r.Threshold = "threshold", 0.3
	if g := r.Graph(); len(g.Edges) != 3 || g.Weights != nil || r.Status(3) != graph.StatusNew {
		t.Errorf("refined graph %+v", g)
	}
	if want := []float32{1, 1, 0, 1}; !reflect.DeepEqual(r.Weights(), want) {
		t.Errorf("weights %v, want %v", r.Weights(), want)
	}
}

// The records of a run are read as they were written, one for every epoch.
func TestReadMetrics(t *testing.T) {
	dir := t.TempDir()
	res := run(t, "gcn", synthetic(t, 1), Options{Dir: dir}, "train.epochs=4")
	records, err := checkpoint.ReadMetrics(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(records) != 4 {
		t.Fatalf("%d records, want 4", len(records))
	}
	for i, r := range records {
		if r.Epoch != i+1 || r.Function != "train" || r.ValAcc == nil || r.Terms["loss"] <= 0 {
			t.Errorf("record %d: %+v", i, r)
		}
	}
	if got := *records[res.BestEpoch-1].ValAcc; got != res.ValAcc {
		t.Errorf("at the kept epoch the validation accuracy is %v, the result says %v", got, res.ValAcc)
	}
	if _, err := checkpoint.ReadMetrics(t.TempDir()); err == nil {
		t.Error("a folder without metrics has some")
	}
	if _, err := Verify(dir); err != nil {
		t.Error(err)
	}
	path := filepath.Join(dir, checkpoint.MetricsFile)
	text, err := os.ReadFile(path)
	if err := errors.Join(err, os.WriteFile(path, append(text, `{"epoch":5}`...), 0o644)); err != nil {
		t.Fatal(err)
	}
	if _, err := Verify(dir); err == nil || !strings.Contains(err.Error(), "line 5 was added after the run had ended") {
		t.Errorf("a line behind the last one: %v", err)
	}
}

func TestResultJSON(t *testing.T) {
	ds := synthetic(t, 1)
	a, b := run(t, "gcn", ds, Options{}), run(t, "ecl-gsr", ds, Options{})
	for _, c := range []struct {
		v    any
		want string
	}{
		{a, `{"model":"gcn","data":"synthetic","seed":0,"split":"random:0.2,0.3,0.5","test_acc":`},
		{a, `"edges_after":null`}, {a, `"homophily_after":null`}, {b, `"dropped_precision":`}, {b, `"recovered_recall":0.`}, {b, `"best_epoch":`},
		{Summarize([]*Result{a, b}), `{"summary":true,"runs":2,"test_acc_mean":`},
	} {
		text, err := json.Marshal(c.v)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(text), c.want) {
			t.Errorf("%s\nlacks %s", text, c.want)
		}
	}
	x, y := 80.0, 82.0
	judged := []*Result{{TestAcc: &x, ValAcc: 70, Val: &metrics.Report{}}, {TestAcc: &y, ValAcc: 72, Val: &metrics.Report{}}}
	s := Summarize(judged)
	if *s.TestAccMean != 81 || !(math.Abs(*s.TestAccStd-math.Sqrt2) <= 1e-12) || *s.ValAccMean != 71 {
		t.Errorf("summary %v ± %v, %v", *s.TestAccMean, *s.TestAccStd, *s.ValAccMean)
	}
	if s := Summarize(append(judged, &Result{})); s.ValAccMean != nil {
		t.Error("a run without labels has a validation accuracy")
	}
	if s := Summarize([]*Result{{TestAcc: &x}, {}}); s.TestAccMean != nil {
		t.Error("a run without test nodes has a test accuracy")
	}
}

// Graphs at the edge of what there can be train, or are refused with a reason.
func TestDegenerateGraphs(t *testing.T) {
	make := func(n int, edges ...[2]int32) *data.Dataset {
		x := &data.Features{Rows: n, Cols: 2}
		labels := []int32{}
		for i := range n {
			x.Dense = append(x.Dense, float32(i%2), 1)
			labels = append(labels, int32(i%2))
		}
		ds := &data.Dataset{Name: "tiny", Graph: &graph.Graph{N: n, Edges: edges}, X: x, Labels: labels, Classes: 2}
		ds.Splits = []data.Split{{Train: []int32{0}}}
		if n > 1 {
			ds.Splits[0].Val = []int32{int32(n - 1)}
		}
		return ds
	}
	one := make(1)
	for _, c := range []struct {
		name, model string
		ds          *data.Dataset
		want        string // of the error, or empty
		sets        []string
	}{
		{"no nodes", "gcn", make(0), "no nodes", nil},
		{"one node", "gcn", one, "no validation nodes", nil},
		{"no edges", "gcn", make(6), "", nil},
		{"no edges", "mlp", make(6), "", nil},
		{"no edges", "ecl-gsr", make(6), "", []string{"deepwalk.width=3"}},
		{"no edges, no neighbours", "ecl-gsr", make(6), "", []string{"candidates.k=0"}},
		{"no edges, edge sampler", "ecl-gsr", make(6), "the graph has none", []string{"train.sampler=edges"}},
		{"one edge", "ecl-gsr", make(2, [2]int32{0, 1}), "", nil},
		{"one edge, edge sampler", "ecl-gsr", make(6, [2]int32{0, 1}), "", []string{"train.sampler=edges"}},
	} {
		res, err := Train(context.Background(), Job{Model: c.model, Task: Nodes(c.ds)}, configure(t, c.model, c.sets...), Options{})
		switch {
		case c.want == "" && err != nil:
			t.Errorf("%s, %s: %v", c.model, c.name, err)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%s, %s: error %v, want one with %q", c.model, c.name, err, c.want)
		case err == nil && res.TestAcc != nil:
			t.Errorf("%s, %s: a test accuracy without test nodes", c.model, c.name)
		}
	}
}

func TestBadTasks(t *testing.T) {
	ds := synthetic(t, 1)
	noVal := *ds
	noVal.SplitSpec, noVal.Splits = nil, []data.Split{{Train: []int32{0}}}
	wild := data.Split{Train: []int32{0}, Val: []int32{int32(ds.Graph.N)}}
	for want, task := range map[string]Job{
		"there is no task":           {Model: "gcn"},
		`no model "gnc"`:             {Model: "gnc", Task: Nodes(ds)},
		"no validation nodes":        {Model: "gcn", Task: Nodes(&noVal)},
		"which is not a labelled no": {Model: "gcn", Task: Nodes(ds), Split: &wild},
	} {
		if _, err := Train(context.Background(), task, configure(t, "gcn"), Options{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one with %q", err, want)
		}
	}
	if _, err := Train(context.Background(), Job{Model: "gcn", Task: Nodes(ds)}, nil, Options{}); err == nil {
		t.Error("a task without a configuration was accepted")
	}
}

// A loss that diverges stops the run with what happened and what to try.
func TestNonFinite(t *testing.T) {
	ds := synthetic(t, 1)
	for _, c := range []struct {
		model, phase string
		sets         []string
		terms        []string
	}{
		{"gcn", "train", []string{"train.lr=1e30"}, []string{"loss", "logit", "gradient"}},
		{"ecl-gsr", "pretrain", []string{"model.ecl.tau=1e-38"}, []string{"disc", "reg", "gen"}},
		{"ecl-gsr", "fit", []string{"train.lr=1e30"}, []string{"xent", "consistency", "logit", "gradient"}},
	} {
		dir := t.TempDir()
		_, err := Train(context.Background(), Job{Model: c.model, Task: Nodes(ds)}, configure(t, c.model, c.sets...), Options{Dir: dir})
		var nf *NonFiniteError
		if !errors.As(err, &nf) {
			t.Errorf("%s %v: error %v, want a NonFiniteError", c.model, c.sets, err)
			continue
		}
		known := false
		for _, term := range c.terms {
			known = known || strings.Contains(nf.Term, term)
		}
		if nf.Phase != c.phase || !known || nf.Advice == "" || !strings.Contains(err.Error(), dir) || strings.Contains(err.Error(), "is 0") {
			t.Errorf("%s %v: error %v", c.model, c.sets, err)
		}
		// The checkpoint that stays is finite.
		tr := started(t, Job{Model: c.model, Task: Nodes(ds)}, configure(t, c.model, c.sets...), Options{Dir: dir, Resume: true})
		for step, lower := range []bool{false, true} { // the learning rate has done nothing yet, or may have
			if text := tr.nonFinite(&function{}, step, "loss").Error(); strings.Contains(text, "lower train.lr") != lower {
				t.Error(text)
			}
		}
		if err := tr.open(); err != nil {
			t.Error(err)
		}
		for _, p := range tr.optim.Params {
			if !kernels.Finite(p.Value.F32) {
				t.Errorf("%s %v: the checkpoint has a non-finite $%s", c.model, c.sets, p.Name)
			}
		}
		tr.close()
	}
}
