package driver

import (
	"fmt"
	"runtime"
	"unsafe"
)

// Attributes of a device, by their numbers in cuda.h.
const (
	attributeMultiprocessors = 16
	attributeMajor           = 75
	attributeMinor           = 76
)

// Device is a GPU.
type Device struct {
	Ordinal int    // its number, from 0
	Name    string // such as "NVIDIA H100 80GB HBM3"
	Memory  int64  // bytes
	// Major and Minor are the compute capability, 9 and 0 for an H100.
	Major, Minor    int
	Multiprocessors int

	d      *Driver
	handle int32
}

// Capability returns the compute capability, such as "9.0".
func (v Device) Capability() string { return fmt.Sprintf("%d.%d", v.Major, v.Minor) }

// Supported returns an error where gsrc's kernels are not for the device.
func (v Device) Supported() error {
	if v.Major < 7 {
		return fmt.Errorf("%w: GPU %d, %s, has compute capability %s, and gsrc's kernels need 7.0 (Volta) or later", ErrNoDevice, v.Ordinal, v.Name, v.Capability())
	}
	return nil
}

// list fills in the devices.
func (d *Driver) list() error {
	var n int32
	if err := d.do("cuDeviceGetCount", uintptr(unsafe.Pointer(&n))); err != nil {
		return err
	}
	if n == 0 {
		return d.fail(d.fn["cuDeviceGetCount"], CodeNoDevice)
	}
	for i := range int(n) {
		v := Device{Ordinal: i, d: d}
		var name [256]byte
		var memory uint64
		err := d.do("cuDeviceGet", uintptr(unsafe.Pointer(&v.handle)), uintptr(i))
		if err == nil {
			err = d.do("cuDeviceGetName", uintptr(unsafe.Pointer(&name)), uintptr(len(name)), uintptr(v.handle))
		}
		if err == nil {
			err = d.do("cuDeviceTotalMem_v2", uintptr(unsafe.Pointer(&memory)), uintptr(v.handle))
		}
		v.Name, v.Memory = cString(&name[0]), int64(memory)
		for _, a := range []struct {
			number uintptr
			to     *int
		}{{attributeMajor, &v.Major}, {attributeMinor, &v.Minor}, {attributeMultiprocessors, &v.Multiprocessors}} {
			var value int32
			if err == nil {
				err = d.do("cuDeviceGetAttribute", uintptr(unsafe.Pointer(&value)), a.number, uintptr(v.handle))
			}
			*a.to = int(value)
		}
		if err != nil {
			return fmt.Errorf("GPU %d: %w", i, err)
		}
		d.devices = append(d.devices, v)
	}
	return nil
}

// Context is a device in use by this process.
type Context struct {
	Device Device

	d       *Driver
	handle  uintptr
	current []uintptr // handle, as an argument
	closed  bool
}

// Open takes the device into use: it retains its primary context, which all users
// in a process share.
func (v Device) Open() (*Context, error) {
	if err := v.Supported(); err != nil {
		return nil, err
	}
	c := &Context{Device: v, d: v.d}
	if r := c.d.fn["cuDevicePrimaryCtxRetain"].call(uintptr(unsafe.Pointer(&c.handle)), uintptr(v.handle)); r != 0 {
		e := c.d.fail(c.d.fn["cuDevicePrimaryCtxRetain"], r)
		e.Detail = fmt.Sprintf("GPU %d, %s", v.Ordinal, v.Name)
		return nil, e
	}
	c.current = []uintptr{c.handle}
	return c, nil
}

// Close gives the device back. With the last user the driver frees everything that
// was made in the context. Close what was made first.
func (c *Context) Close() error {
	if c.closed {
		return nil
	}
	c.closed = true
	return c.d.do("cuDevicePrimaryCtxRelease_v2", uintptr(c.Device.handle))
}

// call calls a function with the context current. The current context belongs to
// the thread, and a goroutine keeps its thread only while it is locked to it.
//
//go:uintptrescapes
func (c *Context) call(p *proc, args ...uintptr) error {
	if r := c.code(p, args...); r != 0 {
		return c.d.fail(p, r)
	}
	return nil
}

// destroy calls a function that destroys what a handle names, unless that is done.
func (c *Context) destroy(p *proc, handle *uintptr) error {
	if *handle == 0 {
		return nil
	}
	h := *handle
	*handle = 0
	return c.call(p, h)
}

//go:uintptrescapes
func (c *Context) code(p *proc, args ...uintptr) Code {
	if c.closed {
		return CodeContextDestroyed
	}
	runtime.LockOSThread()
	r := c.d.fn["cuCtxSetCurrent"].call(c.current...)
	if r == 0 {
		r = p.call(args...)
	}
	runtime.UnlockOSThread()
	return r
}

// A caller calls functions without allocating, for one goroutine at a time. Its
// arguments are no pointers to what may lie on a stack.
type caller struct {
	c     *Context
	block [16]uintptr
}

func (x *caller) code(p *proc, args ...uintptr) Code {
	// Arguments of the call below go to the heap, and these are there already.
	n := copy(x.block[:], args)
	return x.c.code(p, x.block[:n]...)
}

func (x *caller) call(p *proc, args ...uintptr) error {
	if r := x.code(p, args...); r != 0 {
		return x.c.d.fail(p, r)
	}
	return nil
}

// Synchronize waits for all work in the context, and returns what went wrong in it.
func (c *Context) Synchronize() error { return c.call(c.d.fn["cuCtxSynchronize"]) }

// FreeMemory returns the bytes of the device's memory that are free and all that
// it has. Other processes take from the same.
func (c *Context) FreeMemory() (free, total int64, err error) {
	var f, t uint64
	err = c.call(c.d.fn["cuMemGetInfo_v2"], uintptr(unsafe.Pointer(&f)), uintptr(unsafe.Pointer(&t)))
	return int64(f), int64(t), err
}

// Alloc allocates bytes of the device's memory, aligned to at least 256, with
// undefined contents. The error is [ErrOutOfMemory] where there is no room, and says
// how much is free.
func (c *Context) Alloc(bytes int) (uintptr, error) {
	if bytes <= 0 {
		return 0, fmt.Errorf("%d bytes of a GPU's memory were asked for: ask for 1 or more", bytes)
	}
	var addr uintptr
	r := c.code(c.d.fn["cuMemAlloc_v2"], uintptr(unsafe.Pointer(&addr)), uintptr(bytes))
	if r == 0 {
		return addr, nil
	}
	e := c.d.fail(c.d.fn["cuMemAlloc_v2"], r)
	e.Detail = Bytes(int64(bytes)) + " asked for"
	if free, total, err := c.FreeMemory(); err == nil {
		e.Detail += fmt.Sprintf(", %s of %s free", Bytes(free), Bytes(total))
	}
	return 0, e
}

// Free frees what Alloc gave, after the work that was queued before it. It does
// nothing for address 0.
func (c *Context) Free(addr uintptr) error {
	if addr == 0 {
		return nil
	}
	return c.call(c.d.fn["cuMemFree_v2"], addr)
}

// HostMemory is memory of the host that the device reads and writes itself, so that
// copies to and from it are asynchronous, and may be part of a captured graph.
type HostMemory struct {
	c     *Context
	bytes []byte
}

// AllocHost allocates page-locked memory of the host.
func (c *Context) AllocHost(bytes int) (*HostMemory, error) {
	if bytes <= 0 {
		return nil, fmt.Errorf("%d bytes of page-locked memory were asked for: ask for 1 or more", bytes)
	}
	var p *byte
	r := c.code(c.d.fn["cuMemHostAlloc"], uintptr(unsafe.Pointer(&p)), uintptr(bytes), 0)
	if r != 0 {
		e := c.d.fail(c.d.fn["cuMemHostAlloc"], r)
		e.Detail = Bytes(int64(bytes)) + " of page-locked memory of the host asked for"
		return nil, e
	}
	return &HostMemory{c, unsafe.Slice(p, bytes)}, nil
}

// Bytes returns the memory, which is the driver's: it must not be used after Close.
func (h *HostMemory) Bytes() []byte { return h.bytes }

// Close frees the memory.
func (h *HostMemory) Close() error {
	if h.bytes == nil {
		return nil
	}
	p := unsafe.SliceData(h.bytes)
	h.bytes = nil
	return h.c.call(h.c.d.fn["cuMemFreeHost"], uintptr(unsafe.Pointer(p)))
}

// Bytes writes a size for people, such as "1.5 GiB".
func Bytes(n int64) string {
	switch f := float64(n); {
	case n >= 1<<30:
		return fmt.Sprintf("%.1f GiB", f/(1<<30))
	case n >= 1<<20:
		return fmt.Sprintf("%.1f MiB", f/(1<<20))
	case n >= 1<<10:
		return fmt.Sprintf("%.1f KiB", f/(1<<10))
	}
	return fmt.Sprintf("%d B", n)
}
