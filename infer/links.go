package infer

import (
	"fmt"
	"slices"
	"sort"

	"github.com/gsrc-dev/gsrc/graph"
	"github.com/gsrc-dev/gsrc/runtime/kernels"
	"github.com/gsrc-dev/gsrc/runtime/ort"
)

// link is a candidate for an edge, in the rows of both its ends.
type link struct {
	to  int32
	why uint8
	p   float32 // of a candidate; see counted
}

// Why two nodes are linked.
const (
	linkNear     = 1 << iota // the row's node has the other among its nearest
	linkNearBack             // the reverse
	linkEdge                 // the data have the edge
	linkTwo                  // the row's node has the other among those two steps away
	linkTwoBack              // the reverse
)

// proposals are the ways in which nodes propose candidates.
var proposals = [2]struct{ why, back uint8 }{{linkNear, linkNearBack}, {linkTwo, linkTwoBack}}

// candidate tells whether a link may be an edge. Of mutual neighbours each must be the other's.
func (r *Graph) candidate(l *link) bool {
	return l.why&linkEdge != 0 || l.why != 0 && (!r.p.info.Mutual || l.why&(linkNear|linkTwo) != 0 && l.why&(linkNearBack|linkTwoBack) != 0)
}

// kept tells whether a link is an edge of the refined graph.
func (r *Graph) kept(l *link) bool { return r.candidate(l) && l.p >= float32(r.p.info.Threshold) }

// counted is what is kept of a probability: 0 where the link is no edge of the refined graph,
// unless the encoder weighs its messages by it.
func (inc *incremental) counted(p float32, edge bool) float32 {
	if p >= float32(inc.r.p.info.Threshold) || edge && inc.weighs {
		return p
	}
	return 0
}

// refinedEntries gives the entries of a refined graph.
func (r *Graph) refinedEntries(links [][]link) entriesOf {
	var from []int32
	var w []float32
	return func(v int32) ([]int32, []float32) {
		from, w = from[:0], w[:0]
		for i := range links[v] {
			l := &links[v][i]
			if !r.kept(l) {
				continue
			}
			p := l.p
			if r.p.info.Mode == "threshold" {
				p = 1
			}
			from, w = append(from, l.to), append(w, p)
		}
		return from, w
	}
}

// link rebuilds the refined graph; g is undirected.
func (inc *incremental) link(g *graph.Graph) error {
	inc.links, inc.weights = make([][]link, inc.n), make([][]float32, inc.n)
	k := inc.r.p.info.K + inc.r.p.info.TwoStep
	near := make([]int32, 0, inc.n*k)
	for v := range int32(inc.n) {
		for _, list := range inc.proposed(v) {
			near = append(near, list...)
		}
		for len(near) < int(v+1)*k {
			near = append(near, -1)
		}
	}
	c, err := graph.NewCandidates(g, near, k, false)
	if err != nil {
		return err
	}
	degree := make([]int32, inc.n)
	for _, e := range c.Edges {
		degree[e[0]]++
		degree[e[1]]++
	}
	for v, d := range degree {
		inc.links[v] = make([]link, 0, d)
	}
	// Edges are sorted, so rows come out sorted: first the lower neighbours, then the higher.
	for _, e := range c.Edges {
		inc.links[e[1]] = append(inc.links[e[1]], link{to: e[0]})
	}
	for _, e := range c.Edges {
		inc.links[e[0]] = append(inc.links[e[0]], link{to: e[1]})
	}
	for i, e := range c.Edges {
		if c.Existing[i] {
			inc.at(e[0], e[1]).why |= linkEdge
			inc.at(e[1], e[0]).why |= linkEdge
		}
	}
	for v := range int32(inc.n) {
		for i, list := range inc.proposed(v) {
			for _, u := range list {
				inc.at(v, u).why |= proposals[i].why
				inc.at(u, v).why |= proposals[i].back
			}
		}
	}
	var pairs pairs
	for i, e := range c.Edges {
		if l := inc.at(e[0], e[1]); inc.r.candidate(l) {
			pairs.add(e, c.Existing[i], 0)
		}
	}
	p, err := inc.score(&pairs)
	if err != nil {
		return err
	}
	for i, e := range pairs.ends {
		q := inc.counted(p[i], pairs.edge[i])
		inc.at(e[0], e[1]).p, inc.at(e[1], e[0]).p = q, q
	}
	return nil
}

// proposed are the candidates that a node proposes, in the order of proposals.
func (inc *incremental) proposed(v int32) (lists [2][]int32) {
	if inc.near != nil {
		lists[0] = inc.near.Nearest(v)
	}
	if inc.twoStep != nil {
		lists[1] = inc.twoStep.Of(v)
	}
	return lists
}

// at returns the link from u to v, nil if there is none.
func (inc *incremental) at(u, v int32) *link {
	row := inc.links[u]
	if i, ok := findLink(row, v); ok {
		return &row[i]
	}
	return nil
}

func findLink(row []link, v int32) (int, bool) {
	// Probabilities of others may be written meanwhile: a search over links would read them.
	i := sort.Search(len(row), func(i int) bool { return row[i].to >= v })
	return i, i < len(row) && row[i].to == v
}

// pairs are links that are scored.
type pairs struct {
	ends [][2]int32 // each ascending
	edge []bool     // which the data have
	was  []float32  // their probabilities before
}

func (p *pairs) add(ends [2]int32, edge bool, was float32) {
	p.ends, p.edge, p.was = append(p.ends, ends), append(p.edge, edge), append(p.was, was)
}

func (p *pairs) part(lo, hi int) *pairs {
	return &pairs{p.ends[lo:hi], p.edge[lo:hi], p.was[lo:hi]}
}

// score gives pairs their probabilities.
func (inc *incremental) score(all *pairs) ([]float32, error) {
	p := make([]float32, len(all.ends))
	width, score := 0, func(p []float32, some *pairs) error { return inc.judge.score(p, some, inc.both) }
	switch {
	case inc.judge != nil:
		for _, f := range inc.judge.values {
			width += f.width
		}
	case inc.scorer != nil:
		inc.near.Cosines(inc.pool, p, all.ends)
		width, score = cosineValues, inc.ofCosines
	default:
		width, score = inc.encoder.values[inc.embedding].width, inc.ofRows
	}
	count := max(1, min(scoreValues/max(1, width), max(cutLeast, (len(p)+inc.pool.Threads()-1)/inc.pool.Threads())))
	err := each(inc.pool, (len(p)+count-1)/count, func(i int) error {
		lo, hi := i*count, min((i+1)*count, len(p))
		return score(p[lo:hi], all.part(lo, hi))
	})
	return p, err
}

// ofCosines gives pairs, whose cosines p has, their probabilities by the embedding.
func (inc *incremental) ofCosines(p []float32, some *pairs) error {
	in := map[string]ort.Tensor{inc.scorer.Cosine.Name: ort.Float32s(p, int64(len(p)))}
	out, err := inc.scorer.Run(0, 0, in, ort.Tensor{}, nil)
	if err != nil {
		return fmt.Errorf("scorer: %w", err)
	}
	q, err := probabilities(out, some.edge)
	copy(p, q)
	return err
}

// ofRows is ofCosines where the scorer reads the rows of the embedding.
func (inc *incremental) ofRows(p []float32, some *pairs) error {
	h := inc.encoder.values[inc.embedding]
	rows := rowSet{of: make(map[int32]int64, len(p))}
	ends := make([]int64, 2*len(p))
	for i, e := range some.ends {
		ends[i], ends[len(p)+i] = rows.number(e[0]), rows.number(e[1])
	}
	q, err := inc.r.p.score(rows.tensor(h), ends, some.edge)
	copy(p, q)
	return err
}

// toScore lists the links of nodes, and others, that are of a kind, each once.
func (inc *incremental) toScore(nodes []bool, others [][2]int32, kind func(*link) bool) *pairs {
	all := &pairs{}
	add := func(u int32, l *link) {
		all.add([2]int32{min(u, l.to), max(u, l.to)}, l.why&linkEdge != 0, l.p)
	}
	for v, yes := range nodes {
		if !yes {
			continue
		}
		for i := range inc.links[v] {
			l := &inc.links[v][i]
			if kind(l) && !(nodes[l.to] && int(l.to) < v) { // else it is among those of l.to
				add(int32(v), l)
			}
		}
	}
	others = slices.Clone(others)
	slices.SortFunc(others, compareEdges)
	for _, e := range slices.Compact(others) {
		if l := inc.at(e[0], e[1]); !nodes[e[0]] && !nodes[e[1]] && l != nil && kind(l) {
			add(e[0], l)
		}
	}
	return all
}

// connect enters what has changed in the lists of neighbours, and returns which edges
// there are more and less if directions do not count.
func (inc *incremental) connect(c *changes, directed bool) (added, removed [][2]int32) {
	type lists = [][]int32
	grown := func(l lists) lists { return append(l, make(lists, max(0, inc.n-len(l)))...) }
	inc.in = grown(inc.in)
	if directed {
		inc.out, inc.both = grown(inc.out), grown(inc.both)
	} else {
		inc.out, inc.both = inc.in, inc.in
	}
	owned := map[*[]int32]bool{}
	// set enters u in the row of v, or takes it out.
	set := func(l lists, v, u int32, in bool) {
		at := &l[v]
		if !owned[at] {
			owned[at] = true
			old := *at
			inc.undoing(func() { *at = old })
			*at = slices.Clone(old)
		}
		switch i, ok := slices.BinarySearch(*at, u); {
		case in && !ok:
			*at = slices.Insert(*at, i, u)
		case ok && !in:
			*at = slices.Delete(*at, i, i+1)
		}
	}
	change := func(edges [][2]int32, in bool) {
		for _, e := range edges {
			set(inc.in, e[1], e[0], in)
			set(inc.out, e[0], e[1], in) // the same lists where there are no directions
		}
	}
	change(c.removed, false)
	change(c.added, true)
	if !directed {
		return c.added, c.removed
	}
	has := func(l lists, v, u int32) bool { _, ok := slices.BinarySearch(l[v], u); return ok }
	seen := map[[2]int32]bool{}
	for _, e := range slices.Concat(c.removed, c.added) {
		u, v := min(e[0], e[1]), max(e[0], e[1])
		if pair := [2]int32{u, v}; !seen[pair] {
			seen[pair] = true
			switch now, was := has(inc.in, u, v) || has(inc.in, v, u), has(inc.both, u, v); {
			case now && !was:
				set(inc.both, u, v, true)
				set(inc.both, v, u, true)
				added = append(added, pair)
			case was && !now:
				set(inc.both, u, v, false)
				set(inc.both, v, u, false)
				removed = append(removed, pair)
			}
		}
	}
	return added, removed
}

// weaver changes the refined graph for a version, and leaves that of the version before.
type weaver struct {
	inc   *incremental
	owned []bool
}

func (inc *incremental) weave() *weaver {
	old := inc.links
	inc.undoing(func() { inc.links = old })
	inc.links = append(make([][]link, 0, inc.n), old...)[:inc.n]
	w := &weaver{inc, make([]bool, inc.n)}
	inc.weights = append(inc.weights, make([][]float32, max(0, inc.n-len(inc.weights)))...)
	inc.undoing(func() {
		for v, owned := range w.owned {
			if owned {
				inc.weights[v] = nil
			}
		}
	})
	return w
}

// own makes the row of a node the new version's alone.
func (w *weaver) own(v int32) {
	if !w.owned[v] {
		w.owned[v] = true
		w.inc.links[v] = slices.Clone(w.inc.links[v])
	}
	w.inc.weights[v] = nil
}

// write gives pairs their probabilities.
func (w *weaver) write(pairs *pairs, p []float32) {
	rows := make([]bool, w.inc.n)
	for i, e := range pairs.ends {
		if pairs.was[i] != p[i] {
			rows[e[0]], rows[e[1]] = true, true
		}
	}
	w.inc.pool.For(len(rows), 1<<9, kernels.BodyFunc(func(lo, hi int) {
		for v := lo; v < hi; v++ {
			if rows[v] {
				w.own(int32(v))
			}
		}
	}))
	w.inc.pool.For(len(p), 1<<9, kernels.BodyFunc(func(lo, hi int) {
		for i := lo; i < hi; i++ {
			e := pairs.ends[i]
			if pairs.was[i] == p[i] {
				continue
			}
			w.inc.at(e[0], e[1]).p, w.inc.at(e[1], e[0]).p = p[i], p[i]
		}
	}))
}

func (w *weaver) set(u, v int32, why uint8) {
	w.own(u)
	row := w.inc.links[u]
	i, ok := findLink(row, v)
	if !ok {
		row = slices.Insert(row, i, link{to: v})
		w.inc.links[u] = row
	}
	row[i].why |= why
}

func (w *weaver) unset(u, v int32, why uint8) {
	w.own(u)
	row := w.inc.links[u]
	i, ok := findLink(row, v)
	if !ok {
		return
	}
	if row[i].why &^= why; row[i].why == 0 {
		w.inc.links[u] = slices.Delete(row, i, i+1)
	}
}
