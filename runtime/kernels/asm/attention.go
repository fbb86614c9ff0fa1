package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// attention emits the softmax over the entries of each row, a lane a head.
func attention(s isa) {
	s.edgeSoftmax("edgeSoftmaxOnes", false)
	s.edgeSoftmax("edgeSoftmaxVals", true)
	s.edgeSoftmaxGrad()
}

// rowWalk emits a loop over the rows r0 to r1 for every vector of heads. body gets
// the lanes at a row, the lanes at an entry, and a function that emits a loop over
// the row's entries; index is the entry within it.
func (s isa) rowWalk(body func(row, entry lanes, entries func(func(index reg.GPVirtual)))) {
	stride := integer("heads")
	SHLQ(U8(2), stride)
	s.each(integer("heads"), 1, func(block lanes, _ int) {
		ptr := slices("rowPtr")[0]
		at, off, index, stop := integer("r0"), GP64(), GP64(), integer("r1")
		LEAQ(Mem{Base: ptr, Index: stop, Scale: 4}, stop)
		LEAQ(Mem{Base: ptr, Index: at, Scale: 4}, ptr)
		IMULQ(stride, at)
		ADDQ(block.at, at)
		top, end := label("row"), label("rows")
		Label(top)
		CMPQ(ptr, stop)
		JGE(LabelRef(end))
		body(lanes{isa: s, at: at, tail: block.tail}, lanes{isa: s, at: off, tail: block.tail}, func(f func(reg.GPVirtual)) {
			next, done := label("entry"), label("entries")
			MOVLQSX(Mem{Base: ptr}, index)
			MOVQ(index, off)
			IMULQ(stride, off)
			ADDQ(block.at, off)
			Label(next)
			CMPL(index.As32(), Mem{Base: ptr, Disp: 4})
			JGE(LabelRef(done))
			f(index)
			INCQ(index)
			ADDQ(stride, off)
			JMP(LabelRef(next))
			Label(done)
		})
		ADDQ(U8(4), ptr)
		ADDQ(stride, at)
		JMP(LabelRef(top))
		Label(end)
	})
	s.end()
}

func (s isa) edgeSoftmax(name string, weighted bool) {
	s.begin(name, "(a, self, e, s, w []float32, rowPtr []int32, heads, r0, r1 int)", "computes rows r0 to r1 of a softmax (see edgeSoftmaxGo).")
	p := slices("a", "self", "e", "s")
	a, self, score, own := p[0], p[1], p[2], p[3]
	var w reg.GPVirtual
	if weighted {
		w = slices("w")[0]
	}
	s.rowWalk(func(row, entry lanes, entries func(func(reg.GPVirtual))) {
		// The lowest number stands in for −∞, so that nothing is subtracted from itself.
		top := s.hi(row.get(own), bits(0xff7fffff))
		entries(func(index reg.GPVirtual) {
			skip := label("weightless")
			if weighted {
				t := GP32()
				MOVL(Mem{Base: w, Index: index, Scale: 4}, t)
				ADDL(t, t) // without the sign
				JZ(LabelRef(skip))
			}
			VMAXPS(entry.get(score), top, top)
			Label(skip)
		})
		mine := s.exp(s.sub(row.get(own), top))
		sum := s.load(mine)
		entries(func(index reg.GPVirtual) {
			x := s.exp(s.lo(s.sub(entry.get(score), top), num(0)))
			entry.put(x, a)
			if weighted {
				fma(sum, s.broadcast(Mem{Base: w, Index: index, Scale: 4}), x)
			} else {
				VADDPS(x, sum, sum)
			}
		})
		scale := s.div(s.load(num(1)), s.hi(sum, bits(0x00800000)))
		row.put(s.mul(mine, scale), self)
		entries(func(index reg.GPVirtual) {
			x := s.mul(entry.get(a), scale)
			if weighted {
				VMULPS(s.broadcast(Mem{Base: w, Index: index, Scale: 4}), x, x)
			}
			entry.put(x, a)
		})
	})
}

func (s isa) edgeSoftmaxGrad() {
	s.begin("edgeSoftmaxGrad", "(de, ds, a, self, da, dself []float32, rowPtr []int32, heads, r0, r1 int)", "computes rows r0 to r1 of a softmax's gradient (see edgeSoftmaxGradGo).")
	p := slices("de", "ds", "a", "self", "da", "dself")
	s.rowWalk(func(row, entry lanes, entries func(func(reg.GPVirtual))) {
		mean := s.mul(row.get(p[3]), row.get(p[5]))
		entries(func(reg.GPVirtual) { fma(mean, entry.get(p[2]), entry.get(p[4])) })
		row.put(s.mul(row.get(p[3]), s.sub(row.get(p[5]), mean)), p[1])
		entries(func(reg.GPVirtual) { entry.put(s.mul(entry.get(p[2]), s.sub(entry.get(p[4]), mean)), p[0]) })
	})
}
