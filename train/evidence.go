package train

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/gsrc-dev/gsrc/graph"
	"github.com/gsrc-dev/gsrc/internal/scratch"
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
	prog   *program
	pool   *kernels.Pool
	g      *graph.Graph // undirected
	st     *graph.Structure
	chunks func() (runtime.Chunks, error) // over which rows of all nodes are computed; nil: at once, in memory
	files  *scratch.Files                 // where there are chunks, of what is known of pairs

	f     *runtime.Function     // that judged pairs last; others would hold rows of all nodes too
	reads []string              // its inputs
	keep  bool                  // what judges candidates, since others will follow
	once  bool                  // candidates are judged, none will follow
	told  func(done, total int) // of the edges that are judged, in all passes over a large graph; may be nil
	k     [2]int                // how many of near and of two are asked for
	a     *runtime.Buffer       // [entries] weights of the graph's edges
	w     *runtime.Buffer       // [P] of the pairs
	pairs *runtime.Buffer       // [2,P]
	known []ofPairs             // of the pairs in the graph as it is, which the function at hand may read
	edges []float32             // [E] how likely each edge is one
	near  []int32               // [N,k[0]] by the rows "evidence"
	two   []int32               // [N,k[1]]

	names, lin, rob []string // of the sources, and of those of the linear and robust regressions

	fresh, before [][2]int32 // of the candidates that were judged last, and before, those that are no edges
	likely        []float32  // how likely the last are edges
}

// newEvidence readies the functions of a program for an undirected graph, of which st has the rows.
func newEvidence(prog *program, pool *kernels.Pool, g *graph.Graph, st *graph.Structure) *evidence {
	e := &evidence{prog: prog, pool: pool, g: g, st: st,
		a: runtime.Zeros(0), w: runtime.Zeros(0), pairs: runtime.I64([]int64{0, 0}, 2, 1)}
	e.names, e.lin, e.rob = models.EvidenceOf(func(param string) bool { return prog.Param(param) != nil })
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
	o := runtime.Options{Pool: e.pool}
	if e.chunks != nil {
		c, err := e.chunks()
		if err != nil {
			return nil, err
		}
		o.Chunks = &c
	}
	f, err := runtime.NewFunction(e.prog.Module, name, o)
	if err != nil {
		return nil, err
	}
	inputs["g"], inputs["pairs"] = runtime.Graph(e.st), e.pairs
	for _, input := range f.Inputs() {
		b := cmp.Or(inputs[input], e.value(input))
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

// value is what is known of an input of any function.
func (e *evidence) value(input string) *runtime.Buffer {
	if p := e.prog.params.Lookup(input); p != nil {
		return runtime.F32(p.Value.F32, p.Value.Dims...)
	}
	return e.prog.inputs[input]
}

// weigh gives the edges of the graph weights, [E]; nil: ones.
func (e *evidence) weigh(w []float32) (err error) {
	if e.a.F32, err = e.floats(e.a.F32, e.st.E); err != nil {
		return err
	}
	e.a.F32 = e.st.Spread(e.a.F32, w)
	e.a.Dims[0] = len(e.a.F32)
	if e.f == nil {
		return nil
	}
	return e.bind("a", e.a)
}

// bind gives the function at hand an input if it reads that.
func (e *evidence) bind(name string, b *runtime.Buffer) error {
	if !slices.Contains(e.reads, name) {
		return nil
	}
	return e.f.Bind(name, b)
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
		e.f, e.reads = f, f.Inputs()
	}
	return err
}

// floats returns x with length 0 and room for n elements.
func (e *evidence) floats(x []float32, n int) ([]float32, error) {
	x, err := scratch.Room(e.files, x, n)
	return slices.Grow(x, n), err
}

// over computes a function of n pairs, some at a time, which at gives with their weights, and
// calls use with its results and the number of the first.
func (e *evidence) over(name string, n int, at func(i int) (pair [2]int32, w float32), use func(f *runtime.Function, lo int)) error {
	if err := e.ready(name); err != nil {
		return err
	}
	for lo := 0; lo < n; lo += evidenceChunk {
		n := min(evidenceChunk, n-lo)
		e.pairs.I64, e.w.F32 = slices.Grow(e.pairs.I64[:0], 2*n)[:2*n], slices.Grow(e.w.F32[:0], n)[:n]
		e.pairs.Dims[1], e.w.Dims[0] = n, n
		for i := range n {
			pair, w := at(lo + i)
			e.pairs.I64[i], e.pairs.I64[n+i], e.w.F32[i] = int64(pair[0]), int64(pair[1]), w
		}
		err := errors.Join(e.bind("pairs", e.pairs), e.bind("w", e.w))
		for i := range e.known {
			x := &e.known[i]
			x.part.F32, x.part.Dims = x.all[lo:lo+n], []int{n}
			err = errors.Join(err, e.bind(x.name, &x.part))
		}
		if err == nil {
			err = e.f.Run(0)
		}
		if err != nil {
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

// likelihoods calls use with how likely n pairs are edges, by [models.ExistingFunc] or
// [models.MissingFunc], as [evidence.over] does.
func (e *evidence) likelihoods(name string, n int, at func(i int) (pair [2]int32, w float32), use func(p []float32, lo int)) error {
	if e.isOpen() {
		var all []ofPairs
		for _, r := range e.prog.Func(name).Results {
			if e.prog.Func(name+models.Weighed).Arg(r.Name) != nil {
				x, err := e.floats(nil, n)
				if err != nil {
					return err
				}
				all = append(all, ofPairs{name: r.Name, all: x, part: *runtime.Zeros(0)})
			}
		}
		err := e.over(name, n, at, func(f *runtime.Function, _ int) {
			for i := range all {
				all[i].all = append(all[i].all, f.Result(all[i].name).F32...)
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
	if err := e.weigh(nil); err != nil {
		return err
	}
	// Of the two entries of an edge, whose evidence differs by rounding, that which comes
	// first has it; in rounds each weighs by its own.
	in := e.st.In
	var weights []float32
	for r := 1; e.isOpen() && r <= models.EvidenceRounds; r++ {
		var err error
		if weights, err = e.floats(weights, len(e.a.F32)); err != nil {
			return err
		}
		row := int32(0)
		if err := e.over(models.WeightFunc(r), e.st.E, func(i int) ([2]int32, float32) {
			for int(in.RowPtr[row+1]) <= i {
				row++
			}
			return [2]int32{row, in.Col[i]}, e.a.F32[i]
		}, func(f *runtime.Function, _ int) { weights = append(weights, f.Result("weight").F32...) }); err != nil {
			return err
		}
		copy(e.a.F32, weights)
		e.release() // which has read the weights of before
	}
	// First entries are in the order of the edges, in the rows of their lower ends.
	weight, err := e.floats(nil, len(e.g.Edges))
	if err != nil {
		return err
	}
	for v := range e.st.N {
		for i := in.RowPtr[v]; i < in.RowPtr[v+1]; i++ {
			if int(in.Col[i]) > v {
				weight = append(weight, e.a.F32[i])
			}
		}
	}
	if e.edges, err = e.floats(nil, len(e.g.Edges)); err != nil {
		return err
	}
	e.edges = append(e.edges, weight...)
	err = e.likelihoods(models.ExistingFunc, len(e.edges), func(i int) ([2]int32, float32) { return e.g.Edges[i], weight[i] }, func(likely []float32, lo int) {
		e.tell(models.EvidenceRounds, lo+len(likely))
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

// tell tells that so many edges were judged after some passes over all, where there are many: after those
// that weigh edges comes one that says how likely they are.
func (e *evidence) tell(passes, edges int) {
	if all := len(e.g.Edges); e.told != nil && looksAtSome(all, len(e.names)) {
		e.told(passes*all+edges, (models.EvidenceRounds+1)*all)
	}
}

// isOpen reports whether robust evidence says anything.
func (e *evidence) isOpen() bool {
	gate := e.prog.inputs[models.EvidenceGate]
	if p := e.prog.params.Lookup(models.EvidenceGate); p != nil {
		gate = p.Value
	}
	return gate.F32[0] != 0
}

// ofCandidates returns how likely candidates are edges, in the memory of dst where that is
// large enough.
func (e *evidence) ofCandidates(dst []float32, c *graph.Candidates) ([]float32, error) {
	fresh, err := scratch.Room(e.files, e.before, len(c.Edges)-len(e.edges))
	if err != nil {
		return nil, err
	}
	e.fresh, e.before = slices.Grow(fresh, len(c.Edges)-len(e.edges)), e.fresh
	for i, pair := range c.Edges {
		if !c.Existing[i] {
			e.fresh = append(e.fresh, pair)
		}
	}
	if !slices.Equal(e.fresh, e.before) {
		if e.likely, err = e.floats(e.likely, len(e.fresh)); err != nil {
			return nil, err
		}
		e.likely = e.likely[:len(e.fresh)]
		if err := e.likelihoods(models.MissingFunc, len(e.fresh), func(i int) ([2]int32, float32) { return e.fresh[i], 0 }, func(likely []float32, lo int) { copy(e.likely[lo:], likely) }); err != nil {
			return nil, err
		}
		if !e.keep {
			e.release()
			e.before = nil
		}
	}
	if dst, err = e.floats(dst, len(c.Edges)); err != nil {
		return nil, err
	}
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
