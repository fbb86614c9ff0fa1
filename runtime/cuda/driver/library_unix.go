//go:build darwin || freebsd || linux || netbsd

package driver

import "github.com/ebitengine/purego"

func openLibrary(path string) (uintptr, error) {
	// Local, so that no symbol of one library stands in for one of another.
	return purego.Dlopen(path, purego.RTLD_NOW|purego.RTLD_LOCAL)
}

func symbolAddress(library uintptr, name string) (uintptr, error) {
	return purego.Dlsym(library, name)
}
