package kernels

import (
	"fmt"

	"github.com/gsrc-dev/gsrc/rng"
)

// Chain is a list of elementwise steps that run over a strip of some hundred
// elements at a time, so that what one step leaves is in the first-level cache
// when the next reads it: one pass over memory in place of one for each step.
// Each step computes what the kernel of its own would, bit for bit.
//
// A chain is run by [Pool.Elementwise], or over a product by an [Epilogue].
type Chain struct {
	Steps []ChainStep
	// Regs is the number of registers that the steps use, each a strip long.
	Regs int

	// Inputs and Key are set before each run.
	Inputs []ChainInput
	Key    rng.Stream // of the step that draws
}

// ChainInput is an operand of a chain, broadcast to the shape of the result.
type ChainInput struct {
	Data []float32
	Mode BroadcastMode
}

// ChainStep is one operation. Its elements have the numbers of the result's, of
// which random steps draw those of the same number.
type ChainStep struct {
	Kind  StepKind
	Op    int // the UnaryOp, BinaryOp or CompareOp
	Args  [2]ChainArg
	Param float32 // of a UnaryOp; the slope of StepLeakyGrad, the rate of StepDropout
	Dst   int     // register for what the step leaves, or ToResult
}

// ToResult is the destination of a chain's last step.
const ToResult = -1

// StepKind says what a step does.
type StepKind int

// The kinds of steps.
const (
	StepUnary     StepKind = iota
	StepBinary             // of two arguments
	StepCompare            // of two arguments: 1 or 0
	StepReluGrad           // the arguments are those of [Pool.ReluGrad]
	StepEluGrad            // of [Pool.EluGrad]
	StepLeakyGrad          // of [Pool.LeakyReluGrad]
	StepNormal             // of [Pool.Normal], no arguments
	StepUniform            // of [Pool.Uniform], no arguments
	StepDropout            // of [Pool.Dropout]
	StepCopy               // the argument as it is
)

// arity is the number of arguments of each kind.
var arity = [...]int{StepUnary: 1, StepBinary: 2, StepCompare: 2, StepReluGrad: 2, StepEluGrad: 2, StepLeakyGrad: 2, StepDropout: 1, StepCopy: 1}

// ChainArg is what a step reads: an input, a register, a number, or what the
// result holds (the product under an epilogue).
type ChainArg struct {
	Kind  ArgKind
	Index int     // of an input or a register
	Value float32 // a number
}

// ArgKind says what an argument of a step is.
type ArgKind int

// The kinds of arguments.
const (
	ArgInput ArgKind = iota
	ArgReg
	ArgNumber
	ArgResult
)

// chainStrip is the length of a register.
const chainStrip = 1024

// local returns the floats of scratch that a thread needs: the registers, a
// strip for each input that is repeated, and two for draws off their stride.
func (c *Chain) local() int {
	if len(c.Steps) == 0 {
		return 0
	}
	return (c.Regs+len(c.Inputs))*chainStrip + 2*(chainStrip+2*randomUnit)
}

// check panics on inputs that are shorter than the shape of the result.
func (c *Chain) check(kernel string, rows, cols int) {
	for i, x := range c.Inputs {
		if have, want := len(x.Data), x.Mode.size(rows, cols); have < want {
			panic(fmt.Sprintf("kernels: %s: input %d has %d elements, its shape needs %d", kernel, i, have, want))
		}
	}
}

// Elementwise computes the [rows, cols] result of a chain. dst may be an input
// of mode Full.
func (p *Pool) Elementwise(dst []float32, rows, cols int, c *Chain) {
	n := rows * cols
	need("Elementwise", "dst", len(dst), n)
	c.check("Elementwise", rows, cols)
	if n == 0 {
		return
	}
	flat := true
	for i := range c.Inputs {
		x := &c.Inputs[i]
		x.Mode = flatten(x.Mode, rows, cols)
		flat = flat && plain(x.Mode)
	}
	if flat {
		rows, cols = 1, n
	}
	p.scratch(c.local())
	per := rowsPerChunk(cols)
	chunks := ceilDiv(rows, per)
	if flat {
		chunks = ceilDiv(n, elemChunk)
	}
	runJob(p, &p.jobs.chain, chainJob{p: p, c: c, dst: dst[:n], rows: rows, cols: cols, per: per}, chunks)
}

type chainJob struct {
	p          *Pool
	c          *Chain
	dst        []float32
	rows, cols int
	per        int // rows of a chunk
}

func (j *chainJob) do(c, worker int) {
	if j.rows == 1 {
		lo := c * elemChunk
		j.c.block(j.dst, j.cols, 0, 1, lo, min(lo+elemChunk, j.cols), j.p.local[worker])
		return
	}
	j.c.block(j.dst, j.cols, c*j.per, min((c+1)*j.per, j.rows), 0, j.cols, j.p.local[worker])
}

// block runs the chain over rows r0 ≤ r < r1 and columns c0 ≤ c < c1 of a result
// with the given columns.
func (c *Chain) block(dst []float32, cols, r0, r1, c0, c1 int, local []float32) {
	s := strip{c: c, dst: dst, cols: cols, local: local}
	if c0 > 0 || c1 < cols || cols > chainStrip || r1-r0 == 1 {
		for r := r0; r < r1; r++ {
			for k := c0; k < c1; k += chainStrip {
				s.row, s.rows, s.col, s.n = r, 1, k, min(chainStrip, c1-k)
				s.run()
			}
		}
		return
	}
	per := chainStrip / cols
	for i, x := range c.Inputs { // repeated once for all strips
		if x.Mode == RowVector {
			row := s.input(i)
			for k := range min(per, r1-r0) {
				copy(row[k*cols:(k+1)*cols], x.Data)
			}
		}
	}
	for r := r0; r < r1; r += per {
		s.row, s.rows = r, min(per, r1-r)
		s.n = s.rows * cols
		s.run()
	}
}

// strip is a piece of the result that lies in one stretch of memory: whole rows
// or a part of one.
type strip struct {
	c        *Chain
	dst      []float32
	cols     int
	local    []float32
	row, col int // the first element
	rows, n  int
}

func (s *strip) reg(i int) []float32 { return s.local[i*chainStrip:][:s.n] }

// input is the scratch that an input is repeated in.
func (s *strip) input(i int) []float32 { return s.local[(s.c.Regs+i)*chainStrip:][:chainStrip] }

func (s *strip) first() int { return s.row*s.cols + s.col }

func (s *strip) result() []float32 { return s.dst[s.first():][:s.n] }

// arg returns an argument: a vector, or nil and a number.
func (s *strip) arg(a ChainArg) ([]float32, float32) {
	switch a.Kind {
	case ArgReg:
		return s.reg(a.Index), 0
	case ArgNumber:
		return nil, a.Value
	case ArgResult:
		return s.result(), 0
	}
	x := &s.c.Inputs[a.Index]
	switch x.Mode {
	case Full:
		return x.Data[s.first():][:s.n], 0
	case Scalar:
		return nil, x.Data[0]
	case RowVector:
		if s.rows == 1 {
			return x.Data[s.col:][:s.n], 0
		}
		return s.input(a.Index)[:s.n], 0
	}
	if s.rows == 1 {
		return nil, x.Data[s.row]
	}
	return s.input(a.Index)[:s.n], 0
}

// run executes the steps.
func (s *strip) run() {
	if s.rows > 1 {
		for i, x := range s.c.Inputs {
			if x.Mode == ColVector {
				in := s.input(i)
				for r := range s.rows {
					fill(in[r*s.cols:(r+1)*s.cols], x.Data[s.row+r])
				}
			}
		}
	}
	for i := range s.c.Steps {
		st := &s.c.Steps[i]
		d := s.result()
		if st.Dst != ToResult {
			d = s.reg(st.Dst)
		}
		s.step(st, d)
	}
}

func (s *strip) step(st *ChainStep, d []float32) {
	var a, b []float32
	var na, nb float32
	if n := arity[st.Kind]; n > 0 {
		a, na = s.arg(st.Args[0])
		if n > 1 {
			b, nb = s.arg(st.Args[1])
		}
	}
	if st.Kind == StepBinary {
		switch {
		case a != nil && b != nil:
			ks.vv[st.Op](d, a, b)
		case a != nil:
			ks.vs[st.Op](d, a, nb)
		case b != nil:
			ks.sv[st.Op](d, na, b)
		default:
			fill(d, na)
			ks.vs[st.Op](d, d, nb)
		}
		return
	}
	switch st.Kind {
	case StepNormal, StepUniform:
		s.draw(st, d, nil)
		return
	}
	// The others read vectors. Numbers are rare: their arguments are, as a rule,
	// what a step before left.
	if a == nil {
		a = s.spare()[:s.n]
		fill(a, na)
	}
	if b == nil && arity[st.Kind] == 2 {
		b = s.spare()[chainStrip:][:s.n]
		fill(b, nb)
	}
	switch st.Kind {
	case StepCompare:
		compareTo(CompareOp(st.Op), d, a, b, 1, 1)
	case StepReluGrad:
		ks.reluGrad(d, a, b)
	case StepEluGrad:
		ks.eluGrad(d, a, b)
	case StepLeakyGrad:
		ks.leakyGrad(d, a, b, st.Param)
	case StepUnary:
		j := elemJob{kind: elemUnary, op: st.Op, dst: d, a: a, b: a, s: st.Param, n: 1, cols: s.n, per: 1}
		if UnaryOp(st.Op) == Pow {
			j.power(st.Param)
		}
		j.do(0, 0)
	case StepDropout:
		if st.Param <= 0 {
			copy(d, a)
			return
		}
		s.draw(st, d, a)
	case StepCopy:
		copy(d, a)
	}
}

// spare is the scratch behind the registers and inputs, two strips and more.
func (s *strip) spare() []float32 { return s.local[(s.c.Regs+len(s.c.Inputs))*chainStrip:] }

// draw runs a random step. Draws come in blocks of four, and loops make whole
// units of them: where the strip does not fit, a longer one is drawn and cut.
func (s *strip) draw(st *ChainStep, d, x []float32) {
	first := s.first()
	j := randomJob{key: s.c.Key}
	switch st.Kind {
	case StepNormal:
		j.draw = ks.normal
	case StepUniform:
		j.draw = ks.uniform
	default:
		j.rate, j.scale = dropoutScale(st.Param)
	}
	if first%4 == 0 && s.n%randomUnit == 0 {
		j.fill(d, x, first)
		return
	}
	skip := first % 4
	padded := ceilDiv(skip+s.n, randomUnit) * randomUnit
	spare := s.spare()
	tmp := spare[:padded]
	if x != nil {
		in := spare[chainStrip+2*randomUnit:][:padded]
		copy(in[skip:], x)
		x = in
	}
	j.fill(tmp, x, first-skip)
	copy(d, tmp[skip:])
}
