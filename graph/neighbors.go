package graph

import (
	"fmt"

	"github.com/gsrc-dev/gsrc/rng"
)

// Rows is a graph by its nodes' incoming entries, which may lie in files. Where it has a method
// Ahead(nodes []int32) it is told which rows come next, and where it is a [Totals], it is asked for what rows
// weigh that nothing else is read of.
type Rows interface {
	// Nodes is the number of nodes.
	Nodes() int
	// Row returns the sources of the entries into a node, ascending, and their weights, nil
	// where all are 1. They are valid until the next call.
	Row(v int32) (sources []int32, weights []float32, err error)
}

// Totals are rows of which it takes less to know what they weigh than to read them.
type Totals interface {
	// Totals appends what the entries into each node weigh together.
	Totals(to []float64, nodes []int32) ([]float64, error)
}

// Row is the row of a node of a structure; see [Rows].
func (s *Structure) Row(v int32) ([]int32, []float32, error) {
	return s.In.Col[s.In.RowPtr[v]:s.In.RowPtr[v+1]], nil, nil
}

// Nodes is the number of nodes; see [Rows].
func (s *Structure) Nodes() int { return s.N }

// A NeighborSampler draws the sub-graphs on which models are trained in batches: some nodes,
// neighbours of theirs, neighbours of those, and so on, some at each hop (Hamilton et al.,
// "Inductive representation learning on large graphs", NIPS 2017). A node's neighbours are
// drawn once, at the hop where it is met first.
//
// It keeps marks of 8 bytes a node, and is used from one goroutine at a time.
type NeighborSampler struct {
	rows    Rows
	fanouts []int // by hop from the seeds; 0 takes all
	places  numbering
	drawn   []int32
	totals  []float64

	// ByWeight has entries drawn as often as they weigh, each for as much as others: what weighs
	// more than its part of a row is there for sure. Otherwise all are drawn alike.
	ByWeight bool
}

// NeighborBatch is a sampled sub-graph.
type NeighborBatch struct {
	// Structure has the entries into all nodes, in the order of the graph's. Those of nodes
	// of the last hop are none of the graph's: see Weights.
	Structure
	Nodes []int32 // of the graph: the seeds, then others as they are met
	// Weights are the entries'. Those of a node that were drawn weigh together what all of its
	// entries do, so that sums over them and degrees are estimated without bias. A node of
	// the last hop has one entry, from itself, with that weight: nothing reads what it adds up, but
	// layers that normalise by degree read how much it is.
	Weights []float32
	// At is by entry its place in the node's row of the graph, −1 of those that are none of the graph's.
	At []int32
	// Reach is how many nodes are within so many hops of the seeds: these alone, and so on.
	Reach []int
}

// NewNeighborSampler makes a sampler of the graph. fanouts are how many neighbours of a node
// are drawn, by hop, those of the seeds first; 0 takes all.
func NewNeighborSampler(rows Rows, fanouts []int) *NeighborSampler {
	return &NeighborSampler{rows: rows, fanouts: fanouts, places: numbering{of: make([]numbered, rows.Nodes())}}
}

// Sample makes b the sub-graph of seeds, which must differ. What is drawn for a node depends
// on the stream and the node alone.
func (s *NeighborSampler) Sample(b *NeighborBatch, seeds []int32, stream rng.Stream) error {
	s.places.begin(s.rows.Nodes())
	b.Nodes, b.Weights, b.At = b.Nodes[:0], b.Weights[:0], b.At[:0]
	for _, v := range seeds {
		met := len(b.Nodes)
		if v >= 0 && int(v) < s.rows.Nodes() {
			s.meet(b, v)
		}
		if len(b.Nodes) == met {
			return fmt.Errorf("graph: seed %d is no node, or occurs twice", v)
		}
	}
	in, out := b.matrices()
	in.RowPtr, in.Col = append(in.RowPtr[:0], 0), in.Col[:0]
	from := 0
	b.Reach = b.Reach[:0]
	for _, fanout := range s.fanouts {
		to := len(b.Nodes)
		b.Reach = append(b.Reach, to)
		if rows, ok := s.rows.(interface{ Ahead(nodes []int32) }); ok {
			rows.Ahead(b.Nodes[from:to])
		}
		for _, v := range b.Nodes[from:to] {
			if err := s.row(b, v, fanout, stream); err != nil {
				return err
			}
		}
		from = to
	}
	var err error
	if s.totals, err = totalsOf(s.rows, s.totals[:0], b.Nodes[from:]); err != nil {
		return err
	}
	for i, total := range s.totals {
		if total > 0 {
			in.Col, b.Weights, b.At = append(in.Col, int32(from+i)), append(b.Weights, float32(total)), append(b.At, -1)
		}
		in.RowPtr = append(in.RowPtr, int32(len(in.Col)))
	}
	b.N, b.E = len(b.Nodes), len(in.Col)
	b.Reach = append(b.Reach, b.N)
	in.Rows, in.Cols, out.Rows, out.Cols = b.N, b.N, b.N, b.N
	return nil
}

// Transpose makes Out what it must be for the gradients of aggregations over the whole sub-graph.
func (b *NeighborBatch) Transpose() { b.transpose() }

// Extend appends nodes without entries until there are n.
func (b *NeighborBatch) Extend(n int) {
	for b.N = n; len(b.In.RowPtr) <= n; {
		b.In.RowPtr = append(b.In.RowPtr, int32(b.E))
	}
	b.In.Rows, b.In.Cols, b.Out.Rows, b.Out.Cols = n, n, n, n
}

// Hop makes s the block of the entries into the nodes within k hops, from those within k + 1. Its
// rows are the batch's.
func (b *NeighborBatch) Hop(k int, s *Structure) {
	in, out := s.matrices()
	n, sources := b.Reach[k], b.Reach[k+1]
	s.N, s.E = n, int(b.In.RowPtr[n])
	in.Rows, in.Cols, in.RowPtr, in.Col = n, sources, b.In.RowPtr[:n+1], b.In.Col[:s.E]
	out.Rows, out.Cols = sources, n
	s.transpose()
}

// meet gives a node its place in the sub-graph.
func (s *NeighborSampler) meet(b *NeighborBatch, v int32) int32 {
	place, isNew := s.places.meet(int64(v), len(b.Nodes))
	if isNew {
		b.Nodes = append(b.Nodes, v)
	}
	return place
}

func (s *NeighborSampler) row(b *NeighborBatch, v int32, fanout int, stream rng.Stream) error {
	sources, weights, err := s.rows.Row(v)
	if err != nil {
		return err
	}
	in := b.In
	weight := func(i int) float32 {
		if weights == nil {
			return 1
		}
		return weights[i]
	}
	first := len(b.Weights)
	if fanout == 0 || len(sources) <= fanout {
		for i, u := range sources {
			in.Col, b.Weights, b.At = append(in.Col, s.meet(b, u)), append(b.Weights, weight(i)), append(b.At, int32(i))
		}
	} else if total := RowWeight(sources, weights); s.ByWeight && weights != nil && total > 0 {
		// Of points at equal distances along the row (systematic sampling, Madow 1949).
		each := total / float64(fanout)
		sum, next := 0.0, each*float64(stream.Uniform(uint64(v)))
		for i, u := range sources {
			times := 0
			for sum += float64(weights[i]); next < sum; next += each {
				times++
			}
			if times > 0 {
				in.Col, b.Weights, b.At = append(in.Col, s.meet(b, u)), append(b.Weights, float32(float64(times)*each)), append(b.At, int32(i))
			}
		}
	} else {
		s.drawn = sampleFew(s.drawn[:0], len(sources), fanout, stream.At(uint64(v)))
		for _, i := range s.drawn {
			s.places.touch(sources[i])
		}
		sum := 0.0
		for _, i := range s.drawn {
			in.Col, b.Weights, b.At = append(in.Col, s.meet(b, sources[i])), append(b.Weights, weight(int(i))), append(b.At, i)
			sum += float64(weight(int(i)))
		}
		if sum > 0 {
			scale := float32(RowWeight(sources, weights) / sum)
			for i := range b.Weights[first:] {
				b.Weights[first+i] *= scale
			}
		}
	}
	in.RowPtr = append(in.RowPtr, int32(len(in.Col)))
	return nil
}

// totalsOf appends what the rows of nodes weigh.
func totalsOf(rows Rows, to []float64, nodes []int32) ([]float64, error) {
	if rows, ok := rows.(Totals); ok {
		return rows.Totals(to, nodes)
	}
	for _, v := range nodes {
		sources, weights, err := rows.Row(v)
		if err != nil {
			return nil, err
		}
		to = append(to, RowWeight(sources, weights))
	}
	return to, nil
}

// RowWeight is what the entries of a row weigh together, 1 each where weights is nil.
func RowWeight(sources []int32, weights []float32) float64 {
	if weights == nil {
		return float64(len(sources))
	}
	sum := 0.0
	for _, w := range weights {
		sum += float64(w)
	}
	return sum
}
