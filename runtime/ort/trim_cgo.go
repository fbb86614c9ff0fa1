//go:build cgo

package ort

/*
#include <stdlib.h>
#if defined(__GLIBC__)
#include <malloc.h>
#endif

static void gsrc_trim(void) {
#if defined(__GLIBC__)
	malloc_trim(0);
#endif
}
*/
import "C"

// Trim gives memory that C code has freed back to the system, where its library can be
// told to: glibc's keeps it otherwise.
func Trim() { C.gsrc_trim() }
