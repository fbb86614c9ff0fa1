//go:build unix

package scratch

import (
	"os"
	"syscall"
	"unsafe"
)

func floats(dir string, n int) ([]float32, func() error, error) {
	f, err := os.CreateTemp(dir, ".gsrc-scratch-*")
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	if err := os.Remove(f.Name()); err != nil { // its pages stay as long as they are mapped
		return nil, nil, err
	}
	if err := reserve(f, 4*int64(n)); err != nil {
		return nil, nil, err
	}
	b, err := syscall.Mmap(int(f.Fd()), 0, 4*n, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	if err != nil {
		return nil, nil, err
	}
	return unsafe.Slice((*float32)(unsafe.Pointer(&b[0])), n), func() error { return syscall.Munmap(b) }, nil
}
