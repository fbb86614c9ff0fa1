package kernels

import "math"

// AdamParam is one parameter of an optimizer step: the weights W, their gradient
// G, the first and second moments M and V, all of the same length.
type AdamParam struct {
	W, G, M, V  []float32
	WeightDecay float32
}

// adamConst is what one step needs of the hyper-parameters.
type adamConst struct {
	decay, b1, c1, b2, c2 float32 // c1 = 1−b1, c2 = 1−b2
	step                  float32 // lr/(1−b1^t)
	root                  float32 // 1/√(1−b2^t)
	eps                   float32
}

// AdamStep makes step t (from 1) of Adam in place (Kingma and Ba, "Adam: A Method
// for Stochastic Optimization", ICLR 2015), with the L2 penalty coupled to the
// gradient as torch.optim.Adam has it: g ← G + decay·W; M ← b1·M + (1−b1)·g;
// V ← b2·V + (1−b2)·g²; W ← W − lr/(1−b1^t) · M/(√V/√(1−b2^t) + eps). G is not changed.
func (p *Pool) AdamStep(params []AdamParam, lr, b1, b2, eps float32, t int) {
	c := adamConst{b1: b1, c1: 1 - b1, b2: b2, c2: 1 - b2, eps: eps}
	c.step = float32(float64(lr) / (1 - power(float64(b1), t)))
	c.root = float32(1 / math.Sqrt(1-power(float64(b2), t)))
	chunks := 0
	for i := range params {
		q := &params[i]
		need("AdamStep", "G", len(q.G), len(q.W))
		need("AdamStep", "M", len(q.M), len(q.W))
		need("AdamStep", "V", len(q.V), len(q.W))
		chunks += ceilDiv(len(q.W), elemChunk)
	}
	j := &p.jobs.adam
	if len(j.consts) < p.threads {
		j.consts = make([]adamConst, p.threads)
	}
	j.params, j.c = params, c
	p.run(chunks, j)
	j.params = nil
}

type adamJob struct {
	params []AdamParam
	c      adamConst
	consts []adamConst // one for each thread, with the parameter's own decay
}

func (j *adamJob) do(c, worker int) {
	for i := range j.params {
		q := &j.params[i]
		n := ceilDiv(len(q.W), elemChunk)
		if c >= n {
			c -= n
			continue
		}
		lo := c * elemChunk
		hi := min(lo+elemChunk, len(q.W))
		k := &j.consts[worker]
		*k = j.c
		k.decay = q.WeightDecay
		ks.adam(q.W[lo:hi], q.G[lo:hi], q.M[lo:hi], q.V[lo:hi], k)
		return
	}
}

func adamGo(w, g, m, v []float32, c *adamConst) {
	g, m, v = g[:len(w)], m[:len(w)], v[:len(w)]
	for i, x := range w {
		d := fma32(x, c.decay, g[i])
		m[i] = fma32(d, c.c1, float32(m[i]*c.b1))
		v[i] = fma32(float32(d*d), c.c2, float32(v[i]*c.b2))
		root := fma32(sqrt32(v[i]), c.root, c.eps)
		w[i] = x - float32(m[i]*c.step)/root
	}
}

// power is xⁿ for n ≥ 0 by squaring, the same on every machine.
func power(x float64, n int) float64 {
	y := 1.0
	for ; n > 0; n >>= 1 {
		if n&1 == 1 {
			y = float64(y * x)
		}
		x = float64(x * x)
	}
	return y
}
