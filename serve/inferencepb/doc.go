// Package inferencepb holds the messages and the service of the Open Inference
// Protocol over gRPC, generated from the published schema beside it.
//
// The Go code is checked in; `go generate ./serve/inferencepb` makes it anew (it needs
// protoc, for example from Debian's protobuf-compiler).
package inferencepb

//go:generate sh -c "GOBIN=$PWD/.bin go install google.golang.org/protobuf/cmd/protoc-gen-go && GOBIN=$PWD/.bin go install google.golang.org/grpc/cmd/protoc-gen-go-grpc@v1.6.2 && protoc -I ../.. --plugin=protoc-gen-go=.bin/protoc-gen-go --plugin=protoc-gen-go-grpc=.bin/protoc-gen-go-grpc --go_out=../.. --go_opt=paths=source_relative --go-grpc_out=../.. --go-grpc_opt=paths=source_relative serve/inferencepb/open_inference_grpc.proto && rm -r .bin"
