package graph

import (
	"math"
	"slices"
	"testing"

	"github.com/gsrc-dev/gsrc/rng"
	"github.com/gsrc-dev/gsrc/runtime/kernels"
	"pgregory.net/rapid"
)

// However rows change, come and go, their neighbours are those of a search among all.
func TestNearIsExact(t *testing.T) {
	pool := kernels.NewPool(2)
	defer pool.Close()
	rapid.Check(t, func(t *rapid.T) {
		n, f, k := rapid.IntRange(1, 60).Draw(t, "n"), rapid.IntRange(1, 5).Draw(t, "f"), rapid.IntRange(0, 4).Draw(t, "k")
		columns := rapid.IntRange(0, 3).Draw(t, "columns") // of a sketch
		row := func() []float32 {
			r := make([]float32, f)
			for i := range r { // few values, so that many rows are equally near
				r[i] = float32(rapid.IntRange(-2, 2).Draw(t, "x"))
			}
			if rapid.IntRange(0, 9).Draw(t, "bad") == 0 {
				r[0] = float32(math.NaN())
			}
			return r
		}
		var emb []float32
		for range n {
			emb = append(emb, row()...)
		}
		s := newNear(pool, emb, n, f, k, columns)
		check := func() {
			want, _ := KNN(pool, emb, n, f, k)
			for v := range n {
				w := slices.DeleteFunc(slices.Clone(want[v*k:(v+1)*k]), func(u int32) bool { return u < 0 })
				if got := s.Nearest(int32(v)); !slices.Equal(got, w) {
					t.Fatalf("row %d has the neighbours %v, want %v", v, got, w)
				}
			}
		}
		check()
		for range rapid.IntRange(1, 6).Draw(t, "changes") {
			old, oldN := slices.Clone(emb), n
			before := make([][]int32, n)
			for v := range n {
				before[v] = slices.Clone(s.Nearest(int32(v)))
			}
			var rows []int32
			for v := range n {
				if rapid.IntRange(0, 4).Draw(t, "change") == 0 {
					rows = append(rows, int32(v))
					copy(emb[v*f:], row())
					if rapid.Bool().Draw(t, "away") {
						clear(emb[v*f : (v+1)*f])
					}
				}
			}
			for range rapid.IntRange(0, 3).Draw(t, "new") {
				rows = append(rows, int32(n))
				emb = append(emb, row()...)
				n++
			}
			var given []float32
			for _, v := range rows {
				given = append(given, emb[int(v)*f:(int(v)+1)*f]...)
			}
			changed := s.Change(pool, rows, given, n)
			check()
			for v := range oldN {
				if same := slices.Equal(before[v], s.Nearest(int32(v))); same == slices.Contains(changed, int32(v)) {
					t.Fatalf("row %d, changed %v: same %v", v, changed, same)
				}
			}
			if rapid.Bool().Draw(t, "undo") {
				s.Undo()
				emb, n = old, oldN
				check()
			}
		}
	})
}

// Where rows are many and differ in few directions, most pairs are left out by their
// sketches, and the neighbours are the same.
func TestNearSketch(t *testing.T) {
	pool := kernels.NewPool(2)
	defer pool.Close()
	const n, f, k, hidden = 3000, 48, 5, 6
	stream := rng.New(2, "sketch")
	mix := make([]float64, hidden*f)
	for i := range mix {
		mix[i] = stream.Normal(uint64(i))
	}
	emb := make([]float32, 0, n*f)
	for v := range n {
		at := stream.At(uint64(1 + v))
		for c := range f {
			x := 0.02 * at.Normal(uint64(hidden+c))
			for h := range hidden {
				x += float64(at.Normal(uint64(h)) * mix[h*f+c])
			}
			emb = append(emb, float32(x))
		}
	}
	copy(emb[f:2*f], emb[:f]) // equally near to all
	s := NewNear(pool, emb, n, f, k)
	if s.sketch == nil || s.sketch.w > f/2 {
		t.Fatalf("no short rows: %v", s.sketch)
	}
	for round := range 3 {
		var rows []int32
		for v := round; v < n; v += 7 {
			rows = append(rows, int32(v))
			row := emb[v*f : (v+1)*f]
			switch v % 5 {
			case 0: // a little
				for i := range row {
					row[i] += float32(0.05 * stream.Normal(uint64(round*n*f+v*f+i)))
				}
			case 1: // to where another row is
				copy(row, emb[(v*13%n)*f:])
			case 2: // all its directions are new
				for i := range row {
					row[i] = float32(stream.Normal(uint64(round*n*f + v*f + i)))
				}
			case 3:
				clear(row)
			}
		}
		s.Change(pool, rows, gather(emb, f, rows), n)
		want, sim := KNN(pool, emb, n, f, k)
		for v := range n {
			w := slices.DeleteFunc(slices.Clone(want[v*k:(v+1)*k]), func(u int32) bool { return u < 0 })
			if got := s.Nearest(int32(v)); !slices.Equal(got, w) {
				t.Fatalf("round %d: row %d has the neighbours %v, want %v (%v)", round, v, got, w, sim[v*k:(v+1)*k])
			}
		}
	}
}

func BenchmarkNearChange(b *testing.B) {
	const n, f, k, rows = 50_000, 128, 5, 640
	pool := kernels.NewPool(2)
	defer pool.Close()
	emb := make([]float32, n*f)
	s := rng.New(1, "near")
	base := make([]float32, 2000*16)
	for i := range base {
		base[i] = s.Uniform(uint64(i)) - 0.5
	}
	for i := range emb {
		emb[i] = 0.3*(s.Uniform(uint64(1e6+i))-0.5) + base[(i/f%2000)*16+i%16]
	}
	near := NewNear(pool, emb, n, f, k)
	if near.sketch != nil {
		b.Logf("%d of %d columns", near.sketch.w, f)
	}
	var list []int32
	var given []float32
	for i := range rows {
		v := i * n / rows
		list = append(list, int32(v))
		given = append(given, emb[v*f:(v+1)*f]...)
		given[i*f] += 0.01
	}
	b.ResetTimer()
	for range b.N {
		near.Change(pool, list, given, n)
		near.Undo()
	}
}
