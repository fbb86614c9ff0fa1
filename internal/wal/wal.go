// Package wal is a log of records in a file that outlives crashes: a record is on the
// disk when [Log.Append] returns, one that was being written when the process or the
// machine stopped is cut off, and damage anywhere else is found.
//
// A file begins with 8 bytes, "gsrclog" and the version of the format, 1. A record is a
// header of 16 bytes, the payload, and 4 bytes of checksum. The header has the length of
// the payload (uint32), the record's place in the log, from 1 (uint64), and a checksum of
// these 12 bytes, which tells a damaged length from a record that was cut off. The
// checksum at the end is of header and payload. Numbers are little-endian, checksums
// CRC-32C.
package wal

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"os"
	"path/filepath"

	"github.com/gsrc-dev/gsrc/internal/atomicfile"
)

const (
	magic      = "gsrclog\x01"
	headerSize = 16
	sumSize    = 4
	// sector is what disks write whole or not at all.
	sector = 512
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Wrap, if not nil, wraps the writer of every record, and of the first bytes. Tests put a writer here that
// fails as a full disk does.
var Wrap func(io.Writer) io.Writer

// DamageError says that a log is damaged, not merely cut off at its end.
type DamageError struct {
	Path   string
	Offset int64  // of the damaged record
	Record uint64 // its number, from 1
	// Next is the payload of the first record behind it that is whole, nil if there is
	// none; After counts them.
	Next  []byte
	After int
}

func (e *DamageError) Error() string {
	return fmt.Sprintf("%s is damaged at byte %d, in record %d; %d records behind it are whole", e.Path, e.Offset, e.Record, e.After)
}

// Log is a log that is open for writing. Its methods must not be called at the same
// time.
type Log struct {
	f      *os.File
	size   int64  // up to the end of the last record
	next   uint64 // number of the next record
	unsure bool   // there may be bytes behind size
	buffer []byte
}

// Open opens the log at path, which is made if it is not there, and gives read every
// record in turn; it must not keep them. What follows the last whole record because
// writing was cut off is removed, and cut says how many bytes that were. The error is a
// *[DamageError] where a record is damaged; the file is then as it was.
//
// A log that is not there, or without even its first bytes, is begun; where that fails there is no file.
func Open(path string, read func(record []byte) error) (l *Log, cut int64, err error) {
	return open(path, true, read)
}

// Reopen is Open for a log that was begun: one without its first bytes has lost its
// records, which no crash does, since they are on the disk before Open returns.
func Reopen(path string, read func(record []byte) error) (l *Log, cut int64, err error) {
	return open(path, false, read)
}

func open(path string, begin bool, read func(record []byte) error) (l *Log, cut int64, err error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, 0, err
	}
	defer func() {
		if err != nil {
			f.Close()
		}
	}()
	info, err := f.Stat()
	if err != nil {
		return nil, 0, err
	}
	l = &Log{f: f, next: 1}
	if l.size, err = scan(f, info.Size(), path, func(number uint64, record []byte) error {
		l.next = number + 1
		return read(record)
	}); err != nil {
		return nil, 0, err
	}
	if l.size == 0 && !begin {
		return nil, 0, emptied(path, info.Size())
	}
	if l.size == 0 { // new, or not even the magic came through
		if err := l.begin(path); err != nil {
			return nil, 0, errors.Join(err, os.Remove(path)) // it holds nothing
		}
	} else if cut = info.Size() - l.size; cut > 0 {
		if err := l.reset(); err != nil {
			return nil, 0, err
		}
	}
	return l, cut, nil
}

// begin writes the first bytes.
func (l *Log) begin(path string) error {
	if err := l.reset(); err != nil {
		return err
	}
	if _, err := l.writer().Write([]byte(magic)); err != nil {
		return err
	}
	l.size = int64(len(magic))
	if err := l.f.Sync(); err != nil {
		return err
	}
	return atomicfile.SyncDir(filepath.Dir(path))
}

// writer writes behind the last whole record.
func (l *Log) writer() io.Writer {
	var w io.Writer = io.NewOffsetWriter(l.f, l.size)
	if Wrap != nil {
		w = Wrap(w)
	}
	return w
}

// Read gives read every record of the log at path, which stays as it is.
func Read(path string, read func(record []byte) error) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	end, err := scan(f, info.Size(), path, func(_ uint64, record []byte) error { return read(record) })
	if err == nil && end == 0 {
		err = emptied(path, info.Size())
	}
	return err
}

func emptied(path string, size int64) error {
	return fmt.Errorf("%s has %d bytes, and not the first %d of a log: it was emptied, and its records are lost", path, size, len(magic))
}

// scan reads records and returns where the last whole one ends.
func scan(f io.ReaderAt, size int64, path string, read func(number uint64, record []byte) error) (end int64, err error) {
	if size == 0 {
		return 0, nil
	}
	head := make([]byte, min(size, int64(len(magic))))
	if _, err := f.ReadAt(head, 0); err != nil {
		return 0, err
	}
	if !bytes.HasPrefix([]byte(magic), head) {
		if !allZero(head) || size > int64(len(magic)) {
			return 0, fmt.Errorf("%s is no log of this version of gsrc, or its first bytes are damaged", path)
		}
		return 0, nil
	}
	if len(head) < len(magic) {
		return 0, nil
	}
	end = int64(len(magic))
	r := reader{r: f, size: size}
	for number := uint64(1); end < size; number++ {
		record, whole, torn, err := r.record(end, number)
		if err != nil {
			return 0, err
		}
		switch {
		case whole:
			if err := read(number, record); err != nil {
				return 0, err
			}
			end += headerSize + int64(len(record)) + sumSize
		case torn:
			return end, nil
		default:
			damage := &DamageError{Path: path, Offset: end, Record: number}
			if err := r.look(end+1, number, damage); err != nil {
				return 0, err
			}
			if damage.After > 0 {
				return 0, damage
			}
			if lost, err := r.hasLostSector(end); err != nil || !lost {
				return 0, errors.Join(err, damage)
			}
			return end, nil
		}
	}
	return end, nil
}

// reader reads records at any place.
type reader struct {
	r      io.ReaderAt
	size   int64
	buffer []byte
}

func (r *reader) at(offset, n int64) ([]byte, error) {
	if int64(cap(r.buffer)) < n {
		r.buffer = make([]byte, n)
	}
	b := r.buffer[:n]
	if _, err := r.r.ReadAt(b, offset); err != nil {
		return nil, fmt.Errorf("cannot read %d bytes at byte %d: %w", n, offset, err)
	}
	return b, nil
}

// record reads the record at an offset, with a number of at least the given one. torn
// tells that it is not whole because the file ends.
func (r *reader) record(offset int64, number uint64) (payload []byte, whole, torn bool, err error) {
	if r.size-offset < headerSize {
		return nil, false, true, nil
	}
	h, err := r.at(offset, headerSize)
	if err != nil {
		return nil, false, false, err
	}
	n := int64(binary.LittleEndian.Uint32(h))
	if crc32.Checksum(h[:12], castagnoli) != binary.LittleEndian.Uint32(h[12:]) || binary.LittleEndian.Uint64(h[4:]) != number {
		return nil, false, false, nil
	}
	if r.size-offset < headerSize+n+sumSize {
		return nil, false, true, nil
	}
	b, err := r.at(offset, headerSize+n+sumSize)
	if err != nil {
		return nil, false, false, err
	}
	if crc32.Checksum(b[:headerSize+n], castagnoli) != binary.LittleEndian.Uint32(b[headerSize+n:]) {
		return nil, false, false, nil
	}
	return b[headerSize : headerSize+n], true, false, nil
}

// look looks for whole records from an offset on, behind record number.
func (r *reader) look(offset int64, number uint64, d *DamageError) error {
	const window = 1 << 20
	for at := offset; at+headerSize+sumSize <= r.size; {
		n := min(window, r.size-at)
		part := make([]byte, n)
		if _, err := r.r.ReadAt(part, at); err != nil {
			return err
		}
		moved := false
		for i := 0; i+headerSize <= len(part); i++ {
			h := part[i : i+headerSize]
			found := binary.LittleEndian.Uint64(h[4:])
			if found <= number || crc32.Checksum(h[:12], castagnoli) != binary.LittleEndian.Uint32(h[12:]) {
				continue
			}
			payload, whole, _, err := r.record(at+int64(i), found)
			if err != nil {
				return err
			}
			if whole {
				if d.After++; d.Next == nil {
					d.Next = append([]byte{}, payload...)
				}
				number, at, moved = found, at+int64(i)+headerSize+int64(len(payload))+sumSize, true
				break
			}
		}
		if !moved {
			if n < window {
				return nil
			}
			at += n - headerSize + 1
		}
	}
	return nil
}

// hasLostSector tells whether a sector behind an offset, or the part of it there, is all
// zero: the file had its length before all of its content came to the disk.
func (r *reader) hasLostSector(offset int64) (bool, error) {
	for at := offset; at < r.size; {
		end := min(r.size, at/sector*sector+sector)
		b := make([]byte, end-at)
		if _, err := r.r.ReadAt(b, at); err != nil {
			return false, err
		}
		if len(b) >= 8 && allZero(b) {
			return true, nil
		}
		at = end
	}
	return false, nil
}

func allZero(b []byte) bool { return len(bytes.TrimLeft(b, "\x00")) == 0 }

// reset removes what is behind the last whole record.
func (l *Log) reset() error {
	l.unsure = true
	if err := l.f.Truncate(l.size); err != nil {
		return err
	}
	if err := l.f.Sync(); err != nil {
		return err
	}
	l.unsure = false
	return nil
}

// Unsure tells that an Append has failed and what it had written could not be removed:
// the record may be there when the log is opened again.
func (l *Log) Unsure() bool { return l.unsure }

// Append adds a record, which is on the disk when it returns. On an error the record is
// not in the log, but see [Log.Unsure]; later calls may succeed.
func (l *Log) Append(record []byte) error {
	if len(record) > math.MaxInt32 {
		return fmt.Errorf("a record of %d bytes is too long for a log", len(record))
	}
	if l.unsure {
		if err := l.reset(); err != nil {
			return err
		}
	}
	b := encode(l.buffer[:0], l.next, record)
	if l.buffer = b; cap(b) > 1<<20 {
		l.buffer = nil // a large one is rare
	}
	_, err := l.writer().Write(b)
	if err == nil {
		err = l.f.Sync()
	}
	if err != nil {
		return errors.Join(err, l.reset())
	}
	l.size += int64(len(b))
	l.next++
	return nil
}

func encode(b []byte, number uint64, record []byte) []byte {
	start := len(b)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(record)))
	b = binary.LittleEndian.AppendUint64(b, number)
	b = binary.LittleEndian.AppendUint32(b, crc32.Checksum(b[start:], castagnoli))
	b = append(b, record...)
	return binary.LittleEndian.AppendUint32(b, crc32.Checksum(b[start:], castagnoli))
}

// Write makes a log of these records, all at once, in place of what is at path.
func Write(path string, records func(yield func([]byte) bool)) error {
	return atomicfile.Write(path, func(w io.Writer) error {
		b, number := []byte(magic), uint64(0)
		for record := range records {
			if _, err := w.Write(b); err != nil {
				return err
			}
			number++
			b = encode(b[:0], number, record)
		}
		_, err := w.Write(b)
		return err
	})
}

// Size returns how many bytes the log has.
func (l *Log) Size() int64 { return l.size }

// Close closes the file.
func (l *Log) Close() error { return l.f.Close() }
