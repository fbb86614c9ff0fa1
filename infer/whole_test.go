package infer_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gsrc-dev/gsrc"
	"github.com/gsrc-dev/gsrc/data"
	"github.com/gsrc-dev/gsrc/export/onnx"
	"github.com/gsrc-dev/gsrc/internal/orttest"
	"github.com/gsrc-dev/gsrc/models"
	"github.com/gsrc-dev/gsrc/run"
	"github.com/gsrc-dev/gsrc/runtime/ort"
)

// Where every update computes the whole graph, the one reason that holds is said.
func TestWhyVersionsAreWhole(t *testing.T) {
	orttest.Need(t)
	evidence := []string{"model.edges.judge=evidence", "train.pretrain_steps=2", "train.joint_every=0", "candidates.similarity=features"}
	for name, c := range map[string]struct {
		model string
		set   []string
		gate  float32
		build gsrc.BuildOptions
		want  string
	}{
		"gate":       {"ecl-gsr", evidence, 0.7, gsrc.BuildOptions{}, "(the parameter " + models.EvidenceGate + " is above 0)"},
		"spectrum":   {"ecl-gsr", append([]string{"synthetic.degree=40", "synthetic.community_size=0"}, evidence...), 0, gsrc.BuildOptions{}, "(" + models.EvidenceSpectrum + ")"},
		"symmetrize": {"ecl-gsr", evidence, 0, gsrc.BuildOptions{Symmetrize: true}, "--symmetrize"},
		"dense":      {"gcn", nil, 0, gsrc.BuildOptions{Lowering: onnx.Dense}, "--lowering dense"},
		"beside":     {"gcn", nil, 0, gsrc.BuildOptions{ExternalData: 1024}, "--external-data none"},
	} {
		dir := t.TempDir()
		r, err := gsrc.Train(t.Context(), gsrc.TrainOptions{Model: c.model, Data: data.Synthetic, Out: filepath.Join(dir, "run"),
			Set: append([]string{"train.epochs=2", "synthetic.nodes=300"}, c.set...)})
		if err != nil {
			t.Fatal(name, err)
		}
		if c.gate > 0 {
			r.Trained.Params[models.EvidenceGate][0] = c.gate
		}
		c.build.Unverified = true
		dist := filepath.Join(dir, "dist")
		if _, err := r.Build(t.Context(), dist, c.build); err != nil {
			t.Fatal(name, err)
		}
		var said []string
		g, err := gsrc.OpenGraph(t.Context(), dist, data.Synthetic, gsrc.GraphOptions{PredictOptions: gsrc.PredictOptions{Provider: ort.CPU,
			Load: run.LoadOptions(r.Trained.Config), Log: func(format string, args ...any) { said = append(said, fmt.Sprintf(format, args...)) }}})
		if err != nil {
			t.Fatal(name, err)
		}
		g.Close()
		line := strings.Join(said, "\n")
		if !strings.Contains(line, "every update computes the whole graph anew: ") || !strings.Contains(line, c.want) || strings.Count(line, ";") != 1 {
			t.Errorf("%s: said %q", name, line)
		}
	}
}
