package train

import (
	"github.com/gsrc-dev/gsrc/data"
	"github.com/gsrc-dev/gsrc/graph"
	"github.com/gsrc-dev/gsrc/internal/fmath"
	"github.com/gsrc-dev/gsrc/models"
	"github.com/gsrc-dev/gsrc/rng"
	"github.com/gsrc-dev/gsrc/runtime/kernels"
)

// Evidence says how likely existing edges are edges at all, by the attributes around
// their ends; see graph.Evidence. Its values lie within [0.01, 1]: of a probability
// of 0 no sample could be drawn.
type Evidence struct {
	Graph *graph.Graph // undirected
	P     []float32    // [E] of its edges
	// Doubted estimates the share of edges that are none: of the calibration.
	Doubted float64
	// Calibration is what P was found by.
	Calibration *graph.Calibration
}

const leastEvidence = 0.01

// FindEvidence judges the edges of a data set, as a run with this seed does.
//
// Evidence is raised to the power 1 + distrust·Doubted: many doubtful edges together
// weigh more than their few messages that are right are worth, so where much is
// doubted each counts less than its probability.
func FindEvidence(pool *kernels.Pool, ds *data.Dataset, rounds int, distrust float64, seed uint64) *Evidence {
	e := &Evidence{Graph: ds.Graph.Undirected()}
	e.P, e.Calibration = graph.Evidence(pool, e.Graph, rowsOf(ds), rounds, rng.New(seed, "evidence"))
	return e.distrust(distrust)
}

// JudgeBy judges the edges of a data set by the calibration of another, that of the
// training. It is an error if the data have other attributes.
func JudgeBy(pool *kernels.Pool, ds *data.Dataset, c *graph.Calibration, distrust float64) (*Evidence, error) {
	if err := c.Validate(ds.X.Cols); err != nil {
		return nil, err
	}
	e := &Evidence{Graph: ds.Graph.Undirected(), Calibration: c}
	e.P = c.Evidence(pool, e.Graph, rowsOf(ds))
	return e.distrust(distrust), nil
}

func rowsOf(ds *data.Dataset) graph.NodeFeatures {
	return graph.NodeFeatures{Cols: ds.X.Cols, RowPtr: ds.X.RowPtr, Col: ds.X.Col, Val: ds.X.Val, Dense: ds.X.Dense}
}

func (e *Evidence) distrust(distrust float64) *Evidence {
	e.Doubted = e.Calibration.Share
	for i, p := range e.P {
		e.P[i] = Distrust(p, e.Calibration, distrust)
	}
	return e
}

// Distrust returns what evidence that a calibration gave counts, see [FindEvidence].
func Distrust(p float32, c *graph.Calibration, distrust float64) float32 {
	if power := 1 + float64(distrust*c.Share); power != 1 {
		p = float32(fmath.Pow(float64(p), power))
	}
	return max(p, leastEvidence)
}

// OfEntries returns the evidence of each entry of the structure of g, the weights of
// the encoder's messages, in the memory of dst where that is large enough. g is the
// graph that was judged, or a part of it whose node i was the node nodes[i].
func (e *Evidence) OfEntries(dst []float32, g *graph.Graph, st *graph.Structure, nodes []int32) []float32 {
	dst = dst[:0]
	for _, k := range st.EdgeOf {
		u, v := g.Edges[k][0], g.Edges[k][1]
		if nodes != nil {
			u, v = nodes[u], nodes[v]
		}
		at, _ := e.Graph.Find(u, v)
		dst = append(dst, e.P[at])
	}
	return dst
}

// OfCandidates returns the evidence of each candidate, 1 for new ones, in the memory
// of dst where that is large enough.
func (e *Evidence) OfCandidates(dst []float32, c *graph.Candidates) []float32 {
	dst = dst[:0]
	at := 0
	for _, existing := range c.Existing {
		if !existing {
			dst = append(dst, 1)
			continue
		}
		dst = append(dst, e.P[at]) // both are sorted alike
		at++
	}
	return dst
}

// judge weighs the graph that the encoder reads, where the configuration asks for it.
func (t *refining) judge() error {
	c := t.cfg.Model.Edges
	if c.Judge != models.JudgeAttributes {
		return nil
	}
	g := t.task.Data.Graph
	t.edges.evidence = FindEvidence(t.pool, t.task.Data, c.JudgeRounds, c.JudgeDistrust, t.seed())
	if t.edges.cand != nil { // from before an interruption
		if err := t.bindEvidence(); err != nil {
			return err
		}
	}
	return t.bindVector("w", t.edges.evidence.OfEntries(nil, g, t.inputs["g"].Graph, nil))
}

// bindEvidence gives the programs the evidence of the candidates' entries.
func (t *trainer) bindEvidence() error {
	e := t.edges
	if e.evidence == nil {
		return nil
	}
	e.perEdge = e.evidence.OfCandidates(e.perEdge, e.cand)
	e.ofEntry = e.st.Spread(e.ofEntry, e.perEdge)
	return t.bindVector("evidence", e.ofEntry)
}
