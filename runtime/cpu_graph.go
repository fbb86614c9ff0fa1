package runtime

import (
	"errors"
	"slices"

	"github.com/gsrc-dev/gsrc/runtime/kernels"
)

var graphKernels = map[string]Kernel{
	"spmm":        func(k *Call) error { return sparseProduct(k, kernels.Epilogue{}) },
	"sddmm":       sddmm,
	"spmax":       spmax,
	"spmax_grad":  spmaxGrad,
	"edge_gather": edgeGather,
	"edge_sum":    edgeSum,
	"edge_kth":    edgeKth,
	"edge_softmax": func(k *Call) error {
		k.Pool.EdgeSoftmax(k.Out[0].F32, k.Out[1].F32, k.In[0].Graph.In, k.In[1].F32, k.In[2].F32, floats(k.In[3]), k.In[1].RowWidth())
		return nil
	},
	"edge_softmax_grad": func(k *Call) error {
		k.Pool.EdgeSoftmaxGrad(k.Out[0].F32, k.Out[1].F32, k.wanted(2), k.In[0].Graph.In, k.In[1].F32, k.In[2].F32, floats(k.In[3]),
			k.In[4].F32, k.In[5].F32, floats(k.In[6]), floats(k.In[7]), k.In[1].RowWidth())
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

// productHeads returns how many values an entry or a node has in a sparse product.
func productHeads(k *Call) int {
	for _, v := range k.In[1:3] {
		if v != nil {
			return v.RowWidth()
		}
	}
	return 1
}

// sparseProduct multiplies the graph's matrix, operands 0 to 2, by operand 3.
func sparseProduct(k *Call, epi kernels.Epilogue) error {
	g, h := k.In[0].Graph, k.In[3]
	s := g.In
	if k.Op.Bool("transpose") {
		if s = g.Out; k.In[1] != nil && s.Perm == nil && g.E > 0 {
			return errors.New("the values of entries out of a node are not at hand where a graph is read forward, as from a store")
		}
	}
	n := productHeads(k)
	if h.file != nil && s.Perm == nil && len(h.F32) > tileNumbers && (kernels.SpMMScratch(s.Rows, s.Cols, len(s.Col), h.Dims[1], n) != (kernels.Scratch{}) || !h.file.Whole()) {
		tiledProduct(k, s, n, epi)
		return nil
	}
	k.Pool.SpMMHeads(k.Out[0].F32, s, floats(k.In[1]), floats(k.In[2]), h.F32, h.Dims[1], n, epi)
	return nil
}

const tileNumbers = 2 << 20 // of a tile: 8 MiB

// tiles is the memory of [tiledProduct].
type tiles struct {
	first, order, row []int32 // where the entries of each tile begin, which these are, and their rows
	rows, rowPtr, col []int32 // of a tile
	some              kernels.CSR
}

// tiledProduct reads the rows of a file in their order, some MiB at a time, and adds to each
// row of the product what they have for it: the bits are those of the product in one, whose
// entries are in that order too, without reads here and there. Where memory has the file, the
// product in one is faster; it is taken if it needs none beside.
func tiledProduct(k *Call, s *kernels.CSR, heads int, epi kernels.Epilogue) {
	dst, vals, h := k.Out[0].F32, floats(k.In[1]), k.In[3]
	f, m := h.Dims[1], &k.tiles
	m.rowPtr = slices.Grow(m.rowPtr[:0], s.Rows+1)[:s.Rows+1]
	clear(m.rowPtr)
	none := &kernels.CSR{Rows: s.Rows, Cols: s.Cols, First: s.First, RowPtr: m.rowPtr}
	k.Pool.SpMMHeads(dst, none, nil, floats(k.In[2]), h.F32, f, heads, kernels.Epilogue{Accumulate: epi.Accumulate, Add: epi.Add})
	rows := max(1, tileNumbers/max(1, f))
	m.sort(s, rows)
	h.file.Range(0, rows*f)
	for t := range len(m.first) - 1 {
		h.file.Range((t+1)*rows*f, min((t+2)*rows, s.Cols)*f)
		if m.take(s, int(m.first[t]), int(m.first[t+1])); len(m.rows) == 0 {
			continue
		}
		m.some = kernels.CSR{Rows: len(m.rows), Cols: s.Cols, RowPtr: m.rowPtr, Col: m.col}
		if vals != nil {
			m.some.Perm = m.order[m.first[t]:m.first[t+1]]
		}
		k.Pool.SpMMRows(dst, m.rows, &m.some, vals, h.F32, f, heads)
	}
	epi.Accumulate, epi.Add = true, nil
	m.rowPtr = slices.Grow(m.rowPtr[:0], s.Rows+1)[:s.Rows+1]
	clear(m.rowPtr)
	none.RowPtr = m.rowPtr
	k.Pool.SpMMHeads(dst, none, nil, nil, h.F32, f, heads, epi)
}

// sort puts the entries in the order of their tiles, of so many rows each; those of a tile stay in theirs.
func (m *tiles) sort(s *kernels.CSR, rows int) {
	n := (s.Cols+rows-1)/rows + 1
	m.first = slices.Grow(m.first[:0], n+1)[:n+1]
	clear(m.first)
	for _, c := range s.Col {
		m.first[int(c)/rows+2]++
	}
	for t := 2; t <= n; t++ {
		m.first[t] += m.first[t-1]
	}
	m.order = slices.Grow(m.order[:0], len(s.Col))[:len(s.Col)]
	m.row = slices.Grow(m.row[:0], len(s.Col))[:len(s.Col)]
	for r := range s.Rows {
		for e := s.RowPtr[r]; e < s.RowPtr[r+1]; e++ {
			at := &m.first[int(s.Col[e])/rows+1]
			m.order[*at], m.row[*at] = e, int32(r)
			*at++
		}
	}
	m.first = m.first[:n]
}

// take makes a matrix of entries in order, of the rows that have some.
func (m *tiles) take(s *kernels.CSR, from, to int) {
	m.rows, m.rowPtr, m.col = m.rows[:0], m.rowPtr[:0], m.col[:0]
	for i := from; i < to; i++ {
		if r := m.row[i]; i == from || r != m.row[i-1] {
			m.rows, m.rowPtr = append(m.rows, r), append(m.rowPtr, int32(i-from))
		}
		m.col = append(m.col, s.Col[m.order[i]])
	}
	m.rowPtr = append(m.rowPtr, int32(to-from))
}

// floats returns the elements of an operand, nil of an absent one.
func floats(b *Buffer) []float32 {
	if b == nil {
		return nil
	}
	return b.F32
}

// ofItself reports whether inner products are those of a matrix with itself.
func ofItself(k *Call) bool { return k.Op.Int("heads") == 0 && k.Op.Operands[1] == k.Op.Operands[2] }

func sddmm(k *Call) error {
	p, q := k.In[1], k.In[2]
	if g := k.In[0].Graph; ofItself(k) && g.Out != nil && len(g.Out.Perm) == g.E {
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
	k.Pool.EdgeGather(k.Out[0].F32, k.In[0].Graph.In, k.In[1].F32, k.In[1].RowWidth(), side)
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
	k.Pool.EdgeSum(k.Out[0].F32, s, k.In[1].F32, k.In[1].RowWidth(), kernels.Dst)
	return nil
}
