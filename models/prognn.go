package models

import "github.com/gsrc-dev/gsrc/ir"

// prognn builds Pro-GNN (Jin et al. 2020), for graphs under attack: the adjacency S is learned
// itself, beside the weights of a graph convolutional network. It is to be near to the data's A,
// sparse, of low rank, and to join nodes of like features:
//
//	‖S − A‖_F + α·‖S‖₁ + β·‖S‖_* + γ·L_GCN + λ·tr(XᵀL̂X),  S = Sᵀ, 0 ≤ S ≤ 1
//
// @joint makes a step of S: one of gradient descent with momentum for the differentiable terms,
// then the proximal operators of β‖S‖_*, which lowers singular values, and of α‖S‖₁, and the
// projection to [0, 1]. The steps between, of @fit, train the network on S.
//
// S is kept of the candidates: the data's edges and those to the candidates.k nearest by
// features. With k = N − 1 it is the whole matrix. As S is symmetric, its singular values are
// its eigenvalues without their signs. Those of the rank largest are lowered, the others
// become 0: a basis of their eigenvectors' span follows S by a step of subspace iteration.
func prognn(o Options) *ir.Module {
	m := ir.NewModule("prognn")
	arch := architecture("gcn")
	e := &prognnModel{Options: o, network: classifier(m, arch, o).(*stack)}

	similarFeatures(m, o)

	b := m.NewFunc("probability") // of S as it begins
	returnProbability(b, b.Arg("old", ir.T(ir.F32, "M")))

	e.begin(m)
	e.joint(m)

	o.refine(m)
	o.fit(m, arch, e.network, (*ir.Builder).DynamicArg, asProbabilities)
	classify(m, o, e.network, &candidates)
	return m
}

type prognnModel struct {
	Options
	network *stack
}

func (e *prognnModel) begin(m *ir.Module) {
	b := m.NewFunc("begin")
	c, old := b.Arg("c", candidates), b.Arg("old", ir.T(ir.F32, "M"))
	b.Return(NextPrefix+"velocity", b.Scale(old, 0))
	if e.ProGNN.Nuclear == 0 {
		return
	}
	q := b.OneTyped("normal", ir.Attrs{"stream": "basis"}, e.basis())
	for range prognnBegin {
		q = orthonormal(b, b.One("spmm", nil, c, old, nil, q), prognnRoot())
	}
	b.Return(NextPrefix+"basis", q)
}

// How many steps of subspace iteration lead to the first basis, and how much of noise is added
// to it in each step, so that directions which S has lost may come back.
const prognnBegin, prognnNoise = 20, 1e-3

func (e *prognnModel) basis() ir.Type { return ir.T(ir.F32, "N", ir.D(e.ProGNN.Rank)) }

// orthonormal returns an orthonormal basis of the columns of z, z·(zᵀz)^-½, by a spectral_map.
func orthonormal(b *ir.Builder, z *ir.Value, how ir.Attrs) *ir.Value {
	gram := b.One("matmul", ir.Attrs{"ta": true}, z, z)
	return b.MatMul(z, b.One("spectral_map", how, gram))
}

// prognnRoot is how a basis of Pro-GNN is made orthonormal.
func prognnRoot() ir.Attrs { return ir.Attrs{"map": "inverse_sqrt", "amount": 1e-6} }

// joint declares a step of S, the argument p, whose entries in both directions are equal.
func (e *prognnModel) joint(m *ir.Module) {
	b, o := m.NewFunc("joint"), e.ProGNN
	x, c, old := b.Arg("x", features(e.Options)), b.Arg("c", candidates), b.Arg("old", ir.T(ir.F32, "M"))
	p, velocity := b.DynamicArg("p", ir.T(ir.F32, "M")), b.DynamicArg("velocity", ir.T(ir.F32, "M"))
	var basis *ir.Value
	if o.Nuclear > 0 {
		basis = b.DynamicArg("basis", e.basis())
	}
	idx, answers := supervision(b, e.Options)
	x = e.prepare(b, e.network, x)

	g := newSymmetric(b, c, p)
	distance := b.Sub(p, old)
	loss := b.One("sqrt", nil, b.One("maximum", nil, b.Sum(b.Mul(distance, distance)), b.Const(1e-12)))

	h := g.gcn(e.network, x, e.dropouts("classifier"))
	xent := crossEntropy(b, labelled(b, h, idx), answers)
	loss = b.Add(loss, b.Scale(xent, o.Classifier))

	if o.Smooth > 0 { // tr(XᵀL̂X) = Σ_i d_i·r_i²·‖x_i‖² − Σ_ij S_ij·r_i·r_j·⟨x_i, x_j⟩, r = (d + 0.001)^-½
		rows := b.One("to_dense", nil, x)
		root := g.root(0.001)
		own := b.Mul(b.Mul(g.degree, b.Mul(root, root)), b.One("reduce_sum", ir.Attrs{"axis": "1"}, b.Mul(rows, rows)))
		joined := b.Mul(b.Mul(p, b.One("sddmm", nil, c, rows, rows)), b.Mul(g.at("dst", root), g.at("src", root)))
		loss = b.Add(loss, b.Scale(b.Sub(b.Sum(own), b.Sum(joined)), o.Smooth))
	}

	next := b.Add(b.Scale(velocity, o.Momentum), b.One("grad", nil, loss, p))
	b.Return("loss", loss)
	b.Return("xent", xent)
	b.Return(NextPrefix+"velocity", next)
	s := b.Sub(p, b.Scale(next, o.LR))
	if o.Nuclear > 0 {
		noise := b.OneTyped("normal", ir.Attrs{"stream": "basis"}, e.basis())
		q := b.Add(basis, b.Scale(noise, prognnNoise))
		q = orthonormal(b, b.One("spmm", nil, c, s, nil, q), prognnRoot())
		small := b.One("matmul", ir.Attrs{"ta": true}, q, b.One("spmm", nil, c, s, nil, q))
		small = b.One("spectral_map", ir.Attrs{"map": "shrink", "amount": o.LR * o.Nuclear}, small)
		s = b.One("sddmm", nil, c, b.MatMul(q, small), q)
		b.Return(NextPrefix+"basis", q)
	}
	s = b.One("maximum", nil, b.Shift(s, -o.LR*o.Sparse), b.Const(0)) // what is below 0 becomes 0
	b.Return(NextPrefix+"p", b.One("minimum", nil, s, b.Const(1)))
}
