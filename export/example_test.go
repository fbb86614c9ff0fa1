package export_test

import (
	"fmt"
	"log"

	"github.com/gsrc-dev/gsrc/export/dist"
	"github.com/gsrc-dev/gsrc/export/onnx"
	"github.com/gsrc-dev/gsrc/ir"
	"github.com/gsrc-dev/gsrc/runtime/ort"
)

// A function of the IR becomes a model whose graph is an input.
func ExampleModel() {
	m, err := ir.Parse("example.gsr", `
module @example {}
param $w: f32[3,2] {init="glorot"}
func @classify(%x: f32[N,3], %g: graph<N,E>) -> (logits: f32[N,2]) {
  %h = matmul %x, $w : f32[N,2]
  %y = spmm %g, _, _, %h : f32[N,2]
  return %y
}`)
	if err != nil {
		log.Fatal(err)
	}
	params := map[string][]float32{"w": {1, 0, 0, 1, 1, 1}}
	model, err := onnx.Model(m.Func("classify"), params, onnx.ModelOptions{Lowering: onnx.Scatter})
	if err != nil {
		log.Fatal(err)
	}
	for _, in := range model.Graph.Input {
		fmt.Println("input", in.Name)
	}
	for _, out := range model.Graph.Output {
		fmt.Println("output", out.Name)
	}
	// Output:
	// input x
	// input edge_index
	// output logits
}

// An application reads an export folder and classifies the nodes of a graph.
func ExampleOpen() {
	d, err := dist.Open("dist", ort.Options{Provider: ort.Auto})
	if err != nil {
		log.Fatal(err)
	}
	defer d.Close()
	n := int64(3)
	features := make([]float32, int(n)*d.Manifest.NumFeatures)
	sources, targets := []int64{0, 1, 1, 2}, []int64{1, 0, 2, 1}
	x := ort.Float32s(features, n, int64(d.Manifest.NumFeatures))
	edgeIndex := ort.Int64s(append(sources, targets...), 2, int64(len(sources)))
	out, err := d.Classify(x, edgeIndex, nil)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(out["probabilities"].F32)
}
