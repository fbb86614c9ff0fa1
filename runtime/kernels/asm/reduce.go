package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// reduce emits the routines that turn vectors into a number.
func reduce(s isa) {
	s.sumOf("sum", "(x []float32) float32", "returns the sum of x.", "x")
	s.sumOf("sumAbs", "(x []float32) float32", "returns the sum of |x|.", "x")
	s.sumOf("dot", "(a, b []float32) float32", "returns the inner product of a and b.", "a", "b")
	s.sumOf("sqDist", "(a, b []float32) float32", "returns the sum of (a-b)^2.", "a", "b")
	s.extreme("max", s.hi, 0xff800000, VMAXPS)
	s.extreme("min", s.lo, 0x7f800000, VMINPS)

	s.begin("sumExp", "(x []float32, shift float32) float32", "returns the sum of exp(x - shift).")
	p, shift, acc := slices("x"), s.param("shift"), s.strands(1)
	s.strips(length("x"), 1, func(l lanes, v int) {
		VADDPS(l.only(s.exp(s.sub(l.get(p[0]), shift)), s.zero()), acc[v], acc[v])
	})
	s.result(acc)

	s.begin("expTo", "(dst, x []float32, shift float32) float32", "computes dst = exp(x - shift) and returns the sum of dst.")
	p, shift, acc = slices("dst", "x"), s.param("shift"), s.strands(1)
	s.strips(length("x"), 1, func(l lanes, v int) {
		e := s.exp(s.sub(l.get(p[1]), shift))
		l.put(e, p[0])
		VADDPS(l.only(e, s.zero()), acc[v], acc[v])
	})
	s.result(acc)

	s.begin("accExp", "(s, x, m []float32)", "adds exp(x - m) to s.")
	p = slices("s", "x", "m")
	s.each(length("s"), 1, func(l lanes, _ int) {
		l.put(s.add(s.exp(s.sub(l.get(p[1]), l.get(p[2]))), l.get(p[0])), p[0])
	})
	s.end()
}

// result returns the sum of accumulators (see fold16 of package kernels).
func (s isa) result(acc []reg.VecVirtual) {
	x := s.neighbours(s.join(acc), VADDPS)
	Store(s.positive(x), ReturnIndex(0))
	s.end()
}

// positive makes −0 in lane 0 a 0.
func (s isa) positive(x reg.VecVirtual) reg.VecVirtual {
	zero, r := XMM(), XMM()
	VXORPS(zero, zero, zero)
	VADDSS(zero, x, r)
	return r
}

// sumOf emits a sum over one or two vectors.
func (s isa) sumOf(name, args, doc string, operands ...string) {
	s.begin(name, args, doc)
	p := slices(operands...)
	acc := s.strands(4)
	s.strips(length(operands[0]), 4, func(l lanes, v int) {
		x := l.get(p[0])
		switch name {
		case "sum":
			VADDPS(x, acc[v], acc[v])
		case "sumAbs":
			VADDPS(s.and(x, bits(1<<31-1)), acc[v], acc[v])
		case "dot":
			fma(acc[v], x, l.get(p[1]))
		case "sqDist":
			d := s.sub(x, l.get(p[1]))
			fma(acc[v], d, d)
		}
	})
	s.result(acc)
}

// extreme emits the largest or smallest element, NaN if any is.
func (s isa) extreme(name string, f func(a, b Op) reg.VecVirtual, start uint32, foldOp func(...Op)) {
	s.begin(name, "(x []float32) float32", "returns the "+name+"imum of x, NaN if any is.")
	p := slices("x")
	none := s.load(bits(start))
	acc, sums := make([]reg.VecVirtual, 2), s.zero()
	for i := range acc {
		acc[i] = s.load(bits(start))
	}
	// NaN are found by themselves: x − x would also catch infinities, so the
	// lanes that are unordered are counted.
	one := s.load(num(1))
	s.each(length("x"), 2, func(l lanes, u int) {
		x := l.only(l.get(p[0]), none)
		foldOp(x, acc[u], acc[u])
		VADDPS(s.keep(s.compare(unordered, x, x), one), sums, sums)
	})
	m := s.positive(s.fold(f(acc[0], acc[1]), foldOp))
	count := s.fold(sums, VADDPS)
	zero := XMM()
	VXORPS(zero, zero, zero)
	clean := label("clean")
	VUCOMISS(zero, count)
	JE(LabelRef(clean))
	VMOVSS(bits(0x7fc00000), m)
	Label(clean)
	Store(m, ReturnIndex(0))
	s.end()
}
