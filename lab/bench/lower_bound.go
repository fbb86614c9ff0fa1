package bench

// StepSize is what decides the work of one ECL pre-training step with its noise in
// the row space of the first weight.
type StepSize struct {
	Nodes   int // n
	Struct  int // dense columns of the attributes; the sparse ones cost next to nothing
	Width   int // F, of encoder and projector
	Layers  int // of the encoder
	Anchors int // B
	Steps   int // K, of the Langevin sampler
}

// Work is a number of operations.
type Work struct {
	Flops float64 `json:"flops"` // of matrix products
	Exps  float64 `json:"exps"`  // exponentials
}

// LowerBound counts what a step has to do at least. Everything but the following is
// left out, as small beside it: sparse features and the graph's sums, noise,
// elementwise operations, Adam.
//
//   - The dense half of X·W and its gradient, once each: 2·2·n·Struct·F.
//   - 3 + K passes through encoder and projector: two views, K energies, the
//     negatives. A pass multiplies n×F by F×F in each layer after the first, and
//     B×F by F×F twice in the projector. The backward pass of an energy has one
//     product for each of these, that of the other three passes two (the weights'
//     gradient too).
//   - 6 + 2K products of B×F by F×B: the views' distances to each other and the
//     negatives' (three each, two of them backward), and an energy's forward and
//     backward. The distances within each view are not counted.
//   - 4 + K times B² exponentials: of the views' three distance matrices, the
//     negatives' and the energies'.
//
// For n = 2708, Struct = 1433, F = 128, three layers, B = 512 and K = 3 these are
// 5.9 GFLOP. A program that computes only the rows that reach the anchors can do
// with less.
func LowerBound(s StepSize) Work {
	n, d, f, b, k := float64(s.Nodes), float64(s.Struct), float64(s.Width), float64(s.Anchors), float64(s.Steps)
	pass := float64(s.Layers-1)*2*n*f*f + 2*2*b*f*f
	products := (3 + k) + k + 2*3 // forward, backward of the energies, of the others
	return Work{
		Flops: 2*2*n*d*f + products*pass + (6+2*k)*2*b*b*f,
		Exps:  (4 + k) * b * b,
	}
}

// Milliseconds is how long the work takes at this machine's rates.
func (w Work) Milliseconds(l *Roofline) float64 {
	if l == nil || l.MatMul == 0 || l.Exp == 0 {
		return 0
	}
	return w.Flops/(l.MatMul*1e6) + w.Exps/(l.Exp*1e6)
}
