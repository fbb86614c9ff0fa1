package store

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/gsrc-dev/gsrc/internal/filelock"
)

// Store is an open graph store. Its methods may be called by many goroutines at once. The
// slices that they return lie in the files and must not be written to.
type Store struct {
	Header
	// ID is the SHA-256 of the header, which stands for all of the content.
	ID   string
	dir  string
	lock *filelock.Lock

	arrays map[string]*mapped
}

// mapped is an array in its file.
type mapped struct {
	Array
	path  string
	data  []byte
	sums  []byte          // [blocks] SHA-256
	known []atomic.Uint32 // a bit for each block that was found right
	free  func() error
}

// DamageError says that a file of a store is not what was written.
type DamageError struct {
	File  string
	Block int64 // of [BlockSize] bytes; -1 is the file as a whole
	Why   string
}

func (e *DamageError) Error() string {
	if e.Block < 0 {
		return fmt.Sprintf("%s: %s; write the store again with gsrc data convert", e.File, e.Why)
	}
	return fmt.Sprintf("%s: block %d, from byte %d on, %s; write the store again with gsrc data convert", e.File, e.Block, e.Block*BlockSize, e.Why)
}

// Is reports whether there is a store in a folder.
func Is(dir string) bool {
	info, err := os.Stat(filepath.Join(dir, HeaderFile))
	return err == nil && info.Mode().IsRegular()
}

// Open maps the store in a folder, after it has checked the header, the sizes of all files
// and the tables of checksums. The store is locked against being replaced until Close.
func Open(dir string) (_ *Store, err error) {
	if !littleEndian {
		return nil, errors.New("graph stores are read on little-endian machines only")
	}
	if !Is(dir) {
		return nil, fmt.Errorf("%s: no graph store: there is no %s in it", dir, HeaderFile)
	}
	s := &Store{dir: dir, arrays: map[string]*mapped{}}
	if s.lock, err = filelock.TryShare(filepath.Join(dir, lockFile)); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Close())
		}
	}()
	h, text, err := readHeader(dir)
	if err != nil {
		return nil, err
	}
	if err := h.check(); err != nil {
		return nil, &DamageError{File: filepath.Join(dir, HeaderFile), Block: -1, Why: err.Error()}
	}
	s.Header, s.ID = *h, hexSum(text)
	for _, a := range h.Arrays {
		m := &mapped{Array: a, path: filepath.Join(dir, a.file())}
		table := filepath.Join(dir, a.table())
		n := a.bytes()
		for path, want := range map[string]int64{m.path: n, table: blocks(n) * sha256.Size} {
			info, err := os.Stat(path)
			switch {
			case err != nil:
				return nil, err
			case !info.Mode().IsRegular():
				return nil, &DamageError{File: path, Block: -1, Why: "it is no file"}
			case info.Size() != want:
				return nil, &DamageError{File: path, Block: -1, Why: fmt.Sprintf("it has %d bytes in the place of %d", info.Size(), want)}
			}
		}
		if m.sums, err = os.ReadFile(table); err != nil {
			return nil, err
		}
		if hexSum(m.sums) != a.Table {
			return nil, &DamageError{File: table, Block: -1, Why: "it does not fit its checksum"}
		}
		m.known = make([]atomic.Uint32, (blocks(n)+31)/32)
		if m.data, m.free, err = mapFile(m.path, n); err != nil {
			return nil, fmt.Errorf("%s: %w", m.path, err)
		}
		s.arrays[a.Name] = m
		ranges.Store(m, s)
	}
	return s, nil
}

func hexSum(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// Close unmaps the files: slices of the store must not be read any more.
func (s *Store) Close() error {
	var errs []error
	for _, m := range s.arrays {
		ranges.Delete(m)
		errs = append(errs, m.free())
	}
	s.arrays = nil
	return errors.Join(append(errs, s.lock.Unlock())...)
}

// Dir is the folder of the store.
func (s *Store) Dir() string { return s.dir }

// Has reports whether the store has an array.
func (s *Store) Has(name string) bool { return s.arrays[name] != nil }

// Bytes is the size of an array; 0 where there is none.
func (s *Store) Bytes(name string) int64 {
	if m := s.arrays[name]; m != nil {
		return int64(len(m.data))
	}
	return 0
}

// Type is the type of an array's elements; empty where there is none.
func (s *Store) Type(name string) string {
	if m := s.arrays[name]; m != nil {
		return m.Array.Type
	}
	return ""
}

// touch holds blocks of an array against their checksums that were not held before: those
// of the bytes from lo to hi.
func (m *mapped) touch(lo, hi int64) error {
	for b := lo / BlockSize; b*BlockSize < hi; b++ {
		word, bit := &m.known[b/32], uint32(1)<<(b%32)
		if word.Load()&bit != 0 {
			continue
		}
		sum := sha256.Sum256(m.data[b*BlockSize : min((b+1)*BlockSize, int64(len(m.data)))])
		if !bytes.Equal(sum[:], m.sums[b*sha256.Size:(b+1)*sha256.Size]) {
			return &DamageError{File: m.path, Block: b, Why: "does not fit its checksum"}
		}
		word.Or(bit)
	}
	return nil
}

// A View is an array of a store as a slice, whose blocks are checked as they are touched.
type View[T element] struct {
	m   *mapped
	all []T
}

// ViewOf returns an array without a look at it; an empty one where the store has none.
func ViewOf[T element](s *Store, name string) View[T] {
	m := s.arrays[name]
	if m == nil || len(m.data) == 0 {
		return View[T]{}
	}
	size := int64(unsafe.Sizeof(*new(T)))
	if sizes[m.Array.Type] != size {
		panic(fmt.Sprintf("store: %s is of type %s", name, m.Array.Type))
	}
	return View[T]{m, unsafe.Slice((*T)(unsafe.Pointer(&m.data[0])), int64(len(m.data))/size)}
}

// Len is the number of elements.
func (v View[T]) Len() int { return len(v.all) }

// Unchecked is all of the array: what was not touched is not checked.
func (v View[T]) Unchecked() []T { return v.all }

// At returns the elements from lo to hi, checked.
func (v View[T]) At(lo, hi int64) ([]T, error) {
	if lo < 0 || lo > hi || hi > int64(len(v.all)) {
		return nil, fmt.Errorf("elements %d to %d of an array of %d", lo, hi, len(v.all))
	}
	if lo == hi {
		return nil, nil
	}
	size := int64(unsafe.Sizeof(v.all[0]))
	if err := v.m.touch(lo*size, hi*size); err != nil {
		return nil, err
	}
	return v.all[lo:hi], nil
}

// All is the whole array, checked; nil where there is none.
func (v View[T]) All() ([]T, error) { return v.At(0, int64(len(v.all))) }

// All returns the whole of an array, checked; nil where there is none.
func All[T element](s *Store, name string) ([]T, error) { return ViewOf[T](s, name).All() }

// Verify holds all blocks against their checksums. progress, if not nil, gets how many of
// all bytes are done.
func (s *Store) Verify(progress func(done, total int64) error) error {
	return Guard(func() error {
		var done, total int64
		for _, m := range s.arrays {
			total += int64(len(m.data))
		}
		for _, a := range s.Arrays {
			m := s.arrays[a.Name]
			for i := range m.known {
				m.known[i].Store(0)
			}
			for lo := int64(0); lo < int64(len(m.data)); lo += 256 * BlockSize {
				hi := min(lo+256*BlockSize, int64(len(m.data)))
				if err := m.touch(lo, hi); err != nil {
					return err
				}
				if done += hi - lo; progress != nil {
					if err := progress(done, total); err != nil {
						return err
					}
				}
			}
		}
		return nil
	})
}

// Map maps a file that is read only once, outside of any store: its faults are found too.
func Map(path string, n int64) (data []byte, free func() error, err error) {
	m := &mapped{path: path}
	if m.data, m.free, err = mapFile(path, n); err != nil {
		return nil, nil, fmt.Errorf("%s: %w", path, err)
	}
	ranges.Store(m, true)
	return m.data, func() error { ranges.Delete(m); return m.free() }, nil
}

// ranges has the mapped arrays as keys, so that a fault finds its file, and their stores, which keep
// the locks while slices of them are all that is left.
var ranges sync.Map

// Guard runs do, and returns a *[DamageError] where it reads what a file of a store has no
// more: the file was truncated, or its disk fails. It is for the goroutine of the caller;
// kernels' pools hand on what happens to theirs.
func Guard(do func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if p := recover(); p != nil {
			reason, _ := p.(error)
			if err = faultError(reason); err == nil {
				panic(p)
			}
		}
	}()
	err = do()
	if fault := faultError(err); fault != nil {
		return fault
	}
	return err
}

// faultError is the error of a fault in a mapped file; nil for other errors.
func faultError(err error) error {
	var at interface{ Addr() uintptr }
	if !errors.As(err, &at) {
		return nil
	}
	for key := range ranges.Range {
		m := key.(*mapped)
		if len(m.data) == 0 {
			continue
		}
		first := uintptr(unsafe.Pointer(&m.data[0]))
		if a := at.Addr(); a >= first && a-first < uintptr(len(m.data)) {
			return &DamageError{File: m.path, Block: int64(a-first) / BlockSize, Why: "cannot be read: the file was truncated, or its disk fails"}
		}
	}
	return nil
}
