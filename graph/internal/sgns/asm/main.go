// Command asm writes the AVX2 inner loops of package sgns.
package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// lanes is the number of registers of eight values that one turn of a loop
// over columns handles: 32 columns, what rows are padded to.
const lanes = 4

func main() {
	ConstraintExpr("amd64")
	scores()
	update()
	Generate()
}

// rowAddress sets to = rows + idx[j]·stride, for a stride in bytes.
func rowAddress(to, rows, idx, j, stride reg.Register) {
	MOVLQSX(Mem{Base: idx, Index: j, Scale: 4}, to)
	IMULQ(stride, to)
	ADDQ(rows, to)
}

func scores() {
	TEXT("scoresAVX2", NOSPLIT, "func(s, c, rows *float32, idx *int32, m, d int)")
	Doc("scoresAVX2 sets s[j] = c · row idx[j] for j < m. d is a multiple of 32, above 0.")
	s, c, rows, idx := Load(Param("s"), GP64()), Load(Param("c"), GP64()), Load(Param("rows"), GP64()), Load(Param("idx"), GP64())
	m, stride := Load(Param("m"), GP64()), Load(Param("d"), GP64())
	SHLQ(Imm(2), stride) // bytes
	j, row, off := GP64(), GP64(), GP64()
	XORQ(j, j)
	Label("scoreRow")
	CMPQ(j, m)
	JGE(LabelRef("scoreEnd"))
	rowAddress(row, rows, idx, j, stride)
	XORQ(off, off)
	var acc [lanes]reg.VecVirtual
	for i := range acc {
		acc[i] = YMM()
		VXORPS(acc[i], acc[i], acc[i])
	}
	Label("scoreColumns")
	for i := range acc {
		x := YMM()
		VMOVUPS(Mem{Base: row, Index: off, Scale: 1, Disp: 32 * i}, x)
		VFMADD231PS(Mem{Base: c, Index: off, Scale: 1, Disp: 32 * i}, x, acc[i])
	}
	ADDQ(Imm(32*lanes), off)
	CMPQ(off, stride)
	JLT(LabelRef("scoreColumns"))
	VADDPS(acc[1], acc[0], acc[0])
	VADDPS(acc[3], acc[2], acc[2])
	VADDPS(acc[2], acc[0], acc[0])
	hi := XMM()
	VEXTRACTF128(Imm(1), acc[0], hi)
	sum := acc[0].AsX()
	VADDPS(hi, sum, sum)
	VHADDPS(sum, sum, sum)
	VHADDPS(sum, sum, sum)
	VMOVSS(sum, Mem{Base: s, Index: j, Scale: 4})
	INCQ(j)
	JMP(LabelRef("scoreRow"))
	Label("scoreEnd")
	VZEROUPPER()
	RET()
}

func update() {
	TEXT("updateAVX2", NOSPLIT, "func(factor, c, rows *float32, idx *int32, m, d int)")
	Doc("updateAVX2 adds Σ factor[j]·row idx[j] to c and factor[j]·c, c as it was, to row idx[j], for j < m.",
		"d is a multiple of 32, above 0.")
	g, c, rows, idx := Load(Param("factor"), GP64()), Load(Param("c"), GP64()), Load(Param("rows"), GP64()), Load(Param("idx"), GP64())
	m, stride := Load(Param("m"), GP64()), Load(Param("d"), GP64())
	SHLQ(Imm(2), stride)
	j, row, off := GP64(), GP64(), GP64()
	XORQ(off, off)
	var old, acc [lanes]reg.VecVirtual
	for i := range acc {
		old[i], acc[i] = YMM(), YMM()
	}
	Label("updateColumns")
	for i := range acc {
		VMOVUPS(Mem{Base: c, Index: off, Scale: 1, Disp: 32 * i}, old[i])
		VMOVAPS(old[i], acc[i])
	}
	XORQ(j, j)
	Label("updateRow")
	CMPQ(j, m)
	JGE(LabelRef("updateStore"))
	rowAddress(row, rows, idx, j, stride)
	gj := YMM()
	VBROADCASTSS(Mem{Base: g, Index: j, Scale: 4}, gj)
	for i := range acc {
		at := Mem{Base: row, Index: off, Scale: 1, Disp: 32 * i}
		x := YMM()
		VMOVUPS(at, x)
		VFMADD231PS(x, gj, acc[i])
		VFMADD231PS(old[i], gj, x)
		VMOVUPS(x, at)
	}
	INCQ(j)
	JMP(LabelRef("updateRow"))
	Label("updateStore")
	for i := range acc {
		VMOVUPS(acc[i], Mem{Base: c, Index: off, Scale: 1, Disp: 32 * i})
	}
	ADDQ(Imm(32*lanes), off)
	CMPQ(off, stride)
	JLT(LabelRef("updateColumns"))
	VZEROUPPER()
	RET()
}
