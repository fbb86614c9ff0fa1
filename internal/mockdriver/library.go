package mockdriver

import (
	"fmt"
	"strings"
	"unsafe"
)

// Library is the mock driver, loaded into this process, to set faults and ask what it saw.
type Library struct {
	set              func(name string, value int64) int32
	count            func(name string) int64
	live, violations func(text *byte, size uintptr) int32
	reset            func()
}

// Set changes a setting:
//
//	devices      how many GPUs there are, 1
//	memory       bytes of each, 8 GiB
//	version      the driver's, 12040 for CUDA 12.4
//	capability   90 for compute capability 9.0
//	seed         of the order of streams, and of threads in the emulator
//	fail_alloc   the n-th allocation from now finds no room
//	fail_launch  the n-th kernel from now fails while it runs
//	device_lost  the device is gone once n kernels from now have run
func (l *Library) Set(name string, value int64) error {
	if l.set(name, value) != 0 {
		return fmt.Errorf("the mock driver has no setting %q", name)
	}
	return nil
}

// Count returns how often something was asked for since the last Reset:
//
//	launches    kernels, also those that are captured
//	recordings  graphs instantiated
//	replays     graphs launched
//	uploads     copies from the host
//	downloads   copies to the host
//	pageable    those of both with memory that is not page-locked
//
// It is −1 where there is no such count.
func (l *Library) Count(name string) int64 { return l.count(name) }

// Live lists what was made and not destroyed: contexts, streams, memory.
func (l *Library) Live() []string { return list(l.live) }

// Violations lists what was done wrong since the last Reset, whether or not the error
// that the driver returned was heeded.
func (l *Library) Violations() []string { return list(l.violations) }

// Reset makes the mock driver as new. Handles and addresses from before are dead.
func (l *Library) Reset() { l.reset() }

func list(f func(*byte, uintptr) int32) []string {
	text := make([]byte, 1<<16)
	n := f(unsafe.SliceData(text), uintptr(len(text)))
	if n == 0 {
		return nil
	}
	s, _, _ := strings.Cut(string(text), "\x00")
	return strings.Split(strings.TrimSpace(s), "\n")
}
