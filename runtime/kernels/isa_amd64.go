package kernels

import "golang.org/x/sys/cpu"

// nativeSets returns the assembly this processor can run, the best first.
func nativeSets() []*kernelSet {
	var sets []*kernelSet
	if cpu.X86.HasAVX512F && cpu.X86.HasFMA {
		sets = append(sets, &avx512Set)
	}
	if cpu.X86.HasAVX2 && cpu.X86.HasFMA {
		sets = append(sets, &avx2Set)
	}
	return sets
}

var avx2Set = kernelSet{
	name: "avx2", lanes: 8,
	unary: [unaryCount]func(dst, x []float32, c float32){
		Neg: negAVX2, Exp: expAVX2, Log: logAVX2, Sqrt: sqrtAVX2, Rsqrt: rsqrtAVX2, Sigmoid: sigmoidAVX2, ReluOp: reluAVX2,
		EluOp: eluAVX2, Tanh: tanhAVX2, Abs: absAVX2, Square: squareAVX2, LeakyRelu: leakyReluAVX2, Pow: powGo,
	},
	vv:    [binaryCount]func(dst, a, b []float32){Add: addVVAVX2, Sub: subVVAVX2, Mul: mulVVAVX2, Div: divVVAVX2, Max: maxVVAVX2, Min: minVVAVX2},
	vs:    [binaryCount]func(dst, a []float32, b float32){Add: addVSAVX2, Sub: subVSAVX2, Mul: mulVSAVX2, Div: divVSAVX2, Max: maxVSAVX2, Min: minVSAVX2},
	sv:    [binaryCount]func(dst []float32, a float32, b []float32){Add: addSVAVX2, Sub: subSVAVX2, Mul: mulSVAVX2, Div: divSVAVX2, Max: maxSVAVX2, Min: minSVAVX2},
	axpby: axpbyAVX2, bias: biasAVX2, act: actAVX2, reluGrad: reluGradAVX2, eluGrad: eluGradAVX2, leakyGrad: leakyGradAVX2,
	sum: sumAVX2, sumAbs: sumAbsAVX2, max: maxAVX2, min: minAVX2, dot: dotAVX2, sqDist: sqDistAVX2,
	sumExp: sumExpAVX2, expTo: expToAVX2, accExp: accExpAVX2, pairWeights: pairWeightsAVX2, pairNearest: pairNearestAVX2,
	adam: adamAVX2Step,
	spmm: spmmAVX2, scatter: scatterAVX2, sddmm: sddmmAVX2Rows, spmmHead: spmmHeadAVX2, sddmmHead: sddmmHeadAVX2Rows, edgeSoftmax: edgeSoftmaxAVX2, edgeSoftmaxGrad: edgeSoftmaxGradAVX2, reach: reachAVX2, entries: entriesAVX2,
	wide: micro{mr: 6, nr: 16, f: gemmWideAVX2}, narrow: micro{mr: 12, nr: 8, f: gemmNarrowAVX2}, packCols: packColsAVX2, packRows: packRowsAVX2, fetchRows: fetchRowsAVX2,
	uniform: uniformAVX2, normal: normalAVX2, dropout: dropoutAVX2, uniformAt: uniformAtAVX2, uniformPair: uniformPairAVX2,
}

var avx512Set = kernelSet{
	name: "avx512", lanes: 16,
	unary: [unaryCount]func(dst, x []float32, c float32){
		Neg: negAVX512, Exp: expAVX512, Log: logAVX512, Sqrt: sqrtAVX512, Rsqrt: rsqrtAVX512, Sigmoid: sigmoidAVX512, ReluOp: reluAVX512,
		EluOp: eluAVX512, Tanh: tanhAVX512, Abs: absAVX512, Square: squareAVX512, LeakyRelu: leakyReluAVX512, Pow: powGo,
	},
	vv:    [binaryCount]func(dst, a, b []float32){Add: addVVAVX512, Sub: subVVAVX512, Mul: mulVVAVX512, Div: divVVAVX512, Max: maxVVAVX512, Min: minVVAVX512},
	vs:    [binaryCount]func(dst, a []float32, b float32){Add: addVSAVX512, Sub: subVSAVX512, Mul: mulVSAVX512, Div: divVSAVX512, Max: maxVSAVX512, Min: minVSAVX512},
	sv:    [binaryCount]func(dst []float32, a float32, b []float32){Add: addSVAVX512, Sub: subSVAVX512, Mul: mulSVAVX512, Div: divSVAVX512, Max: maxSVAVX512, Min: minSVAVX512},
	axpby: axpbyAVX512, bias: biasAVX512, act: actAVX512, reluGrad: reluGradAVX512, eluGrad: eluGradAVX512, leakyGrad: leakyGradAVX512,
	sum: sumAVX512, sumAbs: sumAbsAVX512, max: maxAVX512, min: minAVX512, dot: dotAVX512, sqDist: sqDistAVX512,
	sumExp: sumExpAVX512, expTo: expToAVX512, accExp: accExpAVX512, pairWeights: pairWeightsAVX512, pairNearest: pairNearestAVX512,
	adam: adamAVX512Step,
	spmm: spmmAVX512, scatter: scatterAVX512, sddmm: sddmmAVX512Rows, spmmHead: spmmHeadAVX512, sddmmHead: sddmmHeadAVX512Rows, edgeSoftmax: edgeSoftmaxAVX512, edgeSoftmaxGrad: edgeSoftmaxGradAVX512, reach: reachAVX512, entries: entriesAVX512,
	wide: micro{mr: 14, nr: 32, f: gemmWideAVX512}, narrow: micro{mr: 14, nr: 16, f: gemmNarrowAVX512}, packCols: packColsAVX512, packRows: packRowsAVX2, fetchRows: fetchRowsAVX2,
	uniform: uniformAVX512, normal: normalAVX512, dropout: dropoutAVX512, uniformAt: uniformAtAVX512, uniformPair: uniformPairAVX512,
}

func adamAVX2Step(w, g, m, v []float32, c *adamConst) { adamAVX2(w, g, m, v, &c.decay) }

func spmmAVX2(dst []float32, rowPtr, col, perm []int32, vals, diag, h []float32, f, r0, r1, add, ahead int) {
	switch {
	case vals == nil:
		spmmOnesAVX2(dst, rowPtr, col, perm, vals, diag, h, f, r0, r1, add, ahead)
	case perm == nil:
		spmmValsAVX2(dst, rowPtr, col, perm, vals, diag, h, f, r0, r1, add, ahead)
	default:
		spmmPermAVX2(dst, rowPtr, col, perm, vals, diag, h, f, r0, r1, add, ahead)
	}
}

func sddmmAVX2Rows(dst []float32, rowPtr, col, perm []int32, p, q []float32, f, r0, r1, ahead int) {
	if perm == nil {
		sddmmAVX2(dst, rowPtr, col, perm, p, q, f, r0, r1, ahead)
		return
	}
	sddmmPermAVX2(dst, rowPtr, col, perm, p, q, f, r0, r1, ahead)
}

func adamAVX512Step(w, g, m, v []float32, c *adamConst) { adamAVX512(w, g, m, v, &c.decay) }

func spmmAVX512(dst []float32, rowPtr, col, perm []int32, vals, diag, h []float32, f, r0, r1, add, ahead int) {
	switch {
	case vals == nil:
		spmmOnesAVX512(dst, rowPtr, col, perm, vals, diag, h, f, r0, r1, add, ahead)
	case perm == nil:
		spmmValsAVX512(dst, rowPtr, col, perm, vals, diag, h, f, r0, r1, add, ahead)
	default:
		spmmPermAVX512(dst, rowPtr, col, perm, vals, diag, h, f, r0, r1, add, ahead)
	}
}

func sddmmAVX512Rows(dst []float32, rowPtr, col, perm []int32, p, q []float32, f, r0, r1, ahead int) {
	if perm == nil {
		sddmmAVX512(dst, rowPtr, col, perm, p, q, f, r0, r1, ahead)
		return
	}
	sddmmPermAVX512(dst, rowPtr, col, perm, p, q, f, r0, r1, ahead)
}

func spmmHeadAVX2(dst []float32, rowPtr, col, perm []int32, vals, diag, h []float32, f, ld, heads, r0, r1, add, ahead int) {
	switch {
	case vals == nil:
		spmmHeadGo(dst, rowPtr, col, perm, vals, diag, h, f, ld, heads, r0, r1, add, ahead)
	case perm == nil:
		spmmHeadValsAVX2(dst, rowPtr, col, perm, vals, diag, h, f, ld, heads, r0, r1, add, ahead)
	default:
		spmmHeadPermAVX2(dst, rowPtr, col, perm, vals, diag, h, f, ld, heads, r0, r1, add, ahead)
	}
}

func sddmmHeadAVX2Rows(dst []float32, rowPtr, col, perm []int32, p, q []float32, f, ld, heads, r0, r1, ahead int) {
	if perm == nil {
		sddmmHeadAVX2(dst, rowPtr, col, perm, p, q, f, ld, heads, r0, r1, ahead)
		return
	}
	sddmmHeadPermAVX2(dst, rowPtr, col, perm, p, q, f, ld, heads, r0, r1, ahead)
}

func spmmHeadAVX512(dst []float32, rowPtr, col, perm []int32, vals, diag, h []float32, f, ld, heads, r0, r1, add, ahead int) {
	switch {
	case vals == nil:
		spmmHeadGo(dst, rowPtr, col, perm, vals, diag, h, f, ld, heads, r0, r1, add, ahead)
	case perm == nil:
		spmmHeadValsAVX512(dst, rowPtr, col, perm, vals, diag, h, f, ld, heads, r0, r1, add, ahead)
	default:
		spmmHeadPermAVX512(dst, rowPtr, col, perm, vals, diag, h, f, ld, heads, r0, r1, add, ahead)
	}
}

func sddmmHeadAVX512Rows(dst []float32, rowPtr, col, perm []int32, p, q []float32, f, ld, heads, r0, r1, ahead int) {
	if perm == nil {
		sddmmHeadAVX512(dst, rowPtr, col, perm, p, q, f, ld, heads, r0, r1, ahead)
		return
	}
	sddmmHeadPermAVX512(dst, rowPtr, col, perm, p, q, f, ld, heads, r0, r1, ahead)
}

func edgeSoftmaxAVX2(a, self, e, s, w []float32, rowPtr []int32, heads, r0, r1 int) {
	if w == nil {
		edgeSoftmaxOnesAVX2(a, self, e, s, w, rowPtr, heads, r0, r1)
		return
	}
	edgeSoftmaxValsAVX2(a, self, e, s, w, rowPtr, heads, r0, r1)
}

func edgeSoftmaxAVX512(a, self, e, s, w []float32, rowPtr []int32, heads, r0, r1 int) {
	if w == nil {
		edgeSoftmaxOnesAVX512(a, self, e, s, w, rowPtr, heads, r0, r1)
		return
	}
	edgeSoftmaxValsAVX512(a, self, e, s, w, rowPtr, heads, r0, r1)
}
