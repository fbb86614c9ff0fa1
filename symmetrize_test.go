package gsrc_test

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gsrc-dev/gsrc"
	"github.com/gsrc-dev/gsrc/data"
	"github.com/gsrc-dev/gsrc/export/dist"
	"github.com/gsrc-dev/gsrc/infer"
	"github.com/gsrc-dev/gsrc/internal/orttest"
	"github.com/gsrc-dev/gsrc/runtime/ort"
)

// A file that symmetrises gives, for edges in one direction, the answers of one that
// does not for the graph that the loader makes of them.
func TestSymmetrizeIsWhatTheLoaderDoes(t *testing.T) {
	lib := orttest.Need(t)
	ctx := context.Background()
	dir := t.TempDir()
	run := quickTrain(t, gsrc.TrainOptions{Model: "gcn", Out: filepath.Join(dir, "run"), Seed: 1})
	st := run.Data.Graph.Structure()
	src, dst := st.EdgeIndex()
	var from, to []int64
	for i := range src {
		if src[i] < dst[i] || i%5 == 0 { // one direction, or both
			from, to = append(from, src[i]), append(to, dst[i])
		}
	}
	from, to = append(from, 3, from[0]), append(to, 3, to[0]) // a self-loop, and an edge again
	x := ort.Float32s(run.Data.X.ToDense().Dense, int64(run.Data.X.Rows), int64(run.Data.X.Cols))
	var logits [2][]float32
	for i, o := range []gsrc.BuildOptions{{}, {Symmetrize: true}} {
		o.Library = &lib
		out := filepath.Join(dir, "dist", string(rune('a'+i)))
		if _, err := run.Build(ctx, out, o); err != nil {
			t.Fatal(err)
		}
		d, err := dist.Open(out, ort.Options{Provider: ort.CPU, Library: &lib})
		if err != nil {
			t.Fatal(err)
		}
		defer d.Close()
		index := ort.Int64s(append(src, dst...), 2, int64(len(src)))
		if o.Symmetrize {
			index = ort.Int64s(append(from, to...), 2, int64(len(from)))
		}
		answers, err := d.Classify(x, index, nil)
		if err != nil {
			t.Fatal(err)
		}
		logits[i] = answers["logits"].F32
	}
	for i, want := range logits[0] {
		if d := logits[1][i] - want; !(d <= 1e-5 && d >= -1e-5) {
			t.Fatalf("logit %d is %g, want %g", i, logits[1][i], want)
		}
	}
	c := run.Trained.Config.Synthetic.CSBM(1)
	_, err := infer.Neighbors(ctx, filepath.Join(dir, "dist", "b"), data.Synthetic, []string{"0"}, gsrc.PredictOptions{Library: &lib, Load: data.LoadOptions{Seed: 1, Synthetic: &c}})
	if err == nil || !strings.Contains(err.Error(), "--symmetrize") {
		t.Errorf("a part of a graph: %v", err)
	}
}
