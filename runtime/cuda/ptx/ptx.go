// Package ptx has the CUDA kernels as PTX text, NVIDIA's portable assembly, which
// the driver compiles for the device it finds: any of compute capability 7.0 and up.
//
// kernels.ptx is generated from the sources in package src by clang; "make ptx"
// does it again.
package ptx

import _ "embed"

//go:generate go run ./generate

//go:embed kernels.ptx
var text string

// Text returns the module with all kernels.
func Text() string { return text }
