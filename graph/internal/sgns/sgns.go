// Package sgns holds the two inner loops of skip-gram with negative sampling:
// the scores of one input row with several output rows, and the update of all
// of them. Between the two the caller turns scores into gradient factors.
//
// They exist in Go and, for amd64 processors with AVX2 and FMA, in assembly
// written by the generator in ./asm. The two differ in the last bits.
package sgns

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

func scoresGo(s, c, rows []float32, idx []int32) {
	d := len(c)
	for j, i := range idx {
		row := rows[int(i)*d:][:d]
		var a0, a1, a2, a3 float32
		for k := 0; k+3 < d; k += 4 {
			a0 += c[k] * row[k]
			a1 += c[k+1] * row[k+1]
			a2 += c[k+2] * row[k+2]
			a3 += c[k+3] * row[k+3]
		}
		s[j] = (a0 + a1) + (a2 + a3)
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
				acc[k] += gj * x
				row[k] = x + gj*old[k]
			}
		}
		copy(part, acc[:])
	}
}
