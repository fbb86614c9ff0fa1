package store

import "github.com/gsrc-dev/gsrc/rng"

// permutation puts 0..n-1 into another order without a table of it: a Feistel network over
// the next power of four, walked until it is back among them.
type permutation struct {
	s    rng.Stream
	n    uint64
	half uint // bits of a half
}

func newPermutation(s rng.Stream, n int64) permutation {
	p := permutation{s: s, n: uint64(n), half: 1}
	for uint64(1)<<(2*p.half) < p.n {
		p.half++
	}
	return p
}

const rounds = 4

func (p *permutation) round(r int, x uint64) uint64 {
	return uint64(p.s.Uint32(uint64(r)<<32|x)) & (1<<p.half - 1)
}

// at returns the place of i.
func (p *permutation) at(i int64) int64 {
	x := uint64(i)
	for {
		a, b := x>>p.half, x&(1<<p.half-1)
		for r := range rounds {
			a, b = b, a^p.round(r, b)
		}
		if x = a<<p.half | b; x < p.n {
			return int64(x)
		}
	}
}

// of returns what is at a place.
func (p *permutation) of(place int64) int64 {
	x := uint64(place)
	for {
		a, b := x>>p.half, x&(1<<p.half-1)
		for r := rounds - 1; r >= 0; r-- {
			a, b = b^p.round(r, a), a
		}
		if x = a<<p.half | b; x < p.n {
			return int64(x)
		}
	}
}
