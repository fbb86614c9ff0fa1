package parity

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/gsrc-dev/gsrc/export/manifest"
	"github.com/gsrc-dev/gsrc/internal/lists"
	"github.com/gsrc-dev/gsrc/runtime/ort"
)

// VerifyOptions say how an export is checked.
type VerifyOptions struct {
	// Provider of onnxruntime; Auto if empty.
	Provider ort.Provider
	// Device and MemoryLimit are those of ort.Options.
	Device      int
	MemoryLimit int64
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

// Verify checks an export folder on this machine: every file against its
// checksum, and every model on the folder's own test data, in onnxruntime.
// Errors are a *[manifest.FileError] or a *[Error].
func Verify(ctx context.Context, dir string, o VerifyOptions) (*manifest.Manifest, *Report, error) {
	if o.Log == nil {
		o.Log = func(string, ...any) {}
	}
	if o.Seal {
		unlock, err := manifest.LockFolder(dir)
		if err != nil {
			return nil, nil, err
		}
		defer unlock()
	}
	m, err := manifest.Read(dir)
	if err != nil {
		return nil, nil, err
	}
	if line := m.Unchecked(); line != "" && !o.Seal {
		o.Log("%s", line)
	}
	names := slices.Sorted(maps.Keys(m.Files))
	sums := map[string]string{}
	for _, name := range names {
		if sums[name], err = m.CheckFile(name); err != nil {
			return m, nil, err
		}
	}
	o.Log("%d files match their checksums", len(names))
	lib, err := o.Library.OrEnsure(ctx, o.Log)
	if err != nil {
		return m, nil, err
	}
	report := newReport()
	report.Runtimes["onnxruntime"] = lib.Version
	for _, role := range slices.Sorted(maps.Keys(m.Models)) {
		if err := ctx.Err(); err != nil {
			return m, report, err
		}
		if err := verifyModel(ctx, m, role, lib, o, report); err != nil {
			return m, report, err
		}
	}
	if o.Seal && m.Unchecked() != "" {
		if err := m.Seal(sums); err != nil {
			return m, report, err
		}
		o.Log("%s has checksums now", dir)
	}
	return m, report, nil
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

func verifyModel(ctx context.Context, m *manifest.Manifest, role string, lib *ort.Library, o VerifyOptions, report *Report) error {
	info := m.Models[role]
	in, err := m.TestTensors(info.TestData, "input", info.Inputs)
	if err != nil {
		return err
	}
	want, err := m.TestTensors(info.TestData, "output", info.Outputs)
	if err != nil {
		return err
	}
	path := m.Path(info.File)
	options := ort.Options{Provider: o.Provider, Device: o.Device, MemoryLimit: o.MemoryLimit, Library: lib, Log: o.Log}
	session, err := m.Session(role, options)
	if err != nil {
		return err
	}
	defer session.Close()
	engines := []engine{{fmt.Sprintf("onnxruntime (%s)", session.Provider()), session.Run}}
	if session.Provider() == ort.CUDA {
		engines = append(engines, engine{"onnxruntime (cuda, bound)", func(in map[string]ort.Tensor) (map[string]ort.Tensor, error) { return twiceBound(session, in) }})
	}
	order := lists.Map(info.Outputs, func(out manifest.IOInfo) string { return out.Name })
	size := sizeOf(in)
	size.Model, size.Case = role, testCase
	if err := runEngines(engines, path, info.Bound(), in, want, order, size, report); err != nil {
		return err
	}
	o.Log("%s agrees with the test data in %s", info.File, engineNames(engines))
	if len(info.TestCases) > 0 {
		if err := verifyTestCases(ctx, m, role, info, engines, order, report); err != nil {
			return err
		}
		o.Log("%s agrees with %d test cases in %s", info.File, len(info.TestCases), engineNames(engines))
	}
	if !o.Full {
		return nil
	}
	if err := verifyFully(ctx, path, info, in, want, order, lib, report, size); err != nil {
		return err
	}
	o.Log("%s agrees with 1, 2 and 4 threads at every level of optimisation, and with itself", info.File)
	return nil
}
