// Package sgns holds the two inner loops of skip-gram with negative sampling:
// the scores of one input row with several output rows, and the update of all
// of them. Between the two the caller turns scores into gradient factors.
//
// They exist in Go and, for amd64 processors with AVX2 and FMA, in assembly
// written by the generator in ./asm. The two give the same bits.
package sgns

import "github.com/gsrc-dev/gsrc/runtime/kernels"

//go:generate go run ./asm -out sgns_amd64.s -stubs stub_amd64.go -pkg sgns

// Pad is what a row's length must be a multiple of; columns beyond the
// embedding's width hold zeros, which updates keep.
const Pad = 32

// Kernel is the inner loops of one instruction set. In both, row i of rows is
// rows[i·d : (i+1)·d] with d = len(c), a multiple of [Pad] above 0, and idx
// names len(idx) of them. Indices are the caller's duty: assembly checks
// nothing.
type Kernel struct {
	// Scores sets s[j] = c · row idx[j].
	Scores func(s, c, rows []float32, idx []int32)
	// Update adds Σ_j g[j]·row idx[j] to c and g[j]·c (c as it was) to row
	// idx[j]. An index may occur more than once.
	Update func(g, c, rows []float32, idx []int32)
}

// Go is the portable kernel.
var Go = Kernel{scoresGo, updateGo}

// For returns the kernel to use beside kernels of the named instruction set, as
// the kernels package's ISA names it ("go" for none).
func For(isa string) Kernel {
	if isa == "go" {
		return Go
	}
	return native
}

// Sums run over Pad lanes, whose totals are added as the assembly does.
func scoresGo(s, c, rows []float32, idx []int32) {
	d := len(c)
	for j, i := range idx {
		row := rows[int(i)*d:][:d]
		var sum [Pad]float32
		for lo := 0; lo < d; lo += Pad {
			x, y := c[lo:lo+Pad], row[lo:lo+Pad]
			for l := range sum {
				sum[l] = kernels.FMA(x[l], y[l], sum[l])
			}
		}
		var eight [8]float32
		for l := range eight {
			eight[l] = (sum[l] + sum[8+l]) + (sum[16+l] + sum[24+l])
		}
		var four [4]float32
		for l := range four {
			four[l] = eight[l] + eight[4+l]
		}
		s[j] = (four[0] + four[1]) + (four[2] + four[3])
	}
}

func updateGo(g, c, rows []float32, idx []int32) {
	d := len(c)
	var old, acc [Pad]float32
	for lo := 0; lo < d; lo += Pad {
		part := c[lo : lo+Pad]
		copy(old[:], part)
		copy(acc[:], part)
		for j, i := range idx {
			row := rows[int(i)*d+lo:][:Pad]
			gj := g[j]
			for k := range old {
				x := row[k]
				acc[k] = kernels.FMA(gj, x, acc[k])
				row[k] = kernels.FMA(gj, old[k], x)
			}
		}
		copy(part, acc[:])
	}
}
