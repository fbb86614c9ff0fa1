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
	s.spmm("spmmOnes", ones)
	s.spmm("spmmVals", direct)
	s.spmm("spmmPerm", permuted)
	s.sddmm("sddmm", direct)
	s.sddmm("sddmmPerm", permuted)
}

// spmm accumulates up to 8 vectors of a row of the result in registers while it
// passes over the row's entries.
func (s isa) spmm(name string, values int) {
	s.begin(name, "(dst []float32, rowPtr, col, perm []int32, vals, h []float32, f, r0, r1, add int)",
		"computes rows r0 to r1 of a sparse product.")
	rows := newRows("dst", "h")
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
		MOVLQSX(rows.first, e)
		top, done := label("entry"), label("entries")
		CMPL(e.As32(), rows.last)
		JGE(LabelRef(done))
		Label(top)
		MOVLQSX(Mem{Base: rows.col, Index: e, Scale: 4}, p)
		IMULQ(rows.bytes, p)
		ADDQ(h, p)
		var v reg.VecVirtual
		switch values {
		case direct:
			v = s.broadcast(Mem{Base: vals, Index: e, Scale: 4})
		case permuted:
			t := GP64()
			MOVLQSX(Mem{Base: perm, Index: e, Scale: 4}, t)
			v = s.broadcast(Mem{Base: vals, Index: t, Scale: 4})
		}
		if nv >= 4 {
			q := rows.ahead(e)
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
		Label(done)
		for i := range acc {
			if tail != nil {
				l.put(acc[i], dst)
			} else {
				VMOVUPS(acc[i], at(dst, i))
			}
		}
	}
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
	block(1, &tail)
	Label(skip)
	rows.end(end)
	s.end()
}

// sddmm computes the inner products of one row with those its entries name.
func (s isa) sddmm(name string, values int) {
	s.begin(name, "(dst []float32, rowPtr, col, perm []int32, p, q []float32, f, r0, r1 int)",
		"computes the entries of rows r0 to r1 of a sampled product.")
	rows := newRows("p", "q")
	dst := slices("dst")[0]
	var perm reg.GPVirtual
	if values == permuted {
		perm = slices("perm")[0]
	}
	p, q := rows.row, rows.other
	tail := s.first(s.tailLanes())
	end := rows.begin()
	e := GP64()
	MOVLQSX(rows.first, e)
	top, done := label("entry"), label("entries")
	Label(top)
	CMPL(e.As32(), rows.last)
	JGE(LabelRef(done))
	x, j, rem := GP64(), GP64(), integer("f")
	MOVLQSX(Mem{Base: rows.col, Index: e, Scale: 4}, x)
	IMULQ(rows.bytes, x)
	ADDQ(q, x)
	XORQ(j, j)
	acc := make([]reg.VecVirtual, strands)
	for i := range acc {
		acc[i] = s.zero()
	}
	for _, u := range []int{strands, 1} {
		top, done := label("loop"), label("done")
		Label(top)
		CMPQ(rem, U32(uint32(u*s.lanes)))
		JL(LabelRef(done))
		for i := range u {
			l := lanes{isa: s, at: j, off: i * s.bytes()}
			fma(acc[i], l.get(p), l.mem(x))
		}
		ADDQ(U32(uint32(u*s.bytes())), j)
		SUBQ(U32(uint32(u*s.lanes)), rem)
		JMP(LabelRef(top))
		Label(done)
	}
	full := label("full")
	TESTQ(rem, rem)
	JZ(LabelRef(full))
	l := lanes{isa: s, at: j, tail: &tail}
	fma(acc[0], l.get(p), l.get(x))
	Label(full)
	sum := s.fold(s.add(s.add(acc[0], acc[1]), s.add(acc[2], acc[3])), VADDPS)
	at := e
	if values == permuted {
		at = GP64()
		MOVLQSX(Mem{Base: perm, Index: e, Scale: 4}, at)
	}
	VMOVSS(sum, Mem{Base: dst, Index: at, Scale: 4})
	INCQ(e)
	JMP(LabelRef(top))
	Label(done)
	rows.end(end)
	s.end()
}

// tailLanes returns the number of columns in the last, partial vector.
func (s isa) tailLanes() reg.GPVirtual {
	n := integer("f")
	ANDQ(U8(s.lanes-1), n)
	return n
}

// address returns where a parameter lies.
func address(name string) Mem {
	b, err := Param(name).Resolve()
	if err != nil {
		panic(err)
	}
	return b.Addr
}

// rowLoop walks the rows of a sparse structure. What the inner loop can do
// without stays in memory: registers are short.
type rowLoop struct {
	rowPtr, stop reg.GPVirtual // offset of the row, offset at which to stop
	col          reg.GPVirtual
	row          reg.GPVirtual // the dense row of this row
	other        Mem           // the matrix that columns index
	bytes        reg.GPVirtual // size of a row of both
	first, last  Mem           // entries of the row
	entries      Mem           // number of entries
	top          string
}

func newRows(row, other string) *rowLoop {
	p := slices("rowPtr", "col", row)
	b, err := Param(other).Base().Resolve()
	if err != nil {
		panic(err)
	}
	n, err := Param("col").Len().Resolve()
	if err != nil {
		panic(err)
	}
	r := &rowLoop{entries: n.Addr, rowPtr: p[0], col: p[1], row: p[2], other: b.Addr, bytes: integer("f"), stop: GP64()}
	SHLQ(U8(2), r.bytes)
	r.first, r.last = Mem{Base: r.rowPtr}, Mem{Base: r.rowPtr, Disp: 4}
	r0, r1 := integer("r0"), integer("r1")
	LEAQ(Mem{Base: r.rowPtr, Index: r1, Scale: 4}, r.stop)
	LEAQ(Mem{Base: r.rowPtr, Index: r0, Scale: 4}, r.rowPtr)
	IMULQ(r.bytes, r0)
	ADDQ(r0, r.row)
	return r
}

// ahead returns where the row lies that the entry prefetch further on names, or
// that of entry e at the end.
func (r *rowLoop) ahead(e reg.GPVirtual) reg.GPVirtual {
	q := GP64()
	LEAQ(Mem{Base: e, Disp: prefetch}, q)
	CMPQ(q, r.entries)
	CMOVQGE(e, q)
	MOVLQSX(Mem{Base: r.col, Index: q, Scale: 4}, q)
	IMULQ(r.bytes, q)
	ADDQ(r.other, q)
	return q
}

const prefetch = 6

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
