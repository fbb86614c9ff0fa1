package kernels

import (
	"math"
	"testing"

	"github.com/gsrc-dev/gsrc/rng"
)

func TestRandomFills(t *testing.T) {
	eachISA(t, func(t *testing.T) {
		p := NewPool(2)
		defer p.Close()
		for _, key := range []rng.Stream{0, 1, rng.New(7, "a"), ^rng.Stream(0)} {
			for _, n := range lengths {
				dst, want := junk(n), make([]float32, n)
				p.Uniform(dst, key)
				for i := range want {
					want[i] = key.Uniform(uint64(i))
				}
				sameBits(t, "Uniform", dst, want)
				p.Normal(dst, key)
				for i := range want {
					want[i] = NormalAt(key, uint64(i))
				}
				sameBits(t, "Normal", dst, want)
				x := normals(1, n)
				for _, rate := range []float32{-1, 0, 0.3, 0.5, 1, 2} {
					for i := range want {
						want[i] = x[i]
						if rate > 0 {
							want[i] = 0
							if rate < 1 && key.Uniform(uint64(i)) >= rate {
								want[i] = x[i] * (1 / (1 - rate))
							}
						}
					}
					dst := junk(n)
					p.Dropout(dst, x, rate, key)
					sameBits(t, name("Dropout ", rate), dst, want)
				}
			}
		}
	})
}

// The counter's carry into its high word is followed.
func TestRandomFillsFarOut(t *testing.T) {
	eachISA(t, func(t *testing.T) {
		key := rng.New(3, "far")
		const first = 1<<32 - 24 // block; 96 blocks cross the carry
		dst, want := make([]float32, 384), make([]float32, 384)
		ks.uniform(dst, uint64(key), first)
		uniformGo(want, uint64(key), first)
		sameBits(t, "uniform", dst, want)
		ks.normal(dst, uint64(key), first)
		normalGo(want, uint64(key), first)
		sameBits(t, "normal", dst, want)
	})
}

// Moments, tails and the distribution function of the normal fill.
func TestNormalDistribution(t *testing.T) {
	p := NewPool(0)
	defer p.Close()
	const n = 1 << 20
	x := make([]float32, n)
	p.Normal(x, rng.New(1, "moments"))
	var m [5]float64
	var lag float64
	for i, v := range x {
		f := 1.0
		for k := range m {
			m[k] += f / n
			f *= float64(v)
		}
		if i > 0 {
			lag += float64(v) * float64(x[i-1]) / n
		}
	}
	// Standard errors of the mean, 2nd, 3rd, 4th moment and lag-one product times √n.
	for k, want := range map[int][2]float64{1: {0, 1}, 2: {1, math.Sqrt2}, 3: {0, math.Sqrt(15)}, 4: {3, math.Sqrt(96)}} {
		if z := (m[k] - want[0]) / want[1] * math.Sqrt(n); !(math.Abs(z) <= 4.5) {
			t.Errorf("moment %d is %g, %g standard errors from %g", k, m[k], z, want[0])
		}
	}
	if z := lag * math.Sqrt(n); !(math.Abs(z) <= 4.5) {
		t.Errorf("neighbours correlate: %g standard errors", z)
	}
	// Kolmogorov–Smirnov on the 4000 bins of width 0.002.
	const bins = 4000
	var hist [bins + 1]int
	for _, v := range x {
		hist[int(min(max((float64(v)+4)/8*bins, 0), bins))]++
	}
	cum, worst := 0, 0.0
	for b := range bins {
		cum += hist[b]
		edge := float64(b+1)/bins*8 - 4
		worst = max(worst, math.Abs(float64(cum)/n-0.5*math.Erfc(-edge/math.Sqrt2)))
	}
	if worst*math.Sqrt(n) > 2.2 { // probability below 1e-4
		t.Errorf("Kolmogorov–Smirnov distance %g", worst)
	}
}

// The float64 formula that the documentation of NormalAt gives.
func TestNormalAtFormula(t *testing.T) {
	key := rng.New(2, "formula")
	for i := range uint64(20000) {
		w := key.Block(i/4, 4)
		l := i % 4 / 2 * 2
		r := math.Sqrt(-2 * math.Log(float64(w[l]>>8+1)/(1<<24)))
		angle := 2 * math.Pi * float64(w[l+1]>>8) / (1 << 24)
		want := r * math.Cos(angle)
		if i%2 == 1 {
			want = r * math.Sin(angle)
		}
		if got := float64(NormalAt(key, i)); !(math.Abs(got-want) <= 1e-6) {
			t.Fatalf("element %d is %g, the formula gives %g", i, got, want)
		}
	}
}

func TestDropoutSparse(t *testing.T) {
	p := NewPool(3)
	defer p.Close()
	for _, shape := range csrShapes {
		s := randomCSR(1, shape[0], shape[1])
		key := rng.New(4, "drop")
		vals := normals(2, s.NNZ())
		ones, dense := make([]float32, s.Rows*s.Cols), make([]float32, s.Rows*s.Cols)
		p.Fill(ones, 1)
		for _, rate := range []float32{0, 0.4, 1} {
			p.Dropout(dense, ones, rate, key)
			for _, v := range [][]float32{vals, nil} {
				want := make([]float32, s.NNZ())
				for r := range s.Rows {
					for e := s.RowPtr[r]; e < s.RowPtr[r+1]; e++ {
						want[e] = dense[r*s.Cols+int(s.Col[e])]
						if v != nil && want[e] != 0 {
							want[e] *= v[e]
						}
					}
				}
				dst := junk(s.NNZ())
				p.DropoutSparse(dst, v, s, s.Cols, rate, key)
				within(t, name("DropoutSparse ", shape, " rate ", rate), dst, wide(want), 0, 1e-7)
			}
		}
	}
}

func TestAdamStep(t *testing.T) {
	eachISA(t, func(t *testing.T) {
		p := NewPool(2)
		defer p.Close()
		sizes := []int{0, 1, 7, 16, 100, elemChunk + 5}
		var params []AdamParam
		var w, m, v [][]float64
		for i, n := range sizes {
			params = append(params, AdamParam{W: normals(uint64(i), n), G: make([]float32, n), M: make([]float32, n), V: make([]float32, n), WeightDecay: 0.01 * float32(i%2)})
			w, m, v = append(w, wide(params[i].W)), append(m, make([]float64, n)), append(v, make([]float64, n))
		}
		const lr, b1, b2, eps = 0.01, 0.9, 0.999, 1e-8
		for step := 1; step <= 5; step++ {
			for i, n := range sizes {
				copy(params[i].G, normals(uint64(100*step+i), n))
				for l, g := range params[i].G {
					d := float64(g) + float64(params[i].WeightDecay)*w[i][l]
					m[i][l] = b1*m[i][l] + (1-b1)*d
					v[i][l] = b2*v[i][l] + (1-b2)*d*d
					w[i][l] -= lr / (1 - math.Pow(b1, float64(step))) * m[i][l] / (math.Sqrt(v[i][l]/(1-math.Pow(b2, float64(step)))) + eps)
				}
			}
			p.AdamStep(params, lr, b1, b2, eps, step)
			for i := range sizes {
				within(t, name("weights, step ", step), params[i].W, w[i], 3e-6, 3e-6)
				within(t, "moments", params[i].M, m[i], 1e-6, 1e-6)
				within(t, "second moments", params[i].V, v[i], 1e-6, 1e-4) // 1−0.999 has 4 digits in float32
			}
		}
	})
}
