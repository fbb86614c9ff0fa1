package kernels

import (
	"slices"
	"testing"

	"github.com/gsrc-dev/gsrc/rng"
)

// symmetricCSR has each entry in both directions, of some rows none and of some one with itself.
func symmetricCSR(rows int) *CSR {
	key := rng.New(7, "symmetric")
	to := make([][]int32, rows)
	add := func(i, j int) {
		if !slices.Contains(to[i], int32(j)) {
			to[i] = append(to[i], int32(j))
		}
	}
	for e := range 8 * rows {
		i, j := key.Intn(2*uint64(e), rows), key.Intn(2*uint64(e)+1, rows)
		if i%5 == 0 || j%5 == 0 {
			continue
		}
		add(i, j)
		add(j, i)
	}
	s := &CSR{Rows: rows, Cols: rows, RowPtr: []int32{0}}
	for _, cols := range to {
		slices.Sort(cols)
		s.Col = append(s.Col, cols...)
		s.RowPtr = append(s.RowPtr, int32(len(s.Col)))
	}
	return s
}

// Products of rows with those of the same matrix, computed once for both directions, have the bits of all of them.
func TestSDDMMSelf(t *testing.T) {
	eachISA(t, func(t *testing.T) {
		p := NewPool(2)
		defer p.Close()
		oneWay := randomCSR(1, 40, 40)
		for _, c := range []struct {
			s *CSR
			f int
		}{{symmetricCSR(40), 0}, {symmetricCSR(40), 1}, {symmetricCSR(40), 65}, {symmetricCSR(300), 512}, {oneWay, 33}} {
			z := normals(2, c.s.Rows*c.f)
			dst, want := junk(c.s.NNZ()), junk(c.s.NNZ())
			p.SDDMM(want, c.s, z, z, c.f)
			p.SDDMMSelf(dst, c.s, Transpose(c.s), z, c.f)
			sameBits(t, name("rows ", c.s.Rows, " f ", c.f), dst, want)
		}
	})
}
