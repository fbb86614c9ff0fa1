package cuda

import (
	"cmp"
	"fmt"
	"math/bits"

	"github.com/gsrc-dev/gsrc/runtime"
)

// blockWork is where the sampling of a block keeps what it needs itself.
type blockWork struct {
	met         uintptr // by node: its first place, or the targets' number and the first entry from it
	node, first uintptr // by entry: where it comes from; whether it is the first, and how many are before it
	rest        uintptr // of scans and sorts
	bytes       int
}

func layBlockWork(f *runtime.DeviceBlock, at uintptr) (w blockWork) {
	put := placing(at, &w.bytes)
	w.met = put(4 * f.Graph.Rows)
	w.node, w.first = put(4*f.MaxEntries), put(4*f.MaxEntries)
	w.rest = put(max(scanBytes(f.MaxTargets), scanBytes(f.MaxEntries), sortBytes(f.MaxEntries)))
	return w
}

// blockWorkBytes is runtime.Queue's BlockWork.
func blockWorkBytes(f *runtime.DeviceBlock) int { return layBlockWork(f, 0).bytes }

// sampleBlock queues the sampling of a block: see blocks.cu.
func sampleBlock(q *steps, f *runtime.DeviceBlock) {
	if f.MaxTargets+f.MaxEntries > 1<<30 {
		q.err = cmp.Or(q.err, fmt.Errorf("a block with room for %d targets and %d entries is more than CUDA kernels count: train with fewer anchors", f.MaxTargets, f.MaxEntries))
		return
	}
	w := layBlockWork(f, f.Work)
	count := func(i int) uintptr { return f.Counts + uintptr(4*i) }
	from := uint64(0)
	if f.From != nil {
		from = Ptr(f.From.Counts)
	}
	counts, g := Ptr(f.Counts), f.Graph
	run := func(kernel string, n int, args ...uint64) { q.every(kernel, max(1, n), args...) }
	run("gsrc_block_begin", g.Rows, counts, Ptr(w.met), from, Int(f.MaxTargets), Int(g.Rows))
	run("gsrc_block_targets", f.MaxTargets, counts, Ptr(w.met), Ptr(f.In.RowPtr), Ptr(f.Targets), Ptr(g.RowPtr), Int(g.Rows))
	scan{Y: f.In.RowPtr, X: f.In.RowPtr, Total: count(runtime.BlockEntries), N: f.MaxTargets, Count: count(runtime.BlockTargets), End: true}.launch(q, w.rest)
	run("gsrc_block_admit", 1, counts, Int(f.MaxEntries), flag(f.Pads))
	run("gsrc_block_entries", f.MaxEntries, counts, Ptr(w.met), Ptr(f.In.Row), Ptr(f.Entries), Ptr(w.node), Ptr(f.Targets), Ptr(f.In.RowPtr), Ptr(g.RowPtr), Ptr(g.Col))
	run("gsrc_block_new", f.MaxEntries, counts, Ptr(w.first), Ptr(w.met), Ptr(w.node))
	scan{Y: w.first, X: w.first, Total: count(runtime.BlockNew), N: f.MaxEntries, Count: count(runtime.BlockEntries)}.launch(q, w.rest)
	run("gsrc_block_place", max(f.MaxTargets, f.MaxEntries), counts, Ptr(f.Sources), Ptr(f.In.Col), Ptr(f.Targets), Ptr(w.met), Ptr(w.node), Ptr(w.first), flag(f.Pads))
	sort{
		KeyTo: f.Out.Row, ValueTo: f.Out.Perm, Key: f.In.Col, KeyTemp: w.node, ValTemp: w.first,
		N: f.MaxEntries, Count: count(runtime.BlockEntries), Bits: bits.Len(uint(f.MaxSources())),
	}.launch(q, w.rest)
	run("gsrc_block_end", max(f.MaxSources()+1, f.MaxEntries), counts, Ptr(f.Sources), Ptr(f.Entries), Ptr(f.In.Row), Ptr(f.In.Col), Ptr(f.Out.RowPtr), Ptr(f.Out.Row), Ptr(f.Out.Col), Ptr(f.Out.Perm))
}
