package scratch

import (
	"bytes"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
	"unsafe"
)

// What is asked for is read from the disk, and little else; what memory has is not asked for.
func TestAhead(t *testing.T) {
	if NewAhead(make([]float32, 1<<20)) != nil || NewAhead[float32](nil) != nil {
		t.Error("numbers that are in no file are read ahead")
	}
	var none *Ahead
	none.Range(0, 5)
	if none.Begin() {
		t.Error("nothing lacks pages")
	}
	dir, err := Dir(t.TempDir())
	if err != nil {
		t.Skipf("there is no disk for scratch files: %v", err)
	}
	path := filepath.Join(dir, "gsrc-ahead-test")
	if err := os.WriteFile(path, make([]byte, 64<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	defer os.Remove(path)
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := f.Sync(); err != nil {
		t.Fatal(err)
	}
	const dontNeed = 4
	if _, _, err := syscall.Syscall6(syscall.SYS_FADVISE64, f.Fd(), 0, 0, dontNeed, 0, 0); err != 0 {
		t.Skipf("the system keeps pages of files in memory: %v", err)
	}
	b, err := syscall.Mmap(int(f.Fd()), 0, 64<<20, syscall.PROT_READ, syscall.MAP_SHARED)
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Munmap(b)
	a := NewAhead(unsafe.Slice((*float32)(unsafe.Pointer(&b[0])), 16<<20))
	if a == nil {
		t.Fatal("a mapped file is taken for memory")
	}
	a.lacks = true
	inMemory := func() (n int) {
		a.lacks = true
		if !a.Begin() {
			t.Fatal("nothing is said to lack")
		}
		for _, p := range a.pages {
			n += int(p & 1)
		}
		return n
	}
	if n := inMemory(); n > 1000 {
		t.Skipf("the system has kept %d pages", n)
	}
	if a.Whole() || none.Whole() {
		t.Error("memory is said to have all of the file")
	}
	for row := range 100 { // 100 rows of 100 numbers, far from each other
		a.Want(row*100000, row*100000+100)
	}
	a.Read()
	a.Range(12<<20, 13<<20) // 1,024 pages
	n := 0
	for range 100 {
		if n = inMemory(); n >= 1100 {
			break
		}
		time.Sleep(20 * time.Millisecond)
	}
	if n < 1100 || n > 2500 {
		t.Errorf("%d pages are in memory, of at most some 1,250 that were asked for", n)
	}
	if n = bytes.Count(b, []byte{1}); n != 0 || !a.Whole() {
		t.Errorf("memory is said not to have a file that was read, with %d ones", n)
	}
}
