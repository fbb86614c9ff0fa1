package run

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gsrc-dev/gsrc/config"
	"github.com/gsrc-dev/gsrc/models"
)

func prepared(t *testing.T, o TrainOptions) (*Setup, []string) {
	t.Helper()
	var warned []string
	o.Warn = func(text string) { warned = append(warned, text) }
	if o.Data == "" {
		o.Data = "synthetic"
	}
	o.Set = append([]string{"synthetic.nodes=60", "synthetic.features=20"}, o.Set...)
	s, err := Prepare(o)
	if err != nil {
		t.Fatal(err)
	}
	return s, warned
}

func TestUnread(t *testing.T) {
	gcn, _ := prepared(t, TrainOptions{Model: "gcn"})
	file := filepath.Join(t.TempDir(), "mine.gsr")
	if err := os.WriteFile(file, []byte(gcn.Module.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	extended := filepath.Join(t.TempDir(), "extended.gsr")
	text := "extends gcn func @classifier(%x: f32[N,features], %g: graph<N,E>, %w: f32[E]) -> (logits: f32[N,classes]) { %y = gnn.gcn_conv %g, %w, %x, $classifier.0.weight, $classifier.0.bias : f32[N,hidden] %z = gnn.linear %y, $classifier.1.weight : f32[N,classes] return %z }"
	if err := os.WriteFile(extended, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct {
		model string
		set   []string
		want  []string
	}{
		{"gcn", []string{"model.hidden=32", "train.lr=0.5", "train.epochs=3", "train.select=auc"}, nil},
		{"gcn", []string{"model.gat.heads=4", "train.pretrain_steps=3", "candidates.k=3", "data.prepare=false"}, []string{"train.pretrain_steps", "model.gat.heads", "candidates.k", "data.prepare"}},
		{"gcn", []string{"train.pretrain_steps=3", "train.anchors=5", "deepwalk.walks=3"}, []string{"train.pretrain_steps", "train.anchors", "deepwalk.walks"}},
		{"gat", []string{"model.gat.heads=4"}, nil},
		{"gcn", []string{"model.known_labels=0.5", "model.class_weights=balanced"}, nil},
		{"ecl-gsr", []string{"candidates.k=3", "train.pretrain_steps=3", "model.edges.threshold=0.7", "model.edges.mode=threshold", "model.ecl.tau=0.3"}, nil},
		{"ecl-gsr", []string{"train.fanout=3", "candidates.keep=0.5", "model.edges.judge=evidence"}, []string{"train.fanout", "candidates.keep"}},
		{"ecl-gsr", []string{"train.sampler=edges", "train.fanout=3"}, nil},
		{"ecl-gsr", []string{"candidates.structure=raw", "candidates.keep=0.5", "candidates.k=4"}, []string{"candidates.k"}},
		{"ecl-gsr", []string{"model.classifier=gat", "model.gat.heads=2", "model.gin.eps=0.5"}, []string{"model.gin.eps"}},
		{"label-propagation", []string{"train.lr=0.5"}, []string{"train.lr"}},
		{file, []string{"model.hidden=32", "train.lr=0.5"}, []string{"model.hidden"}},
		{extended, []string{"model.hidden=32", "model.gat.heads=2", "model.dropout=0.2"}, []string{"model.dropout", "model.gat.heads"}},
	} {
		s, warned := prepared(t, TrainOptions{Model: x.model, Set: x.set})
		got, err := s.Unread()
		if err != nil {
			t.Fatal(err)
		}
		slices.Sort(got)
		slices.Sort(x.want)
		if !slices.Equal(got, x.want) {
			t.Errorf("%s %v: %v are unread, want %v", x.model, x.set, got, x.want)
		}
		if len(warned) != len(x.want) || len(warned) > 0 && !strings.HasPrefix(warned[0], got[0]+" has no effect") && len(got) == 1 {
			t.Errorf("%s %v: warned %q", x.model, x.set, warned)
		}
	}
}

// Collections of graphs have neither tables nor weights of edges.
func TestUnreadOfCollections(t *testing.T) {
	dir := smallCollection(t)
	for _, set := range []string{"data.weights=ignore", "data.weights=log1p", "data.prepare=false"} {
		name, _, _ := strings.Cut(set, "=")
		if _, warned := prepared(t, TrainOptions{Model: "gin", Data: dir, Set: []string{set}}); !slices.ContainsFunc(warned, func(s string) bool { return strings.HasPrefix(s, name+" has no effect") }) {
			t.Errorf("%s: warned %q", set, warned)
		}
	}
}

// The defaults of a model, on any data or on one data set, are options that it reads.
func TestDefaultsAreRead(t *testing.T) {
	files, err := filepath.Glob("../config/defaults/*.*.toml")
	if err != nil || len(files) < 10 {
		t.Fatal(files, err)
	}
	ofData, err := filepath.Glob("../config/defaults/data/*.*.toml")
	if err != nil || len(ofData) < 10 {
		t.Fatal(ofData, err)
	}
	for _, f := range append(files, ofData...) {
		dataset, model, _ := strings.Cut(strings.TrimSuffix(filepath.Base(f), ".toml"), ".")
		if m, err := models.Lookup(model); err != nil || m == nil {
			t.Errorf("%s is of no model: %v", f, err)
		}
		if slices.Contains([]string{"graphs", "mutag", "proteins", "collab"}, dataset) {
			continue // collections
		}
		if !slices.Contains(ofData, f) {
			dataset = ""
		}
		s, _ := prepared(t, TrainOptions{Model: model})
		s.Config, err = config.Load(model, dataset, f, nil)
		if err != nil {
			t.Fatal(err)
		}
		if s.Module, err = s.task.Module(model, s.Config); err != nil {
			t.Fatal(err)
		}
		plain, err := config.Load("", dataset, "", nil)
		if err != nil {
			t.Fatal(err)
		}
		got, err := s.unread(plain)
		got = slices.DeleteFunc(got, func(name string) bool { return name == "candidates.keep" }) // for candidates.structure=raw
		if err != nil || len(got) > 0 {
			t.Errorf("%s: %v are not read, %v", f, got, err)
		}
	}
}
