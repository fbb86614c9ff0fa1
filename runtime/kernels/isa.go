package kernels

import (
	"fmt"
	"os"
	"strings"
)

// kernelSet is the inner loops of one instruction set. Slices of one call have
// the same length unless said otherwise.
type kernelSet struct {
	name  string
	lanes int // float32 in a vector

	unary [unaryCount]func(dst, x []float32, c float32)
	vv    [binaryCount]func(dst, a, b []float32)
	vs    [binaryCount]func(dst, a []float32, b float32)
	sv    [binaryCount]func(dst []float32, a float32, b []float32)

	axpby     func(dst, x []float32, a, b float32) // dst = a·x + b·dst
	bias      func(dst, bias []float32, act int)   // dst = act(dst + bias)
	act       func(dst []float32, act int)         // dst = act(dst)
	reluGrad  func(dst, y, dy []float32)
	leakyGrad func(dst, x, dy []float32, slope float32)
	eluGrad   func(dst, y, dy []float32)

	sum    func(x []float32) float32
	sumAbs func(x []float32) float32
	max    func(x []float32) float32
	min    func(x []float32) float32
	dot    func(a, b []float32) float32
	sqDist func(a, b []float32) float32
	sumExp func(x []float32, shift float32) float32      // Σ exp(x − shift)
	expTo  func(dst, x []float32, shift float32) float32 // dst = exp(x − shift), Σ dst
	accExp func(s, x, m []float32)                       // s += exp(x − m)
	adam   func(w, g, m, v []float32, c *adamConst)      // one sweep

	// Tiles of pairwise products: see pairWeightsGo and pairNearestGo.
	pairWeights func(dst, src []float32, ld, h int, row, qn, gamma, b, rowAcc, colAcc, sq []float32, mask []uint32, at, step int, scale, sq2 float32)
	pairNearest func(src []float32, ld, h int, row, qn, rowMin, colMin []float32, mask []uint32, at, step int)

	// Sparse: rows r0 ≤ r < r1 of the structure.
	spmm spmmFunc
	// scatter adds vals_e·h to row col_e of dst.
	scatter func(dst []float32, col []int32, vals, h []float32, f int)
	sddmm   sddmmFunc
	// The same for one block of f columns of rows ld wide, values heads apart.
	spmmHead  spmmHeadFunc
	sddmmHead sddmmHeadFunc
	// The softmax over the entries of rows and its gradient: see edgeSoftmaxGo.
	edgeSoftmax     edgeSoftmaxFunc
	edgeSoftmaxGrad func(de, ds, a, self, da, dself []float32, rowPtr []int32, heads, r0, r1 int)

	// Where x ≥ least or x ≥ cols: the numbers of the elements, and how many.
	reach func(hits []uint64, x, cols []float32, least float32) int
	// Where x is not 0: the bits of the elements above their numbers, and how many.
	entries func(hits []uint64, x []float32) int

	// Matrix product micro-kernels, wide and narrow, and the packing of w columns
	// (at most lanes, or twice lanes) or h rows (at most packRowsMax); see gemm.go.
	wide, narrow micro
	packCols     func(out, in []float32, kc, ld, w, step int)
	packRows     func(out, in []float32, kc, ld, h, step int)
	fetchRows    func(in []float32, n, ld, w int) // hint that w floats of n rows come next

	// Products of x with the rows of codes that rows names, as wide as x, which is a multiple of codeUnit; those
	// further on by ahead are asked for.
	codeDots func(dst, rows []int32, x []int16, codes []int8, ahead int)

	// Random fills of whole blocks of four elements: dst[0] is element 4·block
	// and len(dst) a multiple of four.
	uniform func(dst []float32, key, block uint64)
	normal  func(dst []float32, key, block uint64)
	dropout func(dst, x []float32, key, block uint64, rate, scale float32)
	// Single draws, len(idx) a multiple of scatterUnit: element idx of the uniform
	// stream; the number of a pair, the smaller index in the low half of idx.
	uniformAt   func(dst []float32, idx []uint64, key uint64)
	uniformPair func(dst []float32, idx []uint64, key uint64)
}

type (
	spmmFunc        func(dst []float32, rowPtr, col, perm []int32, vals, diag, h []float32, f, r0, r1, add, ahead int)
	spmmHeadFunc    func(dst []float32, rowPtr, col, perm []int32, vals, diag, h []float32, f, ld, heads, r0, r1, add, ahead int)
	sddmmFunc       func(dst []float32, rowPtr, col, perm []int32, p, q []float32, f, r0, r1, ahead int)
	sddmmHeadFunc   func(dst []float32, rowPtr, col, perm []int32, p, q []float32, f, ld, heads, r0, r1, ahead int)
	edgeSoftmaxFunc func(a, self, e, s, w []float32, rowPtr []int32, heads, r0, r1 int)
)

// sets lists the instruction sets this processor has, the best first.
var sets = append(nativeSets(), &goSet)

// ks is the set in use.
var ks = sets[0]

func init() {
	name := os.Getenv("GSRC_ISA")
	if name == "" {
		return
	}
	if err := SetISA(name); err != nil {
		fmt.Fprintln(os.Stderr, "GSRC_ISA ignored:", err)
	}
}

// ISA returns the name of the instruction set in use: avx512, avx2 or go.
func ISA() string { return ks.name }

// ISAs returns the names of the instruction sets this processor has, the best
// first. The last is always go.
func ISAs() []string {
	names := make([]string, len(sets))
	for i, s := range sets {
		names[i] = s.name
	}
	return names
}

// SetISA chooses the instruction set of every pool: avx512, avx2 or go. It
// returns an error when the processor lacks it. Not to be called while a kernel runs.
func SetISA(name string) error {
	for _, s := range sets {
		if s.name == name {
			ks = s
			return nil
		}
	}
	return fmt.Errorf("instruction set %q is unknown or missing on this processor (available: %s)", name, strings.Join(ISAs(), ", "))
}
