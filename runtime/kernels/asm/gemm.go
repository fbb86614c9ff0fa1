package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// gemm emits the micro-kernels of the matrix product. The accumulators of an
// mr×(nv vectors) block live in registers: 6×2 of 16 registers in AVX2, 14×2 of
// 32 in AVX-512, the others for one row of b and one broadcast element of a.
// Twelve and more accumulators also cover the latency of the multiply-add.
func gemm(s isa) {
	if s.wide() {
		s.micro("gemmWide", 14, 2)
		s.micro("gemmNarrow", 14, 1)
		s.packCols()
		return
	}
	s.packCols()
	s.packRows()
	s.fetchRows()
	s.micro("gemmWide", 6, 2)
	s.micro("gemmNarrow", 12, 1)
}

func (s isa) micro(name string, mr, nv int) {
	s.begin(name, "(kc int, a []float32, rs, cs, as int, b, c []float32, ldc int, add []float32, strips int)",
		fmt.Sprintf("computes blocks of %d×%d of a product (see micro).", mr, nv*s.lanes))
	rs, cs := integer("rs"), integer("cs")
	SHLQ(U8(2), rs)
	SHLQ(U8(2), cs)
	// Row i of a lies at i·rs = odd·2^e·rs; the odd multiples are kept.
	odd := map[int]reg.GPVirtual{1: rs}
	for m := 3; m < mr; m += 2 {
		odd[m] = GP64()
		LEAQ(Mem{Base: odd[m-2], Index: rs, Scale: 2}, odd[m])
	}
	// What changes from strip to strip is kept in the arguments: registers are short.
	strip, end := label("strip"), label("strips")
	Label(strip)
	CMPQ(address("strips"), U8(0))
	JLE(LabelRef(end))
	a, b, k := GP64(), GP64(), GP64()
	MOVQ(base("a"), a)
	MOVQ(base("b"), b)
	MOVQ(address("kc"), k)
	row := func(i int) Mem {
		if i == 0 {
			return Mem{Base: a}
		}
		scale := 1
		for i%2 == 0 {
			i, scale = i/2, scale*2
		}
		return Mem{Base: a, Index: odd[i], Scale: uint8(scale)}
	}
	acc := make([]reg.VecVirtual, mr*nv)
	for i := range acc {
		acc[i] = s.zero()
	}
	// The rows of c are wanted at the end, and those that are added.
	for _, name := range []string{"c", "add"} {
		t, ldc, none := GP64(), integer("ldc"), label("none")
		MOVQ(base(name), t)
		TESTQ(t, t)
		JZ(LabelRef(none))
		for i := range mr {
			PREFETCHT0(Mem{Base: t})
			PREFETCHT0(Mem{Base: t, Disp: 4*nv*s.lanes - 1})
			if i < mr-1 {
				LEAQ(Mem{Base: t, Index: ldc, Scale: 4}, t)
			}
		}
		Label(none)
	}
	step := func(off int) {
		right := make([]reg.VecVirtual, nv)
		for v := range right {
			right[v] = s.load(Mem{Base: b, Disp: off + v*s.bytes()})
		}
		for i := range mr {
			x := s.broadcast(row(i))
			for v := range right {
				fma(acc[i*nv+v], x, right[v])
			}
		}
		ADDQ(cs, a)
	}
	const unroll = 4
	for _, u := range []int{unroll, 1} {
		top, done := label("loop"), label("done")
		Label(top)
		CMPQ(k, U8(u))
		JL(LabelRef(done))
		for i := range u {
			step(i * nv * s.bytes())
		}
		ADDQ(U32(uint32(u*nv*s.bytes())), b)
		SUBQ(U8(u), k)
		JMP(LabelRef(top))
		Label(done)
	}
	c, ldc, t := GP64(), integer("ldc"), GP64()
	MOVQ(base("c"), c)
	MOVQ(base("add"), t)
	SHLQ(U8(2), ldc)
	store := label("store")
	TESTQ(t, t)
	JZ(LabelRef(store))
	for i := range mr {
		for v := range nv {
			VADDPS(Mem{Base: t, Disp: v * s.bytes()}, acc[i*nv+v], acc[i*nv+v])
		}
		ADDQ(ldc, t)
	}
	MOVQ(t, base("add"))
	Label(store)
	for i := range mr {
		for v := range nv {
			VMOVUPS(acc[i*nv+v], Mem{Base: c, Disp: v * s.bytes()})
		}
		ADDQ(ldc, c)
	}
	MOVQ(c, base("c"))
	as := integer("as")
	SHLQ(U8(2), as)
	ADDQ(as, base("a"))
	DECQ(address("strips"))
	JMP(LabelRef(strip))
	Label(end)
	s.end()
}

// packCols emits the copy of up to one vector of columns, or of exactly two: row
// by row a masked load and a whole store. The row 32 further on is fetched: rows lie pages apart,
// where the processor does not look ahead by itself.
func (s isa) packCols() {
	s.begin("packCols", "(out, in []float32, kc, ld, w, step int)", "copies w columns of kc rows (see packStraight).")
	p := slices("out", "in")
	out, in, k, ld, step := p[0], p[1], integer("kc"), integer("ld"), integer("step")
	SHLQ(U8(2), ld)
	SHLQ(U8(2), step)
	w, at, ahead := integer("w"), GP64(), GP64()
	XORQ(at, at)
	MOVQ(ld, ahead)
	SHLQ(U8(5), ahead)
	copyRows := func(get ...func() reg.VecVirtual) {
		top, done := label("loop"), label("done")
		Label(top)
		TESTQ(k, k)
		JZ(LabelRef(done))
		PREFETCHT0(Mem{Base: in, Index: ahead, Scale: 1})
		for i, g := range get {
			VMOVUPS(g(), Mem{Base: out, Disp: i * s.bytes()})
		}
		ADDQ(ld, in)
		ADDQ(step, out)
		DECQ(k)
		JMP(LabelRef(top))
		Label(done)
		s.end()
	}
	part, double := label("part"), label("double")
	whole := func(i int) func() reg.VecVirtual {
		return func() reg.VecVirtual { return s.load(Mem{Base: in, Disp: i * s.bytes()}) }
	}
	CMPQ(w, U8(s.lanes))
	JL(LabelRef(part))
	JG(LabelRef(double))
	copyRows(whole(0))
	Label(double)
	copyRows(whole(0), whole(1))
	Label(part)
	t := s.first(w)
	l := lanes{isa: s, at: at, tail: &t}
	copyRows(func() reg.VecVirtual { return l.get(in) })
}

// packRows emits the transposition of up to 8 rows, 8×8 floats at a time (256-bit
// vectors in either instruction set). Rows that do not exist repeat the first.
func (s isa) packRows() {
	s.begin("packRows", "(out, in []float32, kc, ld, h, step int)", "transposes h rows of kc floats (see packTransposed).")
	in, k, ld, step := make([]reg.GPVirtual, 8), integer("kc"), integer("ld"), integer("step")
	SHLQ(U8(2), ld)
	SHLQ(U8(2), step)
	in[0] = slices("in")[0]
	next := GP64()
	MOVQ(in[0], next)
	for r := 1; r < 8; r++ {
		in[r] = GP64()
		ADDQ(ld, next)
		MOVQ(in[0], in[r])
		CMPQ(address("h"), U8(r))
		CMOVQGT(next, in[r])
	}
	out := slices("out")[0]
	at := GP64()
	XORQ(at, at)
	top, rest, done := label("loop"), label("rest"), label("done")
	Label(top)
	CMPQ(k, U8(8))
	JL(LabelRef(rest))
	// Pairs of rows interleaved, then pairs of those, then the halves exchanged.
	var x [8]reg.VecVirtual
	for r := range x {
		x[r] = s.load(Mem{Base: in[r], Index: at, Scale: 1})
	}
	var t [8]reg.VecVirtual
	for r := 0; r < 8; r += 2 {
		t[r], t[r+1] = s.op(VUNPCKLPS, x[r], x[r+1]), s.op(VUNPCKHPS, x[r], x[r+1])
	}
	for r := 0; r < 8; r += 4 {
		x[r], x[r+1] = s.op(VUNPCKLPD, t[r], t[r+2]), s.op(VUNPCKHPD, t[r], t[r+2])
		x[r+2], x[r+3] = s.op(VUNPCKLPD, t[r+1], t[r+3]), s.op(VUNPCKHPD, t[r+1], t[r+3])
	}
	for r := range 4 {
		lo, hi := s.vec(), s.vec()
		VPERM2F128(U8(0x20), x[r+4], x[r], lo)
		VPERM2F128(U8(0x31), x[r+4], x[r], hi)
		t[r], t[r+4] = lo, hi
	}
	for _, v := range t {
		VMOVUPS(v, Mem{Base: out})
		ADDQ(step, out)
	}
	ADDQ(U8(32), at)
	SUBQ(U8(8), k)
	JMP(LabelRef(top))
	Label(rest)
	TESTQ(k, k)
	JZ(LabelRef(done))
	v := GP32()
	for r := range in {
		MOVL(Mem{Base: in[r], Index: at, Scale: 1}, v)
		MOVL(v, Mem{Base: out, Disp: 4 * r})
	}
	ADDQ(step, out)
	ADDQ(U8(4), at)
	DECQ(k)
	JMP(LabelRef(rest))
	Label(done)
	s.end()
}

// fetchRows emits the request of w floats of each of n rows to the second-level cache.
func (s isa) fetchRows() {
	s.begin("fetchRows", "(in []float32, n, ld, w int)", "asks for w floats of n rows.")
	in, n, ld, w := slices("in")[0], integer("n"), integer("ld"), integer("w")
	SHLQ(U8(2), ld)
	SHLQ(U8(2), w)
	row, line, next, done := label("row"), label("line"), label("next"), label("done")
	at := GP64()
	Label(row)
	TESTQ(n, n)
	JZ(LabelRef(done))
	XORQ(at, at)
	Label(line)
	CMPQ(at, w)
	JGE(LabelRef(next))
	PREFETCHT1(Mem{Base: in, Index: at, Scale: 1})
	ADDQ(U8(64), at)
	JMP(LabelRef(line))
	Label(next)
	PREFETCHT1(Mem{Base: in, Index: w, Scale: 1, Disp: -4})
	ADDQ(ld, in)
	DECQ(n)
	JMP(LabelRef(row))
	Label(done)
	s.end()
}
