package runtime

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/gsrc-dev/gsrc/runtime/kernels"
)

// DeviceBlock is a [graph.Block] in a device's memory, with the same sources and entries in
// the same order, and the same padding.
// Addresses are the device's.
type DeviceBlock struct {
	Graph   *DeviceCSR   // entries by target, of the whole graph
	Targets uintptr      // [MaxTargets] i64 nodes
	From    *DeviceBlock // the block whose sources the targets are, or nil
	Pads    bool         // sources and entries are padded
	// MaxTargets is the number of targets; of the sources of another block, how many
	// there is room for.
	MaxTargets int
	MaxEntries int // how many there is room for

	Counts  uintptr // [BlockCounts] i32, see BlockTargets
	Work    uintptr
	Sources uintptr // [MaxSources] i64
	Entries uintptr // [MaxEntries] i64
	In, Out DeviceCSR
}

// What a device has counted of a block, int32 at DeviceBlock.Counts.
const (
	BlockTargets    = iota
	BlockExact      // targets that padding has not appended
	BlockEntries    // without padding
	BlockNew        // sources that are no targets
	BlockSources    // without padding
	BlockAllSources // with
	BlockAllEntries
	BlockNeeded // room for entries that is wanted, 0 where there is enough; then the block is empty
	BlockWrong  // the position of a target that is no node, math.MaxInt32 if all are
	BlockCounts = 16
)

// MaxSources is how many sources there is room for: any that these numbers of targets and
// entries can have.
func (f *DeviceBlock) MaxSources() int {
	n := f.MaxTargets + min(f.MaxEntries, f.Graph.Rows)
	if f.Pads {
		n = PaddedRows(n)
	}
	return n
}

// lay gives the block's arrays their addresses from one on, and returns their bytes.
func (f *DeviceBlock) lay(at uintptr) (bytes int) {
	put := func(n, size int) uintptr {
		here := at + uintptr(bytes)
		bytes += aligned(n * size)
		return here
	}
	f.Sources, f.Entries = put(f.MaxSources(), 8), put(f.MaxEntries, 8)
	f.In = DeviceCSR{RowPtr: put(f.MaxTargets+1, 4), Col: put(f.MaxEntries, 4), Row: put(f.MaxEntries, 4)}
	f.Out = DeviceCSR{RowPtr: put(f.MaxSources()+1, 4), Col: put(f.MaxEntries, 4), Row: put(f.MaxEntries, 4), Perm: put(f.MaxEntries, 4)}
	return bytes
}

// room is how many entries there is made room for where that many are needed: more, as
// the next step's block may be larger.
func (f *DeviceBlock) room(entries int) int { return PaddedEntries(entries + entries/8) }

// blockSampler holds the blocks of a program on a device that samples them itself.
// The search is queued, and after that a replay of its recording, without a look at
// the sizes; these are read when memory is laid out for them.
type blockSampler struct {
	p      *program
	q      Queue
	blocks []*DeviceBlock // by shape operation
	memory []*Buffer      // of each, and for all of them their counts with workspace
	laid   []DeviceBlock  // as memory was laid out, and the search recorded
	counts []int32

	queued    bool // sizes are to be read
	settled   bool // the search has run as laid out
	recording CapturedGraph
}

func newBlockSampler(p *program, q Queue) *blockSampler {
	f := &blockSampler{p: p, q: q, counts: make([]int32, BlockCounts*len(p.shapeOps)), laid: make([]DeviceBlock, len(p.shapeOps))}
	for i, s := range p.shapeOps {
		f.blocks = append(f.blocks, &DeviceBlock{Pads: p.pads})
		if s.from != nil {
			f.blocks[i].From = f.blocks[slices.Index(p.shapeOps, s.from)]
		}
	}
	for range len(p.shapeOps) + 1 {
		f.memory = append(f.memory, I64(nil, 0))
	}
	return f
}

// enqueue queues the sampling of blocks whose graph or targets have changed.
func (f *blockSampler) enqueue() error {
	changed := false
	for i, s := range f.p.shapeOps {
		now := f.p.stampsOf(s)
		if s.seen == now && (s.from == nil || !changed) {
			continue
		}
		changed, s.seen = true, now
		if s.from == nil {
			// The host may know targets that are no nodes; others the search finds.
			if err := checkIndices("target", s.in[1].I64, s.in[0].Device.In.Rows); err != nil {
				s.seen = [2]stamp{}
				return opError(f.p.fn, &s.Call, err)
			}
		}
		f.blocks[i].MaxTargets = s.in[1].Size()
	}
	if !changed {
		return nil
	}
	if err := f.search(); err != nil {
		for _, s := range f.p.shapeOps {
			s.seen = [2]stamp{}
		}
		return err
	}
	f.queued = true
	return nil
}

// search queues the sampling of all blocks.
func (f *blockSampler) search() error {
	if err := f.layOut(); err != nil {
		return err
	}
	all := func() error {
		for i, r := range f.blocks {
			if err := f.q.SampleBlock(r); err != nil {
				return opError(f.p.fn, &f.p.shapeOps[i].Call, err)
			}
		}
		return nil
	}
	if f.recording == nil && f.settled {
		var err error
		if f.recording, err = f.q.Record(all); err != nil {
			return err
		}
	}
	if f.recording != nil {
		if err := f.recording.Replay(); err != nil {
			return fmt.Errorf("@%s, the recorded sampling of blocks: %w", f.p.fn.Name, err)
		}
		return nil
	}
	f.settled = true
	return all()
}

// layOut gives the blocks memory for as many targets and entries as there may be.
func (f *blockSampler) layOut() error {
	m, last := f.q.Buffers(), len(f.blocks)
	work, moved := 0, false
	for i, r := range f.blocks {
		in := f.p.shapeOps[i].in
		r.Graph, r.Targets = in[0].Device.In, in[1].Device.Elements
		if r.From != nil {
			r.Targets, r.MaxTargets = r.From.Sources, r.From.MaxSources()
		}
		was := &f.laid[i]
		if was.MaxTargets != r.MaxTargets || was.MaxEntries != r.MaxEntries || was.Graph == nil || was.Graph.Rows != r.Graph.Rows {
			if err := f.provide(m, i, r.lay(0)); err != nil {
				return opError(f.p.fn, &f.p.shapeOps[i].Call, err)
			}
			r.lay(f.memory[i].Device.Elements)
			moved = true
		}
		moved = moved || *was.Graph != *r.Graph || was.Targets != r.Targets
		work = max(work, f.q.BlockWork(r))
	}
	if !moved {
		return nil
	}
	counts := aligned(4 * len(f.counts))
	if err := f.provide(m, last, counts+aligned(work)); err != nil {
		return fmt.Errorf("@%s, for the sampling of blocks: %w", f.p.fn.Name, err)
	}
	for i, r := range f.blocks {
		r.Counts = f.memory[last].Device.Elements + uintptr(4*BlockCounts*i)
		r.Work = f.memory[last].Device.Elements + uintptr(counts)
		f.laid[i] = *r
		g := *r.Graph
		f.laid[i].Graph = &g
		s := f.p.shapeOps[i]
		for k, b := range s.out {
			m.of(b.view).owned = true
			b.view.Device = DevicePtr{Elements: [...]uintptr{0, r.Sources, r.Entries}[k]}
		}
		s.out[0].view.Device = DevicePtr{In: &r.In, Out: &r.Out}
	}
	f.settled, f.p.moved = false, true
	return f.forget()
}

// provide gives memory i that many bytes, and no more.
func (f *blockSampler) provide(m *DeviceBuffers, i, bytes int) error {
	b := f.memory[i]
	if m.of(b).size == bytes {
		return nil
	}
	if err := m.Release(b); err != nil {
		return err
	}
	return m.Reserve(b, (bytes+7)/8)
}

// stamp says which contents a shape operation has seen.
type stamp struct {
	from    *Buffer
	changed uint64
}

// stampsOf returns the stamps of what a shape operation reads.
func (p *program) stampsOf(s *shapeOp) (now [2]stamp) {
	for k, view := range s.in {
		now[k].from = view
		for _, in := range p.inputs {
			if in.view == view {
				now[k] = stamp{in.bound, in.bound.res.changed}
			}
		}
	}
	return now
}

// sizes reads how large the blocks are that were queued, and makes more room where
// there was not enough.
func (f *blockSampler) sizes() error {
	if err := f.enqueue(); err != nil || !f.queued {
		return err
	}
	for {
		last := f.memory[len(f.memory)-1]
		if err := f.q.Buffers().download(bytesOf(f.counts), last.Device.Elements); err != nil {
			return fmt.Errorf("@%s, sampling blocks: %w", f.p.fn.Name, err)
		}
		short, err := f.growOnOverflow()
		if err != nil {
			return err
		}
		if !short {
			break
		}
		if err := f.search(); err != nil {
			return err
		}
	}
	f.queued = false
	for i, s := range f.p.shapeOps {
		n, r := f.counts[BlockCounts*i:], f.blocks[i]
		targets, entries, sources := int(n[BlockTargets]), int(n[BlockAllEntries]), int(n[BlockAllSources])
		f.p.resize(s, targets, entries, sources)
		r.In.Rows, r.In.Cols, r.In.NNZ = targets, sources, entries
		r.Out.Rows, r.Out.Cols, r.Out.NNZ = sources, targets, entries
		// The host has the sizes of the structure and nothing else.
		g := &s.block.Structure
		if g.In == nil {
			g.In, g.Out = &kernels.CSR{}, &kernels.CSR{}
		}
		g.N, g.E = targets, entries
		g.In.Rows, g.In.Cols, g.Out.Rows, g.Out.Cols = targets, sources, sources, targets
		s.out[0].view.Graph = g
	}
	return nil
}

// growOnOverflow makes room for the first block that had not enough.
func (f *blockSampler) growOnOverflow() (bool, error) {
	for i, s := range f.p.shapeOps {
		n, r := f.counts[BlockCounts*i:], f.blocks[i]
		if at := n[BlockWrong]; at != math.MaxInt32 {
			s.seen = [2]stamp{}
			return false, opError(f.p.fn, &s.Call, fmt.Errorf("the target at position %d is outside 0..%d", at, r.Graph.Rows-1))
		}
		if need := int(n[BlockNeeded]); need > 0 {
			if need > math.MaxInt32/2 {
				return false, opError(f.p.fn, &s.Call, errors.New("the block has more than 2³⁰ entries: train with fewer anchors"))
			}
			r.MaxEntries = r.room(need)
			return true, nil
		}
	}
	return false, nil
}

// bytes is what the blocks hold on the device.
func (f *blockSampler) bytes() (n int) {
	for _, b := range f.memory {
		n += f.q.Buffers().of(b).size
	}
	return n
}

func (f *blockSampler) forget() error {
	if f.recording == nil {
		return nil
	}
	r := f.recording
	f.recording = nil
	return r.Close()
}

func (f *blockSampler) close() error {
	errs := []error{f.forget()}
	for _, b := range f.memory {
		errs = append(errs, f.q.Buffers().Release(b))
	}
	return errors.Join(errs...)
}

// predict returns what the device will hold for blocks as large as the host has found.
func (f *blockSampler) predict() (n int) {
	work := 0
	for i, s := range f.p.shapeOps {
		r := f.blocks[i]
		r.Graph, r.MaxTargets = &DeviceCSR{Rows: s.in[0].Graph.N}, s.most[0]
		r.MaxEntries = r.room(s.most[1])
		if r.From != nil {
			r.MaxTargets = r.From.MaxSources()
		}
		n += r.lay(0)
		work = max(work, f.q.BlockWork(r))
	}
	if len(f.blocks) == 0 {
		return 0
	}
	return n + aligned(4*BlockCounts*len(f.blocks)) + aligned(work)
}
