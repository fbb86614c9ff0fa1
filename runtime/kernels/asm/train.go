package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// train emits the optimizer step.
func train(s isa) {
	s.begin("adam", "(w, g, m, v []float32, c *float32)", "makes one step of Adam (see adamConst).")
	c := GP64()
	Load(Param("c"), c)
	var k [8]reg.VecVirtual // decay, b1, c1, b2, c2, step, root, eps
	for i := range k {
		k[i] = s.broadcast(Mem{Base: c, Disp: 4 * i})
	}
	p := slices("w", "g", "m", "v")
	s.each(length("w"), 1, func(l lanes, _ int) {
		w, d := l.get(p[0]), l.get(p[1])
		fma(d, w, k[0])
		m := s.mul(l.get(p[2]), k[1])
		fma(m, d, k[2])
		v := s.mul(l.get(p[3]), k[3])
		fma(v, s.mul(d, d), k[4])
		l.put(m, p[2])
		l.put(v, p[3])
		root := s.sqrt(v)
		VFMADD213PS(k[7], k[6], root) // root·k + eps
		l.put(s.sub(w, s.div(s.mul(m, k[5]), root)), p[0])
	})
	s.end()
}
