package kernels

import (
	"math"
	"math/bits"
	"slices"
)

// NearestAround improves the lists of [Pool.Nearest] by the neighbours of
// neighbours: a row is compared with every row in the lists of those in its own
// list (Dong, Moses and Li, "Efficient k-nearest neighbor graph construction for
// generic similarity measures", WWW 2011). old, [n,k], has the lists of before
// and must not be idx. Those of its entries that were in it when lists were looked at before are
// [Known]: rows that two such entries lead to have been compared, and are left out.
// order, a permutation of the rows, says in which order they
// are visited: rows that are near each other should be near in it, so that what
// they share is still in cache. Products may differ in the last bits from those
// that the other searches make.
func (p *Pool) NearestAround(idx []int32, sim []float32, rows *Codes, k int, old, order []int32) {
	n := rows.n
	need("NearestAround", "idx", len(idx), n*k)
	need("NearestAround", "sim", len(sim), n*k)
	need("NearestAround", "old", len(old), n*k)
	need("NearestAround", "order", len(order), n)
	if n == 0 || k <= 0 || rows.f == 0 {
		return
	}
	most := k * k
	table := 1 << bits.Len(uint(2*(most+k)))
	p.scratch(codeRows)
	p.intScratch(table + most + comparingInts)
	lists := nearestRows{idx: idx, sim: sim, k: k, worst: grow(&p.part, n)}
	runJob(p, &p.jobs.around, aroundJob{comparing: comparing{p: p, lists: lists, Codes: rows, order: order}, old: old, most: most, table: table}, ceilDiv(n, aroundRows))
}

// Known marks row v of a list as one that was in it before, and of a marked one
// returns the row; of −1, which no row is, it returns −1.
func Known(v int32) int32 { return -2 - v }

const aroundRows = 256 // of a chunk

type aroundJob struct {
	comparing
	old   []int32 // neighbours
	most  int     // rows that one row may be compared with
	table int     // places of the hash table, a power of two
}

func (j *aroundJob) do(c, worker int) {
	k, ints := j.lists.k, j.p.ints[worker][comparingInts:]
	table, found := ints[:j.table], ints[j.table:j.table:j.table+j.most]
	for at := c * aroundRows; at < min((c+1)*aroundRows, j.n); at++ {
		u := int(j.order[at])
		clear(table)
		seen(table, int32(u))
		near := j.old[u*k : (u+1)*k]
		for _, v := range near {
			if v < 0 {
				v = Known(v)
			}
			if v >= 0 {
				seen(table, v)
			}
		}
		found = found[:0]
		for _, v := range near {
			if v == -1 {
				break
			}
			known := v < 0
			if known {
				v = Known(v)
			}
			for _, w := range j.old[int(v)*k : (int(v)+1)*k] {
				if w < 0 {
					if known {
						continue
					}
					w = Known(w)
				}
				if w >= 0 && !seen(table, w) {
					found = append(found, w)
				}
			}
		}
		j.compare(worker, u, found)
	}
}

// NearestAmong improves the lists of [Pool.Nearest] by the rows that each is given, as the neighbours
// of a graph, in which row u is node nodes[u], and node v is row row[v], or none where that is −1: it is compared
// with those of col[rowPtr[nodes[u]]:rowPtr[nodes[u]+1]]. order and products are as
// [Pool.NearestAround] has them.
func (p *Pool) NearestAmong(idx []int32, sim []float32, rows *Codes, k int, rowPtr, col, nodes, row, order []int32) {
	n := rows.n
	need("NearestAmong", "idx", len(idx), n*k)
	need("NearestAmong", "sim", len(sim), n*k)
	need("NearestAmong", "nodes", len(nodes), n)
	need("NearestAmong", "order", len(order), n)
	if n == 0 || k <= 0 || rows.f == 0 {
		return
	}
	p.scratch(codeRows)
	p.intScratch(amongRows + comparingInts)
	lists := nearestRows{idx: idx, sim: sim, k: k, worst: grow(&p.part, n), again: true}
	runJob(p, &p.jobs.among, amongJob{comparing: comparing{p: p, lists: lists, Codes: rows, order: order}, rowPtr: rowPtr, col: col, nodes: nodes, row: row}, ceilDiv(n, aroundRows))
}

const amongRows = 1024 // that a row is compared with at a time

type amongJob struct {
	comparing
	rowPtr, col, nodes, row []int32
}

func (j *amongJob) do(c, worker int) {
	for at := c * aroundRows; at < min((c+1)*aroundRows, j.n); at++ {
		u := j.order[at]
		v := j.nodes[u]
		for among := range slices.Chunk(j.col[j.rowPtr[v]:j.rowPtr[v+1]], amongRows) {
			rows := j.p.ints[worker][comparingInts:comparingInts]
			for _, w := range among {
				if r := j.row[w]; r >= 0 {
					rows = append(rows, r)
				}
			}
			j.compare(worker, int(u), rows)
		}
	}
}

// comparing is what jobs have in common that compare each row with some others.
type comparing struct {
	p     *Pool
	lists nearestRows
	*Codes
	order []int32
}

// comparingInts is the room that compare takes of a thread's numbers, before that of the job.
const comparingInts = 2 + 2*codeRows

// compare offers rows to the list of row u, which may be among them.
func (j *comparing) compare(worker, u int, rows []int32) {
	ints, products := j.p.ints[worker], j.p.local[worker]
	ptr, dots, near := ints[:2], ints[2:2+codeRows], ints[2+codeRows:2+codeRows:comparingInts]
	z, x, common := j.row(u), j.x[worker], 0.0
	for i, v := range z {
		x[i] = int16(math.RoundToEven(float64(v) * codeX))
		common += float64(float64(v) * float64(j.mean[i]))
	}
	common += 1 / float64(j.scale) // the step
	worst := &j.lists.worst[u]
	*worst = j.lists.sim[(u+1)*j.lists.k-1]
	for some := range slices.Chunk(rows, codeRows) {
		ks.codeDots(dots, some, x, j.code, fetchAhead(j.n, j.width/4))
		least := int32(max(math.MinInt32, min(math.MaxInt32, math.Floor((float64(*worst)-common)*codeX*float64(j.scale)))))
		near = near[:0]
		for i, v := range some {
			if dots[i] >= least && int(v) != u {
				near = append(near, v)
			}
		}
		ptr[0], ptr[1] = 0, int32(len(near))
		ks.sddmm(products, ptr, near, nil, z, j.z, j.f, 0, 1, fetchAhead(j.n, j.f))
		for i, v := range near {
			if s := products[i]; s >= *worst {
				j.lists.offer(u, int(v), s)
			}
		}
	}
}

// seen reports whether x, at least 0, is in an open-addressed hash table that
// has room, and puts it there.
func seen(table []int32, x int32) bool {
	mask := uint32(len(table) - 1)
	for at := uint32(x) * 2654435769 >> 8; ; at++ {
		switch v := &table[at&mask]; *v {
		case 0:
			*v = x + 1
			return false
		case x + 1:
			return true
		}
	}
}
