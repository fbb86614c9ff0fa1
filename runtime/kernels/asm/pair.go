package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// magic rounds: t + magic has round(t) + 128 in its low bits, for |t| < 2²². It is
// even, so that ties go where those of s.round go.
const magic = 3<<22 + 128

// exp2 is 2^t for t < 127, 0 below −127.5, and unspecified above (no trap). The
// polynomial, of a relative error of 8e-8, is that of 2^(r−1).
func (s isa) exp2(t Op) reg.VecVirtual {
	t = s.hi(s.load(num(-128)), t)
	n := s.add(t, num(magic))
	r := s.sub(t, s.round(t))
	y := s.estrin(r, .5, .5*6.9314718e-1, .5*2.4022646e-1, .5*5.5503286e-2, .5*9.618489e-3, .5*1.3399931e-3, .5*1.5345811e-4)
	return s.mul(y, s.shift(VPSLLD, n, 23))
}

// pair emits the inner loops over a tile of products p_i·q_j: two vectors of
// columns, any number of rows (see pairTile in pairwise_tile.go).
func pair(s isa) {
	s.pairWeights()
	s.pairNearest()
}

// pairLoop is what both loops share.
type pairLoop struct {
	isa
	src, row, qn, ld, mask, step reg.GPVirtual
	two                          reg.VecVirtual
	rows                         Mem
	top, done                    string
}

func (s isa) newPairLoop() *pairLoop {
	p := slices("src", "row", "qn")
	l := &pairLoop{isa: s, src: p[0], row: p[1], qn: p[2], ld: integer("ld"), mask: slices("mask")[0], step: integer("step"), rows: address("rows")}
	at := integer("at")
	LEAQ(Mem{Base: l.mask, Index: at, Scale: 4}, l.mask)
	SHLQ(U8(2), l.ld)
	SHLQ(U8(2), l.step)
	l.two = s.load(num(2))
	return l
}

func (l *pairLoop) begin() {
	l.top, l.done = label("row"), label("done")
	Label(l.top)
	CMPQ(l.rows, U8(0))
	JLE(LabelRef(l.done))
}

func (l *pairLoop) end(also ...func()) {
	for _, f := range also {
		f()
	}
	ADDQ(l.ld, l.src)
	ADDQ(l.step, l.mask)
	ADDQ(U8(16), l.row)
	DECQ(l.rows)
	JMP(LabelRef(l.top))
	Label(l.done)
}

// distance is max(pn + qn − 2·src, 0); NaN stays.
func (l *pairLoop) distance(pn reg.VecVirtual, v int) reg.VecVirtual {
	d := l.add(pn, Mem{Base: l.qn, Disp: v * l.bytes()})
	VFNMADD231PS(Mem{Base: l.src, Disp: v * l.bytes()}, l.two, d)
	return l.hi(l.isa.zero(), d) // registers are short, and a 0 is free
}

func (s isa) pairWeights() {
	s.begin("pairWeights", "(dst, src []float32, ld, rows int, row, qn, gamma, b, rowAcc, colAcc, sq []float32, mask []uint32, at, step int, scale, sq2 float32)",
		"turns products into weights (see pairWeightsGo).")
	l := s.newPairLoop()
	p := slices("dst", "gamma", "b", "rowAcc")
	dst, gamma, b, rowAcc := p[0], p[1], p[2], p[3]
	scale, sq2 := s.param("scale"), s.param("sq2")
	colAcc := slices("colAcc")[0]
	col := []reg.VecVirtual{s.load(Mem{Base: colAcc}), s.load(Mem{Base: colAcc, Disp: s.bytes()})}
	sqAt := slices("sq")[0]
	sq := []reg.VecVirtual{s.load(Mem{Base: sqAt}), s.load(Mem{Base: sqAt, Disp: s.bytes()})}
	l.begin()
	pn, beta, a := s.broadcast(Mem{Base: l.row}), s.broadcast(Mem{Base: l.row, Disp: 4}), s.broadcast(Mem{Base: l.row, Disp: 8})
	var sum reg.VecVirtual
	if s.wide() {
		sum = s.load(Mem{Base: rowAcc})
	}
	for v := range 2 {
		at := func(p reg.GPVirtual) Mem { return Mem{Base: p, Disp: v * s.bytes()} }
		d := l.distance(pn, v)
		fma(sq[v], d, d)
		g := s.mul(d, sq2)
		t := s.add(beta, at(gamma))
		fma(t, d, scale)
		e := s.and(s.exp2(t), at(l.mask))
		fma(g, e, s.add(a, at(b)))
		VMOVUPS(g, at(dst))
		VADDPS(g, col[v], col[v])
		if s.wide() { // both vectors are of the same 16 lanes
			VADDPS(g, sum, sum)
		} else {
			VMOVUPS(s.add(g, at(rowAcc)), at(rowAcc))
		}
	}
	if s.wide() {
		VMOVUPS(sum, Mem{Base: rowAcc})
	}
	l.end(func() {
		ADDQ(l.ld, dst)
		ADDQ(U8(64), rowAcc)
	})
	VMOVUPS(col[0], Mem{Base: colAcc})
	VMOVUPS(col[1], Mem{Base: colAcc, Disp: s.bytes()})
	VMOVUPS(sq[0], Mem{Base: sqAt})
	VMOVUPS(sq[1], Mem{Base: sqAt, Disp: s.bytes()})
	s.end()
}

func (s isa) pairNearest() {
	s.begin("pairNearest", "(src []float32, ld, rows int, row, qn, rowMin, colMin []float32, mask []uint32, at, step int)",
		"finds the smallest distances of rows and columns (see pairNearestGo).")
	l := s.newPairLoop()
	p := slices("rowMin", "colMin")
	rowMin, colMin := p[0], p[1]
	ones := s.load(bits(1<<32 - 1))
	col := []reg.VecVirtual{s.load(Mem{Base: colMin}), s.load(Mem{Base: colMin, Disp: s.bytes()})}
	l.begin()
	pn := s.broadcast(Mem{Base: l.row})
	m := s.load(Mem{Base: rowMin})
	for v := range 2 {
		d := l.distance(pn, v)
		// What the mask leaves out becomes NaN, which a minimum passes over.
		out := s.xor(ones, Mem{Base: l.mask, Disp: v * s.bytes()})
		d = s.or(d, out)
		m = s.lo(d, m)
		VMINPS(col[v], d, col[v])
	}
	VMOVUPS(m, Mem{Base: rowMin})
	l.end(func() { ADDQ(U8(64), rowMin) })
	VMOVUPS(col[0], Mem{Base: colMin})
	VMOVUPS(col[1], Mem{Base: colMin, Disp: s.bytes()})
	s.end()
}
