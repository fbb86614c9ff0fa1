package cuda

import (
	"encoding/binary"
	"math"
	"slices"

	"github.com/gsrc-dev/gsrc/runtime"
)

// scoreBlocks is the most blocks that score the rows of a set.
const scoreBlocks = 1024

// scoring is the memory of Score: two numbers for each set, whether a logit is not
// finite, and the parts of the blocks; all of 8 bytes.
type scoring struct {
	room
	host []byte
}

// Score compares logits with labels; see [runtime.Trainer].
func (d *Device) Score(logits *runtime.Buffer, sets []runtime.Scoring) (finite bool, err error) {
	size, err := countElements(logits.Dims)
	if err != nil {
		return false, err
	}
	_, classes := runtime.Matrix(logits.Dims)
	s := &d.scoring
	if err := s.reserve(d, 8*(2*len(sets)+1+2*scoreBlocks)); err != nil {
		return false, err
	}
	flag := s.at + uintptr(16*len(sets))
	bytes := 8 * (2*len(sets) + 1)
	s.host = slices.Grow(s.host[:0], bytes)[:bytes]
	parts, host := flag+8, s.host
	if err := queued(d, func(q *steps) {
		for i, x := range sets {
			score(q, s.at+uintptr(16*i), parts, logits.Device.Elements, x.Rows.Device.Elements, x.Labels.Device.Elements, x.Rows.Size(), classes)
		}
	}); err != nil {
		return false, err
	}
	if err := d.notFinite(flag, logits.Device.Elements, size); err != nil {
		return false, err
	}
	if err := d.Download(host, s.at); err != nil {
		return false, err
	}
	number := func(i int) float64 { return math.Float64frombits(binary.LittleEndian.Uint64(host[8*i:])) }
	for i := range sets {
		sets[i].Hits, sets[i].Loss = int(number(2*i)), number(2*i+1)
	}
	return math.Float32frombits(binary.LittleEndian.Uint32(host[16*len(sets):])) == 0, nil
}

// score queues the scoring of n rows, to the two numbers at dst.
func score(q *steps, dst, parts, logits, rows, labels uintptr, n, classes int) {
	grid, block := blocks(32*n, threads), [3]uint32{threads, 1, 1}
	grid[0] = min(grid[0], scoreBlocks)
	q.launch("gsrc_score", grid, block, 0, Ptr(parts), Ptr(logits), Ptr(rows), Ptr(labels), Int(n), Int(classes))
	q.launch("gsrc_score_end", [3]uint32{1, 1, 1}, block, 0, Ptr(dst), Ptr(parts), Int(int(grid[0])))
}
