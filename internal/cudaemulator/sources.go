package cudaemulator

import (
	"embed"
	"io/fs"
)

//go:embed build.go host
var own embed.FS

// Sources are the files that a built library depends on, beside the kernels of
// package src.
func Sources() fs.FS { return own }
