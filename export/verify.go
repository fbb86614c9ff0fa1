package export

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"

	"github.com/gsrc-dev/gsrc/internal/atomicfile"
	"github.com/gsrc-dev/gsrc/internal/seal"
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
	// Seal adds checksums to an export of an earlier version when all else holds.
	Seal bool
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
	if o.Seal {
		unlock, err := lockFolder(dir)
		if err != nil {
			return nil, nil, err
		}
		defer unlock()
	}
	m, err := ReadManifest(dir)
	if err != nil {
		return nil, nil, err
	}
	if line := m.Unchecked(); line != "" && !o.Seal {
		o.Log("%s", line)
	}
	names := slices.Sorted(maps.Keys(m.Files))
	sums := map[string]string{}
	for _, name := range names {
		if sums[name], err = m.checkFile(name); err != nil {
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
		if err := m.verifyModel(ctx, role, lib, o, report); err != nil {
			return m, report, err
		}
	}
	if o.Seal && m.Unchecked() != "" {
		if err := m.seal(sums); err != nil {
			return m, report, err
		}
		o.Log("%s has checksums now", dir)
	}
	return m, report, nil
}

// checkSHA holds content against its SHA-256.
func (want FileInfo) checkSHA(path string, copy func(io.Writer) error) error {
	h := sha256.New()
	if err := copy(h); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if got := hex.EncodeToString(h.Sum(nil)); got != want.SHA256 {
		return &FileError{path, fmt.Sprintf("its SHA-256 is %s, the manifest says %s", got, want.SHA256)}
	}
	return nil
}

// checkFile reads all of a file and holds it against the manifest. It returns the file's
// CRC-32C.
func (m *Manifest) checkFile(name string) (string, error) {
	path, want := m.path(name), m.Files[name]
	f, err := openFile(path, want)
	if err != nil {
		return "", err
	}
	defer f.Close()
	sum := seal.New()
	err = want.checkSHA(path, func(w io.Writer) error {
		_, err := io.Copy(io.MultiWriter(w, sum), f)
		return err
	})
	if got := seal.Text(sum.Sum32()); err == nil && want.CRC32C != "" && got != want.CRC32C {
		err = &FileError{path, fmt.Sprintf("its CRC-32C is %s, the manifest says %s", got, want.CRC32C)}
	}
	return seal.Text(sum.Sum32()), err
}

// seal writes the manifest anew with checksums, those given of the files.
func (m *Manifest) seal(sums map[string]string) error {
	m.SchemaVersion = ManifestVersion
	for name, f := range m.Files {
		f.CRC32C = sums[name]
		m.Files[name] = f
	}
	text, err := m.marshal()
	if err != nil {
		return err
	}
	return atomicfile.WriteBytes(m.path(ManifestFile), text)
}

// testTensors reads the inputs or outputs of one model in a folder of test data, in
// the model's order.
func (m *Manifest) testTensors(data, kind string, list []IOInfo) (map[string]ort.Tensor, error) {
	out := map[string]ort.Tensor{}
	for i, io := range list {
		file := path.Join(data, fmt.Sprintf("%s_%d.pb", kind, i))
		content, err := m.ReadFile(file)
		if err != nil {
			return nil, err
		}
		name, t, err := parseTensor(m.path(file), content)
		if err != nil {
			return nil, err
		}
		if name != io.Name {
			return nil, &FileError{m.path(file), fmt.Sprintf("it holds %q, the manifest's %s %d is %q", name, kind, i, io.Name)}
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

func (m *Manifest) verifyModel(ctx context.Context, role string, lib *ort.Library, o VerifyOptions, report *ParityReport) error {
	info := m.Models[role]
	in, err := m.testTensors(info.TestData, "input", info.Inputs)
	if err != nil {
		return err
	}
	want, err := m.testTensors(info.TestData, "output", info.Outputs)
	if err != nil {
		return err
	}
	path := m.path(info.File)
	options := ort.Options{Provider: o.Provider, Device: o.Device, MemoryLimit: o.MemoryLimit, Library: lib, Log: o.Log}
	session, err := m.session(role, options)
	if err != nil {
		return err
	}
	defer session.Close()
	engines := []engine{{fmt.Sprintf("onnxruntime (%s)", session.Provider()), session.Run}}
	if session.Provider() == ort.CUDA {
		engines = append(engines, engine{"onnxruntime (cuda, bound)", func(in map[string]ort.Tensor) (map[string]ort.Tensor, error) { return twiceBound(session, in) }})
	}
	if _, dense := in[inputAdjacency]; dense {
		data, err := m.ReadFile(info.File)
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
		if err := m.verifyTestCases(ctx, role, info, engines, order, report); err != nil {
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
