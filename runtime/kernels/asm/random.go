package main

import (
	"github.com/mmcloughlin/avo/attr"
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// random emits the counter-based fills: Philox4x32-10 as package rng has it,
// one block of four words in each 64-bit lane.
func random(s isa) {
	s.beginFrame("uniform", "(dst []float32, key, block uint64)", "fills dst with numbers in [0, 1).", 0)
	dst := slices("dst")[0]
	s.blocks(0, func(x, y reg.VecVirtual) {
		a, b := s.interleave(s.unit(x), s.unit(y))
		VMOVUPS(a, Mem{Base: dst})
		VMOVUPS(b, Mem{Base: dst, Disp: s.bytes()})
		ADDQ(U32(uint32(2*s.bytes())), dst)
	})

	s.beginFrame("dropout", "(dst, x []float32, key, block uint64, rate, scale float32)", "drops elements of x.", 0)
	p, rate, scale := slices("dst", "x"), s.param("rate"), s.param("scale")
	s.blocks(0, func(x, y reg.VecVirtual) {
		a, b := s.interleave(s.unit(x), s.unit(y))
		for i, u := range []reg.VecVirtual{a, b} {
			v := s.mul(scale, Mem{Base: p[1], Disp: i * s.bytes()})
			VMOVUPS(s.keep(s.compare(greaterEqual, u, rate), v), Mem{Base: p[0], Disp: i * s.bytes()})
		}
		ADDQ(U32(uint32(2*s.bytes())), p[0])
		ADDQ(U32(uint32(2*s.bytes())), p[1])
	})

	s.beginFrame("normal", "(dst []float32, key, block uint64)", "fills dst with standard normal numbers.", 0)
	dst = slices("dst")[0]
	s.blocks(4, func(x, y reg.VecVirtual) {
		a, b := s.interleave(s.boxMuller(x, y))
		VMOVUPS(a, Mem{Base: dst})
		VMOVUPS(b, Mem{Base: dst, Disp: s.bytes()})
		ADDQ(U32(uint32(2*s.bytes())), dst)
	})
}

// Constants of Philox4x32-10.
const (
	philoxM0, philoxM1 = 0xD2511F53, 0xCD9E8D57
	philoxW0, philoxW1 = 0x9E3779B9, 0xBB67AE85
)

var counterTables = map[bool]Mem{}

// counters returns the offsets of the blocks in the 64-bit lanes: such that the
// interleaved words come out in order.
func (s isa) counters() Mem {
	if m, ok := counterTables[s.wide()]; ok {
		return m
	}
	m := GLOBL("counters"+s.name, attr.RODATA|attr.NOPTR)
	n := s.lanes / 2
	for i := range n {
		DATA(8*i, U64(uint64(i/2+i%2*n/2)))
	}
	counterTables[s.wide()] = m
	return m
}

// blocks emits a loop that draws lanes/2 blocks at a time from the counter range
// high and hands their words to body: words 0 and 2 of a block side by side in
// x, words 1 and 3 in y. It ends the routine.
func (s isa) blocks(high uint32, body func(x, y reg.VecVirtual)) {
	// The keys of all rounds, one vector each.
	keys := AllocLocal(20 * s.bytes())
	key := GP64()
	Load(Param("key"), key)
	k := []reg.GPVirtual{GP64(), GP64()}
	MOVQ(key, k[0])
	MOVQ(key, k[1])
	SHRQ(U8(32), k[1])
	for r := range 10 {
		for i, w := range []uint32{philoxW0, philoxW1} {
			x, v := XMM(), s.vec()
			MOVD(k[i].As32(), x)
			VPBROADCASTD(x, v)
			VMOVUPS(v, keys.Offset((2*r+i)*s.bytes()))
			ADDL(U32(w), k[i].As32())
		}
	}
	n, first := length("dst"), GP64()
	Load(Param("block"), first)
	ctr, x := s.vec(), XMM()
	MOVQ(first, x)
	VPBROADCASTQ(x, ctr)
	VPADDQ(s.counters(), ctr, ctr)

	top, done := label("loop"), label("done")
	Label(top)
	CMPQ(n, U32(uint32(2*s.lanes)))
	JL(LabelRef(done))
	// The low half of a 64-bit lane is the word; the high half may hold
	// anything, for the multiplication does not read it.
	a, b := ctr, s.shift(VPSRLQ, ctr, 32)
	var c, d reg.VecVirtual
	for r := range 10 {
		p0, p1 := s.op(VPMULUDQ, a, bits(philoxM0)), s.vec()
		if r == 0 {
			VMOVUPS(bits(high), p1)
			VPMULUDQ(bits(philoxM1), p1, p1)
		} else {
			VPMULUDQ(bits(philoxM1), c, p1)
		}
		a = s.xor(s.xor(s.shift(VPSRLQ, p1, 32), b), keys.Offset(2*r*s.bytes()))
		c = s.xor(s.shift(VPSRLQ, p0, 32), keys.Offset((2*r+1)*s.bytes()))
		if r > 0 {
			c = s.xor(c, d)
		}
		b, d = p1, p0
	}
	// ctr counts up by the blocks drawn.
	VPADDQ(s.drawn(), ctr, ctr)
	body(s.merge(a, c), s.merge(b, d))
	SUBQ(U32(uint32(2*s.lanes)), n)
	JMP(LabelRef(top))
	Label(done)
	s.end()
}

var drawnTables = map[bool]Mem{}

// drawn returns lanes/2 in every 64-bit lane.
func (s isa) drawn() Mem {
	if m, ok := drawnTables[s.wide()]; ok {
		return m
	}
	m := GLOBL("drawn"+s.name, attr.RODATA|attr.NOPTR)
	for i := range s.lanes / 2 {
		DATA(8*i, U64(uint64(s.lanes/2)))
	}
	drawnTables[s.wide()] = m
	return m
}

// merge returns the low halves of a and, beside each, that of b.
func (s isa) merge(a, b reg.VecVirtual) reg.VecVirtual {
	up := s.shift(VPSLLQ, b, 32)
	r := s.vec()
	if s.wide() {
		t, k := GP32(), K()
		MOVL(U32(0xaaaa), t)
		KMOVW(t, k)
		VPBLENDMD(up, a, k, r)
	} else {
		VPBLENDD(U8(0xaa), up, a, r)
	}
	return r
}

// interleave returns x0 y0 x1 y1 … in the order of the elements (see counters).
func (s isa) interleave(x, y reg.VecVirtual) (a, b reg.VecVirtual) {
	return s.op(VUNPCKLPS, x, y), s.op(VUNPCKHPS, x, y)
}

// unit maps words to [0, 1) with 24 bits.
func (s isa) unit(w reg.VecVirtual) reg.VecVirtual {
	return s.mul(s.unary(VCVTDQ2PS, s.shift(VPSRLD, w, 8)), num(1.0/(1<<24)))
}

// poly is a Horner scheme of separate products and sums: these, unlike fused
// ones, round in the same way on every machine.
func (s isa) poly(x Op, coefs ...float64) reg.VecVirtual {
	y := s.load(num(coefs[0]))
	for _, c := range coefs[1:] {
		y = s.add(s.mul(y, x), num(c))
	}
	return y
}

// boxMuller is boxMuller of package kernels, operation by operation.
func (s isa) boxMuller(w0, w1 reg.VecVirtual) (even, odd reg.VecVirtual) {
	u := s.mul(s.unary(VCVTDQ2PS, s.addi(s.shift(VPSRLD, w0, 8), bits(1))), num(1.0/(1<<24)))
	b := s.subi(u, bits(0x3f3504f3))
	e := s.unary(VCVTDQ2PS, s.shift(VPSRAD, b, 23))
	f := s.sub(s.addi(s.and(b, bits(0x7fffff)), bits(0x3f3504f3)), num(1))
	z := s.mul(f, f)
	y := s.poly(f, 7.0376836292e-2, -1.1514610310e-1, 1.1676998740e-1, -1.2420140846e-1, 1.4249322787e-1,
		-1.6668057665e-1, 2.0000714765e-1, -2.4999993993e-1, 3.3333331174e-1)
	y = s.mul(s.mul(y, f), z)
	y = s.add(y, s.mul(e, num(ln2Lo)))
	y = s.sub(y, s.mul(z, num(0.5)))
	y = s.add(y, f)
	y = s.add(y, s.mul(e, num(ln2Hi)))
	r := s.sqrt(s.mul(y, num(-2)))

	q := s.addi(s.shift(VPSRLD, w1, 8), bits(1<<21))
	k := s.shift(VPSRLD, q, 22)
	t := s.mul(s.unary(VCVTDQ2PS, s.subi(s.and(q, bits(1<<22-1)), bits(1<<21))), num(1.0/(1<<24)))
	t2 := s.mul(t, t)
	sin := s.mul(s.poly(t2, -75.4018402, 81.5925446, -41.3416634, 6.28318548), t)
	cos := s.poly(t2, 59.2202873, -85.4428482, 64.9393158, -19.7392082, 1)
	swap := s.oddLanes(k)
	c, d := s.choose(swap, sin, cos), s.choose(swap, cos, sin)
	sign := func(k Op) reg.VecVirtual { return s.and(s.shift(VPSLLD, k, 30), bits(1<<31)) }
	c = s.xor(c, sign(s.addi(k, bits(1))))
	d = s.xor(d, sign(k))
	return s.mul(c, r), s.mul(d, r)
}

// oddLanes holds where an integer is odd.
func (s isa) oddLanes(k reg.VecVirtual) truth {
	if s.wide() {
		m := K()
		VPTESTMD(bits(1), k, m)
		return truth{k: m}
	}
	return truth{v: s.shift(VPSLLD, k, 31)} // VBLENDVPS reads the sign
}
