//go:build cgo

package ort

import onnxruntime "github.com/yalue/onnxruntime_go"

// Signature is what [OpenBytes] reads of a model, Described what onnxruntime reports of it.
var Signature = signature

func Described(model []byte) (in, out []IO, err error) {
	return converted(onnxruntime.GetInputOutputInfoWithONNXData(model))
}

// SetGPU has sessions take it that there is a GPU, or none, until restore is called.
func SetGPU(there bool) (restore func()) {
	old := hasGPU
	hasGPU = func() bool { return there }
	return func() { hasGPU = old }
}
