package config

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gsrc-dev/gsrc/graph"
	"github.com/gsrc-dev/gsrc/models"
)

func load(t *testing.T, model, dataset string, sets ...string) *Config {
	t.Helper()
	c, err := Load(model, dataset, "", sets)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// default.toml has every option, and every value of every built-in file says
// where it comes from.
func TestDefaultsAreComplete(t *testing.T) {
	files, err := fs.Glob(defaults, "defaults/*.toml")
	if err != nil {
		t.Fatal(err)
	}
	ofData, err := fs.Glob(defaults, "defaults/data/*.toml")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range append(files, ofData...) {
		name := strings.TrimSuffix(strings.TrimPrefix(f, "defaults/"), ".toml")
		l, err := builtIn(name)
		if err != nil {
			t.Fatal(err)
		}
		c := &Config{sources: map[string]string{}}
		if err := c.applyTree("", l.tree, l.sources); err != nil {
			t.Errorf("%s: %v", f, err)
		}
		for key, source := range c.sources {
			if source == "" {
				t.Errorf("%s: %s has no comment that says where its value comes from", f, key)
			}
		}
		if name == "default" {
			for _, key := range KeyNames() {
				if _, ok := c.sources[key]; !ok {
					t.Errorf("default.toml lacks %s", key)
				}
			}
		}
		dataset, model, _ := strings.Cut(name, ".")
		if dataset, of := strings.CutPrefix(dataset, "data/"); of && dataset != "synthetic" && Sizes[dataset] == (Size{}) {
			t.Errorf("%s: Sizes has no %s", f, dataset)
		}
		if _, err := Load(model, "", filepath.FromSlash(f), nil); err != nil { // in range, too
			t.Error(err)
		}
	}
	for _, name := range KeyNames() {
		if Keys()[name].Doc == "" {
			t.Errorf("option %s has no explanation", name)
		}
	}
}

func TestLayers(t *testing.T) {
	file := filepath.Join(t.TempDir(), "my.toml")
	if err := os.WriteFile(file, []byte("[train]\nepochs = 7\nlr = 1  # by hand\n[model.ecl]\ntau = 0.25\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := Load("ecl-gsr", "cora", file, []string{"train.epochs=9", "model.norm = l2", "candidates.mutual=true", `data.split="random:0.6,0.2,0.2"`})
	if err != nil {
		t.Fatal(err)
	}
	if c.Train.Epochs != 9 || c.Train.LR != 1 || c.Model.ECL.Tau != 0.25 || c.Model.Norm != "l2" || !c.Candidates.Mutual || c.Data.Split != "random:0.6,0.2,0.2" {
		t.Errorf("overrides are not in force: %+v", c)
	}
	for key, want := range map[string]string{"train.epochs": "--set", "train.lr": "by hand", "model.ecl.tau": file, "model.ecl.beta": "paper"} {
		if got := c.sources[Canonical(key)]; got != want {
			t.Errorf("source of %s is %q, want %q", key, got, want)
		}
	}
}

// The options of a file, set one by one, are those of the file.
func TestFileOptions(t *testing.T) {
	file := filepath.Join(t.TempDir(), "own.toml")
	const text = "[train]\nepochs = 7\nlr = 1e-5\n[candidates]\nmutual = false\n[data]\nlabel = \"a \\\"b\\\" = c\"\n"
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	set, err := FileOptions(file)
	if err != nil || len(set) != 4 {
		t.Fatalf("%q, error %v", set, err)
	}
	read, err := Load("gcn", "", file, nil)
	if err != nil {
		t.Fatal(err)
	}
	if again := load(t, "gcn", "", set...); again.Hash() != read.Hash() || again.Data.Label != `a "b" = c` {
		t.Errorf("by %q: %+v, of the file %+v", set, again, read)
	}
	if _, err := FileOptions(file + "x"); err == nil {
		t.Error("a file that there is not")
	}
}

// A user's file or folder may be called as a layer is that is not a data set's.
func TestDataNamedAsALayer(t *testing.T) {
	want := load(t, "ecl-gsr", "mine").Hash()
	for _, name := range []string{"few", "own", "unlike", "unrelated", "graphs", "tables", "default", "data", "few.ecl-gsr", "default.gin", "cora.ecl-gsr", "data/cora", "../cora", `a\b`, ""} {
		if got := load(t, "ecl-gsr", name).Hash(); got != want {
			t.Errorf("data called %q have defaults of their own", name)
		}
		if Tuned("ecl-gsr", name) {
			t.Errorf("data called %q count as tuned", name)
		}
	}
	if load(t, "ecl-gsr", "cora").Hash() == want || !Tuned("ecl-gsr", "cora") {
		t.Error("cora has no defaults of its own")
	}
}

func TestErrors(t *testing.T) {
	for _, c := range []struct{ set, want string }{
		{"model.ecl.taau=1", "did you mean model.ecl.tau?"},
		{"tau=1", "did you mean model.ecl.tau?"},
		{"ecl.tau=1", "did you mean model.ecl.tau?"},
		{"temperature=1", "did you mean model.edges.temperature?"},
		{"epochs=1", "did you mean train.epochs or deepwalk.epochs?"},
		{"trian.epochs=1", "did you mean train.epochs?"},
		{"foo.epochss=1", "did you mean train.epochs?"},
		{"zzzzzzzzzzzzzzz=1", "--help-config"},
		{"model.ecl=1", "is a section"},
		{"train.epochs=ten", `train.epochs must be an integer, got "ten"`},
		{"train.epochs=1.5", `train.epochs must be an integer, got "1.5"`},
		{"train.epochs=99999999999", "train.epochs must be an integer of at most 2147483647, got 99999999999"},
		{"train.lr=fast", `train.lr must be a finite number, got "fast"`},
		{"train.lr=NaN", "train.lr must be a finite number"},
		{"candidates.mutual=yes", `candidates.mutual must be true or false, got "yes"`},
		{"train.sampler=all", `train.sampler must be one of full, edges, neighbors, got "all"`},
		{"data.weights=use", `data.weights must be one of "", ignore, log1p, got "use"`},
		{"train.lr=-1", "train.lr must be greater than 0, got -1.0"},
		{"model.dropout=1", "model.dropout must be within [0, 1), got 1.0"},
		{"model.ecl.tau=0", "model.ecl.tau must be greater than 0, got 0.0"},
		{"train.lr", "write it as key=value"},
	} {
		_, err := Load("gcn", "cora", "", []string{c.set})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("--set %s: error %v, want one with %q", c.set, err, c.want)
		}
	}
	for _, c := range []struct{ text, want string }{
		{"[train]\nepochs = \"many\"\n", `train.epochs must be an integer, got "many"`},
		{"[train]\nepoch = 3\n", "did you mean train.epochs?"},
		{"[model.ecl]\ntau = true\n", "model.ecl.tau must be a finite number, got true"},
		{"[model.elc]\ntau = 1\n", "did you mean model.ecl"},
		{"[model.ecl]\nmodel = 1\n", "there is no option model.ecl.model"},
		{"[train\n", "line "},
		{"[train]\nlr = 1\nlr = 2\n", "line 3"},
		{"train = 3\n", "train is a section"},
		{"[train.lr]\nx = 3\n", "train.lr is an option, not a section"},
		{"[[train]]\nlr = 1\n", "train is a section"},
	} {
		file := filepath.Join(t.TempDir(), "bad.toml")
		if err := os.WriteFile(file, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := Load("gcn", "cora", file, nil)
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), file) {
			t.Errorf("%q: error %v, want one with the file and %q", c.text, err, c.want)
		}
	}
	if _, err := Load("gcn", "cora", "absent.toml", nil); err == nil {
		t.Error("a configuration file that does not exist was accepted")
	}
}

// Files of earlier runs may have options that are no more, with the value that stands for what is
// done now; with another one, and on the command line, they are refused.
func TestRemovedOptions(t *testing.T) {
	read := func(text string) (*Config, error) {
		file := filepath.Join(t.TempDir(), "config.toml")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return Load("gcn", "cora", file, nil)
	}
	want := load(t, "gcn", "cora").Hash()
	for _, line := range []string{"judge_rounds = 2", "judge_distrust = 0.0", "prior_strength = 0.0"} {
		if c, err := read("[model.edges]\n" + line + "\n"); err != nil || c.Hash() != want {
			t.Errorf("%s: error %v, or another hash", line, err)
		}
	}
	for _, line := range []string{"judge_rounds = 3", "prior_strength = 2.5", "judge_rounds = 2.0"} {
		if _, err := read("[model.edges]\n" + line + "\n"); err == nil || !strings.Contains(err.Error(), "is no more") {
			t.Errorf("%s: error %v", line, err)
		}
	}
	if _, err := Load("gcn", "cora", "", []string{"model.edges.prior_strength=0.0"}); err == nil || !strings.Contains(err.Error(), "any more") {
		t.Errorf("--set: error %v", err)
	}
}

// The hash of a configuration is what runs, checkpoints and sweeps are found by. None of
// these may change, whatever options are called, but where a data set gets other defaults.
func TestHashIsFrozen(t *testing.T) {
	for _, c := range []struct{ model, data, want string }{
		{"ecl-gsr", "cora", "78f42b99bb4aa6966355f69dbdf65aeaaa7068487558175c61beb0d9fbe308d1"},
		{"gcn", "cora", "738efbe252543d618729ab39a976761260f17a745db42424ac4462eb9f8ef8db"},
		{"gin", "mutag", "15e70f4b7252016a1f817415f481b5956e92f6f05af187e4582ad91d9f6c493d"},
		{"ecl-gsr", "texas", "f53e8e9803bd89fe192fbd2d0be6bc68e3a2a18e139dfe5cf1a9b755643633c1"},
		{"gat", "citeseer", "aa897a0fb1e7c34e77591440e3cc5ca8b363009ca8185b3ce3af8ce48e4522e2"},
	} {
		if got := load(t, c.model, c.data).Hash(); got != c.want {
			t.Errorf("%s on %s: hash %s, want %s", c.model, c.data, got, c.want)
		}
	}
	var now []string
	for _, n := range frozen() {
		if n.removed == "" {
			now = append(now, n.now)
		}
	}
	slices.Sort(now)
	if want := slices.Sorted(slices.Values(KeyNames())); !slices.Equal(now, want) {
		t.Errorf("hash_names.txt has the options\n%s\nand there are\n%s", now, want)
	}
}

// What judges edges by default has changed, for new runs alone: those from before the option
// was there go on as they were, and models that judge no edges keep their hashes.
func TestJudgeOfEarlierRuns(t *testing.T) {
	for _, c := range []struct{ model, data, want string }{
		{"ecl-gsr", "", models.JudgeEvidence}, {"ecl-gsr", "unheard-of", models.JudgeEvidence},
		{"gcn", "", models.JudgeEmbedding},
	} {
		if got := load(t, c.model, c.data).Model.Edges.Judge; got != c.want {
			t.Errorf("%s on %q judges edges by %s, want %s", c.model, c.data, got, c.want)
		}
	}
	if c, err := LoadGraphs("ecl-gsr", "mutag", "", nil); err != nil || c.Model.Edges.Judge != models.JudgeEmbedding {
		t.Errorf("ecl-gsr on mutag: error %v, or another judge than %s", err, models.JudgeEmbedding)
	}
	now := load(t, "ecl-gsr", "", "model.edges.judge="+models.JudgeEmbedding)
	var b strings.Builder
	if err := now.Encode(&b); err != nil {
		t.Fatal(err)
	}
	lines := slices.DeleteFunc(strings.SplitAfter(b.String(), "\n"), func(l string) bool { return strings.HasPrefix(l, "judge = ") })
	file := filepath.Join(t.TempDir(), "config.toml")
	if err := os.WriteFile(file, []byte(strings.Join(lines, "")), 0o600); err != nil {
		t.Fatal(err)
	}
	earlier, err := Read(file)
	if err != nil {
		t.Fatal(err)
	}
	if earlier.Model.Edges.Judge != models.JudgeEmbedding || earlier.Hash() != now.Hash() {
		t.Errorf("without the option a run judges edges by %s, and its hash is %s, want %s", earlier.Model.Edges.Judge, earlier.Hash(), now.Hash())
	}
}

// A range that no rule knows would let everything pass.
func TestRangesAreKnown(t *testing.T) {
	n := 0
	for name, k := range Keys() {
		if strings.HasPrefix(name, "model.") || k.Range == "" {
			continue
		}
		n++
		if ranges[k.Range] == nil {
			t.Errorf("%s: there is no range %q", name, k.Range)
		}
	}
	if n < 30 {
		t.Errorf("%d options have a range", n)
	}
}

// A renamed option keeps its place and its name in the hash, and its old name works.
func TestRenamedOption(t *testing.T) {
	base := load(t, "gcn", "cora")
	var table []frozenName
	for _, n := range frozen() {
		if n.now == "train.lr" {
			n = parseFrozen("# before it was called lr\ntrain.rate train.lr")[0]
		}
		table = append(table, n)
	}
	if base.hash(table) == base.Hash() {
		t.Error("the name in the table is not the one that is hashed")
	}
	defer func(f func() []frozenName, r func() map[string]string) { frozen, renamed = f, r }(frozen, renamed)
	frozen = func() []frozenName { return table }
	renamed = func() map[string]string { return map[string]string{"train.rate": "train.lr"} }
	file := filepath.Join(t.TempDir(), "old.toml")
	if err := os.WriteFile(file, []byte("[train]\nrate = 0.5\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := Load("gcn", "cora", file, nil)
	if err != nil {
		t.Fatal(err)
	}
	if c.Train.LR != 0.5 || c.sources[Canonical("train.rate")] != file || c.Value("train.rate") != "0.5" {
		t.Errorf("the old name gave %v, from %q", c.Train.LR, c.sources[Canonical("train.lr")])
	}
	if d := load(t, "gcn", "cora", "train.rate=0.5"); d.Hash() != c.Hash() || d.Hash() != load(t, "gcn", "cora", "train.lr=0.5").Hash() {
		t.Error("the two names give different hashes")
	}
}

// What Write writes reads back to the same values and sources, and twice to the
// same bytes.
func TestWriteReadsBack(t *testing.T) {
	c := load(t, "ecl-gsr", "cora", "train.lr=1e-7", "train.seed=12", `data.split=a "quoted" # text`, "model.edges.mode=threshold")
	path := filepath.Join(t.TempDir(), "config.toml")
	if err := c.Write(path); err != nil {
		t.Fatal(err)
	}
	d, err := Read(path)
	if err != nil {
		t.Fatal(err)
	}
	if d.Hash() != c.Hash() || d.Data.Split != c.Data.Split || d.Train.LR != 1e-7 {
		t.Errorf("values changed: %+v, want %+v", d, c)
	}
	var a, b bytes.Buffer
	if err := c.Encode(&a); err != nil {
		t.Fatal(err)
	}
	if err := d.Encode(&b); err != nil {
		t.Fatal(err)
	}
	if a.String() != b.String() {
		t.Errorf("text changed:\n%s\nwant\n%s", b.String(), a.String())
	}
	if !strings.Contains(a.String(), "lr = 1e-07  # --set\n") {
		t.Errorf("the source of an overridden value is missing:\n%s", a.String())
	}
}

func TestHash(t *testing.T) {
	base := load(t, "gcn", "cora")
	if h := load(t, "gcn", "cora", "train.threads=3", "train.checkpoint_every=5").Hash(); h != base.Hash() {
		t.Error("options that change no result change the hash")
	}
	seen := map[string]bool{base.Hash(): true}
	for _, s := range []string{"train.seed=1", "train.lr=0.02", "model.hidden=17", "candidates.mutual=true", "data.split=random:0.5,0.2,0.3"} {
		c := base.Clone()
		if err := c.Set(s); err != nil {
			t.Fatal(err)
		}
		if seen[c.Hash()] {
			t.Errorf("%s does not change the hash", s)
		}
		seen[c.Hash()] = true
	}
	for name, k := range Keys() { // runs from before an option was there keep their hash
		if k.Neutral == "" {
			continue
		}
		c := base.Clone()
		if err := c.Set(name + "=" + k.Neutral); err != nil {
			t.Fatalf("the neutral value of %s: %v", name, err)
		}
		if f, _, _ := c.field(name); literal(f) != k.Neutral {
			t.Errorf("the neutral value of %s is written %s, not %s", name, literal(f), k.Neutral)
		}
	}
	const before = "738efbe252543d618729ab39a976761260f17a745db42424ac4462eb9f8ef8db" // of gcn on cora with the options of the first release
	if got := base.Hash(); got != before {
		t.Errorf("the hash of a configuration with neutral values has changed to %s", got)
	}
	if base.Train.Seed != 0 {
		t.Error("a change of a clone reached the original")
	}
}

// The generator's defaults are those of its package.
func TestSyntheticDefaults(t *testing.T) {
	if got, want := load(t, "gcn", "").Synthetic.CSBM(0), graph.DefaultCSBM(); got != want {
		t.Errorf("default.toml has %+v, graph.DefaultCSBM is %+v", got, want)
	}
}

func TestList(t *testing.T) {
	list := load(t, "ecl-gsr", "cora").List()
	if len(list) != len(KeyNames()) || len(list) < 50 {
		t.Fatalf("%d options listed, want %d", len(list), len(KeyNames()))
	}
	for _, k := range list {
		if k.Default == "" || k.Source == "" || k.Doc == "" || k.Type == "" {
			t.Errorf("incomplete: %+v", k)
		}
	}
}

func TestSetValueAndValue(t *testing.T) {
	c := load(t, "ecl-gsr", "")
	for _, x := range []struct {
		key   string
		value any
		want  string
	}{
		{"train.lr", int64(1), "1.0"},
		{"train.lr", 1e-5, "1e-05"},
		{"candidates.k", int64(3), "3"},
		{"candidates.mutual", true, "true"},
		{"model.classifier", "gcn", `"gcn"`},
	} {
		if err := c.SetValue(x.key, x.value, "a grid"); err != nil {
			t.Fatal(err)
		}
		if got := c.Value(x.key); got != x.want || c.sources[Canonical(x.key)] != "a grid" {
			t.Errorf("%s = %s (%s), want %s", x.key, got, c.sources[Canonical(x.key)], x.want)
		}
		// What Value gives, Set reads.
		if err := c.Set(x.key + "=" + c.Value(x.key)); err != nil || c.Value(x.key) != x.want {
			t.Errorf("%s: %v, %s", x.key, err, c.Value(x.key))
		}
	}
	for key, want := range map[string]string{"train.lrs": "did you mean train.lr", "train.lr": "finite number", "train": "section"} {
		if err := c.SetValue(key, "fast", ""); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q", key, err, want)
		}
	}
	if c.Value("train.lrs") != "" {
		t.Error("an option that does not exist has a value")
	}
}

// The preset has options that there are, and says where its values come from.
func TestPreset(t *testing.T) {
	c, err := Load("ecl-gsr", "cora", Preset+"paper", []string{"model.ecl.tau=0.2"})
	if err != nil {
		t.Fatal(err)
	}
	if c.Model.Encoder.Layers != 3 || c.Model.Edges.Judge != "embedding" || c.Model.ECL.Tau != 0.2 || c.Source("model.ecl.reg") != "paper" {
		t.Errorf("%+v, reg from %q", c.Model, c.Source("model.ecl.reg"))
	}
	if _, err := Load("ecl-gsr", "", Preset+"papers", nil); err == nil || !strings.Contains(err.Error(), "there are general and paper") {
		t.Errorf("a preset that there is not: %v", err)
	}
}

// With the preset "general" only the defaults of all data are left.
func TestGeneralPreset(t *testing.T) {
	want, err := Load("ecl-gsr", "", "", nil)
	if err != nil {
		t.Fatal(err)
	}
	own := func(model, dataset, file string, sets []string) (*Config, error) {
		return LoadOwn(model, dataset, file, sets, Unrelated)
	}
	for _, load := range []func(model, dataset, file string, sets []string) (*Config, error){Load, LoadFew, own} {
		for _, name := range []string{"cora", "mine"} {
			got, err := load("ecl-gsr", name, Preset+"general", nil)
			if err != nil || got.Hash() != want.Hash() {
				t.Errorf("%s: %v, or other options than the general ones", name, err)
			}
		}
	}
	tables, err := LoadTables("sage", "mine", "", nil)
	if got, err2 := LoadTables("sage", "mine", Preset+"general", nil); err != nil || err2 != nil || got.Hash() != tables.Hash() {
		t.Errorf("tables: %v, %v, or other options", err, err2)
	}
}
