// Package export writes trained models as ONNX.
//
// [Build] writes a whole folder: encoder.onnx, scorer.onnx, classifier.onnx and
// pipeline.onnx, as far as the model has them, a manifest with checksums, a parity
// report and test data. Package export/onnx makes the models; before anything lands in
// its place, package export/parity runs each in onnxruntime
// on the training graph and on the kinds of graph that break exporters, and compares
// it with the compiler's own forward pass. parity.Verify checks such a folder again, on
// any machine, without the data. Package export/dist runs the models
// of a folder.
//
// What the files take and give is described in docs/export.md.
package export
