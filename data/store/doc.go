// Package store keeps one graph on disk in the form in which it is read: a folder of
// arrays that are mapped into memory, so that a graph may be larger than that.
//
// A store has [HeaderFile] and, for each array, NAME.bin with its little-endian elements
// and NAME.sha256 with the SHA-256 of each block of [BlockSize] bytes. The header has the
// sizes and the SHA-256 of each of these tables, so its own checksum stands for the whole.
//
//	indptr    int64   [N+1]   first entry of each node; entry p leads from sources[p] to the node
//	sources   int32   [E]     ascending within a node; both directions of an undirected edge
//	edges     int32   [M,2]   sorted; the lower node of an undirected edge first
//	x         float32 or float16 [N,D], or x_indptr int64 [N+1], x_col int32, x_val float32
//	labels    int32   [N]     -1 is unknown
//
// and, where the data have them, weights float32 [M], entry_weights float32 [E], loops,
// planted uint8 [M], ids, and train_K, val_K and test_K of split K.
//
// # What is checked
//
// [Open] checks the header, the sizes of all files and the tables; a block is held against
// its checksum when it is touched first, by the methods of [Store], and all of them by
// [Store.Verify]. What is changed in place after that is not noticed. A read that fails
// because a file was truncated or a disk is broken is a fault of the processor, which
// [Guard] turns into a [*DamageError].
//
// Stores are not changed: whoever builds one in its place needs a lock that excludes those
// who read it. Many processes may read one.
package store

import "unsafe"

// HeaderFile is the file by which a store is recognised.
const HeaderFile = "store.json"

// BlockSize is the size of what has a checksum, in bytes.
const BlockSize = 64 << 10

// Version is that of the form in which stores are written.
const Version = 1

const lockFile = "lock"

// Types of elements.
const (
	Int32   = "int32"
	Int64   = "int64"
	Uint64  = "uint64"
	Uint8   = "uint8"
	Float32 = "float32"
	Float16 = "float16"
)

var sizes = map[string]int64{Int32: 4, Int64: 8, Uint64: 8, Uint8: 1, Float32: 4, Float16: 2}

// element is what an array may consist of in Go; float16 is read as uint16.
type element interface {
	int32 | int64 | uint64 | uint16 | uint8 | float32
}

// bytesOf returns the memory of a slice.
func bytesOf[T element](x []T) []byte {
	if len(x) == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(&x[0])), len(x)*int(unsafe.Sizeof(x[0])))
}

// littleEndian tells whether this machine can map what stores hold.
var littleEndian = func() bool {
	x := uint16(1)
	return *(*byte)(unsafe.Pointer(&x)) == 1
}()
