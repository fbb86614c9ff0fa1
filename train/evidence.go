package train

import (
	"fmt"
	"slices"

	"github.com/gsrc-dev/gsrc/graph"
	"github.com/gsrc-dev/gsrc/models"
	"github.com/gsrc-dev/gsrc/runtime"
	"github.com/gsrc-dev/gsrc/runtime/kernels"
)

// Evidence for edges (models.EvidenceSources) is fitted once, before anything is trained,
// from the graph and its features: edges are told from pairs drawn at random by a logistic
// regression on sources that judge each edge without itself. No label is read.

// evidenceChunk is how many pairs are judged at a time.
const evidenceChunk = 1 << 16

// evidence judges edges of the task's graph, on the host, whatever device the model trains on.
type evidence struct {
	prog *program
	pool *kernels.Pool
	g    *graph.Graph // undirected
	st   *graph.Structure

	f      *runtime.Function // that judged pairs last; others would hold rows of all nodes too
	weighs bool              // it reads w
	keep   bool              // what judges candidates, since others will follow
	once   bool              // candidates are judged, none will follow
	k      [2]int            // how many of near and of two are asked for
	a      *runtime.Buffer   // [entries] weights of the graph's edges
	w      *runtime.Buffer   // [P] of the pairs
	pairs  *runtime.Buffer   // [2,P]
	known  []ofPairs         // of the pairs in the graph as it is, which the function at hand may read
	edges  []float32         // [E] how likely each edge is one
	near   []int32           // [N,k[0]] by the rows "evidence"
	two    []int32           // [N,k[1]]

	names, lin, rob []string // of the sources, and of those of the linear and robust regressions

	fresh, before [][2]int32 // of the candidates that were judged last, and before, those that are no edges
	likely        []float32  // how likely the last are edges
}

func newEvidence(prog *program, pool *kernels.Pool, g *graph.Graph) *evidence {
	e := &evidence{prog: prog, pool: pool, g: g.Undirected(),
		a: runtime.Zeros(0), w: runtime.Zeros(0), pairs: runtime.I64([]int64{0, 0}, 2, 1)}
	e.st = e.g.Structure()
	e.names, e.lin, e.rob = models.EvidenceOf(func(param string) bool { return prog.params.Lookup(param) != nil })
	return e
}

// release ends what the evidence is computed by.
func (e *evidence) release() {
	if f := e.f; f != nil {
		e.f = nil
		giveBack(f)
	}
}

// onHost readies a function of the program for the CPU.
func (e *evidence) onHost(name string, inputs map[string]*runtime.Buffer) (*runtime.Function, error) {
	f, err := runtime.NewFunction(e.prog.Module, name, runtime.Options{Pool: e.pool})
	if err != nil {
		return nil, err
	}
	inputs["g"], inputs["pairs"] = runtime.Graph(e.st), e.pairs
	for _, input := range f.Inputs() {
		b := inputs[input]
		if p := e.prog.params.Lookup(input); b == nil && p != nil {
			b = runtime.F32(p.Value.F32, p.Value.Dims...)
		}
		if b == nil {
			b = e.prog.inputs[input]
		}
		if b == nil {
			f.Close()
			return nil, fmt.Errorf("train: @%s reads %s, which nothing gives", name, input)
		}
		if err := f.Bind(input, b); err != nil {
			f.Close()
			return nil, err
		}
	}
	return f, nil
}

// weigh gives the edges of the graph weights, [E].
func (e *evidence) weigh(w []float32) error {
	e.a.F32 = e.st.Spread(e.a.F32, w)
	e.a.Dims[0] = len(e.a.F32)
	if e.f != nil && slices.Contains(e.f.Inputs(), "a") {
		return e.f.Bind("a", e.a)
	}
	return nil
}

// ready makes a function that judges pairs the one at hand.
func (e *evidence) ready(name string) error {
	if e.f != nil && e.f.Name() == name {
		return nil
	}
	e.release()
	inputs := map[string]*runtime.Buffer{"a": e.a, "w": e.w}
	for _, x := range e.known {
		inputs[x.name] = &x.part
	}
	f, err := e.onHost(name, inputs)
	if err == nil {
		e.f, e.weighs = f, slices.Contains(f.Inputs(), "w")
	}
	return err
}

// room makes room for n pairs.
func (e *evidence) room(n int) {
	e.pairs.I64, e.w.F32 = slices.Grow(e.pairs.I64[:0], 2*n)[:2*n], slices.Grow(e.w.F32[:0], n)[:n]
	e.pairs.Dims[1], e.w.Dims[0] = n, n
}

// run computes the function at hand for the pairs that are there.
func (e *evidence) run() error {
	if err := e.f.Bind("pairs", e.pairs); err != nil {
		return err
	}
	if e.weighs {
		if err := e.f.Bind("w", e.w); err != nil {
			return err
		}
	}
	return e.f.Run(0)
}

// over computes a function of n pairs, some at a time, which at gives with their weights, and
// calls use with its results and the number of the first.
func (e *evidence) over(name string, n int, at func(i int) (pair [2]int32, w float32), use func(f *runtime.Function, lo int)) error {
	if err := e.ready(name); err != nil {
		return err
	}
	for lo := 0; lo < n; lo += evidenceChunk {
		n := min(evidenceChunk, n-lo)
		e.room(n)
		for i := range n {
			pair, w := at(lo + i)
			e.pairs.I64[i], e.pairs.I64[n+i], e.w.F32[i] = int64(pair[0]), int64(pair[1]), w
		}
		if err := e.bindKnown(lo, n); err != nil {
			return err
		}
		if err := e.run(); err != nil {
			return err
		}
		use(e.f, lo)
	}
	return nil
}

// ofPairs is a number for each pair that is judged, and the part of them for the pairs at hand.
type ofPairs struct {
	name string
	all  []float32
	part runtime.Buffer
}

// bindKnown gives the function at hand what is known of n pairs from lo on.
func (e *evidence) bindKnown(lo, n int) error {
	for i := range e.known {
		x := &e.known[i]
		if x.part.F32, x.part.Dims = x.all[lo:lo+n], []int{n}; slices.Contains(e.f.Inputs(), x.name) {
			if err := e.f.Bind(x.name, &x.part); err != nil {
				return err
			}
		}
	}
	return nil
}

// likelihoods calls use with how likely n pairs are edges, by [models.ExistingFunc] or
// [models.MissingFunc], as [evidence.over] does.
func (e *evidence) likelihoods(name string, n int, at func(i int) (pair [2]int32, w float32), use func(p []float32, lo int)) error {
	if e.isOpen() {
		var all []ofPairs
		for _, r := range e.prog.Func(name).Results {
			if e.prog.Func(name+models.Weighed).Arg(r.Name) != nil {
				all = append(all, ofPairs{name: r.Name, all: make([]float32, n), part: *runtime.Zeros(0)})
			}
		}
		err := e.over(name, n, at, func(f *runtime.Function, lo int) {
			for _, x := range all {
				copy(x.all[lo:], f.Result(x.name).F32)
			}
		})
		if err != nil {
			return err
		}
		e.known, name = all, name+models.Weighed
		defer func() { e.known = nil }()
	}
	return e.over(name, n, at, func(f *runtime.Function, lo int) { use(f.Result("probability").F32, lo) })
}

// function names that which gives evidence by some sources.
func (e *evidence) function(names []string) string {
	switch len(names) {
	case len(e.rob):
		return models.RobustSourcesFunc
	case len(e.lin):
		return models.LinearSourcesFunc
	}
	return models.SourcesFunc
}

// judge returns the evidence for pairs by source, in the order of names. w are the weights
// of those that are edges; nil: none is.
func (e *evidence) judge(pairs [][2]int32, w []float32, names []string) ([][]float32, error) {
	out := make([][]float32, len(names))
	return out, e.over(e.function(names), len(pairs), func(i int) (pair [2]int32, weight float32) {
		if w != nil {
			weight = w[i]
		}
		return pairs[i], weight
	}, func(f *runtime.Function, _ int) {
		for k, name := range names {
			out[k] = append(out[k], f.Result(name).F32...)
		}
	})
}

// judgeEdges computes how likely each edge of the graph is one, which counts is what it counts by
// its weight; nil: as much as others.
func (e *evidence) judgeEdges(counts []float32) error {
	if err := e.weigh(filled(len(e.g.Edges), 1)); err != nil {
		return err
	}
	// Of the two entries of an edge, whose evidence differs by rounding, that which comes
	// first has it; in rounds each weighs by its own.
	in := e.st.In
	for r := 1; e.isOpen() && r <= models.EvidenceRounds; r++ {
		weights, row := make([]float32, len(e.a.F32)), int32(0)
		if err := e.over(models.WeightFunc(r), e.st.E, func(i int) ([2]int32, float32) {
			for int(in.RowPtr[row+1]) <= i {
				row++
			}
			return [2]int32{row, in.Col[i]}, e.a.F32[i]
		}, func(f *runtime.Function, lo int) { copy(weights[lo:], f.Result("weight").F32) }); err != nil {
			return err
		}
		copy(e.a.F32, weights)
		e.release() // which has read the weights of before
	}
	weight := filled(len(e.g.Edges), 0)
	for i, k := range slices.Backward(e.st.EdgeOf) {
		weight[k] = e.a.F32[i]
	}
	e.edges = make([]float32, len(e.g.Edges))
	err := e.likelihoods(models.ExistingFunc, len(e.edges), func(i int) ([2]int32, float32) { return e.g.Edges[i], weight[i] }, func(likely []float32, lo int) {
		for i, p := range likely {
			if counts != nil {
				p *= counts[lo+i]
			}
			e.edges[lo+i] = max(p, models.MinEvidence)
		}
	})
	e.release()
	return err
}

// isOpen reports whether robust evidence says anything.
func (e *evidence) isOpen() bool {
	return e.prog.params.Lookup(models.EvidenceGate).Value.F32[0] != 0
}

// ofCandidates returns how likely candidates are edges, in the memory of dst where that is
// large enough.
func (e *evidence) ofCandidates(dst []float32, c *graph.Candidates) ([]float32, error) {
	e.fresh, e.before = slices.Grow(e.before[:0], len(c.Edges)-len(e.edges)), e.fresh
	for i, pair := range c.Edges {
		if !c.Existing[i] {
			e.fresh = append(e.fresh, pair)
		}
	}
	if !slices.Equal(e.fresh, e.before) {
		if err := e.judgeFresh(); err != nil {
			return nil, err
		}
		if !e.keep {
			e.release()
			e.before = nil
		}
	}
	dst = slices.Grow(dst[:0], len(c.Edges))
	old, at := 0, 0 // both are sorted as the candidates are
	for _, exists := range c.Existing {
		if exists {
			dst = append(dst, e.edges[old])
			old++
		} else {
			dst = append(dst, e.likely[at])
			at++
		}
	}
	if e.once {
		e.fresh, e.before, e.likely = nil, nil, nil
	}
	return dst, nil
}

func (e *evidence) judgeFresh() error {
	e.likely = slices.Grow(e.likely[:0], len(e.fresh))[:len(e.fresh)]
	return e.likelihoods(models.MissingFunc, len(e.fresh), func(i int) ([2]int32, float32) { return e.fresh[i], 0 }, func(likely []float32, lo int) { copy(e.likely[lo:], likely) })
}
