package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// random emits the counter-based fills: Philox4x32-10 as package rng has it,
// one block of four words in each 64-bit lane.
func random(s isa) {
	s.beginFrame("uniform", "(dst []float32, key, block uint64)", "fills dst with numbers in [0, 1).", 0)
	dst := slices("dst")[0]
	s.blocks(0, func(x, y vecs) {
		for i, v := range s.interleave(s.unit(x), s.unit(y)) {
			VMOVUPS(v, Mem{Base: dst, Disp: i * s.bytes()})
		}
		ADDQ(U32(uint32(2*groups*s.bytes())), dst)
	})

	s.beginFrame("dropout", "(dst, x []float32, key, block uint64, rate, scale float32)", "drops elements of x.", 0)
	p, rate, scale := slices("dst", "x"), s.param("rate"), s.param("scale")
	s.blocks(0, func(x, y vecs) {
		for i, u := range s.interleave(s.unit(x), s.unit(y)) {
			v := s.mul(scale, Mem{Base: p[1], Disp: i * s.bytes()})
			VMOVUPS(s.keep(s.compare(greaterEqual, u, rate), v), Mem{Base: p[0], Disp: i * s.bytes()})
		}
		ADDQ(U32(uint32(2*groups*s.bytes())), p[0])
		ADDQ(U32(uint32(2*groups*s.bytes())), p[1])
	})

	s.beginFrame("normal", "(dst []float32, key, block uint64)", "fills dst with standard normal numbers.", 0)
	dst = slices("dst")[0]
	s.blocks(4, func(x, y vecs) {
		for i, v := range s.interleave(s.boxMuller(x, y)) {
			VMOVUPS(v, Mem{Base: dst, Disp: i * s.bytes()})
		}
		ADDQ(U32(uint32(2*groups*s.bytes())), dst)
	})

	s.at("uniformAt", "draws the elements idx of a uniform stream.", 0, true)
	s.at("uniformPair", "draws the number that belongs to a pair packed in idx.", 2, false)
}

// groups is the number of vectors of blocks drawn side by side: the rounds of one
// depend on each other, and two keep the processor busy.
const groups = 2

// vecs is one vector of each group; each applies an operation to all.
type vecs []reg.VecVirtual

func each(f func(i int) reg.VecVirtual) vecs {
	v := make(vecs, groups)
	for i := range v {
		v[i] = f(i)
	}
	return v
}

// Constants of Philox4x32-10.
const (
	philoxM0, philoxM1 = 0xD2511F53, 0xCD9E8D57
	philoxW0, philoxW1 = 0x9E3779B9, 0xBB67AE85
)

// counters returns the offsets of the blocks in the 64-bit lanes: such that the
// interleaved words come out in order.
func (s isa) counters() Mem {
	return table("counters"+s.name, func() {
		n := s.lanes / 2
		for i := range n {
			DATA(8*i, U64(uint64(i/2+i%2*n/2)))
		}
	})
}

// blocks emits a loop that draws groups·lanes/2 blocks at a time from the counter
// range high and hands their words to body: words 0 and 2 of a block side by side
// in x, words 1 and 3 in y. It ends the routine.
func (s isa) blocks(high uint32, body func(x, y vecs)) {
	keys := s.keys()
	n, first := length("dst"), GP64()
	Load(Param("block"), first)
	ctr, x := s.vec(), XMM()
	MOVQ(first, x)
	VPBROADCASTQ(x, ctr)
	VPADDQ(s.counters(), ctr, ctr)

	top, done := label("loop"), label("done")
	Label(top)
	CMPQ(n, U32(uint32(2*groups*s.lanes)))
	JL(LabelRef(done))
	draw := each(func(int) reg.VecVirtual {
		v := s.load(ctr)
		VPADDQ(s.drawn(), ctr, ctr)
		return v
	})
	a, b, c, d := s.rounds(draw, bits(high), keys)
	x02 := each(func(i int) reg.VecVirtual { return s.merge(a[i], c[i]) })
	x13 := each(func(i int) reg.VecVirtual { return s.merge(b[i], d[i]) })
	body(x02, x13)
	SUBQ(U32(uint32(2*groups*s.lanes)), n)
	JMP(LabelRef(top))
	Label(done)
	s.end()
}

// keys leaves the keys of all rounds in local memory, one vector each.
func (s isa) keys() Mem {
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
	return keys
}

// rounds are the ten rounds of Philox for 64-bit counters and the higher word
// high. The low half of a 64-bit lane is a word; the high half may hold
// anything, for the multiplication does not read it.
func (s isa) rounds(ctr vecs, high, keys Mem) (a, b, c, d vecs) {
	a = ctr
	b = each(func(i int) reg.VecVirtual { return s.shift(VPSRLQ, a[i], 32) })
	for r := range 10 {
		p0 := each(func(i int) reg.VecVirtual { return s.op(VPMULUDQ, a[i], bits(philoxM0)) })
		p1 := each(func(i int) reg.VecVirtual {
			if r == 0 {
				return s.op(VPMULUDQ, s.load(high), bits(philoxM1))
			}
			return s.op(VPMULUDQ, c[i], bits(philoxM1))
		})
		a = each(func(i int) reg.VecVirtual { return s.xor(b[i], keys.Offset(2*r*s.bytes())) })
		a = each(func(i int) reg.VecVirtual { return s.xor(s.shift(VPSRLQ, p1[i], 32), a[i]) })
		c = each(func(i int) reg.VecVirtual {
			k := keys.Offset((2*r + 1) * s.bytes())
			if r == 0 {
				return s.load(k)
			}
			return s.xor(d[i], k)
		})
		c = each(func(i int) reg.VecVirtual { return s.xor(s.shift(VPSRLQ, p0[i], 32), c[i]) })
		b, d = p1, p0
	}
	return a, b, c, d
}

// at emits the drawing of single words: of element idx of a stream, or the first
// word of counter idx.
func (s isa) at(name, doc string, high uint32, element bool) {
	s.beginFrame(name, "(dst []float32, idx []uint64, key uint64)", doc, 0)
	keys := s.keys()
	p, n := slices("dst", "idx"), length("idx")
	top, done := label("loop"), label("done")
	Label(top)
	CMPQ(n, U32(uint32(groups*s.lanes/2)))
	JL(LabelRef(done))
	idx := each(func(i int) reg.VecVirtual { return s.load(Mem{Base: p[1], Disp: i * s.bytes()}) })
	ctr := idx
	if element {
		ctr = each(func(i int) reg.VecVirtual { return s.shift(VPSRLQ, idx[i], 2) })
	}
	w, b, c, d := s.rounds(ctr, bits(high), keys)
	if element {
		for i := range w {
			// The low bits of the index choose one of four words. They are read
			// again: registers are short.
			low := s.load(Mem{Base: p[1], Disp: i * s.bytes()})
			odd, second := s.oddLanes(low), s.oddLanes(s.shift(VPSRLD, low, 1))
			w[i] = s.choose(second, s.choose(odd, d[i], c[i]), s.choose(odd, b[i], w[i]))
		}
	}
	u := s.unit(w)
	if s.wide() {
		for i, v := range u {
			VPMOVQD(v, Mem{Base: p[0], Disp: i * s.bytes() / 2})
		}
	} else {
		// The even lanes of both, in order.
		v := s.vec()
		VSHUFPS(U8(0x88), u[1], u[0], v)
		VPERMQ(U8(0xd8), v, v)
		VMOVUPS(v, Mem{Base: p[0]})
	}
	ADDQ(U32(uint32(groups*s.bytes())), p[1])
	ADDQ(U32(uint32(groups*s.bytes()/2)), p[0])
	SUBQ(U32(uint32(groups*s.lanes/2)), n)
	JMP(LabelRef(top))
	Label(done)
	s.end()
}

// drawn returns lanes/2 in every 64-bit lane.
func (s isa) drawn() Mem {
	return table("drawn"+s.name, func() {
		for i := range s.lanes / 2 {
			DATA(8*i, U64(uint64(s.lanes/2)))
		}
	})
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

// interleave returns x0 y0 x1 y1 … of all groups in the order of the elements
// (see counters).
func (s isa) interleave(x, y vecs) []reg.VecVirtual {
	var v []reg.VecVirtual
	for i := range x {
		v = append(v, s.op(VUNPCKLPS, x[i], y[i]), s.op(VUNPCKHPS, x[i], y[i]))
	}
	return v
}

// unit maps words to [0, 1) with 24 bits.
func (s isa) unit(w vecs) vecs {
	return each(func(i int) reg.VecVirtual {
		return s.mul(s.unary(VCVTDQ2PS, s.shift(VPSRLD, w[i], 8)), num(1.0/(1<<24)))
	})
}

// poly is a Horner scheme of separate products and sums: these, unlike fused
// ones, round in the same way on every machine.
func (s isa) poly(x vecs, coefs ...float64) vecs {
	y := each(func(i int) reg.VecVirtual { return s.mul(x[i], num(coefs[0])) })
	for j, c := range coefs[1:] {
		y = each(func(i int) reg.VecVirtual { return s.add(y[i], num(c)) })
		if j < len(coefs)-2 {
			y = each(func(i int) reg.VecVirtual { return s.mul(y[i], x[i]) })
		}
	}
	return y
}

// boxMuller is boxMuller of package kernels, operation by operation.
func (s isa) boxMuller(w0, w1 vecs) (even, odd vecs) {
	u := each(func(i int) reg.VecVirtual {
		return s.mul(s.unary(VCVTDQ2PS, s.addi(s.shift(VPSRLD, w0[i], 8), bits(1))), num(1.0/(1<<24)))
	})
	b := each(func(i int) reg.VecVirtual { return s.subi(u[i], bits(0x3f3504f3)) })
	f := each(func(i int) reg.VecVirtual {
		return s.sub(s.addi(s.and(b[i], bits(0x7fffff)), bits(0x3f3504f3)), num(1))
	})
	y := s.poly(f, 7.0376836292e-2, -1.1514610310e-1, 1.1676998740e-1, -1.2420140846e-1, 1.4249322787e-1,
		-1.6668057665e-1, 2.0000714765e-1, -2.4999993993e-1, 3.3333331174e-1)
	r := each(func(i int) reg.VecVirtual {
		e := s.unary(VCVTDQ2PS, s.shift(VPSRAD, b[i], 23))
		z := s.mul(f[i], f[i])
		y := s.mul(s.mul(y[i], f[i]), z)
		y = s.add(y, s.mul(e, num(ln2Lo)))
		y = s.sub(y, s.mul(z, num(0.5)))
		y = s.add(y, f[i])
		y = s.add(y, s.mul(e, num(ln2Hi)))
		return s.sqrt(s.mul(y, num(-2)))
	})

	q := each(func(i int) reg.VecVirtual { return s.addi(s.shift(VPSRLD, w1[i], 8), bits(1<<21)) })
	t := each(func(i int) reg.VecVirtual {
		return s.mul(s.unary(VCVTDQ2PS, s.subi(s.and(q[i], bits(1<<22-1)), bits(1<<21))), num(1.0/(1<<24)))
	})
	t2 := each(func(i int) reg.VecVirtual { return s.mul(t[i], t[i]) })
	sin := s.poly(t2, -75.4018402, 81.5925446, -41.3416634, 6.28318548)
	cos := s.poly(t2, 59.2202873, -85.4428482, 64.9393158, -19.7392082, 1)
	even, odd = make(vecs, groups), make(vecs, groups)
	for i := range groups {
		k := s.shift(VPSRLD, q[i], 22)
		swap := s.oddLanes(k)
		sn := s.mul(sin[i], t[i])
		c, d := s.choose(swap, sn, cos[i]), s.choose(swap, cos[i], sn)
		sign := func(k Op) reg.VecVirtual { return s.and(s.shift(VPSLLD, k, 30), bits(1<<31)) }
		c = s.xor(c, sign(s.addi(k, bits(1))))
		d = s.xor(d, sign(k))
		even[i], odd[i] = s.mul(c, r[i]), s.mul(d, r[i])
	}
	return even, odd
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
