// Package seal puts checksums into files and holds files against them.
//
// The checksum is CRC-32C: it finds damage by disks, copies and half-finished work,
// which changes any bit of a file unnoticed once in 2³² times, and single bits and
// bursts of up to 32 bits never. It is no signature: whoever changes a file on purpose
// can recompute it.
package seal

import (
	"bytes"
	"errors"
	"fmt"
	"hash"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"regexp"

	"github.com/gsrc-dev/gsrc/internal/atomicfile"
)

// Blank stands where a checksum is going to be.
const Blank = "crc32c:00000000"

const digits = 8

var table = crc32.MakeTable(crc32.Castagnoli)

// New returns a running checksum.
func New() hash.Hash32 { return crc32.New(table) }

// Update adds data to a checksum; 0 is that of nothing.
func Update(sum uint32, data []byte) uint32 { return crc32.Update(sum, table, data) }

// Text writes a checksum as it stands in files.
func Text(sum uint32) string { return fmt.Sprintf("crc32c:%08x", sum) }

// Sum returns the checksum of data.
func Sum(data []byte) string { return Text(Update(0, data)) }

// The field of a JSON object that holds the checksum of the whole file. Within a JSON
// string the quotes would be escaped, so nothing else looks like it.
var field = regexp.MustCompile(`"checksum": ?"crc32c:([0-9a-f]{8})"`)

// Put writes a checksum into the field "checksum" of a JSON text, which is blank.
func Put(text []byte, sum uint32) {
	if at := field.FindSubmatchIndex(text); at != nil {
		copy(text[at[2]:], fmt.Sprintf("%08x", sum))
	}
}

// Stamp puts its own checksum into a JSON text whose field "checksum" is blank, and
// returns it.
func Stamp(text []byte) string {
	sum := Update(0, text)
	Put(text, sum)
	return Text(sum)
}

// ErrDamaged is the error of [Check].
var ErrDamaged = errors.New("it does not fit its checksum: it is damaged, or was changed by hand")

// Check holds a file against the checksum that its JSON text has in the field
// "checksum"; before and after are what stands around that text. It reports whether
// there is one.
func Check(before, text, after []byte) (sealed bool, err error) {
	at := field.FindSubmatchIndex(text)
	if at == nil {
		return false, nil
	}
	sum := Update(0, before)
	sum = Update(sum, text[:at[2]])
	sum = Update(sum, bytes.Repeat([]byte{'0'}, digits))
	sum = Update(sum, text[at[3]:])
	sum = Update(sum, after)
	if Text(sum)[len(Blank)-digits:] != string(text[at[2]:at[3]]) {
		return true, ErrDamaged
	}
	return true, nil
}

// File is what a list of files says of one.
type File struct {
	Bytes  int64  `json:"bytes"`
	CRC32C string `json:"crc32c"`
}

// Of describes a file with this content.
func Of(data []byte) File { return File{int64(len(data)), Sum(data)} }

// openRegular opens what is a file, not a pipe or a device.
func openRegular(path string) (*os.File, int64, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, 0, err
	}
	if !info.Mode().IsRegular() {
		return nil, 0, &fs.PathError{Op: "read", Path: path, Err: errors.New("it is no file")}
	}
	f, err := os.Open(path)
	return f, info.Size(), err
}

// JSON encodes a value that has [Blank] as its checksum, and stamps that.
func JSON(v any) ([]byte, error) {
	text, err := atomicfile.JSON(v)
	if err == nil {
		Stamp(text)
	}
	return text, err
}

// Read reads what is a file: a pipe would never end.
func Read(path string) ([]byte, error) {
	f, _, err := openRegular(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(f)
}

// OfPath reads a file and describes it.
func OfPath(path string) (File, error) {
	f, _, err := openRegular(path)
	if err != nil {
		return File{}, err
	}
	defer f.Close()
	h := New()
	n, err := io.CopyBuffer(struct{ io.Writer }{h}, f, make([]byte, 1<<18))
	return File{n, Text(h.Sum32())}, err
}

// Check says how another file differs, nil if it does not.
func (f File) Check(have File) error {
	switch {
	case have.Bytes != f.Bytes:
		return fmt.Errorf("it has %d bytes, and should have %d", have.Bytes, f.Bytes)
	case have.CRC32C != f.CRC32C:
		return fmt.Errorf("its checksum is %s, and should be %s", have.CRC32C, f.CRC32C)
	}
	return nil
}

// ReadFile reads a file that must be as f says, and no more of it than that.
func (f File) ReadFile(path string) ([]byte, error) {
	in, size, err := openRegular(path)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	if size != f.Bytes {
		return nil, f.Check(File{Bytes: size})
	}
	data := make([]byte, f.Bytes)
	if _, err := io.ReadFull(in, data); err != nil {
		return nil, err
	}
	return data, f.Check(Of(data))
}
