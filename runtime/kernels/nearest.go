package kernels

import "math"

// Nearest finds, for every row i of z, [n,f], the k other rows j with the
// largest products s_ij = z_i·z_j. It writes [n,k] row numbers and products, the
// largest first and of equal ones the lower row number; where there are fewer
// than k other rows, −1 and −Inf. z must be finite, and f at least 1.
//
// The products are made tile by tile in each thread's cache and looked through
// there. As s_ij and s_ji are equal to the bit, a tile off the diagonal serves
// the rows of both its sides, so half of the products do. The tiles that run
// side by side have no rows in common: of b blocks of rows, round r pairs block
// i with block (r − i) mod b, as in a tournament.
func (p *Pool) Nearest(idx []int32, sim, z []float32, n, f, k int) {
	need("Nearest", "idx", len(idx), n*k)
	need("Nearest", "sim", len(sim), n*k)
	need("Nearest", "z", len(z), n*f)
	least := float32(math.Inf(-1))
	for i := range max(0, n*k) {
		idx[i], sim[i] = -1, least
	}
	if n <= 0 || k <= 0 || f <= 0 {
		return
	}
	j := &p.jobs.near
	*j = nearestJob{p: p, idx: idx, sim: sim, z: z, n: n, f: f, k: k, mk: ks.wide}
	right := &p.jobs.mm
	*right = gemmJob{p: p, b: z, k: f, n: n, transB: true, mk: j.mk}
	right.divideRight()
	right.pack()
	j.packed, j.kc, j.panels = right.packed, right.kc, right.panels
	*right = gemmJob{}

	j.divide()
	j.blocks = ceilDiv(n, j.side)
	p.scratch(j.localLen())
	j.worst = grow(&p.part, n)
	fill(j.worst, least)
	for j.round = range j.blocks {
		p.run(j.round/2+1+(j.round+j.blocks)/2-j.round, j)
	}
	*j = nearestJob{}
}

// divide chooses the side of a block.
func (j *nearestJob) divide() {
	j.side = lcm(j.mk.mr, j.mk.nr)
	j.side *= max(1, nearestSide/j.side)
	j.strip = j.mk.mr*j.kc + spill
}

// localLen is the length of each thread's tile, row and packed strips.
func (j *nearestJob) localLen() int {
	return j.side*j.side + j.side + j.strip*j.side/j.mk.mr
}

// nearestSide is about the side of a tile: tile, panels and rows together fit
// in a second-level cache.
const nearestSide = 144

type nearestJob struct {
	p       *Pool
	idx     []int32
	sim, z  []float32
	n, f, k int
	mk      micro
	packed  []float32 // zᵀ in panels
	kc      int       // length of a block of f
	panels  int
	strip   int       // floats of one packed strip of rows
	worst   []float32 // [n] the least product among a row's k
	side    int       // rows of a block
	blocks  int
	round   int
}

func (j *nearestJob) do(c, worker int) {
	// The pairs a ≤ b with a + b = round, then those with a + b = round + blocks.
	a, b := c, j.round-c
	if c > j.round/2 {
		a += (j.round + 1) / 2
		b = j.round + j.blocks - a
	}
	local := j.p.local[worker]
	tile, local := local[:j.side*j.side], local[j.side*j.side:]
	none, strips := local[:j.side], local[j.side:]
	j.product(tile, strips, a*j.side, b*j.side)

	r0, c0 := a*j.side, b*j.side
	rows, cols := min(j.side, j.n-r0), min(j.side, j.n-c0)
	colWorst := j.worst[c0 : c0+cols]
	if a == b { // both halves of the tile are there
		colWorst = none[:cols]
		fill(colWorst, float32(math.Inf(1)))
	}
	hits := j.p.index[worker]
	for i := range rows {
		row, u := tile[i*j.side:i*j.side+cols], r0+i
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

// product computes the products of the blocks of rows from r0 and c0 on.
func (j *nearestJob) product(tile, strips []float32, r0, c0 int) {
	mr, nr := j.mk.mr, j.mk.nr
	rows, cols := min(j.side, j.n-r0), min(j.side, j.n-c0)
	for k0 := 0; k0 < j.f; k0 += j.kc {
		kc := min(j.kc, j.f-k0)
		for s := range ceilDiv(rows, mr) {
			row := r0 + s*mr
			a, rs, cs := j.z[row*j.f+k0:], j.f, 1
			if h := min(mr, j.n-row); h < mr || j.f%512 == 0 { // see MatMul
				a, rs, cs = strips[s*j.strip:], 1, mr
				packTransposed(a, j.z[row*j.f+k0:], kc, j.f, h, mr)
			}
			for q := range ceilDiv(cols, nr) {
				right := j.packed[k0*j.panels*nr+(c0/nr+q)*kc*nr:]
				c := tile[s*mr*j.side+q*nr:]
				var add []float32
				if k0 > 0 {
					add = c
				}
				j.mk.f(kc, a, rs, cs, 0, right, c, j.side, add, 1)
			}
		}
	}
}

// offer puts row v, with product s, among the nearest of row u if it belongs
// there.
func (j *nearestJob) offer(u, v int, s float32) {
	idx, sim := j.idx[u*j.k:(u+1)*j.k], j.sim[u*j.k:(u+1)*j.k]
	at := j.k - 1
	if s == sim[at] && int32(v) > idx[at] {
		return
	}
	for at > 0 && (s > sim[at-1] || s == sim[at-1] && int32(v) < idx[at-1]) {
		sim[at], idx[at] = sim[at-1], idx[at-1]
		at--
	}
	sim[at], idx[at] = s, int32(v)
	j.worst[u] = sim[j.k-1]
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

func lcm(a, b int) int {
	x, y := a, b
	for y != 0 {
		x, y = y, x%y
	}
	return a / x * b
}
