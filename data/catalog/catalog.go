// Package catalog knows public data sets by name: where each is published, what
// its files' checksums are, where copies are on this machine, and how to fetch one.
//
// Copies lie below one folder, [Root], under the same relative paths everywhere,
// so that a folder of data sets can be copied to another machine as it is.
package catalog

import (
	"archive/zip"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/gsrc-dev/gsrc/internal/atomicfile"
	"github.com/gsrc-dev/gsrc/internal/download"
	"github.com/gsrc-dev/gsrc/internal/filelock"
	"github.com/gsrc-dev/gsrc/internal/lists"
)

const (
	// EnvVar names the environment variable with the folder of data sets that is
	// looked through first, and that data sets are fetched into.
	EnvVar = "GSRC_DATA"
	// MirrorVar names the environment variable with an address to fetch from in
	// place of the public ones: the address, a slash, and File.Path.
	MirrorVar = "GSRC_DATA_MIRROR"
	// LockFile, in the folder of data sets, records the files whose checksum is
	// not in the catalog as they were when they were fetched first.
	LockFile = "gsrc-data.lock.json"
)

// Set is a public data set.
type Set struct {
	Name  string // as the user gives it
	About string // in a few words
	Path  string // what to load: a file or a folder, relative, with slashes
	Files []File
}

// File is a file of a data set.
type File struct {
	Path   string // relative, with slashes
	URL    string
	Size   int64  // bytes; 0 if it is not known
	SHA256 string // in hexadecimal; empty if it is not known
}

// Sets returns all data sets.
func Sets() []Set { return slices.Clone(sets) }

// Names returns the names of all data sets.
func Names() []string { return lists.Map(sets, func(s Set) string { return s.Name }) }

// Find returns the data set of a name. Capitals, and - for _, do not matter.
func Find(name string) (Set, bool) {
	plain := func(s string) string { return strings.ReplaceAll(strings.ToLower(s), "-", "_") }
	for _, s := range sets {
		if plain(s.Name) == plain(name) {
			return s, true
		}
	}
	return Set{}, false
}

// Root returns the folder that data sets are fetched into: the environment
// variable GSRC_DATA, else gsrc/data in the user's cache folder.
func Root() (string, error) {
	if list := Folders(); len(list) > 0 {
		return list[0], nil
	}
	_, err := os.UserCacheDir()
	return "", fmt.Errorf("this user has no cache folder (%w); set %s to a folder for data sets", err, EnvVar)
}

// Folders returns where data sets are looked for: in GSRC_DATA, then in gsrc/data in the user's
// cache folder.
func Folders() (list []string) {
	if root := os.Getenv(EnvVar); root != "" {
		list = append(list, root)
	}
	if cache, err := os.UserCacheDir(); err == nil {
		list = append(list, filepath.Join(cache, "gsrc", "data"))
	}
	return list
}

// Locate returns where the data set is on this machine, "" if it is not there as
// a whole, and the folders that were looked through.
func (s Set) Locate() (path string, looked []string) {
	looked = Folders()
	for _, root := range looked {
		if s.in(root) {
			return filepath.Join(root, filepath.FromSlash(s.Path)), looked
		}
	}
	return "", looked
}

func (s Set) in(root string) bool {
	for _, f := range s.Files {
		info, err := os.Stat(filepath.Join(root, filepath.FromSlash(f.Path)))
		if err != nil || !info.Mode().IsRegular() {
			return false
		}
	}
	return true
}

// Options say how to fetch.
type Options struct {
	Force bool // fetch again what is there
	// Tries is how often a transfer that breaks off is tried; 0 is 4.
	Tries int
	// Progress, if not nil, is called with the progress of a file: total is -1 where the
	// server does not say.
	Progress func(file string, done, total int64)
	Log      func(format string, args ...any) // gets lines for people; may be nil
	// Mirror takes the place of the public addresses; see [MirrorVar].
	Mirror string
}

// Fetch puts the data set below root and returns the path to load. A file that is
// there is checked, and fetched again only where it is damaged. Its checksum is the
// catalog's or, where that has none, the one that the lock file recorded when the file
// was fetched first: that much is certain, that the file is the same ever since. An
// archive without a pinned checksum has to be readable besides. Parallel processes wait
// for one another.
func (s Set) Fetch(ctx context.Context, root string, o Options) (string, error) {
	if o.Log == nil {
		o.Log = func(string, ...any) {}
	}
	if u, err := url.Parse(o.Mirror); o.Mirror != "" && (err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https") {
		return "", fmt.Errorf("%s=%s is no address; give one such as https://host/path", MirrorVar, o.Mirror)
	}
	if o.Tries <= 0 {
		o.Tries = 4
	}
	path := filepath.Join(root, filepath.FromSlash(s.Path))
	if !o.Force && s.in(root) { // nothing to write: the folder may be read-only
		recorded, err := readLock(root)
		if err != nil {
			return "", err
		}
		whole := true
		var notes []func() // said here only where nothing is left to do
		for _, f := range s.Files {
			ok, err := f.present(root, recorded, func(format string, args ...any) {
				notes = append(notes, func() { o.Log(format, args...) })
			})
			if err != nil {
				return "", fmt.Errorf("%s: %w", s.Name, err)
			}
			whole = whole && ok
		}
		if whole {
			for _, say := range notes {
				say()
			}
			return path, nil
		}
	}
	if err := os.MkdirAll(root, 0o755); err != nil {
		return "", fmt.Errorf("cannot make the folder of data sets: %w", err)
	}
	lock, err := filelock.Acquire(ctx, filepath.Join(root, ".lock"), func(*filelock.HeldError) {
		o.Log("waiting for another process that fetches data into %s", root)
	})
	if err != nil {
		return "", fmt.Errorf("cannot lock the folder of data sets: %w", err)
	}
	defer lock.Unlock()
	recorded, err := readLock(root)
	if err != nil {
		return "", err
	}
	for _, f := range s.Files {
		if err := f.fetch(ctx, root, recorded, o); err != nil {
			return "", fmt.Errorf("%s: %w", s.Name, err)
		}
	}
	return path, nil
}

// want returns the checksum that a file has to have, "" if none is known.
func (f File) want(recorded lock) string {
	return cmp.Or(f.SHA256, recorded[f.Path].SHA256)
}

// present reports whether a file is there and what it should be.
func (f File) present(root string, recorded lock, log func(string, ...any)) (bool, error) {
	path := filepath.Join(root, filepath.FromSlash(f.Path))
	sum, err := download.SHA256(path)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
		return false, err
	}
	want := f.want(recorded)
	if want != "" && want != sum.SHA256 {
		log("%s is not the published file: its SHA-256 is %s, not %s; fetching it again", path, sum.SHA256, want)
		return false, nil
	}
	if f.SHA256 == "" {
		if err := readable(path); err != nil {
			log("%s is damaged (%v); fetching it again", path, err)
			delete(recorded, f.Path)
			return false, nil
		}
	}
	if want == "" {
		log("%s is there; no checksum of it is known", f.Path)
	}
	return true, nil
}

// maxUnpacked bounds what is read of an archive to see whether it is whole.
const maxUnpacked = 16 << 30

// readable returns why an archive, by its name, cannot be read to its end.
func readable(path string) error {
	if ext := filepath.Ext(path); ext != ".zip" && ext != ".npz" {
		return nil
	}
	z, err := zip.OpenReader(path)
	if err != nil {
		return err
	}
	defer z.Close()
	left := int64(maxUnpacked)
	for _, f := range z.File {
		r, err := f.Open()
		if err != nil {
			return fmt.Errorf("%s: %w", f.Name, err)
		}
		n, err := io.Copy(io.Discard, io.LimitReader(r, left))
		r.Close()
		if left -= n; err == nil && left <= 0 {
			err = fmt.Errorf("more than %d GiB", int64(maxUnpacked)>>30)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", f.Name, err)
		}
	}
	return nil
}

func (f File) fetch(ctx context.Context, root string, recorded lock, o Options) error {
	path := filepath.Join(root, filepath.FromSlash(f.Path))
	want := f.SHA256
	if !o.Force {
		if ok, err := f.present(root, recorded, o.Log); ok || err != nil {
			return err
		}
		want = f.want(recorded)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	from := f.URL
	if o.Mirror != "" {
		from = strings.TrimSuffix(o.Mirror, "/") + "/" + f.Path
	}
	get := download.Options{Tries: o.Tries, Log: o.Log}
	if o.Progress != nil {
		get.Progress = func(done, total int64) { o.Progress(f.Path, done, total) }
	}
	sum, err := download.Get(ctx, download.File{URL: from, Path: path, Size: f.Size, SHA256: want}, get)
	if err != nil {
		var other *download.ChecksumError
		if f.SHA256 == "" && errors.As(err, &other) {
			err = fmt.Errorf("%w; it is not the file that was fetched first, and --force takes it all the same", err)
		}
		if _, ok := errors.AsType[*url.Error](err); ok && ctx.Err() == nil {
			err = fmt.Errorf("%w; where that address cannot be reached, set HTTPS_PROXY or %s, or put the file into %s", err, MirrorVar, filepath.Dir(path))
		}
		return err
	}
	if f.SHA256 != "" {
		return nil
	}
	if err := readable(path); err != nil {
		os.Remove(path)
		return fmt.Errorf("what %s sends is damaged (%w); fetch it again", from, err)
	}
	recorded[f.Path] = record{Size: sum.Size, SHA256: sum.SHA256, URL: from}
	return recorded.write(root)
}

// lock is the lock file: what files were when they were fetched first, by path.
type lock map[string]record

type record struct {
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"`
	URL    string `json:"url"`
}

func readLock(root string) (lock, error) {
	path := filepath.Join(root, LockFile)
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return lock{}, nil
	}
	if err != nil {
		return nil, err
	}
	var l lock
	if err := json.Unmarshal(text, &l); err != nil || l == nil {
		return nil, fmt.Errorf("%s cannot be read (%v); remove it to record the files anew", path, err)
	}
	return l, nil
}

func (l lock) write(root string) error {
	return atomicfile.WriteJSON(filepath.Join(root, LockFile), l)
}
