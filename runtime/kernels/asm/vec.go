package main

import (
	"fmt"
	"math"

	"github.com/mmcloughlin/avo/attr"
	. "github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/gotypes"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// isa is one instruction set.
type isa struct {
	name  string // suffix of the routines
	lanes int    // float32 in a vector
}

var isas = []isa{{"AVX2", 8}, {"AVX512", 16}}

func (s isa) wide() bool { return s.lanes == 16 }
func (s isa) bytes() int { return 4 * s.lanes }

// begin starts a routine; args is its Go signature after "func".
func (s isa) begin(name, args, doc string) {
	s.beginFrame(name, args, doc, NOSPLIT)
}

// beginFrame is begin for a routine with local variables, whose stack may have to
// grow first.
func (s isa) beginFrame(name, args, doc string, flags attr.Attribute) {
	TEXT(name+s.name, flags, "func"+args)
	Doc(name + s.name + " " + doc)
	Pragma("noescape")
}

func (s isa) end() {
	VZEROUPPER()
	RET()
}

// vec returns a fresh vector register.
func (s isa) vec() reg.VecVirtual {
	if s.wide() {
		return ZMM()
	}
	return YMM()
}

var tables = map[string]Mem{}

// table returns constant data of a name, which fill writes when it is first asked for.
func table(name string, fill func()) Mem {
	if _, ok := tables[name]; !ok {
		tables[name] = GLOBL(name, attr.RODATA|attr.NOPTR)
		fill()
	}
	return tables[name]
}

// constants begin the names of what bits returns.
const constants = "lanes_"

// bits returns a constant of equal 32-bit lanes in memory.
func bits(b uint32) Mem {
	return table(fmt.Sprintf("%s%08x", constants, b), func() {
		for i := range 8 {
			DATA(4*i, U32(b))
		}
	})
}

// num returns a float32 constant in every lane.
func num(v float64) Mem { return bits(math.Float32bits(float32(v))) }

// Arithmetic in fresh registers. The second operand may be in memory.

func (s isa) op(f func(...Op), a, b Op) reg.VecVirtual {
	r := s.vec()
	f(b, a, r)
	return r
}

func (s isa) add(a, b Op) reg.VecVirtual { return s.op(VADDPS, a, b) }
func (s isa) sub(a, b Op) reg.VecVirtual { return s.op(VSUBPS, a, b) }
func (s isa) mul(a, b Op) reg.VecVirtual { return s.op(VMULPS, a, b) }
func (s isa) div(a, b Op) reg.VecVirtual { return s.op(VDIVPS, a, b) }

// hi and lo are the larger and smaller of two; where either is NaN the result
// is b.
func (s isa) hi(a, b Op) reg.VecVirtual { return s.op(VMAXPS, a, b) }
func (s isa) lo(a, b Op) reg.VecVirtual { return s.op(VMINPS, a, b) }

func (s isa) addi(a, b Op) reg.VecVirtual { return s.op(VPADDD, a, b) }
func (s isa) subi(a, b Op) reg.VecVirtual { return s.op(VPSUBD, a, b) }

func (s isa) and(a, b Op) reg.VecVirtual {
	if s.wide() {
		return s.op(VPANDD, a, b)
	}
	return s.op(three(VPAND), a, b)
}

func (s isa) xor(a, b Op) reg.VecVirtual {
	if s.wide() {
		return s.op(VPXORD, a, b)
	}
	return s.op(three(VPXOR), a, b)
}

func (s isa) or(a, b Op) reg.VecVirtual {
	if s.wide() {
		return s.op(VPORD, a, b)
	}
	return s.op(three(VPOR), a, b)
}

// three adapts an instruction that avo knows in one form only.
func three(f func(a, b, c Op)) func(...Op) {
	return func(o ...Op) { f(o[0], o[1], o[2]) }
}

func (s isa) shift(f func(...Op), a Op, n int) reg.VecVirtual {
	r := s.vec()
	f(U8(n), a, r)
	return r
}

func (s isa) unary(f func(...Op), a Op) reg.VecVirtual {
	r := s.vec()
	f(a, r)
	return r
}

func (s isa) sqrt(a Op) reg.VecVirtual { return s.unary(VSQRTPS, a) }

// load copies a vector from memory (or a register) to a fresh register.
func (s isa) load(m Op) reg.VecVirtual { return s.unary(VMOVUPS, m) }

// zero returns a vector of zeros.
func (s isa) zero() reg.VecVirtual {
	r := s.vec()
	s.clear(r)
	return r
}

func (s isa) clear(r reg.VecVirtual) {
	if s.wide() {
		VPXORD(r, r, r)
	} else {
		VXORPS(r, r, r)
	}
}

// fma adds a·b to acc in place.
func fma(acc, a, b Op) { VFMADD231PS(b, a, acc) }

// horner evaluates a polynomial in x, highest coefficient first.
func (s isa) horner(x Op, coefs ...float64) reg.VecVirtual {
	y := s.load(num(coefs[0]))
	for _, c := range coefs[1:] {
		VFMADD213PS(num(c), x, y) // y = x·y + c
	}
	return y
}

// estrin evaluates a polynomial in x, lowest coefficient first: pairs of terms, then
// by powers of x², which halves the chain of dependent operations.
func (s isa) estrin(x Op, coefs ...float64) reg.VecVirtual {
	x2 := s.mul(x, x)
	var y reg.VecVirtual
	for i := (len(coefs) - 1) / 2 * 2; i >= 0; i -= 2 {
		pair := s.load(num(coefs[min(i+1, len(coefs)-1)]))
		if i+1 < len(coefs) {
			VFMADD213PS(num(coefs[i]), x, pair) // pair = x·pair + coefs[i]
		}
		if y != nil {
			fma(pair, x2, y)
		}
		y = pair
	}
	return y
}

// round returns the nearest integers, even at ties.
func (s isa) round(x Op) reg.VecVirtual {
	r := s.vec()
	if s.wide() {
		VRNDSCALEPS(U8(0), x, r)
	} else {
		VROUNDPS(U8(0), x, r)
	}
	return r
}

// broadcast fills a fresh vector with one float32 of memory.
func (s isa) broadcast(m Op) reg.VecVirtual { return s.unary(VBROADCASTSS, m) }

// param fills a fresh vector with a float32 parameter.
func (s isa) param(name string) reg.VecVirtual {
	return s.broadcast(address(name))
}

// truth is a condition for each lane: a vector of all-one or all-zero lanes in
// AVX2, a mask register in AVX-512.
type truth struct {
	v reg.VecVirtual
	k reg.OpmaskVirtual
}

// Predicates of VCMPPS.
const (
	less         = 1
	unordered    = 3
	notEqual     = 4 // or unordered
	greaterEqual = 13
	greater      = 14
)

// compare returns a pred b.
func (s isa) compare(pred int, a, b Op) truth {
	if s.wide() {
		k := K()
		VCMPPS(U8(pred), b, a, k)
		return truth{k: k}
	}
	v := YMM()
	VCMPPS(U8(pred), b, a, v)
	return truth{v: v}
}

// choose returns yes where t holds, else no. yes may be in memory.
func (s isa) choose(t truth, yes, no Op) reg.VecVirtual {
	r := s.vec()
	if s.wide() {
		VBLENDMPS(yes, no, t.k, r)
	} else {
		VBLENDVPS(t.v, yes, no, r)
	}
	return r
}

// keep returns x where t holds, else 0.
func (s isa) keep(t truth, x Op) reg.VecVirtual {
	r := s.vec()
	if s.wide() {
		VMOVUPS_Z(x, t.k, r)
	} else {
		VANDPS(x, t.v, r)
	}
	return r
}

// lanes walks vectors of equal length by a common byte offset.
type lanes struct {
	isa
	at   reg.GPVirtual // byte offset
	off  int           // further offset, of unrolled bodies
	tail *truth        // which lanes exist, in the last, partial vector
}

func (l lanes) mem(p reg.GPVirtual) Mem { return Mem{Base: p, Index: l.at, Scale: 1, Disp: l.off} }

// get loads the vector at p; lanes that do not exist are 0.
func (l lanes) get(p reg.GPVirtual) reg.VecVirtual {
	r := l.vec()
	switch {
	case l.tail == nil:
		VMOVUPS(l.mem(p), r)
	case l.wide():
		VMOVUPS_Z(l.mem(p), l.tail.k, r)
	default:
		VMASKMOVPS(l.mem(p), l.tail.v, r)
	}
	return r
}

// put stores a vector at p.
func (l lanes) put(v reg.VecVirtual, p reg.GPVirtual) {
	switch {
	case l.tail == nil:
		VMOVUPS(v, l.mem(p))
	case l.wide():
		VMOVUPS(v, l.tail.k, l.mem(p))
	default:
		VMASKMOVPS(v, l.tail.v, l.mem(p))
	}
}

// only replaces lanes that do not exist.
func (l lanes) only(v reg.VecVirtual, other Op) reg.VecVirtual {
	if l.tail == nil {
		return v
	}
	return l.choose(*l.tail, v, other)
}

var labels int

// label returns a fresh label.
func label(what string) string {
	labels++
	return fmt.Sprintf("%s%d", what, labels)
}

// each emits body for all n elements: a loop over unroll vectors at a time, one
// over single vectors, and the rest under a mask. body gets the number of its
// vector within the unrolled loop (0 in the others). n is used up.
func (s isa) each(n reg.GPVirtual, unroll int, body func(l lanes, u int)) {
	at := GP64()
	XORQ(at, at)
	s.whole(n, at, unroll, 1, body)
	end := label("end")
	TESTQ(n, n)
	JZ(LabelRef(end))
	t := s.first(n)
	body(lanes{isa: s, at: at, tail: &t}, 0)
	Label(end)
}

// whole emits body for as many of the n elements from at on as fill several vectors, then for those
// that fill few.
func (s isa) whole(n, at reg.GPVirtual, several, few int, body func(l lanes, v int)) {
	for _, vectors := range []int{several, few} {
		top, done := label("loop"), label("done")
		Label(top)
		CMPQ(n, U32(uint32(vectors*s.lanes)))
		JL(LabelRef(done))
		for i := range vectors {
			body(lanes{isa: s, at: at, off: i * s.bytes()}, i)
		}
		ADDQ(U32(uint32(vectors*s.bytes())), at)
		SUBQ(U32(uint32(vectors*s.lanes)), n)
		JMP(LabelRef(top))
		Label(done)
		if several == few {
			return
		}
	}
}

// first returns the truth of the first n lanes, 0 ≤ n < lanes.
func (s isa) first(n reg.GPVirtual) truth {
	p := GP64()
	if s.wide() {
		m := table("first_lanes_masks", func() {
			for i := range 16 {
				DATA(2*i, U16(1<<i-1))
			}
		})
		LEAQ(m, p)
		k := K()
		KMOVW(Mem{Base: p, Index: n, Scale: 2}, k)
		return truth{k: k}
	}
	m := table("first_lanes", func() {
		for i := range 16 {
			v := U32(0)
			if i < 8 {
				v = math.MaxUint32
			}
			DATA(4*i, v)
		}
	})
	// The window of 8 lanes that begins n before the end of the ones.
	q, v := GP64(), YMM()
	LEAQ(m.Offset(32), p)
	MOVQ(n, q)
	NEGQ(q)
	VMOVDQU(Mem{Base: p, Index: q, Scale: 4}, v)
	return truth{v: v}
}

// slices loads the base pointers of slice parameters.
func slices(names ...string) []reg.GPVirtual {
	p := make([]reg.GPVirtual, len(names))
	for i, n := range names {
		p[i] = GP64()
		Load(Param(n).Base(), p[i])
	}
	return p
}

func length(name string) reg.GPVirtual {
	n := GP64()
	Load(Param(name).Len(), n)
	return n
}

// address returns where a parameter lies, base where the first element of a slice, and count
// its length.
func address(name string) Mem { return resolved(Param(name)) }
func base(name string) Mem    { return resolved(Param(name).Base()) }
func count(name string) Mem   { return resolved(Param(name).Len()) }

func resolved(c gotypes.Component) Mem {
	b, err := c.Resolve()
	if err != nil {
		panic(err)
	}
	return b.Addr
}

func integer(name string) reg.GPVirtual {
	n := GP64()
	Load(Param(name), n)
	return n
}

// strips emits body for all n elements of a sum over 16·unroll lanes: as long as
// there are that many a loop over all lanes, then one over the first 16, then the
// rest of less than 16. body gets the vector of lanes it adds to. n is used up.
func (s isa) strips(n reg.GPVirtual, unroll int, body func(l lanes, v int)) {
	at := GP64()
	XORQ(at, at)
	s.whole(n, at, 16*unroll/s.lanes, 16/s.lanes, body)
	end := label("end")
	tail := func(v int) {
		TESTQ(n, n)
		JZ(LabelRef(end))
		t := s.first(n)
		body(lanes{isa: s, at: at, tail: &t}, v)
	}
	if !s.wide() {
		short := label("short")
		CMPQ(n, U32(uint32(s.lanes)))
		JL(LabelRef(short))
		body(lanes{isa: s, at: at}, 0)
		ADDQ(U32(uint32(s.bytes())), at)
		SUBQ(U32(uint32(s.lanes)), n)
		tail(1)
		JMP(LabelRef(end))
		Label(short)
	}
	tail(0)
	Label(end)
}

// strands returns the accumulators of 16·n lanes, all 0.
func (s isa) strands(n int) []reg.VecVirtual {
	acc := make([]reg.VecVirtual, 16*n/s.lanes)
	for i := range acc {
		acc[i] = s.zero()
	}
	return acc
}

// join adds accumulators of 16 lanes each in pairs and returns 8 lanes, each the
// sum of two that are 8 apart.
func (s isa) join(acc []reg.VecVirtual) reg.VecVirtual {
	per := 16 / s.lanes
	for len(acc) > per {
		var half []reg.VecVirtual
		for i := 0; i < len(acc); i += 2 * per {
			for v := range per {
				half = append(half, s.add(acc[i+v], acc[i+per+v]))
			}
		}
		acc = half
	}
	if s.wide() {
		return s.halves(acc[0], VADDPS)
	}
	return s.add(acc[0], acc[1])
}

// halves combines the halves of v, 16 lanes wide.
func (s isa) halves(v reg.VecVirtual, f func(...Op)) reg.VecVirtual {
	h, r := YMM(), YMM()
	VEXTRACTF64X4(U8(1), v, h)
	f(h, v.AsY(), r)
	return r
}

// neighbours combines 8 lanes into lane 0 of an XMM register: pairs of neighbours,
// pairs of those, then the halves.
func (s isa) neighbours(v reg.VecVirtual, f func(...Op)) reg.VecVirtual {
	for _, order := range []uint8{0xb1, 0x4e} {
		t, r := YMM(), YMM()
		VSHUFPS(U8(order), v, v, t)
		f(t, v, r)
		v = r
	}
	h, x := XMM(), XMM()
	VEXTRACTF128(U8(1), v, h)
	f(h, v.AsX(), x)
	return x
}

// fold combines all lanes of v into lane 0 of an XMM register.
func (s isa) fold(v reg.VecVirtual, f func(...Op)) reg.VecVirtual {
	if s.wide() {
		v = s.halves(v, f)
	}
	return s.neighbours(v, f)
}
