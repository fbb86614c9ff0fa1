package kernels

import "slices"

// halfGraph is one of the two directions of each entry of a symmetric structure, and entries of
// nodes with themselves, by row.
type halfGraph struct {
	CSR
	at       []int32 // the place of each in the whole structure
	products []float32
}

// SDDMMSelf is [Pool.SDDMM] of z with itself: dst_e = ⟨z_row(e), z_col(e)⟩, z [in.Rows, f]. out is
// the transpose of in; where they tell that in is symmetric, each product is computed once for
// both of its entries, which are equal to the bit.
func (p *Pool) SDDMMSelf(dst []float32, in, out *CSR, z []float32, f int) {
	if in.Perm != nil || in.First != 0 || in.Rows != in.Cols || !slices.Equal(in.RowPtr, out.RowPtr) || !slices.Equal(in.Col, out.Col) {
		p.SDDMM(dst, in, z, z, f)
		return
	}
	need("SDDMMSelf", "dst", len(dst), len(in.Col))
	h := &p.half
	h.Rows, h.Cols, h.RowPtr, h.Col, h.at = in.Rows, in.Cols, append(h.RowPtr[:0], 0), h.Col[:0], h.at[:0]
	for r := range in.Rows {
		for e := in.RowPtr[r]; e < in.RowPtr[r+1]; e++ {
			if c := in.Col[e]; int(c) <= r {
				h.Col, h.at = append(h.Col, c), append(h.at, e)
			}
		}
		h.RowPtr = append(h.RowPtr, int32(len(h.Col)))
	}
	products := grow(&h.products, len(h.Col))
	if few, ok := p.few(z, in.Rows, len(in.Col), f); ok {
		p.runFew(fewDot, few, sparseJob{dst: products, s: &h.CSR, b: z, f: f})
	} else {
		p.SDDMM(products, &h.CSR, z, z, f)
	}
	for i, e := range h.at {
		dst[e], dst[out.Perm[e]] = products[i], products[i]
	}
}
