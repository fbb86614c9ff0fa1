package scratch

import (
	"errors"
	"os"
	"syscall"
)

// inMemory reports whether a folder is one of tmpfs.
func inMemory(dir string) bool {
	var s syscall.Statfs_t
	return syscall.Statfs(dir, &s) == nil && s.Type == 0x01021994
}

// reserve gives a file its size and the blocks for it, where the file system can: a disk
// that is full is an error here, and not a fault when a page is written.
func reserve(f *os.File, n int64) error {
	err := syscall.Fallocate(int(f.Fd()), 0, 0, n)
	if errors.Is(err, syscall.EOPNOTSUPP) || errors.Is(err, syscall.ENOSYS) {
		return f.Truncate(n)
	}
	return err
}
