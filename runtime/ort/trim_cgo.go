//go:build cgo

package ort

/*
#include <stdlib.h>
#if defined(__GLIBC__)
#include <malloc.h>
#endif

// glibc raises the size from which memory is mapped, and given back when it is freed, to
// that of the largest block that was freed, and keeps twice as much at the end of each
// thread's heap, where malloc_trim does not look.
static void gsrc_keep_little(void) {
#if defined(__GLIBC__)
	mallopt(M_MMAP_THRESHOLD, 4 << 20);
	mallopt(M_TRIM_THRESHOLD, 8 << 20);
#endif
}

static void gsrc_trim(void) {
#if defined(__GLIBC__)
	malloc_trim(0);
#endif
}
*/
import "C"

import "sync"

// keepLittle has freed memory go back to the system sooner, for sessions that are not to
// keep it.
var keepLittle = sync.OnceFunc(func() { C.gsrc_keep_little() })

// Trim gives memory that C code has freed back to the system, where its library can be
// told to: glibc's keeps it otherwise.
func Trim() { C.gsrc_trim() }
