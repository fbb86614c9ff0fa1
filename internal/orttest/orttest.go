// Package orttest gives tests the onnxruntime library.
package orttest

import (
	"context"
	"errors"
	"os"
	"sync"
	"testing"

	"github.com/gsrc-dev/gsrc/runtime/ort"
)

var library = sync.OnceValues(func() (ort.Library, error) {
	return ort.Ensure(context.Background(), nil)
})

// Need returns the library, fetched if necessary. Where it cannot be had, or
// the test is built without cgo, the test is skipped, or fails if the
// environment variable CI is set: there a silent skip would hide the fault.
func Need(t testing.TB) ort.Library {
	t.Helper()
	if _, err := ort.OpenBytes(nil, ort.Options{}); errors.Is(err, ort.ErrNoCgo) {
		t.Skip("built without cgo: no onnxruntime sessions")
	}
	lib, err := library()
	if err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	return lib
}
