package gsrc_test

import (
	"context"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gsrc-dev/gsrc"
	"github.com/gsrc-dev/gsrc/data"
	"github.com/gsrc-dev/gsrc/export"
	"github.com/gsrc-dev/gsrc/export/dist"
	"github.com/gsrc-dev/gsrc/graph"
	"github.com/gsrc-dev/gsrc/internal/exporttest"
	"github.com/gsrc-dev/gsrc/internal/orttest"
	"github.com/gsrc-dev/gsrc/runtime/ort"
)

// pipeline.onnx gives the edges and the classes that gsrc refine and gsrc predict
// give by encoder, search, scorer and classifier.
func TestPipelineIsRefineAndPredict(t *testing.T) {
	for name, set := range map[string][]string{
		"embedding": {"model.edges.judge=embedding"},
		"evidence":  {"model.edges.judge=evidence", "model.edges.threshold=0.9"},
		"no edges":  {"model.edges.judge=evidence", "model.edges.threshold=0.9", "model.encoder.kind=mlp"},
		"threshold": {"model.edges.mode=threshold", "model.edges.threshold=0.3", "candidates.mutual=true", "candidates.k=9", "model.classifier=gat"},
	} {
		t.Run(name, func(t *testing.T) {
			run := quickTrain(t, gsrc.TrainOptions{Model: "ecl-gsr", Out: filepath.Join(t.TempDir(), "run"), Seed: 1, Set: set})
			c := run.Trained.Config.Synthetic.CSBM(7) // another graph
			comparePipeline(t, run, data.Synthetic, data.LoadOptions{Seed: 7, Synthetic: &c}, gsrc.BuildOptions{Pipeline: export.PipelineOn})
		})
	}
}

func TestPipelineOnCora(t *testing.T) {
	path := filepath.Join(os.Getenv("GSRC_DATA"), "planetoid", "cora")
	if _, err := os.Stat(path); err != nil {
		t.Skipf("no Cora at %q; set GSRC_DATA to the folder of data sets", path)
	}
	run, err := gsrc.Train(context.Background(), gsrc.TrainOptions{Model: "ecl-gsr", Data: path, Out: filepath.Join(t.TempDir(), "run"),
		Set: []string{"train.pretrain_steps=4", "train.epochs=2", "train.joint_every=0"}})
	if err != nil {
		t.Fatal(err)
	}
	comparePipeline(t, run, path, data.LoadOptions{}, gsrc.BuildOptions{SparseX: true})
}

func comparePipeline(t *testing.T, run *gsrc.Run, path string, load data.LoadOptions, o gsrc.BuildOptions) {
	t.Helper()
	lib := orttest.Need(t)
	ctx := context.Background()
	out := filepath.Join(t.TempDir(), "dist")
	o.Library = &lib
	if _, err := run.Build(ctx, out, o); err != nil { // holds it against the parts on other graphs
		t.Fatal(err)
	}
	// The export is not to know its training graph again.
	info := filepath.Join(out, "inference.json")
	text, err := os.ReadFile(info)
	if err != nil {
		t.Fatal(err)
	}
	exporttest.Rewrite(t, out, "inference.json", strings.Replace(string(text), `"checksum": "`, `"checksum": "x`, 1))
	predict := gsrc.PredictOptions{Library: &lib, Provider: ort.CPU, Load: load}
	want, err := gsrc.Refine(ctx, out, gsrc.RefineOptions{Data: path, Predict: predict})
	if err != nil {
		t.Fatal(err)
	}
	classes, err := gsrc.Predict(ctx, out, path, "", predict)
	if err != nil {
		t.Fatal(err)
	}
	ds, err := data.Load(path, load)
	if err != nil {
		t.Fatal(err)
	}
	d, err := dist.Open(out, ort.Options{Provider: ort.CPU, Library: &lib})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	cfg := run.Trained.Config
	st := ds.Graph.Structure()
	src, dst := st.EdgeIndex()
	x := ort.Float32s(ds.X.ToDense().Dense, int64(ds.X.Rows), int64(ds.X.Cols))
	edgeIndex := ort.Int64s(append(src, dst...), 2, int64(st.E))
	got, err := d.Refine(x, edgeIndex, nil, cfg.Candidates.K)
	if err != nil {
		t.Fatal(err)
	}
	index, p, existing := got["refined_edge_index"].I64, got["refined_probability"].F32, got["refined_existing"].I64
	found := map[[2]int32]int{}
	for i := range p {
		found[[2]int32{int32(index[i]), int32(index[len(p)+i])}] = i
	}
	encoded, err := d.Encode(x, nil, edgeIndex, nil)
	if err != nil {
		t.Fatal(err)
	}
	h, k := encoded["embedding"], cfg.Candidates.K
	f := int(h.Shape[1])
	_, sim := graph.KNN(nil, h.F32, ds.Graph.N, f, k)
	nearTie := func(u, v int32) bool {
		var ab, aa, bb float64
		for j := range f {
			a, b := float64(h.F32[int(u)*f+j]), float64(h.F32[int(v)*f+j])
			ab, aa, bb = ab+a*b, aa+a*a, bb+b*b
		}
		s := ab / math.Sqrt(aa*bb)
		return math.Abs(s-float64(sim[int(u)*k+k-1])) <= 1e-5 || math.Abs(s-float64(sim[int(v)*k+k-1])) <= 1e-5
	}
	apart := 0
	differ := func(u, v int32, what string) {
		if apart++; !nearTie(u, v) {
			t.Errorf("edge %d-%d %s", u, v, what)
		}
	}
	for _, e := range want.Edges {
		i, ok := found[[2]int32{e.Source, e.Target}]
		delete(found, [2]int32{e.Source, e.Target})
		switch {
		case !ok:
			differ(e.Source, e.Target, "is missing")
		case !(math.Abs(float64(p[i]-e.Probability)) <= 1e-5) || (existing[i] == 1) != (e.Status == graph.StatusOld):
			t.Fatalf("edge %d-%d has the probability %g and existing %d, want %g, %s", e.Source, e.Target, p[i], existing[i], e.Probability, e.Status)
		}
	}
	for e := range found {
		differ(e[0], e[1], "is none of the Go pipeline")
	}
	if len(p) == 0 || apart > len(p)/100 {
		t.Errorf("%d of %d edges are near ties", apart, len(p))
	}
	if apart > 0 {
		t.Logf("%d of %d edges differ, all near ties; Build has compared the classes", apart, len(p))
		return
	}
	for i, want := range classes.Probabilities {
		if d := math.Abs(float64(got["probabilities"].F32[i] - want)); !(d <= 1e-4) {
			t.Fatalf("probability %d is %g, want %g", i, got["probabilities"].F32[i], want)
		}
	}
}
