package infer_test

import (
	"testing"

	"github.com/gsrc-dev/gsrc"
	"github.com/gsrc-dev/gsrc/export"
	"github.com/gsrc-dev/gsrc/infer"
	"github.com/gsrc-dev/gsrc/run"
)

func init() {
	infer.Train = func(t testing.TB, dir, model, path string, b export.BuildOptions, set ...string) *infer.Exported {
		t.Helper()
		r, err := gsrc.Train(t.Context(), gsrc.TrainOptions{Model: model, Data: path, Out: dir, Set: set})
		if err != nil {
			t.Fatal(err)
		}
		o := gsrc.BuildOptions{Lowering: b.Lowering, NoEdgeWeight: b.NoEdgeWeight, SparseX: b.SparseX, Unverified: true} // other tests prove the files
		if _, err := r.Build(t.Context(), dir+"-dist", o); err != nil {
			t.Fatal(err)
		}
		return &infer.Exported{Dist: dir + "-dist", Data: r.Data, Config: r.Trained.Config, Load: run.LoadOptions(r.Trained.Config)}
	}
}
