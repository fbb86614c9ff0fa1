package store

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
)

// sorter sorts records, a key of 64 bits and 32 bits more, in files: runs that fit in
// memory are sorted and written, and merged in the end. Records whose keys differ in the
// lowest bit alone stay in the order in which they came.
type sorter struct {
	dir, name string
	with      bool // there is something beside keys
	most      int  // records of a run

	keys, otherKeys []uint64
	vals, otherVals []uint32
	runs            []int64 // records of each run that is written
	added           int64
	skip            int64 // records that are in runs from before an interruption
	written         func(runs []int64) error
}

// recordBytes is what a record takes in memory while it is sorted.
const recordBytes = 24

func newSorter(dir, name string, with bool, memory int64) *sorter {
	return &sorter{dir: dir, name: name, with: with, most: int(max(memory/recordBytes, 1<<14))}
}

func (s *sorter) run(i int) string {
	return filepath.Join(s.dir, fmt.Sprintf("%s.run%d", s.name, i))
}

func (s *sorter) size() int {
	if s.with {
		return 12
	}
	return 8
}

func (s *sorter) add(key uint64, val uint32) error {
	if s.added++; s.added <= s.skip {
		return nil
	}
	s.keys = append(s.keys, key)
	if s.with {
		s.vals = append(s.vals, val)
	}
	if len(s.keys) >= s.most {
		return s.flush()
	}
	return nil
}

// flush sorts what is in memory and writes it as a run.
func (s *sorter) flush() error {
	if len(s.keys) == 0 {
		return nil
	}
	s.radix()
	path := s.run(len(s.runs))
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	w := bufio.NewWriterSize(f, 1<<20)
	var b [12]byte
	for i, k := range s.keys {
		binary.LittleEndian.PutUint64(b[:], k)
		if s.with {
			binary.LittleEndian.PutUint32(b[8:], s.vals[i])
		}
		if _, err := w.Write(b[:s.size()]); err != nil {
			break // finish returns it too
		}
	}
	if err := finish(f, w.Flush); err != nil {
		return err
	}
	s.runs = append(s.runs, int64(len(s.keys)))
	s.keys, s.vals = s.keys[:0], s.vals[:0]
	if s.written != nil {
		return s.written(s.runs)
	}
	return nil
}

// radix sorts the records by all bits of the keys but the lowest.
func (s *sorter) radix() {
	var or, and uint64 = 0, ^uint64(0)
	for _, k := range s.keys {
		or, and = or|k, and&k
	}
	differ := (or &^ and) >> 1
	s.otherKeys = slices.Grow(s.otherKeys[:0], len(s.keys))[:len(s.keys)]
	if s.with {
		s.otherVals = slices.Grow(s.otherVals[:0], len(s.keys))[:len(s.keys)]
	}
	const bits = 11
	var start [1<<bits + 1]int
	for at := 1; at < 64; at += bits {
		if differ>>(at-1)&(1<<bits-1) == 0 {
			continue
		}
		clear(start[:])
		for _, k := range s.keys {
			start[k>>at&(1<<bits-1)+1]++
		}
		for i := range 1 << bits {
			start[i+1] += start[i]
		}
		for i, k := range s.keys {
			to := &start[k>>at&(1<<bits-1)]
			s.otherKeys[*to] = k
			if s.with {
				s.otherVals[*to] = s.vals[i]
			}
			*to++
		}
		s.keys, s.otherKeys = s.otherKeys, s.keys
		s.vals, s.otherVals = s.otherVals, s.vals
	}
}

func (s *sorter) free() { s.keys, s.otherKeys, s.vals, s.otherVals = nil, nil, nil, nil }

func (s *sorter) remove() {
	for i := range s.runs {
		_ = os.Remove(s.run(i))
	}
}

// source is a run that is being merged.
type source struct {
	f    *os.File
	r    *bufio.Reader
	left int64
	i    int
	key  uint64
	val  uint32
}

func (r *source) next(size int) error {
	var b [12]byte
	if _, err := io.ReadFull(r.r, b[:size]); err != nil {
		return fmt.Errorf("%s: %w", r.f.Name(), err)
	}
	r.key, r.val = binary.LittleEndian.Uint64(b[:]), binary.LittleEndian.Uint32(b[8:])
	r.left--
	return nil
}

// before orders by key without its lowest bit, then by run.
func (r *source) before(o *source) bool {
	if a, b := r.key>>1, o.key>>1; a != b {
		return a < b
	}
	return r.i < o.i
}

// merge calls do for all records in order. memory bounds the buffers.
func (s *sorter) merge(memory int64, do func(key uint64, val uint32) error) error {
	if err := s.flush(); err != nil {
		return err
	}
	s.free()
	buffer := int(min(memory/int64(len(s.runs)+1), 1<<20))
	if len(s.runs) > 1 && buffer < 4<<10 {
		return fmt.Errorf("%d sorted parts of the edges cannot be merged in this memory: raise --memory", len(s.runs))
	}
	var heap []*source
	defer func() {
		for _, r := range heap {
			_ = r.f.Close()
		}
	}()
	for i, n := range s.runs {
		f, err := os.Open(s.run(i))
		if err != nil {
			return err
		}
		r := &source{f: f, r: bufio.NewReaderSize(f, buffer), left: n, i: i}
		heap = append(heap, r)
		if err := r.next(s.size()); err != nil {
			return err
		}
	}
	down := func(i int) {
		for {
			least := i
			for c := 2*i + 1; c <= 2*i+2 && c < len(heap); c++ {
				if heap[c].before(heap[least]) {
					least = c
				}
			}
			if least == i {
				return
			}
			heap[i], heap[least] = heap[least], heap[i]
			i = least
		}
	}
	for i := len(heap)/2 - 1; i >= 0; i-- {
		down(i)
	}
	for len(heap) > 0 {
		r := heap[0]
		if err := do(r.key, r.val); err != nil {
			return err
		}
		if r.left == 0 {
			_ = r.f.Close()
			heap[0] = heap[len(heap)-1]
			heap = heap[:len(heap)-1]
		} else if err := r.next(s.size()); err != nil {
			return err
		}
		down(0)
	}
	return nil
}
