//go:build !unix && !windows

package download

import "os"

// tryLock always succeeds where the system has no file locks: the rename that
// installs the library is atomic, so the worst case is fetching it twice.
func tryLock(*os.File) (bool, error) { return true, nil }
