package runtime

import (
	"slices"

	"github.com/gsrc-dev/gsrc/runtime/kernels"
)

var graphKernels = map[string]Kernel{
	"spmm":        spmm,
	"sddmm":       sddmm,
	"spmax":       spmax,
	"spmax_grad":  spmaxGrad,
	"edge_gather": edgeGather,
	"edge_sum":    edgeSum,
	"edge_kth":    edgeKth,
	"edge_softmax": func(k *Call) error {
		k.Pool.EdgeSoftmax(k.Out[0].F32, k.Out[1].F32, k.In[0].Graph.In, k.In[1].F32, k.In[2].F32, floats(k.In[3]), heads(k.In[1]))
		return nil
	},
	"edge_softmax_grad": func(k *Call) error {
		dw := k.Out[2].F32
		if k.unread != nil && k.unread[2] {
			dw = nil
		}
		k.Pool.EdgeSoftmaxGrad(k.Out[0].F32, k.Out[1].F32, dw, k.In[0].Graph.In, k.In[1].F32, k.In[2].F32, floats(k.In[3]),
			k.In[4].F32, k.In[5].F32, floats(k.In[6]), floats(k.In[7]), heads(k.In[1]))
		return nil
	},
	"sample_block": func(*Call) error { return nil }, // found before the run: see shapeOp
	"edge_ones":    func(k *Call) error { k.Pool.Fill(k.Out[0].F32, 1); return nil },
	"edge_pairs": func(k *Call) error {
		g, y := k.In[0].Graph, k.Out[0]
		for i := range g.N {
			for e := g.In.RowPtr[i]; e < g.In.RowPtr[i+1]; e++ {
				y.I64[e], y.I64[g.E+int(e)] = int64(i), int64(g.In.Col[e])
			}
		}
		return nil
	},
	"common_neighbors": func(k *Call) error {
		g := k.In[0].Graph
		left, right, err := pairs(k.In[3], g.N)
		if err != nil {
			return err
		}
		k.Pool.CommonNeighbors(k.Out[0].F32, g.In, floats(k.In[1]), k.In[2].F32, left, right)
		return nil
	},
	"neighbor_kernel": func(k *Call) error {
		g := k.In[0].Graph
		left, right, err := pairs(k.In[3], g.N)
		if err != nil {
			return err
		}
		k.Pool.NeighborKernel(k.Out[0].F32, g.In, floats(k.In[1]), k.In[2].F32, k.In[2].Dims[1], left, right, k.Op.Float("tau"), k.Op.Int("most"))
		return nil
	},
}

func spmm(k *Call) error { return sparseProduct(k, kernels.Epilogue{}) }

// productHeads returns how many values an entry or a node has in a sparse product.
func productHeads(k *Call) int {
	for _, v := range k.In[1:3] {
		if v != nil {
			return heads(v)
		}
	}
	return 1
}

// sparseProduct multiplies the graph's matrix, operands 0 to 2, by operand 3.
func sparseProduct(k *Call, epi kernels.Epilogue) error {
	g, h := k.In[0].Graph, k.In[3]
	s := g.In
	if k.Op.Bool("transpose") {
		s = g.Out
	}
	n := productHeads(k)
	if h.file != nil && s.Perm == nil && len(h.F32) > tileNumbers {
		tiledProduct(k, s, n, epi)
		return nil
	}
	k.Pool.SpMMHeads(k.Out[0].F32, s, floats(k.In[1]), floats(k.In[2]), h.F32, h.Dims[1], n, epi)
	return nil
}

const (
	tileNumbers = 2 << 20 // of 8 MiB
	tileEntries = 1 << 14 // that are multiplied at a time
)

// tiles is the memory of [tiledProduct]: where each row has got to, and some entries of a tile.
type tiles struct {
	at, rowPtr, col []int32
	vals            []float32
	some            kernels.CSR
}

// tiledProduct reads the rows of a file in their order, some MiB at a time, and adds to each
// row of the product what they have for it: the bits are those of the product in one, whose
// entries are in that order too, without reads here and there.
func tiledProduct(k *Call, s *kernels.CSR, heads int, epi kernels.Epilogue) {
	dst, vals, h := k.Out[0].F32, floats(k.In[1]), k.In[3]
	f, m := h.Dims[1], &k.tiles
	m.at = append(m.at[:0], s.RowPtr[:s.Rows]...)
	m.rowPtr = slices.Grow(m.rowPtr[:0], s.Rows+1)[:s.Rows+1]
	none := &kernels.CSR{Rows: s.Rows, Cols: s.Cols, First: s.First, RowPtr: m.rowPtr}
	clear(m.rowPtr)
	k.Pool.SpMMHeads(dst, none, nil, floats(k.In[2]), h.F32, f, heads, kernels.Epilogue{Accumulate: epi.Accumulate, Add: epi.Add})
	rows := max(1, tileNumbers/max(1, f))
	h.file.Range(0, rows*f)
	for lo := 0; lo < s.Cols; lo += rows {
		end := int32(min(lo+rows, s.Cols))
		h.file.Range(int(end)*f, min(int(end)+rows, s.Cols)*f)
		for from := 0; from < s.Rows; {
			to := m.gather(s, vals, heads, from, end)
			by := m.vals
			if vals == nil {
				by = nil
			}
			if len(m.col) > 0 {
				m.some = kernels.CSR{Rows: to - from, Cols: s.Cols, RowPtr: m.rowPtr[:to-from+1], Col: m.col}
				k.Pool.SpMMHeads(dst[from*f:], &m.some, by, nil, h.F32, f, heads, kernels.Epilogue{Accumulate: true})
			}
			if from = to; len(m.col) == tileEntries {
				from-- // which may have more
			}
		}
	}
	epi.Accumulate, epi.Add = true, nil
	clear(m.rowPtr)
	k.Pool.SpMMHeads(dst, none, nil, nil, h.F32, f, heads, epi)
}

// gather takes the next entries of rows, of a column before end, until there are tileEntries. It
// returns the row behind them.
func (m *tiles) gather(s *kernels.CSR, vals []float32, heads, row int, end int32) int {
	m.col, m.vals, m.rowPtr[0] = m.col[:0], m.vals[:0], 0
	for n := 1; row < s.Rows && len(m.col) < tileEntries; n++ {
		from := m.at[row]
		to, last := from, min(s.RowPtr[row+1], from+int32(tileEntries-len(m.col)))
		for to < last && s.Col[to] < end {
			to++
		}
		m.col = append(m.col, s.Col[from:to]...)
		if vals != nil {
			m.vals = append(m.vals, vals[int(from)*heads:int(to)*heads]...)
		}
		m.rowPtr[n], m.at[row] = int32(len(m.col)), to
		row++
	}
	return row
}

// floats returns the elements of an operand, nil of an absent one.
func floats(b *Buffer) []float32 {
	if b == nil {
		return nil
	}
	return b.F32
}

// heads returns the columns of values of edges or nodes.
func heads(b *Buffer) int {
	if len(b.Dims) == 2 {
		return b.Dims[1]
	}
	return 1
}

// ofItself reports whether inner products are those of a matrix with itself.
func ofItself(k *Call) bool { return k.Op.Int("heads") == 0 && k.Op.Operands[1] == k.Op.Operands[2] }

func sddmm(k *Call) error {
	p, q := k.In[1], k.In[2]
	if g := k.In[0].Graph; ofItself(k) && g.Out != nil {
		k.Pool.SDDMMSelf(k.Out[0].F32, g.In, g.Out, p.F32, p.Dims[1])
		return nil
	}
	k.Pool.SDDMMHeads(k.Out[0].F32, k.In[0].Graph.In, p.F32, q.F32, p.Dims[1], max(1, k.Op.Int("heads")))
	return nil
}

func spmax(k *Call) error {
	h := k.In[1]
	k.Pool.SpMax(k.Out[0].F32, k.In[0].Graph.In, h.F32, h.Dims[1])
	return nil
}

func spmaxGrad(k *Call) error {
	f := k.In[1].Dims[1]
	k.Pool.SpMaxGrad(k.Out[0].F32, k.In[0].Graph.In, k.In[1].F32, k.In[2].F32, k.In[3].F32, f, k.Scratch(f))
	return nil
}

func edgeGather(k *Call) error {
	side := kernels.Dst
	if k.Op.Str("side") == "src" {
		side = kernels.Src
	}
	k.Pool.EdgeGather(k.Out[0].F32, k.In[0].Graph.In, k.In[1].F32, heads(k.In[1]), side)
	return nil
}

func edgeKth(k *Call) error {
	in, w, y := k.In[0].Graph.In, k.In[1].F32, k.Out[0].F32
	sorted := k.Scratch(len(w))
	copy(sorted, w)
	for i := range y {
		y[i] = 0
		if row := sorted[in.RowPtr[i]:in.RowPtr[i+1]]; len(row) > 0 {
			slices.Sort(row)
			y[i] = row[max(0, len(row)-k.Op.Int("k"))]
		}
	}
	return nil
}

func edgeSum(k *Call) error {
	s := k.In[0].Graph.In
	if k.Op.Str("side") == "src" {
		s = k.In[0].Graph.Out // rows are sources there, so that they sum in parallel
	}
	k.Pool.EdgeSum(k.Out[0].F32, s, k.In[1].F32, heads(k.In[1]), kernels.Dst)
	return nil
}
