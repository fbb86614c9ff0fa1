package train

import (
	"errors"
	"math"
	"slices"

	"github.com/gsrc-dev/gsrc/graph"
	"github.com/gsrc-dev/gsrc/runtime"
	"github.com/gsrc-dev/gsrc/runtime/kernels"
)

// collectionEdges is what [edges] does not tell of the candidates of a collection.
type collectionEdges struct {
	known   *edges
	starts  []int32   // [G+1] first candidate of each graph
	weights []float32 // [C] what the classifier is evaluated with
}

// begin has nothing to provide.
func (t *graphSteps) begin() error { return nil }

func (t *graphSteps) startContrast(f *function) error {
	if err := t.reserve(f.Name()); err != nil {
		return err
	}
	t.take(f, "contrast", 0, t.cfg.Train.PretrainSteps)
	return nil
}

func (t *graphSteps) contrast(f *function) (float64, error) {
	return t.batchStep(f, t.state.Pretrained)
}

// embed computes the embedding of all nodes by the current encoder.
func (t *graphSteps) embed() error {
	if t.edges.embedded {
		return nil
	}
	f, err := t.prog.function("encode")
	if err != nil {
		return err
	}
	t.embedding = t.embedding[:0]
	err = t.runParts(f, indices[int32](len(t.c.Graphs)), func(part []int32) error {
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
	if !kernels.Finite(t.embedding) {
		return t.nonFinite(f, t.state.Step(), "the embedding")
	}
	t.edges.embedded = true
	return nil
}

func (t *graphSteps) choose() error {
	k, near := 0, []int32(nil)
	if !t.edges.fixed {
		if err := t.embed(); err != nil {
			return err
		}
		k = t.cfg.Candidates.K
		near = t.search.Within(t.pool, t.embedding, t.c.Offset, len(t.embedding)/t.info.Nodes, k)
	}
	cand := t.edges.cand
	if cand == nil {
		cand = &graph.Candidates{}
	}
	if err := cand.Rebuild(t.undirected, near, k, t.cfg.Candidates.Mutual); err != nil {
		return err
	}
	return t.set(cand)
}

func (t *graphSteps) set(cand *graph.Candidates) error {
	e := t.edges
	e.cand, e.chosen, e.fresh = cand, true, false
	t.starts = cand.Starts(t.starts, t.c.Offset)
	return nil
}

func (t *graphSteps) count() int {
	if !t.edges.chosen {
		return 0
	}
	return len(t.edges.cand.Edges)
}

// fetch has nothing to do: the host has the candidates.
func (t *graphSteps) fetch() error { return nil }

// infer takes the least and the greatest cosine of the training graphs' candidates as
// bounds.
func (t *graphSteps) infer() error {
	if err := t.embed(); err != nil {
		return err
	}
	n := t.count()
	p := slices.Grow(t.edges.p[:0], n)[:n]
	t.similarity = slices.Grow(t.similarity[:0], n)[:n]
	if err := t.scorePairs(t.similarity, p); err != nil {
		return err
	}
	lo, hi := t.bounds()
	if err := errors.Join(t.prog.bindScalar("lo", lo), t.prog.bindScalar("hi", hi)); err != nil {
		return err
	}
	if err := t.scorePairs(t.similarity, p); err != nil {
		return err
	}
	return t.give(p, lo, hi)
}

// bounds returns the least and the greatest similarity of the training graphs'
// candidates, 0 if there are none.
func (t *graphSteps) bounds() (lo, hi float32) {
	lo, hi = float32(math.Inf(1)), float32(math.Inf(-1))
	for _, g := range t.split.Train {
		for _, s := range t.similarity[t.starts[g]:t.starts[g+1]] {
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

// scorePairs asks @score for the similarity and the probability of all candidates.
func (t *graphSteps) scorePairs(similarity, p []float32) error {
	f, err := t.prog.function("score")
	if err != nil {
		return err
	}
	e, offset := t.edges, t.c.Offset
	width := len(t.embedding) / t.info.Nodes
	for first, last := 0, 0; first < len(offset)-1; first = last {
		for last = first + 1; last < len(offset)-1 && t.starts[last+1]-t.starts[first] <= pairsAtOnce; last++ {
		}
		lo, hi, base := t.starts[first], t.starts[last], offset[first]
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
		var results [3]*runtime.Buffer
		for i, name := range []string{"similarity", "probability", "probability_existing"} {
			if results[i], err = f.Read(name); err != nil {
				return err
			}
		}
		copy(similarity[lo:hi], results[0].F32)
		for i, existing := range e.cand.Existing[lo:hi] {
			if p[int(lo)+i] = results[1].F32[i]; existing {
				p[int(lo)+i] = results[2].F32[i]
			}
		}
	}
	if !kernels.Finite(p) {
		return t.nonFinite(f, t.state.Step(), "an edge probability")
	}
	return nil
}

// give computes the candidates' weights in the refined graphs too.
func (t *graphSteps) give(p []float32, lo, hi float32) error {
	e := t.edges
	e.p, e.lo, e.hi, e.fresh = p, lo, hi, true
	f, err := t.prog.function("refine")
	if err != nil {
		return err
	}
	b := t.prog.inputs["p"]
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
		return errLacksWeights
	}
	t.weights = append(t.weights[:0], w.F32...)
	for i, v := range p {
		if v < float32(t.threshold()) {
			t.weights[i] = 0
		}
	}
	return nil
}
