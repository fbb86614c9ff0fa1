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
		return
	}
	s.micro("gemmWide", 6, 2)
	s.micro("gemmNarrow", 12, 1)
}

func (s isa) micro(name string, mr, nv int) {
	s.begin(name, "(kc int, a []float32, rs, cs int, b, c []float32, ldc, add int)",
		fmt.Sprintf("computes a %d×%d block of a product (see micro).", mr, nv*s.lanes))
	k, rs, cs := integer("kc"), integer("rs"), integer("cs")
	p := slices("a", "b")
	a, b := p[0], p[1]
	SHLQ(U8(2), rs)
	SHLQ(U8(2), cs)
	// Row i of a lies at i·rs = odd·2^e·rs; the odd multiples are kept.
	odd := map[int]reg.GPVirtual{1: rs}
	for m := 3; m < mr; m += 2 {
		odd[m] = GP64()
		LEAQ(Mem{Base: odd[m-2], Index: rs, Scale: 2}, odd[m])
	}
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
	c, ldc, add := slices("c")[0], integer("ldc"), integer("add")
	SHLQ(U8(2), ldc)
	store := label("store")
	TESTQ(add, add)
	JZ(LabelRef(store))
	t := GP64()
	MOVQ(c, t)
	for i := range mr {
		for v := range nv {
			VADDPS(Mem{Base: t, Disp: v * s.bytes()}, acc[i*nv+v], acc[i*nv+v])
		}
		if i < mr-1 {
			ADDQ(ldc, t)
		}
	}
	Label(store)
	for i := range mr {
		for v := range nv {
			VMOVUPS(acc[i*nv+v], Mem{Base: c, Disp: v * s.bytes()})
		}
		if i < mr-1 {
			ADDQ(ldc, c)
		}
	}
	s.end()
}
