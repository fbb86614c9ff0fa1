package kernels

import "fmt"

// Activation is applied to a product as it is written.
type Activation int

const (
	None Activation = iota
	Relu            // max(x, 0)
	Elu             // x if x > 0, else eˣ−1
)

// Epilogue is what happens to every element of a product before it is left:
// dst = Then(Act(dst_before·[Accumulate] + Add + product + Bias)).
type Epilogue struct {
	Bias       []float32 // one for each column, or nil
	Act        Activation
	Accumulate bool      // add to what dst holds
	Add        []float32 // a matrix like the product, or nil; dst for Accumulate
	Then       *Chain    // run over the rows while they are in the cache, or nil
}

// check panics on operands shorter than a product of m rows and n columns.
func (e *Epilogue) check(kernel string, dst []float32, m, n int) {
	needIfAny(kernel, "bias", e.Bias, n)
	if e.Add != nil {
		need(kernel, "add", len(e.Add), m*n)
		if m*n > 0 && &e.Add[0] == &dst[0] {
			e.Add, e.Accumulate = nil, true
		}
	}
	if e.Then != nil {
		e.Then.check(kernel, m, n)
	}
	if e.Act < None || e.Act > Elu {
		panic(fmt.Sprintf("kernels: %s: unknown activation %d", kernel, int(e.Act)))
	}
}

// scratch returns the floats of each thread's scratch that finish uses.
func (e *Epilogue) scratch() int { return EpilogueScratch(e.Bias != nil, e.Then).Local }

// EpilogueScratch returns what an epilogue uses of a pool's buffers.
func EpilogueScratch(bias bool, then *Chain) Scratch {
	var s Scratch
	if bias {
		s.Local = chainStrip
	}
	if then != nil {
		s.Local = max(s.Local, then.local())
	}
	return s
}

// begin puts what a product is added to into rows r0 ≤ r < r1 and columns
// c0 ≤ c < c1 of dst, whose rows have n.
func (e *Epilogue) begin(dst []float32, n, r0, r1, c0, c1 int) {
	for r := r0; r < r1; r++ {
		switch d := dst[r*n+c0 : r*n+c1]; {
		case e.Add != nil:
			copy(d, e.Add[r*n+c0:])
		case !e.Accumulate:
			clear(d)
		}
	}
}

// finish applies bias, activation and chain to what begin prepared.
func (e *Epilogue) finish(dst []float32, n, r0, r1, c0, c1 int, local []float32) {
	switch per := chainStrip / n; {
	case e.Bias == nil && e.Act == None:
	case e.Bias == nil && c0 == 0 && c1 == n:
		ks.act(dst[r0*n:r1*n], int(e.Act))
	case per > 1 && r1-r0 > 1 && c0 == 0 && c1 == n: // several rows at a time
		tile := local[:min(per, r1-r0)*n]
		for k := 0; k < len(tile); k += n {
			copy(tile[k:k+n], e.Bias)
		}
		for at := r0 * n; at < r1*n; at += len(tile) {
			d := dst[at:min(at+len(tile), r1*n)]
			ks.bias(d, tile[:len(d)], int(e.Act))
		}
	default:
		for r := r0; r < r1; r++ {
			e.activate(dst[r*n+c0:r*n+c1], c0)
		}
	}
	if e.Then != nil {
		e.Then.block(dst, n, r0, r1, c0, c1, local)
	}
}

// activate applies bias and activation to columns c0 ≤ c < c0+len(row) of a row.
func (e *Epilogue) activate(row []float32, c0 int) {
	if e.Bias != nil {
		ks.bias(row, e.Bias[c0:c0+len(row)], int(e.Act))
	} else if e.Act != None {
		ks.act(row, int(e.Act))
	}
}

// micro is a micro-kernel: products of mr×kc blocks, one below the other, with
// one kc×nr block, each held in registers. Element (i,k) of block s on the left
// is a[s·as + i·rs + k·cs]; the right block is packed, nr floats for each k. The
// strips·mr rows of the result are written to c at distance ldc; where add is not
// nil, rows of it at the same distance are added.
type micro struct {
	mr, nr int
	f      func(kc int, a []float32, rs, cs, as int, b, c []float32, ldc int, add []float32, strips int)
}

// Blocking. A packed panel of the right matrix (kcMax×nr) stays in the first-level
// cache while mcMax rows of the left pass by.
const (
	kcMax        = 320
	kcTransposed = 192 // of a transposed left matrix, which takes whole lines for its strips
	mcMax        = 48
)

// MatMul computes dst[m,n] = op(a)·op(b), then the epilogue. op is the identity
// or, where transA or transB is set, the transpose: a is stored [m,k] or [k,m],
// b [k,n] or [n,k]. dst must not overlap a or b.
//
// Every element is the sum over k in increasing order, in blocks that depend on
// the sizes alone (Goto and van de Geijn, "Anatomy of high-performance matrix
// multiplication", TOMS 2008, for the blocking).
func (p *Pool) MatMul(dst, a, b []float32, m, k, n int, transA, transB bool, epi Epilogue) {
	need("MatMul", "dst", len(dst), m*n)
	need("MatMul", "a", len(a), m*k)
	need("MatMul", "b", len(b), k*n)
	epi.check("MatMul", dst, m, n)
	if m == 0 || n == 0 {
		return
	}
	if splits(m, k, n, transA, transB) {
		p.splitMatMul(dst, a, b, m, k, n, epi)
		return
	}
	j := &p.jobs.mm
	*j = gemmJob{p: p, dst: dst, a: a, b: b, m: m, k: k, n: n, transA: transA, transB: transB, epi: epi}
	j.divide()
	j.pack()

	p.scratch(max(j.localLen(), epi.scratch()))
	p.run(ceilDiv(m, j.mPer)*j.nBlocks, j)
	*j = gemmJob{}
}

// divide chooses the micro-kernel and cuts the work into blocks.
func (j *gemmJob) divide() {
	j.mk = ks.wide
	if j.n <= ks.narrow.nr {
		j.mk = ks.narrow
	}
	j.divideRight()
	mr := j.mk.mr
	// Rows are cut first; columns only where the rows alone make few chunks.
	most := mcMax
	if j.transA {
		most *= 2 // whole cache lines of the rows that are packed
	}
	j.mPer = max(4*mr, min(most, ceilDiv(j.m, 16))/mr*mr)
	mBlocks := ceilDiv(j.m, j.mPer)
	nBlocks := 1
	if mBlocks < 16 {
		nBlocks = min(j.panels, 16/mBlocks)
	}
	j.nPer = ceilDiv(j.panels, nBlocks)
	j.nBlocks = ceilDiv(j.panels, j.nPer)
	// A power-of-two row distance maps the rows of a strip to the same cache sets.
	j.packA = j.k%512 == 0
	j.strip = mr*j.kc + spill
	j.ldA = j.mPer + 16 // a multiple of the line, and no power of two
}

// divideRight cuts the right matrix into the pieces that are packed.
func (j *gemmJob) divideRight() {
	blocks := max(1, ceilDiv(j.k, kcMax))
	if j.transA {
		blocks = max(1, ceilDiv(j.k, kcTransposed))
	}
	j.kc = max(1, ceilDiv(j.k, blocks))
	j.panels = ceilDiv(j.n, j.mk.nr)
}

// packedLen is the length of the packed right matrix, localLen that of each
// thread's packed left strips and tile.
func (j *gemmJob) packedLen() int { return j.k*j.panels*j.mk.nr + spill }

func (j *gemmJob) localLen() int {
	left := j.strip * ceilDiv(j.mPer, j.mk.mr)
	if j.transA {
		left = j.kc*j.ldA + j.mk.mr
	}
	return left + j.mk.mr*j.mk.nr
}

// pack packs the right matrix, once it is divided.
func (j *gemmJob) pack() {
	j.packed = grow(&j.p.packB, j.packedLen())
	j.packing = true
	pieces := ceilDiv(j.k, j.kc) * j.panels
	j.per = max(1, elemChunk/(j.kc*j.mk.nr))
	j.p.run(ceilDiv(pieces, j.per), j)
	j.packing = false
}

// gemmJob packs the right matrix, then computes blocks of the product.
type gemmJob struct {
	p              *Pool
	dst, a, b      []float32
	m, k, n        int
	transA, transB bool
	epi            Epilogue
	mk             micro
	kc             int // length of a block of k
	panels         int // panels of nr columns
	packed         []float32
	packing, packA bool
	per            int // pieces of a packing chunk
	mPer, nPer     int // rows and panels of a product chunk
	nBlocks        int
	strip          int // floats of one packed strip of a
	ldA            int // distance of the rows of a transposed matrix's copy
}

func (j *gemmJob) do(c, worker int) {
	if !j.packing {
		j.block(c/j.nBlocks, c%j.nBlocks, j.p.local[worker])
		return
	}
	for piece := c * j.per; piece < min((c+1)*j.per, ceilDiv(j.k, j.kc)*j.panels); piece++ {
		j.packRight(piece/j.panels, piece%j.panels)
	}
}

// packRight copies one panel of one block of k of op(b): nr floats for each k.
// What lies beyond the last column is unspecified and only reaches elements of
// the product that are dropped.
func (j *gemmJob) packRight(block, panel int) {
	nr := j.mk.nr
	k0, c0 := block*j.kc, panel*nr
	kc, w := min(j.kc, j.k-k0), min(nr, j.n-c0)
	out := j.packed[k0*j.panels*nr+panel*kc*nr:]
	if j.transB {
		packTransposed(out, j.b[c0*j.k+k0:], kc, j.k, w, nr)
	} else {
		packStraight(out, j.b[k0*j.n+c0:], kc, j.n, w, nr)
	}
}

// packLeft packs the strips of rows r0 ≤ r < r1 that the micro-kernel cannot read
// in place. A transposed matrix is copied as it lies, to rows that do not share
// cache sets.
func (j *gemmJob) packLeft(local []float32, r0, r1, k0, kc int) {
	mr := j.mk.mr
	if !j.transA {
		for s := range ceilDiv(r1-r0, mr) {
			row := r0 + s*mr
			if h := min(mr, r1-row); j.packA || h < mr {
				packTransposed(local[s*j.strip:], j.a[row*j.k+k0:], kc, j.k, h, mr)
			}
		}
		return
	}
	// Its rows are short pieces, pages apart: they are asked for some time before.
	const few = 16
	for k := range kc {
		if next := k0 + k + few; k%few == 0 && next < j.k {
			ks.fetchRows(j.a[next*j.m+r0:], min(few, j.k-next), j.m, r1-r0)
		}
		copy(local[k*j.ldA:], j.a[(k0+k)*j.m+r0:(k0+k)*j.m+r1])
	}
}

// packStraight copies w ≤ step columns of kc rows at distance ld so that the row
// starts lie step apart; packTransposed does the same of a matrix that is stored
// transposed, w rows of kc. Both go by vectors, the last first: a vector may
// write beyond the row's step, where the next row's earlier vectors, written
// later, put it right. At the very end up to spill floats are overwritten; not
// where the step is a multiple of the vector, as in panels of the right matrix,
// which several threads pack side by side.
func packStraight(out, in []float32, kc, ld, w, step int) {
	if w == 2*ks.lanes {
		ks.packCols(out, in, kc, ld, w, step)
		return
	}
	for c := (w - 1) / ks.lanes * ks.lanes; c >= 0; c -= ks.lanes {
		ks.packCols(out[c:], in[c:], kc, ld, min(w-c, ks.lanes), step)
	}
}

func packTransposed(out, in []float32, kc, ld, w, step int) {
	for r := (w - 1) / packRowsMax * packRowsMax; r >= 0; r -= packRowsMax {
		ks.packRows(out[r:], in[r*ld:], kc, ld, min(w-r, packRowsMax), step)
	}
}

const (
	spill       = 16
	packRowsMax = 8 // rows that packRows handles at a time
)

// block computes one block of rows and panels.
func (j *gemmJob) block(mb, nb int, local []float32) {
	mr, nr := j.mk.mr, j.mk.nr
	r0, r1 := mb*j.mPer, min((mb+1)*j.mPer, j.m)
	p0, p1 := nb*j.nPer, min((nb+1)*j.nPer, j.panels)
	strips := ceilDiv(r1-r0, mr)
	tile := local[len(local)-mr*nr:]
	for k0 := 0; k0 < j.k; k0 += j.kc {
		kc := min(j.kc, j.k-k0)
		add := j.epi.Add
		if k0 > 0 || j.epi.Accumulate {
			add = j.dst
		}
		j.packLeft(local, r0, r1, k0, kc)
		right := j.packed[k0*j.panels*nr:]
		for panel := p0; panel < p1; panel++ {
			b := right[panel*kc*nr : (panel+1)*kc*nr]
			c0 := panel * nr
			w := min(nr, j.n-c0)
			whole := (r1 - r0) / mr // strips that are done in one call
			if w < nr {
				whole = 0
			}
			for s := 0; s < strips; {
				row := r0 + s*mr
				h := min(mr, r1-row)
				a, rs, cs, as := local[s*j.strip:], 1, mr, j.strip
				if j.transA {
					a, cs, as = local[s*mr:], j.ldA, mr
				} else if !j.packA && h == mr {
					a, rs, cs, as = j.a[row*j.k+k0:], j.k, 1, mr*j.k
				}
				if s < whole {
					at := row*j.n + c0
					j.mk.f(kc, a, rs, cs, as, b, j.dst[at:], j.n, from(add, at), whole)
					s = whole
					continue
				}
				s++
				j.mk.f(kc, a, rs, cs, as, b, tile, nr, nil, 1)
				for i := range h {
					at := (row+i)*j.n + c0
					d, t := j.dst[at:at+w], tile[i*nr:]
					if add == nil {
						copy(d, t)
						continue
					}
					for l, v := range add[at : at+w] {
						d[l] = v + t[l]
					}
				}
			}
		}
	}
	c0, c1 := p0*nr, min(p1*nr, j.n)
	if j.k == 0 {
		j.epi.begin(j.dst, j.n, r0, r1, c0, c1)
	}
	j.epi.finish(j.dst, j.n, r0, r1, c0, c1, local)
}

// from returns x from an element on, nothing where x ends before.
func from(x []float32, at int) []float32 { return x[min(at, len(x)):] }

func packColsGo(out, in []float32, kc, ld, w, step int) {
	for k := range kc {
		copy(out[k*step:k*step+w], in[k*ld:])
	}
}

func packRowsGo(out, in []float32, kc, ld, h, step int) {
	for r := range h {
		for k, v := range in[r*ld:][:kc] {
			out[k*step+r] = v
		}
	}
}

// microGo is the 4×nr micro-kernel in Go, in blocks of 4×4.
func microGo(nr int) micro {
	return micro{mr: 4, nr: nr, f: func(kc int, a []float32, rs, cs, as int, b, c []float32, ldc int, add []float32, strips int) {
		for s := range strips {
			for v := 0; v < nr; v += 4 {
				at := 4*s*ldc + v
				blockGo(kc, a[s*as:], rs, cs, b[min(v, len(b)):], nr, c[at:], ldc, from(add, at))
			}
		}
	}}
}

func blockGo(kc int, a []float32, rs, cs int, b []float32, nr int, c []float32, ldc int, add []float32) {
	var c00, c01, c02, c03, c10, c11, c12, c13, c20, c21, c22, c23, c30, c31, c32, c33 float32
	for k := range kc {
		i := k * cs
		a0, a1, a2, a3 := a[i], a[i+rs], a[i+2*rs], a[i+3*rs]
		r := b[k*nr : k*nr+4]
		b0, b1, b2, b3 := r[0], r[1], r[2], r[3]
		c00 = fma32(a0, b0, c00)
		c01 = fma32(a0, b1, c01)
		c02 = fma32(a0, b2, c02)
		c03 = fma32(a0, b3, c03)
		c10 = fma32(a1, b0, c10)
		c11 = fma32(a1, b1, c11)
		c12 = fma32(a1, b2, c12)
		c13 = fma32(a1, b3, c13)
		c20 = fma32(a2, b0, c20)
		c21 = fma32(a2, b1, c21)
		c22 = fma32(a2, b2, c22)
		c23 = fma32(a2, b3, c23)
		c30 = fma32(a3, b0, c30)
		c31 = fma32(a3, b1, c31)
		c32 = fma32(a3, b2, c32)
		c33 = fma32(a3, b3, c33)
	}
	t := [4][4]float32{{c00, c01, c02, c03}, {c10, c11, c12, c13}, {c20, c21, c22, c23}, {c30, c31, c32, c33}}
	for i := range t {
		row := c[i*ldc : i*ldc+4]
		for l, v := range t[i] {
			if add != nil {
				v += add[i*ldc+l]
			}
			row[l] = v
		}
	}
}
