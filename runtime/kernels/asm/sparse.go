package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// How entries find their value.
const (
	ones = iota // every value is 1
	direct
	permuted // vals[perm[e]]
)

// sparse emits the products with a sparse matrix.
func sparse(s isa) {
	s.spmm("spmmOnes", ones, false)
	s.spmm("spmmVals", direct, false)
	s.spmm("spmmPerm", permuted, false)
	s.spmm("spmmHeadVals", direct, true)
	s.spmm("spmmHeadPerm", permuted, true)
	s.sddmm("sddmm", direct, false)
	s.sddmm("sddmmPerm", permuted, false)
	s.sddmm("sddmmHead", direct, true)
	s.sddmm("sddmmHeadPerm", permuted, true)
	s.scatter()
}

// scatter keeps up to 8 vectors of h in registers while it passes over the entries.
func (s isa) scatter() {
	s.begin("scatter", "(dst []float32, col []int32, vals, h []float32, f int)", "adds a row times each value to the rows that columns name (see scatterGo).")
	p := slices("dst", "col", "vals", "h")
	dst, col, vals, h := p[0], p[1], p[2], p[3]
	n, rem, bytes, j := length("col"), integer("f"), integer("f"), GP64()
	tail := s.first(s.tailLanes())
	SHLQ(U8(2), bytes)
	XORQ(j, j)
	block := func(nv int, tail *truth) {
		row := make([]reg.VecVirtual, nv)
		at := make([]lanes, nv)
		for i := range row {
			at[i] = lanes{isa: s, at: j, off: i * s.bytes(), tail: tail}
			row[i] = at[i].get(h)
		}
		e, to := GP64(), GP64()
		XORQ(e, e)
		top, done := label("entry"), label("entries")
		Label(top)
		CMPQ(e, n)
		JGE(LabelRef(done))
		MOVLQSX(Mem{Base: col, Index: e, Scale: 4}, to)
		IMULQ(bytes, to)
		ADDQ(dst, to)
		v := s.broadcast(Mem{Base: vals, Index: e, Scale: 4})
		for i := range row {
			sum := at[i].get(to)
			fma(sum, v, row[i])
			at[i].put(sum, to)
		}
		INCQ(e)
		JMP(LabelRef(top))
		Label(done)
	}
	s.inBlocks(rem, j, &tail, block)
	s.end()
}

// inBlocks emits block for up to 8 vectors of the columns that remain at a time, and for the last,
// partial one.
func (s isa) inBlocks(rem, j reg.GPVirtual, tail *truth, block func(nv int, tail *truth)) {
	for _, nv := range []int{8, 4, 2, 1} {
		top, next := label("block"), label("next")
		Label(top)
		CMPQ(rem, U32(uint32(nv*s.lanes)))
		JL(LabelRef(next))
		block(nv, nil)
		ADDQ(U32(uint32(nv*s.bytes())), j)
		SUBQ(U32(uint32(nv*s.lanes)), rem)
		if nv == 8 {
			JMP(LabelRef(top))
		}
		Label(next)
	}
	skip := label("full")
	TESTQ(rem, rem)
	JZ(LabelRef(skip))
	block(1, tail)
	Label(skip)
}

// spmm accumulates up to 8 vectors of a row of the result in registers while it
// passes over the row's entries. With head it computes one block of f columns of
// rows ld wide, whose values lie heads apart.
func (s isa) spmm(name string, values int, head bool) {
	columns, width := "f", "f"
	if head {
		columns, width = "f, ld, heads", "ld"
	}
	s.begin(name, "(dst []float32, rowPtr, col, perm []int32, vals, diag, h []float32, "+columns+", r0, r1, add, ahead int)",
		"computes rows r0 to r1 of a sparse product (see spmmGo).")
	rows := newRows("dst", "h", width)
	var vals, perm reg.GPVirtual
	if values != ones {
		vals = slices("vals")[0]
	}
	if values == permuted {
		perm = slices("perm")[0]
	}
	dst, h := rows.row, rows.other
	tail := s.first(s.tailLanes())
	end := rows.begin()
	rem, j := integer("f"), GP64()
	XORQ(j, j)

	block := func(nv int, tail *truth) {
		acc := make([]reg.VecVirtual, nv)
		at := func(base reg.GPVirtual, i int) Mem {
			return Mem{Base: base, Index: j, Scale: 1, Disp: i * s.bytes()}
		}
		l := lanes{isa: s, at: j, tail: tail}
		for i := range acc {
			acc[i] = s.zero()
		}
		fresh := label("fresh")
		CMPQ(address("add"), U8(0))
		JEQ(LabelRef(fresh))
		for i := range acc {
			if tail != nil {
				VMOVAPS(l.get(dst), acc[i])
			} else {
				VMOVUPS(at(dst, i), acc[i])
			}
		}
		Label(fresh)
		e, p := GP64(), GP64()
		// The row's own term, if diag has it.
		bare := label("bare")
		MOVQ(rows.rowPtr, p)
		SUBQ(rows.start, p)
		SHRQ(U8(2), p)
		own := p
		if head {
			own = GP64()
			MOVQ(p, own)
			IMULQ(address("heads"), own)
		}
		CMPQ(own, count("diag"))
		JGE(LabelRef(bare))
		MOVQ(base("diag"), e)
		factor := s.broadcast(Mem{Base: e, Index: own, Scale: 4})
		IMULQ(rows.bytes, p)
		ADDQ(h, p)
		for i := range acc {
			if tail != nil {
				fma(acc[i], factor, l.get(p))
			} else {
				fma(acc[i], factor, at(p, i))
			}
		}
		Label(bare)
		done := label("entries")
		entry := func(fetch bool) {
			top := label("entry")
			Label(top)
			MOVLQSX(Mem{Base: rows.col, Index: e, Scale: 4}, p)
			IMULQ(rows.bytes, p)
			ADDQ(h, p)
			var v reg.VecVirtual
			if values != ones {
				t := e
				if values == permuted {
					t = GP64()
					MOVLQSX(Mem{Base: perm, Index: e, Scale: 4}, t)
				}
				v = s.broadcast(Mem{Base: vals, Index: spread(t, head), Scale: 4})
			}
			if fetch {
				q := rows.ahead(e)
				if values == permuted { // values lie as far apart as rows
					t := GP64()
					MOVLQSX(Mem{Base: perm, Index: q, Scale: 4}, t)
					PREFETCHT0(Mem{Base: vals, Index: spread(t, head), Scale: 4})
				}
				rows.address(q)
				for i := 0; i < nv*s.bytes(); i += 64 {
					PREFETCHT0(Mem{Base: q, Index: j, Scale: 1, Disp: i})
				}
			}
			for i := range acc {
				var x Op = at(p, i)
				if tail != nil {
					x = l.get(p)
				}
				if values == ones {
					VADDPS(x, acc[i], acc[i])
				} else {
					fma(acc[i], v, x)
				}
			}
			INCQ(e)
			CMPL(e.As32(), rows.last)
			JL(LabelRef(top))
		}
		MOVLQSX(rows.first, e)
		CMPL(e.As32(), rows.last)
		JGE(LabelRef(done))
		near := label("near")
		CMPQ(address("ahead"), U8(0))
		JEQ(LabelRef(near))
		entry(true)
		JMP(LabelRef(done))
		Label(near)
		entry(false)
		Label(done)
		for i := range acc {
			if tail != nil {
				l.put(acc[i], dst)
			} else {
				VMOVUPS(acc[i], at(dst, i))
			}
		}
	}
	s.inBlocks(rem, j, &tail, block)
	rows.end(end)
	s.end()
}

// sddmm computes the inner products of one row with those its entries name, four
// entries at a time. A group that the row's end cuts short repeats its first
// entry, so that every product is summed in the same order: (i,j) and (j,i) get
// the same bits.
func (s isa) sddmm(name string, values int, head bool) {
	columns, width := "f", "f"
	if head {
		columns, width = "f, ld, heads", "ld"
	}
	s.begin(name, "(dst []float32, rowPtr, col, perm []int32, p, q []float32, "+columns+", r0, r1, ahead int)",
		"computes the entries of rows r0 to r1 of a sampled product.")
	const group = 4
	rows := newRows("p", "q", width)
	p := rows.row
	tail := s.first(s.tailLanes())
	end := rows.begin()
	e, t := GP64(), GP64()
	MOVLQSX(rows.first, e)
	top, done := label("entry"), label("entries")
	Label(top)
	CMPL(e.As32(), rows.last)
	JGE(LabelRef(done))
	x := make([]reg.GPVirtual, group)
	for k := range x {
		x[k] = GP64()
		LEAQ(Mem{Base: e, Disp: k}, t)
		if k > 0 {
			CMPL(t.As32(), rows.last)
			CMOVQGE(e, t)
		}
		MOVQ(t, x[k])
		rows.address(x[k])
	}
	// The first line of rows further on; the others follow from it.
	near := label("near")
	CMPQ(address("ahead"), U8(0))
	JEQ(LabelRef(near))
	for k := range x {
		LEAQ(Mem{Base: e, Disp: k}, t)
		ADDQ(address("ahead"), t)
		CMPQ(t, rows.entries)
		CMOVQGE(e, t)
		rows.address(t)
		PREFETCHT0(Mem{Base: t})
	}
	Label(near)
	j, rem := GP64(), integer("f")
	XORQ(j, j)
	acc := make([][]reg.VecVirtual, group)
	for k := range acc {
		for range 16 / s.lanes {
			acc[k] = append(acc[k], s.vec())
		}
	}
	begun, joined := label("begun"), label("joined")
	if !s.wide() {
		// The first of all lanes need nothing to be added to, and where there are no
		// more than a vector the lanes behind are not needed.
		small, part, none := label("small"), label("part"), label("none")
		start := func(v int, l lanes) {
			own := l.get(p)
			for k := range acc {
				var y Op = l.mem(x[k])
				if l.tail != nil {
					y = l.get(x[k])
				}
				VMULPS(y, own, acc[k][v])
			}
		}
		CMPQ(rem, U32(16))
		JL(LabelRef(small))
		for v := range 2 {
			start(v, lanes{isa: s, at: j, off: v * s.bytes()})
		}
		ADDQ(U32(64), j)
		SUBQ(U32(16), rem)
		JMP(LabelRef(begun))
		Label(small)
		CMPQ(rem, U32(8))
		JL(LabelRef(part))
		JG(LabelRef(none))
		start(0, lanes{isa: s, at: j})
		JMP(LabelRef(joined))
		Label(part)
		start(0, lanes{isa: s, at: j, tail: &tail})
		JMP(LabelRef(joined))
		Label(none)
	}
	for k := range acc {
		for _, a := range acc[k] {
			s.clear(a)
		}
	}
	if !s.wide() {
		Label(begun)
	}
	// step adds to vector v of the lanes what lies v vectors further on.
	step := func(v, off int) {
		l := lanes{isa: s, at: j, off: off}
		own := l.get(p)
		for k := range acc {
			fma(acc[k][v%len(acc[k])], own, l.mem(x[k]))
		}
	}
	full := label("full")
	rest := func(v int) {
		TESTQ(rem, rem)
		JZ(LabelRef(full))
		l := lanes{isa: s, at: j, tail: &tail}
		own := l.get(p)
		for k := range acc {
			fma(acc[k][v], own, l.get(x[k]))
		}
	}
	for _, u := range []int{2, 1} {
		next, done := label("loop"), label("done")
		Label(next)
		CMPQ(rem, U32(uint32(u*s.lanes)))
		JL(LabelRef(done))
		for i := range u {
			step(i, i*s.bytes())
		}
		ADDQ(U32(uint32(u*s.bytes())), j)
		SUBQ(U32(uint32(u*s.lanes)), rem)
		if u == 1 && !s.wide() { // at most once, and then the rest is the lanes behind
			rest(1)
			JMP(LabelRef(full))
		} else {
			JMP(LabelRef(next))
		}
		Label(done)
	}
	rest(0)
	Label(full)
	for _, a := range acc {
		if !s.wide() {
			VADDPS(a[1], a[0], a[0])
		}
	}
	if !s.wide() {
		Label(joined)
	}
	sums := s.foldFour(acc)
	dst, perm := GP64(), GP64()
	MOVQ(base("dst"), dst)
	if values == permuted {
		MOVQ(base("perm"), perm)
	}
	for k := range group {
		if k > 0 {
			CMPL(e.As32(), rows.last)
			JGE(LabelRef(done))
			VSHUFPS(U8(0x39), sums, sums, sums)
		}
		at := e
		if values == permuted {
			at = GP64()
			MOVLQSX(Mem{Base: perm, Index: e, Scale: 4}, at)
		}
		VMOVSS(sums, Mem{Base: dst, Index: spread(at, head), Scale: 4})
		INCQ(e)
	}
	JMP(LabelRef(top))
	Label(done)
	rows.end(end)
	s.end()
}

// spread returns where the value of an entry lies, of several heads.
func spread(entry reg.GPVirtual, head bool) reg.GPVirtual {
	if !head {
		return entry
	}
	at := GP64()
	MOVQ(entry, at)
	IMULQ(address("heads"), at)
	return at
}

// foldFour returns the sums of four accumulators in one XMM register, each added as
// by result. Those of 16 lanes in two vectors are joined.
func (s isa) foldFour(acc [][]reg.VecVirtual) reg.VecVirtual {
	half := make([]reg.VecVirtual, len(acc))
	for i := range acc {
		if half[i] = acc[i][0]; s.wide() {
			half[i] = s.halves(half[i], VADDPS)
		}
	}
	a, b := YMM(), YMM()
	VHADDPS(half[1], half[0], a)
	VHADDPS(half[3], half[2], b)
	VHADDPS(b, a, a)
	h, zero := XMM(), XMM()
	VEXTRACTF128(U8(1), a, h)
	VADDPS(a.AsX(), h, h)
	VXORPS(zero, zero, zero)
	VADDPS(zero, h, h)
	return h
}

// tailLanes returns the number of columns in the last, partial vector.
func (s isa) tailLanes() reg.GPVirtual {
	n := integer("f")
	ANDQ(U8(s.lanes-1), n)
	return n
}

// rowLoop walks the rows of a sparse structure. What the inner loop can do
// without stays in memory: registers are short.
type rowLoop struct {
	rowPtr, stop reg.GPVirtual // offset of the row, offset at which to stop
	col          reg.GPVirtual
	row          reg.GPVirtual // the dense row of this row
	other        Mem           // the matrix that columns index
	bytes        reg.GPVirtual // size of a whole row of both
	start        Mem           // address of the offsets
	first, last  Mem           // entries of the row
	entries      Mem           // number of entries
	top          string
}

func newRows(row, other, width string) *rowLoop {
	p := slices("rowPtr", "col", row)
	r := &rowLoop{start: base("rowPtr"), entries: count("col"), rowPtr: p[0], col: p[1], row: p[2], other: base(other), bytes: integer(width), stop: GP64()}
	SHLQ(U8(2), r.bytes)
	r.first, r.last = Mem{Base: r.rowPtr}, Mem{Base: r.rowPtr, Disp: 4}
	r0, r1 := integer("r0"), integer("r1")
	LEAQ(Mem{Base: r.rowPtr, Index: r1, Scale: 4}, r.stop)
	LEAQ(Mem{Base: r.rowPtr, Index: r0, Scale: 4}, r.rowPtr)
	IMULQ(r.bytes, r0)
	ADDQ(r0, r.row)
	return r
}

// ahead returns the entry ahead further on, or entry e at the end.
func (r *rowLoop) ahead(e reg.GPVirtual) reg.GPVirtual {
	q := GP64()
	MOVQ(address("ahead"), q)
	ADDQ(e, q)
	CMPQ(q, r.entries)
	CMOVQGE(e, q)
	return q
}

// address replaces an entry by where the row lies that it names.
func (r *rowLoop) address(e reg.GPVirtual) {
	MOVLQSX(Mem{Base: r.col, Index: e, Scale: 4}, e)
	IMULQ(r.bytes, e)
	ADDQ(r.other, e)
}

// begin emits the head of the loop and returns the label after it.
func (r *rowLoop) begin() string {
	r.top = label("row")
	end := label("rows")
	Label(r.top)
	CMPQ(r.rowPtr, r.stop)
	JGE(LabelRef(end))
	return end
}

func (r *rowLoop) end(end string) {
	ADDQ(U8(4), r.rowPtr)
	ADDQ(r.bytes, r.row)
	JMP(LabelRef(r.top))
	Label(end)
}
