package rng

import (
	"math"
	"testing"
)

// The vectors are the known answers that Random123 publishes for philox4x32-10.
func TestPhiloxKnownAnswers(t *testing.T) {
	for _, c := range []struct {
		key    Stream
		c0, c1 uint64
		want   [4]uint32
	}{
		{0, 0, 0, [4]uint32{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
		{^Stream(0), ^uint64(0), ^uint64(0), [4]uint32{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
		{0x299f31d0a4093822, 0x85a308d3243f6a88, 0x0370734413198a2e, [4]uint32{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
	} {
		if got := c.key.Block(c.c0, c.c1); got != c.want {
			t.Errorf("Block(key %x, %x, %x) = %x, want %x", uint64(c.key), c.c0, c.c1, got, c.want)
		}
	}
}

func TestStreamsDiffer(t *testing.T) {
	s := New(1, "a")
	seen := map[Stream]string{s: "a"}
	for name, o := range map[string]Stream{"other seed": New(2, "a"), "other name": New(1, "b"), "sub": s.Sub("x"), "step 0": s.At(0), "step 1": s.At(1)} {
		if prev, ok := seen[o]; ok {
			t.Errorf("%s equals %s", name, prev)
		}
		seen[o] = name
	}
	if s.UniformPair(3, 9) != s.UniformPair(9, 3) {
		t.Error("UniformPair is not symmetric")
	}
}

func TestMoments(t *testing.T) {
	s := New(7, "moments")
	const n = 200000
	var m, v, u float64
	for i := range uint64(n) {
		x := s.Normal(i)
		m += x
		v += x * x
		u += float64(s.Uniform(i))
	}
	// Five standard errors: false alarm below one in a million.
	if se := 5 / math.Sqrt(n); !(math.Abs(m/n) <= se) || !(math.Abs(v/n-1) <= se*math.Sqrt2) || !(math.Abs(u/n-0.5) <= se/math.Sqrt(12)) {
		t.Errorf("mean %g, variance %g, uniform mean %g", m/n, v/n, u/n)
	}
	p := s.Perm(1000)
	seen := make([]bool, len(p))
	for _, x := range p {
		if seen[x] {
			t.Fatal("Perm repeats an element")
		}
		seen[x] = true
	}
}
