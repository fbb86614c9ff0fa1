package parity

import (
	"slices"

	"github.com/gsrc-dev/gsrc/export/onnx"
	"github.com/gsrc-dev/gsrc/internal/lists"
	"github.com/gsrc-dev/gsrc/rng"
	"github.com/gsrc-dev/gsrc/runtime/ort"
)

// hubNeighbours is how many edges lead into the hub of the case of that name. With
// 10⁵ all three levels of the tables of [onnx.DegreeBuckets] have entries. [onnx.Scatter] adds them one
// after another in float32, as ScatterElements does, and is out of bounds soon after
// 10⁴; the matrix of [onnx.Dense] has the square of their number of entries.
func hubNeighbours(l onnx.Lowering) int {
	switch l {
	case onnx.Scatter:
		return 5000
	case onnx.Dense:
		return 1000
	}
	return 100_000
}

// hubFeatures bounds the features of that case; hubCase is its name. It is compared
// with the reference interpreter, in float64, whatever [export.BuildOptions.Forward] is: the
// Compile forward pass adds the entries of a row one after another in float32, and
// after 10⁵ of them is further from the truth than the bound.
const (
	hubFeatures = 1 << 23
	hubCase     = "hub"
)

// Examples derives from the training graph the graphs on which exporters
// are known to fail: fewer and more nodes than in training, edges that are missing,
// repeated, out of order, in one direction alone, or all at one node; with symmetrize
// also some in one direction and some in both.
func Examples(s ExampleInputs, lowering onnx.Lowering, symmetrize bool) []Example {
	sub := s.induced(s.neighbourhood(sampleNodes))
	even := lists.Of((sub.Nodes()+1)/2, func(i int) int { return 2 * i })
	cases := []Example{{trainingCase, s}, {testCase, sub}}
	if len(s.X.F32) <= largestCopy {
		cases = append(cases, Example{"larger graph", s.extended(s.Nodes()/10 + 1)})
	}
	cases = append(cases,
		Example{"isolated nodes", sub.keepEdges(func(i, j int64) bool { return i%2 == 0 && j%2 == 0 })},
		Example{"half the nodes", sub.induced(even)},
		Example{"no edges", sub.keepEdges(func(i, j int64) bool { return false })},
		Example{"one edge", sub.oneEdge()},
		Example{"duplicate edges", sub.duplicated()},
		Example{"self-loops, each twice", sub.looped()},
		Example{"unsorted edges", sub.shuffled()},
		Example{"one direction", sub.keepEdges(func(i, j int64) bool { return i < j })},
		Example{"one node", sub.induced([]int{0})},
		Example{hubCase, sub.hub(hubNeighbours(lowering))},
	)
	if symmetrize {
		cases = append(cases, Example{"either direction", sub.keepEdges(func(i, j int64) bool { return (i < j) == ((i+j)%3 == 0) || i%7 == 0 })})
	}
	if s.GraphIDs != nil {
		cases = append(cases, Example{"one graph", sub.oneGraph()}, Example{"nodes in another order", s.reordered()})
	}
	return cases
}

// edgeLists applies f to the lists of edges that the models read: the ends of the
// edges, and their weights or nil. What f gets is its own.
func (s *ExampleInputs) edgeLists(f func(src, dst []int64, w []float32) ([]int64, []int64, []float32)) ExampleInputs {
	out := *s
	apply := func(edges ort.Tensor, weights ...*ort.Tensor) (ort.Tensor, []*ort.Tensor) {
		e := len(edges.I64) / 2
		var index ort.Tensor
		changed := make([]*ort.Tensor, len(weights))
		for i, w := range weights {
			var values []float32
			if w != nil {
				values = slices.Clone(w.F32)
			}
			src, dst, values := f(slices.Clone(edges.I64[:e]), slices.Clone(edges.I64[e:]), values)
			index = ort.Int64s(slices.Concat(src, dst), 2, int64(len(src)))
			if w != nil {
				changed[i] = new(ort.Float32s(values, int64(len(values))))
			}
		}
		return index, changed
	}
	if s.Refined == nil {
		index, w := apply(s.Edges, s.EdgeWeights, s.Weights)
		out.Edges, out.EdgeWeights, out.Weights = index, w[0], w[1]
		return out
	}
	index, w := apply(s.Edges, s.EdgeWeights)
	out.Edges, out.EdgeWeights = index, w[0]
	refined, w := apply(*s.Refined, s.Weights)
	out.Refined, out.Weights = &refined, w[0]
	return out
}

// extend adds values to weights where there are any.
func extend(w []float32, values []float32) []float32 {
	if w == nil {
		return nil
	}
	return append(w, values...)
}

// oneEdge returns the graph with the first of its edges alone, in one direction; a
// graph without edges gets one.
func (s *ExampleInputs) oneEdge() ExampleInputs {
	last := int64(s.Nodes() - 1)
	return s.edgeLists(func(src, dst []int64, w []float32) ([]int64, []int64, []float32) {
		src, dst, w = append(src, 0), append(dst, last), extend(w, []float32{0.5})
		if w != nil {
			w = w[:1]
		}
		return src[:1], dst[:1], w
	})
}

// duplicated gives every edge twice, the second time in reverse order.
func (s *ExampleInputs) duplicated() ExampleInputs {
	return s.edgeLists(func(src, dst []int64, w []float32) ([]int64, []int64, []float32) {
		again := func(list []int64) []int64 {
			back := slices.Clone(list)
			slices.Reverse(back)
			return append(list, back...)
		}
		back := slices.Clone(w)
		slices.Reverse(back)
		return again(src), again(dst), extend(w, back)
	})
}

// looped adds two self-loops to every node, one before and one behind the edges.
func (s *ExampleInputs) looped() ExampleInputs {
	n := s.Nodes()
	loops := lists.Of(n, func(i int) int64 { return int64(i) })
	weights := slices.Repeat([]float32{0.25}, n)
	return s.edgeLists(func(src, dst []int64, w []float32) ([]int64, []int64, []float32) {
		if w != nil {
			w = slices.Concat(weights, w, weights)
		}
		return slices.Concat(loops, src, loops), slices.Concat(loops, dst, loops), w
	})
}

// shuffled lists the edges in a random order.
func (s *ExampleInputs) shuffled() ExampleInputs {
	return s.edgeLists(func(src, dst []int64, w []float32) ([]int64, []int64, []float32) {
		r := rng.New(0, "export.unsorted")
		for i := len(src) - 1; i > 0; i-- {
			j := r.Intn(uint64(i), i+1)
			src[i], src[j] = src[j], src[i]
			dst[i], dst[j] = dst[j], dst[i]
			if w != nil {
				w[i], w[j] = w[j], w[i]
			}
		}
		return src, dst, w
	})
}

// hub returns a star: the given number of edges lead to node 0, and as many back, from as
// many nodes as their features take no more than [hubFeatures] numbers; with more
// features than that edges repeat. The nodes are copies of the graph's.
func (s *ExampleInputs) hub(edges int) ExampleInputs {
	n := s.Nodes()
	more := max(1, min(edges, hubFeatures/max(1, int(s.X.Shape[1]))))
	out := s.withNodes(lists.Of(more+1, func(i int) int { return i % n }))
	return out.edgeLists(func(_, _ []int64, w []float32) ([]int64, []int64, []float32) {
		src, dst := make([]int64, 2*edges), make([]int64, 2*edges)
		for k := range edges {
			v := int64(1 + k%more)
			src[2*k], dst[2*k+1] = v, v
		}
		if w != nil {
			w = lists.Of(2*edges, func(k int) float32 { return 0.25 + float32(k%7)/8 })
		}
		return src, dst, w
	})
}

// reordered returns the sample with its nodes in reverse order, so that neither
// graph_ids nor the edges are sorted.
func (s *ExampleInputs) reordered() ExampleInputs {
	n := s.Nodes()
	return s.induced(lists.Of(n, func(i int) int { return n - 1 - i }))
}

// oneGraph returns the sample with all nodes in one graph.
func (s *ExampleInputs) oneGraph() ExampleInputs {
	out := *s
	out.GraphIDs = new(ort.Int64s(make([]int64, s.Nodes()), int64(s.Nodes())))
	return out
}
