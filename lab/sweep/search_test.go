package sweep

import (
	"context"
	"io/fs"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/gsrc-dev/gsrc"
	"github.com/gsrc-dev/gsrc/config"
	"github.com/gsrc-dev/gsrc/models"
	"github.com/gsrc-dev/gsrc/rng"
)

func mustSpace(t *testing.T, text string) *Space {
	t.Helper()
	s, err := ParseSpace(text)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestBuiltInSpaces(t *testing.T) {
	files, err := fs.Glob(spaces, "spaces/*.toml")
	if err != nil || len(files) < 2 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		model := strings.TrimSuffix(strings.TrimPrefix(file, "spaces/"), ".toml")
		load := config.Load
		graphs := model == "graphs"
		if own, ok := strings.CutPrefix(model, "graphs."); ok {
			model, graphs = own, true
		}
		if graphs {
			load = config.LoadGraphs
		}
		s, err := DefaultSpace(model, graphs)
		if err != nil {
			t.Fatal(err)
		}
		if model == "default" || model == "graphs" {
			model = ""
		} else if err := models.Check(model); err != nil {
			t.Errorf("%s: %v", file, err)
		}
		// Every setting in it is one that training takes.
		base, err := load(model, "", "", nil)
		if err != nil {
			t.Fatal(err)
		}
		for i := range 200 {
			if _, err := load(model, "", "", s.settings(s.random(rng.New(1, "test").At(uint64(i))), base)); err != nil {
				t.Errorf("%s: %v", file, err)
			}
		}
	}
	if a, b := mustDefault(t, "no-such-model"), mustDefault(t, "default"); !slices.EqualFunc(a.ranges, b.ranges, func(x, y valueRange) bool { return x.key == y.key }) {
		t.Error("a model without a space of its own has another than the general one")
	}
}

func mustDefault(t *testing.T, model string) *Space {
	t.Helper()
	s, err := DefaultSpace(model, false)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestRangesGiveValuesWithinThem(t *testing.T) {
	s := mustSpace(t, `
"train.lr" = { log = [0.003, 0.5] }
"train.anchors" = { log = [16, 4096] }
"model.dropout" = { uniform = [0.1, 0.85], step = 0.25 }
"model.input_dropout" = { uniform = [0.0, 0.5] }
"candidates.k" = { integer = [2, 4] }
"model.norm" = ["l1", "l2"]
[model]
layers = { choice = [1, 3], when = { "model.classifier" = ["gcn"] } }
[model.propagation]
order = { integer = [1, 9], when = { model.classifier = ["propagation"], "candidates.k" = [2, 3] } }
`)
	base, err := config.Load("", "", "", []string{"model.classifier=propagation"})
	if err != nil {
		t.Fatal(err)
	}
	values := map[string]map[string]int{}
	const draws = 2000
	for i := range draws {
		p := s.random(rng.New(3, "test").At(uint64(i)))
		if i%2 == 1 {
			p = s.near(rng.New(4, "test").At(uint64(i)), p)
		}
		k := ""
		for _, set := range s.settings(p, base) {
			key, v := splitOption(set)
			if values[key] == nil {
				values[key] = map[string]int{}
			}
			values[key][v]++
			switch key {
			case "model.layers":
				t.Fatal("an option whose condition does not hold is set")
			case "candidates.k":
				k = v
			}
		}
		has := slices.ContainsFunc(s.settings(p, base), func(x string) bool { return strings.HasPrefix(x, "model.propagation.order=") })
		if has != (k != "4") && k != "" {
			t.Fatalf("k is %s, and the order is set: %v", k, has)
		}
	}
	want := map[string][]string{"model.dropout": {"0.1", "0.35", "0.6", "0.85"}, "candidates.k": {"2", "3", "4"}, "model.norm": {`"l1"`, `"l2"`}}
	for key, list := range want {
		for _, v := range list {
			if n := values[key][v]; n < draws/len(list)/2 {
				t.Errorf("%s is %s in %d of %d draws", key, v, n, draws)
			}
		}
		if len(values[key]) != len(list) {
			t.Errorf("%s has the values %v", key, values[key])
		}
	}
	if n := len(values["model.input_dropout"]); n != 21 {
		t.Errorf("a range without a step has %d values, want 21", n)
	}
	for key, ends := range map[string][2]float64{"train.lr": {0.003, 0.5}, "train.anchors": {16, 4096}} {
		below := 0
		for v, n := range values[key] {
			x, err := strconv.ParseFloat(v, 64)
			if err != nil || x < ends[0] || x > ends[1] {
				t.Errorf("%s = %s", key, v)
			}
			if x < math.Sqrt(ends[0]*ends[1]) {
				below += n
			}
			if key == "train.lr" && len(strings.TrimLeft(strings.ReplaceAll(v, ".", ""), "0")) > 2 {
				t.Errorf("%s has more than two digits", v)
			}
		}
		if below < draws*2/5 || below > draws*3/5 {
			t.Errorf("%s: %d of %d draws are below the middle of the logarithms", key, below, draws)
		}
	}
}

// What a value gives for u gives the value again.
func TestUnitIsTheInverse(t *testing.T) {
	s := mustSpace(t, `
"train.lr" = { log = [0.003, 0.5] }
"model.dropout" = { uniform = [0.1, 0.85], step = 0.25 }
"candidates.k" = { integer = [2, 9] }
"model.norm" = ["l1", "l2", "none"]
`)
	for i := range 100 {
		p := s.random(rng.New(5, "test").At(uint64(i)))
		for _, r := range s.ranges {
			v := r.value(p[r.key])
			u, ok := r.unit(v)
			if !ok || r.value(u) != v {
				t.Errorf("%s: %s becomes %v, and that %s", r.key, v, u, r.value(u))
			}
		}
	}
	norm := s.ranges[slices.IndexFunc(s.ranges, func(r valueRange) bool { return r.key == "model.norm" })]
	if _, ok := norm.unit(`"l3"`); ok {
		t.Error("a text that is none of the choices has a place among them")
	}
}

func TestSpaceErrors(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{``, "no option"},
		{`"train.lrate" = [0.1]`, "did you mean train.lr?"},
		{`"train.lr" = 0.1`, "--set train.lr=0.1"},
		{`"train.lr" = []`, "empty"},
		{`"train.lr" = [0.1, 0.1]`, "twice"},
		{`"train.lr" = ["fast"]`, "finite number"},
		{`"train.lr" = { log = [0.1] }`, "two numbers"},
		{`"train.lr" = { log = [0, 1] }`, "greater than 0"},
		{`"train.lr" = { log = [1, 0.1] }`, "lesser one first"},
		{`"train.lr" = { logs = [0.1, 1] }`, `did you mean "log"?`},
		{`"train.lr" = { log = [0.1, 1], uniform = [0.1, 1] }`, "both log and uniform"},
		{`"train.lr" = { log = [0.1, 1], step = 0.1 }`, "only uniform"},
		{`"train.lr" = { uniform = [0.1, 1], step = 0 }`, "greater than 0"},
		{`"train.lr" = { when = { "candidates.k" = [1] } }`, "one of log"},
		{`"train.lr" = { integer = [1, 2] }`, "uniform or log"},
		{`"candidates.k" = { uniform = [1, 2] }`, "use integer"},
		{`"candidates.k" = { integer = [1, 2.5] }`, "is an integer"},
		{`"model.norm" = { integer = [1, 2] }`, "list its values"},
		{`"train.seed" = [1, 2]`, "cannot be searched"},
		{`"train.lr" = { log = [0.1, 1], when = { "candidate.k" = [1] } }`, "did you mean candidates.k?"},
		{`"train.lr" = { log = [0.1, 1], when = { "candidates.k" = [] } }`, "empty"},
		{"\"train.lr\" = [0.1]\n[train]\nlr = [0.2]", "two ranges"},
		{`"train.lr" = `, "line 1"},
		{`"model.dropout" = { uniform = [0, 1.0], step = 0.1 }`, "model.dropout must be within [0, 1), got 1.0"},
		{`"model.hidden" = { integer = [-4, 4] }`, "model.hidden must be "},
		{`"candidates.k" = { integer = [1, 3_000_000_000] }`, "must be an integer of at most 2147483647, got 3000000000"},
		{`"model.norm" = ["none", "L2"]`, `l1, l2 or none, got "L2"`},
		{`"train.select" = ["loss", "f1"]`, "train.select must be one of"},
		{`"train.lr" = { log = [0.1, 1], when = { "model.norm" = ["L2"] } }`, `train.lr: when: model.norm must be l1, l2 or none, got "L2"`},
		{"\"model.norm\" = [\"l1\"]\n\"train.lr\" = { log = [0.1, 1], when = { \"model.norm\" = [\"l1\", \"l2\"] } }", `train.lr: when: the range of model.norm does not give it the value "l2"`},
		{"\"candidates.k\" = { integer = [1, 5] }\n\"train.lr\" = { log = [0.1, 1], when = { \"candidates.k\" = [6] } }", "the range of candidates.k does not give it the value 6"},
		{"\"model.dropout\" = { uniform = [0, 0.4], step = 0.2 }\n\"train.lr\" = { log = [0.1, 1], when = { \"model.dropout\" = [0.3] } }", "does not give it the value 0.3"},
		{`"train.lr" = { log = [0.1, 1], when = { "train.lr" = [0.1] } }`, "train.lr: when: its range depends on itself: train.lr on train.lr"},
		{"\"model.hidden\" = { choice = [4, 8], when = { \"model.layers\" = [2] } }\n\"model.layers\" = { choice = [1, 2], when = { \"model.hidden\" = [4] } }", "model.hidden on model.layers on model.hidden"},
	} {
		if s, err := ParseSpace(c.text); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %+v, error %v, want %q", c.text, s, err, c.want)
		}
	}
}

func TestSpaceConditions(t *testing.T) {
	mustSpace(t, `
"model.norm" = { choice = ["l1", "l2"], when = { "model.hidden" = [1, 64], "model.dropout" = [0.0, 0.4] } }
"model.hidden" = { integer = [1, 64] }
"model.dropout" = { uniform = [0.0, 0.8], step = 0.1 }
"candidates.k" = { choice = [1, 2], when = { "train.lr" = [0.001, 0.05, 0.1], "model.classifier" = ["acm"] } }
"train.lr" = { log = [0.001, 0.1], when = { "model.norm" = ["l2"] } }
`)
}

// What an option may be beside others is no fault of its range.
func TestSpaceOfOptionsThatDependOnOneAnother(t *testing.T) {
	mustSpace(t, `"synthetic.nodes" = [2, 3]
"synthetic.classes" = [2, 3]`)
}

func tinySearch(t *testing.T, runner *Runner) *Search {
	return &Search{Model: "gcn", Data: "synthetic", Set: []string{"synthetic.nodes=120", "synthetic.features=16", "train.epochs=5"}, Trials: 9, Rungs: []int{1, 2, 4}, Runner: runner,
		Space: mustSpace(t, `
"train.lr" = { log = [0.0001, 0.3] }
"model.hidden" = [4, 8, 16]
"model.dropout" = { uniform = [0.0, 0.8], step = 0.1 }
`)}
}

func found(t *testing.T, s *Search) (*Study, string) {
	t.Helper()
	f, err := s.Run(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	if err := f.WriteTOML(&b, "gsrc tune"); err != nil {
		t.Fatal(err)
	}
	return f, b.String()
}

func TestSearch(t *testing.T) {
	var stages []string
	s := tinySearch(t, &Runner{Workers: 1})
	s.Stage = func(text string) { stages = append(stages, text) }
	one, text := found(t, s)
	if want := []string{
		"drawn from the space: 5 trials with seed 0",
		"drawn from the space: 2 trials with seeds 0 to 1",
		"near the best: 4 trials with seed 0",
		"near the best: 2 trials with seeds 0 to 1",
		"the best, and the defaults: 2 trials with seeds 0 to 3",
	}; !slices.Equal(stages[:4], want[:4]) || !strings.HasPrefix(stages[4], "the best, and the defaults: ") {
		t.Errorf("stages %q", stages)
	}
	if !one.Complete || one.Seeds != 4 || len(one.Trials) != 9 || len(one.Best.Records) != 4 || len(one.Defaults.Set) != 0 || len(one.Defaults.Records) != 4 {
		t.Errorf("found %+v", one)
	}
	// The winner has the best mean of those with all seeds, or noise does not
	// tell it from the defaults.
	for _, x := range one.Trials {
		if len(x.Records) == 4 && x.mean() > one.Best.mean() && one.Best != one.Defaults {
			t.Errorf("trial %d has %v, the winner %v", x.Number, x.mean(), one.Best.mean())
		}
	}
	runs := 0
	for _, x := range one.Trials {
		runs += len(x.Records)
	}
	if runs != one.Runs {
		t.Errorf("%d runs, %d records", one.Runs, runs)
	}
	mean, std := one.Val()
	if v := one.Best.Val(); len(v) != 4 || !(math.Abs(mean-(v[0]+v[1]+v[2]+v[3])/4) <= 1e-9) || std < 0 {
		t.Errorf("val %v ± %v of %v", mean, std, v)
	}
	// Another number of workers, and another process half-way, find the same.
	if _, again := found(t, tinySearch(t, &Runner{Workers: 4})); again != text {
		t.Errorf("with four workers\n%s\nwith one\n%s", again, text)
	}
	dir := t.TempDir()
	ctx, cancel := context.WithCancel(context.Background())
	ended := 0
	part, err := tinySearch(t, &Runner{Dir: dir, Workers: 1, Observer: func(p Progress) {
		if p.Last != nil {
			ended++
		}
		if ended == 3 {
			cancel()
		}
	}}).Run(ctx)
	if !gsrc.IsInterrupted(ctx, err) || part == nil || part.Complete || part.Runs != 3 || len(part.Trials) != 3 {
		t.Fatalf("a search that was stopped: %+v, %v", part, err)
	}
	fresh := 0
	if _, again := found(t, tinySearch(t, &Runner{Dir: dir, Observer: func(p Progress) {
		if p.Last != nil {
			fresh++
		}
	}})); again != text || fresh != one.Runs-3 {
		t.Errorf("resumed with %d runs of %d\n%s\nundisturbed\n%s", fresh, one.Runs, again, text)
	}
	other := tinySearch(t, nil)
	other.Seed = 1
	if f, _ := found(t, other); slices.Equal(f.Trials[1].Set, one.Trials[1].Set) && slices.Equal(f.Trials[2].Set, one.Trials[2].Set) {
		t.Error("another seed tries the same")
	}
}

// Settings are compared by what epochs are kept by.
func TestSearchComparesBySelect(t *testing.T) {
	for _, c := range []struct {
		measure, evidence string
		score             func(*Record) float64
	}{
		{"loss", "validation loss ", func(r *Record) float64 { return -r.Result.Val.NLL }},
		{"macro_f1", "validation macro-F1 ", func(r *Record) float64 { return r.Result.Val.MacroF1 }},
		{"auc", "validation AUC ", func(r *Record) float64 { return *r.Result.Val.AUC }},
	} {
		s := tinySearch(t, nil)
		s.Set = append(s.Set, "train.select="+c.measure)
		f, text := found(t, s)
		if !strings.Contains(text, "chosen by validation "+c.measure+" with\n") || !strings.Contains(text, c.evidence) || !strings.HasPrefix(f.Evidence(), c.evidence) {
			t.Errorf("%s: evidence %q in\n%s", c.measure, f.Evidence(), text)
		}
		mean := func(x *Trial) (sum float64) {
			for _, r := range x.Records {
				sum += c.score(r) / float64(len(x.Records))
			}
			return sum
		}
		for _, x := range f.Trials {
			if len(x.Records) == 4 && mean(x) > mean(f.Best)+1e-12 && f.Best != f.Defaults {
				t.Errorf("%s: trial %d has %v, the winner %v", c.measure, x.Number, mean(x), mean(f.Best))
			}
		}
		if got := f.Best.mean(); !(math.Abs(got-mean(f.Best)) <= 1e-12) {
			t.Errorf("%s: the winner's score is %v, want %v", c.measure, got, mean(f.Best))
		}
	}
	// Where trials differ in what epochs are kept by, accuracy compares them.
	s := tinySearch(t, nil)
	s.Space = mustSpace(t, `"train.select" = ["accuracy", "loss"]`+"\n"+`"train.lr" = { log = [0.0001, 0.3] }`)
	if f, text := found(t, s); f.Best.measure != "accuracy" || strings.Contains(text, "loss ") {
		t.Errorf("compared by %s\n%s", f.Best.measure, text)
	}
}

func TestFoundOptionsTrainTheSame(t *testing.T) {
	f, text := found(t, tinySearch(t, nil))
	for _, line := range []string{"# gcn on synthetic, chosen by validation accuracy with\n#   gsrc tune\n", "epochs = 5  # gsrc tune: validation "} {
		if !strings.Contains(text, line) {
			t.Errorf("%s\nlacks %q", text, line)
		}
	}
	g, err := ParseGrid(text)
	if err != nil {
		t.Fatal(err)
	}
	s, err := Job{Model: "gcn", Data: "synthetic", Set: g.Base}.prepare(nil, nil)
	if err != nil || Key(s) != f.Best.Records[0].Key {
		t.Errorf("the options make another job (error %v)", err)
	}
}

// A trial that diverges cannot win, and where all do the error says so.
func TestSearchWithFailures(t *testing.T) {
	s := tinySearch(t, nil)
	s.Set = append(s.Set, "train.epochs=40")
	s.Space = mustSpace(t, `"train.lr" = [1e37, 1e38]`)
	f, _ := found(t, s)
	if f.Best != f.Defaults || len(f.Defaults.Records) != 4 {
		t.Errorf("found %+v", f.Best)
	}
	s.Set = append(s.Set, "train.lr=1e38")
	s.Space = mustSpace(t, `"model.hidden" = [4, 8]`)
	if _, err := s.Run(context.Background()); err == nil || !strings.Contains(err.Error(), "all 9 trials failed") {
		t.Errorf("error %v", err)
	}
}

func TestSearchErrors(t *testing.T) {
	for want, change := range map[string]func(*Search){
		"a trial at least": func(s *Search) { s.Trials = 0 },
		"rungs":            func(s *Search) { s.Rungs = []int{2, 2} },
		"nothing is left":  func(s *Search) { s.Set = append(s.Set, "train.lr=1", "model.hidden=2", "model.dropout=0") },
		"shards":           func(s *Search) { s.Runner = &Runner{Shard: Shard{0, 2}} },
		"absent":           func(s *Search) { s.Data = "absent" },
	} {
		s := tinySearch(t, nil)
		change(s)
		if _, err := s.Run(context.Background()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}

func TestSearchWarnsOfOptionsWithoutEffect(t *testing.T) {
	for _, c := range []struct {
		model, space string
		set, want    []string
	}{
		{"gcn", `"model.edges.mu" = [0.1, 0.2]
"model.hidden" = [4, 8]`, []string{"model.ecl.tau=0.9"}, []string{"model.ecl.tau has no effect: nothing in a run of gcn on these data reads it", "model.edges.mu has no effect: nothing in a run of gcn on these data reads it"}},
		// The order of propagation counts with one of the classifiers alone.
		{"ecl-gsr", `"model.classifier" = ["gcn", "propagation", "acm"]
"model.propagation.order" = { integer = [1, 10] }
"model.layers" = { choice = [1, 2, 3], when = { "model.classifier" = ["gcn", "acm"] } }`, nil, nil},
		{"linear", "", nil, nil},
	} {
		s := tinySearch(t, nil)
		s.Model, s.Space, s.Trials, s.Rungs, s.Set = c.model, nil, 1, []int{1}, append(s.Set, c.set...)
		if c.space != "" {
			s.Space = mustSpace(t, c.space)
		}
		var got []string
		s.Warn = func(text string) { got = append(got, text) }
		if _, err := s.begin(); err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%s: warnings %q, want %q, error %v", c.model, got, c.want, err)
		}
	}
}

func TestNoise(t *testing.T) {
	for _, c := range []struct {
		a, b  []float64
		noise bool
	}{
		{[]float64{80, 82, 81}, []float64{79, 81, 80}, false}, // one better each time
		{[]float64{80, 82, 81}, []float64{83, 78, 81}, true},
		{[]float64{80, 80}, []float64{80, 80}, false}, // equal: the better by memory stays
		{[]float64{81}, []float64{80}, false},
	} {
		if got := withinNoise(c.a, c.b); got != c.noise {
			t.Errorf("%v and %v: %v", c.a, c.b, got)
		}
	}
}
