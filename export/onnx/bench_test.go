package onnx

import (
	"fmt"
	"testing"

	"github.com/gsrc-dev/gsrc/internal/onnxtest"
	"github.com/gsrc-dev/gsrc/rng"
	"github.com/gsrc-dev/gsrc/runtime/ort"
)

// BenchmarkAggregation times one aggregation of 128 columns over graphs of the
// size of Cora, Actor and Amazon Computers, with skewed degrees.
func BenchmarkAggregation(b *testing.B) {
	for _, size := range []struct {
		name string
		n, e int
	}{{"cora", 2708, 10556}, {"actor", 7600, 53318}, {"amazon", 13752, 491722}} {
		r := rng.New(3, size.name)
		g := &onnxtest.Graph{N: size.n}
		for i := 0; len(g.Src) < size.e; i++ {
			u := float64(r.Uniform(uint64(2 * i)))
			s, d := int(u*u*u*float64(size.n)), r.Intn(uint64(2*i+1), size.n)
			if s != d {
				g.Add(s, d)
				g.Add(d, s)
			}
		}
		h := onnxtest.RandomFloats("bench", size.n*128)
		for _, weighted := range []bool{false, true} {
			for _, l := range []Lowering{DegreeBuckets, Scatter} {
				for _, threads := range []int{1, 2} {
					b.Run(fmt.Sprintf("%s/%s/weighted=%v/threads=%d", size.name, l, weighted, threads), func(b *testing.B) {
						s := onnxtest.Open(b, aggregationModel(b, l, 128, weighted), threads)
						in := map[string]ort.Tensor{"h": ort.Float32s(h, int64(size.n), 128), "edge_index": g.EdgeIndex()}
						if weighted {
							in["edge_weight"] = ort.Float32s(onnxtest.RandomFloats("w", len(g.Src)), int64(len(g.Src)))
						}
						for b.Loop() {
							onnxtest.Run(b, s, in)
						}
					})
				}
			}
		}
	}
}
