package train

import (
	"errors"
	"fmt"
	"slices"

	"github.com/gsrc-dev/gsrc/graph"
	"github.com/gsrc-dev/gsrc/ir"
	"github.com/gsrc-dev/gsrc/runtime"
)

// edgesThere are candidates and probabilities in the memory of a device. The host
// fetches them when it keeps a state or writes a checkpoint.
type edgesThere struct {
	known  *runtime.ResidentCandidates // nil until the device has chosen
	chosen bool                        // the current candidates are known, and not the host's
	behind bool                        // edges.cand is older than they are

	p       *runtime.Buffer // [E] of each entry, nil where the host's are current
	pBehind bool            // edges.p is older than p

	weigh, pick *runtime.Function // of edgeProgram
	least       *runtime.Buffer   // [] the probability of an edge, at least
	w           *runtime.Buffer   // [E] what the classifier is evaluated with
}

// edgeProgram is what a device does with probabilities: the weights of candidates that
// are edges, and of each candidate that of one of its entries.
const edgeProgram = `module @edges

func @weigh(%w: f32[E], %p: f32[E], %t: f32[]) -> (w: f32[E]) {
  %keep = greater_equal %p, %t : f32[E]
  %kept = mul %w, %keep : f32[E]
  return %kept
}

func @pick(%p: f32[E], %entry: i64[C]) -> (p: f32[C]) {
  %picked = gather %p, %entry : f32[C]
  return %picked
}
`

// count returns how many candidates there are.
func (e *edges) count() int {
	switch {
	case e.there.chosen:
		return e.there.known.Edges.Dims[0]
	case e.cand != nil:
		return len(e.cand.Edges)
	}
	return 0
}

// candidatesThere chooses the candidates anew on a device that can, and reports whether
// it can. Where attributes judge edges, the host needs the candidates.
func (t *refining) candidatesThere() (bool, error) {
	e := t.edges
	b, ok := t.device.(runtime.CandidateBuilder)
	if !ok || e.prior != nil || !graph.Index(t.cfg.Candidates.Index).ExactOnDevice(t.task.Data.Graph.N) {
		return false, nil
	}
	h, err := t.encode()
	if err != nil {
		return false, err
	}
	x := &e.there
	if x.known == nil {
		if x.known, err = runtime.NewResidentCandidates(t.accel, t.task.Data.Graph.Undirected()); err != nil {
			return false, err
		}
	}
	if err := b.Candidates(x.known, h, t.cfg.Candidates.K, t.cfg.Candidates.Mutual); err != nil {
		return false, err
	}
	x.chosen, x.behind = true, true
	e.fresh, e.weighed = false, false
	return true, errors.Join(t.bind("c", x.known.Graph), t.bind("old", x.known.Old))
}

// leaveThere has inputs that a device owns give way to the host's.
func (t *trainer) leaveThere(names ...string) {
	for _, n := range names {
		if b := t.inputs[n]; b != nil && b.OnDevice() {
			delete(t.inputs, n)
		}
	}
}

// refreshThere makes the probabilities those that f has computed on a device with a
// memory of its own.
func (t *refining) refreshThere(f *function) error {
	p, bounds := f.Result("probability"), []*runtime.Buffer{f.Result("lo"), f.Result("hi")}
	if p == nil || slices.Contains(bounds, nil) {
		return lacksProbability(f)
	}
	values := make([]float32, 2)
	bad, err := t.accel.Finite(bounds, values, []*runtime.Buffer{p})
	if err != nil {
		return err
	}
	if bad >= 0 {
		return t.nonFinite(f, t.state.Step(), "an edge probability")
	}
	e := t.edges
	e.there.p, e.there.pBehind = p, true
	e.lo, e.hi, e.fresh, e.weighed = values[0], values[1], true, false
	return t.bind("p", p)
}

// edgeFunction returns a function of edgeProgram.
func (t *trainer) edgeFunction(f **runtime.Function, name string) (*runtime.Function, error) {
	if *f != nil {
		return *f, nil
	}
	m, err := ir.Parse("edges", edgeProgram)
	if err == nil {
		*f, err = runtime.NewFunction(m, name, runtime.Options{Device: t.device, Pool: t.pool})
	}
	return *f, err
}

// weighThere computes the weights of the refined graph from those of @refine, which
// has run on a device with a memory of its own.
func (t *trainer) weighThere(refine *function) error {
	x, w, p := &t.edges.there, refine.Result("w"), t.inputs["p"]
	if w == nil || p == nil || len(w.Dims) != 1 || w.Dims[0] != p.Dims[0] {
		return lacksWeights()
	}
	f, err := t.edgeFunction(&x.weigh, "weigh")
	if err != nil {
		return err
	}
	if x.least == nil {
		x.least = runtime.Scalar(float32(t.threshold()))
	}
	if err := errors.Join(f.Bind("w", w), f.Bind("p", p), f.Bind("t", x.least)); err != nil {
		return err
	}
	if err := f.Run(uint64(t.state.Step())); err != nil {
		return err
	}
	x.w = f.Result("w")
	return nil
}

// fetchEdges brings the candidates and their probabilities to the host, if a device has
// newer ones.
func (t *trainer) fetchEdges() error {
	e := t.edges
	if e == nil {
		return nil
	}
	x := &e.there
	if x.behind {
		if e.cand == nil {
			e.cand = &graph.Candidates{}
		}
		if err := x.known.Fetch(t.accel.Memory(), e.cand); err != nil {
			return fmt.Errorf("train: reading the candidate edges: %w", err)
		}
		x.behind = false
	}
	if !x.pBehind {
		return nil
	}
	if !x.chosen { // the host has the structure
		entry, err := t.device.Export(x.p)
		if err != nil {
			return err
		}
		e.p = e.ofEdges(e.p, entry.F32)
		x.pBehind = false
		return nil
	}
	f, err := t.edgeFunction(&x.pick, "pick")
	if err != nil {
		return err
	}
	if err := errors.Join(f.Bind("p", x.p), f.Bind("entry", x.known.Entry)); err != nil {
		return err
	}
	if err := f.Run(uint64(t.state.Step())); err != nil {
		return err
	}
	p, err := f.Read("p")
	if err != nil {
		return err
	}
	e.p = append(e.p[:0], p.F32...)
	x.pBehind = false
	return nil
}

// close gives back what functions of edgeProgram hold.
func (x *edgesThere) close() {
	for _, f := range []*runtime.Function{x.weigh, x.pick} {
		if f != nil {
			f.Close()
		}
	}
}
