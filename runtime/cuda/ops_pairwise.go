package cuda

import "github.com/gsrc-dev/gsrc/runtime"

var pairwiseKernels = map[string]kernel{
	"pairwise_reduce":      pairwiseReduce,
	"pairwise_reduce_grad": pairwiseReduceGrad,
	"pairwise_mean":        pairwiseMean,
	"pairwise_mean_grad":   pairwiseMeanGrad,
	"pairwise_self": func(q *steps, k *runtime.Call) {
		pairsOf(k).rows(q, at(k.In[0]), at(k.In[0]), wanted(k, 0), 0)
	},
	"pairwise_self_grad": func(q *steps, k *runtime.Call) {
		p := pairsOf(k)
		x, row, drow := at(k.In[0]), at(k.In[1]), at(k.In[2])
		p.grad(q, at(k.Out[0]), pairGrad{p: x, q: x, row: row, col: row, drow: drow, dcol: drow})
	},
}

// pairs are the sizes of a pairwise operation.
type pairs struct {
	b, f   int
	scale  float32 // 1/τ
	tiles  int     // of 64 columns that a block goes through
	chunks int     // of columns
	at     uintptr // workspace
}

func pairsOf(k *runtime.Call) pairs {
	p := pairs{b: k.In[0].Dims[0], f: k.In[0].Dims[1], scale: float32(1 / k.Op.Float("tau")), at: k.ScratchAt()}
	tiles := max((p.b+63)/64, 1)
	p.chunks = min(max(264/tiles, 1), tiles) // two blocks for each processor of a large device
	p.tiles = (tiles + p.chunks - 1) / p.chunks
	p.chunks = (tiles + p.tiles - 1) / p.tiles
	return p
}

// partsBytes is the workspace of rows, before which lie b floats of squares and
// what adds them.
func (p pairs) partsBytes() int { return 4 * 3 * p.chunks * p.b }

func (p pairs) squaresBytes() int { return (4*p.b+63)/64*64 + 8*parts }

func (p pairs) gradBytes() int { return 4 * p.chunks * p.b * (p.f + 1) }

func pairwiseWorkspace(k *runtime.Call) int {
	p := pairsOf(k)
	return max(p.squaresBytes()+p.partsBytes(), p.gradBytes())
}

// rows computes lse and the rows' sums of squares, where given.
func (p pairs) rows(q *steps, x, y, lse, squares uint64) {
	if p.b == 0 || lse == 0 && squares == 0 {
		return
	}
	parts := Ptr(p.at + uintptr(p.squaresBytes()))
	grid := [3]uint32{uint32((p.b + 63) / 64), uint32(p.chunks), 1}
	q.launch("gsrc_pair_rows", grid, [3]uint32{256, 1, 1}, 0, parts, x, y, Int(p.b), Int(p.f), Float(p.scale), Int(p.tiles))
	q.every("gsrc_pair_rows_end", p.b, lse, squares, parts, Int(p.b), Int(p.chunks))
}

func (p pairs) diagonal(q *steps, x, y, dst uint64) {
	if dst != 0 {
		q.warps("gsrc_pair_diagonal", p.b, dst, x, y, Int(p.b), Int(p.f))
	}
}

// pairGrad are the operands of gsrc_pair_grad, 0 where absent.
type pairGrad struct {
	p, q, row, col          uint64
	drow, dcol, ddiag, dsum uint64
	mean                    bool
}

func (p pairs) grad(q *steps, dst uint64, g pairGrad) {
	if p.b == 0 || p.f == 0 || dst == 0 {
		return
	}
	to, totals := dst, uint64(0)
	if p.chunks > 1 || g.mean {
		to = Ptr(p.at)
	}
	if g.mean {
		totals = Ptr(p.at + uintptr(4*p.chunks*p.b*p.f))
	}
	grid := [3]uint32{uint32((p.b + 63) / 64), uint32(p.chunks), uint32((p.f + 127) / 128)}
	q.launch("gsrc_pair_grad", grid, [3]uint32{256, 1, 1}, 0, to, totals, g.p, g.q, g.row, g.col, g.drow, g.dcol, g.ddiag, g.dsum,
		Int(p.b), Int(p.f), Float(p.scale), Int(p.tiles))
	switch {
	case to == dst:
	case g.mean:
		q.every("gsrc_pair_mean_end", p.b*p.f, dst, to, totals, g.p, Int(p.b), Int(p.f), Int(p.chunks))
	default:
		q.every("gsrc_sum_parts", p.b*p.f, dst, to, Int(p.b*p.f), Int(p.chunks))
	}
}

func pairwiseReduce(q *steps, k *runtime.Call) {
	p, x, y := pairsOf(k), at(k.In[0]), at(k.In[1])
	squares := uint64(0)
	if k.Wanted(3) {
		squares = Ptr(p.at)
	}
	p.rows(q, x, y, wanted(k, 0), squares)
	if squares != 0 {
		reduceAll(q, at(k.Out[3]), squares, p.at+uintptr((4*p.b+63)/64*64), p.b, reduceSum, 1)
	}
	p.rows(q, y, x, wanted(k, 1), 0)
	p.diagonal(q, x, y, wanted(k, 2))
}

func pairwiseReduceGrad(q *steps, k *runtime.Call) {
	p, x, y := pairsOf(k), at(k.In[0]), at(k.In[1])
	row, col, drow, dcol, ddiag, dsum := at(k.In[2]), at(k.In[3]), at(k.In[4]), at(k.In[5]), at(k.In[6]), at(k.In[7])
	p.grad(q, wanted(k, 0), pairGrad{p: x, q: y, row: row, col: col, drow: drow, dcol: dcol, ddiag: ddiag, dsum: dsum})
	p.grad(q, wanted(k, 1), pairGrad{p: y, q: x, row: col, col: row, drow: dcol, dcol: drow, ddiag: ddiag, dsum: dsum})
}

func pairwiseMean(q *steps, k *runtime.Call) {
	p, x, y := pairsOf(k), at(k.In[0]), at(k.In[1])
	p.rows(q, x, y, at(k.Out[0]), 0)
	p.diagonal(q, x, y, wanted(k, 1))
	p.grad(q, wanted(k, 2), pairGrad{p: x, q: y, row: at(k.Out[0]), mean: true})
}

func pairwiseMeanGrad(q *steps, k *runtime.Call) {
	p := pairsOf(k)
	q.every("gsrc_pair_mean_grad", p.b*p.f, at(k.Out[0]), at(k.In[0]), at(k.In[1]), at(k.In[2]), at(k.In[3]), at(k.In[4]), Int(p.b), Int(p.f), Float(p.scale))
}
