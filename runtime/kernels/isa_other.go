//go:build !amd64

package kernels

func nativeSets() []*kernelSet { return nil }

// pause hints that the caller spins; there is no portable instruction for it.
func pause() {}
