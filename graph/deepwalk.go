package graph

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"sync/atomic"

	"github.com/gsrc-dev/gsrc/graph/internal/sgns"
	"github.com/gsrc-dev/gsrc/internal/fmath"
	"github.com/gsrc-dev/gsrc/rng"
	"github.com/gsrc-dev/gsrc/runtime/kernels"
)

// DeepWalkOptions are the options of [DeepWalk]. A zero field means its
// default; the defaults are those of the paper's reference implementation and
// of word2vec.
type DeepWalkOptions struct {
	Dim          int     // columns of the embedding; default 128
	WalksPerNode int     // default 10
	WalkLength   int     // nodes of a walk; default 80
	Window       int     // maximum distance between a node and its context; default 10
	Negatives    int     // negative samples per pair; default 5
	Epochs       int     // passes over the walks; default 1
	LR           float64 // learning rate at the start; default 0.025
	MinLR        float64 // learning rate at the end, reached linearly; default 0.0001
	Seed         uint64

	// Progress, if not nil, is called now and then with the number of walks
	// done and of all (epochs included). An error from it stops the training
	// and is returned.
	Progress func(done, total int) error
}

func (o DeepWalkOptions) withDefaults() (DeepWalkOptions, error) {
	for _, f := range []struct {
		name  string
		value *int
		def   int
	}{
		{"Dim", &o.Dim, 128}, {"WalksPerNode", &o.WalksPerNode, 10}, {"WalkLength", &o.WalkLength, 80},
		{"Window", &o.Window, 10}, {"Negatives", &o.Negatives, 5}, {"Epochs", &o.Epochs, 1},
	} {
		if *f.value < 0 || *f.value > maxOption {
			return o, fmt.Errorf("graph: DeepWalk option %s is %d, want 1..%d", f.name, *f.value, maxOption)
		}
		if *f.value == 0 {
			*f.value = f.def
		}
	}
	if o.walkPairs() > 1<<26 {
		return o, fmt.Errorf("graph: DeepWalk options WalkLength %d, Window %d and Negatives %d make up to %d pairs of one walk, want at most %d", o.WalkLength, o.Window, o.Negatives, o.walkPairs(), 1<<26)
	}
	o.LR = cmp.Or(o.LR, 0.025)
	if o.MinLR == 0 {
		o.MinLR = min(0.0001, o.LR)
	}
	if !(o.LR > 0 && o.MinLR > 0 && o.MinLR <= o.LR && o.LR <= 1) {
		return o, fmt.Errorf("graph: DeepWalk learning rate goes from %v to %v, want 1 ≥ LR ≥ MinLR > 0", o.LR, o.MinLR)
	}
	return o, nil
}

const maxOption = 1 << 20

// walkPairs returns the most pairs, negative ones included, that a walk has.
func (o *DeepWalkOptions) walkPairs() int64 {
	return 2 * int64(o.WalkLength) * int64(min(o.Window, o.WalkLength)) * int64(1+o.Negatives)
}

// Bytes returns at most how much memory DeepWalk takes on a graph of n nodes.
func (o DeepWalkOptions) Bytes(n int) int64 {
	o, err := o.withDefaults()
	if err != nil {
		return 0 // DeepWalk says so
	}
	// Both embeddings, their rows padded, and the result; of a node its first steps and
	// places; the pairs of an episode, as drawn and by blocks.
	pairs := o.walkPairs() * int64(o.episodeSize())
	return int64(n)*(4*(3*int64(o.Dim)+2*sgns.Pad)+4*int64(o.WalksPerNode)+96) + 40*pairs
}

// Sizes that the result depends on, so they are constants.
const (
	episodeWalks = 128     // most walks whose pairs are sorted into blocks at a time
	episodePairs = 1 << 21 // most pairs of an episode of more than one walk
	maxParts     = 8       // groups of nodes; as many blocks run side by side
	minPartNodes = 16      // nodes of a group
)

// episodeSize returns the number of walks of an episode.
func (o *DeepWalkOptions) episodeSize() int {
	return int(max(1, min(episodeWalks, episodePairs/o.walkPairs())))
}

// DeepWalk embeds the nodes of g (Perozzi, Al-Rfou, Skiena: "DeepWalk: online
// learning of social representations", KDD 2014): skip-gram with negative
// sampling (Mikolov et al. 2013) over random walks, as in word2vec: the window
// of every position is drawn from 1..Window, negatives from the unigram
// distribution to the power 0.75. It returns [N, Dim] row-major. Nodes on no
// walk (those without neighbours) get zeros. Edges are walked in both
// directions and evenly; weights are not used.
//
// Training is plain stochastic gradient descent, on as many threads as the pool
// has (one if it is nil), with the same result for any number: nodes are split
// into groups, the pairs of an episode (negative ones too) into blocks by the
// groups of their two nodes, and blocks without a common group run side by side
// (after Zhu et al.: "GraphVite", WWW 2019).
//
// On Cora a linear probe of it is as good as one of gensim's Word2Vec on the
// same walks: 70.1 % and 70.7 % on the public split, 69.3 % and 69.6 % with 20
// random labels a class, means of five seeds after one epoch, and 71.1 % and
// 71.2 %, 69.9 % and 70.0 % after five.
func DeepWalk(pool *kernels.Pool, g *Graph, o DeepWalkOptions) ([]float32, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	t := newTrainer(pool, g, o)
	if len(t.nodes) > 0 {
		if err := t.train(); err != nil {
			return nil, err
		}
	}
	out := make([]float32, g.N*o.Dim)
	for row, v := range t.nodes {
		copy(out[int(v)*o.Dim:][:o.Dim], t.in[row*t.stride:])
	}
	return out, nil
}

// trainer holds one run of DeepWalk. Its rows are the nodes on walks, group by
// group.
type trainer struct {
	o      DeepWalkOptions
	pool   *kernels.Pool
	kernel sgns.Kernel
	walker *walker
	s      rng.Stream

	nodes  []int32 // [rows] the node of a row
	row    []int32 // [N] the row of a node
	part   []uint8 // [rows] the group of a row
	parts  int     // number of groups
	noise  alias   // distribution of negatives over rows
	stride int     // columns of a row, padded
	in     []float32
	out    []float32

	// The open episode.
	tokens []int32  // [walks, length] rows
	drawn  [][]pair // [walks] pairs of a walk
	count  []int32  // [walks, parts²] pairs of a walk in a block, then where they start
	start  []int32  // [parts²+1] blocks in pairs
	pairs  []pair   // block by block, walks in order
	lr     float32

	scratch []pairScratch // [parts]
}

// pair is a row and that of its context, the latter as its complement (below 0)
// if it is a negative sample.
type pair struct{ node, context int32 }

// pairScratch is the working memory of one block.
type pairScratch struct {
	idx    []int32
	factor []float32
	_      [64]byte // keeps neighbours off the same cache line
}

func newTrainer(pool *kernels.Pool, g *Graph, o DeepWalkOptions) *trainer {
	t := &trainer{
		o: o, pool: pool, kernel: sgns.For(kernels.ISA()),
		walker: newWalker(g, o.WalksPerNode, o.WalkLength, o.Seed),
		s:      rng.New(o.Seed, "deepwalk"),
		row:    make([]int32, g.N),
		stride: (o.Dim + sgns.Pad - 1) / sgns.Pad * sgns.Pad,
	}
	visits := t.visits(g.N)
	for v, c := range visits {
		if c > 0 {
			t.nodes = append(t.nodes, int32(v))
		}
	}
	parts := max(1, min(maxParts, len(t.nodes)/minPartNodes))
	t.split(visits, parts)

	t.in = make([]float32, len(t.nodes)*t.stride)
	t.out = make([]float32, len(t.nodes)*t.stride)
	first := t.s.Sub("init")
	for row, v := range t.nodes {
		for k := range o.Dim {
			t.in[row*t.stride+k] = (first.Uniform(uint64(v)*uint64(o.Dim)+uint64(k)) - 0.5) / float32(o.Dim)
		}
	}
	walks := min(o.episodeSize(), len(t.walker.starts))
	t.tokens = make([]int32, walks*o.WalkLength)
	t.drawn = make([][]pair, walks)
	t.count = make([]int32, walks*parts*parts)
	t.start = make([]int32, parts*parts+1)
	t.scratch = make([]pairScratch, parts)
	for i := range t.scratch {
		t.scratch[i].idx = make([]int32, 1+o.Negatives)
		t.scratch[i].factor = make([]float32, 1+o.Negatives)
	}
	return t
}

// visits counts how often each node is on a walk.
func (t *trainer) visits(n int) []int64 {
	visits := make([]int64, n)
	parallel(t.pool, len(t.walker.starts), episodeWalks, func(lo, hi int) {
		walk := make([]int32, t.o.WalkLength)
		for i := lo; i < hi; i++ {
			t.walker.walk(i, walk)
			for _, v := range walk {
				atomic.AddInt64(&visits[v], 1)
			}
		}
	})
	return visits
}

// split deals the nodes out to groups, the most visited first, so that all
// groups have about as many visits.
func (t *trainer) split(visits []int64, parts int) {
	slices.SortStableFunc(t.nodes, func(a, b int32) int { return cmp.Compare(visits[b], visits[a]) })
	t.parts = parts
	groups := make([][]int32, parts)
	for i, v := range t.nodes {
		p := i % (2 * parts) // 0 1 2 … 2 1 0 0 1 2 …
		if p >= parts {
			p = 2*parts - 1 - p
		}
		groups[p] = append(groups[p], v)
	}
	t.nodes = t.nodes[:0:0]
	var weights []float64
	for p, group := range groups {
		for _, v := range group {
			t.row[v] = int32(len(t.nodes))
			t.nodes = append(t.nodes, v)
			t.part = append(t.part, uint8(p))
			weights = append(weights, fmath.Pow(float64(visits[v]), 0.75))
		}
	}
	t.noise = newAlias(weights)
}

func (t *trainer) train() error {
	walks := len(t.walker.starts)
	total := t.o.Epochs * walks
	for done := 0; done < total; {
		epoch, first := done/walks, done%walks
		n := min(t.o.episodeSize(), walks-first)
		t.lr = float32(t.o.LR - (t.o.LR-t.o.MinLR)*float64(done)/float64(total))
		t.episode(epoch, first, n)
		done += n
		if t.o.Progress != nil {
			if err := t.o.Progress(done, total); err != nil {
				return err
			}
		}
	}
	return nil
}

// episode trains on n walks from the given one on.
func (t *trainer) episode(epoch, first, n int) {
	parts := t.parts
	blocks := parts * parts
	draws := t.s.Sub("pairs").At(uint64(epoch))
	const grain = 4
	parallel(t.pool, n, grain, func(lo, hi int) {
		for i := lo; i < hi; i++ {
			t.drawPairs(i, first+i, draws.At(uint64(first+i)))
			count := t.count[i*blocks : (i+1)*blocks]
			clear(count)
			for _, p := range t.drawn[i] {
				count[t.blockOf(p)]++
			}
		}
	})
	at := int32(0)
	for b := range blocks {
		t.start[b] = at
		for i := range n {
			c := &t.count[i*blocks+b]
			*c, at = at, at+*c
		}
	}
	t.start[blocks] = at
	t.pairs = resize(t.pairs, int(at))
	parallel(t.pool, n, grain, func(lo, hi int) {
		for i := lo; i < hi; i++ {
			next := t.count[i*blocks : (i+1)*blocks]
			for _, p := range t.drawn[i] {
				b := t.blockOf(p)
				t.pairs[next[b]] = p
				next[b]++
			}
		}
	})
	for shift := range parts {
		parallel(t.pool, parts, 1, func(lo, hi int) {
			for p := lo; p < hi; p++ {
				t.block(p, p*parts+(p+shift)%parts)
			}
		})
	}
}

// blockOf returns the number of the block that a pair belongs to.
func (t *trainer) blockOf(p pair) int {
	v := p.context
	if v < 0 {
		v = ^v
	}
	return int(t.part[p.node])*t.parts + int(t.part[v])
}

// drawPairs draws the pairs of the episode's walk i: for every position those
// with the nodes within its window, each followed by its negatives. A negative
// that happens to be the context itself is left out.
func (t *trainer) drawPairs(i, walkNumber int, s rng.Stream) {
	length := t.o.WalkLength
	walk := t.tokens[i*length : (i+1)*length]
	t.walker.walk(walkNumber, walk)
	for j, v := range walk {
		walk[j] = t.row[v]
	}
	pairs := t.drawn[i][:0]
	var words [4]uint32
	drawn := uint64(0)
	next := func() uint32 {
		if drawn%4 == 0 {
			words = s.Block(drawn/4, 0)
		}
		w := words[drawn%4]
		drawn++
		return w
	}
	for j, u := range walk {
		w := 1 + int(uint64(next())*uint64(t.o.Window)>>32)
		for at := max(0, j-w); at <= min(length-1, j+w); at++ {
			if at == j {
				continue
			}
			v := walk[at]
			pairs = append(pairs, pair{u, v})
			for range t.o.Negatives {
				if x := t.noise.draw(next()); x != v {
					pairs = append(pairs, pair{u, ^x})
				}
			}
		}
	}
	t.drawn[i] = pairs
}

// block trains on the pairs of block b, whose nodes are in group p. Pairs that
// follow each other with one node are one step, but no more than one context
// with as many negatives as it has.
func (t *trainer) block(p, b int) {
	pairs := t.pairs[t.start[b]:t.start[b+1]]
	sc := &t.scratch[p]
	for len(pairs) > 0 {
		node, positive := pairs[0].node, -1
		idx := sc.idx[:0]
		for _, q := range pairs {
			if q.node != node || len(idx) == cap(sc.idx) || q.context >= 0 && positive >= 0 {
				break
			}
			if q.context < 0 {
				idx = append(idx, ^q.context)
			} else {
				positive = len(idx)
				idx = append(idx, q.context)
			}
		}
		pairs = pairs[len(idx):]
		u := t.in[int(node)*t.stride:][:t.stride]
		factor := sc.factor[:len(idx)]
		t.kernel.Scores(factor, u, t.out, idx)
		for j, x := range factor {
			factor[j] = -t.lr * sigmoid(x)
		}
		if positive >= 0 {
			factor[positive] += t.lr
		}
		t.kernel.Update(factor, u, t.out, idx)
	}
}

// Sigmoid by table over (-6, 6), as word2vec does it; 0 and 1 beyond.
const (
	sigmoidRange = 6.0
	sigmoidSteps = 1024
)

var sigmoidTable = func() (table [sigmoidSteps]float32) {
	for i := range table {
		x := (float64(float64(2*i+1)/sigmoidSteps) - 1) * sigmoidRange
		table[i] = float32(fmath.Sigmoid(x))
	}
	return table
}()

func sigmoid(x float32) float32 {
	switch {
	case x >= sigmoidRange:
		return 1
	case !(x > -sigmoidRange): // NaN too
		return 0
	}
	return sigmoidTable[min(sigmoidSteps-1, int((x+sigmoidRange)*(sigmoidSteps/(2*sigmoidRange))))]
}

// alias draws from a discrete distribution in constant time (Walker 1977, built
// as in Vose 1991).
type alias []struct {
	below uint32 // a fraction below this keeps the column's own number
	other int32
}

// newAlias prepares draws of i with probability weights[i]/Σ weights.
func newAlias(weights []float64) alias {
	n := len(weights)
	sum := 0.0
	for _, w := range weights {
		sum += w
	}
	a := make(alias, n)
	scaled := make([]float64, n)
	var small, large []int32
	for i, w := range weights {
		scaled[i] = w / sum * float64(n)
		a[i].other = int32(i)
		a[i].below = math.MaxUint32
		if scaled[i] < 1 {
			small = append(small, int32(i))
		} else {
			large = append(large, int32(i))
		}
	}
	for len(small) > 0 && len(large) > 0 {
		s, l := small[len(small)-1], large[len(large)-1]
		small = small[:len(small)-1]
		a[s].below, a[s].other = uint32(scaled[s]*(1<<32)), l
		scaled[l] -= 1 - scaled[s]
		if scaled[l] < 1 {
			large = large[:len(large)-1]
			small = append(small, l)
		}
	}
	return a
}

// draw maps 32 random bits to a number.
func (a alias) draw(w uint32) int32 {
	p := uint64(w) * uint64(len(a))
	i := int32(p >> 32)
	if c := &a[i]; uint32(p) >= c.below {
		return c.other
	}
	return i
}
