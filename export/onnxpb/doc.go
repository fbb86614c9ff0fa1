// Package onnxpb holds the ONNX protobuf messages that gsrc writes and reads.
//
// The messages come from onnx.proto in this folder: a minimal subset of the
// ONNX format (IR version 8, default operator set), with the format's own field
// numbers, so that the bytes are an ordinary .onnx file. Fields that are not
// listed there survive a round trip as unknown fields. The proto package is
// gsrc.onnx and not onnx, which other libraries register: two packages of one name in
// a binary panic at start-up.
//
// The Go code is checked in; `go generate ./export/onnxpb` makes it anew (it
// needs protoc, for example from Debian's protobuf-compiler).
package onnxpb

//go:generate sh -c "GOBIN=$PWD/.bin go install google.golang.org/protobuf/cmd/protoc-gen-go && protoc -I ../.. --plugin=protoc-gen-go=.bin/protoc-gen-go --go_out=../.. --go_opt=paths=source_relative export/onnxpb/onnx.proto && rm -r .bin"
