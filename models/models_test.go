package models

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/gsrc-dev/gsrc/ir"
)

func small() Options {
	o := Default()
	o.Features, o.Classes, o.Norm = 5, 3, "l1" // the encoder has l2 in any case
	return o
}

// The functions that the training loop and the exporter look for.
func TestFunctions(t *testing.T) {
	for name, want := range map[string]string{
		"ecl-gsr": "energy pretrain joint fit encode probability refine score classify",
		"grcn":    "joint fit encode probability refine score classify",
		"stable":  "pretrain encode probability refine fit classify",
		"sublime": "begin pretrain encode probability refine fit classify",
		"gen":     "similar encode probability refine fit classify",
		"idgl":    "similar probability joint fit refine classify",
		"prognn":  "similar probability begin joint refine fit classify",
		"lds":     "similar probability begin inner joint refine fit classify",
		"gcn":     "train classify",
		"mlp":     "train classify",
		"grand":   "train classify",
		"acm":     "train classify",
		"gcnii":   "train classify",
		"sage":    "train classify",
		"gin":     "train classify",
		"linear":  "train classify",

		"label-propagation": "train classify",
	} {
		m, err := Lookup(name)
		if err != nil {
			t.Fatal(err)
		}
		program := m.Build(small())
		if err := ir.Verify(program); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		var got []string
		for _, f := range program.Funcs {
			got = append(got, f.Name)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s has the functions %v, want %s", name, got, want)
		}
	}
	if _, err := Lookup("gcm"); err == nil || !strings.Contains(err.Error(), "gcn") {
		t.Errorf("an unknown model: %v", err)
	}
}

// Known labels are read where nodes are classified, in no function that anything is
// trained by, and not where whole graphs are.
func TestKnownLabels(t *testing.T) {
	o := small()
	o.Smooth.Alpha, o.Smooth.Correct = 0.5, 0.5
	for _, model := range All {
		p, err := model.Program(o, false)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range p.Funcs {
			if reads := f.Arg(KnownLabels) != nil; reads != (f.Name == "classify") {
				t.Errorf("%s: @%s reads known labels: %v", model.Name, f.Name, reads)
			}
		}
		if slices.Contains([]string{"gen", "idgl", "lds", "prognn"}, model.Name) {
			o := o
			o.KnownLabels = 0.5
			if _, err := model.Program(o, false); err == nil || !strings.Contains(err.Error(), "reads none; model.smooth.alpha spreads") {
				t.Errorf("%s: %v", model.Name, err)
			}
		}
		if model.Graphs == nil {
			continue
		}
		if _, err := model.Program(o, true); err == nil || !strings.Contains(err.Error(), "smooth.alpha must be 0") {
			t.Errorf("%s of graphs: %v", model.Name, err)
		}
	}
}

// What switches a part off leaves it out of the program.
func TestSwitches(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*Options)
		gone   string
	}{
		{"no generative term", func(o *Options) { o.ECL.Alpha = 0 }, "sgld_sample"},
		{"no Langevin steps", func(o *Options) { o.ECL.Steps = 0 }, "sgld_sample"},
		{"no masking", func(o *Options) { o.Views.Mask = 0 }, "mask_features"},
		{"no dropped edges", func(o *Options) { o.Views.Edges = 0 }, "drop_edges"},
		{"one sample", func(o *Options) { o.Edges.Samples = 1 }, "consistency %"},
		{"no consistency", func(o *Options) { o.Edges.Consistency = 0 }, "consistency %"},
		{"no dropout", func(o *Options) { o.Dropout, o.InputDropout = 0, 0 }, "dropout"},
		{"balanced classes", func(o *Options) { o.ClassWeights = "balanced" }, "%labels: "},
		{"no normalisation", func(o *Options) { o.Norm = "none" }, "l1_normalize"},
		{"no propagation", func(o *Options) {}, "sample0.nodes"},
	} {
		o := small()
		with := eclGSR(o).String()
		if c.name == "no propagation" {
			o.Classifier = "propagation"
			with = eclGSR(o).String()
			o.Classifier = "gcn"
		}
		c.change(&o)
		without := eclGSR(o).String()
		if !strings.Contains(with, c.gone) || strings.Contains(without, c.gone) {
			t.Errorf("%s: %q is in the program by default: %v, after the change: %v", c.name, c.gone, strings.Contains(with, c.gone), strings.Contains(without, c.gone))
		}
	}
}

// IDGL drops entries of the first turn's graph in its steps, and none where it classifies.
func TestIDGLDropsEntries(t *testing.T) {
	o := small()
	for _, rate := range []float64{0, 0.5} {
		o.IDGL.DropEdges = rate
		m := idgl(o)
		for _, stream := range []string{"turn0.similar", "turn0.edges", "turn0.self"} {
			text := fmt.Sprintf("rate=0.5, stream=%q", stream)
			if n := strings.Count(m.Func("joint").String(), text); n != map[float64]int{0: 0, 0.5: 1}[rate] {
				t.Errorf("with the rate %g @joint has %s %d times", rate, text, n)
			}
		}
		for _, name := range []string{"classify", "probability"} {
			if strings.Contains(m.Func(name).String(), "dropout") {
				t.Errorf("with the rate %g @%s drops", rate, name)
			}
		}
	}
}

func TestValidate(t *testing.T) {
	if err := Default().Validate(); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*Options){
		"hidden":                 func(o *Options) { o.Hidden = 0 },
		"dropout":                func(o *Options) { o.Dropout = 1 },
		"class_weights":          func(o *Options) { o.ClassWeights = "even" },
		"norm":                   func(o *Options) { o.Norm = "l3" },
		"classifier":             func(o *Options) { o.Classifier = "gcm" },
		"propagation.order":      func(o *Options) { o.Propagation.Order = -1 },
		"propagation.drop_nodes": func(o *Options) { o.Propagation.DropNodes = 1 },
		"gcnii.alpha":            func(o *Options) { o.GCNII.Alpha = 1.5 },
		"gat.heads":              func(o *Options) { o.GAT.Heads = 0 },
		"gat.attention_dropout":  func(o *Options) { o.GAT.AttentionDropout = 1 },
		"encoder.kind":           func(o *Options) { o.Encoder.Kind = "linear" },
		"ecl.tau":                func(o *Options) { o.ECL.Tau = 0 },
		"ecl.reg":                func(o *Options) { o.ECL.Reg = "sum" },
		"views.blur":             func(o *Options) { o.Views.Blur = -0.1 },
		"edges.old_hi":           func(o *Options) { o.Edges.OldHi = 1 },
		"edges.new_lo":           func(o *Options) { o.Edges.NewLo = 0 },
		"edges.samples":          func(o *Options) { o.Edges.Samples = 0 },
		"edges.mode":             func(o *Options) { o.Edges.Mode = "sampled" },
	} {
		o := Default()
		change(&o)
		if err := o.Validate(); err == nil || !strings.HasPrefix(err.Error(), "model."+name+" ") {
			t.Errorf("%s out of range: got %v", name, err)
		}
	}
}
