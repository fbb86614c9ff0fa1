//go:build !unix

package train

// peakRSS returns 0: the system's way to ask is not in the standard library.
func peakRSS() float64 { return 0 }
