package ir

import (
	"math"
	"slices"

	"github.com/gsrc-dev/gsrc/internal/fmath"
)

func floatAttr(name string, def any, doc string) AttrSpec {
	return AttrSpec{Name: name, Kind: FloatAttr, Default: def, Doc: doc}
}

// within gives an attribute a range.
func within(r Range, a AttrSpec) AttrSpec {
	a.Range = r
	return a
}

var edgeIntervals = []AttrSpec{
	within(probability, floatAttr("old_lo", 0.5, "probability of the least similar existing edge")),
	within(probability, floatAttr("old_hi", 0.9, "probability of the most similar existing edge")),
	within(probability, floatAttr("new_lo", 0.1, "probability of the least similar new edge")),
	within(probability, floatAttr("new_hi", 0.5, "probability of the most similar new edge")),
}

func unit(v float64) float64 { return math.Min(math.Max(v, 0), 1) }

// LeastSpread is how far the bounds of cosines are apart at least: below it a difference is one of rounding in float32.
const LeastSpread = 1e-5

// EdgeProbability maps a cosine into the interval of its kind (Eq 18): old is 1
// for an existing edge and 0 for a new one, lo and hi are the bounds of the
// min–max normalisation. Where these are as near as cosines are computed, all are the least similar.
func EdgeProbability(op *Op, cos, old, lo, hi float64) float64 {
	t := unit((cos - lo) / math.Max(hi-lo, LeastSpread))
	at := func(a, b string) float64 { return op.Float(a) + (op.Float(b)-op.Float(a))*t }
	return old*at("old_lo", "old_hi") + (1-old)*at("new_lo", "new_hi")
}

func cosine(a, b []float64) float64 {
	dot := 0.0
	for k := range a {
		dot += a[k] * b[k]
	}
	return dot / (math.Max(norm2(a), 1e-12) * math.Max(norm2(b), 1e-12))
}

// marginalEnergies returns E(ν_n) = −ln Σ_m e^(−‖z_n − z′_m‖²/τ) over the batch.
func marginalEnergies(z, zp *Tensor, tau float64) []float64 {
	e := make([]float64, z.Rows())
	for n := range e {
		l := make([]float64, zp.Rows())
		for m := range l {
			l[m] = -sqDist(z.Row(n), zp.Row(m)) / tau
		}
		e[n] = -logSumExp(l)
	}
	return e
}

func mean(xs []float64) float64 { return sum(xs) / math.Max(1, float64(len(xs))) }

var gsrOps = []OpDef{
	{
		Name: "gsr.gaussian_blur", Level: GSRLevel, Doc: "y = x + σ·ε, ε standard normal (the paper's view)", NoGrad: lowered, Random: true, Results: []string{"blur"},
		Operands: []OperandSpec{sparseOK("x")}, Attrs: []AttrSpec{within(nonNegative, floatAttr("sigma", nil, "standard deviation σ")), streamAttr},
		Infer: func(c *InferCtx) []Type { // noise leaves no zeros: the result is dense
			c.wantFloat(0)
			return one(c.In(0).WithDims(c.In(0).Dims...))
		},
		Eval: func(c *EvalCtx) {
			y := c.New(0)
			for i, v := range c.T(0).Data {
				y.Data[i] = v + c.Op.Float("sigma")*c.Random.Normal(c.Op.Str("stream"), i)
			}
		},
	},
	{
		Name: "gsr.mask_features", Level: GSRLevel, Doc: "y_ij = x_ij·[u_j ≥ rate]: whole columns are masked", NoGrad: lowered, Random: true, Results: []string{"masked"},
		Operands: []OperandSpec{sparseOK("x")}, Attrs: []AttrSpec{rateAttr, streamAttr},
		Infer: func(c *InferCtx) []Type {
			c.wantRank(0, 2)
			return sameAsFirst(c)
		},
		Eval: func(c *EvalCtx) {
			x, y := c.T(0), c.New(0)
			for i, v := range x.Data {
				if c.Random.Uniform(c.Op.Str("stream"), i%x.Cols()) >= c.Op.Float("rate") {
					y.Data[i] = v
				}
			}
		},
	},
	{
		Name: "gsr.drop_edges", Level: GSRLevel, Doc: "w_e = [u_e ≥ rate], the same for both directions", NoGrad: lowered, Random: true, Results: []string{"kept"},
		Operands: graphThen(), Attrs: []AttrSpec{rateAttr, streamAttr},
		Infer: func(c *InferCtx) []Type {
			return one(T(F32, c.edges()))
		},
		Eval: func(c *EvalCtx) {
			g, y := c.G(0), c.New(0)
			for e := range y.Data {
				if c.Random.UniformPair(c.Op.Str("stream"), g.Row[e], g.Col[e]) >= c.Op.Float("rate") {
					y.Data[e] = 1
				}
			}
		},
	},
	{
		Name: "gsr.energy", Level: GSRLevel, Doc: "E(ν_n) = −ln Σ_m e^(−‖z_n − z′_m‖²/τ) over the batch (Theorem 1)", NoGrad: lowered, Results: []string{"energy"},
		Operands: operands("z", "zp"), Attrs: []AttrSpec{tauAttr},
		Infer: func(c *InferCtx) []Type {
			c.wantSame(0, 1)
			return one(c.In(0).WithDims(c.In(0).Dims[0]))
		},
		Eval: func(c *EvalCtx) {
			c.New(0).Data = marginalEnergies(c.T(0), c.T(1), c.Op.Float("tau"))
		},
	},
	{
		Name: "gsr.ecl_loss", Level: GSRLevel, NoGrad: lowered, Results: []string{"loss", "disc", "gen", "reg"},
		Doc:      "loss = disc + α·gen + β·reg: disc Eq 15 in both directions, gen = mean(E(ν) − E(ν*)) Eq 13, reg Eq 17",
		Operands: []OperandSpec{{Name: "z"}, {Name: "zp"}, {Name: "zs", Optional: true}},
		Attrs: []AttrSpec{tauAttr, floatAttr("alpha", 0.1, "weight α of the generative term"), floatAttr("beta", 0.01, "weight β of the regulariser"),
			{Name: "discriminative", Kind: BoolAttr, Default: true, Doc: "include the discriminative term, Eq 15 (ablation)"},
			{Name: "positive", Kind: BoolAttr, Default: false, Doc: "the positive pair stands in the denominator too"},
			{Name: "reg", Kind: StringAttr, Default: "mean", OneOf: []string{"mean", "paper"}, Doc: "mean: mean over n≠m of (τE)²; paper: (1/2N)Σ E² as printed"}},
		Infer: func(c *InferCtx) []Type {
			c.wantSame(0, 1)
			if c.Has(2) {
				c.wantSame(0, 2)
			}
			s := c.In(0).WithDims()
			return []Type{s, s, s, s}
		},
		Eval: evalECL,
	},
	{
		Name: "gsr.sgld_sample", Level: GSRLevel, NoGrad: lowered, Random: true, Results: []string{"nu_star"},
		Doc:      "ν ← ν − (λ/2)·clip(∂E/∂ν) + σ·ω, K times, detached (Eq 3); E is the function named by energy, of ν and the captured operands",
		Operands: []OperandSpec{{Name: "nu"}, {Name: "captured", Kind: AnyOperand, Variadic: true, Sparse: true}},
		Attrs: []AttrSpec{{Name: "energy", Kind: FuncAttr, Doc: "function (ν, captured...) → scalar energy"},
			{Name: "steps", Kind: IntAttr, Default: int64(3), Range: unrolled, Doc: "K"}, floatAttr("step", nil, "step λ"), floatAttr("noise", nil, "noise scale σ of a step"),
			floatAttr("clip", 0.0, "largest row norm of the gradient; 0 does not clip"), streamAttr},
		Infer: sameAsFirst,
		Eval:  evalSGLD,
	},
	{
		Name: "gsr.edge_probability", Level: GSRLevel, NoGrad: lowered, Results: []string{"prob", "lo", "hi"},
		Doc:      "p_e = interval(old_e)[(cos(h_dst, h_src) − lo)/(hi − lo)], lo and hi the least and greatest cosine over the entries (no gradient) unless given (Eq 18)",
		Operands: graphThen(OperandSpec{Name: "h"}, OperandSpec{Name: "old"}, OperandSpec{Name: "lo", Optional: true}, OperandSpec{Name: "hi", Optional: true}),
		Attrs:    edgeIntervals,
		Infer: func(c *InferCtx) []Type {
			c.wantNodeRows(1)
			c.wantOneDType(1, 2, 3, 4)
			c.wantDims(2, c.edges())
			if c.Has(3) != c.Has(4) {
				fail("lo and hi go together")
			}
			c.wantDims(3)
			c.wantDims(4)
			s := c.In(1).WithDims()
			return []Type{c.In(1).WithDims(c.edges()), s, s}
		},
		Eval: func(c *EvalCtx) {
			g, h, old, p := c.G(0), c.T(1), c.T(2), c.New(0)
			lo, hi := math.Inf(1), math.Inf(-1)
			for e := range p.Data {
				v := cosine(c.atBase(1).Row(g.Row[e]), c.atBase(1).Row(g.Col[e]))
				lo, hi = math.Min(lo, v), math.Max(hi, v)
			}
			if c.T(3) != nil {
				lo, hi = c.T(3).Data[0], c.T(4).Data[0]
			}
			for e := range p.Data {
				p.Data[e] = EdgeProbability(c.Op, cosine(h.Row(g.Row[e]), h.Row(g.Col[e])), old.Data[e], lo, hi)
			}
			c.New(1).Data[0], c.New(2).Data[0] = lo, hi
		},
	},
	{
		Name: "gsr.pair_probability", Level: GSRLevel, NoGrad: lowered, Results: []string{"similarity", "prob_new", "prob_old"},
		Doc:      "cosine of the asked pairs and their probability as new and as existing edges, with frozen bounds lo and hi (Eq 18)",
		Operands: operands("h", "pairs", "lo", "hi"), Attrs: edgeIntervals,
		Infer: func(c *InferCtx) []Type {
			c.wantRank(0, 2)
			c.wantPairs(1)
			c.wantOneDType(0, 2, 3)
			c.wantDims(2)
			c.wantDims(3)
			t := c.In(0).WithDims(c.In(1).Dims[1])
			return []Type{t, t, t}
		},
		Eval: func(c *EvalCtx) {
			h, s, pn, po := c.T(0), c.New(0), c.New(1), c.New(2)
			c.eachPair(1, h.Rows(), func(k, i, j int) {
				s.Data[k] = cosine(h.Row(i), h.Row(j))
				pn.Data[k] = EdgeProbability(c.Op, s.Data[k], 0, c.T(2).Data[0], c.T(3).Data[0])
				po.Data[k] = EdgeProbability(c.Op, s.Data[k], 1, c.T(2).Data[0], c.T(3).Data[0])
			})
		},
	},
	{
		Name: "gsr.relaxed_bernoulli", Level: GSRLevel, NoGrad: lowered, Random: true, Results: []string{"sample"},
		Doc:      "w_e = [s_e > ½] forward, s_e backward, s_e = sigmoid((ln p/(1−p) + ln u/(1−u))/T), u_e of the undirected edge (straight-through)",
		Operands: graphThen(operands("p")...), Attrs: []AttrSpec{within(positive, floatAttr("temperature", 0.5, "T")), streamAttr},
		Infer: func(c *InferCtx) []Type {
			c.wantFloat(1)
			c.wantDims(1, c.edges())
			return one(c.In(1))
		},
		Eval: func(c *EvalCtx) {
			g, p, at, y := c.G(0), c.T(1), c.atBase(1), c.New(0)
			for e := range y.Data {
				u := c.Random.UniformPair(c.Op.Str("stream"), g.Row[e], g.Col[e])
				u = math.Min(math.Max(u, 1e-6), 1-1e-6)
				soft := func(p float64) float64 {
					return fmath.Sigmoid((math.Log(p/(1-p)) + math.Log(u/(1-u))) / c.Op.Float("temperature"))
				}
				// s > ½ exactly where ln p/(1−p) + ln u/(1−u) > 0
				if at.Data[e]*u > (1-at.Data[e])*(1-u) {
					y.Data[e] = 1
				}
				if c.Base != nil { // straight through
					y.Data[e] += soft(p.Data[e]) - soft(at.Data[e])
				}
			}
		},
	},
	{
		Name: "gsr.consistency", Level: GSRLevel, NoGrad: lowered, Results: []string{"consistency"},
		Doc:      "mean over samples k and nodes i of [max m_i ≥ c]·‖p_k,i − q_i‖², p_k = softmax(logits_k), m their mean, q this sharpened by 1/T and renormalised, no gradient through m and q (Feng et al. 2020, 2022)",
		Operands: []OperandSpec{{Name: "logits"}, {Name: "more", Variadic: true}},
		Attrs:    []AttrSpec{within(positive, floatAttr("temperature", 0.5, "T")), within(share, floatAttr("confidence", 0.0, "c"))},
		Infer: func(c *InferCtx) []Type {
			for i := range c.Op.Operands {
				c.wantSame(0, i)
			}
			return one(c.In(0).WithDims())
		},
		Eval: func(c *EvalCtx) {
			k, rows, cols := len(c.In), c.T(0).Rows(), c.T(0).Cols()
			p := make([][]float64, k)
			y := c.New(0)
			for i := range rows {
				q, stopped := make([]float64, cols), make([]float64, cols)
				for s := range p {
					p[s] = make([]float64, cols)
					softmaxRow(p[s], c.T(s).Row(i))
					softmaxRow(stopped, c.atBase(s).Row(i))
					for j := range q {
						q[j] += stopped[j] / float64(k)
					}
				}
				if sure := c.Op.Float("confidence"); sure > 0 && !slices.ContainsFunc(q, func(m float64) bool { return m >= sure }) {
					continue
				}
				for j := range q {
					q[j] = math.Pow(q[j], 1/c.Op.Float("temperature"))
				}
				total, loss := sum(q), 0.0
				for s := range p {
					for j := range q {
						loss += (p[s][j] - q[j]/total) * (p[s][j] - q[j]/total)
					}
				}
				y.Data[0] += loss / float64(k*rows)
			}
		},
	},
	{
		Name: "gsr.refine", Level: GSRLevel, NoGrad: lowered, Results: []string{"w"},
		Doc:      "edge weights for evaluation: expected: w = p; threshold: w = [p ≥ t]",
		Operands: operands("p"),
		Attrs: []AttrSpec{{Name: "mode", Kind: StringAttr, Default: "expected", OneOf: []string{"expected", "threshold"}, Doc: "how a probability becomes a weight"},
			floatAttr("threshold", 0.5, "t")},
		Infer: sameAsFirst,
		Eval: evalUnary(func(o *Op) func(float64) float64 {
			if o.Str("mode") == "expected" {
				return func(p float64) float64 { return p }
			}
			t := o.Float("threshold")
			return func(p float64) float64 {
				if p >= t {
					return 1
				}
				return 0
			}
		}),
	},
}

// evalECL evaluates the contrastive loss from its definition (Eq 13, 15, 17).
func evalECL(c *EvalCtx) {
	z, zp, tau, n := c.T(0), c.T(1), c.Op.Float("tau"), c.T(0).Rows()
	var disc, gen, reg float64
	for i := range n {
		pos := sqDist(z.Row(i), zp.Row(i)) / tau
		l1, l2 := []float64{}, []float64{}
		for m := range n {
			if m != i || c.Op.Bool("positive") {
				l1 = append(l1, -sqDist(z.Row(i), zp.Row(m))/tau)
				l2 = append(l2, -sqDist(zp.Row(i), z.Row(m))/tau)
			}
			if m != i {
				l1 = append(l1, -sqDist(z.Row(i), z.Row(m))/tau)
				l2 = append(l2, -sqDist(zp.Row(i), zp.Row(m))/tau)
				d := sqDist(z.Row(i), zp.Row(m))
				if c.Op.Str("reg") == "paper" {
					reg += d * d / (tau * tau * 2 * float64(n))
				} else {
					reg += d * d / math.Max(1, float64(n*(n-1)))
				}
			}
		}
		disc += (pos + (logSumExp(l1)+logSumExp(l2))/2 - math.Log(2*float64(n))) / float64(n)
	}
	if zs := c.T(2); zs != nil {
		gen = mean(marginalEnergies(z, zp, tau)) - mean(marginalEnergies(zs, zp, tau))
	}
	total := c.Op.Float("alpha")*gen + c.Op.Float("beta")*reg
	if c.Op.Bool("discriminative") {
		total += disc
	}
	for i, v := range []float64{total, disc, gen, reg} {
		c.New(i).Data[0] = v
	}
}

// evalSGLD runs the chain with the energy's gradient from central differences.
func evalSGLD(c *EvalCtx) {
	if c.detached() {
		return
	}
	f := c.interp.module.Func(c.Op.FuncRef("energy"))
	if f == nil {
		fail("gsr.sgld_sample: there is no function @%s", c.Op.FuncRef("energy"))
	}
	nu := c.T(0).Clone()
	for k := range c.Op.Int("steps") {
		at := *c.interp
		at.random = stepRandom{c.Random, k}
		_, base, err := at.call(f, append([]Val{{T: nu.Clone()}}, c.In[1:]...), nil)
		if err != nil {
			fail("%w", err)
		}
		args := append([]Val{{T: nu}}, c.In[1:]...)
		g, err := centralDifferences(nu, func() (float64, error) {
			out, _, err := at.call(f, args, base)
			if err != nil {
				return 0, err
			}
			return out[0].T.Data[0], nil
		})
		if err != nil {
			fail("%w", err)
		}
		for i := range nu.Rows() {
			row := g.Row(i)
			if clip := c.Op.Float("clip"); clip > 0 {
				s := math.Min(1, clip/math.Max(norm2(row), 1e-12))
				for j := range row {
					row[j] *= s
				}
			}
		}
		for i := range nu.Data {
			nu.Data[i] += -c.Op.Float("step")/2*g.Data[i] + c.Op.Float("noise")*at.random.Normal(c.Op.Str("stream"), i)
		}
	}
	c.Set(0, nu)
}
