package kernels

// LeakyReluGrad computes dst = dy where x > 0, else slope·dy; x is the input of
// the LeakyRelu function. dst may be x or dy.
func (p *Pool) LeakyReluGrad(dst, x, dy []float32, slope float32) {
	p.runElem("LeakyReluGrad", &elemJob{kind: elemLeakyGrad, dst: dst, a: x, b: dy, s: slope}, 1, len(x))
}

// leakyGrad is the gradient of leaky_relu for elements at the strides sx and sy.
func leakyGrad(dst, x, dy []float32, sx, sy int, slope float32) {
	if sx == 1 && sy == 1 {
		ks.leakyGrad(dst, x[:len(dst)], dy[:len(dst)], slope)
		return
	}
	leakyGradAt(dst, x, dy, sx, sy, slope)
}

func leakyGradGo(dst, x, dy []float32, slope float32) { leakyGradAt(dst, x, dy, 1, 1, slope) }

func leakyGradAt(dst, x, dy []float32, sx, sy int, slope float32) {
	for i := range dst {
		v := dy[i*sy]
		if !(x[i*sx] > 0) {
			v *= slope
		}
		dst[i] = v
	}
}
