package kernels

import (
	"crypto/sha256"
	"encoding/binary"
	"flag"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/gsrc-dev/gsrc/rng"
)

var updateBits = flag.Bool("update-bits", false, "rewrite testdata/bits.txt")

// x·y + z is rounded once, for every exponent and where rounding twice errs.
func TestFMA(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	number := func() float32 {
		switch r.IntN(4) {
		case 0:
			return math.Float32frombits(r.Uint32())
		case 1: // few bits: products and sums lie in the middle between two numbers
			return float32(math.Ldexp(float64(1+2*r.IntN(64))*float64(1-2*r.IntN(2)), r.IntN(60)-30))
		case 2:
			return float32(math.Ldexp(1+math.Ldexp(float64(r.IntN(4)), -23), r.IntN(60)-30))
		}
		return edges[r.IntN(len(edges))]
	}
	exact := func(x float32) *big.Float { return new(big.Float).SetPrec(2000).SetFloat64(float64(x)) }
	finite := func(x float32) bool { return x-x == 0 }
	for range 500_000 {
		x, y, z := number(), number(), number()
		if r.IntN(4) == 0 { // the sum of a product and what nearly cancels it
			z = -float32(float64(x) * float64(y))
		}
		got := fma32(x, y, z)
		want := float32(math.FMA(float64(x), float64(y), float64(z))) // rounded twice
		if finite(x) && finite(y) && finite(z) {
			s := exact(x)
			s.Mul(s, exact(y)).Add(s, exact(z))
			if s.Sign() != 0 { // else the sign is that of float64
				want, _ = s.Float32()
			}
		}
		if math.Float32bits(got) != math.Float32bits(want) && (got == got || want == want) {
			t.Fatalf("fma32(%g, %g, %g) = %g (%#x), want %g (%#x)", x, y, z, got, math.Float32bits(got), want, math.Float32bits(want))
		}
	}
}

// edges are the numbers at which functions and sums turn.
var edges = func() []float32 {
	x := []float32{0, 0x1p-149, 3e-45, 1e-40, 0x1p-126, 1e-38, 1e-30, 1e-19, 0.5, 1, 1.5, math.Sqrt2, math.Sqrt2 / 2, 10, 60, 80, 87.33655, 88, 88.3, 88.72284, 88.8, 89, 103.9, 104,
		1e15, 2e19, 1e30, 1.7e38, math.MaxFloat32, float32(math.Inf(1)), float32(math.NaN())}
	for _, v := range x[:len(x)-1] {
		x = append(x, -v)
	}
	return x
}()

// bitsInput makes operands from a name, the same on every machine.
type bitsInput struct{ key rng.Stream }

// normal returns n numbers of the order of 1.
func (b *bitsInput) normal(n int) []float32 {
	b.key++
	x := make([]float32, n)
	for i := range x {
		x[i] = NormalAt(b.key, uint64(i))
	}
	return x
}

// wide returns n numbers between 2⁻⁴⁰ and 2⁴⁰.
func (b *bitsInput) wide(n int) []float32 {
	x := b.normal(n)
	for i := range x {
		x[i] *= math.Float32frombits(uint32(127-40+b.key.Intn(uint64(i), 80)) << 23)
	}
	return x
}

// tiny returns n numbers whose products vanish.
func (b *bitsInput) tiny(n int) []float32 {
	x := b.normal(n)
	for i := range x {
		x[i] *= 0x1p-90
	}
	return x
}

// edge returns n numbers of which a part is from edges.
func (b *bitsInput) edge(n int) []float32 {
	x := b.normal(n)
	for i := range x {
		if b.key.Intn(uint64(i), 6) == 0 {
			x[i] = edges[b.key.Intn(uint64(i+n), len(edges))]
		}
	}
	return x
}

// kinds are the ways to make n numbers, which results must not depend on.
func (b *bitsInput) kinds(n int, f func(kind string, x func() []float32)) {
	f("normal", func() []float32 { return b.normal(n) })
	f("wide", func() []float32 { return b.wide(n) })
	f("tiny", func() []float32 { return b.tiny(n) })
	f("edge", func() []float32 { return b.edge(n) })
}

// bitsCase computes results with the instruction set in use.
type bitsCase struct {
	name string
	run  func(p *Pool, in *bitsInput, out func(x ...float32))
}

// bitsLengths has every remainder of the lanes of sums, and one of more chunks.
func bitsLengths() []int {
	var n []int
	for i := range 147 {
		n = append(n, i)
	}
	return append(n, 192, 255, 320, 1000, elemChunk+77)
}

func bitsCases() []bitsCase {
	var cases []bitsCase
	add := func(name string, run func(p *Pool, in *bitsInput, out func(x ...float32))) {
		cases = append(cases, bitsCase{name, run})
	}
	// Vectors of every length.
	vectors := func(name string, f func(dst, a, b []float32, out func(x ...float32))) {
		add(name, func(_ *Pool, in *bitsInput, out func(x ...float32)) {
			for _, n := range bitsLengths() {
				in.kinds(n, func(_ string, x func() []float32) {
					f(x(), x(), x(), out)
				})
			}
		})
	}
	for op := range unaryCount {
		add(fmt.Sprintf("unary/%s", unaryNames[op]), func(p *Pool, in *bitsInput, out func(x ...float32)) {
			var xs []float32
			step := uint64(20011) // odd: all low bits occur
			if op == Pow {
				step *= 16
			}
			for b := uint64(0); b < 1<<32; b += step {
				xs = append(xs, math.Float32frombits(uint32(b)))
			}
			xs = append(xs, edges...)
			for n := range 20 {
				xs = append(xs, in.wide(n)...)
			}
			dst := junk(len(xs))
			p.Unary(op, dst, xs, 0.3)
			out(dst...)
			for n := range 40 {
				p.Unary(op, dst[:n], xs[100*n:][:n], 1.7)
				out(dst[:n]...)
			}
		})
	}
	for op := range binaryCount {
		vectors(fmt.Sprintf("binary/%d", op), func(dst, a, b []float32, out func(x ...float32)) {
			ks.vv[op](dst, a, b)
			out(dst...)
			for _, c := range []float32{0.7, float32(math.NaN()), float32(math.Copysign(0, -1))} {
				ks.vs[op](dst, a, c)
				out(dst...)
				ks.sv[op](dst, c, b)
				out(dst...)
			}
		})
	}
	vectors("axpby", func(dst, a, _ []float32, out func(x ...float32)) { ks.axpby(dst, a, 0.3, -1.7); out(dst...) })
	vectors("activations", func(dst, a, b []float32, out func(x ...float32)) {
		for act := None; act <= Elu; act++ {
			d := slices.Clone(dst)
			ks.bias(d, a, int(act))
			out(d...)
			ks.act(b, int(act))
			out(b...)
		}
	})
	vectors("gradients", func(dst, a, b []float32, out func(x ...float32)) {
		ks.reluGrad(dst, a, b)
		out(dst...)
		ks.eluGrad(dst, a, b)
		out(dst...)
		ks.leakyGrad(dst, a, b, 0.2)
		out(dst...)
	})
	vectors("sums", func(_, a, b []float32, out func(x ...float32)) {
		out(ks.sum(a), ks.sumAbs(a), ks.dot(a, b), ks.sqDist(a, b), ks.max(a), ks.min(a))
		out(ks.sum(b), ks.dot(a, a), ks.max(b), ks.min(b))
	})
	vectors("exponentials", func(dst, a, b []float32, out func(x ...float32)) {
		out(ks.sumExp(a, 0.5), ks.expTo(dst, b, 1.5))
		out(dst...)
		ks.accExp(dst, a, b)
		out(dst...)
	})
	add("zeros", func(_ *Pool, in *bitsInput, out func(x ...float32)) {
		// Sums of products that vanish below 0, and zeros of both signs.
		for n := range 150 {
			a, b, z := make([]float32, n), make([]float32, n), make([]float32, n)
			for i := range n {
				a[i], b[i] = 1e-30, -1e-30
				if i%3 == n%3 {
					z[i] = float32(math.Copysign(0, -1))
				}
			}
			out(ks.dot(a, b), ks.sum(z), ks.max(z), ks.min(z))
			s := &CSR{Rows: 1, Cols: 1, RowPtr: []int32{0, 3}, Col: []int32{0, 0, 0}}
			d := make([]float32, 3)
			ks.sddmm(d, s.RowPtr, s.Col, nil, a, b, n, 0, 1, 0)
			out(d...)
		}
	})
	add("adam", func(p *Pool, in *bitsInput, out func(x ...float32)) {
		for _, n := range bitsLengths() {
			in.kinds(n, func(_ string, x func() []float32) {
				v := x()
				for i := range v {
					v[i] = abs32(v[i])
				}
				q := AdamParam{W: x(), G: x(), M: x(), V: v, WeightDecay: 5e-4}
				p.AdamStep([]AdamParam{q}, 1e-2, 0.9, 0.999, 1e-8, n+1)
				out(q.W...)
				out(q.M...)
				out(q.V...)
			})
		}
	})
	add("random", func(p *Pool, in *bitsInput, out func(x ...float32)) {
		for _, n := range bitsLengths() {
			in.normal(1)
			dst := junk(n)
			p.Uniform(dst, in.key)
			out(dst...)
			p.Normal(dst, in.key)
			out(dst...)
			p.Dropout(dst, in.edge(n), 0.4, in.key)
			out(dst...)
		}
	})
	add("matmul", func(p *Pool, in *bitsInput, out func(x ...float32)) {
		for _, s := range [][3]int{{1, 1, 1}, {3, 0, 4}, {7, 5, 3}, {13, 321, 7}, {33, 17, 33}, {50, 700, 40}, {5, 641, 100}, {64, 600, 16}, {20, 1100, 8}, {150, 64, 70}} {
			m, k, n := s[0], s[1], s[2]
			for trans := range 4 {
				for i, epi := range []Epilogue{{}, {Bias: in.normal(n), Act: Elu}, {Accumulate: true, Act: Relu}, {Add: in.normal(m * n), Bias: in.normal(n)}} {
					a, b, dst := in.normal(m*k), in.wide(k*n), in.normal(m*n)
					if i == 1 {
						a = in.tiny(m * k)
					}
					if i == 2 {
						a = in.edge(m * k)
					}
					p.MatMul(dst, a, b, m, k, n, trans&1 != 0, trans&2 != 0, epi)
					out(dst...)
				}
			}
		}
	})
	add("spmm", func(p *Pool, in *bitsInput, out func(x ...float32)) {
		s := randomCSR(3, 40, 40)
		for _, c := range []*CSR{s, Transpose(s)} {
			for _, shape := range [][2]int{{1, 1}, {5, 1}, {8, 2}, {16, 1}, {31, 1}, {40, 5}, {64, 8}, {100, 1}, {300, 3}} {
				f, heads := shape[0], shape[1]
				in.kinds(c.Cols*f, func(_ string, x func() []float32) {
					h, dst := x(), in.normal(c.Rows*f)
					p.SpMMHeads(dst, c, nil, nil, h, f, heads, Epilogue{})
					out(dst...)
					p.SpMMHeads(dst, c, nil, in.normal(20*heads), h, f, heads, Epilogue{})
					out(dst...)
					p.SpMMHeads(dst, c, in.normal(len(c.Col)*heads), in.normal(30*heads), h, f, heads, Epilogue{Accumulate: true, Bias: in.normal(f), Act: Relu})
					out(dst...)
					e := junk(len(c.Col) * heads)
					p.SDDMMHeads(e, c, in.normal(c.Rows*f), h, f, heads)
					out(e...)
				})
			}
		}
	})
	add("sparse", func(p *Pool, in *bitsInput, out func(x ...float32)) {
		s := randomCSR(5, 50, 30)
		dst := junk(len(s.Col))
		in.kinds(len(s.Col), func(_ string, x func() []float32) {
			p.SparseL1Normalize(dst, x(), s, 1e-12)
			out(dst...)
			p.SparseL2Normalize(dst, x(), s, 1e-12)
			out(dst...)
			p.DropoutSparse(dst, x(), s, 30, 0.3, in.key)
			out(dst...)
			p.EdgeUniform(dst, s, in.key)
			out(dst...)
			sums := junk(50)
			p.EdgeSum(sums, s, x(), 1, Dst)
			out(sums...)
		})
		h, y, d := in.edge(30*5), junk(50*5), junk(30*5)
		p.SpMax(y, s, h, 5)
		out(y...)
		p.SpMaxGrad(d, s, h, y, in.normal(50*5), 5, junk(5))
		out(d...)
	})
	add("attention", func(p *Pool, in *bitsInput, out func(x ...float32)) {
		s := randomCSR(7, 30, 30)
		n := len(s.Col)
		for _, heads := range []int{1, 2, 3, 8, 9, 16, 20} {
			in.kinds(n*heads, func(_ string, x func() []float32) {
				for _, w := range [][]float32{nil, in.normal(n)} {
					for i := range w {
						w[i] = max(0, w[i]) // some weigh nothing
					}
					e, own := x(), in.edge(30*heads)
					a, self := junk(n*heads), junk(30*heads)
					p.EdgeSoftmax(a, self, s, e, own, w, heads)
					out(a...)
					out(self...)
					de, ds, da, dself := junk(n*heads), junk(30*heads), in.normal(n*heads), in.normal(30*heads)
					p.EdgeSoftmaxGrad(de, ds, nil, s, e, own, w, a, self, da, dself, heads)
					out(de...)
					out(ds...)
					dw := junk(n)
					p.EdgeSoftmaxGrad(de, ds, dw, s, e, own, w, a, self, da, nil, heads)
					out(de...)
					out(dw...)
				}
			})
		}
	})
	add("reductions", func(p *Pool, in *bitsInput, out func(x ...float32)) {
		for _, s := range [][2]int{{1, 1}, {1, 17}, {9, 7}, {33, 40}, {700, 65}, {3, 20000}, {0, 5}} {
			rows, cols := s[0], s[1]
			in.kinds(rows*cols, func(_ string, x func() []float32) {
				for kind := range ReduceLSE {
					dst := junk(1)
					p.Reduce(kind, dst, x())
					out(dst...)
				}
				for kind := range ReduceLSE + 1 {
					dst := junk(rows)
					p.ReduceRows(kind, dst, x(), rows, cols)
					out(dst...)
				}
				for kind := range ReduceLSE + 1 {
					dst := junk(cols)
					p.ReduceCols(kind, dst, x(), rows, cols)
					out(dst...)
				}
				dst, a := junk(rows*cols), x()
				p.LogAddExp(dst, a, x(), rows, cols, Full, Full)
				out(dst...)
				if cols > 0 {
					dst = junk(rows * cols)
					p.GroupSum(dst, a, rows, cols, cols)
					out(dst...)
				}
			})
		}
	})
	add("softmax", func(p *Pool, in *bitsInput, out func(x ...float32)) {
		for _, s := range [][2]int{{1, 1}, {20, 3}, {20, 7}, {30, 9}, {10, 17}, {33, 40}, {50, 65}, {7, 200}, {3, 2000}} {
			rows, cols := s[0], s[1]
			labels := make([]int64, rows)
			for r := range labels {
				labels[r] = int64(r%(cols+2)) - 1
			}
			in.kinds(rows*cols, func(_ string, x func() []float32) {
				dst := junk(rows * cols)
				for _, f := range []func(dst, x []float32, rows, cols int){p.Softmax, p.LogSoftmax} {
					f(dst, x(), rows, cols)
					out(dst...)
				}
				p.L2NormalizeRows(dst, x(), rows, cols, 1e-12)
				out(dst...)
				p.L1NormalizeRows(dst, x(), rows, cols, 1e-12)
				out(dst...)
				p.L2NormalizeRowsGrad(dst, x(), x(), rows, cols, 1e-12)
				out(dst...)
				p.SoftmaxCrossEntropyGrad(dst, x(), labels, []float32{0.7}, rows, cols)
				out(dst...)
				loss := junk(1)
				p.SoftmaxCrossEntropy(loss, x(), labels, rows, cols)
				out(loss...)
				out(float32(NLL(x()[:cols], 0)))
			})
		}
	})
	add("pairwise", func(p *Pool, in *bitsInput, out func(x ...float32)) {
		shapes := [][2]int{{1, 3}, {5, 1}, {33, 7}, {64, 16}, {70, 20}, {100, 33}, {200, 5}, {400, 12}}
		for _, s := range shapes {
			b, f := s[0], s[1]
			ws := make([]float32, PairwiseWorkspace(b, f))
			in.kinds(b*f, func(kind string, x func() []float32) {
				if kind != "normal" && b > 100 {
					return
				}
				for _, tau := range []float32{1, 0.01} { // with one shift for all, and with many
					pm, q := x(), x()
					rows := func() []float32 { return junk(b) }
					r := PairwiseResult{RowLSE: rows(), ColLSE: rows(), Diag: rows(), SumSq: junk(1)}
					for _, kept := range [][]float32{nil, make([]float32, PairwiseKept(b, false))} {
						p.PairwiseReduce(r, pm, q, b, f, tau, kept, ws)
						out(r.RowLSE...)
						out(r.ColLSE...)
						out(r.Diag...)
						out(r.SumSq...)
						dp, dq := junk(b*f), junk(b*f)
						p.PairwiseReduceGrad(dp, dq, pm, q, r.RowLSE, r.ColLSE, PairwiseCotangent{in.normal(b), in.normal(b), in.normal(b), in.normal(1)}, b, f, tau, kept, ws)
						out(dp...)
						out(dq...)
						p.PairwiseReduceGrad(dp, nil, pm, q, r.RowLSE, nil, PairwiseCotangent{RowLSE: in.normal(b), Diag: in.normal(b)}, b, f, tau, kept, ws)
						out(dp...)
					}
					one := PairwiseResult{RowLSE: rows(), Diag: rows(), Mean: junk(b * f)}
					p.PairwiseReduce(one, pm, q, b, f, tau, nil, ws)
					out(one.RowLSE...)
					out(one.Mean...)
					dp := junk(b * f)
					p.PairwiseMeanGrad(dp, pm, q, one.Mean, in.normal(b), in.normal(b), b, f, tau)
					out(dp...)
					lse := rows()
					for _, kept := range [][]float32{nil, make([]float32, PairwiseKept(b, true))} {
						p.PairwiseSelf(lse, pm, b, f, tau, kept, ws)
						out(lse...)
						p.PairwiseSelfGrad(dp, pm, lse, in.normal(b), b, f, tau, kept, ws)
						out(dp...)
					}
				}
			})
		}
		for b := range 2000 { // whether products are kept decides how they are summed
			kept := float32(0)
			if PairwiseKept(b, b%2 == 0) > 0 {
				kept = 1
			}
			out(kept)
		}
	})
	add("nearest", func(p *Pool, in *bitsInput, out func(x ...float32)) {
		const n, k = 333, 7
		for _, f := range []int{3, 17, 64, 330} {
			z := in.normal(n * f)
			idx, sim := make([]int32, n*k), junk(n*k)
			numbers := func() {
				out(sim...)
				for _, i := range idx {
					out(float32(i))
				}
			}
			p.Nearest(idx, sim, z, n, f, k)
			numbers()
			order := make([]int32, n)
			for i := range order {
				order[i] = int32(i * 5 % n)
			}
			for i := range idx {
				idx[i], sim[i] = -1, negInf
			}
			p.NearestWithin(idx, sim, z, n, f, k, order, []int32{0, 100, 120, 121, n}, n)
			numbers()
			var codes Codes
			codes.Set(p, z, n, f)
			p.NearestAround(idx, sim, &codes, k, slices.Clone(idx), order)
			for _, c := range codes.code {
				out(float32(c))
			}
			numbers()
			dots := junk(50)
			left, right := make([]int64, 50), make([]int64, 50)
			for i := range left {
				left[i], right[i] = int64(i*i%n), int64(i*7%n)
			}
			p.PairDot(dots, z, z, left, right, n, f)
			out(dots...)
		}
	})
	add("triangular", func(p *Pool, in *bitsInput, out func(x ...float32)) {
		for _, n := range []int{1, 4, 19} {
			x, gram, r := in.normal(40*n), junk(n*n), junk(n*n)
			p.MatMul(gram, x, x, n, 40, n, true, false, Epilogue{})
			if err := p.Cholesky(r, gram, n, 1e-6, make([]float64, n*n)); err != nil {
				panic(err)
			}
			out(r...)
			dst := junk(n * 33)
			p.SolveUpper(dst, r, in.normal(n*33), n, 33)
			out(dst...)
		}
	})
	return cases
}

// Every kernel gives the same bits with every instruction set, on every machine
// those that stand in testdata/bits.txt. NaN are not told apart. GSRC_ISA chooses one
// instruction set, which is quicker where the processor is emulated.
func TestSameBits(t *testing.T) {
	const file = "testdata/bits.txt"
	text, err := os.ReadFile(file)
	if err != nil && !*updateBits {
		t.Fatal(err)
	}
	want := map[string]string{}
	for line := range strings.Lines(string(text)) {
		if f := strings.Fields(line); len(f) == 2 && f[0] != "#" {
			want[f[0]] = f[1]
		}
	}
	before := ISA()
	defer func() { _ = SetISA(before) }()
	p := NewPool(2)
	defer p.Close()
	var lines []string
	names := slices.Clone(ISAs())
	if name := os.Getenv("GSRC_ISA"); name != "" {
		names = []string{name}
	}
	slices.Reverse(names) // plain Go, the definition, first
	for _, c := range bitsCases() {
		t.Run(c.name, func(t *testing.T) {
			var definition []float32
			for _, isa := range names {
				if err := SetISA(isa); err != nil {
					t.Fatal(err)
				}
				var got []float32
				c.run(p, &bitsInput{key: rng.New(1, c.name)}, func(x ...float32) { got = append(got, x...) })
				for i, v := range got {
					if v != v {
						got[i] = math.Float32frombits(0x7fc00000)
					}
				}
				if definition == nil {
					definition = got
				}
				sameBits(t, isa+" beside "+names[0], got, definition)
			}
			h := sha256.New()
			if err := binary.Write(h, binary.LittleEndian, definition); err != nil {
				t.Fatal(err)
			}
			sum := fmt.Sprintf("%x", h.Sum(nil)[:8])
			lines = append(lines, c.name+" "+sum+"\n")
			if !*updateBits && want[c.name] != sum {
				t.Errorf("bits of %d results are %s, in %s %q: if the definition was to change, run go test -run TestSameBits -update-bits", len(definition), sum, file, want[c.name])
			}
		})
	}
	if *updateBits && names[0] == "go" && !t.Failed() {
		head := "# Hashes of what the kernels compute; see TestSameBits.\n"
		if err := os.WriteFile(file, []byte(head+strings.Join(lines, "")), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
