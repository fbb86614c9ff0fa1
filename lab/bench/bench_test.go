package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gsrc-dev/gsrc/models"
)

func TestLowerBound(t *testing.T) {
	// The figures of the hand count: Cora with 512 samples about 6 GFLOP, with
	// X^s of 128 columns about 4, all nodes about 30.
	cora := StepSize{Nodes: 2708, Struct: 1433, Width: 128, Layers: 3, Anchors: 512, Steps: 3}
	narrow, full := cora, cora
	narrow.Struct, full.Anchors = 128, 2708
	for _, c := range []struct {
		size        StepSize
		gflop, exps float64
	}{{cora, 5.96, 7 * 512 * 512}, {narrow, 4.15, 7 * 512 * 512}, {full, 29.84, 7 * 2708 * 2708}} {
		w := LowerBound(c.size)
		if !(math.Abs(w.Flops/1e9-c.gflop) <= 0.01) || w.Exps != c.exps {
			t.Errorf("%+v: %.3f GFLOP and %.0f exponentials, want %.2f and %.0f", c.size, w.Flops/1e9, w.Exps, c.gflop, c.exps)
		}
	}
	// 10 GFLOP at 100 GFLOP/s and 2·10⁷ exponentials at 2·10⁹ a second.
	if got := (Work{Flops: 1e10, Exps: 2e7}).Milliseconds(&Roofline{MatMul: 100, Exp: 2}); got != 110 {
		t.Errorf("%v ms, want 110", got)
	}
}

func TestSelect(t *testing.T) {
	cases := []Case{{Name: "step/ecl/cora/512"}, {Name: "step/ecl/cora/full"}, {Name: "kernel/exp/512x512"}, {Name: "kernel/exponent"}, {Name: "scale/1M", Heavy: true}}
	for _, c := range []struct{ patterns, want string }{
		{"", "step/ecl/cora/512 step/ecl/cora/full kernel/exp/512x512 kernel/exponent"},
		{"step", "step/ecl/cora/512 step/ecl/cora/full"},
		{"kernel/exp", "kernel/exp/512x512"},
		{"*/full, scale/*", "step/ecl/cora/full scale/1M"},
	} {
		got, err := Select(cases, c.patterns)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, g := range got {
			names = append(names, g.Name)
		}
		if s := strings.Join(names, " "); s != c.want {
			t.Errorf("%q selects %s, want %s", c.patterns, s, c.want)
		}
	}
	if _, err := Select(cases, "kernel/expo"); err == nil || !strings.Contains(err.Error(), `"kernel/expo"`) {
		t.Errorf("a pattern that fits nothing gives the error %v", err)
	}
}

func TestCaseNamesAreUnique(t *testing.T) {
	seen := map[string]bool{}
	for _, c := range Cases() {
		if seen[c.Name] || c.Doc == "" {
			t.Errorf("%s stands twice, or says nothing of itself", c.Name)
		}
		seen[c.Name] = true
	}
	for _, name := range []string{"step/ecl/cora/512", "step/ecl/cora/full", "step/ecl/citeseer/512", "step/recipe/cora/pretrain", "epochs/gcn/cora", "scale/1M", "batch/sage/arxiv"} {
		if !seen[name] {
			t.Errorf("there is no case %s", name)
		}
	}
}

func TestGeneratedWorkload(t *testing.T) {
	for _, w := range []Workload{*FindWorkload("cora"), *FindWorkload("10k")} {
		ds, err := w.Load("")
		if err != nil {
			t.Fatal(err)
		}
		if err := ds.Check(); err != nil {
			t.Fatal(err)
		}
		if err := ds.Graph.Validate(); err != nil {
			t.Fatal(err)
		}
		near := func(what string, got, want int) {
			if float64(got) < 0.95*float64(want) || got > want {
				t.Errorf("%s: %d %s, want at most %d and hardly fewer", w.Name, got, what, want)
			}
		}
		near("nodes", ds.Graph.N, w.Nodes)
		near("edges", ds.Graph.NumEdges(), w.Edges)
		if nnz := ds.X.NNZ(); float64(nnz) < 0.9*float64(w.Stored) || nnz > w.Stored {
			t.Errorf("%s: %d features are stored, want about %d", w.Name, nnz, w.Stored)
		}
		again, err := w.Load("")
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(ds, again) {
			t.Errorf("%s is another graph the second time", w.Name)
		}
	}
}

// tiny is a workload that a test can step through.
var tiny = Workload{Name: "tiny", Nodes: 60, Edges: 150, Features: 30, Stored: 300, Classes: 3}

func TestRunStepAndReport(t *testing.T) {
	ds, err := tiny.Generate()
	if err != nil {
		t.Fatal(err)
	}
	e := &env{Options: Options{Rounds: 3, Threads: 2}, ds: ds}
	r, err := stepCase{data: "tiny", model: "ecl-gsr", fn: "pretrain", anchors: 16, width: -1}.run(e)
	if err != nil {
		t.Fatal(err)
	}
	if !(r.MinMS > 0 && r.MinMS <= r.MS && r.MS <= r.MaxMS) || r.Rounds != 3 {
		t.Errorf("median %v of %v to %v in %d rounds", r.MS, r.MinMS, r.MaxMS, r.Rounds)
	}
	if r.PlannedMiB <= 0 || r.Least == nil || *r.Least != LowerBound(StepSize{60, 30, 128, 3, 16, 3}) {
		t.Errorf("planned %v MiB, least work %v", r.PlannedMiB, r.Least)
	}
	of := 0.0
	var kinds []string
	for _, p := range r.Parts {
		of += p.OfStep
		kinds = append(kinds, p.Op)
	}
	if !(math.Abs(of-1) <= 1e-9) {
		t.Errorf("the parts are %v of the step, want 1", of)
	}
	for _, k := range []string{"matmul", "pairwise_reduce", "spmm", "adam"} {
		if !slices.Contains(kinds, k) {
			t.Errorf("the parts lack %s: %v", k, kinds)
		}
	}

	// A child process sends its result as JSON; the parent holds it against the
	// limits that only it has measured.
	text, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	var got Result
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	l := &Roofline{MatMul: 100, Exp: 1, Bandwidth: []Bandwidth{{1, 50}}}
	got.judge(l)
	if want := got.MS / r.Least.Milliseconds(l); !(math.Abs(got.OverLeast-want) <= 1e-9) {
		t.Errorf("%v times the least work, want %v", got.OverLeast, want)
	}
	for _, p := range got.Parts {
		if p.Op == "matmul" && !(p.GFlops > 0 && math.Abs(p.Share-p.GFlops/100) < 1e-3*p.Share) && p.GBs == 0 {
			t.Errorf("matmul has %v GFLOP/s, share %v of 100", p.GFlops, p.Share)
		}
	}

	got.Name = "step/tiny"
	report := &Report{Limits: l, Results: []Result{got}}
	for _, f := range []Format{Text, Markdown} {
		var b bytes.Buffer
		if err := report.Write(&b, f, true); err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{"step/tiny", "matmul ×", "GFLOP/s", "least work"} {
			if !strings.Contains(b.String(), want) {
				t.Errorf("the table lacks %q:\n%s", want, &b)
			}
		}
	}
}

// The recipe's functions need candidate edges, labels and what else training binds.
func TestRecipeSteps(t *testing.T) {
	ds, err := tiny.Generate()
	if err != nil {
		t.Fatal(err)
	}
	for _, fn := range []string{"pretrain", "joint", "fit"} {
		s := stepCase{data: "cora", model: "ecl-gsr", fn: fn, recipe: true}
		if _, err := s.run(&env{Options: Options{Rounds: 1, Threads: 1}, ds: ds}); err != nil {
			t.Errorf("@%s: %v", fn, err)
		}
	}
}

// A graph that is larger by a factor has as many nodes, edges and features more, so
// that times can be compared.
func TestScaleWorkloads(t *testing.T) {
	var last Workload
	for _, name := range []string{"10k", "100k", "1M"} {
		w := *FindWorkload(name)
		if w.Edges != 5*w.Nodes || w.Features != 128 || w.Path != "" {
			t.Errorf("%s: %+v, want average degree 10 and 128 features, always generated", name, w)
		}
		if last.Nodes > 0 && (w.Nodes != 10*last.Nodes || w.Stored != 10*last.Stored) {
			t.Errorf("%s is not ten times the one before", name)
		}
		last = w
	}
	if w := *FindWorkload("arxiv"); w.Nodes != 169_343 || w.Edges != 1_166_243 || w.Features != 128 || w.Path != "" {
		t.Errorf("arxiv: %+v", w)
	}
	full := tiny
	full.Stored = full.Nodes * full.Features
	whole, err := full.Generate()
	if err != nil {
		t.Fatal(err)
	}
	if whole.X.IsSparse() || len(whole.X.Dense) != full.Stored || slices.Contains(whole.X.Dense, 0) {
		t.Error("features of which all are stored are not dense")
	}
	ds, err := tiny.Generate()
	if err != nil {
		t.Fatal(err)
	}
	j := slices.IndexFunc(Cases(), func(c Case) bool { return c.Name == "scale/arxiv" })
	if _, err := Cases()[j].run(&env{Options: Options{Rounds: 1, Threads: 1}, ds: whole}); err != nil || !Cases()[j].Heavy {
		t.Errorf("scale/arxiv on dense features: %v", err)
	}
	i := slices.IndexFunc(Cases(), func(c Case) bool { return c.Name == "scale/10k" })
	r, err := Cases()[i].run(&env{Options: Options{Rounds: 1, Threads: 1}, ds: ds})
	if err != nil {
		t.Fatal(err)
	}
	if want := r.MS * 1e6 / float64(60+ds.Graph.NumEdges()); r.PerSizeNS != want || r.Least != nil {
		t.Errorf("%v ns a node and edge, want %v", r.PerSizeNS, want)
	}
}

func TestSessionStepsRepeat(t *testing.T) {
	ds, err := tiny.Generate()
	if err != nil {
		t.Fatal(err)
	}
	loss := func(threads int) (l []float64) {
		s, err := NewSession(Job{Data: ds, Model: "ecl-gsr", Options: PaperOptions(8), Anchors: 20, Threads: threads})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		for range 4 {
			loss, err := s.Step("pretrain")
			if err != nil {
				t.Fatal(err)
			}
			l = append(l, loss)
		}
		return l
	}
	one := loss(1)
	if two := loss(2); !slices.Equal(one, two) {
		t.Errorf("losses %v with one thread, %v with two", one, two)
	}
	if one[3] == one[0] {
		t.Errorf("the loss stays %v: parameters do not move", one[0])
	}
	s, err := NewSession(Job{Data: ds, Model: "gcn", Options: models.Default()})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := s.Step("pretrain"); err == nil || !strings.Contains(err.Error(), "@pretrain") {
		t.Errorf("gcn has no function @pretrain, error %v", err)
	}
}

func TestSampledBatchIsTimed(t *testing.T) {
	ds, err := tiny.Generate()
	if err != nil {
		t.Fatal(err)
	}
	if r, err := sampledBatch(&env{Options{Threads: 1, Rounds: 2}, ds}); err != nil || r.MS <= 0 {
		t.Errorf("%+v, %v", r, err)
	}
}

func TestRooflineIsTheBetterOfTwo(t *testing.T) {
	a := &Roofline{MatMul: 100, Exp: 1, Bandwidth: []Bandwidth{{1, 50}, {8, 40}}}
	b := &Roofline{MatMul: 90, Exp: 2, Bandwidth: []Bandwidth{{1, 60}, {8, 30}}}
	want := &Roofline{MatMul: 100, Exp: 2, Bandwidth: []Bandwidth{{1, 60}, {8, 40}}}
	if got := a.best(b); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
}

func TestRunUsesChildForCasesAlone(t *testing.T) {
	var asked []string
	o := Options{Only: "epochs/gcn/cora", NoRoofline: true, Child: func(_ context.Context, name string) (Result, error) {
		asked = append(asked, name)
		return Result{MS: 5, PeakMiB: 7}, nil
	}}
	r, err := Run(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	if x := r.Results[0]; len(r.Results) != 1 || x.Name != "epochs/gcn/cora" || x.PeakMiB != 7 || !slices.Equal(asked, []string{"epochs/gcn/cora"}) {
		t.Errorf("results %+v, asked for %v", r.Results, asked)
	}
}

func TestBandwidthOfWorkingSet(t *testing.T) {
	l := &Roofline{Bandwidth: []Bandwidth{{1, 100}, {8, 50}, {64, 20}}}
	for _, c := range []struct{ mib, want float64 }{{0.5, 100}, {1, 100}, {1.1, 50}, {64, 20}, {500, 20}} {
		if got := l.At(c.mib * (1 << 20)); got != c.want {
			t.Errorf("%v MiB: %v GB/s, want %v", c.mib, got, c.want)
		}
	}
}

func TestLearnerEpochs(t *testing.T) {
	ds, err := tiny.Generate()
	if err != nil {
		t.Fatal(err)
	}
	cases := learnerCases()
	for _, c := range cases {
		if r, err := c.run(&env{Options: Options{Threads: 1}, ds: ds}); err != nil || r.MS <= 0 {
			t.Errorf("%s: %v ms, %v", c.Name, r.MS, err)
		}
	}
	if _, err := learnerEpoch(&env{Options: Options{Threads: 1}, ds: ds}, "gcn"); err == nil {
		t.Error("a model that learns no graph has epochs of a learner")
	}
}

// Of long work the first run counts; of others there are runs before those that do.
func TestRounds(t *testing.T) {
	defer func(d time.Duration) { warm = d }(warm)
	for _, c := range []struct {
		warm   time.Duration
		rounds int
		long   bool
	}{{time.Nanosecond, 1, true}, {time.Nanosecond, 3, true}, {time.Hour, 1, false}} {
		warm = c.warm
		calls := 0
		r, err := (&env{Options: Options{Rounds: c.rounds}}).rounds(func() error {
			calls++
			time.Sleep(5 * time.Millisecond)
			return nil
		})
		if err != nil || r.Rounds != c.rounds || (calls == c.rounds) != c.long {
			t.Errorf("%d rounds, the first run counts: %t: %d runs, %d rounds, %v", c.rounds, c.long, calls, r.Rounds, err)
		}
	}
}
