package gsrc_test

import (
	"math"
	"testing"

	"github.com/gsrc-dev/gsrc"
	"github.com/gsrc-dev/gsrc/config"
	"github.com/gsrc-dev/gsrc/data"
)

// The example asks for as many nodes, edges, features and classes as ogbn-arxiv
// has, and trains; here on a two-hundredth of the nodes.
func TestArxivExample(t *testing.T) {
	const file = "examples/synthetic-arxiv.toml"
	c, err := config.Load("ecl-gsr", data.Synthetic, file, nil)
	if err != nil {
		t.Fatal(err)
	}
	s := c.Synthetic
	truth := math.Round(float64(s.Nodes) * s.Degree / 2)
	edges := truth - math.Round(s.Hidden*truth) + math.Round(s.Wrong*truth)
	if s.Nodes != 169343 || edges != 1166243 || s.Features != 128 || s.Classes != 40 {
		t.Errorf("%d nodes, %v edges, %d features, %d classes", s.Nodes, edges, s.Features, s.Classes)
	}
	o := gsrc.TrainOptions{Model: "ecl-gsr", Data: data.Synthetic, Config: file, Set: []string{"synthetic.nodes=846", "synthetic.classes=5", "train.pretrain_steps=3", "train.epochs=5", "train.joint_every=2", "train.refresh_every=2"}}
	run, err := gsrc.Train(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if run.Data.X.IsSparse() || run.Result.EdgesAfter == nil || run.Result.Test.Nodes != 237 {
		t.Errorf("sparse features %v, result %+v", run.Data.X.IsSparse(), run.Result)
	}
}
