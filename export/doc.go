// Package export writes trained models as ONNX, and proves that the files
// compute what was trained.
//
// [Model] turns one function of the IR into an ONNX model: every tensor
// operation has a line in one table (ops.go), and message passing over a graph
// that is an input of the model is written in one of four ways ([Lowering]).
// [Build] writes a whole folder: encoder.onnx, scorer.onnx and classifier.onnx,
// as far as the model has them, a manifest with checksums, a parity report and
// test data. Before anything lands in its place, each model runs in onnxruntime
// (the dense form in onnx-go too) on the training graph and on the kinds of
// graph that break exporters, and is compared with the compiler's own forward
// pass. [Verify] checks such a folder again, on any machine, without the data.
//
// What the files take and give is described in docs/export.md.
package export
