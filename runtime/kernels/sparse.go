package kernels

import (
	"fmt"
	"math"

	"github.com/gsrc-dev/gsrc/rng"
)

// Side names an end of an entry of a CSR structure.
type Side int

const (
	Dst Side = iota // the row
	Src             // the column
)

// SpMM computes the rows dst_i = Σ_e vals_e·h[col_e] over the entries e of row
// i, plus diag_i·h[s.First+i] for the rows that diag has, then the epilogue. h is
// [s.Cols, f], dst [s.Rows, f]; vals nil stands for ones. The entries of a row
// are added in their order, the diagonal first. dst must not overlap h.
func (p *Pool) SpMM(dst []float32, s *CSR, vals, diag, h []float32, f int, epi Epilogue) {
	p.SpMMHeads(dst, s, vals, diag, h, f, 1, epi)
}

// SpMMHeads is [Pool.SpMM] with one value for each of heads blocks of columns,
// all of one width: vals is [len(s.Col), heads], diag [rows, heads], and column k
// of an entry is multiplied by the value k·heads/f.
func (p *Pool) SpMMHeads(dst []float32, s *CSR, vals, diag, h []float32, f, heads int, epi Epilogue) {
	s.check("SpMM")
	checkHeads("SpMM", f, heads)
	need("SpMM", "dst", len(dst), s.Rows*f)
	need("SpMM", "h", len(h), s.Cols*f)
	needIfAny("SpMM", "vals", vals, len(s.Col)*heads)
	if diag != nil {
		need("SpMM", "h", len(h), (s.First+min(len(diag)/heads, s.Rows))*f)
	}
	epi.check("SpMM", dst, s.Rows, f)
	if f == 0 {
		return
	}
	job := sparseJob{run: (*sparseJob).product, dst: dst, s: s, a: vals, diag: diag, b: h, f: f, heads: heads, ahead: fetchAhead(s.Cols, f), epi: epi}
	if few, ok := p.few(h, s.Cols, len(s.Col), f); ok && heads == 1 {
		p.scratch(epi.scratch())
		p.runFew(fewProduct, few, job)
		return
	}
	if s.First == 0 && byBlocks(s.Rows, s.Cols, len(s.Col), f, heads) {
		p.spmmWide(job)
		return
	}
	if heads == 1 && vals != nil && diag == nil && byRows(s, f) {
		p.spmmScatter(job)
		return
	}
	p.scratch(epi.scratch())
	p.runSparse(job)
}

// SpMMRows adds to the rows of dst that rows names, each once, what [Pool.SpMMHeads] without
// diagonal and epilogue computes: the entries of row i of s to row rows[i].
func (p *Pool) SpMMRows(dst []float32, rows []int32, s *CSR, vals, h []float32, f, heads int) {
	s.check("SpMMRows")
	checkHeads("SpMMRows", f, heads)
	need("SpMMRows", "rows", len(rows), s.Rows)
	need("SpMMRows", "h", len(h), s.Cols*f)
	p.runSparse(sparseJob{run: (*sparseJob).product, dst: dst, rows: rows, s: s, a: vals, b: h, f: f, heads: heads, ahead: fetchAhead(s.Cols, f), epi: Epilogue{Accumulate: true}})
}

func checkHeads(kernel string, f, heads int) {
	if heads < 1 || f%heads != 0 {
		panic(fmt.Sprintf("kernels: %s: %d columns do not divide into %d heads", kernel, f, heads))
	}
}

// fetchAhead returns how many entries ahead to ask for the rows of a [rows, f]
// matrix that entries name: none where it lies in the second-level cache, where asking costs
// more than waiting; else some 2 KiB of them.
func fetchAhead(rows, f int) int {
	const cached = 512 << 10
	if 4*rows*f <= cached {
		return 0
	}
	return min(max(512/f, 4), 16)
}

// SDDMM computes one inner product for each entry: dst_e = ⟨p_row(e), q_col(e)⟩
// with p [s.Rows, f] and q [s.Cols, f].
func (p *Pool) SDDMM(dst []float32, s *CSR, pm, q []float32, f int) {
	p.SDDMMHeads(dst, s, pm, q, f, 1)
}

// SDDMMHeads is [Pool.SDDMM] with one inner product for each of heads blocks of
// columns, all of one width: dst is [len(s.Col), heads].
func (p *Pool) SDDMMHeads(dst []float32, s *CSR, pm, q []float32, f, heads int) {
	s.check("SDDMM")
	checkHeads("SDDMM", f, heads)
	need("SDDMM", "dst", len(dst), len(s.Col)*heads)
	need("SDDMM", "p", len(pm), s.Rows*f)
	need("SDDMM", "q", len(q), s.Cols*f)
	p.runSparse(sparseJob{run: (*sparseJob).dots, dst: dst, s: s, a: pm, b: q, f: f, heads: heads, ahead: fetchAhead(s.Cols, f)})
}

// EdgeGather copies node values, f a node, to entries: dst_e = v[row(e)] for side
// Dst, v[col(e)] for side Src.
func (p *Pool) EdgeGather(dst []float32, s *CSR, v []float32, f int, side Side) {
	s.check("EdgeGather")
	need("EdgeGather", "dst", len(dst), len(s.Col)*f)
	if side == Dst {
		need("EdgeGather", "v", len(v), s.Rows*f)
	} else {
		need("EdgeGather", "v", len(v), s.Cols*f)
	}
	p.runSparse(sparseJob{run: (*sparseJob).gather, dst: dst, s: s, a: v, side: side, f: f})
}

// EdgeSum adds the entries' values w, f an entry: dst_i = Σ_{e in row i} w_e for
// side Dst, dst_j = Σ_{e in column j} w_e for side Src, in the order of the
// entries. Columns are summed on one thread: to sum them in parallel pass the
// structure's [Transpose] and side Dst.
func (p *Pool) EdgeSum(dst []float32, s *CSR, w []float32, f int, side Side) {
	s.check("EdgeSum")
	need("EdgeSum", "w", len(w), len(s.Col)*f)
	if side == Dst {
		need("EdgeSum", "dst", len(dst), s.Rows*f)
		p.runSparse(sparseJob{run: (*sparseJob).sum, dst: dst, s: s, a: w, f: f})
		return
	}
	need("EdgeSum", "dst", len(dst), s.Cols*f)
	clear(dst[:s.Cols*f])
	for e, c := range s.Col {
		addTo(dst[int(c)*f:][:f], w[int(s.value(int32(e)))*f:][:f])
	}
}

func addTo(dst, x []float32) {
	for i, v := range x {
		dst[i] += v
	}
}

// EdgeUniform draws one number in [0, 1) for each entry, the same for (i,j) and
// (j,i): dst_e = key.UniformPair(row(e), col(e)).
func (p *Pool) EdgeUniform(dst []float32, s *CSR, key rng.Stream) {
	s.check("EdgeUniform")
	need("EdgeUniform", "dst", len(dst), len(s.Col))
	p.scratch(scatterMax)
	p.runSparse(sparseJob{run: (*sparseJob).draw, dst: dst, s: s, key: key, f: 16})
}

// DropoutSparse is [Pool.Dropout] of the [s.Rows, cols] matrix whose entries are
// vals (nil for ones), computed for the entries alone: entry e is dropped
// exactly when the dense form drops element row(e)·cols + col(e).
func (p *Pool) DropoutSparse(dst, vals []float32, s *CSR, cols int, rate float32, key rng.Stream) {
	s.check("DropoutSparse")
	need("DropoutSparse", "dst", len(dst), len(s.Col))
	needIfAny("DropoutSparse", "vals", vals, len(s.Col))
	rate, scale := dropoutScale(rate)
	p.scratch(scatterMax)
	p.runSparse(sparseJob{run: (*sparseJob).draw, drops: true, dst: dst, s: s, a: vals, f: 16, cols: cols, key: key, rate: rate, scale: scale})
}

// sparseJob is one kernel over the rows of a structure.
type sparseJob struct {
	run             func(j *sparseJob, r0, r1, worker int)
	p               *Pool
	dst, a, b, diag []float32
	s               *CSR
	rows            []int32 // of dst, for each row of s; nil: the same
	f, cols, per    int
	heads           int // of products
	ahead           int // entries ahead whose rows of b are fetched, 0 for none
	side            Side
	other           []int32 // of each entry that in the other direction, where products serve both
	epi             Epilogue
	drops           bool // entries, by what is drawn for them
	key             rng.Stream
	rate, scale     float32 // of rows that are normalised scale is the least norm

	rowStride, colStride int  // of b, by which entries are scaled
	divide               bool // entries by b
}

func (p *Pool) runSparse(job sparseJob) {
	var chunks int
	job.per, chunks = job.s.chunks(job.f)
	job.p = p
	runJob(p, &p.jobs.sparse, job, chunks)
}

func (j *sparseJob) do(c, worker int) {
	if r0, r1 := j.s.rowAt(c, j.per), j.s.rowAt(c+1, j.per); r0 < r1 {
		j.run(j, r0, r1, worker)
	}
}

func (j *sparseJob) dots(r0, r1, _ int) {
	s, f := j.s, j.f/j.heads
	if j.heads == 1 {
		ks.sddmm(j.dst, s.RowPtr, s.Col, s.Perm, j.a, j.b, f, r0, r1, j.ahead)
		return
	}
	for h := range j.heads {
		ks.sddmmHead(from(j.dst, h), s.RowPtr, s.Col, s.Perm, from(j.a, h*f), from(j.b, h*f), f, j.f, j.heads, r0, r1, j.ahead)
	}
}

func (j *sparseJob) product(r0, r1, worker int) {
	if j.rows != nil {
		one := *j.s
		for r := r0; r < r1; r++ {
			one.RowPtr = j.s.RowPtr[r:]
			j.rowsOf(from(j.dst, int(j.rows[r])*j.f), &one, nil, 0, 1, 1)
		}
		return
	}
	f, add := j.f, 0
	if j.epi.Accumulate || j.epi.Add != nil {
		add = 1
		j.epi.begin(j.dst, f, r0, r1, 0, f)
	}
	diag := j.diag
	if j.s.First > 0 && diag != nil {
		j.ownTerms(r0, r1, add == 0)
		diag, add = nil, 1
	}
	j.rowsOf(j.dst, j.s, diag, r0, r1, add)
	j.epi.finish(j.dst, f, r0, r1, 0, f, j.p.local[worker])
}

// rowsOf computes the rows of a product from r0 to r1, or adds to them.
func (j *sparseJob) rowsOf(dst []float32, s *CSR, diag []float32, r0, r1, add int) {
	if j.heads == 1 {
		ks.spmm(dst, s.RowPtr, s.Col, s.Perm, j.a, diag, j.b, j.f, r0, r1, add, j.ahead)
		return
	}
	f := j.f / j.heads
	for h := range j.heads {
		ks.spmmHead(from(dst, h*f), s.RowPtr, s.Col, s.Perm, from(j.a, h), from(diag, h), from(j.b, h*f), f, j.f, j.heads, r0, r1, add, j.ahead)
	}
}

// ownTerms adds diag_i·h[First+i] to the rows, or makes them that, as the products begin with.
func (j *sparseJob) ownTerms(r0, r1 int, clean bool) {
	f := j.f / j.heads
	if clean {
		clear(j.dst[r0*j.f : r1*j.f])
	}
	for i := r0 * j.heads; i < min(r1*j.heads, len(j.diag)); i++ {
		h := j.b[j.s.First*j.f+i*f:][:f]
		for k, v := range j.dst[i*f:][:f] {
			j.dst[i*f+k] = fma32(j.diag[i], h[k], v)
		}
	}
}

func (j *sparseJob) sum(r0, r1, _ int) {
	s, f := j.s, j.f
	for r := r0; r < r1; r++ {
		first, last := s.RowPtr[r], s.RowPtr[r+1]
		if f != 1 {
			d := j.dst[r*f : (r+1)*f]
			clear(d)
			for e := first; e < last; e++ {
				addTo(d, j.a[int(s.value(e))*f:][:f])
			}
			continue
		}
		var sum float32
		if s.Perm == nil {
			for _, v := range j.a[first:last] {
				sum += v
			}
		} else {
			for _, e := range s.Perm[first:last] {
				sum += j.a[e]
			}
		}
		j.dst[r] = sum
	}
}

func (j *sparseJob) gather(r0, r1, _ int) {
	s, f := j.s, j.f
	if first, last := s.RowPtr[r0], s.RowPtr[r1]; j.side == Src && s.Perm == nil && f == 1 {
		dst := j.dst[first:last]
		for i, c := range s.Col[first:last] {
			dst[i] = j.a[c]
		}
		return
	}
	for r := r0; r < r1; r++ {
		for e := s.RowPtr[r]; e < s.RowPtr[r+1]; e++ {
			i := r
			if j.side == Src {
				i = int(s.Col[e])
			}
			if at := int(s.value(e)); f == 1 {
				j.dst[at] = j.a[i]
			} else {
				copy(j.dst[at*f:(at+1)*f], j.a[i*f:])
			}
		}
	}
}

// draw handles the entries of rows r0 ≤ r < r1, scatterMax at a time: what each
// draws is noted in idx, drawn into u and used.
func (j *sparseJob) draw(r0, r1, worker int) {
	s, idx, u := j.s, j.p.index[worker], j.p.local[worker]
	row := r0
	for first := s.RowPtr[r0]; first < s.RowPtr[r1]; first += scatterMax {
		last := min(first+scatterMax, s.RowPtr[r1])
		n := int(last - first)
		for e := first; e < last; {
			for e >= s.RowPtr[row+1] {
				row++
			}
			end := min(last, s.RowPtr[row+1])
			to, r := idx[e-first:end-first], uint64(row)
			for i, c := range s.Col[e:end] {
				if j.drops {
					to[i] = r*uint64(j.cols) + uint64(c)
				} else {
					to[i] = min(r, uint64(c)) | max(r, uint64(c))<<32
				}
			}
			e = end
		}
		padded := ceilDiv(n, scatterUnit) * scatterUnit
		if !j.drops {
			ks.uniformPair(u[:padded], idx[:padded], uint64(j.key))
			for i := range n {
				j.dst[s.value(first+int32(i))] = u[i]
			}
			continue
		}
		if j.rate > 0 {
			ks.uniformAt(u[:padded], idx[:padded], uint64(j.key))
		}
		j.drop(first, u[:n])
	}
}

// drop scales the values of entries from first on, or makes them 0 where u is below the rate: of
// numbers that are not negative their bits say so, and what no one can predict is no branch.
func (j *sparseJob) drop(first int32, u []float32) {
	rate := math.Float32bits(j.rate)
	dropped := func(v, u float32) float32 {
		return math.Float32frombits(math.Float32bits(v) &^ uint32(int32(math.Float32bits(u)-rate)>>31))
	}
	if rate == 0 { // nothing was drawn
		clear(u)
	}
	if perm := j.s.Perm; perm != nil || j.a == nil {
		for i, u := range u {
			at, v := j.s.value(first+int32(i)), j.scale
			if j.a != nil {
				v = float32(v * j.a[at])
			}
			j.dst[at] = dropped(v, u)
		}
		return
	}
	dst, a := j.dst[first:][:len(u)], j.a[first:][:len(u)]
	for i, u := range u {
		dst[i] = dropped(float32(j.scale*a[i]), u)
	}
}

// spmmGo computes rows r0 ≤ r < r1 of the product into dst, or adds them to it: a
// row's own term, if there is a diagonal, then its entries.
func spmmGo(dst []float32, rowPtr, col, perm []int32, vals, diag, h []float32, f, r0, r1, add, ahead int) {
	spmmHeadGo(dst, rowPtr, col, perm, vals, diag, h, f, f, 1, r0, r1, add, ahead)
}

// spmmHeadGo does so for one block of f columns of rows ld wide, the values heads
// apart.
func spmmHeadGo(dst []float32, rowPtr, col, perm []int32, vals, diag, h []float32, f, ld, heads, r0, r1, add, _ int) {
	for r := r0; r < r1; r++ {
		d := dst[r*ld:][:f]
		if add == 0 {
			clear(d)
		}
		if r*heads < len(diag) {
			for i, v := range h[r*ld:][:f] {
				d[i] = fma32(diag[r*heads], v, d[i])
			}
		}
		for e := rowPtr[r]; e < rowPtr[r+1]; e++ {
			in := h[int(col[e])*ld:][:len(d)]
			if vals == nil {
				addTo(d, in)
				continue
			}
			i := e
			if perm != nil {
				i = perm[e]
			}
			v := vals[int(i)*heads]
			for i := range d {
				d[i] = fma32(v, in[i], d[i])
			}
		}
	}
}

func sddmmGo(dst []float32, rowPtr, col, perm []int32, p, q []float32, f, r0, r1, ahead int) {
	sddmmHeadGo(dst, rowPtr, col, perm, p, q, f, f, 1, r0, r1, ahead)
}

func sddmmHeadGo(dst []float32, rowPtr, col, perm []int32, p, q []float32, f, ld, heads, r0, r1, _ int) {
	for r := r0; r < r1; r++ {
		a := from(p, r*ld)[:f]
		for e := rowPtr[r]; e < rowPtr[r+1]; e++ {
			i := e
			if perm != nil {
				i = perm[e]
			}
			dst[int(i)*heads] = dot16Go(a, from(q, int(col[e])*ld)[:f])
		}
	}
}
