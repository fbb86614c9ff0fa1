//go:build darwin || linux

package cuda

import (
	"fmt"
	"slices"
	"testing"

	"github.com/gsrc-dev/gsrc/rng"
)

// counts are numbers of elements on both sides of what a thread, a block and a launch
// of one block have.
var counts = []int{0, 1, 7, 255, 256, 2048, 2049, 8192, 8193, 20000}

func TestScan(t *testing.T) {
	q := newQueue(t)
	s := rng.New(1, "scan")
	for _, room := range counts {
		for _, n := range []int{room, room / 2} {
			x, want := make([]int32, room), make([]int32, n+1)
			for i := range x {
				x[i] = int32(s.Intn(uint64(i), 9)) - 2
			}
			for i := range n {
				want[i+1] = want[i] + x[i]
			}
			y, total, count := make([]int32, room+1), []int32{-1}, []int32{int32(n)}
			y[min(n+1, room)] = 77
			c := scan{Y: place(t, q, y), X: place(t, q, x), Total: place(t, q, total), N: room, Count: place(t, q, count), End: true}
			work := place(t, q, make([]int32, scanBytes(room)/4))
			if err := queued(q, func(q *steps) { c.launch(q, work) }); err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(y[:n+1], want) || total[0] != want[n] {
				t.Errorf("%d of %d: sums differ, or the total %d from %d", n, room, total[0], want[n])
			}
			if n < room && room > 1 && y[n+1] != 0 && y[n+1] != 77 {
				t.Errorf("%d of %d: written behind the end", n, room)
			}
			if n < room {
				continue
			}
			c.Y, c.Count, c.Total, c.End = c.X, 0, 0, false
			if err := queued(q, func(q *steps) { c.launch(q, work) }); err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(x, want[:n]) {
				t.Errorf("%d in place: sums differ", n)
			}
		}
	}
}

func TestSort(t *testing.T) {
	q := newQueue(t)
	for _, room := range []int{0, 1, 255, 2049, 9000} {
		for _, bits := range []int{1, 8, 20, 31} {
			for _, given := range []bool{false, true} {
				n := room - room/3
				t.Run(fmt.Sprint(room, bits, given), func(t *testing.T) {
					s := rng.New(uint64(bits), "sort")
					key, value, order := make([]int32, room), make([]int32, room), make([]int32, n)
					for i := range key {
						key[i], value[i] = int32(s.Intn(uint64(i), 1<<bits)), int32(i)
						if given {
							value[i] = int32(s.Intn(uint64(i), 1000))
						}
					}
					for i := range order {
						order[i] = int32(i)
					}
					slices.SortStableFunc(order, func(a, b int32) int { return int(key[a]) - int(key[b]) })
					was, keyTo, valueTo := slices.Clone(key), make([]int32, room), make([]int32, room)
					c := sort{
						KeyTo: place(t, q, keyTo), ValueTo: place(t, q, valueTo), Key: place(t, q, key), N: room, Bits: bits,
						KeyTemp: place(t, q, make([]int32, room)), ValTemp: place(t, q, make([]int32, room)), Count: place(t, q, []int32{int32(n)}),
					}
					if given {
						c.Value = place(t, q, value)
					}
					if err := queued(q, func(s *steps) { c.launch(s, place(t, q, make([]int32, sortBytes(room)/4))) }); err != nil {
						t.Fatal(err)
					}
					for i, from := range order {
						if keyTo[i] != key[from] || valueTo[i] != value[from] {
							t.Fatalf("pair %d is %d, %d; want %d, %d", i, keyTo[i], valueTo[i], key[from], value[from])
						}
					}
					if !slices.Equal(key, was) {
						t.Error("the keys were changed")
					}
				})
			}
		}
	}
}
