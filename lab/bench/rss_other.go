//go:build !unix

package bench

// peakMiB is not known here.
func peakMiB() float64 { return 0 }
