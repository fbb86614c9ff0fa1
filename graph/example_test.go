package graph_test

import (
	"fmt"

	"github.com/gsrc-dev/gsrc/graph"
)

// An edge list with a repeated edge and a self-loop becomes a graph, and its
// nodes' nearest neighbours become candidates for new edges.
func Example() {
	g, repairs, err := graph.Build(4, []int32{0, 1, 2, 3}, []int32{1, 0, 1, 3}, nil, false)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(g.Edges, repairs)

	src, dst := g.Structure().EdgeIndex()
	fmt.Println(src, dst)

	embedding := []float32{1, 0, 0, 1, 1, 0.1, 0.1, 1} // [4, 2]
	near, _ := graph.KNN(nil, embedding, 4, 2, 1)
	c, err := graph.NewCandidates(g, near, 1, false)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(c.Edges, c.Existing)
	// Output:
	// [[0 1] [1 2]] {1 1}
	// [1 0 2 1] [0 1 1 2]
	// [[0 1] [0 2] [1 2] [1 3]] [true false true false]
}
