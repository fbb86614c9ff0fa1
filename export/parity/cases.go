package parity

import (
	"errors"
	"fmt"
	"slices"

	"github.com/gsrc-dev/gsrc/export/onnx"
	"github.com/gsrc-dev/gsrc/internal/lists"
	"github.com/gsrc-dev/gsrc/rng"
	"github.com/gsrc-dev/gsrc/runtime/ort"
)

// Sample is the training graph as the exported models take it.
type ExampleInputs struct {
	// X holds the raw features, float32 [N,D].
	X ort.Tensor
	// Struct holds the structural attributes X^s, float32 [N,S]; nil if the
	// model has none.
	Struct *ort.Tensor
	// Edges is the raw graph that the encoder reads, int64 [2,E]: both
	// directions of every edge.
	Edges ort.Tensor
	// Refined is the graph that the classifier reads, int64 [2,M], and Weights
	// its edge weights, float32 [M]. Refined nil means Edges, Weights nil ones.
	Refined, Weights *ort.Tensor
	// EdgeWeights, float32 [E], are the weights of Edges where the encoder reads some;
	// nil means ones.
	EdgeWeights *ort.Tensor
	// GraphIDs, int64 [N], says of which graph each node is, where X and Edges are
	// a batch of graphs; nil where they are one graph.
	GraphIDs *ort.Tensor
	// Test holds rows of the classifier's outputs, nodes or graphs of the test split,
	// and Labels the class of each; both may be nil.
	Test, Labels []int
}

// weights are those of the graph that a model reads.
func (s *ExampleInputs) weights(model string) *ort.Tensor {
	if model != "classifier" {
		return s.EdgeWeights
	}
	return s.Weights
}

func (s *ExampleInputs) Nodes() int { return int(s.X.Shape[0]) }

// Check reports shapes that do not fit together.
func (s *ExampleInputs) Check() error {
	if err := s.X.Check(); err != nil {
		return fmt.Errorf("features: %w", err)
	}
	if s.X.DType != ort.Float32 || len(s.X.Shape) != 2 {
		return fmt.Errorf("features are %v of shape %v, want float32 [N,D]", s.X.DType, s.X.Shape)
	}
	if s.Nodes() == 0 {
		return errors.New("the graph has no nodes; an export needs at least one to be checked on")
	}
	if s.Struct != nil {
		if err := s.Struct.Check(); err != nil {
			return fmt.Errorf("x_struct: %w", err)
		}
		if s.Struct.DType != ort.Float32 || len(s.Struct.Shape) != 2 || s.Struct.Shape[0] != s.X.Shape[0] {
			return fmt.Errorf("x_struct is %v of shape %v, want float32 [%d,S]", s.Struct.DType, s.Struct.Shape, s.Nodes())
		}
	}
	if _, _, err := onnx.Graph(s.Nodes(), s.Edges); err != nil {
		return err
	}
	if s.GraphIDs != nil {
		if _, err := onnx.Batch(*s.GraphIDs); err != nil {
			return err
		}
		if len(s.GraphIDs.I64) != s.Nodes() {
			return fmt.Errorf("graph_ids has %d numbers for %d nodes", len(s.GraphIDs.I64), s.Nodes())
		}
	}
	if err := onnx.CheckWeights(s.Edges, s.EdgeWeights); err != nil {
		return err
	}
	refined := s.Edges
	if s.Refined != nil {
		refined = *s.Refined
		if _, _, err := onnx.Graph(s.Nodes(), refined); err != nil {
			return fmt.Errorf("refined graph: %w", err)
		}
	}
	if err := onnx.CheckWeights(refined, s.Weights); err != nil {
		return fmt.Errorf("refined graph: %w", err)
	}
	return s.checkTest()
}

func (s *ExampleInputs) checkTest() error {
	rows := s.Nodes()
	if s.GraphIDs != nil {
		rows = int(slices.Max(s.GraphIDs.I64)) + 1
	}
	if len(s.Test) != len(s.Labels) {
		return fmt.Errorf("the test split has %d rows and %d labels", len(s.Test), len(s.Labels))
	}
	for _, i := range s.Test {
		if i < 0 || i >= rows {
			return fmt.Errorf("the test split has row %d, and the outputs have %d", i, rows)
		}
	}
	return nil
}

// Example is one set of inputs for all models.
type Example struct {
	Name string
	ExampleInputs
}

// sampleNodes is the size of the sub-graph that becomes the test data.
const sampleNodes = 200

// largestCopy bounds the features of the case that is larger than the training
// graph.
const largestCopy = 1 << 25

// trainingCase is the whole sample, and testCase the case whose inputs and outputs are written as test data.
const (
	trainingCase = "training graph"
	testCase     = "sub-graph"
)

// neighbourhood returns up to limit nodes in breadth-first order from node 0,
// sorted.
func (s *ExampleInputs) neighbourhood(limit int) []int {
	n := s.Nodes()
	next := make([][]int64, n)
	e := len(s.Edges.I64) / 2
	for k := range e {
		next[s.Edges.I64[k]] = append(next[s.Edges.I64[k]], s.Edges.I64[e+k])
	}
	seen := make([]bool, n)
	var list []int
	for start := 0; start < n && len(list) < limit; start++ {
		if seen[start] {
			continue
		}
		seen[start] = true
		list = append(list, start)
		for head := len(list) - 1; head < len(list) && len(list) < limit; head++ {
			for _, j := range next[list[head]] {
				if !seen[j] && len(list) < limit {
					seen[j] = true
					list = append(list, int(j))
				}
			}
		}
	}
	slices.Sort(list)
	return list
}

// withNodes returns the sample with rows of the given nodes, which may repeat; the edges
// stay what they are.
func (s *ExampleInputs) withNodes(nodes []int) ExampleInputs {
	out := *s
	rows := func(t ort.Tensor) ort.Tensor {
		w := int(t.Shape[1])
		data := make([]float32, 0, len(nodes)*w)
		for _, i := range nodes {
			data = append(data, t.F32[i*w:(i+1)*w]...)
		}
		return ort.Float32s(data, int64(len(nodes)), int64(w))
	}
	out.X = rows(s.X)
	if s.Struct != nil {
		out.Struct = new(rows(*s.Struct))
	}
	if s.GraphIDs != nil {
		ids := lists.Map(nodes, func(i int) int64 { return s.GraphIDs.I64[i] })
		out.GraphIDs = new(ort.Int64s(ids, int64(len(ids))))
	}
	return out
}

// induced returns the sub-graph of the given nodes. Graphs of a batch that have none of them are left
// out: a batch has no more graphs than nodes.
func (s *ExampleInputs) induced(nodes []int) ExampleInputs {
	at := slices.Repeat([]int64{-1}, s.Nodes())
	for k, i := range nodes {
		at[i] = int64(k)
	}
	out := s.mapEdges(func(i, j int64) (int64, int64, bool) { return at[i], at[j], at[i] >= 0 && at[j] >= 0 })
	out = out.withNodes(nodes)
	if out.GraphIDs != nil {
		ids := out.GraphIDs.I64
		left := slices.Compact(slices.Sorted(slices.Values(ids)))
		for k, id := range ids {
			rank, _ := slices.BinarySearch(left, id)
			ids[k] = int64(rank)
		}
	}
	return out
}

func (s *ExampleInputs) keepEdges(keep func(i, j int64) bool) ExampleInputs {
	return s.mapEdges(func(i, j int64) (int64, int64, bool) { return i, j, keep(i, j) })
}

// mapEdges renames and filters the edges of both graphs.
func (s *ExampleInputs) mapEdges(f func(i, j int64) (int64, int64, bool)) ExampleInputs {
	return s.edgeLists(func(src, dst []int64, w []float32) ([]int64, []int64, []float32) {
		n := 0
		for k := range src {
			i, j, ok := f(src[k], dst[k])
			if !ok {
				continue
			}
			src[n], dst[n] = i, j
			if w != nil {
				w[n] = w[k]
			}
			n++
		}
		if w != nil {
			w = w[:n]
		}
		return src[:n], dst[:n], w
	})
}

// extended returns the graph with more nodes, copies of the first ones, each
// tied to its original and to the node before.
func (s *ExampleInputs) extended(more int) ExampleInputs {
	n := s.Nodes()
	more = min(more, n)
	out := s.withNodes(lists.Of(n+more, func(i int) int { return i % n }))
	return out.edgeLists(func(src, dst []int64, w []float32) ([]int64, []int64, []float32) {
		for k := range more {
			a := int64(n + k)
			for _, b := range []int64{int64(k), a - 1} {
				src, dst = append(src, a, b), append(dst, b, a)
			}
		}
		return src, dst, extend(w, slices.Repeat([]float32{0.5}, 4*more))
	})
}

// scoredPairs returns pairs to ask the scorer for: edges and random ones.
func (s *ExampleInputs) scoredPairs() ort.Tensor {
	const random, edges = 64, 64
	var src, dst []int64
	e := len(s.Edges.I64) / 2
	for k := 0; k < e && k < edges; k++ {
		src, dst = append(src, s.Edges.I64[k]), append(dst, s.Edges.I64[e+k])
	}
	r := rng.New(0, "export.pairs")
	for k := range uint64(random) {
		src, dst = append(src, int64(r.Intn(2*k, s.Nodes()))), append(dst, int64(r.Intn(2*k+1, s.Nodes())))
	}
	return ort.Int64s(append(src, dst...), 2, int64(len(src)))
}
