package data

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// npyBytes writes a .npy file: any slice of fixed-size numbers as the elements.
func npyBytes(descr, shape string, data any) []byte {
	head := fmt.Sprintf("{'descr': '%s', 'fortran_order': False, 'shape': %s, }", descr, shape)
	head += strings.Repeat(" ", 63-(10+len(head))%64) + "\n"
	var b bytes.Buffer
	b.WriteString(npyMagic + "\x01\x00")
	binary.Write(&b, binary.LittleEndian, uint16(len(head)))
	b.WriteString(head)
	if data != nil {
		binary.Write(&b, binary.LittleEndian, data)
	}
	return b.Bytes()
}

// part is a member of an archive.
type part struct {
	name string
	data []byte
}

// npzBytes writes an .npz file.
func npzBytes(tb testing.TB, parts ...part) []byte {
	tb.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, p := range parts {
		f, err := w.Create(p.name + ".npy")
		if err == nil {
			_, err = f.Write(p.data)
		}
		if err != nil {
			tb.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		tb.Fatal(err)
	}
	return b.Bytes()
}

// writeFiles writes files into a new folder, and folders in it, and returns it.
func writeFiles(tb testing.TB, files map[string]string) string {
	tb.Helper()
	dir := tb.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			tb.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			tb.Fatal(err)
		}
	}
	return dir
}

// writeFile writes one file into a new folder and returns its path.
func writeFile(tb testing.TB, name string, b []byte) string {
	tb.Helper()
	return filepath.Join(writeFiles(tb, map[string]string{name: string(b)}), name)
}

// copyDir copies a folder of testdata so that a test can damage it.
func copyDir(tb testing.TB, from string) string {
	tb.Helper()
	files := map[string]string{}
	entries, err := os.ReadDir(from)
	if err != nil {
		tb.Fatal(err)
	}
	for _, e := range entries {
		b, err := os.ReadFile(filepath.Join(from, e.Name()))
		if err != nil {
			tb.Fatal(err)
		}
		files[e.Name()] = string(b)
	}
	return writeFiles(tb, files)
}

func mustRead(tb testing.TB, path string) []byte {
	tb.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		tb.Fatal(err)
	}
	return b
}

func mustLoad(tb testing.TB, path string, opts LoadOptions) *Dataset {
	tb.Helper()
	ds, err := Load(path, opts)
	if err != nil {
		tb.Fatal(err)
	}
	return ds
}

// wantError fails unless err is there and its text has every piece.
func wantError(tb testing.TB, err error, pieces ...string) {
	tb.Helper()
	if err == nil {
		tb.Errorf("no error; want one with %q", pieces)
		return
	}
	for _, p := range pieces {
		if !strings.Contains(err.Error(), p) {
			tb.Errorf("error %q lacks %q", err, p)
		}
	}
}

// allocated returns the bytes that f allocates.
func allocated(f func()) uint64 {
	var a, b runtime.MemStats
	runtime.ReadMemStats(&a)
	f()
	runtime.ReadMemStats(&b)
	return b.TotalAlloc - a.TotalAlloc
}
