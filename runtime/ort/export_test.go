//go:build cgo

package ort

// SetGPU has sessions take it that there is a GPU, or none, until restore is called.
func SetGPU(there bool) (restore func()) {
	old := hasGPU
	hasGPU = func() bool { return there }
	return func() { hasGPU = old }
}
