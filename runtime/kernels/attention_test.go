package kernels

import (
	"math"
	"testing"
)

// refEdgeSoftmax computes the softmax and, from the cotangents, its gradient, in
// float64.
func refEdgeSoftmax(c *CSR, e, s, w, da, dself []float32, heads int) (a, self, de, ds, dw []float64) {
	a, self = make([]float64, len(e)), make([]float64, len(s))
	de, ds, dw = make([]float64, len(e)), make([]float64, len(s)), make([]float64, len(c.Col))
	for r := range c.Rows {
		for h := range heads {
			top := float64(s[r*heads+h])
			for k := c.RowPtr[r]; k < c.RowPtr[r+1]; k++ {
				if w == nil || w[k] != 0 {
					top = math.Max(top, float64(e[int(k)*heads+h]))
				}
			}
			own := math.Exp(float64(s[r*heads+h]) - top)
			sum, mean := own, own*float64(dself[r*heads+h])
			bare := func(k int32) float64 { return math.Exp(math.Min(float64(e[int(k)*heads+h])-top, farthest)) }
			weight := func(k int32) float64 {
				if w == nil {
					return 1
				}
				return float64(w[k])
			}
			for k := c.RowPtr[r]; k < c.RowPtr[r+1]; k++ {
				sum += weight(k) * bare(k)
				mean += weight(k) * bare(k) * float64(da[int(k)*heads+h])
			}
			mean /= sum
			self[r*heads+h] = own / sum
			ds[r*heads+h] = own / sum * (float64(dself[r*heads+h]) - mean)
			for k := c.RowPtr[r]; k < c.RowPtr[r+1]; k++ {
				at := int(k)*heads + h
				a[at] = weight(k) * bare(k) / sum
				de[at] = a[at] * (float64(da[at]) - mean)
				dw[k] += bare(k) / sum * (float64(da[at]) - mean)
			}
		}
	}
	return a, self, de, ds, dw
}

func TestEdgeSoftmax(t *testing.T) {
	hub := &CSR{Rows: 3, Cols: 5000, RowPtr: []int32{0, 0, 5000, 5001}} // no entry, a hub, one entry
	for i := range int32(5001) {
		hub.Col = append(hub.Col, i%5000)
	}
	eachISA(t, func(t *testing.T) {
		p := NewPool(3)
		defer p.Close()
		structures := []*CSR{hub}
		for _, shape := range csrShapes {
			structures = append(structures, randomCSR(1, shape[0], shape[1]))
		}
		for _, c := range structures {
			for _, heads := range []int{1, 3, 8, 17} {
				for _, scale := range []float32{1, 300} {
					e, s := normals(2, c.NNZ()*heads), normals(3, c.Rows*heads)
					p.Binary(Mul, e, e, []float32{scale}, 1, len(e), Full, Scalar)
					p.Binary(Mul, s, s, []float32{scale}, 1, len(s), Full, Scalar)
					da, dself := normals(4, len(e)), normals(5, len(s))
					for _, kind := range []string{"ones", "zeros and ones", "shares"} {
						var w []float32
						if kind != "ones" {
							w = make([]float32, c.NNZ())
							for i, v := range normals(6, c.NNZ()) {
								if v > 0 {
									w[i] = 1
									if kind == "shares" {
										w[i] = v
									}
								}
							}
						}
						what := name(c.Rows, " rows, ", heads, " heads, scores of ", scale, ", weights ", kind)
						wantA, wantSelf, wantE, wantS, wantW := refEdgeSoftmax(c, e, s, w, da, dself, heads)
						a, self := junk(len(e)), junk(len(s))
						p.EdgeSoftmax(a, self, c, e, s, w, heads)
						within(t, what+": a", a, wantA, 1e-6, 2e-5)
						within(t, what+": self", self, wantSelf, 1e-6, 2e-5)
						// Without and with the gradient by w, which is another loop.
						for _, dw := range [][]float32{nil, junk(c.NNZ())} {
							de, ds := junk(len(e)), junk(len(s))
							p.EdgeSoftmaxGrad(de, ds, dw, c, e, s, w, a, self, da, dself, heads)
							within(t, what+": de", de, wantE, 2e-5, 1e-4)
							within(t, what+": ds", ds, wantS, 2e-5, 1e-4)
							if dw != nil {
								within(t, what+": dw", dw, wantW, 1e-4, 1e-3)
							}
						}
					}
				}
			}
		}
	})
}

// Rows of nothing have shares of 0, and what is not there is not seen.
func TestEdgeSoftmaxOfNothing(t *testing.T) {
	eachISA(t, func(t *testing.T) {
		p := NewPool(1)
		defer p.Close()
		inf := float32(math.Inf(-1))
		c := &CSR{Rows: 3, Cols: 3, RowPtr: []int32{0, 2, 3, 3}, Col: []int32{1, 2, 0}}
		a, self := junk(3), junk(3)
		p.EdgeSoftmax(a, self, c, []float32{2, 2, 5}, []float32{inf, inf, inf}, []float32{1, 3, 0}, 1)
		within(t, "a", a, []float64{0.25, 0.75, 0}, 1e-6, 0)
		within(t, "self", self, []float64{0, 0, 0}, 0, 0)
		p.EdgeSoftmax(a, self, c, []float32{inf, inf, inf}, []float32{inf, 1, 2}, nil, 1)
		within(t, "a without scores", a, []float64{0, 0, 0}, 0, 0)
		within(t, "self without scores", self, []float64{0, 1, 1}, 1e-6, 0)
	})
}

func TestHeads(t *testing.T) {
	eachISA(t, func(t *testing.T) {
		p := NewPool(2)
		defer p.Close()
		for _, shape := range csrShapes {
			s := randomCSR(1, shape[0], shape[1])
			tr := Transpose(s)
			for _, heads := range []int{2, 3, 8} {
				for _, width := range []int{0, 1, 5, 8, 16, 33} {
					f := heads * width
					h, g := normals(2, s.Cols*f), normals(3, s.Rows*f)
					vals, diag := normals(4, s.NNZ()*heads), normals(5, min(s.Rows, s.Cols)*heads)
					forth, back, dots := make([]float64, s.Rows*f), make([]float64, s.Cols*f), make([]float64, s.NNZ()*heads)
					for i, v := range diag {
						for c := range width {
							at := i*width + c
							forth[at] += float64(v) * float64(h[at])
						}
					}
					for r := range s.Rows {
						for e := int(s.RowPtr[r]); e < int(s.RowPtr[r+1]); e++ {
							for c := range f {
								v, to, from := e*heads+c/width, r*f+c, int(s.Col[e])*f+c
								forth[to] += float64(vals[v]) * float64(h[from])
								back[from] += float64(vals[v]) * float64(g[to])
								dots[v] += float64(g[to]) * float64(h[from])
							}
						}
					}
					what := name("shape ", shape, ", ", heads, " heads of ", width)
					dst := junk(s.Rows * f)
					p.SpMMHeads(dst, s, vals, diag, h, f, heads, Epilogue{})
					within(t, what+": product", dst, forth, 1e-5, 1e-5)
					dst = junk(s.Cols * f)
					p.SpMMHeads(dst, tr, vals, nil, g, f, heads, Epilogue{})
					within(t, what+": transposed product", dst, back, 1e-5, 1e-5)
					if width == 0 {
						continue
					}
					dst = junk(s.NNZ() * heads)
					p.SDDMMHeads(dst, s, g, h, f, heads)
					within(t, what+": inner products", dst, dots, 2e-5, 1e-5)
					dst = junk(s.NNZ() * heads)
					p.SDDMMHeads(dst, tr, h, g, f, heads)
					within(t, what+": transposed inner products", dst, dots, 2e-5, 1e-5)
				}
			}
		}
	})
}
