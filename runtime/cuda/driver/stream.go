package driver

import (
	"fmt"
	"unsafe"
)

// maxArgs bounds the arguments of a kernel; PTX allows 4 KiB of them.
const maxArgs = 512

// Stream is a queue of work for the device, done in order. Queueing returns before
// the work is done, and allocates nothing. One goroutine uses it at a time.
type Stream struct {
	caller
	handle uintptr // 0 once closed, which the driver would take for a stream of its own

	// held is what copies go to and come from, until they are done: it must stay,
	// and must not lie on a stack.
	held []*byte

	// A launch takes an array of pointers to its arguments. Both are made once, on
	// the heap, which does not move, and the driver copies the arguments before a
	// launch returns.
	slots    *[maxArgs]uint64
	pointers *[maxArgs]unsafe.Pointer
}

const streamNonBlocking = 1 // does not wait for the stream that has no handle

// NewStream makes a stream.
func (c *Context) NewStream() (*Stream, error) {
	s := &Stream{caller: caller{c: c}, slots: new([maxArgs]uint64), pointers: new([maxArgs]unsafe.Pointer)}
	for i := range s.slots {
		s.pointers[i] = unsafe.Pointer(&s.slots[i])
	}
	if err := c.call(c.d.fn["cuStreamCreate"], uintptr(unsafe.Pointer(&s.handle)), streamNonBlocking); err != nil {
		return nil, err
	}
	return s, nil
}

// Close destroys the stream; work on it is still done.
func (s *Stream) Close() error {
	return s.c.destroy(s.c.d.fn["cuStreamDestroy_v2"], &s.handle)
}

// do calls a function, unless the stream is closed.
func (s *Stream) do(p *proc, args ...uintptr) error {
	if s.handle == 0 {
		return fmt.Errorf("%s: the stream is %w", p.name, ErrClosed)
	}
	return s.call(p, args...)
}

// Synchronize waits for the work queued so far, and returns what went wrong in it.
func (s *Stream) Synchronize() error {
	err := s.do(s.c.d.fn["cuStreamSynchronize"], s.handle)
	clear(s.held)
	s.held = s.held[:0]
	return err
}

// Launch queues a kernel over grid blocks of block threads with shared bytes of
// dynamic shared memory. Each argument is the value's bits in the low bytes: an
// address, an int32, an int64, or math.Float32bits of a float.
func (s *Stream) Launch(f *Function, grid, block [3]uint32, shared uint32, args ...uint64) error {
	if len(args) != f.Params {
		return fmt.Errorf("kernel %s takes %d arguments, not %d", f.Name, f.Params, len(args))
	}
	if len(args) > maxArgs {
		return fmt.Errorf("kernel %s takes %d arguments: %d are possible", f.Name, len(args), maxArgs)
	}
	if s.handle == 0 || f.m.handle == 0 {
		return fmt.Errorf("kernel %s: the stream or the module is %w", f.Name, ErrClosed)
	}
	copy(s.slots[:], args)
	r := s.code(s.c.d.fn["cuLaunchKernel"], f.handle,
		uintptr(grid[0]), uintptr(grid[1]), uintptr(grid[2]), uintptr(block[0]), uintptr(block[1]), uintptr(block[2]),
		uintptr(shared), s.handle, uintptr(unsafe.Pointer(s.pointers)), 0)
	if r == 0 {
		return nil
	}
	e := s.c.d.fail(s.c.d.fn["cuLaunchKernel"], r)
	e.Detail = fmt.Sprintf("%s, grid %d×%d×%d, block %d×%d×%d, %d bytes of shared memory", f.Name, grid[0], grid[1], grid[2], block[0], block[1], block[2], shared)
	return e
}

// hold keeps what a copy goes to or comes from.
func (s *Stream) hold(p *byte) {
	if n := len(s.held); n == 0 || s.held[n-1] != p { // often the same, step after step
		s.held = append(s.held, p)
	}
}

// Upload queues a copy of src to the device's memory at dst. Src must stay as it is
// until the copy is done. A copy from memory of Go waits for the work before it, and
// cannot be part of a captured graph; one from a [HostMemory] does not wait, and can.
func (s *Stream) Upload(dst uintptr, src []byte) error {
	if len(src) == 0 {
		return nil
	}
	p := unsafe.SliceData(src)
	s.hold(p)
	return s.do(s.c.d.fn["cuMemcpyHtoDAsync_v2"], dst, uintptr(unsafe.Pointer(p)), uintptr(len(src)), s.handle)
}

// Download queues a copy of the device's memory at src to dst, which may be read
// after Synchronize. Of memory of Go and a [HostMemory] the same holds as for Upload.
func (s *Stream) Download(dst []byte, src uintptr) error {
	if len(dst) == 0 {
		return nil
	}
	p := unsafe.SliceData(dst)
	s.hold(p)
	return s.do(s.c.d.fn["cuMemcpyDtoHAsync_v2"], uintptr(unsafe.Pointer(p)), src, uintptr(len(dst)), s.handle)
}

// Copy queues a copy of bytes within the device's memory.
func (s *Stream) Copy(dst, src uintptr, bytes int) error {
	if bytes == 0 {
		return nil
	}
	return s.do(s.c.d.fn["cuMemcpyDtoDAsync_v2"], dst, src, uintptr(bytes), s.handle)
}

// Fill queues the setting of bytes of the device's memory to a value.
func (s *Stream) Fill(dst uintptr, value byte, bytes int) error {
	if bytes == 0 {
		return nil
	}
	return s.do(s.c.d.fn["cuMemsetD8Async"], dst, uintptr(value), uintptr(bytes), s.handle)
}

// Event is a mark in a stream, with the time at which the device came by.
type Event struct {
	c      *Context
	handle uintptr
}

// NewEvent makes an event.
func (c *Context) NewEvent() (*Event, error) {
	e := &Event{c: c}
	if err := c.call(c.d.fn["cuEventCreate"], uintptr(unsafe.Pointer(&e.handle)), 0); err != nil {
		return nil, err
	}
	return e, nil
}

// Record queues the event.
func (s *Stream) Record(e *Event) error {
	return s.do(s.c.d.fn["cuEventRecord"], e.handle, s.handle)
}

// Synchronize waits until the device has come by.
func (e *Event) Synchronize() error { return e.c.call(e.c.d.fn["cuEventSynchronize"], e.handle) }

// Milliseconds returns the time from start to e, both recorded and come by.
func (e *Event) Milliseconds(start *Event) (float32, error) {
	var ms float32
	err := e.c.call(e.c.d.fn["cuEventElapsedTime"], uintptr(unsafe.Pointer(&ms)), start.handle, e.handle)
	return ms, err
}

// Close destroys the event.
func (e *Event) Close() error {
	return e.c.destroy(e.c.d.fn["cuEventDestroy_v2"], &e.handle)
}
