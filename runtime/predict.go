package runtime

import (
	"fmt"
	"maps"

	"github.com/gsrc-dev/gsrc/graph"
	"github.com/gsrc-dev/gsrc/ir"
	"github.com/gsrc-dev/gsrc/rng"
	"github.com/gsrc-dev/gsrc/runtime/kernels"
)

// Memory is what a function with its set-up holds while it runs, beside what is
// bound to its inputs.
type Memory struct {
	Main  Plan
	Setup Plan // zero where there is none
	// Blocks is the bytes of the blocks that it samples.
	Blocks int
	// Pool is what its kernels use of the pool's buffers, which all functions on
	// the pool share.
	Pool kernels.Scratch
}

// Bytes returns the bytes of the function alone, without the pool's.
func (m Memory) Bytes() int { return m.Main.Bytes + m.Setup.Bytes + m.Blocks }

// PredictMemory returns what a function of the module and its set-up will hold
// with these inputs, without running it: the arena executor lays values out in
// the very same way. Of inputs only the sizes count, so that tensors may come
// without elements (see [Extent.Buffer]); but blocks are sampled of the
// graph and the indices that are given. Where sizes vary from step to step, as
// those of blocks do with the samples, further draws of some of the
// inputs make the prediction one that holds for all of them. A draw that is nil stands for some
// that come later and are a little larger.
//
// Of the device only Kernel and Workspace are asked. What lies there beside, inputs and
// parameters, is not counted.
func PredictMemory(d Device, m *ir.Module, name string, inputs map[string]*Buffer, draws ...map[string]*Buffer) (Memory, error) {
	d = sizesOf{CPU, d}
	var mem Memory
	f := m.Func(name)
	if f == nil {
		return mem, fmt.Errorf("runtime: module @%s has no function @%s", m.Name, name)
	}
	all := map[string]*Buffer{}
	maps.Copy(all, inputs)
	set, err := setupOf(m, f)
	if err != nil {
		return mem, err
	}
	if set != nil {
		e, err := predict(d, m, set, all, nil)
		if err != nil {
			return mem, err
		}
		mem.Setup, mem.Blocks, mem.Pool = e.plan(), e.p.runner.blockBytes(), e.mem.pool()
		for _, r := range set.Results {
			all[r.Name] = e.p.slots[r.Value].sized()
		}
	}
	e, err := predict(d, m, f, all, draws)
	if err != nil {
		return mem, err
	}
	mem.Main = e.plan()
	mem.Blocks += e.p.runner.blockBytes()
	mem.Pool = mem.Pool.Max(e.mem.pool())
	return mem, nil
}

// sizesOf is a device of which only the sizes are of interest: nothing is copied to it.
type sizesOf struct {
	Device // the CPU, which imports sizes
	of     Device
}

func (s sizesOf) Kernel(op *ir.Op) (Kernel, error)         { return s.of.Kernel(op) }
func (s sizesOf) Workspace(k *Call) (int, kernels.Scratch) { return s.of.Workspace(k) }
func (s sizesOf) Pads() bool                               { return s.of.Pads() }
func (s sizesOf) Attach(p *Program) Runner {
	return predictedRunner{hostRunner{p.p}, s.of.Attach(p)}
}

// predictedRunner finds blocks on the host, for a device that is asked what they take.
type predictedRunner struct {
	hostRunner
	of Runner
}

func (r predictedRunner) blockBytes() int { return r.of.predictBlockBytes() }

// predict lays a function out for some inputs, and further draws of them.
func predict(d Device, m *ir.Module, f *ir.Func, inputs map[string]*Buffer, draws []map[string]*Buffer) (*arenaExecutor, error) {
	p, err := newProgram(m, f, d, rng.Stream(0))
	if err != nil {
		return nil, fmt.Errorf("runtime: %w", err)
	}
	e := newArenaExecutor(p, Options{})
	for i, set := range append([]map[string]*Buffer{inputs}, draws...) {
		if i > 0 && set == nil {
			e.mem.arrange()
			for k := range e.mem.allocations {
				if p := &e.mem.allocations[k]; p.need > 0 {
					p.need = p.room + 1
				}
			}
			for k := range e.mem.work {
				e.mem.work[k].pool = e.mem.work[k].pool.Varying()
			}
			continue
		}
		for _, in := range p.inputs {
			if b := set[in.value.Name]; b != nil {
				in.bound = b
			}
		}
		if err := p.loadSizes(); err != nil {
			return nil, fmt.Errorf("runtime: @%s: %w", f.Name, err)
		}
		e.mem.measure()
	}
	e.mem.arrange()
	return e, nil
}

// loadSizes makes the sizes of all slots those of the bound inputs. Parameters
// need not be bound: their types have their sizes.
func (p *program) loadSizes() error {
	for _, in := range p.inputs {
		switch {
		case in.bound == nil && in.value.Param:
			shape, err := in.value.Type.Shape(nil)
			if err != nil {
				return fmt.Errorf("%s: %w", in.value.Ref(), err)
			}
			in.bound = Extent{Dims: shape}.Buffer(in.value.Type)
		case in.bound == nil:
			return fmt.Errorf("the size of %s is not known", in.value.Ref())
		case len(in.bound.Dims) != in.value.Type.Rank():
			return fmt.Errorf("%s is %s, got shape %v", in.value.Ref(), in.value.Type, in.bound.Dims)
		}
	}
	if err := p.load(); err != nil {
		return err
	}
	for _, s := range p.shapeOps {
		if g := s.in[0].Graph; g == nil || g.In == nil {
			return fmt.Errorf("%s needs the graph itself, not only its size", s.Op)
		}
	}
	if err := p.runner.inferDynamicShapes(); err != nil {
		return err
	}
	return p.resolve()
}

// sized returns a buffer of the slot's size, without elements.
func (c *slot) sized() *Buffer {
	return Extent{Dims: c.view.Dims, Stored: c.n}.Buffer(c.value.Type)
}

// Buffer returns a buffer of the size for [PredictMemory], without elements: a
// value of the type, which decides between dense, sparse and integers.
func (e Extent) Buffer(t ir.Type) *Buffer {
	b := &Buffer{DType: t.DType, Dims: e.Dims}
	switch t.Layout {
	case ir.CSR:
		b.Sparse = &SparseMatrix{ByRow: &kernels.CSR{Rows: e.Dims[0], Cols: e.Dims[1]}, stored: e.Stored}
	case ir.Structure:
		b.Graph = &graph.Structure{N: e.Dims[0], E: e.Dims[1]}
	}
	return b
}

// Memory returns what the function holds now, after a run.
func (x *Function) Memory() Memory {
	var m Memory
	for _, e := range []*Executable{x.setup, x.Executable} {
		if e == nil {
			continue
		}
		plan := e.Plan()
		if p, ok := e.exec.(*arenaExecutor); ok {
			plan.Bytes = p.mem.held()
			m.Pool = m.Pool.Max(p.mem.pool())
		}
		if e == x.setup {
			m.Setup = plan
		} else {
			m.Main = plan
		}
		m.Blocks += e.p.runner.blockBytes()
	}
	return m
}
