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
	defer func(n int64) { openMost = n }(openMost)
	rapid.Check(t, func(t *rapid.T) {
		openMost = rapid.SampledFrom([]int64{64, 64, 64, 5, 1}).Draw(t, "open")
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
		drift := rapid.SampledFrom([]float64{0, 1e-3, 0.05, 0.3}).Draw(t, "drift")
		most := drift * rapid.SampledFrom([]float64{0, 0.1, 1, 3}).Draw(t, "most")
		s := newNear(pool, emb, n, f, k, columns, drift, most)
		nearest := func(v int) []int32 {
			list := slices.Clone(s.Nearest(int32(v)))
			if most > 0 { // in any order
				slices.Sort(list)
			}
			return list
		}
		check := func() {
			want, _ := KNN(pool, emb, n, f, k)
			for v := range n {
				w := slices.DeleteFunc(slices.Clone(want[v*k:(v+1)*k]), func(u int32) bool { return u < 0 })
				if most > 0 {
					slices.Sort(w)
				}
				if got := nearest(v); !slices.Equal(got, w) {
					t.Fatalf("row %d has the neighbours %v, want %v", v, got, w)
				}
			}
			var pairs [][2]int32
			for v := range int32(n) {
				pairs = append(pairs, [2]int32{v, (v*v + 1) % int32(n)})
			}
			cos, a, b := make([]float32, n), make([]float32, f), make([]float32, f)
			s.Cosines(pool, cos, pairs)
			for i, e := range pairs {
				normalize(a, emb[int(e[0])*f:int(e[0]+1)*f])
				normalize(b, emb[int(e[1])*f:int(e[1]+1)*f])
				if want := product(a, b); !(math.Abs(float64(cos[i])-want) <= 1e-6) {
					t.Fatalf("the rows %v have the cosine %v, want %v", e, cos[i], want)
				}
			}
		}
		check()
		for range rapid.IntRange(1, 6).Draw(t, "changes") {
			old, oldN := slices.Clone(emb), n
			before := make([][]int32, n)
			for v := range n {
				before[v] = nearest(v)
			}
			var rows []int32
			for v := range n {
				if rapid.IntRange(0, 4).Draw(t, "change") == 0 {
					rows = append(rows, int32(v))
					switch rapid.SampledFrom([]string{"a little", "a little", "anywhere", "away", "not"}).Draw(t, "where") {
					case "a little":
						for i := range f {
							emb[v*f+i] += float32(drift) * float32(rapid.IntRange(-2, 2).Draw(t, "by"))
						}
					case "anywhere":
						copy(emb[v*f:], row())
					case "away":
						clear(emb[v*f : (v+1)*f])
					}
				}
			}
			for range rapid.IntRange(0, 3).Draw(t, "new") {
				rows = append(rows, int32(n))
				emb = append(emb, row()...)
				n++
			}
			changed := s.Change(pool, rows, rowsOf(emb, f), n)
			check()
			for v := range oldN {
				if same := slices.Equal(before[v], nearest(v)); same == slices.Contains(changed, int32(v)) && (!same || most == 0) {
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

// Where lists leave too much open, as among copies of a row, they are of rows as they are from then on.
func TestNearCopies(t *testing.T) {
	pool := kernels.NewPool(2)
	defer pool.Close()
	const n, f, k = 400, 12, 2
	random := rng.New(1, "copies")
	emb := make([]float32, n*f)
	for i := range emb {
		emb[i] = float32(random.Normal(uint64(i)))
	}
	s := newNear(pool, emb, n, f, k, 0, 0.01, 0.005)
	change := func(by float32, from, to int, row []float32) {
		var rows []int32
		before := make([][]int32, n)
		for v := range n {
			before[v] = slices.Sorted(slices.Values(s.Nearest(int32(v))))
		}
		for v := from; v < to; v++ {
			rows = append(rows, int32(v))
			for i := range f {
				if emb[v*f+i] += by * float32(random.Normal(uint64(n*f+v*f+i))); row != nil {
					emb[v*f+i] = row[i]
				}
			}
		}
		changed := s.Change(pool, rows, rowsOf(emb, f), n)
		want, _ := KNN(pool, emb, n, f, k)
		for v := range n {
			list := slices.Sorted(slices.Values(s.Nearest(int32(v))))
			if w := slices.Sorted(slices.Values(want[v*k : (v+1)*k])); !slices.Equal(list, w) {
				t.Fatalf("row %d has the neighbours %v, want %v", v, list, w)
			}
			if !slices.Equal(list, before[v]) && !slices.Contains(changed, int32(v)) {
				t.Fatalf("row %d has other neighbours, and is not among those changed", v)
			}
		}
	}
	change(1e-4, 0, n, nil)
	if s.off || slices.Equal(s.now, s.z) {
		t.Fatal("lists follow rows that move by little")
	}
	was := slices.Clone(emb)
	change(0, 100, 200, emb[:f])
	if !s.off {
		t.Fatal("lists do not follow, though a hundred rows are equally near")
	}
	s.Undo()
	if s.off {
		t.Fatal("what was taken back stays")
	}
	emb = was
	change(1e-4, 50, 150, nil)
	change(0, 100, 200, slices.Clone(emb[:f]))
	change(1e-4, 0, n, nil)
	if !s.off {
		t.Fatal("lists do not follow any more")
	}
}

// Rows that stay near to where they were are compared with few others, and the neighbours are
// the same even if many move as far as that allows, to where it matters most.
func TestNearDrift(t *testing.T) {
	pool := kernels.NewPool(2)
	defer pool.Close()
	const n, steps = 150, 300
	for seed, c := range []struct {
		f, k  int
		drift float64
		most  float64
	}{{4, 3, 0.01, 0}, {16, 1, 0.03, 0}, {24, 3, -1, 0}, {32, 1, -1, 0}, {48, 4, -1, 0}, {16, 2, -1, -1}, {24, 3, -1, -1}, {32, 1, 0.02, 0.005}} {
		random := rng.New(uint64(seed), "drift")
		at := uint64(0)
		draw := func(bound int) int { at++; return random.Intn(at, bound) }
		emb := make([]float32, n*c.f)
		for i := range emb {
			at++
			emb[i] = float32(random.Normal(at))
		}
		s := newNear(pool, emb, n, c.f, c.k, 0, c.drift, c.most)
		drifted, tight, behind, center, other := 0, 0, 0, 0, 0
		for step := range steps {
			was := slices.Clone(emb)
			// Away from one row and then towards it, and this row likewise from the first that
			// is not in its list; its neighbours the other way.
			if step%2 == 0 {
				center = draw(n)
				other = center
				for v := range n {
					if at := center * s.m; v != center && !slices.Contains(s.idx[at:at+int(s.size[center])], int32(v)) &&
						(other == center || s.Similarity(int32(v), int32(center)) > s.Similarity(int32(other), int32(center))) {
						other = v
					}
				}
			}
			sign := 2*(step%2) - 1
			var rows []int32
			for v := range n {
				to := sign
				if slices.Contains(s.Nearest(int32(center)), int32(v)) {
					to = -sign
				}
				from, by := s.anchor[v], 0.95*s.drift
				if from == nil {
					from = s.z[v*c.f : (v+1)*c.f]
				}
				switch draw(40) {
				case 0: // out of reach
					by = 20 * s.drift
				case 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25:
					if c.most != 0 { // by less than lists follow
						from, by = s.z[v*c.f:(v+1)*c.f], 0.99*s.most
					}
				case 1, 2, 3, 4, 5, 6, 7, 8:
					if v != center && v != other {
						continue
					}
				}
				rows = append(rows, int32(v))
				towards := s.z[center*c.f : (center+1)*c.f]
				if v == center {
					towards = s.z[other*c.f : (other+1)*c.f]
				}
				along := product(from, towards) // the rest is tangential
				length := math.Sqrt(max(1e-12, 1-along*along))
				for i := range c.f {
					emb[v*c.f+i] = from[i] + float32(float64(to)*by*(float64(towards[i])-along*float64(from[i]))/length)
				}
			}
			anchors, tights := slices.Clone(s.anchor), slices.Clone(s.tight)
			s.Change(pool, rows, rowsOf(emb, c.f), n)
			for v := range n {
				if s.anchor[v] != nil {
					drifted++
				}
				if s.tight[v] {
					tight++
				}
				if c.most != 0 && !slices.Equal(s.now[v*c.f:(v+1)*c.f], s.z[v*c.f:(v+1)*c.f]) {
					behind++
				}
			}
			want, _ := KNN(pool, emb, n, c.f, c.k)
			for v := range n {
				got := slices.Clone(s.Nearest(int32(v)))
				if c.most != 0 { // in any order
					slices.Sort(got)
					slices.Sort(want[v*c.k : (v+1)*c.k])
				}
				if !slices.Equal(got, want[v*c.k:(v+1)*c.k]) {
					t.Fatalf("%+v, step %d: row %d has the neighbours %v, want %v", c, step, v, got, want[v*c.k:(v+1)*c.k])
				}
			}
			if draw(3) == 0 {
				s.Undo()
				emb = was
				if !slices.EqualFunc(s.anchor, anchors, slices.Equal) || !slices.Equal(s.tight, tights) {
					t.Fatalf("%+v, step %d is not taken back", c, step)
				}
			}
		}
		t.Logf("%+v: drift %.3g, rows are off their anchors %.2f of the time, tight %.2f, behind %.2f", c, s.drift, float64(drifted)/(steps*n), float64(tight)/(steps*n), float64(behind)/(steps*n))
		if drifted == 0 || c.most != 0 && behind == 0 || tight == 0 || tight == steps*n {
			t.Errorf("%+v: %d rows drifted, %d tight", c, drifted, tight)
		}
	}
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
		s.Change(pool, rows, rowsOf(emb, f), n)
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
	for i := range rows {
		v := i * n / rows
		list = append(list, int32(v))
		emb[v*f] += 0.01
	}
	b.ResetTimer()
	for range b.N {
		near.Change(pool, list, rowsOf(emb, f), n)
		near.Undo()
	}
}

// rowsOf are the rows of emb.
func rowsOf(emb []float32, f int) func(v int32) []float32 {
	return func(v int32) []float32 { return emb[int(v)*f : int(v+1)*f] }
}
