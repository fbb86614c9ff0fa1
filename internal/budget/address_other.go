//go:build !linux

package budget

// addressSpace is for systems that have such a limit.
func addressSpace() (uint64, bool) { return 0, false }
