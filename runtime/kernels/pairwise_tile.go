package kernels

import (
	"runtime"
	"sync/atomic"
	"time"
)

// pairJob is one pairwise kernel. The b×b matrix of products p_i·q_j is walked in
// tiles that fit in the second-level cache. What a tile is needed for is done
// while it is there: products, distances, exponentials, their sums by row and
// column, and the products of the resulting weights with q and p.
//
// Tiles that share rows or columns add to the same sums. They do so in the order
// of the task list, whoever computes them: see [pairJob.await].
type pairJob struct {
	pool           *Pool
	kernel         string
	phase          pairPhase
	grad           bool // a gradient, else statistics
	self           bool // p is q: tiles on and above the diagonal only
	oneSided       bool // rows only: chunks of rows are independent
	p, q, dp, dq   []float32
	rowLSE, colLSE []float32
	out            PairwiseResult
	cot            PairwiseCotangent
	b, f           int
	tau            float32
	kept           []float32

	mk               micro
	fp               int // f rounded up to whole panels
	block, blocks    int // rows and columns of a tile; tiles to a side
	tileRows, ld     int // size of a tile in memory
	group, groupRows int // rows that are accumulated together, and what they take
	bounded          bool
	scale, shift     float32 // −log₂e/τ; the common shift, in powers of two

	qT, qS, pS   []float32 // q transposed and straight, p straight, packed for products
	pn, qn       []float32 // ‖p_i‖², ‖q_j‖²
	gamma, zeros []float32 // 0 for columns that exist; 0
	rowM, colM   []float32 // running maxima of the logits; in gradients what is added to them
	rowA, colA   []float32 // factors of the exponentials
	rowSum       []float32 // sums of the weights by row, by column
	colSum       []float32
	accP, accQ   []float32 // Σ_j g_ij q_j, Σ_i g_ij p_i

	tasks []pairTask
	done  []atomic.Int32 // tiles done of each block of rows, then of columns
}

type pairPhase int

const (
	pairPack pairPhase = iota
	pairTiles
	pairRows
	pairFinish
)

// pairTask is a tile: when needI tiles of its rows and needJ of its columns are
// done it is its turn.
type pairTask struct {
	i, j, needI, needJ int32
	sq                 float64
}

// What is summed in which order follows from these and b alone. The rows and
// columns of a tile are a multiple of pairUnit and at least pairLeast: whole panels
// of every instruction set. A row's sum has pairLanes lanes.
const (
	pairUnit  = 32
	pairLeast = 64
	pairLanes = 16
)

// layout derives the sizes of tiles from b and f. Beyond block, blocks and group
// they are of memory alone.
func (j *pairJob) layout() {
	j.mk = ks.wide
	mr, nr := j.mk.mr, j.mk.nr
	j.block = ceilDiv(min(max(ceilDiv(j.b, 6), pairLeast), 192), pairUnit) * pairUnit
	j.blocks = ceilDiv(j.b, j.block)
	j.tileRows = ceilDiv(j.block, mr) * mr
	j.ld = j.block + 16 // no power of two: a column would share few cache sets
	j.fp = ceilDiv(j.f, nr) * nr
	j.group, j.groupRows = j.block, j.tileRows
	if j.oneSided {
		j.group = min(ceilDiv(ceilDiv(j.b, 16), mr), 96/mr) * mr
		j.groupRows = j.group
	}
}

func (j *pairJob) tileSize() int { return j.tileRows * j.ld }

// carve cuts the workspace and returns its size; nil only counts.
func (j *pairJob) carve(ws []float32) int {
	used := 0
	take := func(n int) []float32 {
		at := used
		used += ceilDiv(n, 16) * 16
		if ws == nil {
			return nil
		}
		return ws[at : at+n : at+n]
	}
	cols := j.blocks * j.block
	j.qT, j.qS = take(cols*j.f), take(cols*j.fp)
	if j.self {
		j.pS = j.qS
	} else {
		j.pS = take(cols * j.fp)
	}
	j.pn, j.qn, j.gamma, j.zeros = take(cols), take(cols), take(cols), take(cols)
	j.rowM, j.rowA, j.rowSum = take(cols), take(cols), take(cols)
	// The padded rows of all groups: one-sided groups are whole strips.
	j.accP = take((j.blocks*j.tileRows + 96) * j.fp)
	if j.self {
		j.colM, j.colA, j.colSum, j.accQ = j.rowM, j.rowA, j.rowSum, j.accP
	} else {
		j.colM, j.colA, j.colSum = take(cols), take(cols), take(cols)
		j.accQ = take((j.blocks*j.tileRows + 96) * j.fp)
	}
	return used
}

// pairLocal is the scratch memory of one thread.
type pairLocal struct {
	tile, tmp    []float32 // [tileRows, ld]
	row, row2    []float32 // [tileRows][4]: ‖p_i‖², β_i, a_i, unused
	acc, acc2    []float32 // [tileRows, pairLanes]: sums or minima of the rows
	cols, far    []float32 // [block] sums nobody reads, or minima; [nr]
	tail         []float32 // [mr, f]: the last rows of p
	sq           []float32 // [nr]
	sumSq        float64
	r0, h, c0, w int  // the tile: h rows from r0, w columns from c0
	triangle     bool // the tile is its own mirror image
}

func (j *pairJob) localSize() int {
	t := max(j.tileRows, 96)
	return 2*t*j.ld + 8*t + 2*t*pairLanes + j.block + j.mk.nr + j.mk.mr*j.f + j.mk.nr
}

func (j *pairJob) local(worker int) pairLocal {
	ws := j.pool.local[worker]
	take := func(n int) []float32 {
		s := ws[:n:n]
		ws = ws[n:]
		return s
	}
	t := max(j.tileRows, 96)
	var l pairLocal
	l.tile, l.tmp = take(t*j.ld), take(t*j.ld)
	l.row, l.row2 = take(4*t), take(4*t)
	l.acc, l.acc2 = take(t*pairLanes), take(t*pairLanes)
	l.cols, l.far = take(j.block), take(j.mk.nr)
	l.tail, l.sq = take(j.mk.mr*j.f), take(j.mk.nr)
	return l
}

func (j *pairJob) do(c, worker int) {
	switch j.phase {
	case pairPack:
		j.pack(c)
	case pairTiles:
		l := j.local(worker)
		j.turn(c, &l)
	case pairRows:
		l := j.local(worker)
		j.rows(c, &l)
	case pairFinish:
		j.finish(c)
	}
}

// pack prepares one block of rows of p and q.
func (j *pairJob) pack(c int) {
	f, nr := j.f, j.mk.nr
	r0, r1 := c*j.block, min((c+1)*j.block, j.b)
	for r := r0; r < r1; r++ {
		x := j.p[r*f : (r+1)*f]
		j.pn[r] = ks.dot(x, x)
		if x = j.q[r*f : (r+1)*f]; j.self {
			j.qn[r] = j.pn[r]
		} else {
			j.qn[r] = ks.dot(x, x)
		}
	}
	for r := r0; r < r1 && f > 0; r += nr {
		out := j.qT[r*f : (r+nr)*f]
		w := min(nr, r1-r)
		if w < nr {
			clear(out)
		}
		packTransposed(out, j.q[r*f:], f, f, w, nr)
	}
	straight := func(dst, src []float32) {
		dst = dst[c*j.block*j.fp:]
		for k := 0; k < f; k += nr {
			packStraight(dst[k*j.block:], src[r0*f+k:], r1-r0, f, min(nr, f-k), nr)
		}
	}
	if j.out.Mean != nil || j.dp != nil {
		straight(j.qS, j.q)
	}
	if j.dq != nil {
		straight(j.pS, j.p)
	}
}

// schedule lists the tiles so that neighbours in the list rarely share rows or
// columns: a Latin square, or rounds in which every block meets one other.
func (j *pairJob) schedule() {
	n := j.blocks
	j.tasks = j.tasks[:0]
	if cap(j.done) < 2*n {
		j.done = make([]atomic.Int32, 2*n)
	}
	j.done = j.done[:2*n]
	for i := range j.done {
		j.done[i].Store(0)
	}
	add := func(i, k int) { // done counts up as a dry run
		col := k
		if !j.self {
			col += n
		}
		t := pairTask{i: int32(i), j: int32(k), needI: j.done[i].Load(), needJ: j.done[col].Load()}
		j.tasks = append(j.tasks, t)
		j.done[i].Add(1)
		if col != i {
			j.done[col].Add(1)
		}
	}
	if j.self {
		for i := range n {
			add(i, i)
		}
		odd := n - 1 + n%2
		for round := range odd {
			for i := range odd {
				k := (round - i + 2*odd) % odd
				if k == i && n%2 == 0 {
					k = n - 1
				}
				if i < k {
					add(i, k)
				}
			}
		}
	} else {
		for s := range n {
			for i := range n {
				add(i, (i+s)%n)
			}
		}
	}
	for i := range j.done {
		j.done[i].Store(0)
	}
}

// await returns when it is the task's turn. Tasks are handed out in the order of
// the list, so those before it are done or being computed by other threads.
func (j *pairJob) await(t *pairTask, row, col *atomic.Int32) {
	for spins := 0; row.Load() != t.needI || col.Load() != t.needJ; spins++ {
		pause()
		switch {
		case spins > spinRounds*spinPauses: // whoever is at it lost its processor
			time.Sleep(50 * time.Microsecond)
		case spins%spinPauses == spinPauses-1:
			runtime.Gosched()
		}
	}
}

// turn computes one tile of the list.
func (j *pairJob) turn(c int, l *pairLocal) {
	t := &j.tasks[c]
	row, col := &j.done[t.i], &j.done[t.j]
	if !j.self {
		col = &j.done[j.blocks+int(t.j)]
	}
	l.r0, l.c0 = int(t.i)*j.block, int(t.j)*j.block
	l.h, l.w = min(j.block, j.b-l.r0), min(j.block, j.b-l.c0)
	l.triangle = j.self && t.i == t.j
	src := l.tile
	if j.kept != nil {
		src = j.kept[c*j.tileSize() : (c+1)*j.tileSize()]
	}
	fresh := j.kept == nil || !j.grad
	clear(l.acc[:l.h*pairLanes])
	if j.separate() {
		clear(l.acc2[:l.h*pairLanes])
	}
	if j.grad || j.bounded {
		j.constants(l)
		// The sums of the columns are only touched when it is the tile's turn;
		// products need not wait.
		if fresh {
			j.products(l, src)
		}
		j.await(t, row, col)
		for c0 := l.c0; c0 < l.c0+l.w; c0 += j.mk.nr {
			j.weigh(l, src, c0, j.colSum[c0:])
		}
		j.fold(l)
	} else {
		j.products(l, src)
		j.await(t, row, col)
		j.online(l, src)
	}
	t.sq = l.sumSq
	if j.dp != nil {
		acc := j.accP[int(t.i)*j.tileRows*j.fp:]
		if l.triangle {
			// Strips pass over different numbers of zeros. What that can change is
			// the sign of a sum of 0, which adding it to 0 takes away.
			clear(acc[:j.tileRows*j.fp])
		}
		j.accumulateRows(l, acc, t.needI > 0 || l.triangle)
	}
	if j.dq != nil {
		j.accumulateColumns(l, j.accQ[int(t.j)*j.tileRows*j.fp:], t.needJ > 0)
	} else if j.self && j.dp != nil {
		j.accumulateColumns(l, j.accP[int(t.j)*j.tileRows*j.fp:], t.needJ > 0 || l.triangle)
	}
	row.Add(1)
	if col != row {
		col.Add(1)
	}
}

// rows computes all columns of one chunk of rows.
func (j *pairJob) rows(c int, l *pairLocal) {
	l.r0 = c * j.group
	l.h = min(j.group, j.b-l.r0)
	clear(l.acc[:l.h*pairLanes])
	acc := j.accP[l.r0*j.fp:]
	if j.bounded || j.grad {
		j.constants(l)
	}
	for b := range j.blocks {
		l.c0 = b * j.block
		l.w = min(j.block, j.b-l.c0)
		if j.bounded || j.grad {
			for c0 := l.c0; c0 < l.c0+l.w; c0 += j.mk.nr {
				j.product(l, l.tile, c0)
				j.weigh(l, l.tile, c0, l.cols)
			}
		} else {
			j.products(l, l.tile)
			j.nearest(l, l.tile)
			j.raise(l, acc, b > 0)
			for c0 := l.c0; c0 < l.c0+l.w; c0 += j.mk.nr {
				j.weigh(l, l.tile, c0, l.cols)
			}
		}
		if j.out.Mean != nil || j.dp != nil {
			j.accumulateRows(l, acc, b > 0)
		}
	}
	j.fold(l)
}

// height returns how many rows of the tile a panel of columns from c0 needs: in
// a triangle those above the diagonal, in whole strips.
func (j *pairJob) height(l *pairLocal, c0 int) int {
	if !l.triangle {
		return l.h
	}
	return min(l.h, ceilDiv(c0-l.r0+j.mk.nr, j.mk.mr)*j.mk.mr)
}

func (j *pairJob) products(l *pairLocal, s []float32) {
	for c0 := l.c0; c0 < l.c0+l.w; c0 += j.mk.nr {
		j.product(l, s, c0)
	}
}

// product computes the products of the tile's rows with one panel of columns.
// Own pairs get the product that makes their distance exactly 0.
func (j *pairJob) product(l *pairLocal, s []float32, c0 int) {
	f, mr, nr := j.f, j.mk.mr, j.mk.nr
	h := j.height(l, c0)
	strips := ceilDiv(h, mr)
	whole := min(strips, (j.b-l.r0)/mr)
	out := s[c0-l.c0:]
	for k := 0; k == 0 || k < f; k += kcMax {
		kc, add := min(kcMax, f-k), added(out, k > 0)
		right := j.qT[c0*f+k*nr:]
		j.mk.f(kc, j.p[l.r0*f+min(k, max(f-1, 0)):], f, 1, mr*f, right, out, j.ld, add, whole)
		if whole < strips {
			r := l.r0 + whole*mr
			clear(l.tail)
			copy(l.tail, j.p[r*f:j.b*f])
			j.mk.f(kc, l.tail[min(k, max(f-1, 0)):], f, 1, 0, right, out[whole*mr*j.ld:], j.ld, from(add, whole*mr*j.ld), 1)
		}
	}
	if j.self {
		return // masked
	}
	for r := max(l.r0, c0); r < min(l.r0+h, c0+nr); r++ {
		out[(r-l.r0)*j.ld+r-c0] = (j.pn[r] + j.qn[r]) / 2
		if j.out.Diag != nil {
			j.out.Diag[r] = ks.sqDist(j.p[r*f:(r+1)*f], j.q[r*f:(r+1)*f])
		}
	}
}

// constants fills what the weights need to know of the rows.
func (j *pairJob) constants(l *pairLocal) {
	for i := range l.h {
		r := l.row[4*i : 4*i+4]
		r[0], r[1], r[2] = j.pn[l.r0+i], j.shift, 1
		if !j.grad {
			continue
		}
		r[2] = j.rowA[l.r0+i]
		if !j.bounded {
			r[1] = j.rowM[l.r0+i]
			r2 := l.row2[4*i : 4*i+4]
			r2[0], r2[1], r2[2] = r[0], 0, 0
		}
	}
}

// separate reports whether rows and columns have exponentials of their own, and so
// sums of their own by row, in l.acc and l.acc2.
func (j *pairJob) separate() bool { return j.grad && !j.bounded && (j.self || j.cot.ColLSE != nil) }

// weigh turns the products of one panel into weights in l.tile and adds those up
// by row, into l.acc, and by column, into cols.
func (j *pairJob) weigh(l *pairLocal, s []float32, c0 int, cols []float32) {
	h, ld, at := j.height(l, c0), j.ld, c0-l.c0
	mask, first, step := pairMask(l, c0, h, j.mk.nr)
	var sq2 float32
	colA := j.zeros
	if j.grad {
		if j.cot.SumSq != nil {
			sq2 = 2 * j.cot.SumSq[0]
		}
		if j.bounded {
			colA = j.colA
		}
	}
	clear(l.sq)
	dst := l.tile[at:]
	separate := j.separate()
	if separate {
		// First: with dst the source may be overwritten.
		ks.pairWeights(l.tmp[at:], s[at:], ld, h, l.row2, j.qn[c0:], j.colM[c0:], j.colA[c0:], l.acc2, cols, l.sq, mask, first, step, j.scale, 0)
	}
	ks.pairWeights(dst, s[at:], ld, h, l.row, j.qn[c0:], j.gamma[c0:], colA[c0:], l.acc, cols, l.sq, mask, first, step, j.scale, sq2)
	if j.out.SumSq != nil {
		j.addSquares(l, c0)
	}
	if separate {
		for i := range h {
			row := dst[i*ld : i*ld+j.mk.nr]
			ks.vv[Add](row, row, l.tmp[at+i*ld:at+i*ld+j.mk.nr])
		}
	}
	if l.triangle && j.dp != nil {
		for i := h; i < l.h; i++ {
			clear(dst[i*ld : i*ld+j.mk.nr])
		}
	}
	if j.cot.Diag != nil {
		for r := max(l.r0, c0); r < min(l.r0+h, c0+j.mk.nr); r++ {
			i, d := r-l.r0, j.cot.Diag[r]
			dst[i*ld+r-c0] = d
			cols[r-c0] += d
		}
	}
}

// addSquares adds the sums of squares of a panel's columns, those that exist.
func (j *pairJob) addSquares(l *pairLocal, c0 int) {
	for _, v := range l.sq[:min(j.mk.nr, j.b-c0)] {
		l.sumSq += float64(v)
	}
}

// fold adds the sums of the tile's rows to those of all tiles.
func (j *pairJob) fold(l *pairLocal) {
	for i := range l.h {
		j.rowSum[l.r0+i] += pairFold(l.acc[i*pairLanes : (i+1)*pairLanes])
	}
	if j.separate() {
		for i := range l.h {
			j.rowSum[l.r0+i] += pairFold(l.acc2[i*pairLanes : (i+1)*pairLanes])
		}
	}
	if j.cot.Diag != nil && l.r0 == l.c0 {
		for i := range l.h {
			j.rowSum[l.r0+i] += j.cot.Diag[l.r0+i]
		}
	}
}

func pairFold(x []float32) float32 {
	var s [4]float32
	for ; len(x) >= 4; x = x[4:] {
		s[0] += x[0]
		s[1] += x[1]
		s[2] += x[2]
		s[3] += x[3]
	}
	return (s[0] + s[1]) + (s[2] + s[3])
}

// accumulateRows adds the weights times q to the rows of acc.
func (j *pairJob) accumulateRows(l *pairLocal, acc []float32, add bool) {
	mr, nr := j.mk.mr, j.mk.nr
	right := j.qS[l.c0*j.fp:]
	for k := 0; k < j.f; k += nr {
		b := right[k*j.block:]
		if !l.triangle {
			j.mk.f(l.w, l.tile, j.ld, 1, mr*j.ld, b, acc[k:], j.fp, added(acc[k:], add), ceilDiv(l.h, mr))
			continue
		}
		for i := 0; i < l.h; i += mr { // left of the diagonal are zeros
			from := i / nr * nr
			j.mk.f(l.w-from, l.tile[i*j.ld+from:], j.ld, 1, 0, b[from*nr:], acc[i*j.fp+k:], j.fp, added(acc[i*j.fp+k:], add), 1)
		}
	}
}

// accumulateColumns adds the transposed weights times p to the rows of acc.
func (j *pairJob) accumulateColumns(l *pairLocal, acc []float32, add bool) {
	mr, nr := j.mk.mr, j.mk.nr
	right := j.pS[l.r0*j.fp:]
	for k := 0; k < j.f; k += nr {
		b := right[k*j.block:]
		if !l.triangle {
			j.mk.f(l.h, l.tile, 1, j.ld, mr, b, acc[k:], j.fp, added(acc[k:], add), ceilDiv(l.w, mr))
			continue
		}
		for i := 0; i < l.w; i += mr { // below the diagonal are zeros
			to := min(l.h, ceilDiv(i+mr, nr)*nr)
			j.mk.f(to, l.tile[i:], 1, j.ld, 0, b, acc[i*j.fp+k:], j.fp, added(acc[i*j.fp+k:], add), 1)
		}
	}
}

// added is what a micro-kernel adds to: dst, or nothing.
func added(dst []float32, add bool) []float32 {
	if add {
		return dst
	}
	return nil
}

// pairMaskRows is more than the rows and columns of any tile and panel.
const pairMaskRows = 256

// Windows into these tables, one element further back for each row, leave out
// the row's own pair, or all pairs on and below the diagonal.
var (
	pairAll   [64]uint32
	pairOwn   [4 * pairMaskRows]uint32
	pairUpper [4 * pairMaskRows]uint32
)

const pairZero = 2 * pairMaskRows

func init() {
	const all = 1<<32 - 1
	for i := range pairAll {
		pairAll[i] = all
	}
	for i := range pairOwn {
		if i != pairZero {
			pairOwn[i] = all
		}
		if i > pairZero {
			pairUpper[i] = all
		}
	}
}

// pairMask returns which pairs of h rows of the tile with the panel from c0 count:
// a table, where the first row's window begins and how it moves.
func pairMask(l *pairLocal, c0, h, nr int) (mask []uint32, first, step int) {
	own := l.r0 - c0 // column of the first row's own pair
	switch {
	case l.triangle:
		return pairUpper[:], pairZero - own, -1
	case own < nr && own+h > 0:
		return pairOwn[:], pairZero - own, -1
	}
	return pairAll[:], 0, 0
}
