package data

import (
	"archive/zip"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/gsrc-dev/gsrc/internal/budget"
	"github.com/gsrc-dev/gsrc/internal/lists"
)

// archive is a zip file, such as an .npz, which is a zip of .npy files. Nothing is
// decompressed before it is asked for.
type archive struct {
	file  string
	parts map[string]*zip.File // by name; of an .npz by array name, without .npy
	names []string             // in the file's order
	read  map[string]bool      // which were unpacked
	mem   *budget.Reservation  // of the loader
}

const (
	maxParts = 4096
	// A deflate stream expands at most 1032 to 1, so a header that claims more
	// is lying, and one stream cannot be a bomb relative to its size.
	maxDeflate = 1032
)

// openNPZ reads the table of contents of an .npz held in memory.
func (l *loader) openNPZ(file string, b []byte) (*archive, error) {
	return l.openArchive(file, b, l.opts.MaxBytes, ".npy", ".npz (zip) file", "write it with numpy.savez or numpy.savez_compressed; a truncated download gives this error too")
}

// openArchive reads the table of contents of a zip held in memory. It refuses
// archives whose members overlap (the way a zip bomb multiplies one stream),
// claim sizes that their compressed bytes cannot give, or add up to more than
// most bytes. Members are called by their names without suffix; kind and advice go
// into the error where it is no zip.
func (l *loader) openArchive(file string, b []byte, most int64, suffix, kind, advice string) (*archive, error) {
	if len(b) == 0 {
		return nil, badFile(file, "the file is empty")
	}
	z, err := zip.NewReader(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		return nil, badFile(file, "not a readable %s", kind).because(err).hint("%s", advice)
	}
	if len(z.File) > maxParts {
		return nil, badFile(file, "holds %d members; at most %d are read", len(z.File), maxParts)
	}
	a := &archive{file: file, parts: make(map[string]*zip.File, len(z.File)), read: map[string]bool{}, mem: l.mem}
	var packed, total uint64
	for _, f := range z.File {
		name := strings.TrimSuffix(f.Name, suffix)
		if a.parts[name] != nil {
			return nil, badFile(file, "member %s appears twice", quote(name))
		}
		if f.UncompressedSize64/maxDeflate > f.CompressedSize64+1 {
			return nil, badFile(file, "claims %d bytes out of %d compressed ones, which no compression gives", f.UncompressedSize64, f.CompressedSize64).in(quote(name))
		}
		packed += f.CompressedSize64
		total += f.UncompressedSize64
		if packed > uint64(len(b)) {
			return nil, badFile(file, "members overlap in the file: it is damaged or a zip bomb")
		}
		if total > uint64(most) {
			return nil, badFile(file, "unpacks to more than %s", budget.Format(most)).hint("if it really is that large, raise the limit with --memory")
		}
		a.parts[name] = f
		a.names = append(a.names, name)
	}
	return a, nil
}

func (a *archive) has(names ...string) bool {
	for _, n := range names {
		if a.parts[n] == nil {
			return false
		}
	}
	return true
}

func (a *archive) fault(name string, err error) error {
	return fileFault(a.file, err).in(quote(name))
}

func (a *archive) array(name string) (*array, error) {
	f := a.parts[name]
	if f == nil {
		return nil, badFile(a.file, "array %s is missing; the file has %s", quote(name), nameList(a.names))
	}
	a.read[name] = true
	arr, err := unpack(f, a.mem)
	if err != nil {
		return nil, a.fault(name, err)
	}
	return arr, nil
}

// get is array where a fault ends reading.
func (a *archive) get(name string) *array {
	arr, err := a.array(name)
	if err != nil {
		panic(failed{err})
	}
	return arr
}

// check ends reading where something is wrong with an array.
func (a *archive) check(name string, err error) {
	if err != nil {
		panic(failed{a.fault(name, err)})
	}
}

func (a *archive) failf(name, format string, args ...any) {
	a.check(name, fmt.Errorf(format, args...))
}

// unpack decompresses and parses one member, in memory of mem. The header is read and held
// against the declared size before room for the elements is made, and the room
// grows with what the stream really gives.
func unpack(f *zip.File, mem *budget.Reservation) (_ *array, err error) {
	defer caught(&err)
	r, err := f.Open()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	size := f.UncompressedSize64
	var buf []byte
	readUpTo := func(n uint64) (err error) {
		buf = room(mem, buf, int(n)-len(buf))
		if _, err = io.ReadFull(r, buf[len(buf):n]); err == io.EOF || err == io.ErrUnexpectedEOF {
			return errors.New("truncated")
		}
		buf = buf[:n]
		return err
	}
	if err := readUpTo(min(size, 64<<10)); err != nil {
		return nil, err
	}
	h, err := parseNPYHeader(buf)
	if err != nil {
		return nil, err
	}
	if err := checkShape(h.dtype, h.shape, size-uint64(h.size)); err != nil {
		return nil, err
	}
	for uint64(len(buf)) < size {
		if err := readUpTo(min(size, max(4*uint64(len(buf)), 1<<20))); err != nil {
			return nil, err
		}
	}
	// At the end the zip package compares the checksum; it refuses more than is declared.
	if _, err := io.ReadFull(r, make([]byte, 1)); err != io.EOF {
		return nil, err
	}
	arr, err := newArray(h.dtype, h.shape, h.fortran, buf[h.size:])
	if err != nil {
		return nil, err
	}
	arr.mem, arr.held = mem, int64(cap(buf))
	return arr, nil
}

func nameList(names []string) string {
	if len(names) == 0 {
		return "nothing"
	}
	return nameSome(lists.Map(names, func(n string) string { return strings.Trim(quote(n), `"`) }))
}
