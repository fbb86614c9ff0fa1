package passes

import (
	"fmt"

	"github.com/gsrc-dev/gsrc/ir"
)

// streaming makes the gradient of a Langevin step from the forward pass. Where a
// loss reads the row and diag of a pairwise_reduce, and its gradient by p alone,
//
//	dp_i = −(2/τ)·drow_i·(p_i − Σ_{j≠i} s_ij q_j) + 2·ddiag_i·(p_i − q_i)
//
// with s the softmax whose logarithms row has summed. The sum, one more product
// while a tile of distances is in the cache, becomes a result of pairwise_mean;
// pairwise_reduce_grad, which computes the distances again, two products and
// another exponential for each pair, is gone. That is less work at every size, so
// no cost model decides. Whether pairwise_reduce keeps its products for the
// gradients that are left depends on the size, and is decided when that is known:
// kernels.PairwiseKeepLimit.
func streaming(m *ir.Module, info DataInfo) error {
	for _, f := range m.Funcs {
		if n := streamFunc(m, f); n > 0 {
			info.say("streaming", f, fmt.Sprintf("%d gradients by a row come out of the pass over the distances that gives its energy", n))
		}
	}
	return nil
}

// streamFunc returns how many gradients it has replaced.
func streamFunc(m *ir.Module, f *ir.Func) (replaced int) {
	uses := f.Uses()
	forward := map[*ir.Value]*ir.Op{} // by row
	for _, op := range f.Body {
		if op.Name() == "pairwise_reduce" {
			forward[op.Results[0]] = op
		}
	}
	// Gradients that a mean is enough for, by what they are the gradient of.
	grads := map[*ir.Op]*ir.Op{}
	reads := map[*ir.Op]int{} // how many of them read col
	for _, op := range f.Body {
		if op.Name() != "pairwise_reduce_grad" {
			continue
		}
		p, q, row, col, drow, dcol, dsumsq := op.Operands[0], op.Operands[1], op.Operands[2], op.Operands[3], op.Operands[4], op.Operands[5], op.Operands[7]
		fw := forward[row]
		if fw == nil || fw.Operands[0] != p || fw.Operands[1] != q || fw.Results[1] != col || fw.Float("tau") != op.Float("tau") {
			continue
		}
		if drow == nil || dcol != nil || dsumsq != nil || uses[op.Results[1]] > 0 || uses[fw.Results[3]] > 0 {
			continue
		}
		grads[op] = fw
		reads[fw]++
	}
	means := map[*ir.Op]*ir.Value{}
	rewrite(m, f, func(b *ir.Builder, op *ir.Op) []*ir.Value {
		tau := ir.Attrs{"tau": op.Attrs["tau"]}
		if n := reads[op]; n > 0 && n == uses[op.Results[1]] {
			r := b.Op("pairwise_mean", tau, op.Operands...)
			means[op] = r[2]
			return []*ir.Value{r[0], r[0], r[1], r[0]} // nothing reads col and sumsq
		}
		if mean := means[grads[op]]; mean != nil {
			dp := b.One("pairwise_mean_grad", tau, op.Operands[0], op.Operands[1], mean, op.Operands[4], op.Operands[6])
			replaced++
			return []*ir.Value{dp, dp} // nothing reads dq
		}
		return nil
	})
	return replaced
}
