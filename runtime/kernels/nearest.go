package kernels

import (
	"math"
	"slices"
	"sync"
)

// Nearest finds, for every row i of z, [n,f], the k other rows j with the
// largest products s_ij = z_i·z_j. It writes [n,k] row numbers and products, the
// largest first and of equal ones the lower row number; where there are fewer
// than k other rows, −1 and −Inf. z must be finite, and f at least 1.
//
// The products are made tile by tile in each thread's cache and looked through
// there. As s_ij and s_ji are equal to the bit, a tile off the diagonal serves
// the rows of both its sides, so half of the products do. Tiles that follow each
// other seldom have rows in common, for whose lists threads would wait: see
// [nearestRows.blocks].
func (p *Pool) Nearest(idx []int32, sim, z []float32, n, f, k int) {
	need("Nearest", "idx", len(idx), n*k)
	need("Nearest", "sim", len(sim), n*k)
	need("Nearest", "z", len(z), n*f)
	noneYet(idx, sim, n*k)
	if n <= 0 || k <= 0 || f <= 0 {
		return
	}
	few := p.findNonZeros(z, n, f)
	all := nearestRows{idx: idx, sim: sim, k: k, z: z, n: n, f: f, worst: grow(&p.part, n)}
	fill(all.worst, negInf)
	if keys := nearestKeys(n, k); keys > 0 {
		p.growKeys(keys)
		all.keys = p.keys[:keys]
		for i := range n { // how many there are
			all.keys[i*keysOf(k)] = 0
		}
	}
	if few {
		p.nearestZeros(all)
		return
	}
	right := &p.jobs.mm
	*right = gemmJob{p: p, b: z, k: f, n: n, transB: true, mk: ks.wide}
	right.divideRight()
	right.pack()
	all.right = *right
	*right = gemmJob{}
	j := &p.jobs.near
	*j = nearestJob{p: p, z: z, f: f, all: all, side: nearestSide()}
	p.scratch(nearestScratch(j.side, f))
	p.run(j.all.divide(p, j.side), j)
	if j.all.keys != nil {
		j.ended = true
		p.run(ceilDiv(n, nearestEnded), j)
	}
	*j = nearestJob{}
}

// noneYet makes n places of lists those of no row.
func noneYet(idx []int32, sim []float32, n int) {
	for i := range max(0, n) {
		idx[i], sim[i] = -1, negInf
	}
}

// divide cuts the rows into blocks, whose lists threads use by turns, and returns how many pairs
// there are.
func (j *nearestRows) divide(p *Pool, side int) int {
	blocks := ceilDiv(j.n, side)
	for len(p.turns) < blocks {
		p.turns = append(p.turns, new(sync.Mutex))
	}
	j.turns = p.turns[:blocks]
	return blocks * (blocks + 1) / 2
}

// blocks returns the blocks a ≤ b of a pair. Pairs are in the order of a + b, so that every block
// meets the others in theirs.
func (j *nearestRows) blocks(pair int) (a, b int) {
	n := len(j.turns)
	if pair >= pairsBefore(n) { // the mirror image of one of the first half
		b, a = j.blocks(n*(n+1)/2 - 1 - pair)
		return n - 1 - a, n - 1 - b
	}
	sum := int(math.Sqrt(float64(4*pair+1))) - 1
	for pairsBefore(sum+1) <= pair {
		sum++
	}
	a = pair - pairsBefore(sum)
	return a, sum - a
}

// pairsBefore returns how many pairs a ≤ b of numbers from 0 have a smaller sum.
func pairsBefore(sum int) int { return (sum + 1) * (sum + 1) / 4 }

// take waits for the lists of two blocks, and give lets others use them.
func (j *nearestRows) take(a, b int) {
	if j.turns != nil {
		j.turns[a].Lock()
		if a != b {
			j.turns[b].Lock()
		}
	}
}

func (j *nearestRows) give(a, b int) {
	if j.turns != nil {
		j.turns[a].Unlock()
		if a != b {
			j.turns[b].Unlock()
		}
	}
}

// NearestWithin improves the lists of [Pool.Nearest] by the pairs of rows that
// are in the same group: group g has the rows order[start[g]:start[g+1]], at most
// most of them, and no row may be in two groups. idx and sim hold what was found
// before, by earlier calls with other groups, or −1 and −Inf.
func (p *Pool) NearestWithin(idx []int32, sim, z []float32, n, f, k int, order, start []int32, most int) {
	need("NearestWithin", "idx", len(idx), n*k)
	need("NearestWithin", "sim", len(sim), n*k)
	need("NearestWithin", "z", len(z), n*f)
	if n <= 0 || k <= 0 || f <= 0 || len(start) < 2 {
		return
	}
	need("NearestWithin", "order", len(order), int(start[len(start)-1]))
	p.scratch(NearestWithinScratch(most, f).Local)
	all := nearestRows{idx: idx, sim: sim, k: k, f: f}
	runJob(p, &p.jobs.near, nearestJob{p: p, z: z, f: f, all: all, order: order, start: start, most: most, side: nearestSide()}, len(start)-1)
}

// nearestSide returns the side of a tile, about 144: tile, panels and rows
// together fit in a second-level cache.
func nearestSide() int {
	unit := lcm(ks.wide.mr, ks.wide.nr)
	return unit * max(1, 144/unit)
}

// nearestScratch returns what pair needs: a tile, bounds that nothing reaches,
// and packed strips of rows.
func nearestScratch(side, f int) int {
	mr := ks.wide.mr
	return side*side + side + side/mr*(mr*min(f, kcMax)+spill)
}

// nearestJob compares blocks of all rows, or, where there are groups, the rows of each.
type nearestJob struct {
	p     *Pool
	all   nearestRows
	side  int
	ended bool // all have been compared

	z            []float32
	f            int
	order, start []int32 // groups, or nil
	most         int
}

func (j *nearestJob) do(c, worker int) {
	if j.ended {
		for u := c * nearestEnded; u < min((c+1)*nearestEnded, j.all.n); u++ {
			j.all.list(u)
		}
		return
	}
	local, hits := j.p.local[worker], j.p.index[worker]
	if j.order == nil {
		a, b := j.all.blocks(c)
		j.all.pair(a*j.side, b*j.side, j.side, local, hits)
		return
	}
	r := j.all
	r.nodes, r.again = j.order[j.start[c]:j.start[c+1]], true
	r.n = len(r.nodes)
	if r.n < 2 {
		return
	}
	local, r.z = cut(local, j.most*j.f)
	local, r.worst = cut(local, j.most)
	for i, v := range r.nodes {
		copy(r.z[i*j.f:(i+1)*j.f], j.z[int(v)*j.f:])
		r.worst[i] = r.sim[(int(v)+1)*r.k-1]
	}
	r.right = gemmJob{b: r.z, k: r.f, n: r.n, transB: true, mk: ks.wide}
	r.right.divideRight()
	local, r.right.packed = cut(local, r.right.panels*ks.wide.nr*r.f+spill)
	for b := range ceilDiv(r.f, r.right.kc) {
		for panel := range r.right.panels {
			r.right.packRight(b, panel)
		}
	}
	for r0 := 0; r0 < r.n; r0 += j.side {
		for c0 := r0; c0 < r.n; c0 += j.side {
			r.pair(r0, c0, j.side, local, hits)
		}
	}
}

// cut takes n floats off the front of x.
func cut(x []float32, n int) (rest, front []float32) { return x[n:], x[:n:n] }

// nearestRows are rows that are compared with each other, and the lists of what
// was found.
type nearestRows struct {
	idx   []int32
	sim   []float32
	k     int
	z     []float32 // [n,f]
	n, f  int
	right gemmJob       // zᵀ in panels
	worst []float32     // [n] the least product among a row's k
	nodes []int32       // [n] the number of each row; nil means its own
	again bool          // pairs may have been compared before
	turns []*sync.Mutex // of blocks of rows; nil where one thread has them all
	keys  []uint64      // [n, keysOf(k)] of each row how many there are, and they; nil where lists are kept in order
}

// pair compares the rows from r0 on with those from c0 on, up to side of each.
func (j *nearestRows) pair(r0, c0, side int, local []float32, hits []uint64) {
	local, tile := cut(local, side*side)
	strips, none := cut(local, side)
	j.product(tile, strips, r0, c0, side)

	if r0 != c0 {
		none = nil
	}
	j.take(r0/side, c0/side)
	defer j.give(r0/side, c0/side)
	j.look(tile, side, r0, min(side, j.n-r0), c0, min(side, j.n-c0), none, hits)
}

// look offers the products of a tile, whose rows are ld apart, to the rows of both its sides; to
// those of the left alone where none is not nil: both halves of the tile are there, and none is
// filled with bounds that nothing reaches.
func (j *nearestRows) look(tile []float32, ld, r0, rows, c0, cols int, none []float32, hits []uint64) {
	colWorst := j.worst[c0 : c0+cols]
	if none != nil {
		colWorst = none[:cols]
		fill(colWorst, posInf)
	}
	for i := range rows {
		row, u := tile[i*ld:i*ld+cols], r0+i
		for _, l := range hits[:ks.reach(hits, row, colWorst, j.worst[u])] {
			s, v := row[l], c0+int(l)
			if u != v && s >= j.worst[u] {
				j.offer(u, v, s)
			}
			if s >= colWorst[l] {
				j.offer(v, u, s)
			}
		}
	}
}

// product computes the products of the rows from r0 with those from c0 on.
func (j *nearestRows) product(tile, strips []float32, r0, c0, side int) {
	mk, full := j.right.mk, j.right.kc
	mr, nr := mk.mr, mk.nr
	rows, cols := min(side, j.n-r0), min(side, j.n-c0)
	for k0 := 0; k0 < j.f; k0 += full {
		kc := min(full, j.f-k0)
		for s := range ceilDiv(rows, mr) {
			row := r0 + s*mr
			a, rs, cs := j.z[row*j.f+k0:], j.f, 1
			if h := min(mr, j.n-row); h < mr || j.f%512 == 0 { // see MatMul
				a, rs, cs = strips[s*(mr*full+spill):], 1, mr
				packTransposed(a, j.z[row*j.f+k0:], kc, j.f, h, mr)
			}
			for q := range ceilDiv(cols, nr) {
				right := j.right.packed[k0*j.right.panels*nr+(c0/nr+q)*kc*nr:]
				c := tile[s*mr*side+q*nr:]
				var add []float32
				if k0 > 0 {
					add = c
				}
				mk.f(kc, a, rs, cs, 0, right, c, side, add, 1)
			}
		}
	}
}

// offer puts row v, with product s, among the nearest of row u if it belongs
// there. Of rows in groups some are there already.
func (j *nearestRows) offer(u, v int, s float32) {
	if j.keys != nil {
		j.note(u, v, s)
		return
	}
	to, from := j.number(u), int32(j.number(v))
	idx, sim := j.idx[to*j.k:(to+1)*j.k], j.sim[to*j.k:(to+1)*j.k]
	last := j.k - 1
	at := last
	if s == sim[at] && from >= idx[at] {
		return
	}
	for lo := 0; lo < at; { // the first that it is nearer than
		if mid := (lo + at) / 2; s > sim[mid] || s == sim[mid] && from < idx[mid] {
			at = mid
		} else {
			lo = mid + 1
		}
	}
	if j.again && slices.Contains(idx, from) { // found in another group
		return
	}
	copy(sim[at+1:], sim[at:last])
	copy(idx[at+1:], idx[at:last])
	sim[at], idx[at] = s, from
	j.worst[u] = sim[last]
}

// number returns the number of row u.
func (j *nearestRows) number(u int) int {
	if j.nodes == nil {
		return u
	}
	return int(j.nodes[u])
}

// Where many neighbours are asked for, a row notes what may be among them as numbers that are
// the larger the nearer, and of twice as many keeps the nearer half: that costs less than a list
// that is always in order.
const (
	nearestNotes = 32 // neighbours from which on they are noted
	nearestEnded = 64 // rows that are put in order at a time
)

// keysOf returns the room of a row that looks for k neighbours.
func keysOf(k int) int { return 1 + 2*k }

// nearestKeys returns the room of n rows.
func nearestKeys(n, k int) int {
	if k < nearestNotes {
		return 0
	}
	return n * keysOf(k)
}

// note is offer where there are keys: the product's order above, and below it that of rows, the
// lower ones first.
func (j *nearestRows) note(u, v int, s float32) {
	keys := j.keys[u*keysOf(j.k) : (u+1)*keysOf(j.k)]
	bits := math.Float32bits(s + 0) // of −0 those of 0
	bits ^= uint32(int32(bits)>>31) | 1<<31
	at := keys[0] + 1
	keys[0], keys[at] = at, uint64(bits)<<32|uint64(^uint32(j.number(v)))
	if int(at) == 2*j.k {
		keys[0] = uint64(j.k)
		largest(keys[1:], j.k)
		j.worst[u] = keyProduct(slices.Min(keys[1 : 1+j.k]))
	}
}

// keyProduct returns the product of a key.
func keyProduct(key uint64) float32 {
	bits := uint32(key >> 32)
	return math.Float32frombits(bits ^ (uint32(int32(^bits)>>31) | 1<<31))
}

// list writes the nearest of row u in their order.
func (j *nearestRows) list(u int) {
	keys := j.keys[u*keysOf(j.k) : (u+1)*keysOf(j.k)]
	keys = keys[1 : 1+keys[0]]
	if len(keys) > j.k {
		largest(keys, j.k)
		keys = keys[:j.k]
	}
	slices.Sort(keys)
	to := j.number(u) * j.k
	for i := range keys {
		key := keys[len(keys)-1-i]
		j.idx[to+i], j.sim[to+i] = int32(^uint32(key)), keyProduct(key)
	}
}

// largest moves the k largest of x, which are all different, to its front.
func largest(x []uint64, k int) {
	for len(x) > 1 && 0 < k && k < len(x) {
		a, b, c := x[0], x[len(x)/2], x[len(x)-1]
		pivot := max(min(a, b), min(max(a, b), c)) // the median
		n := 0                                     // how many are larger
		for i, v := range x {
			x[i], x[n] = x[n], v
			if v > pivot {
				n++
			}
		}
		if n >= k {
			x = x[:n]
			continue
		}
		x, k = x[n:], k-n
		// The pivot is the largest of the rest.
		at := slices.Index(x, pivot)
		x[0], x[at] = x[at], x[0]
		x, k = x[1:], k-1
	}
}

// reachGo writes to hits where x ≥ least or x ≥ cols, ascending, and returns how
// many there are.
func reachGo(hits []uint64, x, cols []float32, least float32) int {
	n := 0
	for i, v := range x {
		if v >= least || v >= cols[i] {
			hits[n] = uint64(i)
			n++
		}
	}
	return n
}

// Reach writes to hits, [len(x)], the places where x ≥ least or x ≥ cols, ascending, and
// returns how many there are.
func Reach(hits []uint64, x, cols []float32, least float32) int {
	need("Reach", "hits", len(hits), len(x))
	need("Reach", "cols", len(cols), len(x))
	return ks.reach(hits, x, cols, least)
}

// ArgMax returns the first place of the largest of x, which has one element or more.
func ArgMax(x []float32) int { return slices.Index(x, ks.max(x)) }

// Products multiplies a row with others that lie anywhere. The zero value is ready for
// use, by one goroutine at a time.
type Products struct {
	rows, packed, tile []float32
	ptr, col           []int32
}

// Of sets dst to the products of x, [f], with some rows of z, [n,f]. They are to the bit
// those that [Pool.MatMul] has of x and z transposed, and [Pool.Nearest]: x is a sparse matrix
// of one row, whose entries are added in the same order.
func (s *Products) Of(dst, x, z []float32, rows []int32) {
	need("Products", "dst", len(dst), len(rows))
	j := gemmJob{k: len(x), mk: ks.wide}
	j.divideRight()
	f, nr := len(x), j.mk.nr
	s.rows, s.packed, s.tile = grow(&s.rows, nr*f), grow(&s.packed, nr*j.kc+spill), grow(&s.tile, 2*nr)
	for len(s.col) < j.kc {
		s.col = append(s.col, int32(len(s.col)))
	}
	sum, part := s.tile[:nr], s.tile[nr:]
	for at := 0; at < len(rows); at += nr {
		some := rows[at:min(at+nr, len(rows))]
		for i, v := range some {
			copy(s.rows[i*f:(i+1)*f], z[int(v)*f:])
		}
		width := ceilDiv(len(some), ks.narrow.nr) * ks.narrow.nr
		for k0 := 0; k0 < f; k0 += j.kc {
			kc := min(j.kc, f-k0)
			packTransposed(s.packed, s.rows[k0:], kc, f, len(some), width)
			s.ptr = append(s.ptr[:0], 0, int32(kc))
			ks.spmm(part, s.ptr, s.col[:kc], nil, x[k0:k0+kc], nil, s.packed, width, 0, 1, 0, 0)
			if k0 == 0 {
				sum, part = part, sum
			} else {
				addTo(sum[:width], part[:width])
			}
		}
		copy(dst[at:], sum[:len(some)])
	}
}

func lcm(a, b int) int {
	x, y := a, b
	for y != 0 {
		x, y = y, x%y
	}
	return a / x * b
}
