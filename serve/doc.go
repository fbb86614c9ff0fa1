// Package serve answers questions to an export over the network, by the Open Inference
// Protocol, version 2, over HTTP and gRPC: what clients of Triton, KServe and their
// like speak.
//
// A [Server] has two kinds of models. The files of the export (encoder, scorer,
// classifier, pipeline) take whole graphs and keep nothing. Where a graph was given
// with them, the model "nodes" answers for nodes of it by name, and "update" adds
// nodes and edges to it. Every answer belongs to one version of the graph, which the
// reply names.
//
//	s, err := serve.New(ctx, serve.Options{Dist: "dist/cora", Data: "cora"})
//	err = s.Run(ctx, listener, nil) // until ctx ends
//
// [Server.Handler] is the HTTP side for use in a server of one's own.
//
// A newcomer's map: tensor.go holds what travels, json.go, binary.go and grpc.go how it
// is written; model.go, files.go and nodes.go the models; batch.go gathers questions;
// http.go, grpc.go and run.go are the server around them; metrics.go counts.
package serve
