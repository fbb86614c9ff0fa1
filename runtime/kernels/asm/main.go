// Command asm writes the assembly of package kernels with avo. One source gives
// both instruction sets: every routine is written over vectors of [isa.lanes]
// float32 and emitted for AVX2 with FMA (8 lanes) and for AVX-512F (16 lanes).
//
//	go run ./asm -group elem -out elem_amd64.s -stubs elem_amd64.go -pkg kernels
//
// (see gen.go in package kernels for all groups). A routine emitted for AVX2
// must not need more than 16 vector registers at a time: the registers above
// exist in AVX-512 only (a test of package kernels looks for them).
//
// Where no processor with AVX-512 is at hand, an emulator that has it (Bochs with
// the processor model corei7_skylake_x) runs the tests of package kernels.
package main

import (
	"flag"
	"fmt"
	"os"
	"strings"

	. "github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/ir"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/pass"
	"github.com/mmcloughlin/avo/reg"
)

func main() {
	group := flag.String("group", "", "routines to write: elem, reduce, pair, gemm, sparse, random, train, nearest or attention")
	flag.Parse()
	emit, ok := map[string]func(isa){
		"elem": elem, "reduce": reduce, "pair": pair, "gemm": gemm, "sparse": sparse, "random": random, "train": train, "nearest": nearest, "attention": attention,
	}[*group]
	if !ok {
		fmt.Fprintf(os.Stderr, "asm: unknown group %q\n", *group)
		os.Exit(2)
	}
	ConstraintExpr("amd64")
	if *group == "elem" {
		pause()
	}
	for _, s := range isas {
		emit(s)
	}
	pass.Compile = pass.Concat(pass.InstructionPass(broadcastConstant), pass.Compile)
	Generate()
}

// broadcastConstant has an instruction over 512 bits read one lane of a constant: the linker aligns
// data to 32 bytes, so that reading all lanes may cross a cache line, which takes half as long again.
func broadcastConstant(i *ir.Instruction) error {
	constant, wide := false, false
	for _, o := range i.Operands {
		switch o := o.(type) {
		case operand.Mem:
			constant = strings.HasPrefix(o.Symbol.Name, constants)
		case reg.Register:
			wide = wide || o.Size() == 64
		}
	}
	switch {
	case !constant || !wide:
	case i.Opcode == "VMOVUPS":
		i.Opcode = "VBROADCASTSS"
	default:
		i.Suffixes = append([]string{"BCST"}, i.Suffixes...)
	}
	return nil
}

func pause() {
	TEXT("pause", NOSPLIT, "func()")
	Doc("pause tells the processor that the caller spins.")
	Pragma("noescape")
	PAUSE()
	RET()
}
