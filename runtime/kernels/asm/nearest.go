package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// nearest emits the search of a row of products for those that belong among
// the largest, of its own row or of the columns.
func nearest(s isa) {
	s.begin("reach", "(hits []uint64, x, cols []float32, least float32) int",
		"writes to hits where x >= least or x >= cols and returns how many there are.")
	p, least := slices("hits", "x", "cols"), s.param("least")
	next, base := GP64(), GP64()
	MOVQ(p[0], next)
	XORQ(base, base)
	s.each(length("x"), 1, func(l lanes, _ int) {
		x := l.get(p[1])
		mask := s.mask(s.either(s.compare(greaterEqual, x, least), s.compare(greaterEqual, x, l.get(p[2])), l.tail))
		top, done := label("hit"), label("none")
		Label(top)
		TESTL(mask, mask)
		JZ(LabelRef(done))
		at, rest := GP64(), GP32()
		BSFL(mask, at.As32())
		ADDQ(base, at)
		MOVQ(at, Mem{Base: next})
		ADDQ(U8(8), next)
		LEAL(Mem{Base: mask.As64(), Disp: -1}, rest)
		ANDL(rest, mask)
		JMP(LabelRef(top))
		Label(done)
		ADDQ(U32(uint32(s.lanes)), base)
	})
	SUBQ(p[0], next)
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
