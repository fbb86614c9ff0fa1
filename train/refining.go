package train

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/gsrc-dev/gsrc/graph"
	"github.com/gsrc-dev/gsrc/runtime"
	"github.com/gsrc-dev/gsrc/train/checkpoint"
)

// edges are the candidate edges and their probabilities.
type edges struct {
	cand *graph.Candidates
	st   *graph.Structure // of the candidates: two entries each

	g          graph.Graph     // of the candidates
	old        []float32       // of each entry, whether the edge exists
	search     graph.Neighbors // for new candidates
	near       []int32         // what a device found
	undirected *graph.Graph    // the raw graph

	p      []float32 // [C] probability of each candidate
	lo, hi float32   // bounds of the cosine that p was normalised with
	fresh  bool      // p belongs to the current encoder
	fixed  bool      // p is given and never computed

	prior   *graph.EdgePrior // of existing edges, nil where the configuration wants none
	perEdge []float32        // [C] that of the candidates, 1 for new ones
	ofEntry []float32        // the same by entry

	perEntry []float32 // p of each entry
	weights  []float32 // of each entry, what the classifier is evaluated with; of a collection, of each candidate
	weighed  bool      // weights belong to p

	there edgesThere // on a device with a memory of its own

	starts []int32 // [G+1] first candidate of each graph of a collection, whose candidates have no structure
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

// refining is Algorithm 1: pre-training, candidates, and the alternation of
// classifier and joint steps.
type refining struct {
	*trainer
	raw     bool // the graph stays as it is: the baseline of the same classifier
	batches *batcher
}

func (t *refining) run() error {
	if t.raw {
		if err := t.rawEdges(); err != nil {
			return err
		}
	} else {
		if err := t.structure(); err != nil {
			return err
		}
		if t.edges == nil {
			t.edges = &edges{}
		}
		if err := t.findEdgePrior(); err != nil {
			return err
		}
		if err := t.pretrain(); err != nil {
			return err
		}
	}
	if err := t.epochs("fit", t.epoch, t.evaluate); err != nil {
		return err
	}
	return t.checkpoint()
}

// rawEdges makes the existing edges the only candidates, all with the same
// probability.
func (t *refining) rawEdges() error {
	cand, err := graph.NewCandidates(t.task.Data.Graph, nil, 0, false)
	if err != nil {
		return err
	}
	t.edges = &edges{fixed: true}
	if err := t.setCandidates(cand); err != nil {
		return err
	}
	p := make([]float32, len(cand.Edges))
	for i := range p {
		p[i] = float32(t.cfg.Candidates.Keep)
	}
	return t.setProbabilities(p, 0, 0)
}

// structure provides X^s where the program reads it.
func (t *refining) structure() error {
	width := t.cfg.DeepWalk.Width
	if width == 0 || t.inputs["x_struct"] != nil {
		return nil
	}
	x, err := t.deepWalk()
	if err != nil {
		return err
	}
	t.inputs["x_struct"] = runtime.F32(x, t.task.Data.Graph.N, width)
	return nil
}

// deepWalk computes the structural attributes, or reads them from the run
// directory, where it leaves them for a resumption.
func (t *refining) deepWalk() ([]float32, error) {
	if x, err := t.readStruct(); x != nil || err != nil {
		return x, err
	}
	t.state.Phase = "deepwalk"
	d := t.cfg.DeepWalk
	x, err := graph.DeepWalk(t.pool, t.task.Data.Graph, graph.DeepWalkOptions{
		Dim: d.Width, WalksPerNode: d.Walks, WalkLength: d.Length, Window: d.Window, Negatives: d.Negatives, Epochs: d.Epochs, Seed: t.seed(),
		Progress: func(done, total int) error {
			t.observe(done, total, math.NaN())
			return t.ctx.Err()
		},
	})
	if err != nil {
		return nil, err
	}
	return x, t.writeStruct(x)
}

// pretrain makes the contrastive steps.
func (t *refining) pretrain() error {
	if t.state.Pretrained >= t.cfg.Train.PretrainSteps {
		return nil
	}
	if err := t.prepareBatches(); err != nil {
		return err
	}
	f, err := t.function("pretrain")
	if err != nil {
		return err
	}
	// While a device computes a step, the host draws the next one's samples.
	f.ahead = func(step int) error {
		if step >= t.cfg.Train.PretrainSteps {
			return nil
		}
		if err := t.batches.bind(f, step); err != nil {
			return err
		}
		return f.Prepare()
	}
	return t.contrastive(f, func() (float64, error) { return t.contrast(f) })
}

// contrastive makes the contrastive steps that are left with f, each by step.
func (t *trainer) contrastive(f *function, step func() (float64, error)) error {
	total := t.cfg.Train.PretrainSteps
	t.state.Phase = "pretrain"
	for t.state.Pretrained < total {
		if err := t.ctx.Err(); err != nil {
			return err
		}
		loss, err := step()
		if err != nil {
			return err
		}
		t.state.Pretrained++
		if t.state.Pretrained%t.cfg.Train.LogEvery == 0 || t.state.Pretrained == total {
			if err := t.record(f, nil); err != nil {
				return err
			}
		}
		t.observe(t.state.Pretrained, total, loss)
		every := t.cfg.Train.CheckpointEvery
		if every > 0 && t.state.Pretrained%every == 0 || t.state.Pretrained == total {
			if err := t.checkpoint(); err != nil {
				return err
			}
		}
	}
	t.drop("pretrain")
	return nil
}

// contrast makes one contrastive step.
func (t *refining) contrast(f *function) (float64, error) {
	step := t.state.Step()
	if err := t.batches.bind(f, step); err != nil {
		return 0, err
	}
	return t.step(f, step)
}

func (t *refining) prepareBatches() (err error) {
	if t.batches == nil {
		t.batches, err = t.newBatcher()
	}
	return err
}

// epoch trains the classifier on samples of the candidates, every so often
// together with the encoder.
func (t *refining) epoch(epoch int) (*function, float64, error) {
	c := t.cfg.Train
	if !t.raw && c.JointEvery > 0 && c.RefreshEvery > 0 && epoch > 0 && epoch%c.RefreshEvery == 0 {
		if err := t.newCandidates(); err != nil {
			return nil, 0, err
		}
	}
	if err := t.refresh(); err != nil {
		return nil, 0, err
	}
	name := "fit"
	if !t.raw && c.JointEvery > 0 && (epoch+1)%c.JointEvery == 0 {
		name = "joint"
		if err := t.prepareBatches(); err != nil {
			return nil, 0, err
		}
		if err := t.batches.bindWhole(t.state.Step()); err != nil {
			return nil, 0, err
		}
	}
	f, err := t.function(name)
	if err != nil {
		return nil, 0, err
	}
	t.raiseRamp(epoch)
	loss, err := t.step(f, t.state.Step())
	if err == nil && name == "joint" {
		t.edges.fresh = false
	}
	return f, loss, err
}

// encode returns the embedding [N, F] of the current encoder where the device has
// it, valid until the next call.
func (t *trainer) encode() (*runtime.Buffer, error) {
	f, err := t.function("encode")
	if err != nil {
		return nil, err
	}
	if err := f.Run(uint64(t.state.Step())); err != nil {
		return nil, err
	}
	h := f.Result("embedding")
	if h == nil || len(h.Dims) != 2 || h.Dims[0] != t.task.Data.Graph.N {
		return nil, errors.New("train: @encode has no result embedding with a row for each node")
	}
	if ok, err := t.finite(h); err != nil {
		return nil, err
	} else if !ok {
		return nil, t.nonFinite(f, t.state.Step(), "the embedding")
	}
	return h, nil
}

// newCandidates chooses the candidates anew by the current embedding.
func (t *refining) newCandidates() error {
	if done, err := t.candidatesThere(); done || err != nil {
		return err
	}
	e, k := t.edges, t.cfg.Candidates.K
	idx, err := t.nearest(k)
	if err != nil {
		return err
	}
	if e.undirected == nil {
		e.undirected = t.task.Data.Graph.Undirected()
	}
	cand := e.cand
	if cand == nil {
		cand = &graph.Candidates{}
	}
	if err := cand.Rebuild(e.undirected, idx, k, t.cfg.Candidates.Mutual); err != nil {
		return err
	}
	return t.setCandidates(cand)
}

// nearest finds the k nearest neighbours of each node by the current embedding: on the
// device if that can, so that the embedding stays there.
func (t *refining) nearest(k int) ([]int32, error) {
	h, err := t.encode()
	if err != nil {
		return nil, err
	}
	e, n, by := t.edges, h.Dims[0], graph.Index(t.cfg.Candidates.Index)
	if s, ok := t.device.(runtime.NeighborSearcher); ok && by.ExactOnDevice(n) {
		e.near = slices.Grow(e.near[:0], n*k)[:n*k]
		return e.near, s.Nearest(e.near, nil, h, k)
	}
	if h, err = t.device.Export(h); err != nil {
		return nil, err
	}
	idx, _, _ := e.search.Search(t.pool, h.F32, n, h.Dims[1], k, by)
	return idx, nil
}

// setCandidates binds candidates; their probabilities must follow.
func (t *trainer) setCandidates(cand *graph.Candidates) error {
	e := t.edges
	e.cand, e.fresh, e.weighed = cand, false, false
	e.there.chosen, e.there.behind = false, false
	t.leaveThere("c", "old")
	if c := t.task.Graphs; c != nil {
		e.starts = cand.Starts(e.starts, c.Offset)
		return nil
	}
	if e.st == nil {
		e.st = &graph.Structure{}
	}
	e.g = graph.Graph{N: cand.N, Edges: cand.Edges}
	e.st.Rebuild(&e.g)
	e.old = slices.Grow(e.old[:0], e.st.E)[:e.st.E]
	for i, k := range e.st.EdgeOf {
		e.old[i] = 0
		if cand.Existing[k] {
			e.old[i] = 1
		}
	}
	if err := t.bindGraph("c", e.st); err != nil {
		return err
	}
	if err := t.bindVector("old", e.old); err != nil {
		return err
	}
	return t.bindEdgePrior()
}

// setProbabilities makes p the candidates' probabilities.
func (t *trainer) setProbabilities(p []float32, lo, hi float32) error {
	e := t.edges
	e.p, e.lo, e.hi, e.fresh, e.weighed = p, lo, hi, true, false
	e.there.p, e.there.pBehind = nil, false
	t.leaveThere("p")
	if len(p) == 0 { // a device may have the structure
		e.perEntry = e.perEntry[:0]
		return t.bindVector("p", []float32{})
	}
	e.perEntry = e.st.Spread(e.perEntry, p)
	return t.bindVector("p", e.perEntry)
}

// refresh makes the probabilities those of the current encoder (Eq 18).
func (t *refining) refresh() error {
	e := t.edges
	if e.cand == nil && !e.there.chosen {
		if err := t.newCandidates(); err != nil {
			return err
		}
	}
	if e.fresh || e.fixed {
		return nil
	}
	if e.count() == 0 { // no candidates, no bounds
		return t.setProbabilities([]float32{}, 0, 0)
	}
	h, err := t.encode()
	if err != nil {
		return err
	}
	f, err := t.function("probability")
	if err != nil {
		return err
	}
	if err := f.Bind("embedding", h); err != nil {
		return err
	}
	if err := f.Run(uint64(t.state.Step())); err != nil {
		return err
	}
	if t.accel != nil {
		return t.refreshThere(f)
	}
	entry, lo, hi, err := read3(f, "probability", "lo", "hi")
	if err != nil {
		return err
	}
	if entry == nil || lo == nil || hi == nil {
		return lacksProbability(f)
	}
	p := e.ofEdges(e.p, entry.F32)
	if !finite(p) {
		return t.nonFinite(f, t.state.Step(), "an edge probability")
	}
	return t.setProbabilities(p, lo.F32[0], hi.F32[0])
}

func lacksProbability(f *function) error {
	return fmt.Errorf("train: @probability lacks one of the results probability, lo, hi; it has %v", f.Outputs())
}

// ofEdges returns the values of the candidates, in dst if it has room, given those of
// their entries. Both entries of a candidate have the same; one of them counts.
func (e *edges) ofEdges(dst, entry []float32) []float32 {
	dst = slices.Grow(dst[:0], len(e.cand.Edges))[:len(e.cand.Edges)]
	for i, k := range e.st.EdgeOf {
		dst[k] = entry[i]
	}
	return dst
}

func lacksWeights() error {
	return errors.New("train: @refine has no result w with a weight for each entry of p")
}

// weigh computes the weights of the refined graph, for evaluation: those of
// @refine, and 0 for candidates below the threshold. It reports whether they
// have changed.
func (t *trainer) weigh() (bool, error) {
	e := t.edges
	if e.weighed {
		return false, nil
	}
	f, err := t.function("refine")
	if err != nil {
		return false, err
	}
	if err := f.Run(uint64(t.state.Step())); err != nil {
		return false, err
	}
	if t.accel != nil {
		err := t.weighThere(f)
		e.weighed = err == nil
		return true, err
	}
	w, err := f.Read("w")
	if err != nil {
		return false, err
	}
	if w == nil || len(w.F32) != e.st.E {
		return false, lacksWeights()
	}
	e.weights = append(e.weights[:0], w.F32...)
	for i, p := range e.perEntry {
		if p < float32(t.threshold()) {
			e.weights[i] = 0
		}
	}
	e.weighed = true
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
	if changed, err = t.weigh(); err != nil {
		return nil, nil, false, err
	}
	if t.accel != nil {
		return t.inputs["c"], t.edges.there.w, changed, nil
	}
	return t.judged.graph(t, t.edges.st), t.judged.weights(t.edges.weights), changed, nil
}

// classifyRefined runs the classifier on the refined graph.
func (t *trainer) classifyRefined() (logits, probs *runtime.Buffer, err error) {
	g, w, changed, err := t.refinedGraph()
	if err != nil {
		return nil, nil, err
	}
	return t.classify(g, w, changed)
}

func (t *refining) evaluate() (score, error) {
	if err := t.refresh(); err != nil {
		return score{}, err
	}
	g, w, changed, err := t.refinedGraph()
	if err != nil {
		return score{}, err
	}
	return t.scoreOn(g, w, changed)
}

// interrupted reports whether an error is that of the stopped context.
func interrupted(ctx context.Context, err error) bool {
	return ctx.Err() != nil && errors.Is(err, ctx.Err())
}
