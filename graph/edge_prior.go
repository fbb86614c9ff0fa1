package graph

import "github.com/gsrc-dev/gsrc/rng"

// EdgePrior is what the edges of a graph count: how probable they are by evidence, what they
// weigh in the data, or both.
type EdgePrior struct {
	Graph *Graph    // undirected
	P     []float32 // [E] of its edges
}

// NullFraction returns the share of edges that are none, as far as P tells beside what the
// edges count by their weights, [E] or nil.
func (e *EdgePrior) NullFraction(counts []float32) float64 {
	sum := 0.0
	for i, p := range e.P {
		if counts != nil {
			p = min(1, p/counts[i])
		}
		sum += 1 - float64(p)
	}
	return sum / float64(max(1, len(e.P)))
}

// OfEntries returns the prior of each entry of the structure of g, the weights of
// the encoder's messages, in the memory of dst where that is large enough. g is the
// graph that the prior is of, or a part of it whose node i was the node nodes[i].
func (e *EdgePrior) OfEntries(dst []float32, g *Graph, st *Structure, nodes []int32) []float32 {
	dst = dst[:0]
	for _, k := range st.EdgeOf {
		u, v := g.Edges[k][0], g.Edges[k][1]
		if nodes != nil {
			u, v = nodes[u], nodes[v]
		}
		at, _ := e.Graph.Find(u, v)
		dst = append(dst, e.P[at])
	}
	return dst
}

// OfCandidates returns the prior of each candidate, 1 for new ones, in the memory
// of dst where that is large enough.
func (e *EdgePrior) OfCandidates(dst []float32, c *Candidates) []float32 {
	dst = dst[:0]
	at := 0
	for _, existing := range c.Existing {
		if !existing {
			dst = append(dst, 1)
			continue
		}
		dst = append(dst, e.P[at]) // both are sorted alike
		at++
	}
	return dst
}

// RandomPairs draws pairs {u, v}, u < v, of different nodes without an edge of an undirected
// graph: nodes alike, or by degree, each as often as it ends an edge. A graph that has nearly
// all edges may have fewer than are wanted.
func RandomPairs(g *Graph, want int, byDegree bool, s rng.Stream) (pairs [][2]int32) {
	node := func(i uint64) int32 {
		if byDegree {
			end := s.Intn(i, 2*len(g.Edges))
			return g.Edges[end/2][end%2]
		}
		return int32(s.Intn(i, g.N))
	}
	for i := uint64(0); len(pairs) < want && i < 20*uint64(want); i++ {
		if u, v := node(2*i), node(2*i+1); u != v && !g.Has(u, v) {
			pairs = append(pairs, [2]int32{min(u, v), max(u, v)})
		}
	}
	return pairs
}
