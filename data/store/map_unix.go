//go:build unix

package store

import (
	"os"

	"golang.org/x/sys/unix"
)

// mapFile maps the first n bytes of a file for reading.
func mapFile(path string, n int64) (data []byte, free func() error, err error) {
	if n == 0 {
		return nil, func() error { return nil }, nil
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	data, err = unix.Mmap(int(f.Fd()), 0, int(n), unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return nil, nil, err
	}
	return data, func() error { return unix.Munmap(data) }, nil
}
