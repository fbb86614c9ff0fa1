package kernels

// Scratch is what kernels use of a pool's own buffers, which grow to the largest
// need and are shared by all calls: what a plan of memory must know beforehand.
type Scratch struct {
	Packed int // floats: a packed right-hand matrix
	Local  int // floats for each thread
	Part   int // floats: partial results of reductions
	Ints   int // int32s for each thread: marks of columns
	Keys   int // uint64s: neighbours that are not yet in their order
	Zeros  int // int32s and floats: elements of rows that are not 0, where most are
}

// Max returns the larger of each buffer.
func (s Scratch) Max(t Scratch) Scratch {
	return Scratch{max(s.Packed, t.Packed), max(s.Local, t.Local), max(s.Part, t.Part), max(s.Ints, t.Ints), max(s.Keys, t.Keys), max(s.Zeros, t.Zeros)}
}

// Varying returns what the buffers are where sizes vary a little from those of s.
func (s Scratch) Varying() Scratch {
	s.Packed, s.Part = s.Packed+s.Packed/growBy, s.Part+s.Part/growBy
	return s
}

// Bytes returns the size of the buffers in a pool of that many threads, with those
// that every pool has.
func (s Scratch) Bytes(threads int) int {
	return 4*(s.Packed+s.Part+s.Zeros+threads*(s.Local+s.Ints+roomStep)) + threads*8*scatterMax + 8*s.Keys
}

// Scratch returns what the pool's buffers have grown to.
func (p *Pool) Scratch() Scratch {
	return Scratch{Packed: len(p.packB), Local: len(p.local[0]), Part: len(p.part), Ints: len(p.ints[0]), Keys: len(p.keys), Zeros: p.nonZeros.room()}
}

// MatMulScratch returns what [Pool.MatMul] uses for an [m,k] and a [k,n] matrix.
func MatMulScratch(m, k, n int, transA, transB bool) Scratch {
	if m == 0 || n == 0 {
		return Scratch{}
	}
	if splits(m, k, n, transA, transB) {
		j := splitJob{m: m, k: k, n: n}
		j.divide()
		return Scratch{Packed: j.partialLen(), Local: j.localLen()}
	}
	j := gemmJob{m: m, k: k, n: n, transA: transA}
	j.divide()
	return Scratch{Packed: j.packedLen(), Local: j.localLen()}
}

// PairwiseScratch returns what the pairwise kernels use for b rows of f columns.
func PairwiseScratch(b, f int) Scratch {
	j := pairJob{b: b, f: f}
	j.layout()
	return Scratch{Local: j.localSize()}
}

// NearestScratch returns what [Pool.Nearest] uses for n rows of f columns and k neighbours.
func NearestScratch(n, f, k int) Scratch {
	if n == 0 || f == 0 {
		return Scratch{}
	}
	right := gemmJob{k: f, n: n, mk: ks.wide}
	right.divideRight()
	all := Scratch{Packed: right.packedLen(), Local: nearestScratch(nearestSide(), f), Part: n, Keys: nearestKeys(n, k)}
	if f < fewColumns {
		return all
	}
	w := zerosWidth()
	var zeros nonZeros
	zeros.divide(n, f)
	return all.Max(Scratch{Packed: ceilDiv(n, w)*w*f + spill, Local: zerosScratch(f), Keys: n, Ints: f, Zeros: n + zeros.pieces()*(2*n+1) + 2*(n*f/zerosShare)})
}

// NearestWithinScratch returns what [Pool.NearestWithin] uses for groups of most
// rows of f columns.
func NearestWithinScratch(most, f int) Scratch {
	panels := ceilDiv(most, ks.wide.nr)
	return Scratch{Local: nearestScratch(nearestSide(), f) + most*f + panels*ks.wide.nr*f + spill + most}
}

// ReduceAllScratch returns what a reduction of n elements to one uses.
func ReduceAllScratch(n int) Scratch { return Scratch{Part: ceilDiv(n, elemChunk)} }

// ReduceColsScratch returns what a reduction of the columns of a [rows,cols]
// matrix uses; [Pool.ReduceCols] uses twice that.
func ReduceColsScratch(rows, cols int) Scratch {
	return Scratch{Part: ceilDiv(rows, colBlock(rows, cols)) * cols}
}

// CrossEntropyScratch returns what [Pool.SoftmaxCrossEntropy] uses for that many rows.
func CrossEntropyScratch(rows int) Scratch { return Scratch{Part: rows} }

// RandomScratch returns what drawing random numbers uses: into dense matrices,
// or for the entries of a sparse structure.
func RandomScratch(entries bool) Scratch {
	if entries {
		return Scratch{Local: scatterMax}
	}
	return Scratch{Local: 2 * randomUnit}
}
