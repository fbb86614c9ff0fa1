package runtime

import (
	"fmt"
	"slices"
	"unsafe"

	"github.com/gsrc-dev/gsrc/ir"
	"github.com/gsrc-dev/gsrc/rng"
	"github.com/gsrc-dev/gsrc/runtime/kernels"
)

// CPU is the device that runs kernels of package runtime/kernels. It may be shared
// between goroutines for running programs; what [Trainer] and [Sampler] do needs a
// [NewCPU] of its own.
var CPU Device = cpu{}

// NewCPU returns the CPU with the threads of a pool, for one goroutine at a time.
func NewCPU(pool *kernels.Pool) Device { return cpu{&cpuState{pool: pool}} }

type cpu struct{ *cpuState }

// cpuState is what the CPU uses again from step to step.
type cpuState struct {
	pool  *kernels.Pool
	adam  []kernels.AdamParam
	perm  []int32 // the identity between draws
	swaps []int32
}

func (cpu) Name() string { return "cpu" }

func (cpu) Pads() bool { return false }

func (cpu) MemoryLimit(host int64) int64 { return host }

func (cpu) Attach(p *Program) Runner {
	leaveForGradients(p.p.ops)
	return p.OnHost()
}

func (cpu) Reserve(b *Buffer, n int) error {
	if b.DType == ir.I64 {
		if cap(b.I64) < n {
			b.I64 = alignedSlice[int64](n)
		}
		return nil
	}
	if cap(b.F32) < n {
		b.F32 = nil // the old memory may go before the new one comes
		b.F32 = alignedSlice[float32](n)
	}
	return nil
}

// alignment of values in bytes: a cache line, and the widest vector.
const alignment = 64

// alignedSlice returns n elements from an aligned address.
func alignedSlice[T float32 | int64](n int) []T {
	if n == 0 {
		return nil
	}
	size := int(unsafe.Sizeof(T(0)))
	s := make([]T, n+alignment/size-1)
	skip := int(-uintptr(unsafe.Pointer(unsafe.SliceData(s)))%alignment) / size
	return s[skip : skip+n : skip+n]
}

func (cpu) View(dst, b *Buffer, at, n int) {
	switch {
	case dst.Sparse != nil:
		dst.Sparse.Values = elements[float32](b, at, n)
	case dst.DType == ir.I64:
		dst.I64 = elements[int64](b, at, n)
	default:
		dst.F32 = elements[float32](b, at, n)
	}
}

// elements returns n elements of a buffer's memory from byte at on.
func elements[T float32 | int64](b *Buffer, at, n int) []T {
	if n == 0 {
		return []T{}
	}
	have, base := 8*cap(b.I64), unsafe.Pointer(unsafe.SliceData(b.I64))
	if b.DType != ir.I64 {
		have, base = 4*cap(b.F32), unsafe.Pointer(unsafe.SliceData(b.F32))
	}
	if size := int(unsafe.Sizeof(T(0))); at < 0 || at%size != 0 || at+n*size > have {
		panic(fmt.Sprintf("runtime: %d elements from byte %d on of %d bytes", n, at, have))
	}
	return unsafe.Slice((*T)(unsafe.Add(base, at)), n)
}

func (cpu) Import(view, bound *Buffer) error {
	view.F32, view.I64, view.Graph = bound.F32, bound.I64, bound.Graph
	if bound.Sparse != nil {
		*view.Sparse = *bound.Sparse
	}
	return nil
}

func (c cpu) Alias(view, operand *Buffer, from, n int) {
	_ = c.Import(view, operand) // which has nothing to fail at
	if from > 0 || n < len(view.F32) {
		view.F32 = view.F32[from : from+n]
	}
}

func (cpu) Export(b *Buffer) (*Buffer, error) { return b, nil }

func (cpu) Changed(*Buffer) {}

func (cpu) ToDevice(*Buffer) error { return nil }

func (cpu) CopyToDevice(*Buffer) error { return nil }

func (cpu) CopyToHost(*Buffer) error { return nil }

func (cpu) Assign(dst, src *Buffer) error {
	copy(dst.F32, src.F32)
	return nil
}

func (cpu) Release(*Buffer) error { return nil }

func (cpu) ReleaseAll() error { return nil }

func (c cpu) Adam(params []AdamParam, lr, b1, b2, eps float32, t int) error {
	c.adam = c.adam[:0]
	for _, p := range params {
		c.adam = append(c.adam, kernels.AdamParam{W: p.W.F32, G: p.G.F32, M: p.M.F32, V: p.V.F32, WeightDecay: p.WeightDecay})
	}
	c.pool.AdamStep(c.adam, lr, b1, b2, eps, t)
	clear(c.adam) // gradients may be freed with what computed them
	return nil
}

func (cpu) EMAUpdate(dst, src *Buffer, share float32) error {
	for i, v := range src.F32[:len(dst.F32)] {
		dst.F32[i] += float32(share * (v - dst.F32[i]))
	}
	return nil
}

func (cpu) Finite(scalars []*Buffer, values []float32, bs []*Buffer) (int, error) {
	for i, b := range scalars {
		values[i] = b.F32[0]
	}
	return slices.IndexFunc(bs, func(b *Buffer) bool { return !kernels.Finite(b.F32) }), nil
}

func (cpu) Score(logits *Buffer, sets []Scoring) (bool, error) {
	k := logits.Dims[1]
	for i := range sets {
		s := &sets[i]
		s.Hits, s.Loss = 0, 0
		for j, r := range s.Rows.I64 {
			row, label := logits.F32[int(r)*k:][:k], int(s.Labels.I64[j])
			if kernels.Top(row) == label {
				s.Hits++
			}
			if s.WithLoss {
				s.Loss += kernels.NLL(row, label)
			}
		}
	}
	return kernels.Finite(logits.F32), nil
}

// DrawAnchors makes the first steps of the shuffle and undoes them afterwards.
func (c cpu) DrawAnchors(dst *Buffer, n int, s rng.Stream) error {
	if len(c.perm) != n {
		c.perm = make([]int32, n)
		for i := range c.perm {
			c.perm[i] = int32(i)
		}
	}
	count := dst.Size()
	if count > n {
		return fmt.Errorf("%d of %d nodes cannot be drawn", count, n)
	}
	c.swaps, dst.I64 = slices.Grow(c.swaps[:0], count)[:count], dst.I64[:count]
	for i := range count {
		j := i + s.Intn(uint64(i), n-i)
		c.swaps[i] = int32(j)
		c.perm[i], c.perm[j] = c.perm[j], c.perm[i]
	}
	for i := range count {
		dst.I64[i] = int64(c.perm[i])
	}
	for i := count - 1; i >= 0; i-- {
		j := c.swaps[i]
		c.perm[i], c.perm[j] = c.perm[j], c.perm[i]
	}
	slices.Sort(dst.I64)
	return nil
}

func (cpu) Candidates(c *Candidates, emb *Buffer, o CandidateOptions) error {
	return c.Build(c.Search(emb, o), o)
}

func (cpu) CandidateBytes(int, int, int, CandidateOptions) int { return 0 }
