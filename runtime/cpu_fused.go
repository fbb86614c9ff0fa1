package runtime

import (
	"slices"

	"github.com/gsrc-dev/gsrc/ir"
	"github.com/gsrc-dev/gsrc/runtime/kernels"
)

var fusedKernels = map[string]Kernel{
	"fused_elementwise": fusedElementwise,
	"matmul_fused":      func(k *Call) error { return product(k, k.epilogue(2)) },
	"spmm_fused":        func(k *Call) error { return sparseProduct(k, k.epilogue(4)) },
}

func fusedElementwise(k *Call) error {
	y := k.Out[0]
	k.Pool.Elementwise(y.F32, y.rows(), y.cols(), &k.fusedOn(0).chain)
	return nil
}

// epilogue returns what a fused operation does to its product: operand sum is
// added to it, those behind are the expression's.
func (k *Call) epilogue(sum int) kernels.Epilogue {
	f := k.fusedOn(sum + 1)
	epi := kernels.Epilogue{Act: f.act}
	if k.In[sum] != nil {
		epi.Add = k.In[sum].F32
	}
	if f.bias >= 0 {
		epi.Bias = k.In[sum+1+f.bias].F32
	}
	if len(f.chain.Steps) > 0 {
		epi.Then = &f.chain
	}
	return epi
}

// fusedOn returns the compiled expression with the operands of this run, those
// from position first on.
func (k *Call) fusedOn(first int) *fused {
	if k.fused == nil {
		k.fused = compileExpr(k.Op, first)
	}
	for i, b := range k.In[first:] {
		k.fused.chain.Inputs[i] = kernels.ChainInput{Data: b.F32, Mode: Mode(b.Dims, k.Out[0].Dims)}
	}
	k.fused.chain.Key = k.Key
	return k.fused
}

// fused is an expression as a kernel has it.
type fused struct {
	bias  int // the operand added to every row of the product before act, or −1
	act   kernels.Activation
	chain kernels.Chain
}

// compileExpr makes the steps of a chain, with registers that are used again
// when their last reader has run. A bias and an activation next to the product
// are left to the product's own epilogue, which knows them.
func compileExpr(op *ir.Op, first int) *fused {
	e, x := op.Expr(), op.Operands[first:]
	f := &fused{bias: -1, chain: kernels.Chain{Inputs: make([]kernels.ChainInput, len(x))}}
	skip := f.peel(e, x, op.Result().Type)
	product := ir.ExprArg{Kind: ir.ExprProduct}
	last := make([]int, len(e.Steps)) // reader of each step
	see := func(a ir.ExprArg, by int) {
		if a.Kind == ir.ExprResult {
			last[a.Index] = by
		}
	}
	for i, s := range e.Steps {
		for _, a := range s.Args {
			see(a, i)
		}
	}
	see(e.Out, len(e.Steps))

	reg := make([]int, len(e.Steps))
	var free []int
	arg := func(a ir.ExprArg) kernels.ChainArg {
		if a.Kind == ir.ExprResult && a.Index < skip {
			a = product
		}
		switch a.Kind {
		case ir.ExprOperand:
			return kernels.ChainArg{Kind: kernels.ArgInput, Index: a.Index}
		case ir.ExprNumber:
			return kernels.ChainArg{Kind: kernels.ArgNumber, Value: float32(a.Value)}
		case ir.ExprProduct:
			return kernels.ChainArg{Kind: kernels.ArgResult}
		}
		return kernels.ChainArg{Kind: kernels.ArgReg, Index: reg[a.Index]}
	}
	for i := skip; i < len(e.Steps); i++ {
		s := e.Steps[i]
		st := chainStep(s)
		for k, a := range s.Args {
			st.Args[k] = arg(a)
		}
		for _, a := range s.Args {
			if a.Kind == ir.ExprResult && a.Index >= skip && last[a.Index] == i && !slices.Contains(free, reg[a.Index]) {
				free = append(free, reg[a.Index])
			}
		}
		if i == len(e.Steps)-1 && e.Out.Kind == ir.ExprResult && e.Out.Index == i {
			st.Dst = kernels.ToResult
		} else {
			if len(free) == 0 {
				free = append(free, f.chain.Regs)
				f.chain.Regs++
			}
			reg[i] = slices.Min(free)
			free = slices.DeleteFunc(free, func(r int) bool { return r == reg[i] })
			st.Dst = reg[i]
		}
		f.chain.Steps = append(f.chain.Steps, st)
	}
	if out := arg(e.Out); out.Kind != kernels.ArgResult && (len(f.chain.Steps) == 0 || f.chain.Steps[len(f.chain.Steps)-1].Dst != kernels.ToResult) {
		f.chain.Steps = append(f.chain.Steps, kernels.ChainStep{Kind: kernels.StepCopy, Args: [2]kernels.ChainArg{out}, Dst: kernels.ToResult})
	}
	return f
}

// peel takes the first steps for the epilogue's bias and activation, and returns
// how many.
func (f *fused) peel(e *ir.Expr, x []*ir.Value, t ir.Type) int {
	isBias := func(a ir.ExprArg) bool {
		return a.Kind == ir.ExprOperand && x[a.Index].Type.Equal(t.WithDims(t.Dims[len(t.Dims)-1]))
	}
	uses := func(want ir.ExprArg) (n int) {
		for _, s := range e.Steps {
			for _, a := range s.Args {
				if a == want {
					n++
				}
			}
		}
		if e.Out == want {
			n++
		}
		return n
	}
	at, n := ir.ExprArg{Kind: ir.ExprProduct}, 0
	if n < len(e.Steps) && e.Steps[n].Def.Name == "add" && uses(at) == 1 {
		a := e.Steps[n].Args
		k := slices.Index(a, at)
		if k >= 0 && isBias(a[1-k]) {
			f.bias = a[1-k].Index
			at = ir.ExprArg{Kind: ir.ExprResult, Index: n}
			n++
		}
	}
	if n < len(e.Steps) && uses(at) == 1 && e.Steps[n].Args[0] == at {
		switch e.Steps[n].Def.Name {
		case "relu":
			f.act = kernels.Relu
			n++
		case "elu":
			f.act = kernels.Elu
			n++
		}
	}
	return n
}

// chainUnary, chainBinary and chainCompare are the kernels of pointwise
// operations of one shape of call each; chainStep knows the others.
var (
	chainUnary = map[string]kernels.UnaryOp{
		"neg": kernels.Neg, "exp": kernels.Exp, "log": kernels.Log, "sqrt": kernels.Sqrt, "rsqrt": kernels.Rsqrt, "square": kernels.Square,
		"sigmoid": kernels.Sigmoid, "tanh": kernels.Tanh, "relu": kernels.ReluOp, "elu": kernels.EluOp, "leaky_relu": kernels.LeakyRelu, "pow": kernels.Pow,
	}
	chainBinary  = map[string]kernels.BinaryOp{"add": kernels.Add, "sub": kernels.Sub, "mul": kernels.Mul, "div": kernels.Div, "maximum": kernels.Max, "minimum": kernels.Min}
	chainCompare = map[string]kernels.CompareOp{"greater": kernels.CompareGreater, "greater_equal": kernels.CompareGreaterEqual, "less": kernels.CompareLess}
	chainOther   = map[string]kernels.StepKind{
		"relu_grad": kernels.StepReluGrad, "elu_grad": kernels.StepEluGrad, "leaky_relu_grad": kernels.StepLeakyGrad,
		"dropout": kernels.StepDropout, "normal": kernels.StepNormal, "uniform": kernels.StepUniform,
	}
)

func chainStep(s ir.ExprStep) kernels.ChainStep {
	st, name := kernels.ChainStep{Param: float32(s.Attr)}, s.Def.Name
	if op, ok := chainUnary[name]; ok {
		st.Kind, st.Op = kernels.StepUnary, int(op)
	} else if op, ok := chainBinary[name]; ok {
		st.Kind, st.Op = kernels.StepBinary, int(op)
	} else if op, ok := chainCompare[name]; ok {
		st.Kind, st.Op = kernels.StepCompare, int(op)
	} else if kind, ok := chainOther[name]; ok {
		st.Kind = kind
	} else {
		panic("runtime: " + name + " has no step in fused kernels")
	}
	return st
}
