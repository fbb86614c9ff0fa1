// Package onnx writes functions of the IR as ONNX models.
//
// [Model] does it for one function: every tensor operation has an emitter in one table
// (op_emitters.go), and message passing over a graph that is an input of the model is
// written in one of four ways ([Lowering]; emit_message_passing.go). [Pipeline] writes
// encoder, neighbour search, scorer and classifier as one model. builder.go makes nodes
// and tensors of the protobuf.
//
// The package also has what callers of such a model do on the host: the tables of
// [PrecomputedBuckets] ([BuildTables]), features in CSR ([Sparse]), an adjacency matrix
// ([Adjacency]), and the float64 interpreter on the same inputs ([Interpreter]).
package onnx
