package runtime

// DevicePtr is where a buffer's contents lie in the memory of a device that
// does not share the host's. It is zero for a buffer that only the host has.
// Addresses are the device's: they mean nothing to the host.
type DevicePtr struct {
	// Elements is the address of the F32 or I64 elements, or of the values of a
	// sparse matrix, in the order that the host has them in.
	Elements uintptr
	// In and Out are the two directions of a graph's entries, by target and by
	// source, or of a sparse matrix's, by row and by column. They are nil for
	// dense tensors.
	In, Out *DeviceCSR
}

// DeviceCSR is the CSR of package kernels in a device's memory: int32 arrays.
type DeviceCSR struct {
	Rows, Cols, NNZ int

	RowPtr uintptr // [Rows+1]
	Col    uintptr // [NNZ]
	Row    uintptr // [NNZ] the row of each entry, for kernels that work by entry
	Perm   uintptr // [NNZ], 0 where entry e is stored at e
}
