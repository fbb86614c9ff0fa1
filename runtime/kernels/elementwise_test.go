package kernels

import (
	"math"
	"testing"
)

var unaryRefs = [unaryCount]func(x, c float64) float64{
	Neg:     func(x, _ float64) float64 { return -x },
	Exp:     func(x, _ float64) float64 { return math.Exp(x) },
	Log:     func(x, _ float64) float64 { return math.Log(x) },
	Sqrt:    func(x, _ float64) float64 { return math.Sqrt(x) },
	Rsqrt:   func(x, _ float64) float64 { return 1 / math.Sqrt(x) },
	Sigmoid: func(x, _ float64) float64 { return 1 / (1 + math.Exp(-x)) },
	ReluOp:  func(x, _ float64) float64 { return math.Max(x, 0) },
	EluOp: func(x, _ float64) float64 {
		if x > 0 {
			return x
		}
		return math.Expm1(x)
	},
	Tanh:   func(x, _ float64) float64 { return math.Tanh(x) },
	Abs:    func(x, _ float64) float64 { return math.Abs(x) },
	Square: func(x, _ float64) float64 { return x * x },
	LeakyRelu: func(x, c float64) float64 {
		if x < 0 {
			return c * x
		}
		return x
	},
	Pow: math.Pow,
}

var unaryNames = [unaryCount]string{"neg", "exp", "log", "sqrt", "rsqrt", "sigmoid", "relu", "elu", "tanh", "abs", "square", "leaky_relu", "pow"}

func TestUnary(t *testing.T) {
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	special := []float32{0, float32(math.Copysign(0, -1)), 1, -1, inf, -inf, nan, 88, 88.5, 89, 90, -80, -87, -88, -100, -103, -104, -200, 1e-30, -1e-30, 1e-40, 3e-45,
		1.1754944e-38, 3.4e38, -3.4e38, 0.5, -0.5, 1e-4, -1e-4, 0.70710677, 0.7071068, 1.4142135, 0.99999994, 1.0000001, 1e-7, -1e-7, 9, -9, 20, -20}
	eachISA(t, func(t *testing.T) {
		p := NewPool(2)
		defer p.Close()
		for op := range unaryCount {
			f := unaryRefs[op]
			for _, n := range lengths {
				x := normals(1, n)
				for i := range x {
					x[i] *= 6
				}
				checkUnary(t, p, op, f, x, 0.2)
				if op == Pow || op == Log {
					checkUnary(t, p, op, f, positives(2, n), 1.7)
				}
			}
			checkUnary(t, p, op, f, special, 0.2)
			for _, c := range []float32{-1, -0.5, 0.5, 1, 2, 3} {
				checkUnary(t, p, op, f, positives(3, 100), c)
			}
		}
	})
}

func checkUnary(t *testing.T, p *Pool, op UnaryOp, f func(x, c float64) float64, x []float32, c float32) {
	t.Helper()
	want := make([]float64, len(x))
	for i, v := range x {
		want[i] = float64(float32(f(float64(v), float64(c))))
	}
	dst := junk(len(x))
	p.Unary(op, dst, x, c)
	tiny := 3e-45 // two steps among the subnormal numbers
	if op == Sigmoid {
		tiny = 1.2e-38 // which the logistic function may lose
	}
	within(t, unaryNames[op], dst, want, tiny, 3e-7) // 2.5 ulp
	in := append([]float32(nil), x...)
	p.Unary(op, in, in, c)
	sameBits(t, unaryNames[op]+" in place", in, dst)
}

// The accuracy that the documentation promises, over dense samples of the range.
func TestUnaryAccuracy(t *testing.T) {
	ranges := map[UnaryOp][2]float64{Exp: {-87, 88}, Log: {1e-6, 10}, Sigmoid: {-80, 30}, EluOp: {-20, 1}, Tanh: {-10, 10}}
	eachISA(t, func(t *testing.T) {
		p := NewPool(1)
		defer p.Close()
		for op, r := range ranges {
			const n = 200000
			x, dst := make([]float32, n), make([]float32, n)
			for i := range x {
				x[i] = float32(r[0] + (r[1]-r[0])*float64(i)/n)
			}
			p.Unary(op, dst, x, 0)
			worst, at := 0.0, float32(0)
			for i, v := range x {
				want := unaryRefs[op](float64(v), 0)
				ulp := math.Abs(float64(math.Nextafter32(float32(want), posInf)) - float64(float32(want)))
				if d := math.Abs(float64(dst[i])-want) / ulp; d > worst || math.IsNaN(d) {
					worst, at = d, v
				}
			}
			t.Logf("%-8s largest error %.2f ulp, at %g", unaryNames[op], worst, at)
			if !(worst <= 3) {
				t.Errorf("%s: error of %.2f ulp at %g, want at most 3", unaryNames[op], worst, at)
			}
		}
	})
}

func TestBinary(t *testing.T) {
	refs := [binaryCount]func(a, b float64) float64{
		Add: func(a, b float64) float64 { return a + b }, Sub: func(a, b float64) float64 { return a - b },
		Mul: func(a, b float64) float64 { return a * b }, Div: func(a, b float64) float64 { return a / b },
		Max: math.Max, Min: math.Min,
	}
	shapes := [][2]int{{0, 3}, {3, 0}, {1, 1}, {1, 9}, {9, 1}, {5, 7}, {33, 40}, {300, 65}}
	eachISA(t, func(t *testing.T) {
		p := NewPool(3)
		defer p.Close()
		for _, s := range shapes {
			rows, cols := s[0], s[1]
			for ma := Full; ma <= Scalar; ma++ {
				for mb := Full; mb <= Scalar; mb++ {
					a, b := normals(1, ma.size(rows, cols)), normals(2, mb.size(rows, cols))
					if len(a) > 3 && len(b) > 3 {
						a[1], b[2] = float32(math.NaN()), float32(math.NaN())
					}
					at := func(x []float32, m BroadcastMode, i int) float64 {
						switch m {
						case RowVector:
							return float64(x[i%cols])
						case ColVector:
							return float64(x[i/cols])
						case Scalar:
							return float64(x[0])
						}
						return float64(x[i])
					}
					for op, f := range refs {
						want, dst := make([]float64, rows*cols), junk(rows*cols)
						for i := range want {
							want[i] = f(at(a, ma, i), at(b, mb, i))
						}
						p.Binary(BinaryOp(op), dst, a, b, rows, cols, ma, mb)
						within(t, name("op ", op, " modes ", ma, " ", mb, " shape ", s), dst, want, 0, 1e-7)
					}
				}
			}
		}
	})
}

func TestElementwiseHelpers(t *testing.T) {
	eachISA(t, func(t *testing.T) {
		p := NewPool(2)
		defer p.Close()
		for _, n := range lengths {
			x, y := normals(1, n), normals(2, n)
			relu, elu, sum, scaled := make([]float64, n), make([]float64, n), make([]float64, n), make([]float64, n)
			for i := range x {
				relu[i], elu[i] = float64(y[i]), float64(y[i])
				if x[i] <= 0 {
					relu[i], elu[i] = 0, float64(y[i])*(float64(x[i])+1)
				}
				sum[i] = 2.5*float64(x[i]) - 0.75*float64(y[i])
				scaled[i] = -3 * float64(x[i])
			}
			dst := junk(n)
			p.ReluGrad(dst, x, y)
			within(t, "ReluGrad", dst, relu, 0, 0)
			p.EluGrad(dst, x, y)
			within(t, "EluGrad", dst, elu, 1e-7, 3e-7)
			copy(dst, y)
			p.Axpby(dst, x, 2.5, -0.75)
			within(t, "Axpby", dst, sum, 1e-6, 3e-7)
			dst = junk(n)
			p.Axpby(dst, x, -3, 0)
			within(t, "Axpby onto NaN with b = 0", dst, scaled, 0, 1e-7)
			dst = junk(n)
			p.Scale(dst, x, -3)
			within(t, "Scale", dst, scaled, 0, 1e-7)
			p.Fill(dst, 4)
			for _, v := range dst {
				if v != 4 {
					t.Fatalf("Fill(4) left %g", v)
				}
			}
			p.Copy(dst, x)
			sameBits(t, "Copy", dst, x)
		}
	})
}
