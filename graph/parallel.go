package graph

import "github.com/gsrc-dev/gsrc/runtime/kernels"

// parallel runs f over [0, n) in chunks of grain, on the calling goroutine
// alone if pool is nil. Chunk borders do not depend on the number of threads.
func parallel(pool *kernels.Pool, n, grain int, f func(lo, hi int)) {
	if pool != nil {
		pool.For(n, grain, kernels.BodyFunc(f))
		return
	}
	for lo := 0; lo < n; lo += grain {
		f(lo, min(lo+grain, n))
	}
}
