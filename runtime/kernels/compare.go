package kernels

import (
	"fmt"
	"math"
)

// CompareOp is a comparison of two operands.
type CompareOp int

// The comparisons. Each is false where an operand is NaN.
const (
	CompareGreater      CompareOp = iota // a > b
	CompareGreaterEqual                  // a ≥ b
	CompareLess                          // a < b
)

// Compare computes dst[i,j] = 1 where a[i,j] op b[i,j] holds, else 0, for a
// [rows, cols] result whose operands are broadcast by their modes as in
// [Pool.Binary]. dst may be an operand of mode Full.
func (p *Pool) Compare(op CompareOp, dst, a, b []float32, rows, cols int, modeA, modeB BroadcastMode) {
	if op < CompareGreater || op > CompareLess {
		panic(fmt.Sprintf("kernels: Compare: unknown comparison %d", int(op)))
	}
	p.runElem("Compare", &elemJob{kind: elemCompare, op: int(op), dst: dst, a: a, b: b, modeA: modeA, modeB: modeB}, rows, cols)
}

// compareTo compares elements at the strides sa and sb. The bits of 1 are made
// of the outcome, which compiles to no jump: outcomes are often random.
func compareTo(op CompareOp, dst, a, b []float32, sa, sb int) {
	const one = 0x3f800000
	if op == CompareLess {
		op, a, b, sa, sb = CompareGreater, b, a, sb, sa
	}
	if op == CompareGreater {
		for i := range dst {
			var hold uint32
			if a[i*sa] > b[i*sb] {
				hold = 1
			}
			dst[i] = math.Float32frombits(hold * one)
		}
		return
	}
	for i := range dst {
		var hold uint32
		if a[i*sa] >= b[i*sb] {
			hold = 1
		}
		dst[i] = math.Float32frombits(hold * one)
	}
}
