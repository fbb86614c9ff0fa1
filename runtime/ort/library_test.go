package ort

import (
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// machoLibrary makes a Mach-O shared library of nothing but a header and the
// load command that carries the version.
func machoLibrary(cpu uint32, major, minor, patch int) []byte {
	le := binary.LittleEndian
	var b []byte
	for _, v := range []uint32{0xfeedfacf, cpu, 0, 6, 1, 32, 0, 0} {
		b = le.AppendUint32(b, v)
	}
	version := uint32(major<<16 | minor<<8 | patch)
	for _, v := range []uint32{0xd, 32, 24, 0, version, 0x10000} {
		b = le.AppendUint32(b, v)
	}
	return append(b, "ort\x00\x00\x00\x00\x00"...)
}

const (
	cpuArm64 = 0x0100000c
	cpuAmd64 = 0x01000007
)

// darwinLocator searches the given folders as if on an Apple machine, whose
// libraries are the easiest to make by hand.
func darwinLocator(t *testing.T, env map[string]string, systemDirs ...string) *locator {
	t.Helper()
	return &locator{
		goos: "darwin", goarch: "arm64", systemDirs: systemDirs, cacheRoot: t.TempDir(),
		getenv: func(k string) string { return env[k] },
	}
}

func writeTestFile(t *testing.T, path string, data []byte) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, data, 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestLocate(t *testing.T) {
	good := machoLibrary(cpuArm64, 1, 27, 0)
	old := machoLibrary(cpuArm64, 1, 23, 2)
	intel := machoLibrary(cpuAmd64, 1, 27, 0)
	tests := []struct {
		name    string
		files   map[string][]byte // relative to a temporary folder
		env     string            // relative too
		want    string
		found   string
		wantErr string
	}{
		{name: "variable names a file", files: map[string][]byte{"a/x.dylib": good, "sys/libonnxruntime.dylib": good}, env: "a/x.dylib", want: "a/x.dylib", found: EnvVar},
		{name: "variable names a folder", files: map[string][]byte{"a/lib/libonnxruntime.1.27.0.dylib": good}, env: "a", want: "a/lib/libonnxruntime.1.27.0.dylib", found: EnvVar},
		{name: "variable names nothing", files: map[string][]byte{"sys/libonnxruntime.dylib": good}, env: "a", wantErr: "there is no such file"},
		{name: "variable names an empty folder", files: map[string][]byte{"a/readme": nil}, env: "a", wantErr: "holds no libonnxruntime.dylib"},
		{name: "variable names text", files: map[string][]byte{"a": []byte("hello world")}, env: "a", wantErr: "not a usable shared library"},
		{name: "variable names an empty file", files: map[string][]byte{"a": nil}, env: "a", wantErr: "too short"},
		{name: "variable names a truncated library", files: map[string][]byte{"a": good[:40]}, env: "a", wantErr: "not a usable shared library"},
		{name: "variable names an old library", files: map[string][]byte{"a": old}, env: "a", wantErr: "it is onnxruntime 1.23.2, and gsrc needs 1.24"},
		{name: "variable names another machine's", files: map[string][]byte{"a": intel}, env: "a", wantErr: "made for darwin/amd64"},
		{name: "system", files: map[string][]byte{"sys/libonnxruntime.1.27.0.dylib": good}, want: "sys/libonnxruntime.1.27.0.dylib", found: "system"},
		{name: "old system library is passed over", files: map[string][]byte{"sys/libonnxruntime.dylib": old, "sys2/libonnxruntime.dylib": good}, want: "sys2/libonnxruntime.dylib", found: "system"},
		{name: "system before cache", files: map[string][]byte{"sys/libonnxruntime.dylib": good, "cache/gsrc/onnxruntime/1.27.0/darwin-arm64/libonnxruntime.1.27.0.dylib": good}, want: "sys/libonnxruntime.dylib", found: "system"},
		{name: "cache", files: map[string][]byte{"cache/gsrc/onnxruntime/1.27.0/darwin-arm64/libonnxruntime.1.27.0.dylib": good}, want: "cache/gsrc/onnxruntime/1.27.0/darwin-arm64/libonnxruntime.1.27.0.dylib", found: "cache"},
		{name: "nothing", wantErr: "was not found for darwin/arm64"},
		{name: "nothing but an old one", files: map[string][]byte{"sys/libonnxruntime.dylib": old}, wantErr: "it is onnxruntime 1.23.2"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			dir := t.TempDir()
			for name, data := range test.files {
				writeTestFile(t, filepath.Join(dir, name), data)
			}
			env := map[string]string{}
			if test.env != "" {
				env[EnvVar] = filepath.Join(dir, test.env)
			}
			l := darwinLocator(t, env, filepath.Join(dir, "sys"), filepath.Join(dir, "sys2"))
			l.cacheRoot = filepath.Join(dir, "cache")
			lib, err := l.locate(t.Context())
			if test.wantErr != "" {
				if err == nil || !strings.Contains(err.Error(), test.wantErr) {
					t.Fatalf("error %v, want one with %q", err, test.wantErr)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			want := Library{Path: filepath.Join(dir, test.want), Version: "1.27.0", Found: test.found}
			if lib != want {
				t.Errorf("found %+v, want %+v", lib, want)
			}
		})
	}
}

func TestLocateWithoutCacheFolder(t *testing.T) {
	l := darwinLocator(t, nil)
	l.cacheRoot, l.cacheErr = "", errors.New("HOME is not set")
	_, err := l.locate(t.Context())
	var missing *NotFoundError
	if !errors.As(err, &missing) || !strings.Contains(err.Error(), "HOME is not set") {
		t.Errorf("error %v, want a NotFoundError that names the missing HOME", err)
	}
}

// TestCatalog checks the pins for slips of the pen.
func TestCatalog(t *testing.T) {
	for platform, origins := range catalog {
		if len(origins) != 2 {
			t.Errorf("%s has %d origins, want release and wheel", platform, len(origins))
		}
		for i, o := range origins {
			if want := []originKind{originRelease, originWheel}[i]; o.kind != want {
				t.Errorf("%s: origin %d is %s, want %s", platform, i, o.kind, want)
			}
			for _, sum := range []string{o.archiveSHA256, o.librarySHA256} {
				if sum != "" && (len(sum) != 64 || strings.Trim(sum, "0123456789abcdef") != "") {
					t.Errorf("%s, %s: %q is no SHA-256", platform, o.kind, sum)
				}
			}
			if o.archiveSHA256 == "" || o.member == "" {
				t.Errorf("%s, %s: archive checksum and member must be pinned", platform, o.kind)
			}
		}
	}
}
