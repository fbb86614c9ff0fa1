package ir_test

import (
	"fmt"
	"log"

	"github.com/gsrc-dev/gsrc/ir"
)

// Building, printing and interpreting a two-layer GCN.
func Example() {
	m := ir.NewModule("gcn")
	w1 := m.AddParam("w1", ir.T(ir.F32, "2", "2"), "glorot", 5e-4, "classifier")
	w2 := m.AddParam("w2", ir.T(ir.F32, "2", "2"), "glorot", 0, "classifier")

	b := m.NewFunc("classify")
	x, g := b.Arg("x", ir.T(ir.F32, "N", "2")), b.Arg("g", ir.GraphType("N", "E"))
	h := b.One("gnn.gcn_conv", ir.Attrs{"act": "relu"}, g, nil, x, w1)
	b.Return("probs", b.One("softmax", nil, b.One("gnn.gcn_conv", nil, g, nil, h, w2)))
	fmt.Print(m)

	// A path 0 – 1 – 2: both directions of an edge are entries, by target.
	path := ir.Val{G: &ir.Graph{N: 3, Row: []int{0, 1, 1, 2}, Col: []int{1, 0, 2, 1}}}
	features := ir.Val{T: &ir.Tensor{Shape: []int{3, 2}, Data: []float64{1, 0, 0, 1, 1, 1}}}
	identity := &ir.Tensor{Shape: []int{2, 2}, Data: []float64{1, 0, 0, 1}}
	out, err := ir.Interpret(m, "classify", []ir.Val{features, path}, map[string]*ir.Tensor{"w1": identity, "w2": identity}, nil)
	if err != nil {
		log.Fatal(err)
	}
	for i := range 3 {
		fmt.Printf("%.3f\n", out[0].T.Row(i))
	}
	// Output:
	// module @gcn
	//
	// param $w1: f32[2,2] {decay=0.0005, group="classifier", init="glorot"}
	// param $w2: f32[2,2] {group="classifier", init="glorot"}
	//
	// func @classify(%x: f32[N,2], %g: graph<N,E>) -> (probs: f32[N,2]) {
	//   %conv = gnn.gcn_conv %g, _, %x, $w1 {act="relu"} : f32[N,2]
	//   %conv_2 = gnn.gcn_conv %g, _, %conv, $w2 : f32[N,2]
	//   %softmax = softmax %conv_2 : f32[N,2]
	//   return %softmax
	// }
	// [0.519 0.481]
	// [0.474 0.526]
	// [0.457 0.543]
}

// A program is text: a mistake in it is reported with its place.
func ExampleParse() {
	_, err := ir.Parse("half.gsr", `module @half
func @f(%x: f32[N,4], %w: f32[3,2]) -> (y: f32[N,2]) {
  %y = matmul %x, %w : f32[N,2]
  return %y
}`)
	fmt.Println(err)
	// Output:
	// half.gsr:3:8: matmul(f32[N,4], f32[3,2]): inner dimensions 4 and 3 differ (at "matmul")
}

// The operation table answers what an operation computes.
func ExampleLookup() {
	d := ir.Lookup("spmm")
	fmt.Println(d.Name+d.Signature(), d.Level)
	fmt.Println(d.Doc)
	// Output:
	// spmm(graph, [a], [s], h) tensor
	// y_i = Σ over entries e into i of a_e·h_src(e) + s_i·h_i; a absent: ones, s absent: no self term; with a [E,H], s [N,H] one value for each of H blocks of columns
}
