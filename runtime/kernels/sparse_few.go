package kernels

import "math"

// Matrices that are stored densely, but of which few entries are not 0, as words: products with a
// graph then multiply these alone, in the order that all have. What is 0 changes no sum.
const (
	fewColumns = 512 // at least
	fewShare   = 32  // entries for each that is not 0
	fewFirst   = 64  // rows that are looked at before it is given up
	fewReads   = 4   // of each row, at least, for which the look pays
)

// fewKeys returns how many keys the rows of a [rows, f] matrix take that so many entries read, 0
// where they are not looked at.
func fewKeys(rows, entries, f int) int {
	if f < fewColumns || entries < fewReads*rows {
		return 0
	}
	return rows + 1 + rows*f/fewShare
}

// fewRows are the entries of rows that are not 0: of row i those from at[i] to at[i+1], each with
// its value above and its column below.
type fewRows struct {
	at, entries []uint64
}

func (r *fewRows) row(i int) []uint64 { return r.entries[r.at[i]:r.at[i+1]] }

// few finds the entries of x [rows, f] that are not 0, and reports whether they are few.
func (p *Pool) few(x []float32, rows, entries, f int) (r fewRows, ok bool) {
	keys := fewKeys(rows, entries, f)
	if keys == 0 {
		return r, false
	}
	seen := 0
	for i := range min(fewFirst, rows) {
		seen += notZero(x[i*rows/min(fewFirst, rows)*f:][:f])
	}
	if fewShare*seen > min(fewFirst, rows)*f {
		return r, false
	}
	p.growKeys(keys)
	r.at, r.entries = p.keys[:rows+1], p.keys[rows+1:keys]
	j := &p.jobs.few
	*j = fewJob{fewRows: r, kind: fewCount, x: x, n: rows, f: f, sparseJob: sparseJob{p: p}}
	p.run(ceilDiv(rows, fewPiece), j)
	r.at[0] = 0
	for i := range rows {
		r.at[i+1] += r.at[i]
	}
	if ok = int(r.at[rows]) <= len(r.entries); ok {
		j.kind = fewStore
		p.run(ceilDiv(rows, fewPiece), j)
	}
	*j = fewJob{}
	return r, ok
}

// entriesGo writes to hits what is not 0 in x, its bits above where it is, and returns how many there are.
func entriesGo(hits []uint64, x []float32) int {
	n := 0
	for i, v := range x {
		if v != 0 {
			hits[n] = uint64(math.Float32bits(v))<<32 | uint64(i)
			n++
		}
	}
	return n
}

// notZero returns how many elements are not 0, without a jump for each: outcomes are often random.
func notZero(x []float32) (n int) {
	for _, v := range x {
		n += int(one(v))
	}
	return n
}

// one is 1 for what is not 0.
func one(v float32) uint32 {
	b := math.Float32bits(v) << 1
	return (b | -b) >> 31
}

type fewKind int

const (
	fewCount fewKind = iota
	fewStore
	fewProduct
	fewDot
)

const fewPiece = 16 // rows

type fewJob struct {
	fewRows
	kind fewKind
	x    []float32
	n, f int
	sparseJob
}

func (j *fewJob) do(c, worker int) {
	if j.kind < fewProduct {
		for i := c * fewPiece; i < min((c+1)*fewPiece, j.n); i++ {
			x := j.x[i*j.f : (i+1)*j.f]
			if j.kind == fewStore {
				ks.entries(j.entries[j.at[i]:], x)
				continue
			}
			n, found := 0, j.p.index[worker]
			for len(x) > 0 {
				part := x[:min(len(found), len(x))]
				n, x = n+ks.entries(found, part), x[len(part):]
			}
			j.at[i+1] = uint64(n)
		}
		return
	}
	for r := j.s.rowAt(c, j.per); r < j.s.rowAt(c+1, j.per); r++ {
		if j.kind == fewProduct {
			j.product(r, j.p.local[worker])
		} else {
			j.dots(r)
		}
	}
}

// product computes row r of a sparse product.
func (j *fewJob) product(r int, local []float32) {
	s, f := j.s, j.sparseJob.f
	j.epi.begin(j.dst, f, r, r+1, 0, f)
	d := j.dst[r*f : (r+1)*f]
	if r < len(j.diag) {
		addScaled(d, j.diag[r], j.row(s.First+r))
	}
	for e := s.RowPtr[r]; e < s.RowPtr[r+1]; e++ {
		a := float32(1)
		if j.a != nil {
			a = j.a[s.value(e)]
		}
		addScaled(d, a, j.row(int(s.Col[e])))
	}
	j.epi.finish(j.dst, f, r, r+1, 0, f, local)
}

func addScaled(d []float32, a float32, entries []uint64) {
	if a == 0 {
		return
	}
	for _, e := range entries {
		col := uint32(e)
		d[col] = fma32(a, math.Float32frombits(uint32(e>>32)), d[col])
	}
}

// dots computes the inner products of row r, in the order of dot16Go.
func (j *fewJob) dots(r int) {
	s, f := j.s, j.sparseJob.f
	x := j.b[r*f : (r+1)*f]
	for e := s.RowPtr[r]; e < s.RowPtr[r+1]; e++ {
		if j.other != nil && int(s.Col[e]) > r {
			continue
		}
		var sums [16]float32
		any := false
		for _, k := range j.row(int(s.Col[e])) {
			col := uint32(k)
			v := x[col]
			if v == 0 {
				continue
			}
			lane := col & 15
			sums[lane], any = fma32(v, math.Float32frombits(uint32(k>>32)), sums[lane]), true
		}
		j.dst[e] = 0
		if any {
			j.dst[e] = fold16(&sums)
		}
		if j.other != nil {
			j.dst[j.other[e]] = j.dst[e]
		}
	}
}

// runFew runs a product or inner products over the rows of a structure.
func (p *Pool) runFew(kind fewKind, r fewRows, job sparseJob) {
	var chunks int
	job.p = p
	job.per, chunks = job.s.chunks(128)
	runJob(p, &p.jobs.few, fewJob{fewRows: r, kind: kind, sparseJob: job}, chunks)
}
