package run

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gsrc-dev/gsrc/data"
	"github.com/gsrc-dev/gsrc/graph"
	"github.com/gsrc-dev/gsrc/train"
)

// ecl-gsr has defaults for graphs that have none of their own, with few labels, too, which options
// override; not for prepared columns, graphs without labels, larger ones, and candidates of gsrc train auto.
func TestOwnData(t *testing.T) {
	ring := func(name, header string, cell func(i int) string) string {
		folder := filepath.Join(t.TempDir(), name)
		nodes, edges := header+"\n", "source,target\n"
		for i := range 60 {
			nodes += fmt.Sprintf("%d,%s\n", i, cell(i))
			edges += fmt.Sprintf("%d,%d\n", i, (i+2)%60)
		}
		for name, text := range map[string]string{"nodes.csv": nodes, "edges.csv": edges} {
			if err := os.MkdirAll(folder, 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		return folder
	}
	labelled := func(train int) func(i int) string {
		return func(i int) string {
			part := "test"
			if i < train {
				part = "train"
			} else if i < 30 {
				part = "val"
			}
			return fmt.Sprintf("%d,%d,%d,%s", i%3, i%5, i%2, part)
		}
	}
	const header = "id,a,b,label,split"
	half := ring("mine", header, labelled(20))
	for _, c := range []struct {
		folder, model string
		set           []string
		classifier    string
		rounds        int
	}{
		{half, "ecl-gsr", []string{"data.prepare=false"}, "sage", 3},
		{ring("little", header, labelled(4)), "ecl-gsr", []string{"data.prepare=false"}, "sage", 3},
		{half, "ecl-gsr", []string{"data.prepare=false", "model.classifier=gcn", "train.self_training=1"}, "gcn", 1},
		{half, "gcn", []string{"data.prepare=false"}, "gcn", 0},
		{half, "ecl-gsr", nil, "sage", 0}, // tables.ecl-gsr.toml
		{ring("mute", "id,a,b", func(i int) string { return fmt.Sprintf("%d,%d", i%3, i%5) }), "ecl-gsr", []string{"data.prepare=false"}, "gcn", 0},
		{ring("cora", header, labelled(20)), "ecl-gsr", []string{"data.prepare=false"}, "sage", 3}, // in name alone
	} {
		s, err := Prepare(TrainOptions{Model: c.model, Data: c.folder, Set: c.set})
		if err != nil {
			t.Fatal(err)
		}
		if m, rounds := s.Config.Model.Classifier, s.Config.Train.SelfTraining; m != c.classifier || rounds != c.rounds {
			t.Errorf("%s, %s, %v: classifier %s with %d rounds of self-training, want %s with %d", filepath.Base(c.folder), c.model, c.set, m, rounds, c.classifier, c.rounds)
		}
		if unread, err := s.Unread(); err != nil || len(unread) > 0 {
			t.Errorf("%s, %s, %v: %v unread, %v", filepath.Base(c.folder), c.model, c.set, unread, err)
		}
	}

	ds, err := data.Load(half, data.LoadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	ds.Columns = nil
	s, err := PrepareNodes(TrainOptions{Model: "ecl-gsr"}, ds)
	if err != nil || s.Config.Train.SelfTraining != 0 {
		t.Errorf("%v; a candidate has %d rounds of self-training", err, s.Config.Train.SelfTraining)
	}
	for want, ds := range map[string]*data.Dataset{"lacks its graph": nil, "graph or its features": {}, "0 rows of features": {Graph: ds.Graph, X: &data.Features{}}} {
		if _, err := PrepareNodes(TrainOptions{Model: "gcn"}, ds); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	large := *ds
	large.Graph = &graph.Graph{N: ownNodes + 1}
	c, err := nodeTask{ds: &large}.defaults()("ecl-gsr", "mine", "", nil)
	if err != nil || c.Model.Classifier != "gcn" {
		t.Errorf("%v; a larger graph has the classifier %s", err, c.Model.Classifier)
	}
}

// Structure learners have other defaults where most edges between training nodes join unlike ones, unless these are
// few, and ecl-gsr where classes are unrelated along them.
func TestUnlikeNeighbours(t *testing.T) {
	rare := func(ds *data.Dataset) *data.Dataset { // one in ten is of another class than the rest
		for i := range ds.Labels {
			ds.Labels[i] = int32(i % 10 / 9)
		}
		return ds
	}
	ring := func(classes, train int, steps ...int32) *data.Dataset {
		ds := &data.Dataset{Name: "mine", Classes: classes, Labels: make([]int32, 60), Graph: &graph.Graph{N: 60}, Splits: []data.Split{{}}}
		for i := range int32(60) {
			ds.Labels[i] = i % int32(classes)
			for _, s := range append(steps, 2) {
				ds.Graph.Edges = append(ds.Graph.Edges, [2]int32{min(i, (i+s)%60), max(i, (i+s)%60)})
			}
			if i < int32(train) {
				ds.Splits[0].Train = append(ds.Splits[0].Train, i)
			}
		}
		return ds
	}
	for _, c := range []struct {
		name    string
		ds      *data.Dataset
		encoder string
		keep    bool
		refined string
	}{
		{"unrelated neighbours", ring(3, 40), "diagonal", false, "acm"},
		{"neighbours by chance", ring(3, 40, 3, 1), "diagonal", false, "acm"},
		{"a rare class", rare(ring(2, 40, 3, 1)), "gcn", true, "sage"},
		{"unlike neighbours", ring(6, 40, 6, 1), "diagonal", false, "sage"},
		{"like neighbours", ring(2, 40), "gcn", true, "sage"},
		{"few edges", ring(3, 20), "gcn", true, "sage"},
	} {
		load := nodeTask{ds: c.ds}.defaults()
		sublime, err := load("sublime", "mine", "", nil)
		if err != nil {
			t.Fatal(err)
		}
		gen, err := load("gen", "mine", "", nil)
		if err != nil {
			t.Fatal(err)
		}
		refining, err := load("ecl-gsr", "mine", "", nil)
		if err != nil {
			t.Fatal(err)
		}
		if m := refining.Model; m.Classifier != c.refined || m.Edges.SameClass != (c.refined == "acm") {
			t.Errorf("%s: ecl-gsr has the classifier %s, same_class %v", c.name, m.Classifier, m.Edges.SameClass)
		}
		if e, keep := sublime.Model.Encoder.Kind, gen.Model.GEN.Keep; e != c.encoder || keep != c.keep {
			t.Errorf("%s: sublime has %s and gen %v, want %s and %v", c.name, e, keep, c.encoder, c.keep)
		}
	}
	set, err := nodeTask{ds: ring(3, 40)}.defaults()("sublime", "mine", "", []string{"model.encoder.kind=mlp"})
	if err != nil || set.Model.Encoder.Kind != "mlp" || set.Model.SUBLIME.Momentum != 0.9 {
		t.Errorf("%v; an option does not override the defaults, or all of them: %+v", err, set.Model)
	}
	published, err := nodeTask{ds: ring(3, 40)}.defaults()("sublime", "blogcatalog", "", nil)
	if err != nil || published.Model.SUBLIME.Momentum != 0.9999 {
		t.Errorf("%v; defaults of a data set do not come last", err)
	}
}

// The defaults of a data set are for that set, and for no other data of its name.
func TestDefaultsOfANameAlone(t *testing.T) {
	for _, x := range []struct {
		info train.TaskInfo
		want bool
	}{
		{train.TaskInfo{About: train.About{Name: "cora", Nodes: 2708, Features: 1433, Classes: 7}}, true},
		{train.TaskInfo{About: train.About{Name: "cora", Nodes: 2708, Features: 32, Classes: 7}, Structural: true}, true},
		{train.TaskInfo{About: train.About{Name: "cora", Nodes: 2708, Features: 32, Classes: 7}}, false},
		{train.TaskInfo{About: train.About{Name: "cora", Nodes: 2707, Features: 1433, Classes: 7}}, false},
		{train.TaskInfo{About: train.About{Name: "mutag", Graphs: 188, Nodes: 3371, Features: 7, Classes: 2}}, true},
		{train.TaskInfo{About: train.About{Name: "mutag", Nodes: 3371, Features: 7, Classes: 2}}, false},
		{train.TaskInfo{About: train.About{Name: "synthetic", Format: "synthetic"}}, true},
		{train.TaskInfo{About: train.About{Name: "synthetic", Format: "folder"}}, false},
		{train.TaskInfo{About: train.About{Name: "mine"}}, true},
	} {
		if got := datasetOf(x.info); (got == x.info.Name) != x.want {
			t.Errorf("%+v: %q", x.info, got)
		}
	}
	const at = "../data/testdata/folder-npz"
	var configs []string
	for name, noted := range map[string]bool{"cora": true, "mine": false} {
		dir := filepath.Join(t.TempDir(), name)
		if err := os.CopyFS(dir, os.DirFS(at)); err != nil {
			t.Fatal(err)
		}
		var notes []string
		s, err := Prepare(TrainOptions{Model: "ecl-gsr", Data: dir, Set: []string{"data.split=random:0.4,0.3,0.3"}, Note: func(text string) { notes = append(notes, text) }})
		if err != nil {
			t.Fatal(err)
		}
		configs = append(configs, s.Config.Hash())
		if is := strings.Contains(strings.Join(notes, " "), "its defaults are not taken"); is != noted {
			t.Errorf("%s: the notes are %q", name, notes)
		}
	}
	if configs[0] != configs[1] {
		t.Error("a folder called cora has the defaults of the data set")
	}
}
