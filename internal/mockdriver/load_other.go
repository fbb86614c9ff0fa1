//go:build !linux

package mockdriver

// Load returns ErrNoCompiler.
func Load(string) (*Library, error) { return nil, ErrNoCompiler }
