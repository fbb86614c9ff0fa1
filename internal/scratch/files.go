package scratch

import (
	"errors"
	"unsafe"
)

// Files gives numbers room in files of a folder, which is Near if that is on a disk ([Dir]). It is
// used by one goroutine at a time.
type Files struct {
	Near string
	free map[unsafe.Pointer]func() error // by the first byte
}

// leastFile is how many bytes are worth a file.
const leastFile = 1 << 20

// Room returns x with length 0 and room for n elements. Where x has not as much it is in a file, new
// and with some more, that lasts until Room is asked for more for x, or [Files.Free]; nothing may
// read x's old room then. Few elements, and those of no Files (nil), stay where they are.
func Room[T ~int32 | ~float32 | ~[2]int32 | ~bool](f *Files, x []T, n int) ([]T, error) {
	size := int(unsafe.Sizeof(*new(T)))
	if x = x[:0]; f == nil || cap(x) >= n || n*size < leastFile {
		return x, nil
	}
	if free := f.free[unsafe.Pointer(unsafe.SliceData(x))]; free != nil {
		delete(f.free, unsafe.Pointer(unsafe.SliceData(x)))
		if err := free(); err != nil {
			return nil, err
		}
	}
	dir, err := Dir(f.Near)
	if err != nil {
		return nil, err
	}
	n += n / 16
	floats, free, err := Floats(dir, (n*size+3)/4)
	if err != nil {
		return nil, err
	}
	if f.free == nil {
		f.free = map[unsafe.Pointer]func() error{}
	}
	at := unsafe.Pointer(unsafe.SliceData(floats))
	f.free[at] = free
	return unsafe.Slice((*T)(at), n)[:0], nil
}

// Free gives all files back. Nothing may read what had room in them.
func (f *Files) Free() error {
	if f == nil {
		return nil
	}
	var errs []error
	for _, free := range f.free {
		errs = append(errs, free())
	}
	f.free = nil
	return errors.Join(errs...)
}
