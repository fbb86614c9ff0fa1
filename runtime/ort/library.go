package ort

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// EnvVar names the environment variable that points to the shared library, or
// to the folder that holds it. It comes before everything else.
const EnvVar = "GSRC_ONNXRUNTIME"

// Library is an onnxruntime shared library on this machine.
type Library struct {
	// Path of the file.
	Path string
	// Version as the file itself says, such as "1.27.0" ("1.27" on Windows);
	// empty if it does not.
	Version string
	// Found says where it comes from: the environment variable, a system
	// folder, or the cache.
	Found string
}

// NotFoundError says where the library was looked for and how to get it.
type NotFoundError struct {
	// Platform is GOOS/GOARCH.
	Platform string
	// Tried holds one line for each place or source that did not serve.
	Tried []string
}

func (e *NotFoundError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "onnxruntime %d.%d or later was not found for %s", minMajor, minMinor, e.Platform)
	for _, t := range e.Tried {
		b.WriteString("\n  " + strings.ReplaceAll(t, "\n", "\n  "))
	}
	b.WriteString("\nBy hand, any one of these:")
	for _, w := range byHand(e.Platform) {
		b.WriteString("\n  - " + w)
	}
	return b.String()
}

// byHand lists what a person can do to provide the library.
func byHand(platform string) []string {
	var ways []string
	for _, o := range catalog[platform] {
		switch o.kind {
		case originRelease:
			ways = append(ways, fmt.Sprintf("unpack %s%s and set %s to its %s", releaseURL, o.archive, EnvVar, o.member))
		case originWheel:
			ways = append(ways, fmt.Sprintf("pip download --no-deps onnxruntime==%s, unzip the .whl, set %s to its %s", Version, EnvVar, o.member))
		}
	}
	if len(ways) == 0 {
		ways = append(ways, fmt.Sprintf("build onnxruntime %s for %s (no release of it has a library for this platform) and set %s to the shared library", Version, platform, EnvVar))
	}
	return ways
}

// locator holds what a search depends on, so that tests can set a stage.
type locator struct {
	goos, goarch string
	getenv       func(string) string
	systemDirs   []string
	cacheRoot    string // the user's cache folder; empty if there is none
	cacheErr     error
}

func newLocator() *locator {
	l := &locator{goos: runtime.GOOS, goarch: runtime.GOARCH, getenv: os.Getenv}
	l.cacheRoot, l.cacheErr = os.UserCacheDir()
	l.systemDirs = systemDirs(l.goos, l.goarch, l.getenv)
	return l
}

func (l *locator) platform() string { return l.goos + "/" + l.goarch }

func systemDirs(goos, goarch string, getenv func(string) string) []string {
	var dirs []string
	add := func(parts ...string) {
		if parts[0] != "" {
			dirs = append(dirs, filepath.Join(parts...))
		}
	}
	if path, ok := map[string]string{"linux": "LD_LIBRARY_PATH", "darwin": "DYLD_LIBRARY_PATH", "windows": "PATH"}[goos]; ok {
		dirs = append(dirs, filepath.SplitList(getenv(path))...)
	}
	add(getenv("CONDA_PREFIX"), "lib")
	if venv := getenv("VIRTUAL_ENV"); venv != "" {
		add(venv, "lib", "python3*", "site-packages", "onnxruntime", "capi")
		add(venv, "Lib", "site-packages", "onnxruntime", "capi")
	}
	switch goos {
	case "linux":
		triple := map[string]string{"amd64": "x86_64-linux-gnu", "arm64": "aarch64-linux-gnu"}[goarch]
		add("/usr/local/lib")
		add("/opt/onnxruntime/lib")
		if triple != "" {
			add("/usr/lib", triple)
		}
		add("/usr/lib64")
		add("/usr/lib")
	case "darwin":
		add("/opt/homebrew/lib")
		add("/usr/local/lib")
	}
	return dirs
}

// patterns are the file names under which the library is installed.
func patterns(goos string) []string {
	switch goos {
	case "windows":
		return []string{"onnxruntime.dll"}
	case "darwin":
		return []string{"libonnxruntime.dylib", "libonnxruntime.1*.dylib"}
	default:
		return []string{"libonnxruntime.so", "libonnxruntime.so.1*"}
	}
}

// cachedName is the library's file name in the cache.
func cachedName(goos string) string {
	switch goos {
	case "windows":
		return "onnxruntime.dll"
	case "darwin":
		return "libonnxruntime." + Version + ".dylib"
	default:
		return "libonnxruntime.so." + Version
	}
}

func (l *locator) cacheDir() (string, error) {
	if l.cacheErr != nil {
		return "", fmt.Errorf("this user has no cache folder: %w", l.cacheErr)
	}
	return filepath.Join(l.cacheRoot, "gsrc", "onnxruntime", Version, l.goos+"-"+l.goarch), nil
}

// Locate finds a library that is on this machine already. It downloads nothing
// and loads nothing; the error is a *[NotFoundError] where there is none, or
// says what is wrong with the one that GSRC_ONNXRUNTIME names.
func Locate(ctx context.Context) (Library, error) {
	return newLocator().locate(ctx)
}

func (l *locator) locate(ctx context.Context) (Library, error) {
	if err := ctx.Err(); err != nil {
		return Library{}, err
	}
	if v := l.getenv(EnvVar); v != "" {
		lib, err := l.fromEnv(v)
		if err != nil {
			return Library{}, fmt.Errorf("%s=%s: %w", EnvVar, v, err)
		}
		return lib, nil
	}
	tried := []string{EnvVar + " is not set"}
	lib, found, unfit := l.search(l.systemDirs, "system")
	if found {
		return lib, nil
	}
	tried = append(tried, unfit...)
	if len(unfit) == 0 {
		tried = append(tried, "no onnxruntime library in the system's folders")
	}
	dir, err := l.cacheDir()
	if err != nil {
		tried = append(tried, err.Error())
		return Library{}, &NotFoundError{Platform: l.platform(), Tried: tried}
	}
	path := filepath.Join(dir, cachedName(l.goos))
	switch lib, err := l.examine(path, "cache"); {
	case err == nil:
		return lib, nil
	case errors.Is(err, os.ErrNotExist):
		tried = append(tried, "not in the cache folder "+dir)
	default:
		tried = append(tried, err.Error())
	}
	return Library{}, &NotFoundError{Platform: l.platform(), Tried: tried}
}

// fromEnv accepts a file or a folder. What a person names explicitly is used or
// refused, never silently replaced by another library.
func (l *locator) fromEnv(path string) (Library, error) {
	info, err := os.Stat(path)
	if err != nil {
		if errors.Is(err, os.ErrNotExist) {
			return Library{}, errors.New("there is no such file; name the onnxruntime shared library or the folder that holds it")
		}
		return Library{}, err
	}
	if !info.IsDir() {
		return l.examine(path, EnvVar)
	}
	lib, found, unfit := l.search([]string{path, filepath.Join(path, "lib"), filepath.Join(path, "capi")}, EnvVar)
	if found {
		return lib, nil
	}
	if len(unfit) > 0 {
		return Library{}, errors.New(strings.Join(unfit, "; "))
	}
	return Library{}, fmt.Errorf("the folder holds no %s", strings.Join(patterns(l.goos), " or "))
}

// search looks through folders (or patterns of folders) and returns the first
// fit library, and a line for each unfit one.
func (l *locator) search(dirs []string, found string) (Library, bool, []string) {
	var unfit []string
	var seen []string
	for _, dir := range dirs {
		if dir == "" || slices.Contains(seen, dir) {
			continue
		}
		seen = append(seen, dir)
		for _, p := range patterns(l.goos) {
			matches, err := filepath.Glob(filepath.Join(dir, p))
			if err != nil {
				continue
			}
			for _, m := range matches {
				lib, err := l.examine(m, found)
				if err == nil {
					return lib, true, nil
				}
				unfit = append(unfit, err.Error())
			}
		}
	}
	return Library{}, false, unfit
}

// examine checks that path is an onnxruntime library fit for this platform.
func (l *locator) examine(path, found string) (Library, error) {
	facts, err := identify(path)
	if err != nil {
		return Library{}, err
	}
	if err := facts.checkFit(l.goos, l.goarch); err != nil {
		return Library{}, fmt.Errorf("%s: %w", path, err)
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return Library{}, err
	}
	return Library{Path: abs, Version: facts.version, Found: found}, nil
}
