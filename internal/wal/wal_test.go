package wal

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func record(i int) []byte { return bytes.Repeat([]byte{byte(i), 7, byte(i >> 3)}, 1+37*i%500) }

// written is a log of n records, and where each ends.
func written(t *testing.T, n int) (text []byte, ends []int64) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "log")
	l, cut, err := Open(path, nil)
	if err != nil || cut != 0 {
		t.Fatal(cut, err)
	}
	ends = append(ends, l.Size())
	for i := range n {
		if err := l.Append(record(i)); err != nil {
			t.Fatal(err)
		}
		ends = append(ends, l.Size())
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	text, err = os.ReadFile(path)
	if err != nil || int64(len(text)) != ends[n] {
		t.Fatal(len(text), ends, err)
	}
	return text, ends
}

// reopened opens a log of these bytes, and counts the records, which must be the first
// ones; then it adds another and opens it again.
func reopened(t *testing.T, text []byte) (n int, cut int64, err error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "log")
	if err := os.WriteFile(path, text, 0o644); err != nil {
		t.Fatal(err)
	}
	count := func(n *int) func([]byte) error {
		return func(b []byte) error {
			if !bytes.Equal(b, record(*n)) {
				t.Fatalf("record %d is another", *n)
			}
			*n++
			return nil
		}
	}
	l, cut, err := Open(path, count(&n))
	if err != nil {
		after, readErr := os.ReadFile(path)
		if readErr != nil || !bytes.Equal(after, text) {
			t.Error("a damaged log was written to")
		}
		return n, cut, err
	}
	if err := l.Append(record(n)); err != nil {
		t.Fatal(err)
	}
	l.Close()
	again := 0
	l, _, err = Open(path, count(&again))
	if err != nil || again != n+1 {
		t.Fatalf("%d records and one more are %d, %v", n, again, err)
	}
	l.Close()
	return n, cut, nil
}

// scanned is what Open does, without a file.
func scanned(t *testing.T, text []byte) (n int, end int64, err error) {
	end, err = scan(bytes.NewReader(text), int64(len(text)), "log", func(_ uint64, b []byte) error {
		if !bytes.Equal(b, record(n)) {
			t.Fatalf("record %d is another", n)
		}
		n++
		return nil
	})
	return n, end, err
}

// Wherever the file ends, the records that are whole are there, and it goes on.
func TestTornEnd(t *testing.T) {
	text, ends := written(t, 12)
	for size := range len(text) + 1 {
		whole := 0
		for whole < 12 && ends[whole+1] <= int64(size) {
			whole++
		}
		for _, tail := range [][]byte{nil, make([]byte, 700)} { // zeros: the length came first
			if tail != nil && size < len(magic) {
				continue
			}
			if size%7 != 0 && tail != nil {
				continue
			}
			bad := slices.Concat(text[:size], tail)
			n, end, err := scanned(t, bad)
			if err == nil && size%211 == 0 { // files take their time
				n, _, err = reopened(t, bad)
			}
			if err != nil || n != whole || end > int64(len(bad)) {
				t.Fatalf("%d of %d bytes and %d zeros: %d records, want %d; %v", size, len(text), len(tail), n, whole, err)
			}
		}
	}
}

// A byte that is another is found, wherever it is.
func TestDamage(t *testing.T) {
	text, ends := written(t, 12)
	r := rand.New(rand.NewPCG(1, 2))
	for range 1500 {
		at := r.IntN(len(text))
		bad := slices.Clone(text)
		bad[at] ^= 1 << r.IntN(8)
		n, _, err := scanned(t, bad)
		if at < len(magic) {
			if err == nil {
				t.Fatalf("byte %d of the magic is not looked at", at)
			}
			continue
		}
		in := 0
		for ends[in+1] <= int64(at) {
			in++
		}
		var d *DamageError
		if !errors.As(err, &d) || n != in || d.Record != uint64(in+1) || d.Offset != ends[in] || d.After != 11-in || in < 11 && !bytes.Equal(d.Next, record(in+1)) {
			t.Fatalf("byte %d, in record %d: %d records, %v", at, in+1, n, err)
		}
	}
}

// Pieces that are missing, doubled or exchanged are found.
func TestMissingRecords(t *testing.T) {
	text, ends := written(t, 6)
	part := func(i int) []byte { return text[ends[i]:ends[i+1]] }
	for name, bad := range map[string][]byte{
		"missing":   slices.Concat(text[:ends[2]], text[ends[3]:]),
		"twice":     slices.Concat(text[:ends[3]], part(2), text[ends[3]:]),
		"exchanged": slices.Concat(text[:ends[2]], part(3), part(2), text[ends[4]:]),
		"zeroed":    slices.Concat(text[:ends[2]], make([]byte, ends[3]-ends[2]), text[ends[3]:]),
	} {
		var d *DamageError
		if _, _, err := reopened(t, bad); !errors.As(err, &d) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// full fails when its room is used up.
type full struct {
	w    io.Writer
	room *int
}

func (f full) Write(b []byte) (int, error) {
	n := min(len(b), *f.room)
	*f.room -= n
	if n, err := f.w.Write(b[:n]); err != nil {
		return n, err
	}
	if n < len(b) {
		return n, errors.New("no space left on device")
	}
	return n, nil
}

// What a full disk has refused leaves nothing, and when there is room again the log
// goes on.
func TestFullDisk(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	room := 3
	Wrap = func(w io.Writer) io.Writer { return full{w, &room} }
	defer func() { Wrap = nil }()
	if _, _, err := Open(path, nil); err == nil {
		t.Fatal("a log was begun on a full disk")
	}
	if _, err := os.Stat(path); !os.IsNotExist(err) {
		t.Errorf("what was not begun is there: %v", err)
	}
	room = len(magic)
	l, _, err := Open(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	kept := 0
	for i := range 40 {
		room = i * 29 % 1700
		if err := l.Append(record(kept)); err == nil {
			kept++
		}
	}
	if kept == 0 || kept == 40 || l.Unsure() {
		t.Fatalf("%d of 40 records were written", kept)
	}
	l.Close()
	Wrap = nil
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if n, cut, err := reopened(t, text); n != kept || cut != 0 || err != nil {
		t.Fatal(n, cut, err)
	}
	if err := Read(path, func([]byte) error { kept--; return nil }); err != nil || kept != 0 {
		t.Error(kept, err)
	}
	if err := Read(path, func([]byte) error { return fmt.Errorf("enough") }); err == nil {
		t.Error("the reader's error is lost")
	}
}
