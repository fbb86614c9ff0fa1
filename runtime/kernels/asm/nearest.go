package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// nearest emits the search of a row of products for those that belong among
// the largest, of its own row or of the columns, and of a row for what is not 0.
func nearest(s isa) {
	s.begin("reach", "(hits []uint64, x, cols []float32, least float32) int",
		"writes to hits where x >= least or x >= cols and returns how many there are.")
	p, least := slices("hits", "x", "cols"), s.param("least")
	s.hits(p[0], p[1], func(l lanes, x reg.VecVirtual) truth {
		return s.either(s.compare(greaterEqual, x, least), s.compare(greaterEqual, x, l.get(p[2])), l.tail)
	}, func(reg.GPVirtual) {})

	s.begin("entries", "(hits []uint64, x []float32) int",
		"writes to hits what is not 0 in x, its bits above where it is, and returns how many there are.")
	p = slices("hits", "x")
	s.hits(p[0], p[1], func(_ lanes, x reg.VecVirtual) truth { // what is behind the last is 0
		return s.compare(notEqual, x, s.zero())
	}, func(at reg.GPVirtual) {
		bits := GP64()
		MOVL(Mem{Base: p[1], Index: at, Scale: 4}, bits.As32())
		SHLQ(U8(32), bits)
		ORQ(bits, at)
	})
	if !s.wide() {
		s.codeDots()
	}
}

// codeDots emits the products of a row of 16-bit integers with rows of 8-bit ones, which are small beside
// the time in which they come from memory.
func (s isa) codeDots() {
	s.begin("codeDots", "(dst, rows []int32, x []int16, codes []int8, ahead int)",
		"computes the products of x with rows of codes (see codeDotsGo).")
	p := slices("dst", "rows", "x", "codes")
	dst, rows, x, codes := p[0], p[1], p[2], p[3]
	n, width, ahead := length("rows"), length("x"), integer("ahead")
	i, j, at, later := GP64(), GP64(), GP64(), GP64()
	XORQ(i, i)
	top, done := label("row"), label("rows")
	Label(top)
	CMPQ(i, n)
	JGE(LabelRef(done))
	LEAQ(Mem{Base: i, Index: ahead, Scale: 1}, later)
	CMPQ(later, n)
	CMOVQGE(i, later)
	for _, row := range []struct{ index, to reg.GPVirtual }{{i, at}, {later, later}} {
		MOVLQSX(Mem{Base: rows, Index: row.index, Scale: 4}, row.to)
		IMULQ(width, row.to)
		ADDQ(codes, row.to)
	}
	acc := [2]reg.VecVirtual{s.zero(), s.zero()}
	XORQ(j, j)
	step := label("step")
	Label(step)
	PREFETCHT0(Mem{Base: later, Index: j, Scale: 1})
	for k := range acc {
		y := s.vec()
		VPMOVSXBW(Mem{Base: at, Index: j, Scale: 1, Disp: 16 * k}, y)
		VPMADDWD(Mem{Base: x, Index: j, Scale: 2, Disp: 32 * k}, y, y)
		VPADDD(y, acc[k], acc[k])
	}
	ADDQ(U8(32), j)
	CMPQ(j, width)
	JL(LabelRef(step))
	VPADDD(acc[1], acc[0], acc[0])
	low, high := XMM(), XMM()
	VEXTRACTI128(U8(1), acc[0], high)
	VPADDD(acc[0].AsX(), high, low)
	for _, swap := range []uint8{0x4e, 0xb1} {
		VPSHUFD(U8(swap), low, high)
		VPADDD(low, high, low)
	}
	VMOVD(low, Mem{Base: dst, Index: i, Scale: 4})
	INCQ(i)
	JMP(LabelRef(top))
	Label(done)
	s.end()
}

// hits writes the numbers of the elements of x for which is holds, with what also adds to them, and
// returns how many there are.
func (s isa) hits(out, x reg.GPVirtual, is func(l lanes, x reg.VecVirtual) truth, also func(at reg.GPVirtual)) {
	next, base := GP64(), GP64()
	MOVQ(out, next)
	XORQ(base, base)
	s.each(length("x"), 1, func(l lanes, _ int) {
		mask := s.mask(is(l, l.get(x)))
		top, done := label("hit"), label("none")
		Label(top)
		TESTL(mask, mask)
		JZ(LabelRef(done))
		at, rest := GP64(), GP32()
		BSFL(mask, at.As32())
		ADDQ(base, at)
		also(at)
		MOVQ(at, Mem{Base: next})
		ADDQ(U8(8), next)
		LEAL(Mem{Base: mask.As64(), Disp: -1}, rest)
		ANDL(rest, mask)
		JMP(LabelRef(top))
		Label(done)
		ADDQ(U32(uint32(s.lanes)), base)
	})
	SUBQ(out, next)
	SHRQ(U8(3), next)
	Store(next, ReturnIndex(0))
	s.end()
}

// either returns a or b, of lanes that exist.
func (s isa) either(a, b truth, exist *truth) truth {
	if s.wide() {
		KORW(a.k, b.k, a.k)
		if exist != nil {
			KANDW(exist.k, a.k, a.k)
		}
		return a
	}
	VORPS(a.v, b.v, a.v)
	if exist != nil {
		VANDPS(exist.v, a.v, a.v)
	}
	return a
}

// mask returns one bit for each lane.
func (s isa) mask(t truth) reg.GPVirtual {
	m := GP32()
	if s.wide() {
		KMOVW(t.k, m)
	} else {
		VMOVMSKPS(t.v, m)
	}
	return m
}
