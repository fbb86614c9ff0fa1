package auto

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gsrc-dev/gsrc/data"
	"github.com/gsrc-dev/gsrc/rng"
	"github.com/gsrc-dev/gsrc/run"
	"github.com/gsrc-dev/gsrc/train"
)

// folder writes a graph of three classes whose columns and edges say something of them. The
// labels of test nodes, and of those of no part of the split, are noise if so asked.
func folder(t *testing.T, noise bool) string {
	t.Helper()
	const n = 90
	draws := rng.New(3, "data")
	nodes, edges := "id,label,split,a,b,c,d,e,f\n", "source,target\n"
	for v := range n {
		class, part := v%3, []string{"train", "val", "val", "test", ""}[v/3%5]
		row := ""
		for j := range 6 {
			bit := 0
			if draws.Sub("x").Uniform(uint64(6*v+j)) < 0.2 || j%3 == class && draws.Sub("y").Uniform(uint64(6*v+j)) < 0.5 {
				bit = 1
			}
			row += fmt.Sprintf(",%d", bit)
		}
		label := class
		if noise && part != "train" && part != "val" {
			label = draws.Sub("noise").Intn(uint64(v), 3)
		}
		nodes += fmt.Sprintf("n%d,%d,%s%s\n", v, label, part, row)
		for k := range 2 {
			u := (v + 3*(1+k)) % n // of the same class
			if draws.Sub("wrong").Uniform(uint64(2*v+k)) < 0.2 {
				u = (v + 1 + draws.Intn(uint64(2*v+k), n-1)) % n
			}
			edges += fmt.Sprintf("n%d,n%d\n", v, u)
		}
	}
	dir := filepath.Join(t.TempDir(), "own")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"nodes.csv": nodes, "edges.csv": edges} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func options(data, out string) Options {
	return Options{TrainOptions: run.TrainOptions{Data: data, Out: out, Set: []string{"train.epochs=3"}}, rules: short}
}

// short is a list of one candidate of each kind.
var short []rule

func init() {
	for _, r := range rules {
		if slices.Contains([]string{"linear", "nearest neighbours, gcn", "refined, gcn"}, r.Name) {
			short = append(short, r)
		}
	}
}

func trained(t *testing.T, o Options) *Run {
	t.Helper()
	r, err := Train(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func content(t *testing.T, dir, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// With noise in the place of all labels but those of training and validation nodes the same is
// tried, chosen and trained.
func TestOtherLabelsDecideNothing(t *testing.T) {
	var runs []*Run
	for _, noise := range []bool{false, true} {
		o := options(folder(t, noise), filepath.Join(t.TempDir(), "run"))
		o.Trials = 15
		runs = append(runs, trained(t, o))
	}
	a, b := runs[0], runs[1]
	if a.Report.Data.Checksum == b.Report.Data.Checksum {
		t.Fatal("the labels are the same")
	}
	if a.Report.Seen != b.Report.Seen && *a.Report.Seen.Homophily != *b.Report.Seen.Homophily {
		t.Errorf("seen: %+v, with noise %+v", a.Report.Seen, b.Report.Seen)
	}
	if la, lb := a.Report.Leaderboard(), b.Report.Leaderboard(); la != lb || *a.Report.Choice != *b.Report.Choice {
		t.Errorf("%s\n%+v\nwith noise\n%s\n%+v", la, *a.Report.Choice, lb, *b.Report.Choice)
	}
	if !bytes.Equal(content(t, a.Dir, "weights.safetensors"), content(t, b.Dir, "weights.safetensors")) {
		t.Error("other weights with noise")
	}
	if a.Report.Choice.Resplits < leastResplits || a.Report.Refinement == nil || a.Report.Refinement.Nodes != 18 {
		t.Errorf("chosen by %+v, refinement %+v", a.Report.Choice, a.Report.Refinement)
	}
	if r, err := run.Open(a.Dir); err != nil || r.Result.Hash != a.Result.Hash {
		t.Errorf("the run is opened with %v", err)
	}
}

// A limit of time leaves a model, and its number of trainings makes the same choice again,
// byte for byte.
func TestACutOffChoiceIsReplayed(t *testing.T) {
	data, out := folder(t, false), filepath.Join(t.TempDir(), "run")
	o := options(data, out)
	o.Minutes = 1e-6
	a := trained(t, o)
	if a.Report.Complete || a.Report.Trials < 1 {
		t.Fatalf("%d trainings, complete: %t", a.Report.Trials, a.Report.Complete)
	}
	if r, err := run.Open(out); err != nil || r.Result.Test == nil {
		t.Errorf("the run is opened with %v", err)
	}
	o = options(data, filepath.Join(t.TempDir(), "run"))
	o.Trials = a.Report.Trials
	trained(t, o)
	for _, name := range []string{File, "weights.safetensors"} {
		if x, y := content(t, out, name), content(t, o.Out, name); !bytes.Equal(x, y) {
			t.Errorf("%s differs:\n%.300s\n%.300s", name, x, y)
		}
	}
}

// A report that has changed is refused, where a run is resumed, too; one of an earlier version has
// no checksum.
func TestReportHasAChecksum(t *testing.T) {
	dir := t.TempDir()
	x := &chooser{report: &Report{SchemaVersion: 1, Status: "done", Version: "1"}}
	x.Out = dir
	if err := x.write(); err != nil {
		t.Fatal(err)
	}
	text := content(t, dir, File)
	for _, c := range []struct {
		text                []byte
		unfinished, refused bool
	}{
		{text, false, false},
		{bytes.Replace(text, []byte(`"version": "1"`), []byte(`"version": "2"`), 1), true, true},
		{text[:len(text)/2], true, true},
		{regexp.MustCompile(`,\s*"seal": \{[^}]*\}`).ReplaceAll(text, nil), false, false},
	} {
		if err := os.WriteFile(filepath.Join(dir, File), c.text, 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := ReadReport(dir); (err != nil) != c.refused || Unfinished(dir) != c.unfinished {
			t.Errorf("%s: error %v, unfinished: %v", c.text, err, Unfinished(dir))
		}
	}
	if Unfinished(t.TempDir()) {
		t.Error("a folder without a report is unfinished")
	}
}

// When the time of a training is up, that of the final trainings is left, this one among them.
func TestTimeForTheFinalTrainings(t *testing.T) {
	slow := &Candidate{Structure: refined}
	x := &chooser{Options: Options{Minutes: 1}, start: time.Now(), slowest: [2]float64{2, 3}}
	ran := 0.0
	for ; x.left(slow, ran) > 0; ran++ {
		x.before += time.Second
	}
	// On the given split: the best simple one, the refined one, and the same on the graph as it is.
	if end := x.elapsed().Seconds() + 2 + 2*ran; end > 66 || end < 40 {
		t.Errorf("a training of %g s ends after %g s of 60", ran, end)
	}
	x.before = 40 * time.Second
	if x.left(slow, 3) <= 0 {
		t.Error("no time is left for a training that takes no longer than others")
	}
	// Others that end meanwhile shorten it.
	x.report = &Report{Candidates: []*Candidate{{Scores: []float64{1}}}}
	var mu sync.Mutex
	ctx, cancel := x.limited(context.Background(), slow, &mu)
	defer cancel()
	if ctx.Err() != nil {
		t.Fatal("a training's time is up when it begins")
	}
	mu.Lock()
	x.slowest[1] = 30
	mu.Unlock()
	select {
	case <-ctx.Done():
	case <-time.After(10 * time.Second):
		t.Error("a training goes on that leaves no time for a slower one")
	}
}

// The report belongs to its run, also where another one is whole.
func TestReportIsOfItsRun(t *testing.T) {
	data, dir := folder(t, false), t.TempDir()
	var outs []string
	for i := range 2 {
		o := options(data, filepath.Join(dir, fmt.Sprint(i)))
		o.Trials = 1 + i
		trained(t, o)
		outs = append(outs, o.Out)
	}
	if _, err := Resume(context.Background(), outs[0], Options{}); err != nil { // which writes run.json anew
		t.Fatal(err)
	}
	if _, err := train.Verify(outs[0]); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(outs[0], File), content(t, outs[1], File), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := train.Verify(outs[0]); err == nil || !strings.Contains(err.Error(), File) {
		t.Errorf("the report of another run: error %v", err)
	}
	if _, err := Resume(context.Background(), outs[0], Options{}); err == nil || !strings.Contains(err.Error(), File) {
		t.Errorf("resumed with the report of another run: error %v", err)
	}
}

// What was stopped, while it chose or after, goes on and ends as if it had not been.
func TestResume(t *testing.T) {
	data, dir := folder(t, false), t.TempDir()
	whole := options(data, filepath.Join(dir, "whole"))
	whole.Trials, whole.Threads, whole.TF32 = 8, 1, true
	first := trained(t, whole)
	report, weights := content(t, whole.Out, File), content(t, whole.Out, "weights.safetensors")
	again, err := Resume(context.Background(), whole.Out, Options{rules: short, Progress: func(int, *Candidate) { t.Error("a run that has ended chooses again") }})
	if err != nil {
		t.Fatal(err)
	}
	if again.Report.Trials != first.Report.Trials || again.Report.Choice.Winner != first.Report.Choice.Winner || again.Result.Test.Accuracy != first.Result.Test.Accuracy ||
		!bytes.Equal(report, content(t, whole.Out, File)) || !bytes.Equal(weights, content(t, whole.Out, "weights.safetensors")) {
		t.Error("a run that has ended is another when it is resumed")
	}
	for i, at := range []int{2, 6, 8} {
		o := whole
		o.Out = filepath.Join(dir, fmt.Sprint(i))
		ctx, cancel := context.WithCancel(context.Background())
		o.Progress = func(done int, _ *Candidate) {
			if done == at {
				cancel()
			}
		}
		if _, err := Train(ctx, o); !run.IsInterrupted(ctx, err) || !Unfinished(o.Out) {
			t.Fatalf("stopped after %d: %v", at, err)
		}
		if _, err := run.Open(o.Out); (err == nil) != (at > 4) { // after the simple candidates there is a model
			t.Errorf("stopped after %d, the run is opened with %v", at, err)
		}
		if _, err := Resume(context.Background(), o.Out, Options{rules: short[1:]}); err == nil || !strings.Contains(err.Error(), "the options have changed") {
			t.Errorf("other candidates: %v", err)
		}
		if _, err := Resume(context.Background(), o.Out, Options{rules: short}); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{File, "weights.safetensors", "config.toml"} {
			if !bytes.Equal(content(t, whole.Out, name), content(t, o.Out, name)) {
				t.Errorf("stopped after %d, %s differs", at, name)
			}
		}
	}
}

// A schema.toml that is written after a search has begun leaves its tables what they were, also where edges were left out.
func TestResumeReadsTablesAsTheyWere(t *testing.T) {
	dir := folder(t, false)
	for i, set := range []string{"data.remove_edges=0", "data.remove_edges=0.2"} {
		o := options(dir, filepath.Join(t.TempDir(), "run"))
		o.Trials, o.Set = 4, append(o.Set, set)
		ctx, cancel := context.WithCancel(context.Background())
		o.Progress = func(int, *Candidate) { cancel() }
		if _, err := Train(ctx, o); !run.IsInterrupted(ctx, err) {
			t.Fatal(err)
		}
		schema := filepath.Join(dir, "schema.toml")
		if err := os.WriteFile(schema, []byte("[nodes]\nid = \"id\"\nlabel = \"label\"\nsplit = \"split\"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := Resume(context.Background(), o.Out, Options{rules: short}); err != nil {
			t.Errorf("%d: %v", i, err)
		}
		if err := os.Remove(schema); err != nil {
			t.Fatal(err)
		}
	}
}

// A search that goes on has the options that the file of options had when it began. Reports of earlier versions have
// no more than its name, and it is read again.
func TestResumeKeepsTheFileOfOptions(t *testing.T) {
	data, dir := folder(t, false), t.TempDir()
	file := filepath.Join(dir, "options.toml")
	write := func(text string) {
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	const given = "[train]\nlr = 0.02\nselect = \"macro_f1\"\n[model]\nhidden = 5\n"
	write(given)
	whole := options(data, filepath.Join(dir, "whole"))
	whole.Config, whole.Trials = file, 7
	trained(t, whole)
	part := whole
	part.Out = filepath.Join(dir, "part")
	ctx, cancel := context.WithCancel(context.Background())
	part.Progress = func(done int, _ *Candidate) {
		if done == 2 {
			cancel()
		}
	}
	if _, err := Train(ctx, part); !run.IsInterrupted(ctx, err) {
		t.Fatal(err)
	}
	old := filepath.Join(dir, "old")
	if err := os.CopyFS(old, os.DirFS(part.Out)); err != nil {
		t.Fatal(err)
	}
	text := regexp.MustCompile(`"from_config": \[[^]]*\],|,\s*"seal": \{[^}]*\}`).ReplaceAll(content(t, old, File), nil)
	if err := os.WriteFile(filepath.Join(old, File), text, 0o644); err != nil {
		t.Fatal(err)
	}
	resume := func(dir string) {
		t.Helper()
		if _, err := Resume(context.Background(), dir, Options{rules: short}); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{File, "weights.safetensors", "config.toml"} {
			if !bytes.Equal(content(t, whole.Out, name), content(t, dir, name)) {
				t.Errorf("%s of %s differs", name, filepath.Base(dir))
			}
		}
	}
	write("[train]\nselect = \"accuracy\"\n")
	resume(part.Out)
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if _, err := Resume(context.Background(), old, Options{rules: short}); err == nil || !strings.Contains(err.Error(), file) || !strings.Contains(err.Error(), "start anew with --force") {
		t.Errorf("an earlier version's without the file: %v", err)
	}
	write(given)
	resume(old)
}

// What keeps a stopped search from going on is said: other data, another seed, the candidates of another version, or other options.
func TestChanged(t *testing.T) {
	report := func(checksum string, seed int, version string, candidates ...string) *Report {
		r := &Report{Version: version, Seed: seed}
		r.Data.Source, r.Data.Checksum = "mine", checksum
		for _, name := range candidates {
			r.Candidates = append(r.Candidates, &Candidate{Name: name})
		}
		return r
	}
	now := report("a", 1, "v2", "gcn")
	for _, c := range []struct {
		earlier *Report
		want    string
	}{
		{report("a", 1, "v1", "gcn"), ""},
		{report("b", 1, "v2", "gcn"), "mine is not what the search began with (its checksum is a…, that was b…)"},
		{report("a", 2, "v2", "gcn"), "the seed is 1, and was 2"},
		{report("a", 1, "v1", "gcn", "gat"), "gsrc v2 has other candidates than v1, which began the search and alone goes on with it"},
		{report("a", 1, "v2", "gat"), "the options have changed, and with them the candidates"},
	} {
		if got := now.changed(c.earlier); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}

// The winner is kept from the beginning that is best on validation nodes, as train.restart names it, also behind an
// interruption among its restarts.
func TestRestarts(t *testing.T) {
	dir := t.TempDir()
	o := options(folder(t, false), filepath.Join(dir, "whole"))
	o.rules = slices.DeleteFunc(slices.Clone(rules), func(r rule) bool { return r.Name != "gcn" })
	o.Set = append(o.Set, "model.hidden=3", "train.epochs=9", "train.restart=1")
	var shown []float64
	o.Progress = func(_ int, c *Candidate) { shown = append(shown, c.Latest()) }
	r := trained(t, o)
	scores := r.Report.Candidates[0].Restarts
	if n := len(shown) - restarts; n < 0 || !slices.Equal(shown[n:], scores) {
		t.Errorf("%v was shown, the restarts have %v", shown, scores)
	}
	if len(scores) != restarts || r.Report.Choice.Restart == 0 || !r.Report.Complete {
		t.Fatalf("restarts %v, the choice %+v; want another beginning than the first", scores, r.Report.Choice)
	}
	if got := rounded(r.Result.Val.Accuracy); got != slices.Max(scores) {
		t.Errorf("%g on validation nodes, the best of %v was chosen", got, scores)
	}
	plain := o.TrainOptions
	plain.Model, plain.Out = "gcn", ""
	plain.Set = append(slices.Clone(plain.Set), "train.eval_every=5", fmt.Sprintf("train.restart=%d", 1+r.Report.Choice.Restart))
	if p, err := run.Train(context.Background(), plain); err != nil || p.Result.Hash != r.Result.Hash {
		t.Errorf("trained by itself it has another hash, or %v", err)
	}
	part := o
	part.Out = filepath.Join(dir, "part")
	ctx, cancel := context.WithCancel(context.Background())
	part.Progress = func(done int, _ *Candidate) {
		if done == r.Report.Trials-2 {
			cancel()
		}
	}
	if _, err := Train(ctx, part); !run.IsInterrupted(ctx, err) {
		t.Fatal(err)
	}
	if _, err := Resume(context.Background(), part.Out, Options{rules: o.rules}); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{File, "weights.safetensors"} {
		if !bytes.Equal(content(t, o.Out, name), content(t, part.Out, name)) {
			t.Errorf("stopped among restarts, %s differs", name)
		}
	}
}

func TestRefused(t *testing.T) {
	dir := folder(t, false)
	if _, err := Train(context.Background(), options(dir, dir)); err == nil || !strings.Contains(err.Error(), "not empty") {
		t.Errorf("a folder with other files: %v", err)
	}
	o := options(dir, "")
	o.Set = append(o.Set, "train.epoch=3")
	if _, err := Train(context.Background(), o); err == nil || !strings.Contains(err.Error(), "train.epochs") {
		t.Errorf("a wrong option: %v", err)
	}
	o.Set = []string{"data.ignore=label"}
	if _, err := Train(context.Background(), o); err == nil || !strings.Contains(err.Error(), "nothing for auto to learn: name the column that has them with --label") {
		t.Errorf("without labels: %v", err)
	}
	o.Set = []string{"train.epochs=3", "data.split=per-class:29,1,2"}
	if _, err := Train(context.Background(), o); err == nil || !strings.Contains(err.Error(), "two validation nodes") || !strings.Contains(err.Error(), "of 90 labelled nodes the split has 1 for validation: give it a larger share, or label more nodes (10 for") {
		t.Errorf("one validation node: %v", err)
	}
}

// Where AUC compares, both halves of every resplit have nodes of a rare class, and a choice that cannot be made
// by it is refused before any training.
func TestRareClasses(t *testing.T) {
	labels := make([]int32, 40)
	labels[3], labels[20], labels[30] = 1, 1, 1
	var nodes []int32
	for v := range labels {
		nodes = append(nodes, int32(v))
	}
	p := &pool{ds: &data.Dataset{Classes: 2, Labels: labels}, train: nodes[:10], val: nodes[10:], ranked: true}
	for k := range 20 {
		s := p.resplit(rng.New(7, "test").At(uint64(k)))
		for _, half := range [][]int32{s.Val, s.Test} {
			if n := (data.Split{Train: half}).ClassCounts(labels, 2); len(half) != 15 || n[1] != 1 {
				t.Errorf("resplit %d has a half of %d nodes, %v of each class", k, len(half), n)
			}
		}
	}

	dir := folder(t, false)
	o := options(dir, "")
	o.Set = []string{"train.epochs=3", "train.select=auc", "data.split=random:0.6,0.2,0.2"}
	if r := trained(t, o); slices.ContainsFunc(r.Report.Candidates, func(c *Candidate) bool { return c.Failed != "" }) {
		t.Errorf("a candidate failed: %s", r.Report.Leaderboard())
	}
	path := filepath.Join(dir, "nodes.csv")
	rare := regexp.MustCompile(`(?m)^(n\d+),[12],(train|val),`).ReplaceAll(content(t, dir, "nodes.csv"), []byte("$1,0,$2,"))
	if err := os.WriteFile(path, rare, 0o644); err != nil {
		t.Fatal(err)
	}
	o = options(dir, "")
	o.Set = append(o.Set, "train.select=auc")
	o.Progress = func(int, *Candidate) { t.Error("a candidate was trained") }
	if _, err := Train(context.Background(), o); err == nil || !strings.Contains(err.Error(), "fewer than two classes have two of these 36 nodes") {
		t.Errorf("validation nodes of one class: %v", err)
	}
}

// Without test nodes a part of the validation nodes is kept from the choice, to say what
// refinement brings.
func TestWithoutTestNodes(t *testing.T) {
	o := options(folder(t, false), "")
	o.Set = append(o.Set, "data.split=random:0.3,0.7,0")
	o.Trials = 6
	r := trained(t, o)
	if x := r.Report.Refinement; x == nil || x.Nodes != 63/4 {
		t.Errorf("refinement %+v", x)
	}
	if r.Result.TestAcc != nil || r.Result.Val.Nodes != 63 {
		t.Errorf("the winner keeps its epoch by %d nodes", r.Result.Val.Nodes)
	}
}

// A candidate that data and options do not suit is left out with the reason, whether that shows when its program is built
// or when it is compiled. A run that was stopped behind it goes on, and a limit leaves one that can be trained.
func TestUnsuited(t *testing.T) {
	dir := t.TempDir()
	unsuited := []rule{
		{Candidate{Name: "of no such option", Model: "gcn", Set: []string{"model.encoder.cut=0.1"}, Structure: raw, Simple: true}, nil},
		{Candidate{Name: "of no such sampler", Model: "linear", Set: []string{"train.sampler=neighbors", "model.smooth.alpha=0.7", "model.smooth.correct=0.5"}, Structure: raw, Simple: true}, nil},
	}
	o := options(folder(t, false), filepath.Join(dir, "whole"))
	o.rules, o.Trials = slices.Concat(unsuited, short), 8
	a := trained(t, o)
	for i, reason := range []string{"model.encoder.cut must be 0", "train.sampler=neighbors does not work for linear"} {
		if c := a.Report.Candidates[i]; !strings.Contains(c.Failed, reason) {
			t.Errorf("%+v", c)
		}
	}
	part := o
	part.Out = filepath.Join(dir, "part")
	ctx, cancel := context.WithCancel(context.Background())
	part.Progress = func(done int, _ *Candidate) {
		if done == 3 {
			cancel()
		}
	}
	if _, err := Train(ctx, part); !run.IsInterrupted(ctx, err) {
		t.Fatal(err)
	}
	if _, err := Resume(context.Background(), part.Out, Options{rules: o.rules}); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(content(t, o.Out, File), content(t, part.Out, File)) {
		t.Error("stopped behind it, auto.json differs")
	}
	o.Out = ""
	for _, limit := range []Options{{Trials: 1}, {Minutes: 1e-6}} {
		o.Trials, o.Minutes = limit.Trials, limit.Minutes
		if r := trained(t, o); r.Report.Choice.Winner != "linear" {
			t.Errorf("by %+v is chosen %+v", limit, r.Report.Choice)
		}
	}
	o.rules, o.Trials, o.Minutes = append(slices.Clone(unsuited), short[2]), 3, 0
	if r := trained(t, o); r.Report.Choice.Winner != "refined, gcn" {
		t.Errorf("where no simple candidate can be trained: %+v", r.Report.Choice)
	}
	o.rules = unsuited
	if _, err := Train(context.Background(), o); err == nil || !strings.Contains(err.Error(), "no candidate could be trained; the first: model.encoder.cut must be 0") {
		t.Errorf("where none can be trained: %v", err)
	}
}

// The structure learners run where their cost allows, and one that is chosen says so if it has learned the edges of
// this graph alone.
func TestLearners(t *testing.T) {
	names := func(s Seen) (list []string) {
		for _, c := range candidates(s, nil) {
			if c.plain != "" {
				list = append(list, c.Name)
			}
		}
		return list
	}
	alike, unlike := 0.8, 0.1
	for _, c := range []struct {
		of   Seen
		want []string
	}{
		{Seen{Nodes: 2708, Edges: 5278, Features: 1433, Homophily: &alike}, []string{"gen", "stable", "sublime", "grcn"}},
		{Seen{Nodes: 5196, Edges: 171_743, Features: 8189, Homophily: &unlike}, []string{"gen, without the data's edges"}},
		{Seen{Nodes: 50_000, Edges: 200_000, Features: 500, Homophily: &alike}, []string{"gen", "stable", "sublime"}},
		{Seen{Nodes: 200_000, Edges: 900_000, Features: 100}, nil},
		{Seen{Nodes: 300, Edges: 900, Kind: "none"}, nil},
	} {
		if got := names(c.of); !slices.Equal(got, c.want) {
			t.Errorf("%+v has the learners %v, want %v", c.of, got, c.want)
		}
	}

	o := options(folder(t, false), filepath.Join(t.TempDir(), "run"))
	o.rules = slices.DeleteFunc(slices.Clone(rules), func(r rule) bool { return r.Name != "gen" })
	var warned []string
	o.Warn = func(text string) { warned = append(warned, text) }
	r := trained(t, o)
	if r.Report.Choice.NewNodes || !slices.ContainsFunc(warned, func(w string) bool { return strings.Contains(w, "transductive") }) {
		t.Errorf("the choice %+v, with the warnings %q", r.Report.Choice, warned)
	}
	if x := r.Report.Refinement; x == nil || x.Candidate != "gen" {
		t.Errorf("refinement %+v", x)
	}
}

// Only a winner that cannot take new nodes is said to be one, and that gsrc build refuses it where it does.
func TestNewNodes(t *testing.T) {
	for name, refuses := range map[string]bool{"label propagation": false, "nearest neighbours, gcn": true} {
		o := options(folder(t, false), "")
		o.rules = slices.DeleteFunc(slices.Clone(rules), func(r rule) bool { return r.Name != name })
		var warned []string
		o.Warn = func(text string) { warned = append(warned, text) }
		r := trained(t, o)
		said := slices.ContainsFunc(warned, func(w string) bool { return strings.Contains(w, "cannot take new nodes, and gsrc build refuses it: ") })
		if r.Report.Choice.NewNodes == refuses || said != refuses || (r.Exportable() != nil) != refuses {
			t.Errorf("%s: %+v, %v, %q", name, r.Report.Choice, r.Exportable(), warned)
		}
	}
}

// On a graph whose edges have weights, directions or both every listed candidate can be set up and trained, and what
// cannot be exported says so. The same seed gives the same auto.json.
func TestWeightsAndDirections(t *testing.T) {
	plain := folder(t, false)
	weighted := folder(t, false)
	rows := strings.Split(strings.TrimSpace(string(content(t, weighted, "edges.csv"))), "\n")
	for i := range rows {
		if rows[i] += fmt.Sprintf(",%d", 1+i%3); i == 0 {
			rows[i] = "source,target,weight"
		}
	}
	if err := os.WriteFile(filepath.Join(weighted, "edges.csv"), []byte(strings.Join(rows, "\n")), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		data     string
		directed bool
	}{{weighted, false}, {plain, true}, {weighted, true}} {
		name := fmt.Sprintf("weighted %t, directed %t", c.data == weighted, c.directed)
		o := options(c.data, filepath.Join(t.TempDir(), "run"))
		o.rules, o.Trials = nil, 2
		o.Set = append(o.Set, fmt.Sprintf("data.directed=%t", c.directed))
		a := trained(t, o)
		if s := a.Report.Seen; s.Weighted != (c.data == weighted) || s.Directed != c.directed {
			t.Errorf("%s: seen %+v", name, s)
		}
		text := content(t, o.Out, File)
		o.Force = true
		if trained(t, o); !bytes.Equal(text, content(t, o.Out, File)) {
			t.Errorf("%s: auto.json differs", name)
		}
		for _, r := range rules {
			if s := a.Report.Seen; !r.suits(s) {
				if r.plain == "" && r.edges() == "" {
					t.Errorf("%s: %s is not tried", name, r.Name)
				}
				continue
			}
			for _, c := range []*Candidate{&r.Candidate, r.twin()} {
				if _, err := run.PrepareNodes(run.TrainOptions{Model: c.Model, Set: append(slices.Clone(c.Set), o.Set...)}, a.Data); err != nil {
					t.Errorf("%s: %s: %v", name, c.Name, err)
				}
			}
		}

		o.Out, o.Set = "", append(o.Set, "train.epochs=1", "train.self_training=0", "train.pretrain_steps=0")
		if o.Trials = len(a.Report.Candidates); c.directed == (c.data == weighted) { // each once, where the graph has both
			for _, c := range a.Report.Candidates {
				if c.Simple {
					o.Trials++ // twice, before the others
				}
			}
			for _, c := range trained(t, o).Report.Candidates {
				if c.Failed != "" || len(c.Scores) == 0 {
					t.Errorf("%s: %s has the scores %v and failed: %s", name, c.Name, c.Scores, c.Failed)
				}
			}
		}
		o.Trials = 2
		o.rules = slices.DeleteFunc(slices.Clone(rules), func(r rule) bool { return r.Name != "refined, gcn" })
		var warned []string
		o.Warn = func(text string) { warned = append(warned, text) }
		r := trained(t, o)
		said := slices.ContainsFunc(warned, func(w string) bool { return strings.Contains(w, "cannot take new nodes, and gsrc build refuses it: ") })
		if said != c.directed || r.Report.Choice.NewNodes == c.directed || (r.Exportable() != nil) != c.directed {
			t.Errorf("%s: refined by evidence %+v, %v, %q", name, r.Report.Choice, r.Exportable(), warned)
		}
		if x := r.Report.Refinement; x == nil || x.Undirected != c.directed {
			t.Errorf("%s: refinement %+v", name, x)
		}
	}
}

func TestCollectionIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "g.txt")
	if err := os.WriteFile(path, []byte("2\n2 0\n1 1 1\n2 1 0\n1 1\n1 0\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Train(t.Context(), Options{TrainOptions: run.TrainOptions{Data: path}}); err == nil || !strings.Contains(err.Error(), "models of the nodes of one graph; gsrc models") {
		t.Errorf("error %v", err)
	}
}

func TestRules(t *testing.T) {
	ds, err := run.ReadNodes(run.TrainOptions{Data: folder(t, false), Model: "linear"}, "")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, r := range rules {
		for _, c := range []*Candidate{&r.Candidate, r.twin()} {
			if _, err := run.PrepareNodes(run.TrainOptions{Model: c.Model, Set: c.Set}, ds); err != nil {
				t.Errorf("%s: %v", c.Name, err)
			}
		}
		if slices.Contains(names, r.Name) {
			t.Errorf("two candidates are called %s", r.Name)
		}
		names = append(names, r.Name)
	}
	none := candidates(Seen{Nodes: 10, Features: 3, Kind: "values", Classes: 2}, nil)
	for _, c := range none {
		if c.Structure != noEdges && c.Structure != nearest {
			t.Errorf("%s on a graph without edges", c.Name)
		}
	}
	if len(none) == 0 {
		t.Error("nothing for a graph without edges")
	}
	for _, c := range candidates(Seen{Nodes: 10, Edges: 30, Kind: "none", Classes: 2}, nil) {
		if c.Structure == noEdges || c.Structure == nearest || c.Model == "linear" {
			t.Errorf("%s on a graph without features", c.Name)
		}
	}
}

// Where joined nodes have features no more alike than others have, places in the graph are tried in their stead.
func TestMuteFeatures(t *testing.T) {
	share := 0.8
	for similarity, tried := range map[float64]bool{0.05: true, 0.17: false} {
		list := candidates(Seen{Nodes: 2485, Edges: 5575, Features: 1433, Kind: "counts", Classes: 7, TrainNodes: 247, Homophily: &share, Similarity: similarity, Random: 0.05}, nil)
		if slices.ContainsFunc(list, func(c *Candidate) bool { return slices.Contains(c.Set, places[0]) }) != tried {
			t.Errorf("with a similarity of %v places are tried: %v", similarity, !tried)
		}
	}
}

// Roles are tried where nodes have no features, and known labels with all features where these are few.
func TestFewOrNoFeatures(t *testing.T) {
	for _, c := range []struct {
		kind       string
		features   int
		few, roles bool
	}{{"values", 12, true, false}, {"counts", 1433, false, false}, {"places", 132, false, true}} {
		s := Seen{Nodes: 600, Edges: 1500, Features: c.features, Kind: c.kind, Classes: 4, TrainNodes: 300}
		list := candidates(s, nil)
		has := func(name string) bool {
			return slices.ContainsFunc(list, func(c *Candidate) bool { return c.Name == name })
		}
		if has("sage of all features, known labels") != c.few || has("roles, sage") != c.roles || has("roles, sage, known labels") != c.roles {
			t.Errorf("of %d %s there are %d candidates that read few features or roles where they should not, or are missing", c.features, c.kind, len(list))
		}
	}
}

// Places are not tried where data cannot be described by them: edges that an option has added would be others by places.
func TestPlacesAsRead(t *testing.T) {
	o := options(folder(t, false), "")
	o.rules = slices.DeleteFunc(slices.Clone(rules), func(r rule) bool { return r.Name != "places, gcn" && r.Name != "gcn" })
	for i := range o.rules {
		o.rules[i].due = nil
	}
	for set, tried := range map[string]int{"train.epochs=9": 2, "data.add_edges=0.1": 1, "data.edges=cut:0.1": 1} {
		o := o
		o.Set = append(slices.Clone(o.Set), "train.epochs=9", set)
		if r := trained(t, o); len(r.Report.Candidates) != tried {
			t.Errorf("%s: %d candidates, want %d", set, len(r.Report.Candidates), tried)
		}
	}
}

// Where edges of training nodes were tampered with no candidate reads all edges as they are, some leave these out,
// and resplits train on these nodes.
func TestTampered(t *testing.T) {
	s := Seen{Nodes: 2485, Edges: 5575, Features: 1433, Kind: "counts", Classes: 7, TrainNodes: 247, LabelsPerClass: 30}
	before := len(candidates(s, nil))
	s.Tampered = true
	list := candidates(s, nil)
	for _, c := range list {
		if c.Structure == raw || strings.HasPrefix(c.edges(), "raw") {
			t.Errorf("%s on edges that were tampered with", c.Name)
		}
	}
	cutting := 0
	for _, c := range list {
		if c.edges() == "cut:training" {
			cutting++
			if twin := c.twin(); twin.edges() != "" {
				t.Errorf("%s reads other edges", twin.Name)
			}
		}
	}
	if cutting != 4 || len(list) > before-10+cutting {
		t.Errorf("%d candidates, of which %d cut, %d where nothing was done", len(list), cutting, before)
	}

	p := &pool{ds: &data.Dataset{Classes: 2, Labels: make([]int32, 100)}, train: []int32{1, 5, 9}, val: []int32{2, 3, 4, 6, 7, 8}}
	for i, tampered := range []bool{false, true} {
		p.tampered = tampered
		kept := 0
		for k := range 10 {
			s := p.resplit(rng.New(7, "test").At(uint64(k)))
			if slices.Equal(s.Train, p.train) {
				kept++
			}
			if all := slices.Sorted(slices.Values(slices.Concat(s.Train, s.Val, s.Test))); !slices.Equal(all, []int32{1, 2, 3, 4, 5, 6, 7, 8, 9}) {
				t.Errorf("%t: a resplit of %v", tampered, all)
			}
		}
		if kept != 10*i {
			t.Errorf("%t: %d of 10 resplits have the training nodes of the split", tampered, kept)
		}
	}
}

// By hand a candidate is trained with the preset "general", its options and those given, to the same weights.
func TestCandidateByHand(t *testing.T) {
	o := options(folder(t, false), "")
	o.rules = slices.DeleteFunc(slices.Clone(short), func(r rule) bool { return r.Structure != refined })
	r := trained(t, o)
	c := r.Report.Candidates[0]
	set := slices.Concat(c.Set, o.Set, []string{fmt.Sprintf("train.restart=%d", r.Report.Choice.Restart)})
	alone, err := run.Train(t.Context(), run.TrainOptions{Model: c.Model, Data: o.Data, Config: "preset:general", Set: set})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := alone.Trained.Config.Hash(), r.Trained.Config.Hash(); got != want || !slices.Equal(alone.Trained.Logits, r.Trained.Logits) {
		t.Errorf("%s by hand has other options (%s, want %s) or predicts otherwise", c.Name, got, want)
	}
}
