package ort

import (
	"archive/tar"
	"archive/zip"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/gsrc-dev/gsrc/internal/download"
	"github.com/gsrc-dev/gsrc/internal/filelock"
)

const (
	// Package managers retry by themselves; this bounds the whole of it.
	packageTimeout = 5 * time.Minute
	// No library or archive of onnxruntime is near this size; it bounds what a
	// wrong file can write.
	maxArchive = 1 << 30
	maxLibrary = 512 << 20
)

// Ensure returns the library that [Locate] finds or, where there is none,
// fetches it into the cache. Sources are tried in order until one delivers a
// file with the pinned checksum; log (which may be nil) gets a line for each
// step. Parallel processes wait for one another, so that it is fetched once.
func Ensure(ctx context.Context, log func(format string, args ...any)) (Library, error) {
	f := &fetcher{locator: newLocator(), origins: nil, releaseURL: releaseURL, runCommand: runCommand}
	f.origins = catalog[f.platform()]
	return f.ensure(ctx, log)
}

// OrEnsure returns the library or, where it is nil, what [Ensure] does.
func (lib *Library) OrEnsure(ctx context.Context, log func(format string, args ...any)) (*Library, error) {
	if lib != nil {
		return lib, nil
	}
	found, err := Ensure(ctx, log)
	return &found, err
}

type fetcher struct {
	*locator
	origins    []origin
	releaseURL string
	runCommand func(ctx context.Context, dir, name string, args ...string) error
}

func (f *fetcher) ensure(ctx context.Context, log func(string, ...any)) (Library, error) {
	if log == nil {
		log = func(string, ...any) {}
	}
	lib, err := f.locate(ctx)
	var missing *NotFoundError
	if err == nil || !errors.As(err, &missing) {
		return lib, err
	}
	if len(f.origins) == 0 || f.cacheErr != nil {
		return Library{}, missing
	}
	dir, err := f.cacheDir()
	if err != nil {
		return Library{}, err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return Library{}, fmt.Errorf("cannot make the cache folder for onnxruntime: %w", err)
	}
	lock, err := filelock.Acquire(ctx, filepath.Join(dir, ".lock"), func(*filelock.HeldError) {
		log("waiting for another process that fetches onnxruntime into %s", dir)
	})
	if err != nil {
		return Library{}, fmt.Errorf("cannot lock the cache folder for onnxruntime: %w", err)
	}
	defer lock.Unlock()
	// The process that held the lock may have done the work.
	target := filepath.Join(dir, cachedName(f.goos))
	if lib, err := f.examine(target, "cache"); err == nil {
		return lib, nil
	}
	for _, o := range f.origins {
		log("fetching onnxruntime %s: %s", Version, o.kind)
		err := f.install(ctx, o, dir, target)
		if err == nil {
			lib, err := f.examine(target, "cache")
			if err == nil {
				log("onnxruntime %s is in %s", lib.Version, lib.Path)
				return lib, nil
			}
			os.Remove(target)
			return Library{}, err
		}
		if ctx.Err() != nil {
			return Library{}, ctx.Err()
		}
		log("  not available: %v", err)
		missing.Tried = append(missing.Tried, fmt.Sprintf("%s: %v", o.kind, err))
	}
	return Library{}, missing
}

// install fetches one origin's archive and puts its library at target, in one
// rename, once both checksums are right.
func (f *fetcher) install(ctx context.Context, o origin, dir, target string) error {
	tmp, err := os.MkdirTemp(dir, ".fetch-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	archive, err := f.fetch(ctx, o, tmp)
	if err != nil {
		return err
	}
	if err := checkSum(archive, filepath.Base(archive), o.archiveSHA256); err != nil {
		return err
	}
	lib := filepath.Join(tmp, "library")
	if err := extract(archive, o.member, lib); err != nil {
		return err
	}
	if o.librarySHA256 != "" {
		if err := checkSum(lib, o.member, o.librarySHA256); err != nil {
			return err
		}
	}
	return os.Rename(lib, target)
}

// checkSum refuses a file that is not the pinned one.
func checkSum(path, name, want string) error {
	sum, err := download.SHA256(path)
	if err != nil {
		return err
	}
	if sum.SHA256 != want {
		return &download.ChecksumError{Name: name, Have: sum.SHA256, Want: want}
	}
	return nil
}

// fetch obtains the archive of an origin and returns its path inside tmp.
func (f *fetcher) fetch(ctx context.Context, o origin, tmp string) (string, error) {
	switch o.kind {
	case originRelease:
		path := filepath.Join(tmp, o.archive)
		_, err := download.Get(ctx, download.File{URL: f.releaseURL + o.archive, Path: path, Limit: maxArchive}, download.Options{})
		return path, err
	case originWheel:
		args := []string{"download", "--no-deps", "--only-binary=:all:", "--implementation", "cp", "--python-version", "3.11",
			"--disable-pip-version-check", "--retries", "1", "--timeout", "15", "--quiet", "--dest", "."}
		for _, tag := range o.wheelTags {
			args = append(args, "--platform", tag)
		}
		args = append(args, "onnxruntime=="+Version)
		err := f.runCommand(ctx, tmp, "pip", args...)
		if errors.Is(err, exec.ErrNotFound) {
			err = f.runCommand(ctx, tmp, "python3", append([]string{"-m", "pip"}, args...)...)
		}
		if err != nil {
			return "", err
		}
		return onlyFile(tmp, "*.whl")
	}
	return "", fmt.Errorf("unknown origin %q", o.kind)
}

func onlyFile(dir, pattern string) (string, error) {
	matches, err := filepath.Glob(filepath.Join(dir, pattern))
	if err != nil {
		return "", err
	}
	if len(matches) != 1 {
		return "", fmt.Errorf("it left %d files %s where one was expected", len(matches), pattern)
	}
	return matches[0], nil
}

// runCommand runs a package manager in dir; its last words become the error.
func runCommand(ctx context.Context, dir, name string, args ...string) error {
	path, err := exec.LookPath(name)
	if err != nil {
		return fmt.Errorf("%s is not installed (%w)", name, exec.ErrNotFound)
	}
	ctx, cancel := context.WithTimeout(ctx, packageTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Dir = dir
	cmd.WaitDelay = 2 * time.Second
	out, err := cmd.CombinedOutput()
	if ctx.Err() != nil {
		return fmt.Errorf("%s did not end within %v", name, packageTimeout)
	}
	if err != nil {
		lines := strings.Split(strings.TrimSpace(string(out)), "\n")
		return fmt.Errorf("%s: %w: %s", name, err, strings.TrimSpace(lines[len(lines)-1]))
	}
	return nil
}

// writeFile copies r to a new file, at most limit bytes, and syncs it.
func writeFile(path string, r io.Reader, limit int64) error {
	out, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	n, err := io.Copy(out, io.LimitReader(r, limit+1))
	if err == nil && n > limit {
		err = fmt.Errorf("larger than %d MiB: refused", limit>>20)
	}
	if err == nil {
		err = out.Sync()
	}
	if cerr := out.Close(); err == nil {
		err = cerr
	}
	return err
}

// extract copies one member of a .tgz, .zip or .whl to path. Nothing else of
// the archive is written.
func extract(archive, member, path string) error {
	missing := fmt.Errorf("%s holds no %s", filepath.Base(archive), member)
	if !strings.HasSuffix(archive, ".tgz") {
		z, err := zip.OpenReader(archive)
		if err != nil {
			return fmt.Errorf("%s: %w", filepath.Base(archive), err)
		}
		defer z.Close()
		for _, e := range z.File {
			if e.Name == member {
				r, err := e.Open()
				if err != nil {
					return err
				}
				defer r.Close()
				return writeFile(path, r, maxLibrary)
			}
		}
		return missing
	}
	file, err := os.Open(archive)
	if err != nil {
		return err
	}
	defer file.Close()
	gz, err := gzip.NewReader(file)
	if err != nil {
		return fmt.Errorf("%s: %w", filepath.Base(archive), err)
	}
	t := tar.NewReader(gz)
	for {
		h, err := t.Next()
		if err == io.EOF {
			return missing
		}
		if err != nil {
			return fmt.Errorf("%s: %w", filepath.Base(archive), err)
		}
		// Some archives write their names with a leading "./".
		if strings.TrimPrefix(h.Name, "./") == member && h.Typeflag == tar.TypeReg {
			return writeFile(path, t, maxLibrary)
		}
	}
}
