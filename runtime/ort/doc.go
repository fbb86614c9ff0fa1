// Package ort runs ONNX models with onnxruntime, and finds or obtains the
// onnxruntime shared library.
//
// onnxruntime is a C++ library that is opened at run time; nothing of it is
// linked in. [Locate] looks for it on this machine, [Ensure] fetches it when it
// is missing, [Open] loads a model:
//
//	lib, err := ort.Ensure(ctx, log.Printf)
//	s, err := ort.Open("encoder.onnx", ort.Options{Library: &lib})
//	defer s.Close()
//	out, err := s.Run(map[string]ort.Tensor{
//		"x":          ort.Float32s(x, n, d),
//		"edge_index": ort.Int64s(edges, 2, e),
//	})
//
// The library is searched for in this order, the first that fits wins: the file
// or folder that the environment variable GSRC_ONNXRUNTIME names, the system's
// library folders, and gsrc's cache in the user's cache folder. Ensure then
// tries Microsoft's release archive and the Python wheel onnxruntime, with
// checksums pinned in catalog.go. Packages are downloaded and read, never
// installed: no script of theirs runs.
//
// A program built without cgo has everything here but sessions: Open then
// returns [ErrNoCgo].
package ort
