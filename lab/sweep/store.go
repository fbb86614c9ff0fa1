package sweep

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/gsrc-dev/gsrc/internal/atomicfile"
	"github.com/gsrc-dev/gsrc/internal/seal"
)

// Store is a folder of records, a JSON file for each:
//
//	DIR/cora/ecl-gsr-4f1c9a20be77.json
//
// under the data set's name, with the model's name and the first twelve digits of
// the key. Files are written whole or not at all, and several processes may write
// to one store.
type Store struct{ Dir string }

// Path returns the file of a record.
func (s Store) Path(dataset, model, key string) string {
	return filepath.Join(s.Dir, fileName(dataset), fileName(modelName(model))+"-"+key[:12]+".json")
}

// fileName makes a name fit for any file system.
func fileName(name string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', strings.ContainsRune("-_+", r):
			return r
		}
		return '_'
	}, name)
}

// get reads the record of a job; nil where there is none. A file that holds
// something else is an error.
func (s Store) get(dataset, model, key string) (*Record, error) {
	path := s.Path(dataset, model, key)
	r, err := readRecord(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, err
	case r.Key != key:
		return nil, fmt.Errorf("%s: it is the record of another job", path)
	}
	return r, nil
}

func readRecord(path string) (*Record, error) {
	text, err := seal.Read(path)
	if err != nil {
		return nil, err
	}
	if _, err := seal.Check(nil, text, nil); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	r := &Record{}
	if err := json.Unmarshal(text, r); err != nil {
		return nil, fmt.Errorf("%s: not a record: %w", path, err)
	}
	if len(r.Key) < 12 || r.Model == "" || (r.Result == nil) != r.Failed() {
		return nil, fmt.Errorf("%s: not a record: it lacks a key, a model, or a result", path)
	}
	r.Seal.Checksum = ""
	return r, nil
}

func (s Store) put(r *Record) error {
	path := s.Path(r.Dataset, r.Model, r.Key)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("store: %w", err)
	}
	sealed := *r
	sealed.Seal.Checksum = seal.Blank
	text, err := seal.JSON(&sealed)
	if err != nil {
		return err
	}
	if info, err := os.Lstat(path); err == nil && !info.Mode().IsRegular() && !info.IsDir() { // a pipe would be written to
		if err := os.Remove(path); err != nil {
			return fmt.Errorf("store: %w", err)
		}
	}
	return atomicfile.WriteBytes(path, text)
}

// Records reads all records, ordered by file name. Files that are none are passed
// over and reported as faults. A folder that is not there is an error.
func (s Store) Records() (records []*Record, faults []error, err error) {
	var paths []string
	err = filepath.WalkDir(s.Dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && strings.HasSuffix(path, ".json") && filepath.Dir(filepath.Dir(path)) == filepath.Clean(s.Dir) {
			paths = append(paths, path)
		}
		return err
	})
	if err != nil {
		return nil, nil, fmt.Errorf("store: %w", err)
	}
	slices.Sort(paths)
	for _, path := range paths {
		r, err := readRecord(path)
		if err != nil {
			faults = append(faults, err)
			continue
		}
		records = append(records, r)
	}
	return records, faults, nil
}

// Merge copies the records of other stores into this one. Records that it has
// already stay. It returns how many were added, and the files that are no
// records.
func (s Store) Merge(others ...string) (added int, faults []error, err error) {
	for _, dir := range others {
		records, bad, err := Store{dir}.Records()
		if err != nil {
			return added, faults, err
		}
		faults = append(faults, bad...)
		for _, r := range records {
			if have, err := s.get(r.Dataset, r.Model, r.Key); err == nil && have != nil {
				continue
			}
			if err := s.put(r); err != nil {
				return added, faults, err
			}
			added++
		}
	}
	return added, faults, nil
}
