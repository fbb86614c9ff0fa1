package cuda

import (
	"fmt"

	"github.com/gsrc-dev/gsrc/rng"
	"github.com/gsrc-dev/gsrc/runtime"
)

// mostDrawn bounds the samples that the GPU draws, by work that grows with the square of
// their number: as many take about 4·10⁹ comparisons.
const mostDrawn = 1 << 16

// DrawAnchors draws samples; see [runtime.Sampler].
func (d *Device) DrawAnchors(dst *runtime.Buffer, n int, s rng.Stream) error {
	count := dst.Size()
	if count > n {
		return fmt.Errorf("%d of %d nodes cannot be drawn", count, n)
	}
	if count > mostDrawn {
		here := runtime.Buffer{DType: dst.DType, Dims: dst.Dims, I64: make([]int64, count)}
		if err := d.cpu.DrawAnchors(&here, n, s); err != nil {
			return err
		}
		return d.Upload(dst.Device.Elements, bytesOf(here.I64))
	}
	d.drawn.DType = dst.DType
	if err := d.Reserve(&d.drawn, count); err != nil {
		return err
	}
	swaps := d.drawn.Device.Elements // of i32, and nodes
	nodes := swaps + uintptr(4*count)
	return queued(d, func(q *steps) {
		q.every("gsrc_anchor_swaps", count, Ptr(swaps), Word(uint64(s)), Int(n), Int(count))
		q.every("gsrc_anchor_nodes", count, Ptr(nodes), Ptr(swaps), Int(count))
		q.every("gsrc_anchor_sort", count, at(dst), Ptr(nodes), Int(count))
	})
}
