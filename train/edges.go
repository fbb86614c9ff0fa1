package train

import (
	"errors"
	"fmt"

	"github.com/gsrc-dev/gsrc/config"
	"github.com/gsrc-dev/gsrc/graph"
	"github.com/gsrc-dev/gsrc/ir"
	"github.com/gsrc-dev/gsrc/models"
	"github.com/gsrc-dev/gsrc/runtime"
	"github.com/gsrc-dev/gsrc/train/checkpoint"
)

// edges are the candidate edges and their probabilities. Those of one graph lie on the
// device; the host copies them when it keeps a state or writes a checkpoint.
type edges struct {
	set  *runtime.Candidates // of one graph, nil until there are any
	cand *graph.Candidates   // of a collection; of one graph as old as the last fetchEdges

	p      []float32 // [C] probability of each candidate, as old as the last fetchEdges
	lo, hi float32   // bounds of the cosine that p was normalised with
	fresh  bool      // the probabilities belong to the current encoder
	fixed  bool      // they are given and never computed

	given    *runtime.Buffer    // [2C] of each entry, of probabilities that were given
	computed *runtime.Buffer    // [2C] on the device, nil where p is as new
	bounds   [2]*runtime.Buffer // lo and hi there
	values   [2]float32

	prior   *graph.EdgePrior // of existing edges, nil where the configuration wants none
	perEdge []float32        // [C] that of the candidates, 1 for new ones
	ofEntry []float32        // the same by entry

	prune   *runtime.Function // @prune of edgeProgram
	w       *runtime.Buffer   // [2C] what the classifier is evaluated with, on the device
	weighed bool              // w belongs to the probabilities

	// Of a collection, whose candidates have no structure.
	starts  []int32   // [G+1] first candidate of each graph
	weights []float32 // [C] what the classifier is evaluated with
}

// kept copies the edges, into the memory of k unless that is nil.
func (e *edges) kept(k *checkpoint.Edges) *checkpoint.Edges {
	if k == nil {
		k = &checkpoint.Edges{Candidates: &graph.Candidates{}}
	}
	k.Candidates.CopyFrom(e.cand)
	k.Probability, k.Lo, k.Hi = append(k.Probability[:0], e.p...), e.lo, e.hi
	return k
}

// count returns how many candidates there are.
func (e *edges) count() int {
	switch {
	case e.set != nil:
		return e.set.Len()
	case e.cand != nil:
		return len(e.cand.Edges)
	}
	return 0
}

// close gives back what functions of edgeProgram hold.
func (e *edges) close() {
	if e.prune != nil {
		e.prune.Close()
	}
}

// candidateOptions are those of a configuration. Where attributes judge edges, the host
// needs the candidates.
func candidateOptions(c *config.Config) runtime.CandidateOptions {
	return runtime.CandidateOptions{K: c.Candidates.K, Mutual: c.Candidates.Mutual, Index: graph.Index(c.Candidates.Index), OnHost: c.Model.Edges.Judge == models.JudgeAttributes}
}

// candidateSet returns the candidates of the task's graph, made on first use.
func (t *trainer) candidateSet() *runtime.Candidates {
	if t.edges.set == nil {
		t.edges.set = runtime.NewCandidates(t.task.Data.Graph.Undirected(), t.pool)
	}
	return t.edges.set
}

// setCandidates binds candidates; their probabilities must follow.
func (t *trainer) setCandidates(cand *graph.Candidates) error {
	e := t.edges
	e.cand = cand
	if c := t.task.Graphs; c != nil {
		e.fresh, e.weighed = false, false
		e.starts = cand.Starts(e.starts, c.Offset)
		return nil
	}
	t.candidateSet().Set(cand)
	return t.bindCandidates()
}

// bindCandidates gives the programs the candidates of one graph.
func (t *trainer) bindCandidates() error {
	e := t.edges
	e.fresh, e.weighed = false, false
	if err := errors.Join(t.bind("c", e.set.Graph), t.bind("old", e.set.Old)); err != nil || e.prior == nil {
		return err
	}
	cand, err := e.set.Host()
	if err != nil {
		return err
	}
	e.perEdge = e.prior.OfCandidates(e.perEdge, cand)
	e.ofEntry = e.set.Structure().Spread(e.ofEntry, e.perEdge)
	return t.bindVector("evidence", e.ofEntry)
}

// setProbabilities makes p the candidates' probabilities.
func (t *trainer) setProbabilities(p []float32, lo, hi float32) error {
	e := t.edges
	e.p, e.lo, e.hi, e.fresh, e.weighed, e.computed = p, lo, hi, true, false, nil
	if e.given == nil {
		e.given = runtime.Zeros(0)
	}
	e.given.F32 = e.given.F32[:0]
	if len(p) > 0 { // the device may have built the structure of none
		e.given.F32 = e.set.Structure().Spread(e.given.F32, p)
	}
	e.given.Dims[0] = len(e.given.F32)
	return t.bind("p", e.given)
}

// fetchEdges brings the candidates and their probabilities to the host.
func (t *trainer) fetchEdges() error {
	e := t.edges
	if e == nil || e.set == nil {
		return nil
	}
	var err error
	if e.cand, err = e.set.Host(); err != nil {
		return fmt.Errorf("train: %w", err)
	}
	if e.computed == nil {
		return nil
	}
	entry, err := t.device.Export(e.computed)
	if err != nil {
		return err
	}
	e.p, err = e.set.OfEdges(e.p, entry.F32)
	e.computed = nil
	return err
}

// edgeProgram has the weights of those candidates that are edges.
const edgeProgram = `module @edges

func @prune(%w: f32[E], %p: f32[E], %t: f32[]) -> (w: f32[E]) {
  %keep = greater_equal %p, %t : f32[E]
  %kept = mul %w, %keep : f32[E]
  return %kept
}
`

// weigh computes the weights of the refined graph, for evaluation: those of
// @refine, and 0 for candidates below the threshold. It reports whether they
// have changed.
func (t *trainer) weigh() (bool, error) {
	e := t.edges
	if e.weighed {
		return false, nil
	}
	refine, err := t.function("refine")
	if err != nil {
		return false, err
	}
	if err := refine.Run(uint64(t.state.Step())); err != nil {
		return false, err
	}
	w, p := refine.Result("w"), t.inputs["p"]
	if w == nil || p == nil || len(w.Dims) != 1 || w.Dims[0] != p.Dims[0] {
		return false, errors.New("train: @refine has no result w with a weight for each entry of p")
	}
	if e.prune == nil {
		m, err := ir.Parse("edges", edgeProgram)
		if err == nil {
			e.prune, err = runtime.NewFunction(m, "prune", runtime.Options{Device: t.device, Pool: t.pool})
		}
		if err == nil {
			err = e.prune.Bind("t", runtime.Scalar(float32(t.threshold())))
		}
		if err != nil {
			return false, err
		}
	}
	if err := errors.Join(e.prune.Bind("w", w), e.prune.Bind("p", p)); err != nil {
		return false, err
	}
	if err := e.prune.Run(uint64(t.state.Step())); err != nil {
		return false, err
	}
	e.w, e.weighed = e.prune.Result("w"), true
	return true, nil
}

// threshold is the probability below which a candidate is no edge; where nothing
// is learned every edge stays.
func (t *trainer) threshold() float64 {
	if t.edges.fixed {
		return 0
	}
	return t.cfg.Model.Edges.Threshold
}

// refinedGraph returns the candidates' graph and its weights for evaluation, and
// reports whether they have changed.
func (t *trainer) refinedGraph() (g, w *runtime.Buffer, changed bool, err error) {
	changed, err = t.weigh()
	return t.inputs["c"], t.edges.w, changed, err
}

// classifyRefined runs the classifier on the refined graph.
func (t *trainer) classifyRefined() (logits, probs *runtime.Buffer, err error) {
	g, w, changed, err := t.refinedGraph()
	if err != nil {
		return nil, nil, err
	}
	return t.classify(g, w, changed)
}
