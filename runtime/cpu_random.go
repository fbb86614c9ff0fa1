package runtime

var randomKernels = map[string]Kernel{
	"normal":       func(k *Call) error { k.Pool.Normal(k.Out[0].F32, k.Key); return nil },
	"uniform":      func(k *Call) error { k.Pool.Uniform(k.Out[0].F32, k.Key); return nil },
	"edge_uniform": func(k *Call) error { k.Pool.EdgeUniform(k.Out[0].F32, k.In[0].Graph.In, k.Key); return nil },
	"dropout":      dropout,
}

func dropout(k *Call) error {
	x, y, rate := k.In[0], k.Out[0], float32(k.Op.Float("rate"))
	if s := x.Sparse; s != nil {
		k.Pool.DropoutSparse(y.Sparse.Values, s.Values, s.ByRow, x.Dims[1], rate, k.Key)
		return nil
	}
	k.Pool.Dropout(y.F32, x.F32, rate, k.Key)
	return nil
}
