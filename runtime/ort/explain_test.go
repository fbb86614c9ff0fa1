//go:build cgo

package ort

import (
	"errors"
	"strings"
	"testing"
)

func TestExplainLoad(t *testing.T) {
	lib := Library{Path: "/opt/libonnxruntime.so", Found: "system"}
	for msg, want := range map[string]string{
		"Platform-specific initialization failed: Error setting ORT API base: 2":                "too old: gsrc needs 1.24 or later",
		`Error looking up OrtGetApiBase in "x": undefined symbol`:                               "not onnxruntime",
		`Error loading ONNX shared library "x": libstdc++.so.6: cannot open shared object file`: "install libstdc++6",
		`Error loading ONNX shared library "x": version 'GLIBC_2.38' not found (required by x)`: "C++ runtime",
		`Error loading ONNX shared library "x": file too short`:                                 "file too short",
	} {
		err := explainLoad(lib, errors.New(msg))
		for _, part := range []string{want, lib.Path, msg} {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%q is explained as %q, which does not contain %q", msg, err, part)
			}
		}
	}
}
