// Package rng holds the project's only source of randomness: named streams of
// one seed, counter-based, so that any element of a stream can be drawn on its
// own, in any order and on any thread, with the same result.
//
// A stream is a 64-bit key. Draws are Philox4x32-10 (Salmon et al., "Parallel
// random numbers: as easy as 1, 2, 3", SC 2011): the key and a 128-bit counter
// give four 32-bit words. Element i of a 32-bit stream is word i%4 of block i/4.
package rng

import (
	"math"
	"math/bits"

	"github.com/gsrc-dev/gsrc/internal/fmath"
)

// Stream is the key of one named stream.
type Stream uint64

// New returns the stream of a seed and a name, such as "views.blur.0".
func New(seed uint64, name string) Stream {
	return Stream(mix(seed ^ 0x9e3779b97f4a7c15)).Sub(name)
}

// Sub returns the stream derived from s by a name.
func (s Stream) Sub(name string) Stream {
	h := uint64(14695981039346656037) // FNV-1a
	for i := 0; i < len(name); i++ {
		h = (h ^ uint64(name[i])) * 1099511628211
	}
	return Stream(mix(uint64(s) ^ mix(h)))
}

// At returns the stream derived from s by a step number. A training step draws
// from stream.At(step), so a resumed run draws what an undisturbed one does.
func (s Stream) At(step uint64) Stream {
	return Stream(mix(uint64(s) + 0x9e3779b97f4a7c15*(step+1)))
}

// mix is the finaliser of SplitMix64.
func mix(z uint64) uint64 {
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9
	z = (z ^ (z >> 27)) * 0x94d049bb133111eb
	return z ^ (z >> 31)
}

// Block returns the four words of Philox4x32-10 for the counter (c0, c1), which
// fills the low 128 bits as c0 (low word first) then c1.
func (s Stream) Block(c0, c1 uint64) [4]uint32 {
	const (
		m0, m1 = 0xD2511F53, 0xCD9E8D57
		w0, w1 = 0x9E3779B9, 0xBB67AE85
	)
	a, b, c, d := uint32(c0), uint32(c0>>32), uint32(c1), uint32(c1>>32)
	k0, k1 := uint32(s), uint32(s>>32)
	for range 10 {
		p0, p1 := uint64(m0)*uint64(a), uint64(m1)*uint64(c)
		a, b, c, d = uint32(p1>>32)^b^k0, uint32(p1), uint32(p0>>32)^d^k1, uint32(p0)
		k0 += w0
		k1 += w1
	}
	return [4]uint32{a, b, c, d}
}

// Uint32 returns element i of the stream.
func (s Stream) Uint32(i uint64) uint32 { return s.Block(i/4, 0)[i%4] }

// Uint64 returns the 64-bit element i of the stream: words 0 and 1 of block i
// in a counter range of its own.
func (s Stream) Uint64(i uint64) uint64 {
	w := s.Block(i, 1)
	return uint64(w[0]) | uint64(w[1])<<32
}

// Float32 maps a word to [0, 1) with 24 bits.
func Float32(w uint32) float32 { return float32(w>>8) * (1.0 / (1 << 24)) }

// Uniform returns element i of the stream as a float32 in [0, 1).
func (s Stream) Uniform(i uint64) float32 { return Float32(s.Uint32(i)) }

// UniformPair returns a float32 in [0, 1) that belongs to the unordered pair
// {a, b}: both directions of an undirected edge draw the same number.
func (s Stream) UniformPair(a, b uint32) float32 {
	if a > b {
		a, b = b, a
	}
	return Float32(s.Block(uint64(a)|uint64(b)<<32, 2)[0])
}

// Intn returns element i of the stream as an integer in [0, n). The bias is
// below n/2^64. It panics if n <= 0.
func (s Stream) Intn(i uint64, n int) int {
	if n <= 0 {
		panic("rng: Intn needs n > 0")
	}
	hi, _ := bits.Mul64(s.Uint64(i), uint64(n))
	return int(hi)
}

// Normal returns element i of the stream as a standard normal float64, by Box
// and Muller from words 0 and 1 of block i in a counter range of its own.
func (s Stream) Normal(i uint64) float64 {
	w := s.Block(i, 3)
	u := (float64(w[0]) + 0.5) / (1 << 32)
	return math.Sqrt(-2*fmath.Log(u)) * fmath.CosTurns(float64(w[1])/(1<<32))
}

// Perm returns a permutation of 0..n-1 drawn from the stream (Fisher–Yates).
func (s Stream) Perm(n int) []int {
	p := make([]int, n)
	s.PermTo(p)
	return p
}

// PermTo is [Stream.Perm] of len(p) numbers into memory of the caller's.
func (s Stream) PermTo(p []int) {
	for i := range p {
		j := s.Intn(uint64(i), i+1)
		p[i] = p[j]
		p[j] = i
	}
}
