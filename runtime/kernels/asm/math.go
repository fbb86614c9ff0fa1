package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// ln 2 in two parts, so that n·ln2Hi is exact for the n that occur.
const (
	ln2Hi = 0.693359375
	ln2Lo = -2.12194440e-4
)

// reduceExp splits x = n·ln 2 + r with |r| ≤ ½ ln 2 and returns n as integers and
// r; x is first limited to [low, high] (NaN stays).
func (s isa) reduceExp(x Op, low, high float64) (n, r reg.VecVirtual) {
	v := s.hi(s.load(num(low)), x)
	v = s.lo(s.load(num(high)), v)
	n = s.unary(VCVTPS2DQ, s.mul(v, num(1.44269504088896341)))
	f := s.unary(VCVTDQ2PS, n)
	VFNMADD231PS(num(ln2Hi), f, v)
	VFNMADD231PS(num(ln2Lo), f, v)
	return n, v
}

// expTail is (exp(r) − 1 − r)/r² for a reduced argument (the polynomial of
// Cephes' expf).
func (s isa) expTail(r Op) reg.VecVirtual {
	return s.horner(r, 1.9875691500e-4, 1.3981999507e-3, 8.3334519073e-3, 4.1665795894e-2, 1.6666665459e-1, 5.0000001201e-1)
}

// power2 is 2^n for integers −127 ≤ n ≤ 128, the ends being 0 and +Inf.
func (s isa) power2(n Op) reg.VecVirtual {
	return s.shift(VPSLLD, s.addi(n, bits(127)), 23)
}

// exp is eˣ with results below 2⁻¹²⁶ as 0 and above 2^127.5 as +Inf.
func (s isa) exp(x Op) reg.VecVirtual {
	n, r := s.reduceExp(x, -88, 88.8)
	p := s.expTail(r)
	q := s.mul(p, r)
	VFMADD213PS(r, r, q) // q·r + r
	return s.mul(s.add(q, num(1)), s.power2(n))
}

// expFull is eˣ over the whole range, subnormal results included: the power of
// two is applied in two steps.
func (s isa) expFull(x Op) reg.VecVirtual {
	n, r := s.reduceExp(x, -104, 89)
	p := s.expTail(r)
	q := s.mul(p, r)
	VFMADD213PS(r, r, q)
	half := s.shift(VPSRAD, n, 1)
	y := s.mul(s.add(q, num(1)), s.power2(half))
	return s.mul(y, s.power2(s.subi(n, half)))
}

// expm1 is eˣ − 1 for x ≤ 80, accurate near 0: with e^r − 1 = p it is 2ⁿ·p + (2ⁿ − 1).
func (s isa) expm1(x Op) reg.VecVirtual {
	n, r := s.reduceExp(x, -88, 80)
	p := s.expTail(r)
	q := s.mul(p, r)
	VFMADD213PS(r, r, q)
	t := s.power2(n)
	VFMADD213PS(s.sub(t, num(1)), t, q) // t·q + (t − 1)
	return q
}

// elu is x where x > 0, else eˣ − 1.
func (s isa) elu(x reg.VecVirtual) reg.VecVirtual {
	return s.choose(s.compare(greater, x, s.zero()), x, s.expm1(x))
}

// relu is x where x > 0, else 0; NaN stays.
func (s isa) relu(x Op) reg.VecVirtual { return s.hi(s.zero(), x) }

// sigmoid is 1/(1 + e⁻ˣ).
func (s isa) sigmoid(x Op) reg.VecVirtual {
	e := s.exp(s.xor(x, bits(1<<31)))
	return s.div(s.load(num(1)), s.add(e, num(1)))
}

// tanh is m/(m + 2) with m = e^(2|x|) − 1, and the sign of x.
func (s isa) tanh(x Op) reg.VecVirtual {
	sign := s.and(x, bits(1<<31))
	a := s.xor(x, sign)
	a = s.lo(s.load(num(10)), a)
	m := s.expm1(s.add(a, a))
	return s.xor(s.div(m, s.add(m, num(2))), sign)
}

// log is the natural logarithm (Cephes' logf): x = m·2^e with m in [√½, √2).
func (s isa) log(x reg.VecVirtual) reg.VecVirtual {
	// Subnormal numbers are scaled up first.
	small := s.compare(less, x, num(1.17549435e-38))
	v := s.choose(small, s.mul(x, num(1<<23)), x)
	b := s.subi(v, bits(0x3f3504f3))
	e := s.unary(VCVTDQ2PS, s.shift(VPSRAD, b, 23))
	e = s.choose(small, s.sub(e, num(23)), e)
	f := s.sub(s.addi(s.and(b, bits(0x7fffff)), bits(0x3f3504f3)), num(1))
	z := s.mul(f, f)
	y := s.horner(f, 7.0376836292e-2, -1.1514610310e-1, 1.1676998740e-1, -1.2420140846e-1, 1.4249322787e-1,
		-1.6668057665e-1, 2.0000714765e-1, -2.4999993993e-1, 3.3333331174e-1)
	y = s.mul(s.mul(y, f), z)
	VFMADD231PS(num(ln2Lo), e, y)
	VFNMADD231PS(num(0.5), z, y)
	y = s.add(y, f)
	VFMADD231PS(num(ln2Hi), e, y)
	// +Inf stays; 0 gives −Inf; below, and NaN, NaN.
	inf := s.load(bits(0x7f800000))
	y = s.choose(s.compare(greaterEqual, x, inf), x, y)
	y = s.choose(s.compare(equal, x, s.zero()), bits(0xff800000), y)
	y = s.choose(s.compare(less, x, s.zero()), bits(0x7fc00000), y)
	return s.choose(s.compare(unordered, x, x), x, y)
}

const equal = 0
