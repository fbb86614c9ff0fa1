package kernels_test

import (
	"fmt"

	"github.com/gsrc-dev/gsrc/runtime/kernels"
)

// A layer of a graph network: neighbours are averaged, multiplied by weights,
// shifted and rectified.
func Example() {
	p := kernels.NewPool(2)
	defer p.Close()

	// Three nodes in a row: 0 – 1 – 2, with two features each.
	graph := &kernels.CSR{Rows: 3, Cols: 3, RowPtr: []int32{0, 1, 3, 4}, Col: []int32{1, 0, 2, 1}}
	mean := []float32{1, 0.5, 0.5, 1}
	x := []float32{1, 2, 3, 4, 5, 6}
	weights, bias := []float32{1, -1, 0, 1}, []float32{0, -1}

	near, out := make([]float32, 6), make([]float32, 6)
	p.SpMM(near, graph, mean, nil, x, 2, kernels.Epilogue{})
	p.MatMul(out, near, weights, 3, 2, 2, false, false, kernels.Epilogue{Bias: bias, Act: kernels.Relu})
	fmt.Println(near)
	fmt.Println(out)
	// Output:
	// [3 4 3 4 3 4]
	// [3 0 3 0 3 0]
}
