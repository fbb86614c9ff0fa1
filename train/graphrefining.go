package train

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/gsrc-dev/gsrc/graph"
	"github.com/gsrc-dev/gsrc/models"
	"github.com/gsrc-dev/gsrc/runtime"
)

// graphRefining is Algorithm 1 over a collection of graphs: a sample of the contrastive
// loss is a graph, and candidates join nodes of one graph. What is learned (parameters,
// and the bounds of Eq 18) comes from the training graphs alone; the candidates and
// probabilities of the others follow from it as those of new graphs do.
type graphRefining struct {
	*graphsProcedure
	raw        bool         // graphs stay as they are: the baseline of the same classifier
	undirected *graph.Graph // all graphs as one
	search     graph.Neighbors
	embedding  []float32 // [ΣN, F] of all nodes
	embedded   bool      // embedding is that of the current encoder
	similarity []float32 // [C] of the candidates

	rows, pairs *runtime.Buffer // arguments of @score
}

func (t *trainer) newGraphRefining(raw bool) (*graphRefining, error) {
	c := t.task.Graphs
	if t.cfg.DeepWalk.Width > 0 {
		return nil, fmt.Errorf("train: structural attributes belong to one graph, and %s is a collection; leave deepwalk.width 0", t.data.name)
	}
	if t.cfg.Model.Edges.Judge != models.JudgeEmbedding {
		return nil, fmt.Errorf("train: attributes judge the edges of one graph, and %s is a collection; leave model.edges.judge = embedding", t.data.name)
	}
	if !raw && t.cfg.Train.PretrainSteps+t.cfg.Train.JointEvery > 0 && min(len(t.split.Train), t.cfg.Train.BatchGraphs) < 2 {
		return nil, errors.New("train: a contrastive step compares graphs with each other; train.batch_graphs and the training graphs must be two at least")
	}
	if t.edges == nil {
		t.edges = &edges{}
	}
	t.edges.fixed = raw
	p := &graphRefining{graphsProcedure: t.newGraphs(), raw: raw, undirected: c.Union().Undirected(),
		rows: runtime.Zeros(0, 0), pairs: runtime.I64(nil, 2, 0)}
	p.batch.refined = newCandidateBatch(t.edges)
	t.inputs["lo"], t.inputs["hi"] = runtime.Scalar(0), runtime.Scalar(0)
	return p, nil
}

func (t *graphRefining) run() error {
	if !t.raw {
		if err := t.pretrain(); err != nil {
			return err
		}
	}
	if err := t.refresh(); err != nil {
		return err
	}
	functions := []string{"fit"}
	if t.joins() {
		functions = append(functions, "joint")
	}
	for _, name := range functions {
		f, err := t.function(name)
		if err != nil {
			return err
		}
		if err := t.reserve(f, t.candidatesOf, t.nodesOf); err != nil {
			return err
		}
	}
	if err := t.epochs("fit", t.epoch, t.evaluate); err != nil {
		return err
	}
	return t.checkpoint()
}

// joins reports whether the encoder trains together with the classifier.
func (t *graphRefining) joins() bool { return !t.raw && t.cfg.Train.JointEvery > 0 }

func (t *graphRefining) candidatesOf(g int32) int {
	return int(t.edges.starts[g+1] - t.edges.starts[g])
}

// pretrain makes the contrastive steps on batches of the training graphs.
func (t *graphRefining) pretrain() error {
	if t.state.Pretrained >= t.cfg.Train.PretrainSteps {
		return nil
	}
	f, err := t.function("pretrain")
	if err != nil {
		return err
	}
	refined := t.batch.refined
	t.batch.refined = nil // there are no candidates yet
	defer func() { t.batch.refined = refined }()
	if err := t.reserve(f, t.edgesOf, t.nodesOf); err != nil {
		return err
	}
	t.take(f, "contrast", 0, t.cfg.Train.PretrainSteps)
	return t.contrastive(f, func() (float64, error) { return t.batchStep(f, t.state.Pretrained) })
}

// epoch trains the classifier on samples of the candidates, every so often together
// with the encoder.
func (t *graphRefining) epoch(epoch int) (*function, float64, error) {
	c := t.cfg.Train
	if t.joins() && c.RefreshEvery > 0 && epoch > 0 && epoch%c.RefreshEvery == 0 {
		if err := t.newCandidates(); err != nil {
			return nil, 0, err
		}
	}
	if err := t.refresh(); err != nil {
		return nil, 0, err
	}
	name := "fit"
	if t.joins() && (epoch+1)%c.JointEvery == 0 {
		name = "joint"
	}
	f, err := t.function(name)
	if err != nil {
		return nil, 0, err
	}
	t.raiseRamp(epoch)
	_, loss, err := t.graphsProcedure.epoch(f, epoch)
	if name == "joint" {
		t.embedded, t.edges.fresh = false, false
	}
	return f, loss, err
}

func (t *graphRefining) evaluate() (score, error) {
	if err := t.refresh(); err != nil {
		return score{}, err
	}
	return t.graphsProcedure.evaluate()
}

// embed computes the embedding of all nodes by the current encoder.
func (t *graphRefining) embed() error {
	if t.embedded {
		return nil
	}
	f, err := t.function("encode")
	if err != nil {
		return err
	}
	refined := t.batch.refined
	t.batch.refined = nil
	defer func() { t.batch.refined = refined }()
	t.embedding = t.embedding[:0]
	err = t.runParts(f, t.every, func(part []int32) error {
		nodes := 0
		for _, g := range part {
			nodes += t.nodesOf(g)
		}
		h, err := f.Read("embedding")
		if err != nil {
			return err
		}
		if h == nil || len(h.Dims) != 2 || h.Dims[0] != nodes {
			return errors.New("train: @encode has no result embedding with a row for each node")
		}
		t.embedding = append(t.embedding, h.F32...)
		return nil
	})
	if err != nil {
		return err
	}
	if !finite(t.embedding) {
		return t.nonFinite(f, t.state.Step(), "the embedding")
	}
	t.embedded = true
	return nil
}

// newCandidates chooses the candidates anew by the current embedding.
func (t *graphRefining) newCandidates() error {
	k, near := 0, []int32(nil)
	if !t.raw {
		if err := t.embed(); err != nil {
			return err
		}
		k = t.cfg.Candidates.K
		near = t.search.Within(t.pool, t.embedding, t.task.Graphs.Offset, len(t.embedding)/t.data.nodes, k)
	}
	cand := t.edges.cand
	if cand == nil {
		cand = &graph.Candidates{}
	}
	if err := cand.Rebuild(t.undirected, near, k, t.cfg.Candidates.Mutual); err != nil {
		return err
	}
	return t.setCandidates(cand)
}

// refresh makes the probabilities those of the current encoder (Eq 18), with the least
// and the greatest cosine of the training graphs' candidates as bounds.
func (t *graphRefining) refresh() error {
	e := t.edges
	if e.cand == nil {
		if err := t.newCandidates(); err != nil {
			return err
		}
	}
	if e.fresh {
		return nil
	}
	n := len(e.cand.Edges)
	p := slices.Grow(e.p[:0], n)[:n]
	if t.raw {
		for i := range p {
			p[i] = float32(t.cfg.Candidates.Keep)
		}
		return t.setGraphProbabilities(p, 0, 0)
	}
	if err := t.embed(); err != nil {
		return err
	}
	t.similarity = slices.Grow(t.similarity[:0], n)[:n]
	if err := t.score(t.similarity, p); err != nil {
		return err
	}
	lo, hi := t.bounds()
	if err := errors.Join(t.bindScalar("lo", lo), t.bindScalar("hi", hi)); err != nil {
		return err
	}
	if err := t.score(t.similarity, p); err != nil {
		return err
	}
	return t.setGraphProbabilities(p, lo, hi)
}

// bounds returns the least and the greatest similarity of the training graphs'
// candidates, 0 if there are none.
func (t *graphRefining) bounds() (lo, hi float32) {
	lo, hi = float32(math.Inf(1)), float32(math.Inf(-1))
	for _, g := range t.split.Train {
		for _, s := range t.similarity[t.edges.starts[g]:t.edges.starts[g+1]] {
			lo, hi = min(lo, s), max(hi, s)
		}
	}
	if lo > hi {
		return 0, 0
	}
	return lo, hi
}

// pairsAtOnce bounds how many candidates are scored together, more than one graph has
// aside.
const pairsAtOnce = 1 << 17

// score asks @score for the similarity and the probability of all candidates.
func (t *graphRefining) score(similarity, p []float32) error {
	f, err := t.function("score")
	if err != nil {
		return err
	}
	e, offset := t.edges, t.task.Graphs.Offset
	width := len(t.embedding) / t.data.nodes
	for first, last := 0, 0; first < len(offset)-1; first = last {
		for last = first + 1; last < len(offset)-1 && e.starts[last+1]-e.starts[first] <= pairsAtOnce; last++ {
		}
		lo, hi, base := e.starts[first], e.starts[last], offset[first]
		n := int(hi - lo)
		if n == 0 {
			continue
		}
		b := t.pairs
		b.I64, b.Dims[1] = slices.Grow(b.I64[:0], 2*n)[:2*n], n
		for i, ends := range e.cand.Edges[lo:hi] {
			b.I64[i], b.I64[n+i] = int64(ends[0]-base), int64(ends[1]-base)
		}
		h := t.rows
		h.F32 = t.embedding[int(base)*width : int(offset[last])*width]
		h.Dims[0], h.Dims[1] = int(offset[last]-base), width
		if err := errors.Join(f.Bind("embedding", h), f.Bind("pairs", b)); err != nil {
			return err
		}
		if err := f.Run(uint64(t.state.Step())); err != nil {
			return err
		}
		s, fresh, old, err := read3(f, "similarity", "probability", "probability_existing")
		if err != nil {
			return err
		}
		if s == nil || fresh == nil || old == nil {
			return fmt.Errorf("train: @score lacks one of the results similarity, probability, probability_existing; it has %v", f.Outputs())
		}
		copy(similarity[lo:hi], s.F32)
		for i, existing := range e.cand.Existing[lo:hi] {
			if p[int(lo)+i] = fresh.F32[i]; existing {
				p[int(lo)+i] = old.F32[i]
			}
		}
	}
	if !finite(p) {
		return t.nonFinite(f, t.state.Step(), "an edge probability")
	}
	return nil
}

// bindScalar gives a scalar input its value.
func (t *trainer) bindScalar(name string, v float32) error {
	t.inputs[name].F32[0] = v
	return t.bind(name, t.inputs[name])
}

// setGraphProbabilities makes p the probabilities of the candidates of all graphs, and
// computes their weights in the refined graphs.
func (t *trainer) setGraphProbabilities(p []float32, lo, hi float32) error {
	e := t.edges
	e.p, e.lo, e.hi, e.fresh = p, lo, hi, true
	f, err := t.function("refine")
	if err != nil {
		return err
	}
	b := t.inputs["p"]
	if b == nil {
		b = runtime.Zeros(0)
		t.inputs["p"] = b
	}
	b.F32, b.Dims[0] = p, len(p)
	if err := f.Bind("p", b); err != nil {
		return err
	}
	if err := f.Run(uint64(t.state.Step())); err != nil {
		return err
	}
	w, err := f.Read("w")
	if err != nil {
		return err
	}
	if w == nil || len(w.F32) != len(p) {
		return errors.New("train: @refine has no result w with a weight for each entry of p")
	}
	e.weights = append(e.weights[:0], w.F32...)
	for i, v := range p {
		if v < float32(t.threshold()) {
			e.weights[i] = 0
		}
	}
	return nil
}
