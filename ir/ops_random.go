package ir

var (
	streamAttr = AttrSpec{Name: "stream", Kind: StringAttr, Doc: "name of the random stream"}
	rateAttr   = AttrSpec{Name: "rate", Kind: FloatAttr, Range: share, Doc: "probability of dropping, 0 ≤ rate < 1"}
)

func noiseOp(name, doc string, draw func(r Random, stream string, i int) float64) OpDef {
	return OpDef{
		Name: name, Doc: doc, Attrs: []AttrSpec{streamAttr}, Results: []string{name}, Random: true, Infer: declaredTensor, InExpr: true, Finite: FiniteAlways,
		VJP: func(*VJPCtx) []*Value { return nil },
		Eval: func(c *EvalCtx) {
			y := c.New(0)
			for i := range y.Data {
				y.Data[i] = draw(c.Random, c.Op.Str("stream"), i)
			}
		},
	}
}

var randomOps = []OpDef{
	noiseOp("normal", "y_i standard normal; the type is declared", Random.Normal),
	noiseOp("uniform", "y_i uniform on [0, 1); the type is declared", Random.Uniform),
	{
		Name: "edge_uniform", Doc: "y_e uniform on [0, 1), the same for both directions of an undirected edge", Attrs: []AttrSpec{streamAttr}, Results: []string{"u"}, Random: true,
		Operands: graphThen(), Finite: FiniteAlways, Pad: padUnknown,
		Infer: func(c *InferCtx) []Type {
			c.wantWhole()
			return one(T(F32, c.edges()))
		},
		VJP: func(*VJPCtx) []*Value { return []*Value{nil} },
		Eval: func(c *EvalCtx) {
			g, y := c.G(0), c.New(0)
			for e := range y.Data {
				y.Data[e] = c.Random.UniformPair(c.Op.Str("stream"), g.Row[e], g.Col[e])
			}
		},
	},
	{
		Name: "dropout", Doc: "y_i = x_i·[u_i ≥ rate]/(1 − rate), u_i element i of the stream", Operands: []OperandSpec{{Name: "x", Sparse: true, Read: ReadElement, InPlace: true, Linear: true}}, Attrs: []AttrSpec{rateAttr, streamAttr}, Results: []string{"drop"}, Random: true,
		InExpr: true, Finite: FiniteIfOperands,
		Infer: sameAsFirst,
		// The mask is drawn again from the same stream, so none is stored.
		VJP: func(c *VJPCtx) []*Value {
			return []*Value{c.One("dropout", c.Op.Attrs, c.Ct[0])}
		},
		Eval: func(c *EvalCtx) {
			x, y, rate, stream := c.T(0), c.New(0), c.Op.Float("rate"), c.Op.Str("stream")
			for i, v := range x.Data {
				if c.Random.Uniform(stream, i) >= rate {
					y.Data[i] = v / (1 - rate)
				}
			}
		},
	},
}
