// Package src has the sources of the CUDA kernels: C for two compilers. gsrc.h
// says what they keep to.
package src

import "embed"

// Files are the sources and their headers.
//
//go:embed *.cu *.h
var Files embed.FS
