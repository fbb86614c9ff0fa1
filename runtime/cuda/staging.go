package cuda

import (
	"errors"

	"github.com/gsrc-dev/gsrc/runtime/cuda/driver"
)

// staging is page-locked memory of the host that copies go through: the GPU then
// reads it by itself, behind the work that is queued, while the host goes on. What is
// in it stays as it is until the stream has been waited for, as every training step
// does.
type staging struct {
	mem  *driver.HostMemory
	used int
}

// The first size of the staging memory, which doubles where the copies between two
// waits need more, and the most. A longer copy comes from where it lies: the driver
// stages it, and waits.
const (
	leastStaging = 1 << 20
	mostStaging  = 64 << 20
)

// take returns n bytes that no queued copy uses, nil if n is more than there can be.
func (s *staging) take(d *Device, n int) ([]byte, error) {
	if n > mostStaging {
		return nil, nil
	}
	size := 0
	if s.mem != nil {
		size = len(s.mem.Bytes())
	}
	if s.used+n > size {
		if err := d.Sync(); err != nil {
			return nil, err
		}
		room := max(size, leastStaging)
		for room < n || size > 0 && room == size && room < mostStaging {
			room *= 2
		}
		if room > size {
			if err := s.free(); err != nil {
				return nil, err
			}
			var err error
			if s.mem, err = d.ctx.AllocHost(room); err != nil {
				return nil, err
			}
		}
	}
	at := s.used
	s.used += (n + 63) &^ 63
	return s.mem.Bytes()[at : at+n], nil
}

func (s *staging) free() error {
	if s.mem == nil {
		return nil
	}
	m := s.mem
	s.mem, s.used = nil, 0
	return m.Close()
}

// Upload queues a copy to the GPU. src may be changed as soon as it returns.
func (d *Device) Upload(dst uintptr, src []byte) error {
	if len(src) == 0 {
		return nil
	}
	if d.capturing {
		return errors.New("a copy from the host cannot be part of a recording: its contents would be those of today")
	}
	b, err := d.staging.take(d, len(src))
	if err != nil {
		return err
	}
	if b == nil {
		return d.stream.Upload(dst, src)
	}
	copy(b, src)
	return d.stream.Upload(dst, b)
}

// Download copies to the host, and waits. Its error may be that of an operation before
// which noted a fault.
func (d *Device) Download(dst []byte, src uintptr) error {
	if len(dst) == 0 {
		return d.Sync()
	}
	at := (len(dst) + 3) &^ 3 // of the word for faults
	b, err := d.staging.take(d, at+4)
	if err != nil {
		return err
	}
	direct := b == nil
	if direct {
		if b, err = d.staging.take(d, 4); err != nil {
			return err
		}
		at = 0
	}
	to, word := b[:min(len(dst), at)], b[at:]
	if direct {
		to = dst
	}
	if err := d.stream.Download(to, src); err != nil {
		return err
	}
	if err := d.stream.Download(word, d.step+faultAt); err != nil {
		return err
	}
	if err := d.Sync(); err != nil {
		return err
	}
	if !direct {
		copy(dst, to)
	}
	return d.fault(word)
}
