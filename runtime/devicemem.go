package runtime

import (
	"cmp"
	"fmt"
	"slices"
	"unsafe"

	"github.com/gsrc-dev/gsrc/ir"
	"github.com/gsrc-dev/gsrc/runtime/kernels"
)

// DeviceMemory is the memory of a device that does not share the host's. Addresses
// are the device's.
type DeviceMemory interface {
	// Alloc returns the address, a multiple of 256, of that many bytes, one at least.
	Alloc(bytes int) (uintptr, error)
	// Free gives memory back that no queued work needs any more, or waits for it.
	Free(at uintptr) error
	// Upload copies to the device, behind what is queued. src may be changed as
	// soon as it returns.
	Upload(dst uintptr, src []byte) error
	// Download waits for what is queued and copies to the host.
	Download(dst []byte, src uintptr) error
	// Copy queues a copy within the device.
	Copy(dst, src uintptr, bytes int) error
}

// DeviceBuffers keeps buffers in a device's memory. It is the part of a [Device] with a
// memory of its own that is the same for all of them, to be embedded. It is not safe for use by
// several goroutines at once.
type DeviceBuffers struct {
	mem    DeviceMemory
	blocks map[uintptr]int // bytes by address
	held   int
	peak   int
	era    int     // counts ReleaseAll: what was placed before is gone
	rows   []int32 // of entries, before they are copied
	stage  []byte  // a structure, before it is copied
}

// NewDeviceBuffers returns an empty memory.
func NewDeviceBuffers(m DeviceMemory) *DeviceBuffers {
	return &DeviceBuffers{mem: m, blocks: map[uintptr]int{}}
}

// deviceAllocation is what a DeviceBuffers knows of a buffer.
type deviceAllocation struct {
	of      *DeviceBuffers
	era     int
	block   uintptr // memory of its own, 0 of a view
	size    int     // its bytes
	changed uint64  // how often the host said that the contents changed
	loaded  uint64  // the change that the device has
	owned   bool    // the device's memory counts, not the host's
	in, out DeviceCSR
	host    *Buffer // copy for Export
}

// Buffers returns r itself.
func (r *DeviceBuffers) Buffers() *DeviceBuffers { return r }

// Held returns the bytes in use now, and the most at one time so far.
func (r *DeviceBuffers) Held() (now, peak int) { return r.held, r.peak }

// of returns what r knows of a buffer. A buffer lies on one device at a time.
func (r *DeviceBuffers) of(b *Buffer) *deviceAllocation {
	if b.res == nil || b.res.of != r || b.res.era != r.era {
		b.res, b.Device = &deviceAllocation{of: r, era: r.era, changed: 1}, DevicePtr{}
	}
	return b.res
}

// OnDevice reports whether the memory of a device holds the contents, and not the
// host's: of what programs compute there, and of what was given to [DeviceBuffers.ToDevice].
func (b *Buffer) OnDevice() bool { return b.res != nil && b.res.owned }

// alloc gives a deviceAllocation a block of at least that many bytes.
func (r *DeviceBuffers) alloc(s *deviceAllocation, bytes int) error {
	if s.size >= bytes {
		return nil
	}
	if s.size > 0 { // it grows, so it may again
		bytes += bytes / 4
	}
	if err := r.free(s); err != nil {
		return err
	}
	at, err := r.mem.Alloc(bytes)
	if err != nil {
		return err
	}
	s.block, s.size = at, bytes
	r.blocks[at] = bytes
	r.held += bytes
	r.peak = max(r.peak, r.held)
	return nil
}

func (r *DeviceBuffers) free(s *deviceAllocation) error {
	if s.block == 0 {
		return nil
	}
	at := s.block
	r.held -= s.size
	s.block, s.size, s.loaded = 0, 0, 0
	delete(r.blocks, at)
	return r.mem.Free(at)
}

// Release gives back the memory of a buffer. Views of it must not be used again.
func (r *DeviceBuffers) Release(b *Buffer) error {
	if b.res == nil || b.res.of != r || b.res.era != r.era {
		return nil
	}
	s := b.res
	b.res, b.Device = nil, DevicePtr{}
	return r.free(s)
}

// ReleaseAll gives back the memory of all buffers. Programs that run on the device
// must be closed before, and what it owned is lost. It returns the first error, and
// goes on behind it.
func (r *DeviceBuffers) ReleaseAll() (err error) {
	for at := range r.blocks {
		err = cmp.Or(err, r.mem.Free(at))
	}
	clear(r.blocks)
	r.held = 0
	r.era++
	return err
}

// Changed says that the host changed a buffer's contents.
func (r *DeviceBuffers) Changed(b *Buffer) { r.of(b).changed++ }

// Reserve makes b's own memory hold n elements; see [Device].
func (r *DeviceBuffers) Reserve(b *Buffer, n int) error {
	s := r.of(b)
	s.owned = true
	if n == 0 {
		return nil
	}
	if err := r.alloc(s, n*elementSize(b)); err != nil {
		return err
	}
	b.Device.Elements = s.block
	return nil
}

// View makes dst a view of n elements of b; see [Device].
func (r *DeviceBuffers) View(dst, b *Buffer, at, n int) {
	if have := r.of(b).size; at < 0 || n > 0 && at+n*elementSize(dst) > have {
		panic(fmt.Sprintf("runtime: %d elements from byte %d on of %d bytes", n, at, have))
	}
	was := dst.Device // with the structure of a sparse matrix
	r.of(dst).owned = true
	dst.Device = DevicePtr{In: was.In, Out: was.Out}
	if n > 0 {
		dst.Device.Elements = b.Device.Elements + uintptr(at)
	}
	if dst.Sparse != nil {
		dst.Sparse.stored = n
	}
}

// Import copies a bound buffer to the device, if the host has changed it since,
// and makes view show it; see [Device].
func (r *DeviceBuffers) Import(view, bound *Buffer) error {
	if err := r.load(bound); err != nil {
		return err
	}
	view.Graph = bound.Graph
	view.I64 = bound.I64 // what sizes are found by is read on the host
	if bound.Sparse != nil {
		*view.Sparse = *bound.Sparse
	}
	r.of(view).owned = true
	view.Device = bound.Device
	return nil
}

// Alias makes view show n elements of operand from one on; see [Device].
func (r *DeviceBuffers) Alias(view, operand *Buffer, from, n int) {
	r.of(view).owned = true
	view.Device, view.Graph = operand.Device, operand.Graph
	if operand.Sparse != nil {
		*view.Sparse = *operand.Sparse
	}
	if from > 0 {
		view.Device.Elements += uintptr(from * elementSize(view))
	}
}

// Export copies a result to the host; see [Device]. The copy is used again for
// the next one.
func (r *DeviceBuffers) Export(b *Buffer) (*Buffer, error) {
	if b.Graph != nil {
		return b, nil
	}
	s := r.of(b)
	if s.host == nil {
		s.host = &Buffer{DType: b.DType}
		if b.Sparse != nil {
			s.host.Sparse = &SparseMatrix{}
		}
	}
	h, n := s.host, b.len()
	h.Dims = append(h.Dims[:0], b.Dims...)
	switch {
	case b.Sparse != nil:
		*h.Sparse = SparseMatrix{ByRow: b.Sparse.ByRow, ByCol: b.Sparse.ByCol, Values: slices.Grow(h.Sparse.Values[:0], n)[:n]}
	case b.DType == ir.I64:
		h.I64 = slices.Grow(h.I64[:0], n)[:n]
	default:
		h.F32 = slices.Grow(h.F32[:0], n)[:n]
	}
	return h, r.download(payload(h), b.Device.Elements)
}

// ToDevice gives a tensor to the device, with the contents that the host has now.
func (r *DeviceBuffers) ToDevice(b *Buffer) error {
	s := r.of(b)
	if s.owned {
		return nil
	}
	s.changed++
	if err := r.load(b); err != nil {
		return err
	}
	s.owned = true
	return nil
}

// CopyToDevice copies the host's contents of a tensor that the device owns to the device.
func (r *DeviceBuffers) CopyToDevice(b *Buffer) error {
	if err := r.ToDevice(b); err != nil {
		return err
	}
	return r.upload(b.Device.Elements, payload(b))
}

// CopyToHost copies the contents of a tensor that the device owns to the host.
func (r *DeviceBuffers) CopyToHost(b *Buffer) error {
	if !b.OnDevice() {
		return nil
	}
	return r.download(payload(b), b.Device.Elements)
}

// Assign queues a copy of src's elements to dst, both f32 tensors of one size on
// the device.
func (r *DeviceBuffers) Assign(dst, src *Buffer) error {
	if n := 4 * src.len(); n > 0 {
		return r.mem.Copy(dst.Device.Elements, src.Device.Elements, n)
	}
	return nil
}

// load copies a buffer of the host's to the device, unless it is there.
func (r *DeviceBuffers) load(b *Buffer) error {
	s := r.of(b)
	if s.owned || s.loaded == s.changed {
		return nil
	}
	elements := payload(b)
	in, out := structureOf(b)
	need := aligned(len(elements)) + structureBytes(in, out)
	if need == 0 {
		s.loaded = s.changed
		return nil
	}
	if err := r.alloc(s, need); err != nil {
		return err
	}
	b.Device = DevicePtr{Elements: s.block}
	whole := elements
	if in != nil { // in one copy
		r.stage = append(slices.Grow(r.stage[:0], need), elements...)
		r.place(&s.in, in, s.block, nil)
		var shared *DeviceCSR
		if sameEntries(in, out) {
			shared = &s.in
		}
		r.place(&s.out, out, s.block, shared)
		b.Device.In, b.Device.Out = &s.in, &s.out
		whole = r.stage
		if len(r.stage) > mostStage {
			r.stage = nil
		}
	}
	if err := r.upload(s.block, whole); err != nil {
		return err
	}
	s.loaded = s.changed
	return nil
}

// mostStage bounds the memory that is kept to gather copies in.
const mostStage = 16 << 20

// place appends a structure to what is staged for the block at an address. What
// another structure has already is taken from there.
func (r *DeviceBuffers) place(to *DeviceCSR, c *kernels.CSR, block uintptr, shared *DeviceCSR) {
	*to = DeviceCSR{Rows: c.Rows, Cols: c.Cols, NNZ: c.NNZ()}
	put := func(x []int32) uintptr {
		r.stage = append(r.stage, make([]byte, aligned(len(r.stage))-len(r.stage))...)
		at := len(r.stage)
		r.stage = append(r.stage, bytesOf(x)...)
		return block + uintptr(at)
	}
	if shared != nil {
		to.RowPtr, to.Col, to.Row = shared.RowPtr, shared.Col, shared.Row
	} else {
		to.RowPtr, to.Col = put(c.RowPtr), put(c.Col)
		r.rows = slices.Grow(r.rows[:0], c.NNZ())[:c.NNZ()]
		clear(r.rows) // those that padding appended are in no row
		for row := range c.Rows {
			for e := c.RowPtr[row]; e < c.RowPtr[row+1]; e++ {
				r.rows[e] = int32(row)
			}
		}
		to.Row = put(r.rows)
	}
	if c.Perm != nil {
		to.Perm = put(c.Perm)
	}
}

func (r *DeviceBuffers) upload(dst uintptr, src []byte) error {
	if len(src) == 0 {
		return nil
	}
	return r.mem.Upload(dst, src)
}

func (r *DeviceBuffers) download(dst []byte, src uintptr) error {
	if len(dst) == 0 {
		return nil
	}
	return r.mem.Download(dst, src)
}

// LoadedBytes returns what a buffer of the host's takes on a device.
func LoadedBytes(b *Buffer) int {
	return aligned(elementSize(b)*b.len()) + structureBytes(structureOf(b))
}

// structureOf returns the two directions of a graph or a sparse matrix.
func structureOf(b *Buffer) (in, out *kernels.CSR) {
	switch {
	case b.Graph != nil:
		return b.Graph.In, b.Graph.Out
	case b.Sparse != nil:
		return b.Sparse.ByRow, b.Sparse.ByCol
	}
	return nil, nil
}

// structureBytes returns what the two directions of a structure take, 0 where there is none.
func structureBytes(in, out *kernels.CSR) int {
	if in == nil {
		return 0
	}
	return csrBytes(in, true) + csrBytes(out, !sameEntries(in, out))
}

// csrBytes returns what a structure takes, with offsets, columns and rows or
// without.
func csrBytes(c *kernels.CSR, whole bool) int {
	n := aligned(4 * len(c.Perm))
	if whole {
		n += aligned(4*len(c.RowPtr)) + 2*aligned(4*len(c.Col))
	}
	return n
}

// sameEntries tells the two directions of an undirected graph, which share their arrays.
func sameEntries(in, out *kernels.CSR) bool {
	same := func(a, b []int32) bool { return len(a) == len(b) && unsafe.SliceData(a) == unsafe.SliceData(b) }
	return same(in.RowPtr, out.RowPtr) && same(in.Col, out.Col)
}

// aligned rounds up to the alignment of what lies in one block.
func aligned(bytes int) int { return (bytes + 255) &^ 255 }

// elementSize returns the bytes of an element of a buffer.
func elementSize(b *Buffer) int {
	if b.DType == ir.I64 && b.Sparse == nil {
		return 8
	}
	return 4
}

// payload returns the elements of a host's buffer as bytes.
func payload(b *Buffer) []byte {
	switch {
	case b.Graph != nil:
		return nil
	case b.Sparse != nil:
		return bytesOf(b.Sparse.Values)
	case b.DType == ir.I64:
		return bytesOf(b.I64)
	}
	return bytesOf(b.F32)
}

// bytesOf returns the memory of a slice.
func bytesOf[T float32 | int64 | int32](x []T) []byte {
	if len(x) == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(x))), len(x)*int(unsafe.Sizeof(x[0])))
}
