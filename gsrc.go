// Package gsrc trains graph neural networks that refine their own graph, and
// exports what was trained as ONNX. It is the front of the packages below it
// and the whole of what the gsrc command does.
package gsrc
