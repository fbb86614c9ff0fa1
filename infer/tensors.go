package infer

import (
	"slices"
	"strconv"
	"strings"

	"github.com/gsrc-dev/gsrc/data"
	"github.com/gsrc-dev/gsrc/graph"
	"github.com/gsrc-dev/gsrc/internal/lists"
	"github.com/gsrc-dev/gsrc/runtime/ort"
)

// Features returns x as exported models take it, float32 [N,D].
func Features(ds *data.Dataset) ort.Tensor {
	return ort.Float32s(ds.X.ToDense().Dense, int64(ds.X.Rows), int64(ds.X.Cols))
}

// EdgeIndex returns the entries of a structure as exported models take them, int64 [2,E].
func EdgeIndex(s *graph.Structure) ort.Tensor {
	src, dst := s.EdgeIndex()
	return ort.Int64s(append(src, dst...), 2, int64(s.E))
}

// WeightedEdges returns edge_index and edge_weight of a graph.
func WeightedEdges(g *graph.Graph) (index, weights ort.Tensor) {
	s := g.Structure()
	w := s.Spread(nil, g.Weights)
	return EdgeIndex(s), ort.Float32s(w, int64(len(w)))
}

// WithLoops appends the self-loops of a data set to edge_index and edge_weight: models that read
// the weights of self-loops find them there, and others drop them.
func WithLoops(index, weights ort.Tensor, loops []float32) (ort.Tensor, ort.Tensor) {
	var at []int64
	w := slices.Clone(weights.F32)
	for v, x := range loops {
		if x >= 0 {
			at, w = append(at, int64(v)), append(w, x)
		}
	}
	e := len(index.I64) / 2
	return ort.Int64s(slices.Concat(index.I64[:e], at, index.I64[e:], at), 2, int64(len(w))), ort.Float32s(w, int64(len(w)))
}

// ClassNames returns the names of classes, their numbers if they have none.
func ClassNames(names []string, classes int) []string {
	if len(names) > 0 {
		return names
	}
	return lists.Of(classes, strconv.Itoa)
}

// classNumbers finds classes of a model by what data call them: by their names, or else as whole numbers,
// which are 1.0 where a program had a column of them with gaps.
func classNumbers(classes []string) func(name string) (c int, ok bool) {
	whole := func(s string) string {
		digits, zeros, ok := strings.Cut(s, ".")
		if _, err := strconv.ParseInt(digits, 10, 64); !ok || err != nil || strings.Trim(zeros, "0") != "" {
			return s
		}
		return digits
	}
	number := make(map[string]int, 2*len(classes))
	for c, name := range classes {
		number[whole(name)] = c
	}
	for c, name := range classes {
		number[name] = c
	}
	return func(name string) (int, bool) {
		c, ok := number[name]
		if !ok {
			c, ok = number[whole(name)]
		}
		return c, ok
	}
}

// BatchInputs returns a batch as exported models take it; weights is nil for ones.
func BatchInputs(b *data.Batch) (x, index ort.Tensor, weights *ort.Tensor, ids ort.Tensor) {
	n := int64(b.Graph.N)
	s := b.Graph.Structure()
	if b.Graph.Weights != nil {
		weights = new(ort.Float32s(s.Spread(nil, b.Graph.Weights), int64(s.E)))
	}
	return ort.Float32s(b.X.ToDense().Dense, n, int64(b.X.Cols)), EdgeIndex(s), weights, ort.Int64s(b.GraphOf, n)
}
