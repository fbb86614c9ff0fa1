package kernels

// splitJob is a product aᵀ·b of few rows and columns and a long inner dimension, as
// the gradient of a square weight is. There are too few blocks of the result to go
// round, and each would read all of a and b; so the inner dimension is cut into
// pieces, as many whatever the threads, whose products are added in their order.
type splitJob struct {
	p         *Pool
	dst, a, b []float32
	m, k, n   int
	epi       Epilogue
	mk        micro
	pieces    int
	per       int // k of a piece
	rows, ldc int // size of a partial product
	ldA       int
	partial   []float32
	adding    bool
}

const (
	splitMost   = 256 // rows and columns
	splitLeast  = 512 // inner dimension
	splitPieces = 8
)

// splits reports whether a product is cut so.
func splits(m, k, n int, transA, transB bool) bool {
	return transA && !transB && max(m, n) <= splitMost && k >= splitLeast
}

func (p *Pool) splitMatMul(dst, a, b []float32, m, k, n int, epi Epilogue) {
	j := &p.jobs.split
	*j = splitJob{p: p, dst: dst, a: a, b: b, m: m, k: k, n: n, epi: epi}
	j.divide()
	j.partial = grow(&p.packB, j.partialLen())
	p.scratch(max(j.localLen(), epi.scratch()))
	p.run(j.pieces, j)
	j.adding = true
	p.run(ceilDiv(m, splitRows), j)
	*j = splitJob{}
}

// divide cuts the inner dimension.
func (j *splitJob) divide() {
	j.mk = ks.wide
	j.pieces = min(splitPieces, j.k/128)
	j.per = ceilDiv(j.k, j.pieces)
	j.rows, j.ldc = ceilDiv(j.m, j.mk.mr)*j.mk.mr, ceilDiv(j.n, j.mk.nr)*j.mk.nr
	j.ldA = ceilDiv(j.m, 16)*16 + 16 // whole lines, and no power of two
}

// partialLen is the length of the partial products, localLen that of each thread's
// copies of a and b.
func (j *splitJob) partialLen() int { return j.pieces * j.rows * j.ldc }

func (j *splitJob) localLen() int { return kcTransposed*(j.ldA+j.mk.nr) + j.mk.mr + spill }

const splitRows = 8 // rows of a chunk when partial products are added

func (j *splitJob) do(c, worker int) {
	if j.adding {
		r0, r1 := c*splitRows, min((c+1)*splitRows, j.m)
		for r := r0; r < r1; r++ {
			j.add(r)
		}
		j.epi.finish(j.dst, j.n, r0, r1, 0, j.n, j.p.local[worker])
		return
	}
	nr := j.mk.nr
	out := j.partial[c*j.rows*j.ldc:]
	left := j.p.local[worker]
	right := left[kcTransposed*j.ldA+j.mk.mr:]
	end := min((c+1)*j.per, j.k)
	for k0 := c * j.per; k0 < end; k0 += kcTransposed {
		kc := min(kcTransposed, end-k0)
		for k := range kc {
			copy(left[k*j.ldA:], j.a[(k0+k)*j.m:(k0+k+1)*j.m])
		}
		for c0 := 0; c0 < j.n; c0 += nr {
			packStraight(right, j.b[k0*j.n+c0:], kc, j.n, min(nr, j.n-c0), nr)
			j.mk.f(kc, left, 1, j.ldA, j.mk.mr, right, out[c0:], j.ldc, added(out[c0:], k0 > c*j.per), j.rows/j.mk.mr)
		}
	}
	if c*j.per >= end { // rounding up can leave a last piece empty
		clear(out[:j.rows*j.ldc])
	}
}

// add sums one row of the partial products.
func (j *splitJob) add(r int) {
	row := j.dst[r*j.n : (r+1)*j.n]
	if j.epi.Add != nil {
		copy(row, j.epi.Add[r*j.n:])
	}
	for c := range j.pieces {
		part := j.partial[(c*j.rows+r)*j.ldc:][:j.n]
		if c == 0 && !j.epi.Accumulate && j.epi.Add == nil {
			copy(row, part)
			continue
		}
		ks.vv[Add](row, row, part)
	}
}
