package fakedevice

import (
	"fmt"
	"slices"
	"unsafe"
)

// store is the device's memory.
type store struct {
	d      *Device
	blocks []block // ascending
	next   uintptr
}

type block struct {
	at   uintptr
	data []byte
}

// Alloc returns an address that was never given out before.
func (s *store) Alloc(n int) (uintptr, error) {
	if err := s.d.ask("alloc"); err != nil {
		return 0, err
	}
	words := make([]uint64, (n+7)/8+8)
	skip := int(-uintptr(unsafe.Pointer(&words[0]))%64) / 8
	data := unsafe.Slice((*byte)(unsafe.Pointer(&words[skip])), n)
	for i := range data {
		data[i] = 0xff // NaN
	}
	at := s.next
	s.next += uintptr(n+4096) &^ 255
	s.blocks = append(s.blocks, block{at, data})
	return at, nil
}

// Free ends the life of a block.
func (s *store) Free(at uintptr) error {
	i := slices.IndexFunc(s.blocks, func(b block) bool { return b.at == at })
	if i < 0 {
		return fmt.Errorf("fakedevice: %#x is freed, where no block begins", at)
	}
	s.blocks = slices.Delete(s.blocks, i, i+1)
	return nil
}

// Upload copies to the device.
func (s *store) Upload(dst uintptr, src []byte) error {
	if err := s.d.ask("upload"); err != nil {
		return err
	}
	to, err := s.memory(dst, len(src))
	copy(to, src)
	return err
}

// Download copies to the host.
func (s *store) Download(dst []byte, src uintptr) error {
	if err := s.d.ask("download"); err != nil {
		return err
	}
	from, err := s.memory(src, len(dst))
	copy(dst, from)
	return err
}

// Copy copies within the device.
func (s *store) Copy(dst, src uintptr, n int) error {
	from, err := s.memory(src, n)
	if err != nil {
		return err
	}
	to, err := s.memory(dst, n)
	copy(to, from)
	return err
}

// memory returns the bytes at an address.
func (s *store) memory(at uintptr, n int) ([]byte, error) {
	for i := len(s.blocks) - 1; i >= 0; i-- {
		b := s.blocks[i]
		if b.at > at {
			continue
		}
		if at+uintptr(n) <= b.at+uintptr(len(b.data)) {
			return b.data[at-b.at:][:n:n], nil
		}
		break
	}
	return nil, fmt.Errorf("fakedevice: %d bytes at %#x are in no live memory", n, at)
}

// elements returns n elements at an address.
func elements[T float32 | int64 | int32 | uint64](d *Device, at uintptr, n int) ([]T, error) {
	if n == 0 {
		return []T{}, nil
	}
	size := int(unsafe.Sizeof(T(0)))
	m, err := d.store.memory(at, n*size)
	if err != nil {
		return nil, err
	}
	if at%uintptr(size) != 0 {
		return nil, fmt.Errorf("fakedevice: address %#x is not a multiple of %d", at, size)
	}
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(m))), n), nil
}
