package kernels

import (
	"math"
	"slices"
)

// Where most elements of the wide rows that are compared are 0, the products are made by those that are
// not. Each changes a row of the tile by a row of the packed matrix, and what is 0 changes no sum: an
// element's sum is the same to the bit.
const (
	zerosShare = 4   // elements for each that is not 0, from which on that takes less
	zerosTried = 64  // rows that are looked at first
	zerosSide  = 256 // of a block of rows, a multiple of what zerosWidth may be
	zerosPiece = 96  // columns at a time, at most: as many rows of a panel stay in the first-level cache
)

// zerosWidth returns the columns of a panel: what the sparse product holds in registers.
func zerosWidth() int { return 8 * ks.lanes }

// nonZeros are the elements of rows that are not 0, by pieces of columns and within these by rows,
// those with most first: they are near to more rows than others are, and what comes later is seldom nearer.
type nonZeros struct {
	n, f, kc  int // kc columns are added to each other before they join the sum
	per, size int // pieces of kc columns, and how many columns they have
	order     []int32
	counts    []int32 // [n, pieces]
	ptr       []int32 // [pieces, n+1]
	col       []int32
	val       []float32
}

// room returns how many int32s and floats there is room for.
func (s *nonZeros) room() int {
	return cap(s.order) + cap(s.counts) + cap(s.ptr) + cap(s.col) + cap(s.val)
}

// pieces returns into how many the columns are divided.
func (s *nonZeros) pieces() int { return ceilDiv(s.f, s.kc) * s.per }

// columns returns the columns from first to end of a piece.
func (s *nonZeros) columns(q int) (first, end int) {
	first = q / s.per * s.kc
	last := min(first+s.kc, s.f)
	first = min(first+q%s.per*s.size, last)
	return first, min(first+s.size, last)
}

func (s *nonZeros) divide(n, f int) {
	right := gemmJob{k: f, n: n, transB: true, mk: ks.wide}
	right.divideRight()
	s.n, s.f, s.kc, s.per = n, f, right.kc, ceilDiv(right.kc, zerosPiece)
	s.size = ceilDiv(s.kc, s.per)
}

// findNonZeros finds the elements of z that are not 0, and reports whether they are few.
func (p *Pool) findNonZeros(z []float32, n, f int) bool {
	if f < fewColumns {
		return false
	}
	found := 0
	tried := min(n, zerosTried)
	for i := range tried {
		row := i * n / tried
		found += notZero(z[row*f : (row+1)*f])
	}
	if found*zerosShare > tried*f {
		return false
	}
	s := &p.nonZeros
	s.divide(n, f)
	pieces := s.pieces()
	s.counts, s.ptr, s.order = room(s.counts, n*pieces), room(s.ptr, pieces*(n+1)), room(s.order, n)
	j := &p.jobs.zeros
	*j = zerosJob{p: p, nonZeros: s, z: z, stage: zerosCount}
	p.run(ceilDiv(n, zerosTried), j)

	// In the keys' order rows with as many lie as they did.
	p.growKeys(n)
	keys, all := p.keys[:n], 0
	for i := range keys {
		sum := 0
		for _, c := range s.counts[i*pieces : (i+1)*pieces] {
			sum += int(c)
		}
		keys[i], all = uint64(f-sum)<<32|uint64(i), all+sum
	}
	if all*zerosShare > n*f || all > math.MaxInt32 {
		*j = zerosJob{}
		return false
	}
	slices.Sort(keys)
	for i, key := range keys {
		s.order[i] = int32(uint32(key))
	}
	at := int32(0)
	for q := range pieces {
		ptr := s.ptr[q*(n+1) : (q+1)*(n+1)]
		ptr[0] = at
		for i, row := range s.order {
			at += s.counts[int(row)*pieces+q]
			ptr[i+1] = at
		}
	}
	s.col, s.val = room(s.col, all), room(s.val, all)
	p.intScratch(f)
	j.stage = zerosTake
	p.run(ceilDiv(n, zerosTried), j)
	*j = zerosJob{}
	return true
}

// room returns x with n elements, in its own memory if that suffices.
func room[T any](x []T, n int) []T {
	if cap(x) < n {
		return make([]T, n)
	}
	return x[:n]
}

// nearestZeros is [Pool.Nearest] by what findNonZeros has found.
func (p *Pool) nearestZeros(all nearestRows) {
	s, w := &p.nonZeros, zerosWidth()
	j := &p.jobs.zeros
	*j = zerosJob{p: p, nonZeros: s, z: all.z, rows: all, stage: zerosPack, packed: grow(&p.packB, ceilDiv(s.n, w)*w*s.f+spill)}
	j.rows.nodes = s.order
	p.scratch(zerosScratch(s.f))
	p.run(ceilDiv(s.n, packRowsMax), j)
	j.stage = zerosCompare
	p.run(j.rows.divide(p, zerosSide), j)
	if all.keys != nil {
		j.stage = zerosList
		p.run(ceilDiv(s.n, nearestEnded), j)
	}
	*j = zerosJob{}
}

// zerosScratch returns the floats of each thread: rows to pack, or two tiles and bounds that nothing
// reaches.
func zerosScratch(f int) int { return max(packRowsMax*f, (2*zerosSide+1)*zerosWidth()) }

type zerosStage int

const (
	zerosCount   zerosStage = iota
	zerosTake               // copy what is not 0
	zerosPack               // the rows as columns of panels
	zerosCompare            // pairs of blocks
	zerosList
)

type zerosJob struct {
	p *Pool
	*nonZeros
	stage     zerosStage
	z, packed []float32
	rows      nearestRows
}

func (j *zerosJob) do(c, worker int) {
	local := j.p.local[worker]
	switch j.stage {
	case zerosCount:
		pieces := j.pieces()
		for i := c * zerosTried; i < min((c+1)*zerosTried, j.n); i++ {
			for q := range pieces {
				first, end := j.columns(q)
				j.counts[i*pieces+q] = int32(notZero(j.z[i*j.f+first : i*j.f+end]))
			}
		}
	case zerosTake:
		for i := c * zerosTried; i < min((c+1)*zerosTried, j.n); i++ {
			row := int(j.order[i]) * j.f
			found, n := j.p.ints[worker], uint32(0)
			for k, v := range j.z[row : row+j.f] {
				found[n] = int32(k)
				n += one(v)
			}
			for q := range j.pieces() {
				at, last := j.ptr[q*(j.n+1)+i], j.ptr[q*(j.n+1)+i+1]
				copy(j.col[at:last], found)
				for e, k := range j.col[at:last] {
					j.val[int(at)+e] = j.z[row+int(k)]
				}
				found = found[last-at:]
			}
		}
	case zerosPack:
		w, at := zerosWidth(), c*packRowsMax
		rows := min(packRowsMax, j.n-at)
		for i, row := range j.order[at : at+rows] {
			copy(local[i*j.f:(i+1)*j.f], j.z[int(row)*j.f:])
		}
		ks.packRows(j.packed[at/w*w*j.f+at%w:], local, j.f, j.f, rows, w)
	case zerosCompare:
		a, b := j.rows.blocks(c)
		j.pair(b*zerosSide, a*zerosSide, local, j.p.index[worker])
	case zerosList:
		for u := c * nearestEnded; u < min((c+1)*nearestEnded, j.n); u++ {
			j.rows.list(u)
		}
	}
}

// pair compares the rows from r0 on with those from c0 on, which have no fewer elements.
func (j *zerosJob) pair(r0, c0 int, local []float32, hits []uint64) {
	w := zerosWidth()
	local, none := cut(local, w)
	local, tile := cut(local, zerosSide*w)
	r1 := min(r0+zerosSide, j.n)
	for c := c0; c < min(c0+zerosSide, j.n); c += w {
		cols, first := min(w, j.n-c), r0
		if r0 == c0 { // what is above the diagonal is there below it
			first = c
		}
		j.product(tile, local, first, r1, c)
		j.rows.take(c0/zerosSide, r0/zerosSide)
		if r0 == c0 {
			first = min(c+w, r1)
			j.rows.look(tile, w, c, first-c, c, cols, none, hits)
			j.rows.look(tile[(first-c)*w:], w, first, r1-first, c, cols, nil, hits)
		} else {
			j.rows.look(tile, w, r0, r1-r0, c, cols, nil, hits)
		}
		j.rows.give(c0/zerosSide, r0/zerosSide)
	}
}

// product computes the products of the rows from r0 to r1 with those of the panel from c on.
func (j *zerosJob) product(tile, part []float32, r0, r1, c int) {
	w, right := zerosWidth(), j.packed[c*j.f:]
	tile = tile[:(r1-r0)*w]
	for q := range j.pieces() {
		sum, add := tile, min(1, q%j.per)
		if q >= j.per {
			sum = part[:len(tile)]
		}
		ks.spmm(sum, j.ptr[q*(j.n+1)+r0:q*(j.n+1)+r1+1], j.col, nil, j.val, nil, right, w, 0, r1-r0, add, 0)
		if q >= j.per && (q+1)%j.per == 0 {
			ks.vv[Add](tile, tile, sum)
		}
	}
}
