package runtime

import (
	"errors"
	"fmt"
)

// Runner runs a program on a device.
type Runner interface {
	// inferDynamicShapes finds the blocks that sample_block operations ask for, and notes whether
	// any size differs from the last time.
	inferDynamicShapes() error
	// prepare does what the next run begins with, where the device computes meanwhile.
	prepare() error
	// enter says that values have their places for the sizes that they have now, forget
	// that they will lie elsewhere.
	enter() error
	forget() error
	run(e *arenaExecutor, step uint64) error
	// begin writes the step number where operations read it.
	begin(step uint64) error
	// searches are what finds the blocks, by shape operation, where that is queued.
	searches() []func() error
	// sync waits for what the run has queued.
	sync() error
	// separate returns an error where values cannot have memory of their own each.
	separate() error
	// blockBytes returns what the blocks hold, predictBlockBytes what they will hold at
	// the sizes that have been found so far.
	blockBytes() int
	predictBlockBytes() int
	close() error
}

// OnHost runs a program where it is called from, on memory of the host. Inputs may change
// in place between runs.
func (p *Program) OnHost() Runner { return hostRunner{p.p} }

type hostRunner struct{ p *program }

func (r hostRunner) prepare() error { return nil }

func (r hostRunner) enter() error { return nil }

func (r hostRunner) forget() error { return nil }

func (r hostRunner) run(e *arenaExecutor, step uint64) error { return e.execute(e.code, step) }

func (r hostRunner) begin(uint64) error { return nil }

func (r hostRunner) searches() []func() error { return nil }

func (r hostRunner) sync() error { return nil }

func (r hostRunner) separate() error { return nil }

func (r hostRunner) predictBlockBytes() int { return r.blockBytes() }

func (r hostRunner) close() error { return nil }

func (r hostRunner) blockBytes() (n int) {
	for _, s := range r.p.shapeOps {
		n += s.block.Bytes()
	}
	return n
}

func (r hostRunner) inferDynamicShapes() error {
	for _, s := range r.p.shapeOps {
		f, targets := &s.block, s.in[1].I64
		exact := len(targets)
		if s.from != nil {
			exact = s.from.block.NumValid
		}
		if err := f.RebuildFirst(s.in[0].Graph, targets, exact); err != nil {
			return opError(r.p.fn, &s.Call, err)
		}
		if r.p.pads {
			f.Pad(PaddedRows(len(f.Sources)), PaddedEntries(f.E))
		}
		r.p.resize(s, f.N, f.E, len(f.Sources))
		s.out[0].view.Graph, s.out[1].view.I64, s.out[2].view.I64 = &f.Structure, f.Sources, f.Entries
	}
	return nil
}

// Queue is a device whose work is queued and done in order, in a memory of its own.
type Queue interface {
	// Buffers returns the device's memory.
	Buffers() *DeviceBuffers
	// SetStep writes the step number that random operations read.
	SetStep(step uint64) error
	// Record lets queue queue work, and returns what does that work, as often as
	// wanted, without a look at the host; the work itself is not done.
	Record(queue func() error) (CapturedGraph, error)
	// Sync waits for what is queued, and returns the error that it ended with.
	Sync() error
	// BlockWork returns the bytes of workspace that SampleBlock needs.
	BlockWork(f *DeviceBlock) int
	// SampleBlock queues the sampling of a block, whose memory and workspace are there.
	SampleBlock(f *DeviceBlock) error
}

// CapturedGraph is work that a device has recorded.
type CapturedGraph interface {
	Replay() error
	Close() error
}

// OnQueue runs a program on a device that queues work: blocks are sampled there, and runs
// are recorded and replayed.
func (p *Program) OnQueue(q Queue) Runner {
	return &queueRunner{p: p.p, q: q, blocks: newBlockSampler(p.p, q)}
}

type queueRunner struct {
	p      *program
	q      Queue
	blocks *blockSampler
	graphCache
}

func (r *queueRunner) inferDynamicShapes() error { return r.blocks.sizes() }

func (r *queueRunner) prepare() error {
	if err := r.p.load(); err != nil {
		return fmt.Errorf("@%s: %w", r.p.fn.Name, err)
	}
	return r.blocks.enqueue()
}

func (r *queueRunner) enter() error { return r.graphCache.enter(r.p) }

func (r *queueRunner) begin(step uint64) error { return r.q.SetStep(step) }

func (r *queueRunner) searches() (all []func() error) {
	for _, f := range r.blocks.blocks {
		all = append(all, func() error { return r.q.SampleBlock(f) })
	}
	return all
}

func (r *queueRunner) sync() error { return r.q.Sync() }

func (r *queueRunner) separate() error {
	return fmt.Errorf("only the arena executor runs on %s", r.p.device.Name())
}

func (r *queueRunner) blockBytes() int { return r.blocks.bytes() }

func (r *queueRunner) predictBlockBytes() int { return r.blocks.predict() }

func (r *queueRunner) close() error { return errors.Join(r.forget(), r.blocks.close()) }

func (r *queueRunner) run(e *arenaExecutor, step uint64) error {
	if err := r.q.SetStep(step); err != nil {
		return fmt.Errorf("@%s: %w", r.p.fn.Name, err)
	}
	if e.timed || e.p.check { // something to do between operations
		return e.execute(e.code, step)
	}
	k := r.at
	if k.graph == nil && k.settled {
		rec, err := r.q.Record(func() error { return e.execute(e.code, step) })
		if err != nil {
			return err
		}
		k.graph = rec
	}
	if k.graph == nil {
		k.settled = true
		return e.execute(e.code, step)
	}
	if err := k.graph.Replay(); err != nil {
		return fmt.Errorf("@%s, as a graph of %d operations: %w", r.p.fn.Name, len(e.code), err)
	}
	return nil
}

// place is where an imported buffer lies, to see that it has moved. On the host it is
// zero: there, views are set again for every run.
type place struct {
	elements uintptr
	in, out  DeviceCSR
}

func placeOf(b *Buffer) place {
	p := place{elements: b.Device.Elements}
	if b.Device.In != nil {
		p.in, p.out = *b.Device.In, *b.Device.Out
	}
	return p
}

// bring imports a buffer and reports whether it lies elsewhere than before.
func (p *program) bring(c *slot, b *Buffer) (moved bool, err error) {
	if err := p.device.Import(c.view, b); err != nil {
		return false, err
	}
	was := c.at
	c.at = placeOf(c.view)
	return c.at != was, nil
}
