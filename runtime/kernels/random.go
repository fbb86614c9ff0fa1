package kernels

import (
	"math"

	"github.com/gsrc-dev/gsrc/rng"
)

// Uniform fills dst with numbers in [0, 1): dst[i] = key.Uniform(i).
func (p *Pool) Uniform(dst []float32, key rng.Stream) {
	p.runRandom(randomJob{draw: ks.uniform, dst: dst, key: key})
}

// Normal fills dst with standard normal numbers: dst[i] = [NormalAt](key, i), bit
// for bit the same on every machine.
func (p *Pool) Normal(dst []float32, key rng.Stream) {
	p.runRandom(randomJob{draw: ks.normal, dst: dst, key: key})
}

// Dropout computes dst[i] = x[i]/(1−rate) where key.Uniform(i) ≥ rate, else 0. A
// rate of 0 or less copies; one of 1 or more gives zeros. dst may be x.
func (p *Pool) Dropout(dst, x []float32, rate float32, key rng.Stream) {
	need("Dropout", "dst", len(dst), len(x))
	if rate <= 0 {
		p.Copy(dst, x)
		return
	}
	rate, scale := dropoutScale(rate)
	p.runRandom(randomJob{dst: dst[:len(x)], x: x, key: key, rate: rate, scale: scale})
}

// dropoutScale returns the rate within [0, 1] and what kept elements are multiplied by.
func dropoutScale(rate float32) (float32, float32) {
	switch {
	case rate <= 0:
		return 0, 1
	case rate >= 1:
		return 1, 0
	}
	return rate, 1 / (1 - rate)
}

// randomJob is one counter-based fill.
type randomJob struct {
	draw        func(dst []float32, key, block uint64) // nil: dropout
	p           *Pool
	dst, x      []float32
	key         rng.Stream
	rate, scale float32
}

// randomUnit is what an inner loop fills at a time: every vector width divides it.
const randomUnit = 64

func (p *Pool) runRandom(job randomJob) {
	job.p = p
	p.scratch(2 * randomUnit)
	runJob(p, &p.jobs.random, job, ceilDiv(len(job.dst), elemChunk))
}

func (j *randomJob) do(c, worker int) {
	lo := c * elemChunk
	hi := min(lo+elemChunk, len(j.dst))
	mid := lo + (hi-lo)/randomUnit*randomUnit
	if mid > lo {
		var x []float32
		if j.x != nil {
			x = j.x[lo:mid]
		}
		j.fill(j.dst[lo:mid], x, lo)
	}
	if mid < hi { // the last few: a whole unit is drawn, and cut
		tmp := j.p.local[worker][:randomUnit]
		var x []float32
		if j.x != nil {
			x = j.p.local[worker][randomUnit : 2*randomUnit]
			clear(x)
			copy(x, j.x[mid:hi])
		}
		j.fill(tmp, x, mid)
		copy(j.dst[mid:hi], tmp)
	}
}

func (j *randomJob) fill(dst, x []float32, first int) {
	block := uint64(first) / 4
	if j.draw != nil {
		j.draw(dst, uint64(j.key), block)
	} else {
		ks.dropout(dst, x, uint64(j.key), block, j.rate, j.scale)
	}
}

func uniformGo(dst []float32, key, block uint64) {
	for i := 0; i+4 <= len(dst); i += 4 {
		w := rng.Stream(key).Block(block+uint64(i)/4, 0)
		for l, v := range w {
			dst[i+l] = rng.Float32(v)
		}
	}
}

func dropoutGo(dst, x []float32, key, block uint64, rate, scale float32) {
	for i := 0; i+4 <= len(dst); i += 4 {
		w := rng.Stream(key).Block(block+uint64(i)/4, 0)
		for l, v := range w {
			if rng.Float32(v) >= rate {
				dst[i+l] = x[i+l] * scale
			} else {
				dst[i+l] = 0
			}
		}
	}
}

func uniformAtGo(dst []float32, idx []uint64, key uint64) {
	for i, n := range idx {
		dst[i] = rng.Stream(key).Uniform(n)
	}
}

func uniformPairGo(dst []float32, idx []uint64, key uint64) {
	for i, n := range idx {
		dst[i] = rng.Stream(key).UniformPair(uint32(n), uint32(n>>32))
	}
}

// scatterUnit divides the number of single draws an inner loop makes; scatterMax
// is how many the sparse kernels make at a time.
const (
	scatterUnit = 16
	scatterMax  = 256
)

// normalRange is the counter range (high counter half) of the normal fills.
const normalRange = 4

func normalGo(dst []float32, key, block uint64) {
	for i := 0; i+4 <= len(dst); i += 4 {
		w := rng.Stream(key).Block(block+uint64(i)/4, normalRange)
		dst[i], dst[i+1] = boxMuller(w[0], w[1])
		dst[i+2], dst[i+3] = boxMuller(w[2], w[3])
	}
}

// NormalAt returns element i of the standard normal stream of key, as
// [Pool.Normal] fills it: block i/4 of counter range 4, whose words 0 and 1 make
// elements 0 and 1, words 2 and 3 elements 2 and 3, by the method of Box and
// Muller with u = (⌊word/2⁸⌋+1)/2²⁴ for the radius √(−2 ln u) and
// v = ⌊word/2⁸⌋/2²⁴ for the angle 2πv; the even element is the cosine.
func NormalAt(key rng.Stream, i uint64) float32 {
	w := key.Block(i/4, normalRange)
	l := i % 4 / 2 * 2
	c, s := boxMuller(w[l], w[l+1])
	if i%2 == 0 {
		return c
	}
	return s
}

// boxMuller makes two normal numbers of two words. Every operation is a single
// rounded float32 operation (the conversions keep the compiler from fusing a
// product with a sum), in the order the assembly has them, so that all machines
// draw the same noise.
func boxMuller(w0, w1 uint32) (float32, float32) {
	// ln u: u = m·2^e with m in [√½, √2), ln m by an odd-even polynomial of
	// f = m−1 (Cephes logf).
	u := float32(w0>>8+1) * (1.0 / (1 << 24))
	b := math.Float32bits(u) - logSplit
	e := float32(int32(b) >> 23)
	f := math.Float32frombits(b&0x7fffff+logSplit) - 1
	z := float32(f * f)
	y := float32(logPoly[0])
	for _, c := range logPoly[1:] {
		y = float32(y*f) + c
	}
	y = float32(float32(y*f) * z)
	y = y + float32(e*logLn2Lo)
	y = y - float32(z*0.5)
	y = f + y
	y = y + float32(e*logLn2Hi)
	r := sqrt32(float32(y * -2))

	// The angle: the nearest quarter turn k, and t in [−⅛, ⅛] turns.
	q := w1>>8 + 1<<21
	k := q >> 22
	t := float32(int32(q&(1<<22-1))-1<<21) * (1.0 / (1 << 24))
	t2 := float32(t * t)
	s := float32(sinPoly[0])
	for _, c := range sinPoly[1:] {
		s = float32(s*t2) + c
	}
	s = float32(s * t)
	c := float32(cosPoly[0])
	for _, d := range cosPoly[1:] {
		c = float32(c*t2) + d
	}
	// cos(θ+kπ/2), sin(θ+kπ/2): exchanged for odd k, signs by the quarter.
	if k&1 != 0 {
		c, s = s, c
	}
	c = math.Float32frombits(math.Float32bits(c) ^ (k+1)<<30&(1<<31))
	s = math.Float32frombits(math.Float32bits(s) ^ k<<30&(1<<31))
	return float32(c * r), float32(s * r)
}

// Polynomials shared with the generator of the assembly. logPoly is of Cephes'
// logf; sinPoly and cosPoly approximate sin 2πt/t and cos 2πt in t².
const (
	logSplit = 0x3f3504f3 // bits of √½
	logLn2Hi = 0.693359375
	logLn2Lo = -2.12194440e-4
)

var (
	logPoly = [...]float32{
		7.0376836292e-2, -1.1514610310e-1, 1.1676998740e-1, -1.2420140846e-1, 1.4249322787e-1,
		-1.6668057665e-1, 2.0000714765e-1, -2.4999993993e-1, 3.3333331174e-1,
	}
	sinPoly = [...]float32{-75.4018402, 81.5925446, -41.3416634, 6.28318548}
	cosPoly = [...]float32{59.2202873, -85.4428482, 64.9393158, -19.7392082, 1}
)
