package cuda

import "github.com/gsrc-dev/gsrc/runtime"

var graphKernels = map[string]kernel{
	"spmm":       func(q *steps, k *runtime.Call) { sparseProduct(q, k, nil) },
	"spmm_fused": func(q *steps, k *runtime.Call) { fused(q, k, 4, sparseProduct) },
	"sddmm":      sddmm,
	"spmax":      spmax,
	"spmax_grad": spmaxGrad,

	"edge_gather":  edgeGather,
	"edge_sum":     edgeSum,
	"edge_uniform": edgeUniform,
	"edge_ones":    func(q *steps, k *runtime.Call) { fillWith(q, k.Out[0], 1) },

	"edge_softmax": func(q *steps, k *runtime.Call) {
		s, n := k.In[0].Device.In, k.In[1].RowWidth()
		q.every("gsrc_edge_softmax", s.Rows*n, at(k.Out[0]), at(k.Out[1]), Ptr(s.RowPtr), at(k.In[1]), at(k.In[2]), at(k.In[3]), Int(s.Rows), Int(n))
	},
	"edge_softmax_grad": edgeSoftmaxGrad,
}

// sparseProduct multiplies the graph's matrix, operands 0 to 2, by operand 3.
func sparseProduct(q *steps, k *runtime.Call, e *epilogue) {
	g, h := k.In[0], k.In[3]
	s := g.Device.In
	if k.Op.Bool("transpose") {
		s = g.Device.Out
	}
	heads := 1
	for _, v := range k.In[1:3] {
		if v != nil {
			heads = v.RowWidth()
		}
	}
	aggregate(q, k.Out[0], s, at(k.In[1]), k.In[2], at(h), heads, e)
}

// aggregate computes the rows y_i = Σ_e vals_e·h[col_e] + diag_i·h_i and their
// epilogue.
func aggregate(q *steps, y *runtime.Buffer, s *runtime.DeviceCSR, vals uint64, diag *runtime.Buffer, h uint64, heads int, e *epilogue) {
	rows, f := y.Dims[0], y.Dims[1]
	if rows*f == 0 {
		return
	}
	if e == nil {
		e = &epilogue{}
	}
	group := 1 // threads that share a row, of four columns each
	for group < 32 && 4*group < f {
		group *= 2
	}
	diagRows := 0
	if diag != nil {
		diagRows = diag.Dims[0]
	}
	split := 1 // and its entries, where a device has threads to spare
	for group*split < 32 && 2*split*rows <= s.NNZ && rows*group*split < 512*processors {
		split *= 2
	}
	width := threads // smaller blocks where a device would have processors without one
	for width > 64 && rows*group*split/width < 2*processors {
		width /= 2
	}
	most := max(32, 4*s.NNZ/rows)
	q.launch("gsrc_spmm", blocks(rows*group*split, width), [3]uint32{uint32(width), 1, 1}, 0, at(y), Ptr(s.RowPtr), Ptr(s.Col), Ptr(s.Perm), vals, at(diag), h, at(e.add), at(e.bias),
		Int(rows), Int(diagRows), Int(f), Int(heads), Int(e.act), Int(group), Int(split), Int(most))
}

func sddmm(q *steps, k *runtime.Call) {
	s, p := k.In[0].Device.In, k.In[1]
	q.every("gsrc_sddmm", 8*s.NNZ, at(k.Out[0]), Ptr(s.Row), Ptr(s.Col), at(p), at(k.In[2]), Int(s.NNZ), Int(p.Dims[1]), Int(max(1, k.Op.Int("heads"))))
}

func spmax(q *steps, k *runtime.Call) {
	s, h := k.In[0].Device.In, k.In[1]
	f := h.Dims[1]
	q.every("gsrc_spmax", s.Rows*f, at(k.Out[0]), Ptr(s.RowPtr), Ptr(s.Col), at(h), Int(s.Rows), Int(f))
}

func spmaxGrad(q *steps, k *runtime.Call) {
	in, out := k.In[0].Device.In, k.In[0].Device.Out
	f := k.In[1].Dims[1]
	where := Ptr(k.ScratchAt())
	q.every("gsrc_spmax_first", in.Rows*f, where, Ptr(in.RowPtr), Ptr(in.Col), at(k.In[1]), at(k.In[2]), Int(in.Rows), Int(f))
	q.every("gsrc_spmax_grad", out.Rows*f, at(k.Out[0]), Ptr(out.RowPtr), Ptr(out.Col), Ptr(out.Perm), where, at(k.In[3]), Int(out.Rows), Int(f))
}

func spmaxWorkspace(k *runtime.Call) int { return 4 * k.In[2].Dims[0] * k.In[2].Dims[1] }

func edgeGather(q *steps, k *runtime.Call) {
	s, v := k.In[0].Device.In, k.In[1]
	node := s.Row
	if k.Op.Str("side") == "src" {
		node = s.Col
	}
	f := v.RowWidth()
	q.every("gsrc_edge_gather", s.NNZ*f, at(k.Out[0]), Ptr(node), at(v), Int(s.NNZ), Int(f))
}

func edgeSum(q *steps, k *runtime.Call) {
	s, w := k.In[0].Device.In, k.In[1]
	if k.Op.Str("side") == "src" {
		s = k.In[0].Device.Out
	}
	f := w.RowWidth()
	q.every("gsrc_edge_sum", s.Rows*f, at(k.Out[0]), Ptr(s.RowPtr), Ptr(s.Perm), at(w), Int(s.Rows), Int(f))
}

func edgeUniform(q *steps, k *runtime.Call) {
	s := k.In[0].Device.In
	q.every("gsrc_edge_uniform", s.NNZ, at(k.Out[0]), Ptr(s.Row), Ptr(s.Col), Int(s.NNZ), Word(uint64(k.Stream)), Ptr(q.Step()))
}

func edgeSoftmaxGrad(q *steps, k *runtime.Call) {
	s, n := k.In[0].Device.In, k.In[1].RowWidth()
	dw := wanted(k, 2)
	count := s.Rows * n
	if dw != 0 {
		count = s.Rows
		if n == 0 {
			fillWith(q, k.Out[2], 0)
			return
		}
	}
	q.every("gsrc_edge_softmax_grad", count, at(k.Out[0]), at(k.Out[1]), dw, Ptr(s.RowPtr), at(k.In[1]), at(k.In[2]), at(k.In[3]),
		at(k.In[4]), at(k.In[5]), at(k.In[6]), at(k.In[7]), Int(s.Rows), Int(n))
}
