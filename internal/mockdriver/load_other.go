//go:build !linux

package mockdriver

// Library is the mock driver, loaded; there is none on this system.
type Library struct{}

// Load returns ErrNoCompiler.
func Load(string) (*Library, error) { return nil, ErrNoCompiler }

// Set returns ErrNoCompiler.
func (*Library) Set(string, int64) error { return ErrNoCompiler }

// Count returns −1.
func (*Library) Count(string) int64 { return -1 }

// Live returns nothing.
func (*Library) Live() []string { return nil }

// Violations returns nothing.
func (*Library) Violations() []string { return nil }

// Reset does nothing.
func (*Library) Reset() {}
