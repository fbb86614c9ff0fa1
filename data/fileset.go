package data

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// fileSet is the files of one data set: a folder, or a .zip as it was
// downloaded. Names have slashes and are relative to the folder that the files
// lie in; a .zip whose members all lie in one folder is seen from inside it.
type fileSet struct {
	l      *loader
	root   string // the folder or the .zip
	zip    *archive
	prefix string // of the members' names in the .zip
}

func (l *loader) openZip(file string) (*fileSet, error) {
	b, err := l.file(file)
	if err != nil {
		return nil, err
	}
	return l.parseZip(file, b)
}

func (l *loader) parseZip(file string, b []byte) (*fileSet, error) {
	a, err := l.openArchive(file, b, unpackedText*l.opts.MaxBytes, "", ".zip file", "a truncated download gives this error; fetch it again")
	if err != nil {
		return nil, err
	}
	a.names = slices.DeleteFunc(a.names, func(n string) bool {
		return strings.HasSuffix(n, "/") || strings.HasPrefix(n, "__MACOSX/") || strings.HasPrefix(path.Base(n), ".")
	})
	if len(a.names) == 0 {
		return nil, badFile(file, "the archive holds no files")
	}
	s := &fileSet{l: l, root: file, zip: a}
	for {
		first, _, ok := strings.Cut(a.names[0][len(s.prefix):], "/")
		inside := s.prefix + first + "/"
		if !ok || slices.ContainsFunc(a.names, func(n string) bool { return !strings.HasPrefix(n, inside) }) {
			return s, nil
		}
		s.prefix = inside
	}
}

// name is what the folder or the .zip is called, without .zip.
func (s *fileSet) name() string {
	base := filepath.Base(s.root)
	if abs, err := filepath.Abs(s.root); err == nil {
		base = filepath.Base(abs)
	}
	if s.zip != nil {
		base = strings.TrimSuffix(base, filepath.Ext(base))
	}
	return base
}

// list returns the names of the files and of the folders in a folder, "" being
// the top; nothing if there is no such folder.
func (s *fileSet) list(dir string) (files, folders []string) {
	if s.zip == nil {
		entries, _ := os.ReadDir(s.path(dir))
		for _, e := range entries {
			if e.IsDir() {
				folders = append(folders, e.Name())
			} else {
				files = append(files, e.Name())
			}
		}
		return files, folders
	}
	prefix := s.prefix
	if dir != "" {
		prefix += dir + "/"
	}
	for _, n := range s.zip.names {
		rest, ok := strings.CutPrefix(n, prefix)
		if first, _, deeper := strings.Cut(rest, "/"); ok && !deeper {
			files = append(files, rest)
		} else if ok && !slices.Contains(folders, first) {
			folders = append(folders, first)
		}
	}
	slices.Sort(files)
	slices.Sort(folders)
	return files, folders
}

func (s *fileSet) path(name string) string {
	return filepath.Join(s.root, filepath.FromSlash(name))
}

func (s *fileSet) has(name string) bool {
	if s.zip != nil {
		return s.zip.has(s.prefix + name)
	}
	info, err := os.Stat(s.path(name))
	return err == nil && !info.IsDir()
}

// beginsWithCount tells whether the first line of a text file is a number alone, as in GIN's format.
func (s *fileSet) beginsWithCount(name string) bool {
	var r io.ReadCloser
	var err error
	if s.zip != nil {
		r, err = s.zip.parts[s.prefix+name].Open()
	} else if info, fault := os.Stat(s.path(name)); fault != nil || !info.Mode().IsRegular() { // a pipe would be waited for
		return false
	} else {
		r, err = os.Open(s.path(name))
	}
	if err != nil {
		return false
	}
	defer r.Close()
	line, _ := bufio.NewReader(io.LimitReader(r, 64)).ReadString('\n')
	_, err = strconv.ParseUint(strings.TrimSpace(line), 10, 31)
	return err == nil
}

// open starts reading a text file; one that ends in .gz is unpacked. That it cannot be opened is
// its first fault.
func (s *fileSet) open(name string) *textFile {
	file, packed := s.path(name), strings.HasSuffix(name, ".gz")
	t := newTextFile(file, nil, &s.l.left, s.l.mem)
	var r io.Reader
	if s.zip == nil {
		var b []byte
		b, t.err = s.l.file(file)
		r, t.release = bytes.NewReader(b), sync.OnceFunc(func() { s.l.done(b) })
		if !packed {
			t.left = nil // its size was counted when the file was read
		}
	} else if f := s.zip.parts[s.prefix+name]; f == nil {
		t.err = badFile(file, "the file is missing")
	} else if z, err := f.Open(); err != nil {
		t.err = fileFault(file, err)
	} else {
		r, t.release = z, sync.OnceFunc(func() { z.Close() })
	}
	if packed && t.err == nil {
		z, err := gzip.NewReader(r)
		if err != nil {
			t.err = badFile(file, "not a gzip file").because(err).hint("the download is incomplete, or the file was unpacked without being renamed")
		}
		r = z
	}
	t.r.Reset(r)
	return t
}
