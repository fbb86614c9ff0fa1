package runtime_test

import (
	"fmt"
	"log"

	"github.com/gsrc-dev/gsrc/graph"
	"github.com/gsrc-dev/gsrc/ir"
	"github.com/gsrc-dev/gsrc/runtime"
)

// A program is parsed, its inputs are bound by name, and it is run.
func ExampleFunction() {
	m, err := ir.Parse("mean.gsr", `module @mean

// The mean of each node's neighbours, scaled by a parameter.
param $c: f32[]

func @mean(%x: f32[N,2], %g: graph<N,E>) -> (y: f32[N,2]) {
  %ones = edge_ones %g : f32[E]
  %deg = edge_sum %g, %ones {side="dst"} : f32[N]
  %col = unsqueeze %deg : f32[N,1]
  %sum = spmm %g, _, _, %x : f32[N,2]
  %avg = div %sum, %col : f32[N,2]
  %y = mul %avg, $c : f32[N,2]
  return %y
}`)
	if err != nil {
		log.Fatal(err)
	}
	fn, err := runtime.NewFunction(m, "mean", runtime.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer fn.Close()

	path := graph.Graph{N: 3, Edges: [][2]int32{{0, 1}, {1, 2}}}
	c := runtime.Scalar(10)
	for name, b := range map[string]*runtime.Buffer{
		"x": runtime.F32([]float32{1, 2, 3, 4, 5, 6}, 3, 2),
		"g": runtime.Graph(path.Structure()),
		"c": c,
	} {
		if err := fn.Bind(name, b); err != nil {
			log.Fatal(err)
		}
	}
	for step := range uint64(2) {
		if err := fn.Run(step); err != nil {
			log.Fatal(err)
		}
		fmt.Println(fn.Output("y").F32)
		c.F32[0] = 1 // seen by the next run
	}
	// Output:
	// [30 40 30 40 30 40]
	// [3 4 3 4 3 4]
}
