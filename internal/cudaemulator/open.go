//go:build darwin || linux

package cudaemulator

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"unsafe"

	"github.com/ebitengine/purego"
)

// Emulator is the library that [Build] makes, opened.
type Emulator struct {
	mu         sync.Mutex
	launch     func(kernel string, grid, block *[3]uint32, shared uint32, params unsafe.Pointer) int32
	message    func() string
	params     func(kernel string, bytes *[128]byte) int32
	seed       func(uint64)
	register   func(at uintptr, bytes uintptr)
	unregister func(at uintptr)
}

// Open opens the library.
func Open(library string) (*Emulator, error) {
	lib, err := purego.Dlopen(library, purego.RTLD_NOW|purego.RTLD_LOCAL)
	if err != nil {
		return nil, fmt.Errorf("emulator: %w", err)
	}
	e := &Emulator{}
	for name, f := range map[string]any{"launch": &e.launch, "error": &e.message, "params": &e.params, "seed": &e.seed, "register": &e.register, "unregister": &e.unregister} {
		purego.RegisterLibFunc(f, lib, "gsrc_emu_"+name)
	}
	return e, nil
}

// Launch runs a kernel to its end: see cuda.Stream. Arguments are as many as the
// kernel has parameters.
func (e *Emulator) Launch(kernel string, grid, block [3]uint32, shared uint32, args ...uint64) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	var bytes [128]byte
	if n := e.params(kernel, &bytes); n >= 0 && int(n) != len(args) {
		return fmt.Errorf("emulator: %s has %d parameters, got %d arguments", kernel, n, len(args))
	}
	var pins runtime.Pinner
	defer pins.Unpin()
	values := make([]uint64, len(args)+1)
	copy(values, args)
	pins.Pin(&values[0])
	params := make([]unsafe.Pointer, len(args)+1)
	for i := range args {
		params[i] = unsafe.Pointer(&values[i])
	}
	if e.launch(kernel, &grid, &block, shared, unsafe.Pointer(&params[0])) != 0 {
		return errors.New("emulator: " + e.message())
	}
	return nil
}

// Seed sets the seed that the orders of threads and blocks are drawn from.
func (e *Emulator) Seed(seed uint64) { e.seed(seed) }

// Register makes a range of the host's memory the device's. Nothing outside of
// registered ranges can be accessed by a kernel.
func (e *Emulator) Register(at uintptr, bytes int) { e.register(at, uintptr(bytes)) }

// Unregister takes a range back, by its address.
func (e *Emulator) Unregister(at uintptr) { e.unregister(at) }
