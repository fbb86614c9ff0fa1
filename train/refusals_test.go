package train

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/gsrc-dev/gsrc/compiler"
	"github.com/gsrc-dev/gsrc/data"
	"github.com/gsrc-dev/gsrc/ir"
	"github.com/gsrc-dev/gsrc/models"
)

// What cannot be trained is refused with the option that asks for it, before there is a folder.
func TestRefusedBeforeTheFolder(t *testing.T) {
	ds := synthetic(t, 1)
	for _, c := range []struct{ model, set, want string }{
		{"grcn", "train.pretrain_steps=3", "train.pretrain_steps=3 asks for steps that grcn has none of (its program has no function @pretrain): set it to 0"},
		{"lds", "train.pretrain_steps=1", "train.pretrain_steps=1 asks for steps that lds has none of"},
		{"stable", "train.joint_every=4", "train.joint_every=4 asks for steps that stable has none of (its program has no function @joint): set it to 0"},
		{"stable", "candidates.structure=raw", "candidates.structure=raw leaves the encoder out, whose embedding the classifier of stable reads: take refined, or"},
		{"sublime", "train.sampler=edges", "train.sampler=edges does not work for sublime: its contrastive steps learn edges of all nodes; take full"},
	} {
		dir := filepath.Join(t.TempDir(), "run")
		cfg := configure(t, c.model, "train.pretrain_steps=0", "train.joint_every=0", c.set)
		_, err := Train(context.Background(), Job{Model: c.model, Task: Nodes(ds)}, cfg, Options{Dir: dir})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s with %s: %v, want %q", c.model, c.set, err, c.want)
		}
		if _, err := os.Stat(dir); !os.IsNotExist(err) {
			t.Errorf("%s with %s: the folder is there (%v)", c.model, c.set, err)
		}
	}
}

// What a refusal for memory advises is taken, and makes a run take less.
func TestAdviceOnMemory(t *testing.T) {
	ds := synthetic(t, 1)
	for model, want := range map[string]string{
		"gcn":     "lower model.hidden, or take train.sampler=neighbors, which trains on batches",
		"gen":     "lower candidates.k or model.hidden",
		"grcn":    "lower candidates.k or model.hidden",
		"idgl":    "lower candidates.k or model.hidden",
		"prognn":  "lower candidates.k or model.hidden",
		"lds":     "lower candidates.k, model.lds.steps or model.hidden",
		"stable":  "lower candidates.k, model.encoder.hidden or model.hidden",
		"sublime": "lower train.anchors, candidates.k, model.encoder.hidden or model.hidden",
		"ecl-gsr": "lower train.anchors, candidates.k, model.encoder.hidden or model.hidden, or take train.sampler=edges, or take train.sampler=neighbors, which trains on batches",
	} {
		sets := []string{"candidates.k=12", "train.anchors=120"}
		if slices.Contains([]string{"gen", "grcn", "idgl", "prognn", "lds"}, model) {
			sets = append(sets, "train.pretrain_steps=0")
		}
		total := func(more ...string) (*trainer, int) {
			tr := started(t, Job{Model: model, Task: Nodes(ds)}, configure(t, model, append(sets, more...)...), Options{})
			defer tr.close()
			f, _ := forecastOf(t, tr)
			sum := 0
			for _, x := range f.Functions {
				sum += x.Bytes()
			}
			for _, x := range f.Parts {
				sum += x.Bytes
			}
			return tr, sum
		}
		tr, all := total()
		got := tr.job.Task.advice(tr)
		if got != want {
			t.Errorf("%s: %q, want %q", model, got, want)
		}
		lower, _, _ := strings.Cut(strings.TrimPrefix(got, "lower "), ", or ")
		for _, option := range strings.Split(strings.ReplaceAll(lower, " or ", ", "), ", ") {
			n, err := strconv.Atoi(tr.cfg.Value(option))
			if err != nil {
				t.Fatal(err)
			}
			if _, less := total(option + "=" + strconv.Itoa(n/2)); less >= all {
				t.Errorf("%s takes %d bytes, and %d with half of %s", model, all, less, option)
			}
		}
		for _, way := range strings.Split(got, ", or ")[1:] {
			option := strings.TrimSuffix(strings.TrimPrefix(way, "take "), ", which trains on batches")
			total(option)
		}
	}
}

// A program of other sizes than the data's is refused by what it was written for.
func TestProgramOfOtherSizes(t *testing.T) {
	ds := synthetic(t, 1)
	cfg := configure(t, "gcn")
	for want, other := range map[string]*data.Dataset{
		"whole.gsr is written for 30 features (@train has %x: f32[N,30]), and the data have 40": synthetic(t, 1, "synthetic.features=30"),
		"whole.gsr is written for 2 classes":                                                    synthetic(t, 1, "synthetic.classes=2"),
	} {
		m, err := Nodes(other).Module("gcn", cfg)
		if err != nil {
			t.Fatal(err)
		}
		dir := filepath.Join(t.TempDir(), "run")
		_, err = Train(context.Background(), Job{Model: "whole.gsr", Module: m, Task: Nodes(ds)}, cfg, Options{Dir: dir})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
		if _, err := os.Stat(dir); !os.IsNotExist(err) {
			t.Errorf("the folder is there (%v)", err)
		}
	}
}

// A program whose functions take or give other values than training does is refused, with the
// place, before it has a folder.
func TestSignatures(t *testing.T) {
	ds := synthetic(t, 1)
	cfg := configure(t, "mlp")
	whole, err := Nodes(ds).Module("mlp", cfg)
	if err != nil {
		t.Fatal(err)
	}
	text := whole.String()
	firstParam := "$" + whole.Params[0].Name
	gcn, err := Nodes(ds).Module("gcn", configure(t, "gcn"))
	if err != nil {
		t.Fatal(err)
	}
	printed, err := compiler.Compile(gcn, compiler.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for want, change := range map[string][2]string{
		"training gives @train no %idx; it gives %g, ":                            {"%train_idx", "%idx"},
		"@train takes %train_idx: i64[N], and training gives i64[T]":              {"[T", "[N"},
		"the parameter $x has the name of an argument of @train; give it another": {firstParam, "$x"},
		"@classify has no result logits: f32[N,C]":                                {"-> (logits:", "-> (scores:"},
		"@classify draws random numbers (dropout), and is part of what predicts; only functions that learn": {
			"%softmax = softmax %linear_2", "%drawn = dropout %linear_2 {rate=0.5, stream=\"d\"} : f32[N,3]\n  %softmax = softmax %drawn"},
		"no function reads the parameter $unread: remove it, or read it": {"param " + firstParam, "param $unread: f32[3]\nparam " + firstParam},
		"@train reads what @train.setup computes: the program was printed after the pass hoist, and training takes one from before it; print it with --print-after=input": {
			text, printed.Module.String()},
	} {
		m, err := ir.Parse("own.gsr", strings.ReplaceAll(text, change[0], change[1]))
		if err != nil {
			t.Fatal(err)
		}
		dir := filepath.Join(t.TempDir(), "run")
		var at *ir.SyntaxError
		if _, err = Train(context.Background(), Job{Model: "own.gsr", Module: m, Task: Nodes(ds)}, cfg, Options{Dir: dir}); !errors.As(err, &at) || !strings.Contains(err.Error(), want) || at.Line == 0 {
			t.Errorf("%v, want %q", err, want)
		}
		if _, err := os.Stat(dir); !os.IsNotExist(err) {
			t.Errorf("the folder is there (%v)", err)
		}
	}
}

// The programs of all learners of edges take what training gives, and one whose @classify takes
// anything else is refused with the place and with what there is.
func TestSignaturesOfLearners(t *testing.T) {
	ds := synthetic(t, 1)
	for _, model := range models.All {
		if !model.Refines {
			continue
		}
		m, err := Nodes(ds).Module(model.Name, configure(t, model.Name))
		if err != nil {
			t.Fatal(err)
		}
		before, classify, _ := strings.Cut(m.String(), "func @classify(")
		for text, want := range map[string]string{classify: "", regexp.MustCompile(`%(x|embedding)\b`).ReplaceAllString(classify, "%y"): "training gives @classify no %y; it gives "} {
			m, err := ir.Parse("own.gsr", before+"func @classify("+text)
			if err != nil {
				t.Fatal(err)
			}
			var at *ir.SyntaxError
			if err := buildProgram(&trainer{job: Job{Module: m, Task: Nodes(ds)}, info: Nodes(ds).Info()}); want == "" && err != nil || want != "" && (!errors.As(err, &at) || !strings.Contains(err.Error(), want) || at.Line == 0) {
				t.Errorf("%s: %v, want %q", model.Name, err, want)
			}
		}
	}
}

// An interruption before the first phase names none.
func TestInterruptedBeforeTheFirstStep(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err := Train(ctx, Job{Model: "prognn", Task: Nodes(synthetic(t, 1))}, configure(t, "prognn", "train.pretrain_steps=0"), Options{})
	if !errors.Is(err, ErrInterrupted) || err.Error() != "interrupted before the first step" {
		t.Errorf("%v", err)
	}
}

// A program whose step moves nothing is refused before it trains.
func TestRefusedStepWithoutGradients(t *testing.T) {
	ds, cfg := synthetic(t, 1), configure(t, "mlp")
	m, err := Nodes(ds).Module("mlp", cfg)
	if err != nil {
		t.Fatal(err)
	}
	delete(m.Func("train").Attrs, "differentiate")
	if _, err := Train(context.Background(), Job{Model: "mlp.gsr", Module: m, Task: Nodes(ds)}, cfg, Options{}); err == nil || !strings.Contains(err.Error(), `@train moves no parameter: write {differentiate="loss"}`) {
		t.Errorf("%v", err)
	}
}

// Refusals name options as --set takes them.
func TestRefusedOptions(t *testing.T) {
	for set, want := range map[string]string{
		"model.edges.judge=evidence": "model.edges.judge must be embedding for idgl",
		"model.classifier=gat":       "model.classifier must be gcn for idgl",
	} {
		if _, err := Nodes(synthetic(t, 1)).Module("idgl", configure(t, "idgl", set)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", set, err, want)
		}
	}
}
