package runtime

import (
	"slices"

	"github.com/gsrc-dev/gsrc/ir"
	"github.com/gsrc-dev/gsrc/runtime/kernels"
)

var pairwiseKernels = map[string]Kernel{
	"pairwise_reduce":      pairwiseReduce,
	"pairwise_reduce_grad": pairwiseReduceGrad,
	"pairwise_mean":        pairwiseMean,
	"pairwise_mean_grad":   pairwiseMeanGrad,
	"pairwise_self":        pairwiseSelf,
	"pairwise_self_grad":   pairwiseSelfGrad,
}

// gradientOf names, for gradients that may take products from the operation they
// are the gradient of, that operation, and which operand is its first result.
var gradientOf = map[string]struct {
	forward string
	result  int
}{
	"pairwise_reduce_grad": {"pairwise_reduce", 2},
	"pairwise_self_grad":   {"pairwise_self", 1},
}

// savedForBackward is memory that an operation leaves for its gradients in the same function:
// a part of the arena executor's arena, else its own.
type savedForBackward struct{ mem []float32 }

// leaveForGradients gives operations and their gradients memory to share.
func leaveForGradients(ops []*Instruction) {
	made := map[*ir.Value]*Instruction{}
	for _, o := range ops {
		if g, ok := gradientOf[o.Op.Name()]; ok {
			from := made[o.Op.Operands[g.result]]
			if from != nil && from.Op.Name() == g.forward && from.Op.Float("tau") == o.Op.Float("tau") && slices.Equal(from.Op.Operands, o.Op.Operands[:g.result]) {
				if from.saved == nil {
					from.saved = &savedForBackward{}
				}
				o.saved = from.saved
			}
		}
		made[o.Op.Results[0]] = o
	}
}

// savedFloats returns how many floats an operation leaves for its gradients.
func (k *Call) savedFloats() int {
	if k.saved == nil {
		return 0
	}
	return kernels.PairwiseKept(k.In[0].Dims[0], k.Op.Name() == "pairwise_self" || k.Op.Name() == "pairwise_self_grad")
}

// savedMemory returns the memory for the products of all pairs: nil if nobody shares it
// or they are too many to keep.
func (k *Call) savedMemory() []float32 {
	n := k.savedFloats()
	if n == 0 {
		return nil
	}
	if cap(k.saved.mem) < n {
		k.saved.mem = make([]float32, n)
	}
	return k.saved.mem[:n]
}

// wanted returns result i, nil if it is not read.
func (k *Call) wanted(i int) []float32 {
	if !k.Wanted(i) {
		return nil
	}
	return k.Out[i].F32
}

// pairs returns the sizes and the workspace of a pairwise operation.
func (k *Call) pairs() (b, f int, tau float32, ws []float32) {
	b, f = k.In[0].Dims[0], k.In[0].Dims[1]
	return b, f, float32(k.Op.Float("tau")), k.Scratch(kernels.PairwiseWorkspace(b, f))
}

func pairwiseReduce(k *Call) error {
	b, f, tau, ws := k.pairs()
	out := kernels.PairwiseResult{RowLSE: k.wanted(0), ColLSE: k.wanted(1), Diag: k.wanted(2), SumSq: k.wanted(3)}
	k.Pool.PairwiseReduce(out, k.In[0].F32, k.In[1].F32, b, f, tau, k.savedMemory(), ws)
	return nil
}

func pairwiseReduceGrad(k *Call) error {
	b, f, tau, ws := k.pairs()
	k.Pool.PairwiseReduceGrad(k.wanted(0), k.wanted(1), k.In[0].F32, k.In[1].F32, k.In[2].F32, k.In[3].F32,
		kernels.PairwiseCotangent{RowLSE: floats(k.In[4]), ColLSE: floats(k.In[5]), Diag: floats(k.In[6]), SumSq: floats(k.In[7])}, b, f, tau, k.savedMemory(), ws)
	return nil
}

func pairwiseMean(k *Call) error {
	b, f, tau, ws := k.pairs()
	k.Pool.PairwiseReduce(kernels.PairwiseResult{RowLSE: k.Out[0].F32, Diag: k.wanted(1), Mean: k.Out[2].F32}, k.In[0].F32, k.In[1].F32, b, f, tau, nil, ws)
	return nil
}

func pairwiseMeanGrad(k *Call) error {
	p := k.In[0]
	k.Pool.PairwiseMeanGrad(k.Out[0].F32, p.F32, k.In[1].F32, k.In[2].F32, k.In[3].F32, floats(k.In[4]), p.Dims[0], p.Dims[1], float32(k.Op.Float("tau")))
	return nil
}

func pairwiseSelf(k *Call) error {
	b, f, tau, ws := k.pairs()
	k.Pool.PairwiseSelf(k.Out[0].F32, k.In[0].F32, b, f, tau, k.savedMemory(), ws)
	return nil
}

func pairwiseSelfGrad(k *Call) error {
	b, f, tau, ws := k.pairs()
	k.Pool.PairwiseSelfGrad(k.Out[0].F32, k.In[0].F32, k.In[1].F32, k.In[2].F32, b, f, tau, k.savedMemory(), ws)
	return nil
}
