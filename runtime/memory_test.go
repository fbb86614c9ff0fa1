package runtime

import (
	"strings"
	"testing"
	"unsafe"

	"github.com/gsrc-dev/gsrc/ir"
	"github.com/gsrc-dev/gsrc/passes"
	"github.com/gsrc-dev/gsrc/rng"
	"github.com/gsrc-dev/gsrc/runtime/kernels"
)

// sizesOnly takes the elements away from tensors.
func sizesOnly(m *ir.Module, fn *ir.Func, args map[string]*Buffer) map[string]*Buffer {
	bare := map[string]*Buffer{}
	for name, b := range args {
		v := fn.Arg(name)
		if v == nil { // of the set-up alone
			v = m.Func(fn.Attrs.Str(passes.Setup)).Arg(name)
		}
		bare[name] = b
		if b.Graph == nil && b.DType == ir.F32 {
			bare[name] = Extent{Dims: b.Dims, Stored: b.len()}.Buffer(v.Type)
		}
	}
	return bare
}

// TestPredictedMemory holds what is predicted, without running, against what
// every function of every model has allocated after some steps: its arenas, its
// blocks and the pool's buffers.
func TestPredictedMemory(t *testing.T) {
	for _, p := range compiledModels(t) {
		params := moduleParams(t, p.m)
		for _, fn := range p.m.Funcs {
			if strings.HasSuffix(fn.Name, ".setup") {
				continue
			}
			for k, sz := range modelSizes {
				pool := kernels.NewPool(2)
				before := pool.Scratch()
				f := mustFunction(t, p.m, fn.Name, Options{Pool: pool, Seed: rng.New(8, "models")})
				args := inputArguments(t, p.m, fn, sz, rng.New(uint64(k), p.name))
				bindAll(t, f, args, params)
				for step := range uint64(3) {
					if err := f.Run(step); err != nil {
						t.Fatal(err)
					}
				}
				want, err := PredictMemory(CPU, p.m, fn.Name, sizesOnly(p.m, fn, args))
				if err != nil {
					t.Fatal(err)
				}
				if got := f.Memory().Bytes(); got != want.Bytes() {
					t.Errorf("%s: @%s at %v holds %d bytes, predicted are %d", p.name, fn.Name, sz, got, want.Bytes())
				}
				// A kernel that finds nothing to do takes no buffers.
				if got := pool.Scratch(); got.Max(want.Pool) != want.Pool.Max(before) {
					t.Errorf("%s: @%s at %v: the pool holds %+v, predicted are %+v", p.name, fn.Name, sz, got, want.Pool)
				}
				pool.Close()
			}
		}
	}
}

func TestPredictMemoryErrors(t *testing.T) {
	m := parse(t, "graph.gsr")
	if _, err := PredictMemory(CPU, m, "nothing", nil); err == nil || !strings.Contains(err.Error(), "@nothing") {
		t.Errorf("a function that is not there: %v", err)
	}
	if _, err := PredictMemory(CPU, m, "conv", nil); err == nil || !strings.Contains(err.Error(), "%") {
		t.Errorf("an input without a size: %v", err)
	}
}

// TestValuesLieAligned holds every value to addresses that are multiples of 64,
// and inside the arena.
func TestValuesLieAligned(t *testing.T) {
	m := parse(t, "graph.gsr")
	f := mustFunction(t, m, "conv", Options{})
	bindAll(t, f, arguments(t, m.Func("conv"), nil, sizes{"N": 37, "E": -1, "D": 5}, rng.New(1, "aligned")), moduleParams(t, m))
	if err := f.Run(0); err != nil {
		t.Fatal(err)
	}
	e := f.exec.(*arenaExecutor)
	base := uintptr(unsafe.Pointer(unsafe.SliceData(e.mem.arena.F32)))
	for _, v := range e.mem.values {
		at := addressOf(v.slot.view)
		if v.slot.n > 0 && (at%alignment != 0 || at < base || at+uintptr(v.slot.bytes()) > base+uintptr(4*cap(e.mem.arena.F32))) {
			t.Errorf("%s lies at %#x of an arena at %#x", v.slot.value.Def, at, base)
		}
	}
}

// addressOf returns the address of the first stored element.
func addressOf(b *Buffer) uintptr {
	switch {
	case b.Sparse != nil:
		return uintptr(unsafe.Pointer(unsafe.SliceData(b.Sparse.Values)))
	case b.DType == ir.I64:
		return uintptr(unsafe.Pointer(unsafe.SliceData(b.I64)))
	}
	return uintptr(unsafe.Pointer(unsafe.SliceData(b.F32)))
}

// TestSharedMemoryKeepsValues compares programs whose values share memory with
// the same in which each value has its own: without schedule nothing shares.
func TestSharedMemoryKeepsValues(t *testing.T) {
	for _, p := range compiledModels(t) {
		own := p.m.Clone()
		for _, f := range own.Funcs {
			delete(f.Attrs, passes.Memory)
		}
		params := moduleParams(t, p.m)
		for _, fn := range p.m.Funcs {
			if strings.HasSuffix(fn.Name, ".setup") {
				continue
			}
			args := inputArguments(t, p.m, fn, modelSizes[0], rng.New(4, p.name))
			opts := Options{Seed: rng.New(8, "models")}
			shared, apart := mustFunction(t, p.m, fn.Name, opts), mustFunction(t, own, fn.Name, opts)
			for _, f := range []*Function{shared, apart} {
				bindAll(t, f, args, params)
				if err := f.Run(3); err != nil {
					t.Fatal(err)
				}
			}
			for _, r := range shared.Outputs() {
				if err := sameBits(shared.Output(r), apart.Output(r)); err != nil {
					t.Errorf("%s: @%s %s: %v", p.name, fn.Name, r, err)
				}
			}
			a, b := shared.Main().Plan(), apart.Main().Plan()
			if b.Buffers < b.Values || b.Bytes < b.Unshared {
				t.Errorf("%s: @%s: values share memory without schedule: %+v", p.name, fn.Name, b)
			}
			if a.Values > 20 && 5*a.Bytes > 3*b.Bytes { // most need less than half; a short program keeps much for its gradient
				t.Errorf("%s: @%s takes %d bytes, and %d where nothing is shared", p.name, fn.Name, a.Bytes, b.Bytes)
			}
		}
	}
}

// TestChangingSizes: sizes that vary from run to run change the layout a few
// times at most, and the arena stays near the largest need.
func TestChangingSizes(t *testing.T) {
	m := parse(t, "graph.gsr")
	f := mustFunction(t, m, "conv", Options{})
	bindAll(t, f, moduleParams(t, m))
	e := f.exec.(*arenaExecutor)
	layouts, last, largest := 0, -1, 0
	for k := range 60 {
		n := 1000 + (k*37)%50
		args := arguments(t, m.Func("conv"), nil, sizes{"N": n, "E": -1, "D": 16}, rng.New(uint64(k), "sizes"))
		alone, err := PredictMemory(CPU, m, "conv", args)
		if err != nil {
			t.Fatal(err)
		}
		largest = max(largest, alone.Main.Bytes)
		bindAll(t, f, args)
		if err := f.Run(0); err != nil {
			t.Fatal(err)
		}
		if e.mem.size != last {
			layouts, last = layouts+1, e.mem.size
		}
	}
	if layouts > 6 {
		t.Errorf("%d layouts in 60 runs of similar sizes", layouts)
	}
	if held := f.Memory().Main.Bytes; 100*held > 115*largest {
		t.Errorf("%d bytes are held, the largest run needs %d", held, largest)
	}
}
