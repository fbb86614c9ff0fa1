package runtime

import "github.com/gsrc-dev/gsrc/runtime/kernels"

var graphKernels = map[string]Kernel{
	"spmm":            spmm,
	"sddmm":           sddmm,
	"edge_gather":     edgeGather,
	"edge_sum":        edgeSum,
	"receptive_field": func(*Call) error { return nil }, // found before the run: see sizer
	"edge_ones":       func(k *Call) error { k.Pool.Fill(k.Out[0].F32, 1); return nil },
}

func spmm(k *Call) error { return sparseProduct(k, kernels.Epilogue{}) }

// sparseProduct multiplies the graph's matrix, operands 0 to 2, by operand 3.
func sparseProduct(k *Call, epi kernels.Epilogue) error {
	g, h := k.In[0].Graph, k.In[3]
	s := g.In
	if k.Op.Bool("transpose") {
		s = g.Out
	}
	var vals, diag []float32
	if k.In[1] != nil {
		vals = k.In[1].F32
	}
	if k.In[2] != nil {
		diag = k.In[2].F32
	}
	k.Pool.SpMM(k.Out[0].F32, s, vals, diag, h.F32, h.Dims[1], epi)
	return nil
}

func sddmm(k *Call) error {
	p, q := k.In[1], k.In[2]
	k.Pool.SDDMM(k.Out[0].F32, k.In[0].Graph.In, p.F32, q.F32, p.Dims[1])
	return nil
}

func edgeGather(k *Call) error {
	side := kernels.Dst
	if k.Op.Str("side") == "src" {
		side = kernels.Src
	}
	k.Pool.EdgeGather(k.Out[0].F32, k.In[0].Graph.In, k.In[1].F32, side)
	return nil
}

func edgeSum(k *Call) error {
	s := k.In[0].Graph.In
	if k.Op.Str("side") == "src" {
		s = k.In[0].Graph.Out // rows are sources there, so that they sum in parallel
	}
	k.Pool.EdgeSum(k.Out[0].F32, s, k.In[1].F32, kernels.Dst)
	return nil
}
