//go:build darwin || linux

package cuda

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/gsrc-dev/gsrc/graph"
	"github.com/gsrc-dev/gsrc/internal/cudatest"
	"github.com/gsrc-dev/gsrc/ir"
	"github.com/gsrc-dev/gsrc/rng"
	"github.com/gsrc-dev/gsrc/runtime"
)

// ring is a graph in which every third node leads to a hub as well.
func ring(t *testing.T, n int) *graph.Structure {
	t.Helper()
	var src, dst []int32
	for i := range int32(n) {
		src, dst = append(src, i), append(dst, (i+1)%int32(n))
		if i%3 == 0 && i > 0 {
			src, dst = append(src, i), append(dst, 0)
		}
	}
	g, _, err := graph.Build(n, src, dst, nil, false)
	if err != nil {
		t.Fatal(err)
	}
	return g.Structure()
}

// A program whose blocks the device samples computes what it does on the CPU,
// from step to step with other targets, more and fewer of them, in other graphs; with
// padded sizes and with exact ones.
func TestDeviceSamplesBlocks(t *testing.T) {
	cudatest.Either(t)
	for name, last := range map[string]string{"padded": "%z = spmm %b1, %w1, _, %s1 : f32[B,4]", "exact": "%m = reduce_mean %s1 {axis=\"0\"} : f32[4]\n  %z = add %s0, %m : f32[B,4]"} {
		t.Run(name, func(t *testing.T) {
			m, err := ir.Parse("m", `module @m

func @f(%x: f32[N,4], %g: graph<N,E>, %w: f32[E], %i: i64[B]) -> (z: f32[B,4]) {
  %b1, %n1, %e1 = sample_block %g, %i : graph<B,P,Q>, i64[Q], i64[P]
  %b2, %n2, %e2 = sample_block %g, %n1 : graph<Q,R,S>, i64[S], i64[R]
  %w1 = gather %w, %e1 : f32[P]
  %w2 = gather %w, %e2 : f32[R]
  %h = gather %x, %n2 : f32[S,4]
  %s1 = spmm %b2, %w2, _, %h : f32[Q,4]
  %s0 = spmm %b1, %w1, _, %s1 : f32[B,4]
  `+last+`
  return %z
}
`)
			if err != nil {
				t.Fatal(err)
			}
			d := openDevice(t)
			here, err := runtime.NewFunction(m, "f", runtime.Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer here.Close()
			there, err := runtime.NewFunction(m, "f", runtime.Options{Device: d})
			if err != nil {
				t.Fatal(err)
			}
			s := rng.New(1, name)
			var inputs map[string]*runtime.Buffer
			bind := func(name string, b *runtime.Buffer) {
				t.Helper()
				if err := errors.Join(here.Bind(name, b), there.Bind(name, b)); err != nil {
					t.Fatal(err)
				}
			}
			for step, count := range []int{3, 3, 3, 40, 5, 40, 0, 20} {
				n := 60
				if step >= 5 {
					n = 90
				}
				if step == 0 || step == 5 {
					g := ring(t, n)
					inputs = map[string]*runtime.Buffer{"g": runtime.Graph(g), "x": runtime.Zeros(n, 4), "w": runtime.Zeros(g.E)}
					for name, b := range inputs {
						for i := range b.F32 {
							b.F32[i] = s.Sub(name).Uniform(uint64(i))
						}
						bind(name, b)
					}
				}
				at := runtime.I64(make([]int64, count), count)
				for i := range at.I64 {
					at.I64[i] = int64(s.At(uint64(step)).Intn(uint64(i), n))
				}
				bind("i", at)
				if err := there.Prepare(); err != nil {
					t.Fatal(err)
				}
				if err := errors.Join(here.Run(uint64(step)), there.Run(uint64(step))); err != nil {
					t.Fatal(err)
				}
				want, err := here.Read("z")
				if err != nil {
					t.Fatal(err)
				}
				got, err := there.Read("z")
				if err != nil {
					t.Fatal(err)
				}
				for i, w := range want.F32 {
					if !(math.Abs(float64(got.F32[i]-w)) <= 1e-4*(1+math.Abs(float64(w)))) { // NaN, too
						t.Fatalf("step %d: element %d is %g, on the CPU %g", step, i, got.F32[i], w)
					}
				}
			}
			bad := runtime.I64([]int64{1, 90}, 2)
			for range 2 {
				bind("i", bad)
				if err := there.Run(9); err == nil || !strings.Contains(err.Error(), "target 90 at position 1 is outside 0..89") {
					t.Errorf("target 90: %v", err)
				}
			}
			there.Close()
			for _, b := range append([]*runtime.Buffer{bad}, inputs["g"], inputs["x"], inputs["w"]) {
				if err := d.Release(b); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// Targets that another program has computed never pass through the host; one that is
// no node is an error when the sizes are read.
func TestDeviceSamplesBlocksOfResults(t *testing.T) {
	cudatest.Either(t)
	d := openDevice(t)
	m, err := ir.Parse("m", `module @m

func @choose(%all: i64[N], %k: i64[B]) -> (i: i64[B]) {
  %i = gather %all, %k : i64[B]
  return %i
}

func @f(%x: f32[N,4], %g: graph<N,E>, %w: f32[E], %i: i64[B]) -> (z: f32[B,4]) {
  %b1, %n1, %e1 = sample_block %g, %i : graph<B,P,Q>, i64[Q], i64[P]
  %w1 = gather %w, %e1 : f32[P]
  %h = gather %x, %n1 : f32[Q,4]
  %z = spmm %b1, %w1, _, %h : f32[B,4]
  return %z
}
`)
	if err != nil {
		t.Fatal(err)
	}
	var fns [2]*runtime.Function
	for i, name := range []string{"choose", "f"} {
		if fns[i], err = runtime.NewFunction(m, name, runtime.Options{Device: d}); err != nil {
			t.Fatal(err)
		}
		defer fns[i].Close()
	}
	const n = 30
	g := ring(t, n)
	all, w, x := runtime.I64(make([]int64, n), n), runtime.Zeros(g.E), runtime.Zeros(n, 4)
	for i := range all.I64 {
		all.I64[i] = int64(n - 1 - i)
	}
	all.I64[4] = n // no node
	for i := range w.F32 {
		w.F32[i] = 1
	}
	for i := range x.F32 {
		x.F32[i] = float32(i / 4)
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(errors.Join(fns[0].Bind("all", all), fns[1].Bind("g", runtime.Graph(g)), fns[1].Bind("w", w), fns[1].Bind("x", x)))
	for step, k := range [][]int64{{29, 3}, {0, 5}, {2, 4}, {28, 29}} {
		must(fns[0].Bind("k", runtime.I64(k, len(k))))
		must(fns[0].Run(uint64(step)))
		must(fns[1].Bind("i", fns[0].Result("i")))
		err := fns[1].Run(uint64(step))
		if k[1] == 4 {
			if err == nil || !strings.Contains(err.Error(), "the target at position 1 is outside 0..29") {
				t.Errorf("a target that is no node: %v", err)
			}
			continue
		}
		must(err)
		z, err := fns[1].Read("z")
		must(err)
		for i, from := range k {
			want, v := float32(0), all.I64[from]
			for e := g.In.RowPtr[v]; e < g.In.RowPtr[v+1]; e++ {
				want += float32(g.In.Col[e])
			}
			if z.F32[4*i] != want {
				t.Errorf("node %d: the sum over its neighbours is %g, want %g", v, z.F32[4*i], want)
			}
		}
	}
}
