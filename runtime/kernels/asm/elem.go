package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// elem emits the elementwise routines.
func elem(s isa) {
	unary := func(name, doc string, f func(x reg.VecVirtual) reg.VecVirtual) {
		s.begin(name, "(dst, x []float32, c float32)", "computes "+doc+".")
		p := slices("dst", "x")
		s.each(length("x"), 1, func(l lanes, _ int) { l.put(f(l.get(p[1])), p[0]) })
		s.end()
	}
	unary("neg", "dst = -x", func(x reg.VecVirtual) reg.VecVirtual { return s.xor(x, bits(1<<31)) })
	unary("exp", "dst = exp(x)", func(x reg.VecVirtual) reg.VecVirtual { return s.expFull(x) })
	unary("log", "dst = log(x)", s.log)
	unary("sqrt", "dst = sqrt(x)", func(x reg.VecVirtual) reg.VecVirtual { return s.sqrt(x) })
	unary("rsqrt", "dst = 1/sqrt(x)", func(x reg.VecVirtual) reg.VecVirtual { return s.div(s.load(num(1)), s.sqrt(x)) })
	unary("sigmoid", "dst = 1/(1+exp(-x))", func(x reg.VecVirtual) reg.VecVirtual { return s.sigmoid(x) })
	unary("relu", "dst = max(x, 0)", func(x reg.VecVirtual) reg.VecVirtual { return s.relu(x) })
	unary("elu", "dst = x where x > 0, else exp(x)-1", s.elu)
	unary("tanh", "dst = tanh(x)", func(x reg.VecVirtual) reg.VecVirtual { return s.tanh(x) })
	unary("abs", "dst = |x|", func(x reg.VecVirtual) reg.VecVirtual { return s.and(x, bits(1<<31-1)) })
	unary("square", "dst = x*x", func(x reg.VecVirtual) reg.VecVirtual { return s.mul(x, x) })

	s.begin("leakyRelu", "(dst, x []float32, c float32)", "computes dst = x where x >= 0, else c*x.")
	slope, p := s.param("c"), slices("dst", "x")
	s.each(length("x"), 1, func(l lanes, _ int) {
		x := l.get(p[1])
		l.put(s.choose(s.compare(less, x, s.zero()), s.mul(x, slope), x), p[0])
	})
	s.end()

	for _, b := range []struct {
		name string
		f    func(a, b Op) reg.VecVirtual
	}{{"add", s.add}, {"sub", s.sub}, {"mul", s.mul}, {"div", s.div}, {"max", s.pick(s.hi)}, {"min", s.pick(s.lo)}} {
		s.begin(b.name+"VV", "(dst, a, b []float32)", "computes dst = "+b.name+"(a, b).")
		p := slices("dst", "a", "b")
		s.each(length("a"), 1, func(l lanes, _ int) { l.put(b.f(l.get(p[1]), l.get(p[2])), p[0]) })
		s.end()

		s.begin(b.name+"VS", "(dst, a []float32, b float32)", "computes dst = "+b.name+"(a, b) for a number b.")
		c, p := s.param("b"), slices("dst", "a")
		s.each(length("a"), 1, func(l lanes, _ int) { l.put(b.f(l.get(p[1]), c), p[0]) })
		s.end()

		s.begin(b.name+"SV", "(dst []float32, a float32, b []float32)", "computes dst = "+b.name+"(a, b) for a number a.")
		c, p = s.param("a"), slices("dst", "b")
		s.each(length("b"), 1, func(l lanes, _ int) { l.put(b.f(c, l.get(p[1])), p[0]) })
		s.end()
	}

	s.begin("axpby", "(dst, x []float32, a, b float32)", "computes dst = a*x + b*dst.")
	a, b, p := s.param("a"), s.param("b"), slices("dst", "x")
	s.each(length("x"), 1, func(l lanes, _ int) {
		y := s.mul(l.get(p[0]), b)
		fma(y, l.get(p[1]), a)
		l.put(y, p[0])
	})
	s.end()

	s.begin("bias", "(dst, bias []float32, act int)", "computes dst = act(dst + bias).")
	p = slices("dst", "bias")
	s.activate(func(f func(reg.VecVirtual) reg.VecVirtual) {
		s.each(length("dst"), 1, func(l lanes, _ int) { l.put(f(s.add(l.get(p[0]), l.get(p[1]))), p[0]) })
	})

	s.begin("act", "(dst []float32, act int)", "computes dst = act(dst).")
	p = slices("dst")
	s.activate(func(f func(reg.VecVirtual) reg.VecVirtual) {
		s.each(length("dst"), 1, func(l lanes, _ int) { l.put(f(l.get(p[0])), p[0]) })
	})

	s.begin("reluGrad", "(dst, y, dy []float32)", "computes dst = dy where y > 0, else 0.")
	p = slices("dst", "y", "dy")
	s.each(length("y"), 1, func(l lanes, _ int) {
		l.put(s.keep(s.compare(greater, l.get(p[1]), s.zero()), l.get(p[2])), p[0])
	})
	s.end()

	s.begin("eluGrad", "(dst, y, dy []float32)", "computes dst = dy where y > 0, else dy*(y+1).")
	p = slices("dst", "y", "dy")
	s.each(length("y"), 1, func(l lanes, _ int) {
		y, d := l.get(p[1]), l.get(p[2])
		l.put(s.choose(s.compare(greater, y, s.zero()), d, s.mul(d, s.add(y, num(1)))), p[0])
	})
	s.end()

	s.begin("leakyGrad", "(dst, x, dy []float32, slope float32)", "computes dst = dy where x > 0, else slope*dy.")
	slope = s.param("slope")
	p = slices("dst", "x", "dy")
	s.each(length("x"), 1, func(l lanes, _ int) {
		d := l.get(p[2])
		l.put(s.choose(s.compare(greater, l.get(p[1]), s.zero()), d, s.mul(d, slope)), p[0])
	})
	s.end()
}

// pick makes the larger or smaller of two numbers NaN where either is.
func (s isa) pick(f func(a, b Op) reg.VecVirtual) func(a, b Op) reg.VecVirtual {
	return func(a, b Op) reg.VecVirtual {
		return s.choose(s.compare(unordered, a, a), a, f(a, b))
	}
}

// activate emits loop once for each activation and jumps by parameter act to the
// one that is asked for. It ends the routine.
func (s isa) activate(loop func(f func(reg.VecVirtual) reg.VecVirtual)) {
	act := integer("act")
	relu, elu := label("relu"), label("elu")
	CMPQ(act, U8(1))
	JE(LabelRef(relu))
	JG(LabelRef(elu))
	loop(func(x reg.VecVirtual) reg.VecVirtual { return x })
	s.end()
	Label(relu)
	loop(func(x reg.VecVirtual) reg.VecVirtual { return s.relu(x) })
	s.end()
	Label(elu)
	loop(s.elu)
	s.end()
}
