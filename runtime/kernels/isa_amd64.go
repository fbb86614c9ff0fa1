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
	spmm: spmmBy(spmmOnesAVX2, spmmValsAVX2, spmmPermAVX2), scatter: scatterAVX2, sddmm: sddmmBy(sddmmAVX2, sddmmPermAVX2),
	spmmHead: spmmHeadBy(spmmHeadGo, spmmHeadValsAVX2, spmmHeadPermAVX2), sddmmHead: sddmmHeadBy(sddmmHeadAVX2, sddmmHeadPermAVX2),
	edgeSoftmax: edgeSoftmaxBy(edgeSoftmaxOnesAVX2, edgeSoftmaxValsAVX2), edgeSoftmaxGrad: edgeSoftmaxGradAVX2, reach: reachAVX2, entries: entriesAVX2, codeDots: codeDotsAVX2,
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
	spmm: spmmBy(spmmOnesAVX512, spmmValsAVX512, spmmPermAVX512), scatter: scatterAVX512, sddmm: sddmmBy(sddmmAVX512, sddmmPermAVX512),
	spmmHead: spmmHeadBy(spmmHeadGo, spmmHeadValsAVX512, spmmHeadPermAVX512), sddmmHead: sddmmHeadBy(sddmmHeadAVX512, sddmmHeadPermAVX512),
	edgeSoftmax: edgeSoftmaxBy(edgeSoftmaxOnesAVX512, edgeSoftmaxValsAVX512), edgeSoftmaxGrad: edgeSoftmaxGradAVX512, reach: reachAVX512, entries: entriesAVX512, codeDots: codeDotsAVX2,
	wide: micro{mr: 14, nr: 32, f: gemmWideAVX512}, narrow: micro{mr: 14, nr: 16, f: gemmNarrowAVX512}, packCols: packColsAVX512, packRows: packRowsAVX2, fetchRows: fetchRowsAVX2,
	uniform: uniformAVX512, normal: normalAVX512, dropout: dropoutAVX512, uniformAt: uniformAtAVX512, uniformPair: uniformPairAVX512,
}

func adamAVX2Step(w, g, m, v []float32, c *adamConst) { adamAVX2(w, g, m, v, &c.decay) }

func adamAVX512Step(w, g, m, v []float32, c *adamConst) { adamAVX512(w, g, m, v, &c.decay) }

// The assembly has a loop for each way in which entries find their values: all are 1, they are in
// the order of the entries, or perm says where they are. What follows chooses one in each call.

func spmmBy(ones, vals, perm spmmFunc) spmmFunc {
	return func(dst []float32, rowPtr, col, at []int32, v, diag, h []float32, f, r0, r1, add, ahead int) {
		either(v == nil, ones, either(at == nil, vals, perm))(dst, rowPtr, col, at, v, diag, h, f, r0, r1, add, ahead)
	}
}

func spmmHeadBy(ones, vals, perm spmmHeadFunc) spmmHeadFunc {
	return func(dst []float32, rowPtr, col, at []int32, v, diag, h []float32, f, ld, heads, r0, r1, add, ahead int) {
		either(v == nil, ones, either(at == nil, vals, perm))(dst, rowPtr, col, at, v, diag, h, f, ld, heads, r0, r1, add, ahead)
	}
}

func sddmmBy(vals, perm sddmmFunc) sddmmFunc {
	return func(dst []float32, rowPtr, col, at []int32, p, q []float32, f, r0, r1, ahead int) {
		either(at == nil, vals, perm)(dst, rowPtr, col, at, p, q, f, r0, r1, ahead)
	}
}

func sddmmHeadBy(vals, perm sddmmHeadFunc) sddmmHeadFunc {
	return func(dst []float32, rowPtr, col, at []int32, p, q []float32, f, ld, heads, r0, r1, ahead int) {
		either(at == nil, vals, perm)(dst, rowPtr, col, at, p, q, f, ld, heads, r0, r1, ahead)
	}
}

func edgeSoftmaxBy(ones, vals edgeSoftmaxFunc) edgeSoftmaxFunc {
	return func(a, self, e, s, w []float32, rowPtr []int32, heads, r0, r1 int) {
		either(w == nil, ones, vals)(a, self, e, s, w, rowPtr, heads, r0, r1)
	}
}

func either[F any](first bool, a, b F) F {
	if first {
		return a
	}
	return b
}
