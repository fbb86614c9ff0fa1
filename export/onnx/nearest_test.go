package onnx

import (
	"slices"
	"testing"

	"github.com/gsrc-dev/gsrc/graph"
	"github.com/gsrc-dev/gsrc/internal/onnxtest"
	"github.com/gsrc-dev/gsrc/runtime/kernels"
	"github.com/gsrc-dev/gsrc/runtime/ort"
)

// Nodes whose embedding has no direction are nobody's neighbours, and equally near
// ones go by their number: rows of zeros, and rows that repeat.
func TestNearestSearch(t *testing.T) {
	const n, f = 37, 5
	h := onnxtest.RandomFloats("nearest", n*f)
	for _, i := range []int{0, 9, 36} {
		clear(h[i*f : (i+1)*f])
	}
	for i := 20; i < 30; i++ {
		copy(h[i*f:(i+1)*f], h[10*f:11*f])
	}
	for j := range f { // tiny and huge, in the direction of another
		h[31*f+j], h[32*f+j] = h[5*f+j]*0x1p-80, h[6*f+j]*0x1p80
	}
	pool := kernels.NewPool(0)
	defer pool.Close()
	for _, rows := range []int{0, 1, 2, 16, 17, n} {
		b := newBuilder("nearest", "")
		x := b.input("h", "", float32Type, named("num_nodes"), fixed(f))
		k := b.input("k", "", Int64Type, fixed(1))
		got := (&search{b: b, nodes: b.sizeOf(x, 0)}).nearest(x, k)
		s := opened(t, b, map[string]tensor{"rows": got.rows, "idx": got.idx})
		for _, k := range []int{0, 1, 12, 100} {
			out := onnxtest.Run(t, s, map[string]ort.Tensor{"h": ort.Float32s(h[:rows*f], int64(rows), f), "k": ort.Int64s([]int64{int64(k)}, 1)})
			want, _ := graph.KNN(pool, h[:rows*f], rows, f, k)
			have := slices.Repeat([]int32{-1}, rows*k)
			numbers := out["rows"].I64
			if len(numbers) > 0 {
				width := len(out["idx"].I64) / len(numbers)
				for i, at := range out["idx"].I64 {
					have[int(numbers[i/width])*k+i%width] = int32(numbers[at])
				}
			}
			if !slices.Equal(have, want) {
				t.Errorf("%d rows, k = %d: neighbours\n%v, want\n%v", rows, k, have, want)
			}
		}
	}
}
