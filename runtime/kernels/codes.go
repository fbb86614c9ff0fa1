package kernels

import "math"

// Codes are rows with a code of 8 bits for each of their numbers, a quarter of what is read otherwise where rows
// are compared with some that lie anywhere. What all rows have in common is left out, so that the bits tell
// them apart. The product of a row with the code of another, which is one of integers, says whether it can be large enough
// to be computed: it is within a step of 1/127 of the largest number but in one of a thousand pairs. The zero value is
// ready for use.
type Codes struct {
	z     []float32 // [n, f]
	n, f  int
	code  []int8    // [n, width]
	width int       // a multiple of codeUnit
	mean  []float32 // [f] of some rows
	scale float32   // of a row less the mean
	x     [][]int16 // [width] of each thread: the row that others are compared with
	sums  []float64
}

const (
	codeUnit   = 32   // columns
	codeSample = 4096 // rows that mean and scale are of
	codeMost   = 127
	codeX      = 2047 // what 1 is in the row that others are compared with
	codeRows   = 64   // rows that a row is compared with at a time
)

// CodeBytes returns the size of the codes of n rows of f columns.
func CodeBytes(n, f int) int { return n * ceilDiv(f, codeUnit) * codeUnit }

// Set makes c the codes of z, n rows of f columns whose length is at most 1, which c refers to from then on. The codes do
// not depend on the number of threads.
func (c *Codes) Set(p *Pool, z []float32, n, f int) {
	need("Codes", "z", len(z), n*f)
	c.z, c.n, c.f, c.width = z, n, f, ceilDiv(f, codeUnit)*codeUnit
	if cap(c.code) < n*c.width {
		c.code = make([]int8, n*c.width)
	}
	c.code = c.code[:n*c.width]
	if len(c.mean) != f || len(c.x) != p.Threads() {
		c.mean, c.sums, c.x = make([]float32, f), make([]float64, f), make([][]int16, p.Threads())
		for i := range c.x {
			c.x[i] = make([]int16, c.width)
		}
	}
	clear(c.sums)
	step := max(1, n/codeSample)
	for v := 0; v < n; v += step {
		for j, x := range z[v*f : (v+1)*f] {
			c.sums[j] += float64(x)
		}
	}
	for j, sum := range c.sums {
		c.mean[j] = float32(sum / float64(ceilDiv(n, step)))
	}
	most := float32(math.SmallestNonzeroFloat32)
	for v := 0; v < n; v += step {
		for j, x := range z[v*f : (v+1)*f] {
			most = max(most, x-c.mean[j], c.mean[j]-x)
		}
	}
	c.scale = min(codeMost/most, math.MaxInt32)
	p.For(n, 256, c)
}

// Do makes the codes of some rows: the body of a parallel loop.
func (c *Codes) Do(lo, hi int) {
	for v := lo; v < hi; v++ {
		code := c.code[v*c.width : (v+1)*c.width]
		clear(code[c.f:])
		for j, x := range c.row(v) {
			code[j] = int8(max(-codeMost, min(codeMost, math.RoundToEven(float64((x-c.mean[j])*c.scale)))))
		}
	}
}

func (c *Codes) row(v int) []float32 { return c.z[v*c.f : (v+1)*c.f] }

// codeDotsGo writes to dst the products of x with the rows of codes that rows names. Those further on by
// ahead are asked for.
func codeDotsGo(dst, rows []int32, x []int16, codes []int8, _ int) {
	for i, v := range rows {
		sum := int32(0)
		for j, c := range codes[int(v)*len(x) : (int(v)+1)*len(x)] {
			sum += int32(x[j]) * int32(c)
		}
		dst[i] = sum
	}
}
