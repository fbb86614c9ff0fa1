package kernels

import (
	"fmt"
	"math"
	"testing"
)

func refMatMul(dst0, a, b []float32, m, k, n int, ta, tb bool, epi Epilogue) []float64 {
	out := make([]float64, m*n)
	for i := range m {
		for j := range n {
			s := 0.0
			for l := range k {
				ia, ib := i*k+l, l*n+j
				if ta {
					ia = l*m + i
				}
				if tb {
					ib = j*k + l
				}
				s += float64(a[ia]) * float64(b[ib])
			}
			if epi.Accumulate {
				s += float64(dst0[i*n+j])
			}
			if epi.Add != nil {
				s += float64(epi.Add[i*n+j])
			}
			if epi.Bias != nil {
				s += float64(epi.Bias[j])
			}
			out[i*n+j] = refAct(s, epi.Act)
		}
	}
	return out
}

func refAct(s float64, act Activation) float64 {
	switch {
	case act == Relu:
		return max(s, 0)
	case act == Elu && s < 0:
		return math.Expm1(s)
	}
	return s
}

func TestMatMul(t *testing.T) {
	shapes := [][3]int{
		{0, 3, 3}, {3, 0, 3}, {3, 3, 0}, {1, 1, 1}, {1, 5, 1}, {5, 1, 7}, {6, 16, 16}, {7, 9, 17}, {13, 33, 8}, {14, 40, 32},
		{29, 31, 33}, {64, 64, 64}, {50, 512, 40}, {48, 321, 16}, {100, 7, 7}, {97, 700, 50}, {3, 1300, 100}, {130, 128, 257}, {400, 330, 9}, {250, 70, 100},
	}
	eachISA(t, func(t *testing.T) {
		p := NewPool(2)
		defer p.Close()
		for _, s := range shapes {
			m, k, n := s[0], s[1], s[2]
			for v := range 4 {
				ta, tb := v&1 != 0, v&2 != 0
				for e, epi := range []Epilogue{{}, {Bias: normals(3, n), Act: Relu}, {Act: Elu, Accumulate: true}, {Bias: normals(4, n), Accumulate: true}, {Add: normals(6, m*n)}} {
					a, b := normals(1, m*k), normals(2, k*n)
					dst := junk(m * n)
					if epi.Accumulate {
						dst = normals(5, m*n)
					}
					want := refMatMul(dst, a, b, m, k, n, ta, tb, epi)
					p.MatMul(dst, a, b, m, k, n, ta, tb, epi)
					within(t, fmt.Sprintf("%d×%d×%d transA %v transB %v epilogue %d", m, k, n, ta, tb, e), dst, want, 2e-6*math.Sqrt(float64(k+1)), 2e-6)
				}
			}
		}
	})
}

// Integers of small size multiply exactly: no tolerance hides a wrong element.
func TestMatMulExact(t *testing.T) {
	eachISA(t, func(t *testing.T) {
		p := NewPool(3)
		defer p.Close()
		const m, k, n = 111, 650, 75
		a, b := make([]float32, m*k), make([]float32, k*n)
		for i := range a {
			a[i] = float32(i*7%11) - 5
		}
		for i := range b {
			b[i] = float32(i*5%13) - 6
		}
		dst := junk(m * n)
		p.MatMul(dst, a, b, m, k, n, false, false, Epilogue{})
		within(t, "product", dst, refMatMul(nil, a, b, m, k, n, false, false, Epilogue{}), 0, 0)
	})
}

func TestMatMulPropagatesNaN(t *testing.T) {
	eachISA(t, func(t *testing.T) {
		p := NewPool(1)
		defer p.Close()
		a, b, dst := normals(1, 20*30), normals(2, 30*20), junk(400)
		a[3*30+5] = float32(math.NaN())
		p.MatMul(dst, a, b, 20, 30, 20, false, false, Epilogue{Act: Relu})
		for i, v := range dst {
			if nan := v != v; nan != (i/20 == 3) {
				t.Fatalf("element (%d,%d) is %g; only row 3 has a NaN factor", i/20, i%20, v)
			}
		}
	})
}

func BenchmarkMatMul(b *testing.B) {
	type shape struct {
		m, k, n int
		ta, tb  bool
	}
	for _, threads := range []int{1, 2} {
		for _, s := range []shape{
			{2708, 1433, 128, false, false}, {2708, 128, 128, false, false}, {1433, 2708, 128, true, false}, {128, 2708, 128, true, false},
			{2708, 128, 1433, false, true}, {2708, 128, 2708, false, true}, {512, 512, 128, false, false}, {512, 128, 512, false, true},
			{2708, 128, 16, false, false}, {2708, 16, 7, false, false}, {1024, 1024, 1024, false, false},
		} {
			kind := map[[2]bool]string{{false, false}: "NN", {true, false}: "TN", {false, true}: "NT"}[[2]bool{s.ta, s.tb}]
			b.Run(fmt.Sprintf("threads=%d/%s/%dx%dx%d", threads, kind, s.m, s.k, s.n), func(b *testing.B) {
				p := NewPool(threads)
				defer p.Close()
				x, y, dst := normals(1, s.m*s.k), normals(2, s.k*s.n), make([]float32, s.m*s.n)
				bench(b, 2*float64(s.m)*float64(s.k)*float64(s.n), "GFLOP/s", func() {
					p.MatMul(dst, x, y, s.m, s.k, s.n, s.ta, s.tb, Epilogue{})
				})
			})
		}
	}
}
