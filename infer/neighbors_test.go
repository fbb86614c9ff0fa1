package infer

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/gsrc-dev/gsrc/data"
	"github.com/gsrc-dev/gsrc/export"
	"github.com/gsrc-dev/gsrc/export/manifest"
	"github.com/gsrc-dev/gsrc/export/onnx"
	"github.com/gsrc-dev/gsrc/internal/exporttest"
	"github.com/gsrc-dev/gsrc/internal/filelock"
	"github.com/gsrc-dev/gsrc/internal/orttest"
	"github.com/gsrc-dev/gsrc/models"
	"github.com/gsrc-dev/gsrc/rng"
	"github.com/gsrc-dev/gsrc/runtime/ort"
)

// coraOrSynthetic is the Cora graph where it is to be had.
func coraOrSynthetic() (path string, set []string) {
	if path := filepath.Join(os.Getenv("GSRC_DATA"), "planetoid", "cora"); exists(path) {
		return path, nil
	}
	return data.Synthetic, []string{"synthetic.nodes=600", "synthetic.degree=4"}
}

func exists(path string) bool { _, err := os.Stat(path); return err == nil }

// The answers for some nodes from their sub-graph are those from the whole graph, of
// every classifier, on the raw and on a refined graph.
func TestNeighborsGiveTheWholeGraphsAnswers(t *testing.T) {
	orttest.Need(t)
	path, set := coraOrSynthetic()
	short := append([]string{"train.epochs=2"}, set...)
	type task struct {
		name, model string
		set         []string
		build       export.BuildOptions
	}
	tasks := []task{
		{"ecl-gsr", "ecl-gsr", []string{"train.pretrain_steps=2", "train.joint_every=0", "deepwalk.width=0"}, export.BuildOptions{}},
		{"gcn without weights", "gcn", nil, export.BuildOptions{NoEdgeWeight: true}},
		{"gcn sparse", "gcn", nil, export.BuildOptions{SparseX: true}},
		{"gat host-buckets", "gat", nil, export.BuildOptions{Lowering: onnx.PrecomputedBuckets}},
		{"sage flat", "sage", nil, export.BuildOptions{Lowering: onnx.Scatter}},
	}
	for _, a := range models.Architectures {
		tasks = append(tasks, task{name: a.Model, model: a.Model})
	}
	for _, x := range tasks {
		t.Run(x.name, func(t *testing.T) {
			dir := t.TempDir()
			run := Train(t, filepath.Join(dir, "run"), x.model, path, x.build, slices.Concat(short, x.set)...)
			dist := run.Dist
			o := PredictOptions{Load: run.Load, Provider: ort.CPU}
			all, err := Predict(t.Context(), dist, path, "", o)
			if err != nil {
				t.Fatal(err)
			}
			n, c := run.Data.Graph.N, len(all.Classes)
			stream := rng.New(1, "nodes")
			var ids []string
			var numbers []int
			for i := uint64(0); len(ids) < 5; i++ {
				v := int(float64(stream.Uniform(i)) * float64(n))
				if !slices.Contains(numbers, v) {
					numbers, ids = append(numbers, v), append(ids, run.Data.NodeID(v))
				}
			}
			s, err := Neighbors(t.Context(), dist, path, ids, o)
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(s.Nodes[:5], numbers) {
				t.Fatalf("the first rows are of the nodes %v, want %v", s.Nodes[:5], numbers)
			}
			if x.model == "gcn" && len(s.Nodes) > n/2 {
				t.Errorf("%d of %d nodes are not much of a cut", len(s.Nodes), n)
			}
			session, err := ort.Open(filepath.Join(dist, "classifier.onnx"), ort.Options{Provider: ort.CPU})
			if err != nil {
				t.Fatal(err)
			}
			defer session.Close()
			got, err := session.Run(s.Inputs)
			if err != nil {
				t.Fatal(err)
			}
			worst := float32(0)
			for i, v := range numbers {
				for k := range c {
					d := got["probabilities"].F32[i*c+k] - all.Probabilities[v*c+k]
					worst = max(worst, d, -d)
				}
			}
			if !(worst <= 1e-5) {
				t.Errorf("%d nodes of %d, %d hops: a probability is %g away from the whole graph's", len(s.Nodes), n, s.Hops, worst)
			}
			if s.Hops > 0 { // one hop less is not enough, unless that reaches all
				p, err := newPredictor(dist, path, o)
				if err != nil {
					t.Fatal(err)
				}
				defer p.close()
				g, err := p.graph(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				st := g.Structure()
				less := cut(entries(st, st.Spread(nil, g.Weights)), numbers, s.Hops-1)
				if err := p.inputs(less, p.manifest.Models["classifier"]); err != nil {
					t.Fatal(err)
				}
				out, err := session.Run(less.Inputs)
				if err != nil {
					t.Fatal(err)
				}
				if len(less.Nodes) < len(s.Nodes) && slices.Equal(out["logits"].F32[:5*c], got["logits"].F32[:5*c]) {
					t.Errorf("%d hops give the same logits as %d", less.Hops, s.Hops)
				}
			}
			t.Logf("%d nodes of %d, %d hops: within %g", len(s.Nodes), n, s.Hops, worst)
		})
	}
}

func TestNeighborsFaults(t *testing.T) {
	dir := t.TempDir()
	run := Train(t, filepath.Join(dir, "run"), "gcn", "synthetic", export.BuildOptions{}, "train.epochs=1", "synthetic.nodes=80")
	dist := run.Dist
	p := PredictOptions{Load: run.Load}
	for _, x := range []struct {
		nodes []string
		want  string
	}{
		{nil, "no nodes"}, {[]string{"80"}, `no node "80"`}, {[]string{"-1"}, `no node "-1"`}, {[]string{"3", "3"}, "twice"},
	} {
		if _, err := Neighbors(t.Context(), dist, "synthetic", x.nodes, p); err == nil || !strings.Contains(err.Error(), x.want) {
			t.Errorf("nodes %v give %v, want %q", x.nodes, err, x.want)
		}
	}
	// An export that does not say how far it sees.
	manifest := filepath.Join(dist, "manifest.json")
	text, err := os.ReadFile(manifest)
	if err != nil {
		t.Fatal(err)
	}
	without := strings.Replace(string(text), `"hops": 2,`, "", 1)
	if without == string(text) {
		t.Fatalf("the manifest says nothing of hops:\n%s", text)
	}
	exporttest.Rewrite(t, dist, "manifest.json", without)
	if _, err := Neighbors(t.Context(), dist, "synthetic", []string{strconv.Itoa(1)}, p); err == nil || !strings.Contains(err.Error(), "depend on the whole graph") {
		t.Errorf("without hops: %v", err)
	}
}

// Of two processes that write to a folder the second is refused.
func TestNeighborsLockTheirFolder(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "out")
	unlock, err := manifest.LockFolder(dir)
	if err != nil {
		t.Fatal(err)
	}
	var held *filelock.HeldError
	if err := (&Subgraph{}).Write(dir); !errors.As(err, &held) {
		t.Errorf("error %v", err)
	}
	unlock()
	if err := (&Subgraph{}).Write(dir); err != nil {
		t.Error(err)
	}
}
