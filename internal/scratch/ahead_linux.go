package scratch

import (
	"bufio"
	"fmt"
	"os"
	"strings"
	"syscall"
	"unsafe"
)

// Ahead has the system read pages of a mapped file that are gathered here and there, before
// they are: of its own accord it reads them one fault at a time, each with megabytes around
// it, which drop what memory had of others. A nil Ahead does nothing. It is used by one
// goroutine at a time.
type Ahead struct {
	file   []byte
	size   int    // of an element
	told   bool   // which pages are in memory, which the system does not say of the files of others
	pages  []byte // whether each is in memory
	faults int64  // that were waited for, when it was asked last
	lacks  bool   // pages were missing then
}

// Pages that are missing are read with as many others between them: a request takes as long
// as reading these.
const pageGap = 4

const wanted = 2

const readAtOnce = 1 << 20 // bytes: of more the system may read a part

// NewAhead returns an Ahead for numbers that lie in a file from their first one on, which is
// read without pages around others from then on; nil where they do not.
func NewAhead[T any](x []T) *Ahead {
	if len(x) == 0 {
		return nil
	}
	in, told := inFile(uintptr(unsafe.Pointer(&x[0])))
	if !in {
		return nil
	}
	a := &Ahead{size: int(unsafe.Sizeof(x[0])), told: told}
	a.file = unsafe.Slice((*byte)(unsafe.Pointer(&x[0])), len(x)*a.size)
	if syscall.Madvise(a.file, syscall.MADV_RANDOM) != nil {
		return nil
	}
	return a
}

// inFile reports whether a mapping of a file begins at an address, and whether the file may be
// written or is this user's: mincore(2) tells of others that all of their pages are in memory.
func inFile(at uintptr) (in, told bool) {
	f, err := os.Open("/proc/self/maps")
	if err != nil {
		return false, false
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var lo, hi, offset, inode uintptr
		var flags, device, path string
		if n, _ := fmt.Sscanf(lines.Text(), "%x-%x %s %x %s %d %s", &lo, &hi, &flags, &offset, &device, &inode, &path); n < 6 || lo != at {
			continue
		}
		var s syscall.Stat_t
		const toWrite = 2
		return inode != 0, strings.Contains(flags, "w") || syscall.Access(path, toWrite) == nil || syscall.Stat(path, &s) == nil && int(s.Uid) == os.Geteuid()
	}
	return false, false
}

// InOrder has the system read pages as it does where a file is read from its beginning to its end.
func (a *Ahead) InOrder() {
	if a != nil {
		_ = syscall.Madvise(a.file, syscall.MADV_SEQUENTIAL) // advice
	}
}

// Range has the elements from lo to hi read. It does not wait.
func (a *Ahead) Range(lo, hi int) {
	if a == nil {
		return
	}
	lo, hi = lo*a.size&^(os.Getpagesize()-1), min(hi*a.size, len(a.file))
	for ; lo < hi; lo += readAtOnce {
		_ = syscall.Madvise(a.file[lo:min(lo+readAtOnce, hi)], syscall.MADV_WILLNEED) // advice
	}
}

// Begin reports whether pages may be missing, so that it is worth to say which are wanted.
func (a *Ahead) Begin() bool {
	if a == nil {
		return false
	}
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil || !a.lacks && u.Majflt == a.faults {
		return false
	}
	a.faults, a.lacks = u.Majflt, false
	return a.look()
}

// Whole reports whether memory has all of the file, but for little that it has read then.
func (a *Ahead) Whole() bool {
	if a == nil || !a.told || !a.look() {
		return false
	}
	lack := 0
	for _, is := range a.pages {
		lack += int(is&1 ^ 1)
	}
	if lack > len(a.pages)/64 {
		return false
	}
	if lack > 0 {
		a.Want(0, len(a.file)/a.size)
		a.Read()
	}
	return true
}

// look finds which pages are in memory.
func (a *Ahead) look() bool {
	page := os.Getpagesize()
	if n := (len(a.file) + page - 1) / page; a.pages == nil {
		a.pages = make([]byte, n)
	}
	_, _, err := syscall.Syscall(syscall.SYS_MINCORE, uintptr(unsafe.Pointer(&a.file[0])), uintptr(len(a.file)), uintptr(unsafe.Pointer(&a.pages[0])))
	return err == 0
}

// Want says that the elements from lo to hi will be read.
func (a *Ahead) Want(lo, hi int) {
	if lo >= hi {
		return
	}
	page := os.Getpagesize()
	for p := lo * a.size / page; p <= (hi*a.size-1)/page; p++ {
		if a.pages[p] == 0 {
			a.pages[p] = wanted
		}
	}
}

// Read has what is wanted and missing read, in the order of the file. It does not wait.
func (a *Ahead) Read() {
	page := os.Getpagesize()
	for p := 0; p < len(a.pages); p++ {
		if a.pages[p] != wanted {
			continue
		}
		end := p + 1
		for q := end; q < len(a.pages) && q-end <= pageGap; q++ {
			if a.pages[q] == wanted {
				end = q + 1
			}
		}
		a.lacks = true
		_ = syscall.Madvise(a.file[p*page:min(end*page, len(a.file))], syscall.MADV_WILLNEED) // advice
		p = end
	}
}
