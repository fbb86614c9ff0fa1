package train

import (
	"github.com/gsrc-dev/gsrc/graph"
	"github.com/gsrc-dev/gsrc/models"
)

// findEdgePrior weighs the graph that the encoder reads, where the configuration asks for it.
func (t *refining) findEdgePrior() error {
	c := t.cfg.Model.Edges
	if c.Judge != models.JudgeAttributes {
		return nil
	}
	g := t.task.Data.Graph
	t.edges.prior = graph.NewEdgePrior(t.pool, t.task.Data.Graph, t.task.Data.X.Attributes(), c.JudgeRounds, c.JudgeDistrust, t.seed())
	if t.edges.set != nil { // from before an interruption
		if err := t.bindCandidates(); err != nil {
			return err
		}
	}
	return t.bindVector("w", t.edges.prior.OfEntries(nil, g, t.inputs["g"].Graph, nil))
}
