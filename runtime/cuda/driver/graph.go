package driver

import (
	"errors"
	"fmt"
	"runtime"
	"unsafe"
)

// Graph is work of a stream that was recorded in place of being done.
type Graph struct {
	c      *Context
	handle uintptr
}

const captureThreadLocal = 1 // other threads may go on calling what a capture forbids

// Capture records the work that f queues on the stream, and does none of it. While
// f runs, its goroutine may not allocate, free, synchronize or copy from or to memory
// of Go: the driver refuses these with [ErrCapture], and the graph is lost. f's
// error, if any, is returned.
func (s *Stream) Capture(f func() error) (*Graph, error) {
	// A capture ends on the thread that began it.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	fn := s.c.d.fn
	if err := s.do(fn["cuStreamBeginCapture_v2"], s.handle, captureThreadLocal); err != nil {
		return nil, err
	}
	g := &Graph{c: s.c}
	ended := false
	end := func() error {
		ended = true
		return s.c.call(fn["cuStreamEndCapture"], s.handle, uintptr(unsafe.Pointer(&g.handle)))
	}
	defer func() {
		if !ended { // f panicked; the stream must not stay in capture
			_ = end()
			_ = g.Close()
		}
	}()
	if err := f(); err != nil {
		_ = end()
		return nil, errors.Join(err, g.Close())
	}
	if err := end(); err != nil {
		return nil, errors.Join(err, g.Close())
	}
	return g, nil
}

// Nodes returns how many pieces of work the graph has.
func (g *Graph) Nodes() (int, error) {
	var n uint64
	err := g.c.call(g.c.d.fn["cuGraphGetNodes"], g.handle, 0, uintptr(unsafe.Pointer(&n)))
	return int(n), err
}

// Close destroys the graph. What was made of it stays.
func (g *Graph) Close() error {
	return g.c.destroy(g.c.d.fn["cuGraphDestroy"], &g.handle)
}

// Exec is a graph made ready to run, as often as wanted.
type Exec struct {
	c      *Context
	handle uintptr
}

// Instantiate makes the graph ready to run. It copies the graph: g may be closed.
func (g *Graph) Instantiate() (*Exec, error) {
	x := &Exec{c: g.c}
	if err := g.c.call(g.c.d.fn["cuGraphInstantiateWithFlags"], uintptr(unsafe.Pointer(&x.handle)), g.handle, 0); err != nil {
		return nil, err
	}
	return x, nil
}

// Launch queues all of the graph's work on a stream, by one call.
func (x *Exec) Launch(s *Stream) error {
	if x.handle == 0 {
		return fmt.Errorf("the captured graph is %w", ErrClosed)
	}
	return s.do(s.c.d.fn["cuGraphLaunch"], x.handle, s.handle)
}

// Close destroys it.
func (x *Exec) Close() error {
	return x.c.destroy(x.c.d.fn["cuGraphExecDestroy"], &x.handle)
}
