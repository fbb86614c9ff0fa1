package export

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/gsrc-dev/gsrc/runtime/ort"
)

// VerifyOptions say how an export is checked.
type VerifyOptions struct {
	// Provider of onnxruntime; Auto if empty.
	Provider ort.Provider
	// Device and MemoryLimit are those of ort.Options.
	Device      int
	MemoryLimit int64
	// Placement, if not nil, is told where the nodes of each model ran.
	Placement func(role string, nodes []ort.Placed)
	// Full also runs every model on the CPU with 1, 2 and 4 threads and each level of
	// graph optimisation, 20 times each.
	Full bool
	// Library is the onnxruntime to use; nil means what ort.Ensure finds or
	// fetches.
	Library *ort.Library
	// Log gets a line for each step; nil drops them.
	Log func(format string, args ...any)
}

// FileError says which file of an export is not what the manifest says.
type FileError struct {
	Path   string
	Reason string
}

func (e *FileError) Error() string { return e.Path + ": " + e.Reason }

// Verify checks an export folder on this machine: every file against its
// checksum, and every model on the folder's own test data, in onnxruntime and,
// for the dense form, in onnx-go. Errors are a *[FileError] or a *[ParityError].
func Verify(ctx context.Context, dir string, o VerifyOptions) (*Manifest, *ParityReport, error) {
	if o.Log == nil {
		o.Log = func(string, ...any) {}
	}
	m, err := ReadManifest(dir)
	if err != nil {
		return nil, nil, err
	}
	names := slices.Sorted(maps.Keys(m.Files))
	for _, name := range names {
		if err := checkFile(dir, name, m.Files[name]); err != nil {
			return m, nil, err
		}
	}
	o.Log("%d files match their checksums", len(names))
	lib := o.Library
	if lib == nil {
		found, err := ort.Ensure(ctx, o.Log)
		if err != nil {
			return m, nil, err
		}
		lib = &found
	}
	report := &ParityReport{SchemaVersion: SchemaVersion, Bound: "max|a-b| <= 1e-5 + 1e-4*max|b|",
		Runtimes: map[string]string{"onnxruntime": lib.Version}, Cases: []ParityCase{}}
	for _, role := range slices.Sorted(maps.Keys(m.Models)) {
		if err := ctx.Err(); err != nil {
			return m, report, err
		}
		if err := verifyModel(ctx, dir, role, m.Models[role], lib, o, report); err != nil {
			return m, report, err
		}
	}
	return m, report, nil
}

// checkSize is what of a file can be known without reading it.
func checkSize(dir, name string, want FileInfo) error {
	path := filepath.Join(dir, filepath.FromSlash(name))
	info, err := os.Stat(path)
	if err != nil {
		if errors.Is(err, os.ErrNotExist) {
			return &FileError{path, "the manifest lists it, and it is missing"}
		}
		return err
	}
	if info.Size() != want.Bytes {
		return &FileError{path, fmt.Sprintf("it has %d bytes, the manifest says %d", info.Size(), want.Bytes)}
	}
	return nil
}

func checkFile(dir, name string, want FileInfo) error {
	if err := checkSize(dir, name, want); err != nil {
		return err
	}
	path := filepath.Join(dir, filepath.FromSlash(name))
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if got := hex.EncodeToString(h.Sum(nil)); got != want.SHA256 {
		return &FileError{path, fmt.Sprintf("its SHA-256 is %s, the manifest says %s", got, want.SHA256)}
	}
	return nil
}

// testTensors reads the inputs or outputs of one model in a folder of test data, in
// the model's order.
func testTensors(dir, data, kind string, list []IOInfo) (map[string]ort.Tensor, error) {
	out := map[string]ort.Tensor{}
	for i, io := range list {
		path := filepath.Join(dir, filepath.FromSlash(data), fmt.Sprintf("%s_%d.pb", kind, i))
		name, t, err := ReadTensor(path)
		if err != nil {
			return nil, err
		}
		if name != io.Name {
			return nil, &FileError{path, fmt.Sprintf("it holds %q, the manifest's %s %d is %q", name, kind, i, io.Name)}
		}
		out[name] = t
	}
	return out, nil
}

// twiceBound runs a model by IO binding, and gives what the second run on the same
// memory gives.
func twiceBound(s *ort.Session, in map[string]ort.Tensor) (map[string]ort.Tensor, error) {
	b, err := s.Bind(in)
	if err != nil {
		return nil, err
	}
	_, err = b.Run()
	if err != nil {
		return nil, errors.Join(err, b.Close())
	}
	out, err := b.Run()
	return out, errors.Join(err, b.Close())
}

func verifyModel(ctx context.Context, dir, role string, info ModelInfo, lib *ort.Library, o VerifyOptions, report *ParityReport) error {
	in, err := testTensors(dir, info.TestData, "input", info.Inputs)
	if err != nil {
		return err
	}
	want, err := testTensors(dir, info.TestData, "output", info.Outputs)
	if err != nil {
		return err
	}
	path := filepath.Join(dir, filepath.FromSlash(info.File))
	options := ort.Options{Provider: o.Provider, Device: o.Device, MemoryLimit: o.MemoryLimit, Library: lib, Log: o.Log}
	session, err := ort.Open(path, options)
	if err != nil {
		return err
	}
	defer session.Close()
	engines := []engine{{fmt.Sprintf("onnxruntime (%s)", session.Provider()), session.Run}}
	if session.Provider() == ort.CUDA {
		engines = append(engines, engine{"onnxruntime (cuda, bound)", func(in map[string]ort.Tensor) (map[string]ort.Tensor, error) { return twiceBound(session, in) }})
	}
	if _, dense := in[inputAdjacency]; dense {
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		report.Runtimes["onnx-go"] = goVersion
		engines = append(engines, engine{"onnx-go", func(in map[string]ort.Tensor) (map[string]ort.Tensor, error) { return RunGo(data, in) }})
	}
	var order []string
	for _, out := range info.Outputs {
		order = append(order, out.Name)
	}
	size := sizeOf(in)
	size.Model, size.Case = role, testCase
	if err := runEngines(engines, path, info.tolerance(), in, want, order, size, report); err != nil {
		return err
	}
	o.Log("%s agrees with the test data in %s", info.File, engineNames(engines))
	if len(info.TestCases) > 0 {
		if err := verifyTestCases(ctx, dir, role, info, engines, order, report); err != nil {
			return err
		}
		o.Log("%s agrees with %d test cases in %s", info.File, len(info.TestCases), engineNames(engines))
	}
	if o.Placement != nil {
		nodes, err := ort.Placement(path, options, in)
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		o.Placement(role, nodes)
	}
	if !o.Full {
		return nil
	}
	if err := verifyFully(ctx, path, role, info, in, want, order, lib, report, size); err != nil {
		return err
	}
	o.Log("%s agrees with 1, 2 and 4 threads at every level of optimisation, and with itself", info.File)
	return nil
}
