//go:build darwin || linux

package cuda

import (
	"slices"
	"testing"

	"github.com/gsrc-dev/gsrc/internal/cudatest"
	"github.com/gsrc-dev/gsrc/rng"
	"github.com/gsrc-dev/gsrc/runtime"
)

// shuffled returns the first count elements of a shuffle of n numbers, ascending.
func shuffled(s rng.Stream, n, count int) []int64 {
	moved, out := map[int]int{}, []int64{}
	at := func(i int) int {
		if v, ok := moved[i]; ok {
			return v
		}
		return i
	}
	for i := range count {
		j := i + s.Intn(uint64(i), n-i)
		v := at(j)
		moved[j] = at(i)
		out = append(out, int64(v))
	}
	slices.Sort(out)
	return out
}

// Samples are those that the host draws: few of many nodes, and most of few, where
// swaps follow on each other.
func TestDeviceDrawsAnchors(t *testing.T) {
	cudatest.Either(t)
	d := openDevice(t)
	s := rng.New(1, "anchors")
	for _, c := range [][2]int{{1, 1}, {2, 1}, {9, 8}, {40, 40}, {100, 3}, {300, 299}, {700, 512}, {1 << 30, 600}} {
		n, count := c[0], c[1]
		dst := runtime.I64(nil, 0)
		dst.Dims[0] = count
		if err := d.Reserve(dst, count); err != nil {
			t.Fatal(err)
		}
		for step := range uint64(3) {
			if err := d.DrawAnchors(dst, n, s.At(step)); err != nil {
				t.Fatal(err)
			}
			if got, want := arrayOf[int64](t, d, dst.Device.Elements, count), shuffled(s.At(step), n, count); !slices.Equal(got, want) {
				t.Errorf("%d of %d nodes, step %d: %v, want %v", count, n, step, got, want)
			}
		}
		if err := d.Release(dst); err != nil {
			t.Fatal(err)
		}
	}
	if err := d.DrawAnchors(&runtime.Buffer{Dims: []int{3}}, 2, s); err == nil {
		t.Error("3 of 2 nodes were drawn")
	}
	if err := d.Release(&d.drawn); err != nil {
		t.Fatal(err)
	}
}
