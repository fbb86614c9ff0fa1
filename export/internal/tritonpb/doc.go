// Package tritonpb holds the part of NVIDIA Triton's model configuration that gsrc
// writes, which tests hold the written text against. Nothing else needs it: the text
// is written without it.
//
// The Go code is checked in; `go generate ./export/internal/tritonpb` makes it anew (it
// needs protoc, for example from Debian's protobuf-compiler).
package tritonpb

//go:generate sh -c "GOBIN=$PWD/.bin go install google.golang.org/protobuf/cmd/protoc-gen-go && protoc -I ../../.. --plugin=protoc-gen-go=.bin/protoc-gen-go --go_out=../../.. --go_opt=paths=source_relative export/internal/tritonpb/model_config.proto && rm -r .bin"
