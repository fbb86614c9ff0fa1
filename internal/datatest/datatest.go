// Package datatest finds the real data sets that tests read.
package datatest

import (
	"os"
	"path/filepath"
	"testing"
)

// Path returns the path of a data set below the folder that the environment variable
// GSRC_DATA names, such as planetoid/cora. The test is skipped where it is not there.
func Path(tb testing.TB, name string) string {
	tb.Helper()
	path, ok := Find(name)
	if !ok {
		tb.Skipf("the data set %s is not below GSRC_DATA (%q)", name, os.Getenv("GSRC_DATA"))
	}
	return path
}

// Find is [Path] for tests that take other data where these are missing.
func Find(name string) (path string, ok bool) {
	root := os.Getenv("GSRC_DATA")
	path = filepath.Join(root, filepath.FromSlash(name))
	_, err := os.Stat(path)
	return path, root != "" && err == nil
}
