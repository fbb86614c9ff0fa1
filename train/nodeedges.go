package train

import (
	"errors"
	"fmt"
	"slices"

	"github.com/gsrc-dev/gsrc/config"
	"github.com/gsrc-dev/gsrc/graph"
	"github.com/gsrc-dev/gsrc/internal/rss"
	"github.com/gsrc-dev/gsrc/internal/scratch"
	"github.com/gsrc-dev/gsrc/ir"
	"github.com/gsrc-dev/gsrc/models"
	"github.com/gsrc-dev/gsrc/runtime"
)

// nodeEdges is what [edges] does not tell of the candidates of one graph, which lie on the
// device.
type nodeEdges struct {
	set      *runtime.Candidates // nil until there are any
	proposed []int32             // see [nodeSteps.proposed]
	prepared bool                // proposed is known, which may be nil
	unseen   bool                // candidates do not depend on the encoder

	given    *runtime.Buffer    // [2C] of each entry, of probabilities that were given
	computed *runtime.Buffer    // [2C] on the device, nil where the host's are as new
	bounds   [2]*runtime.Buffer // lo and hi there
	values   [2]float32

	perEdge []float32 // [C] that of the candidates, 1 for new ones
	ofEntry []float32 // the same by entry

	prune   *runtime.Function // @prune of edgeProgram
	w       *runtime.Buffer   // [2C] what the classifier is evaluated with, on the device
	weighed bool              // w belongs to the probabilities
}

// release gives back what functions of edgeProgram hold.
func (t *nodeSteps) release() {
	if f := t.found.prune; f != nil {
		f.Close()
	}
	if t.judge != nil {
		t.judge.release()
	}
	stopSampling(t)
	for _, c := range t.chunked {
		_ = c.Close() // its files go with the process at the latest
	}
	_ = t.files.Free()
}

func (t *nodeSteps) count() int { return t.candidateSet().Len() }

func (t *nodeSteps) choose() error {
	defer rss.Leave(rss.Enter("search for candidates"))
	stopSampling(t) // others' steps follow, on other candidates
	if t.edges.chosen && t.judge != nil && t.judge.once {
		return nil // the same would be chosen
	}
	if t.edges.fixed || t.prog.estimates() && t.prog.inputs["p"] == nil {
		cand, err := graph.NewCandidates(t.ds.Graph, nil, 0, false)
		if err != nil {
			return err
		}
		return t.set(cand)
	}
	o := candidateOptions(t.cfg, t.ds.Graph.N, t.prog.Module)
	also, err := t.proposed(o)
	if err != nil {
		return err
	}
	o.Also = also
	set := t.candidateSet()
	if t.found.unseen {
		o.K = 0
		if err := set.Build(nil, o); err != nil {
			return err
		}
		if t.judge != nil && t.judge.once {
			n := 4 * len(o.Also)
			o.Also, also, t.found.proposed, t.found.prepared = nil, nil, nil, false
			set.Free()
			collect(n)
		} else if t.files != nil {
			set.Free()
		}
		return t.bindCandidates()
	}
	h, err := t.encode()
	if err != nil {
		return err
	}
	if more := t.prog.inputs[models.AlsoEmbedding]; more != nil {
		if more, err = t.device.Export(more); err != nil {
			return err
		}
		if o.Also, _, err = graph.JoinNeighbors(t.ds.Graph.N, slices.Clone(set.Search(more, o)), o.Also); err != nil {
			return err
		}
	}
	if err := t.device.Candidates(set, h, o); err != nil {
		return err
	}
	if t.files != nil {
		n := 4 * len(h.F32)
		set.Free()
		collect(n)
	}
	return t.bindCandidates()
}

func (t *nodeSteps) infer() error {
	// Nothing of an epoch, or of its evaluation, is done before this is.
	t.stop = t.ctx.Err
	defer func() { t.stop = nil }()
	switch {
	case t.prog.Func("encode") == nil:
	case !t.prog.estimates():
		if _, err := t.encode(); err != nil {
			return err
		}
	case t.prog.inputs["embedding"] == nil:
		return t.give(slices.Repeat([]float32{1}, t.count()), 0, 1)
	}
	if t.chunk > 0 {
		return inferChunked(t)
	}
	f, err := t.prog.run("probability", t.state.Step())
	if err != nil {
		return err
	}
	e, x := t.edges, &t.found
	p := f.Result("probability")
	x.bounds = [2]*runtime.Buffer{f.Result("lo"), f.Result("hi")}
	if p == nil || slices.Contains(x.bounds[:], nil) {
		return fmt.Errorf("train: @probability lacks one of the results probability, lo, hi; it has %v", f.Outputs())
	}
	t.prog.checked[0] = p
	bad, err := t.device.Finite(x.bounds[:], x.values[:], t.prog.checked[:])
	if err != nil {
		return err
	}
	if bad >= 0 {
		return t.nonFinite(f, t.state.Step(), "an edge probability")
	}
	if t.prog.estimates() { // p is read when the next is computed
		if p, err = t.device.Export(p); err != nil {
			return err
		}
		if e.p, err = x.set.OfEdges(e.p, p.F32); err != nil {
			return err
		}
		return t.give(e.p, x.values[0], x.values[1])
	}
	if t.judge != nil && t.judge.once && (t.prog.turns || t.cfg.Train.JointEvery == 0 && t.prog.held("probability")+t.prog.held("encode") >= large) {
		return settle(t, p)
	}
	x.computed, x.weighed, e.lo, e.hi, e.fresh = p, false, x.values[0], x.values[1], true
	return t.prog.bind("p", p)
}

// settle copies the probabilities p of an encoder that will not change any more, or whose functions
// take turns with others, and frees what they were computed by.
func settle(t *nodeSteps, p *runtime.Buffer) error {
	x := &t.found
	entry, err := t.device.Export(p)
	if err != nil {
		return err
	}
	if t.edges.p, err = x.set.OfEdges(t.edges.p, entry.F32); err != nil {
		return err
	}
	p, entry, x.bounds, t.prog.checked[0] = nil, nil, [2]*runtime.Buffer{}, nil
	delete(t.prog.inputs, "embedding")
	t.prog.drop("probability")
	t.prog.drop("encode")
	return t.give(t.edges.p, x.values[0], x.values[1])
}

// candidateOptions are those of a configuration, for a graph of n nodes: none has more
// neighbours than there are others. The host needs the candidates where it judges edges, and
// makes those from two steps away.
func candidateOptions(cfg *config.Config, n int, m *ir.Module) runtime.CandidateOptions {
	c := cfg.Candidates
	return runtime.CandidateOptions{K: min(c.K, max(0, n-1)), Mutual: c.Mutual, Index: graph.Index(c.Index), OnHost: weighsEdges(cfg, m) || c.TwoStep > 0}
}

// searchesAgain reports whether candidates become others while the classifier is trained.
func searchesAgain(cfg *config.Config) bool {
	return cfg.Train.JointEvery > 0 && cfg.Train.RefreshEvery > 0 && slices.Contains(cfg.Similarities(), config.SimilarityEmbedding)
}

// choosesAgain reports whether candidates may become others after the first steps that read them.
func choosesAgain(cfg *config.Config, m *ir.Module) bool {
	c := cfg.Train
	if f := m.Func("pretrain"); f != nil && f.Arg("c") != nil && c.PretrainSteps > 0 {
		return true
	}
	return searchesAgain(cfg) || c.RefreshEvery > 0 && estimates(m)
}

// weighsEdges reports whether existing edges of a graph that is refined have a prior.
func weighsEdges(cfg *config.Config, m *ir.Module) bool {
	return cfg.Model.Edges.Judge != models.JudgeEmbedding || m.Attrs.Bool(models.Weighted)
}

// proposed returns the neighbours [N, k] that do not depend on the encoder: the nearest by
// what the evidence compares, and those two steps away.
func (t *nodeSteps) proposed(o runtime.CandidateOptions) ([]int32, error) {
	x := &t.found
	if x.prepared {
		return x.proposed, nil
	}
	var lists [][]int32
	parts := t.cfg.Similarities()
	x.unseen = !slices.Contains(parts, config.SimilarityEmbedding) || t.prog.Func("encode") == nil
	for _, part := range parts {
		if part == config.SimilarityEmbedding || o.K == 0 {
			continue
		}
		if part == config.SimilarityEvidence && t.judge.near != nil {
			lists = append(lists, t.judge.near)
			continue
		}
		o, k := o, o.K
		if part == config.SimilarityEvidence && t.judge.k[0] > 0 {
			o.K = newNearest // as fitting does, which an earlier part of the run has done
		}
		err := t.judge.Rows(part, func(rows *runtime.Buffer) error {
			lists = append(lists, firstOf(t.candidateSet().Search(rows, o), o.K, k))
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	if t.prog.Func("similar") != nil {
		f, err := t.prog.run("similar", 0)
		if err != nil {
			return nil, err
		}
		rows, err := f.Read("rows")
		if err != nil {
			return nil, err
		}
		lists = append(lists, slices.Clone(t.candidateSet().Search(rows, o)))
		t.prog.drop("similar")
	}
	if k := t.cfg.Candidates.TwoStep; k > 0 {
		if t.judge != nil && t.judge.two != nil {
			lists = append(lists, t.judge.two)
		} else {
			found, _ := graph.TwoStep(t.pool, t.ds.Graph, min(k, t.ds.Graph.N))
			lists = append(lists, found)
		}
	}
	if t.judge != nil {
		t.judge.near, t.judge.two = nil, nil
	}
	var err error
	x.proposed, _, err = graph.JoinNeighbors(t.ds.Graph.N, lists...)
	x.prepared = err == nil
	return x.proposed, err
}

// firstOf returns the first k of each of lists of so many, nil where k is 0.
func firstOf(lists []int32, of, k int) []int32 {
	if k == 0 {
		return nil
	}
	out := make([]int32, 0, len(lists)/of*k)
	for at := 0; at < len(lists); at += of {
		out = append(out, lists[at:at+k]...)
	}
	return out
}

// candidateSet returns the candidates of the task's graph, made on first use.
func (t *nodeSteps) candidateSet() *runtime.Candidates {
	if t.found.set == nil {
		t.found.set = runtime.NewCandidates(t.ds.Graph.Undirected(), t.pool)
		t.found.set.Files = t.files
		t.found.set.Near = func() *graph.Structure {
			if t.ds.Graph.Directed {
				return t.ds.Graph.Undirected().Structure()
			}
			return t.prog.inputs["g"].Graph
		}
	}
	return t.found.set
}

func (t *nodeSteps) set(cand *graph.Candidates) error {
	set, judged := t.candidateSet(), false
	if t.edges.prior != nil {
		now, err := set.Host()
		if err != nil {
			return err
		}
		judged = now != nil && slices.Equal(now.Edges, cand.Edges)
	}
	t.edges.cand, t.edges.chosen = cand, true
	if err := set.Set(cand); err != nil {
		return err
	}
	if judged {
		return t.found.bind(t.prog, t.edges)
	}
	return t.bindCandidates()
}

// bind gives the programs the candidates, without what is known of each.
func (e *nodeEdges) bind(prog *program, known *edges) error {
	known.fresh, e.weighed, e.computed = false, false, nil
	return errors.Join(prog.bind("c", e.set.Graph), prog.bind("old", e.set.Old))
}

// bindCandidates gives the programs the candidates of one graph.
func (t *nodeSteps) bindCandidates() error {
	e := &t.found
	if err := e.bind(t.prog, t.edges); err != nil || t.edges.prior == nil {
		return err
	}
	cand, err := e.set.Host()
	if err != nil {
		return err
	}
	if e.perEdge, err = scratch.Room(t.files, e.perEdge, len(cand.Edges)); err != nil {
		return err
	}
	if e.ofEntry, err = scratch.Room(t.files, e.ofEntry, 2*len(cand.Edges)); err != nil {
		return err
	}
	if t.judge != nil {
		if e.perEdge, err = t.judge.ofCandidates(e.perEdge, cand); err != nil {
			return err
		}
	} else {
		e.perEdge = t.edges.prior.OfCandidates(e.perEdge, cand)
	}
	e.ofEntry = e.set.Structure().Spread(e.ofEntry, e.perEdge)
	return t.prog.bindVector("evidence", e.ofEntry)
}

func (t *nodeSteps) give(p []float32, lo, hi float32) error {
	s, e := t.edges, &t.found
	s.p, s.lo, s.hi, s.fresh, e.weighed, e.computed = p, lo, hi, true, false, nil
	if e.given == nil {
		e.given = runtime.Zeros(0)
	}
	var err error
	if e.given.F32, err = scratch.Room(t.files, e.given.F32, 2*len(p)); err != nil {
		return err
	}
	if len(p) > 0 { // the device may have built the structure of none
		e.given.F32 = e.set.Structure().Spread(e.given.F32, p)
	}
	e.given.Dims[0] = len(e.given.F32)
	return t.prog.bind("p", e.given)
}

func (t *nodeSteps) fetch() error {
	s, e := t.edges, &t.found
	if e.set == nil {
		return nil
	}
	var err error
	if s.cand, err = e.set.Host(); err != nil {
		return fmt.Errorf("train: %w", err)
	}
	if e.computed == nil {
		return nil
	}
	entry, err := t.device.Export(e.computed)
	if err != nil {
		return err
	}
	if s.p, err = scratch.Room(t.files, s.p, len(entry.F32)/2); err != nil {
		return err
	}
	s.p, err = e.set.OfEdges(s.p, entry.F32)
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
func (t *nodeSteps) weigh() (bool, error) {
	e := &t.found
	if e.weighed {
		return false, nil
	}
	refine, err := t.prog.function("refine")
	if err != nil {
		return false, err
	}
	if t.files != nil {
		return true, weighParts(t, refine)
	}
	if e.w, err = pruned(t, refine, t.prog.inputs["p"]); err != nil {
		return false, err
	}
	e.weighed = true
	return true, nil
}

// weighedAtOnce is how many entries are weighed together where all have weights in a file.
const weighedAtOnce = 1 << 18

// weighParts is [nodeSteps.weigh] with weights in a file.
func weighParts(t *nodeSteps, refine *function) (err error) {
	e, p := &t.found, t.prog.inputs["p"]
	if p == nil {
		return errLacksWeights
	}
	if e.w == nil {
		e.w = runtime.Zeros(0)
	}
	if e.w.F32, err = scratch.Room(t.files, e.w.F32, len(p.F32)); err != nil {
		return err
	}
	for part := range slices.Chunk(p.F32, weighedAtOnce) {
		p := runtime.F32(part, len(part))
		if err := refine.Bind("p", p); err != nil {
			return err
		}
		w, err := pruned(t, refine, p)
		if err != nil {
			return err
		}
		e.w.F32 = append(e.w.F32, w.F32...)
	}
	e.w.Dims[0], e.weighed = len(e.w.F32), true
	return nil
}

// pruned returns the weights that @refine gives entries with the probabilities p, 0 for those
// below the threshold.
func pruned(t *nodeSteps, refine *function, p *runtime.Buffer) (*runtime.Buffer, error) {
	e := &t.found
	if err := refine.Run(uint64(t.state.Step())); err != nil {
		return nil, err
	}
	w := refine.Result("w")
	if w == nil || p == nil || len(w.Dims) != 1 || w.Dims[0] != p.Dims[0] {
		return nil, errLacksWeights
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
			return nil, err
		}
	}
	if err := errors.Join(e.prune.Bind("w", w), e.prune.Bind("p", p)); err != nil {
		return nil, err
	}
	if err := e.prune.Run(uint64(t.state.Step())); err != nil {
		return nil, err
	}
	return e.prune.Result("w"), nil
}
