package train

import (
	"bufio"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"maps"
	"math"
	"slices"
)

// Hash returns 16 hexadecimal digits of the SHA-256 of the parameters and the refined
// graph: candidate edges, their probabilities and the bounds of the cosine. Two runs with
// the same hash have the same weights and graph, bit by bit; NaNs count as equal.
func (r *Model) Hash() string {
	h := sha256.New()
	w := bufio.NewWriter(h)
	number := func(v uint64) { w.Write(binary.LittleEndian.AppendUint64(w.AvailableBuffer(), v)) }
	floats := func(x []float32) {
		number(uint64(len(x)))
		for _, v := range x {
			if v != v {
				v = float32(math.NaN())
			}
			w.Write(binary.LittleEndian.AppendUint32(w.AvailableBuffer(), math.Float32bits(v)))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(r.Params)) {
		number(uint64(len(name)))
		w.WriteString(name)
		floats(r.Params[name])
	}
	if g := r.Refined; g != nil {
		number(uint64(len(g.Candidates.Edges)))
		for i, e := range g.Candidates.Edges {
			existing := uint64(0)
			if g.Candidates.Existing[i] {
				existing = 1 << 63
			}
			number(existing | uint64(uint32(e[0]))<<32 | uint64(uint32(e[1])))
		}
		floats(g.Probability)
		floats([]float32{g.Lo, g.Hi})
	}
	w.Flush()
	return hex.EncodeToString(h.Sum(nil))[:16]
}
