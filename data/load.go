package data

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/gsrc-dev/gsrc/data/catalog"
	"github.com/gsrc-dev/gsrc/data/store"
	"github.com/gsrc-dev/gsrc/internal/budget"
	"github.com/gsrc-dev/gsrc/internal/lists"
	"github.com/gsrc-dev/gsrc/internal/nearest"
)

// loader carries what the readers of all formats share.
type loader struct {
	opts LoadOptions
	sum  hash.Hash
	mem  *budget.Reservation // what loading holds
	left int64               // bytes that compressed text files may still unpack to

	split *SplitSpec // that is to be drawn; nil takes those that come with the data

	spill *spill // where a graph goes that is converted to a store; nil where it is loaded
}

// unpackedText is how many times LoadOptions.MaxBytes compressed text may unpack to. It
// is read in a stream: what it says takes less memory than its letters, which are
// limited so that an archive of nothing but blank lines comes to an end.
const unpackedText = 4

func newLoader(opts LoadOptions) *loader {
	if opts.MaxBytes <= 0 {
		opts.MaxBytes, _ = budget.Default()
	}
	mem, _ := budget.New(opts.MaxBytes).Reserve("reading it", 0) // nothing is there for everyone
	return &loader{opts: opts, sum: sha256.New(), mem: mem, left: budget.Mul(unpackedText, opts.MaxBytes)}
}

func newLoading(opts LoadOptions) (*loader, error) {
	spec, err := ParseSplit(opts.Split)
	err = cmp.Or(err, CheckMerge(opts.Tables.Merge), opts.Weights.Check())
	if err == nil && opts.Columns != nil {
		err = opts.Columns.Check()
	}
	if err != nil {
		return nil, err
	}
	if spec != nil {
		opts.Tables.time = spec.Time
	}
	if spec != nil && spec.Column != "" {
		opts.Tables.Split, spec = spec.Column, nil
	}
	if c := opts.Columns; c != nil && opts.Roles == (Roles{}) {
		opts.Roles, opts.Merge = rolesOf(c.Roles), c.Merge
	}
	l := newLoader(opts)
	l.split = spec
	return l, nil
}

// open checks the options and finds out the format of what is at path.
func open(path string, opts LoadOptions) (*loader, reader, error) {
	l, err := newLoading(opts)
	if err != nil {
		return nil, reader{}, err
	}
	r, err := l.recognise(path)
	return l, r, overBudget(path, err)
}

// unread refuses options that say how tables are read, where there were none.
func (l *loader) unread(path string, ds *Dataset) error {
	t := l.opts.Tables
	if ds.Stored != nil && l.opts.Trained != "" { // for a model, whose split is known
		return l.withoutTables(path)
	}
	if t.time != "" && ds.times == nil {
		return badFile(path, "split time:%s: these data have no table of nodes with such a column", t.time).hint("write for example per-class:20,500,1000, random:0.6,0.2,0.2 or ratio:0.05")
	}
	if ds.Format == "folder" {
		return nil
	}
	if t.Split != "" {
		return badFile(path, "split %s: these data have no table with such a column", quote(t.Split)).hint("write for example per-class:20,500,1000, random:0.6,0.2,0.2 or ratio:0.05")
	}
	return l.withoutTables(path)
}

// withoutTables refuses options that say which columns of tables are what.
func (l *loader) withoutTables(path string) error {
	if t := l.opts.Tables; t.ID+t.Label+t.Source+t.Target+t.Weight+t.Merge == "" && len(t.Ignore) == 0 {
		return nil
	}
	return badFile(path, "options say which columns of tables are what, and these data have no tables").hint("leave --id, --label, --source, --target, --weight, --ignore and --merge out")
}

func (l *loader) checksum() string { return hex.EncodeToString(l.sum.Sum(nil)) }

// reader reads what a path was recognised as: one of its functions is set.
type reader struct {
	dataset    func() (*Dataset, error)
	collection func() (*Collection, error)
}

// LoadAny reads a data set or a collection of graphs, whichever path holds; the
// other is nil.
func LoadAny(path string, opts LoadOptions) (*Dataset, *Collection, error) {
	l, r, err := open(path, opts)
	if err != nil {
		return nil, nil, err
	}
	if r.collection != nil {
		c, err := l.finishCollection(path, r)
		return nil, c, err
	}
	ds, err := l.finish(path, r)
	return ds, nil, err
}

func (l *loader) recognise(path string) (reader, error) {
	if path == Synthetic {
		return reader{dataset: l.synthetic}, nil
	}
	if path == "" {
		return reader{}, errors.New("no data: give a folder, a file, the name of a data set or the word synthetic")
	}
	path, err := located(path)
	if err != nil {
		return reader{}, err
	}
	info, err := os.Stat(path)
	if err != nil {
		return reader{}, err
	}
	if info.IsDir() {
		return l.recogniseFolder(path)
	}
	switch strings.ToLower(filepath.Ext(path)) {
	case ".npz":
		return reader{dataset: func() (*Dataset, error) { return l.npz(path) }}, nil
	case ".txt":
		s := &fileSet{l: l, root: filepath.Dir(path)}
		return reader{collection: func() (*Collection, error) { return l.ginText(s, path, filepath.Base(path)) }}, nil
	case ".zip":
		s, err := l.openZip(path)
		if err != nil {
			return reader{}, err
		}
		if r, ok := l.recogniseFiles(s); ok {
			return r, nil
		}
		files, folders := s.list("")
		return reader{}, badFile(path, "no data set in this archive: it has %s", nameList(append(files, folders...))).hint("expected a TU data set (NAME_A.txt, …), one .txt in GIN's format, or OGB's raw/edge.csv.gz; docs/data.md describes them")
	}
	return reader{}, badFile(path, "not a data set: a single file must be an .npz, a .zip or, in GIN's format, a .txt").hint("for CSV files or Planetoid's ind.* files give the folder they are in")
}

// located returns where a data set is on this machine that is given by its path, also from a
// folder of data sets, or by its name.
func located(name string) (string, error) {
	if _, err := os.Stat(name); !errors.Is(err, fs.ErrNotExist) {
		return name, nil
	}
	missing := badFile(name, "no such file or folder")
	if strings.ContainsAny(name, `/\`) {
		if filepath.IsLocal(name) {
			for _, root := range catalog.Folders() {
				path := filepath.Join(root, name)
				if _, err := os.Stat(path); err == nil {
					return path, nil
				}
			}
		}
		return "", missing.hint("give a folder, a file, the name of a data set or the word %s", Synthetic)
	}
	set, ok := catalog.Find(name)
	if !ok {
		missing.hint("give a folder, a file, the name of a data set or the word %s", Synthetic)
		if near := nearest.Of(strings.ToLower(name), append(catalog.Names(), Synthetic)); near != "" && len(name) < 32 {
			missing.hint("did you mean %s?", near)
		}
		return "", missing
	}
	path, looked := set.Locate()
	switch {
	case path != "":
		return path, nil
	case len(looked) == 0:
		return "", missing.hint("it is the name of a data set, and no folder of data sets is known, since this user has no cache folder; set %s to one, then: gsrc data fetch %s", catalog.EnvVar, set.Name)
	}
	return "", missing.hint("the data set %s is not in %s; fetch it with: gsrc data fetch %s", set.Name, strings.Join(looked, " or "), set.Name)
}

func (l *loader) recogniseFolder(path string) (reader, error) {
	entries, err := os.ReadDir(path)
	if err != nil {
		return reader{}, err
	}
	names := lists.Map(entries, fs.DirEntry.Name) // sorted by ReadDir
	if slices.Contains(names, store.HeaderFile) {
		return reader{dataset: func() (*Dataset, error) { return l.store(path) }}, nil
	}
	set, err := planetoidName(path, names)
	if err != nil {
		return reader{}, err
	}
	if set != "" {
		return reader{dataset: func() (*Dataset, error) { return l.planetoid(path, set) }}, nil
	}
	if edges, err := tableNamed(path, names, "edges"); edges != "" || err != nil || slices.Contains(names, SchemaFile) {
		return reader{dataset: func() (*Dataset, error) { return l.folder(path, names) }}, err
	}
	s := &fileSet{l: l, root: path}
	if r, ok := l.recogniseFiles(s); ok {
		return r, nil
	}
	return reader{}, badFile(path, "no data set in this folder: it has %s", nameList(names)).hint("expected edges.csv with nodes.csv, Planetoid's ind.NAME.* files, a TU data set (NAME_A.txt, …), one .txt in GIN's format, or another of the formats that docs/data.md describes")
}

// recogniseFiles finds out a format whose files lie in a folder or a .zip.
func (l *loader) recogniseFiles(s *fileSet) (r reader, ok bool) {
	files, folders := s.list("")
	var sets []string
	for _, f := range files {
		name, ok := strings.CutSuffix(f, "_graph_indicator.txt")
		if !ok { // tu says that the other file is missing
			name, ok = strings.CutSuffix(f, "_graph_labels.txt")
			ok = ok && s.has(name+"_A.txt") && !s.has(name+"_graph_indicator.txt")
		}
		if ok && name != "" {
			sets = append(sets, name)
		}
	}
	if len(sets) > 0 {
		return reader{collection: func() (*Collection, error) {
			if len(sets) > 1 {
				return nil, badFile(s.root, "holds several TU data sets: %s", nameList(sets)).hint("put each into a folder of its own")
			}
			return l.tu(s, sets[0])
		}}, true
	}
	if s.has("raw/edge.csv.gz") || s.has("raw/edge.csv") {
		return reader{dataset: func() (*Dataset, error) { return l.ogb(s) }}, true
	}
	var texts []string
	for _, f := range files {
		if strings.HasSuffix(f, ".txt") && !strings.HasPrefix(strings.ToLower(f), "readme") {
			texts = append(texts, f)
		}
	}
	if len(texts) == 1 && (slices.Contains(folders, foldsFolder) || strings.EqualFold(strings.TrimSuffix(texts[0], ".txt"), s.name()) || s.beginsWithCount(texts[0])) {
		return reader{collection: func() (*Collection, error) { return l.ginText(s, s.root, texts[0]) }}, true
	}
	return reader{}, false
}

// done gives back the memory of what file returned.
func (l *loader) done(b []byte) {
	if !l.spill.maps(b) {
		l.mem.Shrink(int64(cap(b)))
	}
}

// file reads an input file whole and adds it to the checksum. [loader.done] gives its
// memory back.
func (l *loader) file(path string) ([]byte, error) {
	info, err := os.Stat(path) // before Open, which waits for the writer of a pipe
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil, badFile(path, "the file is missing")
		}
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, badFile(path, "not a regular file")
	}
	if err := l.opts.Spare(path); err != nil {
		return nil, err
	}
	if l.spill != nil {
		b, err := l.spill.file(path, info.Size())
		delimit(l.sum, path, int64(len(b)))
		l.sum.Write(b)
		return b, err
	}
	if err := l.mem.Grow(info.Size() + 1); err != nil {
		return nil, fileFault(path, err)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b := make([]byte, info.Size()+1)
	n, err := io.ReadFull(f, b)
	switch {
	case err == nil:
		return nil, badFile(path, "it grew while it was read").hint("wait until it is written")
	case err != io.ErrUnexpectedEOF && err != io.EOF:
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	b = b[:n]
	delimit(l.sum, path, int64(len(b)))
	l.sum.Write(b)
	return b, nil
}

// delimit writes a file's name and length, so that no two inputs hash alike.
func delimit(w io.Writer, path string, n int64) {
	io.WriteString(w, filepath.Base(path))
	var size [9]byte
	binary.LittleEndian.PutUint64(size[1:], uint64(n))
	w.Write(size[:])
}

// ChecksumOf is the Checksum of a data set in the files of these paths, in the order in
// which [Load] reads them: of a folder edges, nodes and features.
func ChecksumOf(paths ...string) (string, error) {
	sum := sha256.New()
	for _, path := range paths {
		f, err := os.Open(path)
		if err != nil {
			return "", err
		}
		info, err := f.Stat()
		if err == nil {
			delimit(sum, path, info.Size())
			_, err = io.Copy(sum, f)
		}
		if err := errors.Join(err, f.Close()); err != nil {
			return "", err
		}
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}
